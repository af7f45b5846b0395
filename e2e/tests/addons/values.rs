//! What the charts are given is made of the Cluster and of what providers make of it.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    conditions::{ConditionType, Reason, find},
    events::Happening,
    labels,
};
use e2e::{
    Journey,
    audit::Mark,
    eventually,
    journey::{SOON, USER},
    planted::Planted,
    releases::StackSource,
    shim::cluster,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    ground::{
        CLUSTER, CLUSTER_API, Ground, OPERATOR, ask, is_told_of, on_the_newest, release_of, set_topology, status,
        until_addon,
    },
    reshaped::{NOTE, STAGES},
    stack,
};

/// The template of the values of the lighthouse.
const OVERWRITE: &str = "cluster-addon/lighthouse/overwrite.yaml";
/// The version of the Cluster that a template is given, and where its class stands in it: in that of `v1beta1`, and in that of `v1beta2`.
const FORM: &str = concat!(
    r#"{{ printf "%s %s %s" .Cluster.apiVersion (dig "spec" "topology" "class" "none" .Cluster) "#,
    r#"(dig "spec" "topology" "classRef" "name" "none" .Cluster) | quote }}"#,
);

/// Has the note say one thing more.
fn add_to_note(source: &StackSource, key: &str, value: &str) -> Result<()> {
    let region = "  region:";
    source
        .replace(NOTE, region, &format!("  {key}: {value}\n{region}"))
        .map(drop)
}

/// Subscribes to a version of this source, which is made of that of the stack of this name. The answer is its class.
async fn class_of(journey: &Journey, source: &StackSource, (name, version): (&str, &str)) -> Result<String> {
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, name, version).await?;
    Ok(tag)
}

/// What [`FORM`] makes of a Cluster of this class.
fn form(api_version: &str, class: &str) -> String {
    if api_version == CLUSTER_API {
        format!("{api_version} {class} none")
    } else {
        format!("{api_version} none {class}")
    }
}

/// Whether it is said that the Cluster comes in another version than its release names.
fn is_in_another_version(addon: &ClusterAddon) -> bool {
    let told = status(addon);
    let validated = find(&told.conditions, ConditionType::ClusterAddonConfigValidated);
    let reason = validated.and_then(|validated| validated.reason.as_deref());
    reason == Some(Reason::ClusterVersionNotServed.as_str())
}

/// Cluster API takes the variable to the object of the infrastructure, and the values of the add-ons are made of that. The Cluster itself comes in the
/// version that the release names, in `v1beta1` where it names none.
#[test]
fn a_variable_of_a_cluster_reaches_its_add_ons_in_whichever_version_their_release_has_the_cluster() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let source = StackSource::quay("v2")?;
        source.replace(OVERWRITE, "region:", &format!("form: {FORM}\nregion:"))?;
        add_to_note(&source, "form", "{{ .Values.form | quote }}")?;
        let first = class_of(journey, &source, ("v2", "v2")).await?;
        source.replace(STAGES, "addonStages:", "clusterApiVersion: v1beta2\naddonStages:")?;
        let second = class_of(journey, &source, ("v2", "v4")).await?;
        journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
        let addon = ground.complete(journey, &first, "v2").await?;
        note_tells(ground, "form", &form(CLUSTER_API, &first)).await?;
        ensure!(!is_in_another_version(&addon), "{:#?}", status(&addon).conditions);

        set_topology(journey, &second, "v1.35.0").await?;
        let addon = ground.complete(journey, &second, "v4").await?;
        let newest = ground.release.newest_version();
        note_tells(ground, "form", &form(newest, &second)).await?;
        let is_older = newest == CLUSTER_API;
        ensure!(
            is_in_another_version(&addon) == is_older,
            "{:#?}",
            status(&addon).conditions
        );

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
    note_tells(ground, "region", region).await
}

/// Waits until it tells this.
async fn note_tells(ground: &Ground, key: &str, value: &str) -> Result<ConfigMap> {
    let notes: Api<ConfigMap> = Api::namespaced(ground.workload.client(), stack::NOTE.0);
    eventually(SOON, format!("the note to tell the {key} {value}"), async || {
        let note = notes.get(stack::NOTE.1).await?;
        let told = note.data.as_ref().and_then(|data| data.get(key));
        ensure!(told.is_some_and(|told| told == value), "{note:?}");
        Ok(note)
    })
    .await
}

/// What a chart looks up in the workload cluster, and how.
const TIDE: (&str, &str) = ("kube-system", "tide");
const LOOKED_UP: &str = r#"{{ dig "data" "level" "unknown" (lookup "v1" "ConfigMap" "kube-system" "tide") | quote }}"#;
/// Where it is asked for.
const PATH_OF_TIDE: &str = "/api/v1/namespaces/kube-system/configmaps/tide";
/// How long what was looked up is believed.
const BELIEVED: SignedDuration = SignedDuration::from_secs(60);

/// Somebody writes it there.
pub(crate) async fn set_tide(client: &Client, level: &str) -> Result<()> {
    let tides: Api<ConfigMap> = Api::namespaced(client.clone(), TIDE.0);
    let tide = Patch::Apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": TIDE.1 }, "data": { "level": level },
    }));
    let written = tides.patch(TIDE.1, &PatchParams::apply(USER), &tide).await;
    written.map(drop).context("failed to write the tide")
}

/// What is looked up changed at that time. Whoever has the add-ons looked at when the last answer is believed no more has them made of the new one.
async fn is_looked_up_again(journey: &Journey, ground: &Ground, changed: Timestamp) -> Result<()> {
    eventually(SOON, "the tide of before to be believed no more", async || {
        let age = Timestamp::now().duration_since(changed);
        ensure!(age > BELIEVED, "{age:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    ask(journey, "the-tide").await?;
    note_tells(ground, "tide", "high").await.map(drop)
}

/// It was read in the workload cluster, by its name and in no other way.
async fn is_asked_for_alone(journey: &Journey, ground: &Ground, [here, there]: [Mark; 2]) -> Result<()> {
    let asked = ground.workload.audit_log().told(there, PATH_OF_TIDE).await?;
    let asked = asked.of_agent(OPERATOR);
    let is_read = !asked.is_empty() && asked.iter().all(|event| event.verb == "get");
    ensure!(is_read, "{asked:#?}");
    let elsewhere = journey.control_plane().audit_log().told(here, PATH_OF_TIDE).await?;
    ensure!(elsewhere.is_empty(), "{elsewhere:#?}");
    Ok(())
}

const FIRST: &str = "sesame-open-4711";
const SECOND: &str = "sesame-shut-0815";

/// A Secret or ConfigMap with the region as a value, from which Clusters may take values, or may not.
pub(crate) fn region(kind: &str, name: &str, region: &str, is_allowed: bool) -> Value {
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
        let source = StackSource::quay("v1")?;
        add_to_note(&source, "tide", LOOKED_UP)?;
        let class = class_of(journey, &source, ("v1", "v1")).await?;
        let client = ground.workload.client();
        set_tide(&client, "low").await?;
        let begun = [journey.mark().await?, ground.workload.audit_log().mark().await?];
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        note_tells(ground, "tide", "low").await?;
        set_tide(&client, "high").await?;
        let changed = Timestamp::now();

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
        // All this while the chart has looked something up besides.
        is_looked_up_again(journey, ground, changed).await?;
        is_asked_for_alone(journey, ground, begun).await?;
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
