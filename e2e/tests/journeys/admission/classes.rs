//! Clusters whose class lives in another namespace than they, and operators that do not lead.

use anyhow::{Context, Result, ensure};
use e2e::{Operator, OperatorOptions, eventually, journey::SOON, webhooks::Certificates};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use serde_json::json;

use super::asked::Objects;
use super::{CLASS, CLUSTER_API, VERSION, cluster, clusters, guarded, installed, is_asked, releases, stacks};
use crate::journey;

#[test]
fn the_release_of_a_class_is_looked_for_where_the_class_is() -> Result<()> {
    journey(async |journey| {
        let elsewhere = journey.another_namespace().await?;
        guarded(journey, &[&elsewhere]).await?;
        installed(journey).await?;
        let api = Objects::new(&journey.client, CLUSTER_API, &elsewhere, "clusters");
        let mut far = cluster("far", CLASS, "v1.34.9");
        let answer = api.try_create(&far).await?;
        ensure!(
            answer.accepted() && answer.warnings.len() == 1,
            "there is no such class: {answer:?}"
        );
        far["spec"]["topology"]["classNamespace"] = json!(journey.namespace);
        let answer = api.try_create(&far).await?;
        ensure!(answer.code == 403, "{answer:?}");
        far["spec"]["topology"]["version"] = json!(VERSION);
        let answer = api.try_create(&far).await?;
        ensure!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
        Ok(())
    })
}

#[test]
fn a_standby_answers_like_the_leader() -> Result<()> {
    journey(async |journey| {
        let election = [
            "--leader-elect=true".to_owned(),
            format!("--leader-elect-namespace={}", journey.namespace),
        ];
        journey.options.flags = election.map(Into::into).to_vec();
        journey.operate().await?;
        let leads = async || {
            let lease: Lease = Api::namespaced(journey.client.clone(), &journey.namespace)
                .get("clusterstack.x-k8s.io")
                .await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity);
            holder.filter(|holder| !holder.is_empty()).context("nobody leads")
        };
        let leader = eventually(SOON, "somebody to lead", leads).await?;
        installed(journey).await?;

        let certificates = Certificates::at(&journey.folder().join("certificates"))?;
        let mut flags = journey.options.flags.clone();
        flags.extend(certificates.flags());
        let options = OperatorOptions {
            flags,
            record: None,
            log: journey.folder().join("standby.log"),
            ..journey.options.clone()
        };
        let mut standby = Operator::start(journey.lab(), &options)?;
        standby.ready().await?;
        let port = standby.webhook_port().await?;
        certificates
            .configure(&journey.client, &journey.namespace, port, &[&journey.namespace])
            .await?;
        let api = clusters(journey);
        is_asked(&api).await?;
        let answer = api.try_create(&cluster("web", CLASS, "v1.34.9")).await?;
        ensure!(answer.code == 403, "{answer:?}");
        ensure!(api.create(&cluster("web", CLASS, VERSION)).await?.accepted());
        eventually(SOON, "the standby to know the Cluster", async || {
            let answer = stacks(journey).try_delete("harbor").await?;
            ensure!(answer.code == 400, "{answer:?}");
            anyhow::Ok(())
        })
        .await?;
        let answer = releases(&journey.client, &journey.namespace).try_delete(CLASS).await?;
        ensure!(answer.code == 400, "{answer:?}");
        ensure!(leads().await? == leader, "it is a standby no more");
        standby.kill().await
    })
}
