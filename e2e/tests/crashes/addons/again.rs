//! A Cluster goes by force, with its machines, and another one of its name is made: nothing that was said, drawn or connected for the first counts for the second.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::ClusterAddon;
use e2e::{
    FaultProxy, Journey, Weather,
    addons::{
        cluster::{Cluster, objects},
        ground::Ground,
        stack::{self, KEYS, Version},
    },
    journey::journey,
};
use http::StatusCode;
use kube::ResourceExt;
use serde_json::Value;

use super::Part;

/// The name of both.
const NAME: &str = "again";

/// What the operator does in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    LooksOn,
    IsDead,
}

#[test]
fn another_cluster_of_the_same_name_begins_anew_while_the_operator_looks_on() -> Result<()> {
    again(Operator::LooksOn)
}

#[test]
fn another_cluster_of_the_same_name_begins_anew_when_the_operator_was_dead_meanwhile() -> Result<()> {
    again(Operator::IsDead)
}

fn again(operator: Operator) -> Result<()> {
    journey(async |journey| {
        let ground = Ground::prepare(journey).await?;
        journey.operate().await?;
        stack::subscribe(journey).await?;
        let [old, new] = [
            FaultProxy::start(ground.workload).await?,
            FaultProxy::start(ground.workload).await?,
        ];
        Part::Install
            .travel(named(journey), &old.access().admin_kubeconfig().await?)
            .await?;
        let first = named(journey).addon().await?.context("a ClusterAddon")?;
        let first_keys = keys(journey, &ground).await?;

        if operator == Operator::IsDead {
            journey.kill_operator().await?;
        }
        // Its machines are taken away, and with them all that was in it.
        old.set_weather(Weather::RefuseAll(StatusCode::SERVICE_UNAVAILABLE));
        ground.empty(named(journey)).await?;
        named(journey).vanish().await?;
        named(journey).delete().await?;
        let uid = named(journey).make(Version::First).await?;
        if operator == Operator::IsDead {
            journey.operate().await?;
        }
        let made = begins_anew(named(journey), &uid).await?;
        ensure!(made.uid() != first.uid(), "it is the ClusterAddon of the first");
        ground.stands(named(journey), None).await?;

        let asked = old.requests();
        named(journey)
            .initialize(&new.access().admin_kubeconfig().await?)
            .await?;
        let complete = named(journey).complete(Version::First).await?;
        ensure!(complete.uid() == made.uid(), "it was made once more");
        ground.stands(named(journey), Some(Version::First)).await?;
        ensure!(
            keys(journey, &ground).await? != first_keys,
            "the keys are those of the first"
        );
        ensure!(old.requests() == asked, "the API server of the first is still asked");

        Part::Delete.travel(named(journey), "").await?;
        ground.nothing_is_left(journey).await?;
        ground.judge(journey, &BTreeMap::new()).await?;
        journey.operator()?.check()
    })
}

/// The Cluster of this name, whichever it is now.
fn named(journey: &Journey) -> Cluster<'_> {
    Cluster { journey, name: NAME }
}

/// Waits until there is a ClusterAddon of this Cluster that says of itself that it waits for it, and nothing of what was before.
async fn begins_anew(cluster: Cluster<'_>, uid: &str) -> Result<ClusterAddon> {
    let is_its = |addon: &ClusterAddon| addon.owner_references().iter().any(|owner| owner.uid == uid);
    let said = cluster
        .until("a ClusterAddon of the second Cluster", |addon, status| {
            is_its(addon) && !status.conditions.is_empty()
        })
        .await?;
    let status = said.status.clone().unwrap_or_default();
    ensure!(
        !status.ready && status.applied.is_none() && status.resources.is_empty() && status.memo.is_none(),
        "{status:#?}"
    );
    Ok(said)
}

/// What was drawn at random for the Cluster.
async fn keys(journey: &Journey, ground: &Ground) -> Result<Value> {
    let secrets = objects(&ground.workload.client(), ("v1", "Secret"), &journey.namespace);
    let keys = secrets.get(&format!("{NAME}-{KEYS}")).await?;
    Ok(keys.data["data"].clone())
}
