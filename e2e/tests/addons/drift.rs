//! Somebody changes or deletes what the operator made in a workload cluster, and the stack says that it stays so (A12). That holds until a release wants it
//! otherwise; what leaves the add-ons meanwhile goes all the same.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::name_for,
    conditions::{ConditionStatus, ConditionType, Reason, find},
    policy::DriftPolicy,
    resource::{Resource, SyncStatus},
};
use e2e::{
    Journey, eventually,
    journey::{SOON, USER},
    releases::StackSource,
    shim::cluster,
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::{
    changed::{IMAGE, change_the_agent, delete_the_note, image_of},
    ground::{CLUSTER, Ground, ask, on_the_newest, set_topology, status, until_addon},
    reshaped::add_object,
    stack::{self, Expected},
};

/// Subscribes to a version with this policy; the answer is its class.
async fn class(journey: &Journey, source: &StackSource, version: &str, drift: DriftPolicy) -> Result<String> {
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    let spec = json!({
        "provider": "shim", "name": "quay", "kubernetesVersion": "1.35", "versions": [version], "drift": drift,
    });
    journey.stack(&format!("quay-{version}"), spec).await?;
    journey.release_ready(&tag).await?;
    Ok(tag)
}

/// Two versions with this policy, of which the second wants another agent and another note, and has a buoy.
async fn two_classes(journey: &Journey, drift: DriftPolicy) -> Result<[String; 2]> {
    let source = StackSource::quay("v2")?;
    let first = class(journey, &source, "v2", drift).await?;
    let agent = "cluster-addon/network/templates/agent.yaml";
    source.replace(agent, stack::image("v2"), stack::image("v3"))?;
    add_object(&source, "network", "ConfigMap", "", "buoy")?;
    Ok([first, class(journey, &source, "v3", drift).await?])
}

/// What only the second has.
const BUOY: (&str, &str) = ("kube-system", "cluster-addon-buoy");

/// What the second brings.
fn of_second() -> Vec<Expected> {
    let holds = json!({ "data": { "name": "buoy" } });
    let buoy = Expected::new(("v1", "ConfigMap"), BUOY, "network", holds);
    [stack::expected("v3"), vec![buoy]].concat()
}

/// What the status says of an object.
pub(crate) fn row<'a>(
    status: &'a ClusterAddonStatus,
    kind: &str,
    (namespace, name): (&str, &str),
) -> Option<&'a Resource> {
    let mut rows = status.resources.iter();
    rows.find(|row| (row.kind.as_str(), row.namespace.as_str(), row.name.as_str()) == (kind, namespace, name))
}

/// Whether that is in all these words that it is not as it is wanted.
pub(crate) fn says(row: Option<&Resource>, words: &[&str]) -> bool {
    row.is_some_and(|row| {
        row.status == Some(SyncStatus::NotSynced) && words.iter().all(|word| row.error.contains(word))
    })
}

/// Whether `HelmChartApplied` is so, because of what was changed.
fn is_drifted(status: &ClusterAddonStatus, so: ConditionStatus) -> bool {
    let applied = find(&status.conditions, ConditionType::HelmChartApplied);
    applied.is_some_and(|applied| applied.status == so && applied.reason.as_deref() == Some(Reason::Drifted.as_str()))
}

/// The agent is as somebody has it, and the note is not there.
pub(crate) async fn as_left(ground: &Ground) -> Result<()> {
    let client = ground.workload.client();
    let agents: Api<Deployment> = Api::namespaced(client.clone(), stack::AGENT.0);
    let agent = agents.get(stack::AGENT.1).await?;
    let image = image_of(&agent);
    ensure!(image == Some(IMAGE), "the image is {image:?}");
    let notes: Api<ConfigMap> = Api::namespaced(client, stack::NOTE.0);
    let note = notes.get_opt(stack::NOTE.1).await?;
    ensure!(note.is_none(), "{note:#?}");
    Ok(())
}

