//! What the charts are given is made of the Cluster and of what providers make of it.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    conditions::{ConditionType, Reason, find},
    events::Happening,
    labels,
};
use e2e::{Journey, eventually, journey::SOON, planted::Planted, shim::cluster};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    ground::{CLUSTER, CLUSTER_API, Ground, class, is_told_of, on_the_newest, until_addon},
    stack,
};

/// Cluster API takes the variable to the object of the infrastructure, and the values of the add-ons are made of that.
#[test]
fn a_variable_of_a_cluster_reaches_its_add_ons() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let notes: Api<ConfigMap> = Api::namespaced(ground.workload.client(), stack::NOTE.0);
        let before = notes.get(stack::NOTE.1).await?;
        let variables = json!({ "spec": { "topology": { "variables": [{ "name": "region", "value": "south" }] } } });
        change_cluster(journey, variables).await?;
        let after = noted(ground, "south").await?;
        assert_eq!(after.uid(), before.uid());
        ground.looks_write_nothing(journey, "moved").await
    })
}

/// Changes the Cluster as its user does.
pub(crate) async fn change_cluster(journey: &Journey, change: Value) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    let changed = clusters
        .patch(CLUSTER, &PatchParams::default(), &Patch::Merge(change))
        .await;
    changed.map(drop).context("failed to change the Cluster")
}

/// Waits until the note in the workload cluster tells this region.
pub(crate) async fn noted(ground: &Ground, region: &str) -> Result<ConfigMap> {
    let notes: Api<ConfigMap> = Api::namespaced(ground.workload.client(), stack::NOTE.0);
    eventually(SOON, "the note to tell the region", async || {
        let note = notes.get(stack::NOTE.1).await?;
        let told = note.data.as_ref().and_then(|data| data.get("region"));
        ensure!(told.is_some_and(|told| told == region), "{note:?}");
        Ok(note)
    })
    .await
}

const FIRST: &str = "sesame-open-4711";
const SECOND: &str = "sesame-shut-0815";

/// A Secret or ConfigMap with the region as a value, from which Clusters may take values, or may not.
fn region(kind: &str, name: &str, region: &str, is_allowed: bool) -> Value {
    let data = if kind == "Secret" { "stringData" } else { "data" };
    let mut holder = json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": { "name": name, "labels": { labels::VALUES: is_allowed.to_string() } },
    });
    holder[data] = json!({ labels::VALUES_KEY: format!("region: {region}\n") });
    holder
}

/// Has the Cluster take values from these.
async fn take_from(journey: &Journey, named: &str) -> Result<()> {
    let annotation = json!({ "metadata": { "annotations": { labels::VALUES_FROM: named } } });
    change_cluster(journey, annotation).await
}

/// Waits until it is said of the Secret that it may not be taken.
async fn refused(journey: &Journey, name: &str) -> Result<ClusterAddon> {
    let words = [format!("the Secret {name}"), labels::VALUES.to_owned()];
    until_addon(journey, "the Secret to be refused by its name", |status| {
        let templated = find(&status.conditions, ConditionType::HelmChartTemplated);
        let stalled = find(&status.conditions, ConditionType::Stalled);
        let message = templated
            .and_then(|templated| templated.message.clone())
            .unwrap_or_default();
        words.iter().all(|word| message.contains(word))
            && stalled.is_some_and(|stalled| stalled.reason.as_deref() == Some(Reason::RenderFailed.as_str()))
    })
    .await
}

#[test]
fn values_of_secrets_and_config_maps_reach_the_cluster_by_consent_alone_and_are_told_nowhere() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;

        journey.apply(region("Secret", "lights", FIRST, false)).await?;
        take_from(journey, "lighthouse=secret/lights").await?;
        refused(journey, "lights").await?;
        noted(ground, "north").await?;
        journey.apply(region("Secret", "lights", FIRST, true)).await?;
        noted(ground, FIRST).await?;
        journey.apply(region("Secret", "lights", SECOND, true)).await?;
        noted(ground, SECOND).await?;

        journey.apply(region("ConfigMap", "berths", "south", true)).await?;
        take_from(journey, "lighthouse=secret/lights,configmap/berths").await?;
        noted(ground, "south").await?;
        journey.apply(region("ConfigMap", "berths", "east", true)).await?;
        noted(ground, "east").await?;
        take_from(journey, "configmap/berths,lighthouse=secret/lights").await?;
        noted(ground, SECOND).await?;

        // What was taken stays where nobody may take it any more.
        journey.apply(region("Secret", "lights", FIRST, false)).await?;
        refused(journey, "lights").await?;
        noted(ground, SECOND).await?;
        journey.apply(region("Secret", "lights", SECOND, true)).await?;
        let addon = until_addon(journey, "all to be as it is to be", |status| status.ready).await?;
        let happenings = [Happening::StageDone, Happening::UpgradeBegun, Happening::UpgradeDone];
        is_told_of(journey, &addon, &happenings).await?;
        ground.looks_write_nothing(journey, "taken").await?;
        tells_nothing_of_secrets(journey).await
    })
}

/// Neither in the ClusterAddon nor in an event, the log or the metrics.
async fn tells_nothing_of_secrets(journey: &mut Journey) -> Result<()> {
    let mut planted = Planted::default();
    for secret in [FIRST, SECOND] {
        planted.plant(secret);
    }
    let addons = journey.api::<ClusterAddon>().list(&ListParams::default()).await?;
    let events: Api<Event> = Api::namespaced(journey.client.clone(), &journey.namespace);
    let events = events.list(&ListParams::default()).await?;
    let operator = journey.operator()?;
    let page = operator.metrics_page().await?;
    let log = fs::read_to_string(operator.log()).context("failed to read the log")?;
    let (addons, events) = (
        serde_json::to_string(&addons.items)?,
        serde_json::to_string(&events.items)?,
    );
    for text in [addons, events, log, page] {
        let told = planted.told_in(&text);
        ensure!(told.is_none(), "{told:?}");
    }
    Ok(())
}
