//! An operator with its own roles: they are enough for the add-ons of the clusters of its namespace, whose Secrets alone it asks for (F39).

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use crds::{cluster_addon::name_for, manifests::OperatorRole};
use e2e::{
    ControlPlane, Options,
    journey::journey,
    own_roles::{bind_for_secrets, with_its_own_roles},
    shim::Workload,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::json;

use crate::by_hand::{ByHand, stack_of, until_status};

const STACK: &str = "harbor";
const CLUSTER: &str = "wharf";
const CHART: &str = "apiVersion: v2\nname: docker-harbor-1-34-cluster-addon\ntype: application\nversion: v0\n";
/// A note, and something that is drawn at random, so that there is a memo.
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: tide, namespace: kube-system }\n\
                    data: { level: {{ randAlphaNum 12 | quote }} }\n";

#[test]
fn f39_with_its_own_roles_an_operator_brings_add_ons_and_asks_for_secrets_of_no_other_namespace() -> Result<()> {
    journey(async |journey| {
        let user = with_its_own_roles(journey).await?;
        bind_for_secrets(journey, &user, OperatorRole::Clusters).await?;
        journey.options.flags.push("--allow-workload-loopback".into());
        let workload = ControlPlane::start(Options::default()).await?;
        let kubeconfig = Workload::at(workload.access()).await?.kubeconfig().as_bytes().to_vec();
        let source = stack_of(&[
            (
                "cluster-addon-values.yaml",
                "values: |\n  cluster: {{ .Cluster.metadata.name }}\n",
            ),
            ("cluster-addon/Chart.yaml", CHART),
            ("cluster-addon/templates/note.yaml", NOTE),
        ])?;
        let class = journey.releases.publish_stack(&source.path(), "v1")?;
        journey.operate().await?;
        journey.stack(STACK, json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&class).await?;
        let begun = journey.mark().await?;
        ByHand::new(CLUSTER, &class, &kubeconfig).bring(journey).await?;
        until_status(journey, CLUSTER, "ready", |status| status.ready).await?;
        let notes: Api<ConfigMap> = Api::namespaced(workload.client(), "kube-system");
        ensure!(notes.get_opt("tide").await?.is_some(), "nothing was brought");
        let memo = format!("{}-memo", name_for(CLUSTER));
        journey.objects("v1", "Secret").get(&memo).await.context("no memo")?;
        let asked = journey.control_plane().audit_log().since_by(begun, &user).await?;
        let of_secrets = asked.filter(|event| event.object.as_ref().is_some_and(|object| object.resource == "secrets"));
        let here = format!("/namespaces/{}/", journey.namespace);
        let (mut verbs, mut wrong) = (BTreeSet::new(), Vec::new());
        for event in of_secrets.iter() {
            verbs.insert(event.verb.clone());
            if !event.request_uri.contains(&here) || event.code == 403 {
                wrong.push(format!("{} {}: {}", event.verb, event.request_uri, event.code));
            }
        }
        ensure!(wrong.is_empty(), "{wrong:#?}");
        let needed = ["create", "get", "list", "watch"].map(str::to_owned);
        ensure!(verbs == BTreeSet::from(needed), "{verbs:?}");
        Ok(())
    })
}