/// Somebody changes the agent and then deletes the note. The next version wants both otherwise than the first did, and has them so.
async fn is_left(journey: &Journey, ground: &Ground, drift: DriftPolicy) -> Result<()> {
    let [first, second] = two_classes(journey, drift).await?;
    journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
    ground.complete(journey, &first, "v2").await?;
    ground.looks_write_nothing(journey, "before").await?;
    let client = ground.workload.client();
    let before = stack::uids(&client, "v2").await?;
    let mark = ground.workload.audit_log().mark().await?;

    change_the_agent(&client).await?;
    if drift == DriftPolicy::Warn {
        until_addon(journey, "the agent to be told of", |status| {
            // Nothing is unusable because of a difference that is to be left.
            status.ready && is_drifted(status, ConditionStatus::True) && is_told(status)
        })
        .await?;
    }
    delete_the_note(&client).await?;
    until_addon(journey, "the note to be missed", |status| {
        let note = row(status, "ConfigMap", stack::NOTE);
        !status.ready && is_drifted(status, ConditionStatus::False) && says(note, &["deleted", &drift.to_string()])
    })
    .await?;
    ask(journey, "once more").await?;
    as_left(ground).await?;
    let written = ground.written_since(mark).await?;
    ensure!(written.is_empty(), "{written:#?}");
    let addon = journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?;
    let told = status(&addon);
    let is_wanted = drift == DriftPolicy::Warn;
    ensure!(is_told(&told) == is_wanted, "{told:#?}");
    ensure!(
        is_wanted || !format!("{:?}", told.conditions).contains(AGENT),
        "{told:#?}"
    );
    events_tell(journey, &addon, is_wanted).await?;

    set_topology(journey, &second, "v1.35.0").await?;
    ground.complete_with(journey, &second, "v3", &of_second()).await?;
    let mut after = stack::uids(&client, "v3").await?;
    after.remove(&format!("ConfigMap {}/{}", stack::NOTE.0, stack::NOTE.1));
    stack::are_the_same(&before, &after)?;
    ground.looks_write_nothing(journey, "after").await?;
    is_left_behind(journey, ground, &first).await
}

/// What both versions want alike.
const SERVICE: (&str, &str) = ("quay", "cluster-addon-lighthouse");

/// Somebody deletes what the first version wants as the second does, and it stays so when the Cluster goes back. What only the second has goes all the same.
async fn is_left_behind(journey: &Journey, ground: &Ground, first: &str) -> Result<()> {
    let client = ground.workload.client();
    let services: Api<Service> = Api::namespaced(client.clone(), SERVICE.0);
    services.delete(SERVICE.1, &DeleteParams::default()).await?;
    let is_missed = |status: &ClusterAddonStatus| says(row(status, "Service", SERVICE), &["deleted"]);
    until_addon(journey, "the Service to be missed", is_missed).await?;

    set_topology(journey, first, "v1.35.0").await?;
    let service = format!("Service {}/{}", SERVICE.0, SERVICE.1);
    let wanted = stack::expected("v2").into_iter().map(|object| object.place());
    let wanted: BTreeSet<String> = wanted.filter(|place| *place != service).collect();
    eventually(SOON, "the buoy to go", async || {
        let there = stack::ours(&client, &ground.home).await?;
        ensure!(there == wanted, "{there:#?} instead of {wanted:#?}");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    until_addon(journey, "the first version to be there but for the Service", |status| {
        let applied = status.applied.as_ref().map(|applied| applied.cluster_stack.as_str());
        applied == Some(first) && !status.ready && is_missed(status) && row(status, "ConfigMap", BUOY).is_none()
    })
    .await
    .map(drop)
}

/// As conditions and events name the agent.
const AGENT: &str = "Deployment cluster-addon-network";

/// Whether the row of the agent says what differs and who did it.
fn is_told(status: &ClusterAddonStatus) -> bool {
    let agent = row(status, "Deployment", stack::AGENT);
    says(agent, &["/spec/template/spec/containers", USER])
}

/// Whether an event tells of the agent; what is missed is told in any case.
async fn events_tell(journey: &Journey, addon: &ClusterAddon, is_wanted: bool) -> Result<()> {
    eventually(SOON, "events of what is left", async || {
        let events = journey.events_of(addon).await?;
        let mut of_drift = events
            .iter()
            .filter(|(_, reason, _)| reason == Reason::Drifted.as_str());
        ensure!(of_drift.clone().next().is_some(), "{events:#?}");
        let tells = of_drift.any(|(_, _, message)| message.contains(AGENT) && message.contains(USER));
        ensure!(tells == is_wanted, "{events:#?}");
        Ok(())
    })
    .await
}

#[test]
fn a12_with_warn_what_is_changed_or_deleted_is_told_and_left_until_a_release_wants_it_otherwise_and_what_it_lacks_goes()
-> Result<()> {
    on_the_newest(async |journey, ground| is_left(journey, ground, DriftPolicy::Warn).await)
}

#[test]
fn a12_with_ignore_nobody_looks_at_what_is_changed_until_a_release_wants_it_otherwise_and_what_it_lacks_goes()
-> Result<()> {
    on_the_newest(async |journey, ground| is_left(journey, ground, DriftPolicy::Ignore).await)
}
