//! Somebody changes or deletes what the operator made in a workload cluster (A12, F3), or the ClusterAddon itself (F15).

use std::{collections::BTreeMap, pin::pin};

use anyhow::{Context, Result, bail, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::name_for,
    conditions::{ConditionStatus, ConditionType, Reason, find},
    labels,
};
use e2e::{
    Journey,
    audit::Mark,
    eventually,
    journey::{SOON, USER},
    shim::cluster,
};
use futures::StreamExt;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;

use crate::{
    drift::{row, says},
    ground::{CLUSTER, Ground, ask, class, on_the_newest, until_addon},
    stack,
};

/// A Cluster with all add-ons of the first version; the answer is its class.
async fn installed(journey: &mut Journey, ground: &Ground) -> Result<String> {
    let class = class(journey, "v1", "v1").await?;
    journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
    ground.complete(journey, &class, "v1").await?;
    Ok(class)
}

/// What somebody writes into the agent.
pub(crate) const IMAGE: &str = "registry.example.com/somebody:else";

/// Changes an object as users with enough rights do.
pub(crate) async fn change_the_agent(client: &Client) -> Result<()> {
    let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "agent", "image": IMAGE }] } } } });
    let by_a_user = PatchParams {
        field_manager: Some(USER.to_owned()),
        ..PatchParams::default()
    };
    let agents: Api<Deployment> = Api::namespaced(client.clone(), stack::AGENT.0);
    let changed = agents.patch(stack::AGENT.1, &by_a_user, &Patch::Strategic(image)).await;
    changed.map(drop).context("failed to change the agent")
}

/// The image of the agent as it is now.
pub(crate) fn image_of(agent: &Deployment) -> Option<&str> {
    let pod = agent.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.as_deref()
}

/// Deletes an object.
pub(crate) async fn delete_the_note(client: &Client) -> Result<()> {
    let notes: Api<ConfigMap> = Api::namespaced(client.clone(), stack::NOTE.0);
    let deleted = notes.delete(stack::NOTE.1, &DeleteParams::default()).await;
    deleted.map(drop).context("failed to delete the note")
}

/// Deletes an object of this version, changes a second and takes the labels off a third.
async fn meddle(client: &Client, version: &str) -> Result<()> {
    delete_the_note(client).await?;
    change_the_agent(client).await?;
    let (namespace, name) = stack::settings(version);
    let settings: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let unlabelled = json!({ "metadata": { "labels": { labels::PART_OF: null, labels::INSTANCE: null } } });
    let unlabelled = settings
        .patch(name, &PatchParams::default(), &Patch::Merge(unlabelled))
        .await;
    unlabelled.map(drop).context("failed to take the labels away")
}

#[test]
fn a12_f3_what_is_changed_or_deleted_in_a_workload_cluster_comes_back_until_somebody_insists() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = installed(journey, ground).await?;
        is_put_right(journey, ground, (&class, "v1")).await?;

        let client = ground.workload.client();
        let before = stack::uids(&client, "v1").await?;
        journey.kill_operator().await?;
        meddle(&client, "v1").await?;
        journey.operate().await?;
        comes_back(journey, ground, (&class, "v1"), &before).await?;
        a_fight_ends(journey, ground, &class).await?;
        ground.looks_write_nothing(journey, "corrected").await
    })
}

/// Somebody meddles with the add-ons of this class and version while the operator runs.
pub(crate) async fn is_put_right(journey: &Journey, ground: &Ground, (class, version): (&str, &str)) -> Result<()> {
    let client = ground.workload.client();
    let before = stack::uids(&client, version).await?;
    meddle(&client, version).await?;
    comes_back(journey, ground, (class, version), &before).await
}

/// What was deleted is another object, and nothing else is.
async fn comes_back(
    journey: &Journey,
    ground: &Ground,
    (class, version): (&str, &str),
    before: &BTreeMap<String, String>,
) -> Result<()> {
    ground.complete(journey, class, version).await?;
    let mut after = stack::uids(&ground.workload.client(), version).await?;
    let note = format!("ConfigMap {}/{}", stack::NOTE.0, stack::NOTE.1);
    let anew = after.remove(&note);
    ensure!(
        anew.is_some() && anew != before.get(&note).cloned(),
        "{note} is {anew:?}"
    );
    stack::are_the_same(before, &after)
}

/// Another controller wants the agent otherwise, and writes so whenever it is not.
async fn insist(client: &Client) -> Result<()> {
    let agents: Api<Deployment> = Api::namespaced(client.clone(), stack::AGENT.0);
    let named = watcher::Config::default().fields(&format!("metadata.name={}", stack::AGENT.1));
    let mut forms = pin!(watcher(agents, named).default_backoff().applied_objects());
    while let Some(form) = forms.next().await {
        // A watch that was interrupted begins anew.
        let Ok(agent) = form else { continue };
        if image_of(&agent) != Some(IMAGE) {
            change_the_agent(client).await?;
        }
    }
    bail!("the watch of the agent has ended")
}

/// As long as the other side writes, and after that, until somebody asks for a look.
async fn a_fight_ends(journey: &Journey, ground: &Ground, class: &str) -> Result<()> {
    let client = ground.workload.client();
    let begun = ground.workload.audit_log().mark().await?;
    tokio::select! {
        ended = insist(&client) => ended?,
        left = is_left_alone(journey, ground, begun) => left?,
    }
    ask(journey, "peace").await?;
    ground.complete(journey, class, "v1").await.map(drop)
}

/// The agent is put back no more than three times, with words about whoever does not leave it, while all else is looked after as before.
async fn is_left_alone(journey: &Journey, ground: &Ground, begun: Mark) -> Result<()> {
    until_addon(journey, "the fight to be told of", is_contested).await?;
    let client = ground.workload.client();
    delete_the_note(&client).await?;
    let notes: Api<ConfigMap> = Api::namespaced(client.clone(), stack::NOTE.0);
    eventually(SOON, "the note to be back", async || notes.get(stack::NOTE.1).await).await?;
    let written = ground.written_since(begun).await?;
    let of_agent = written.iter().filter(|write| write.contains("/deployments/"));
    ensure!((1..=3).contains(&of_agent.count()), "{written:#?}");
    let agents: Api<Deployment> = Api::namespaced(client, stack::AGENT.0);
    let agent = agents.get(stack::AGENT.1).await?;
    let image = image_of(&agent);
    ensure!(image == Some(IMAGE), "the image is {image:?}");
    Ok(())
}

fn is_contested(status: &ClusterAddonStatus) -> bool {
    let applied = find(&status.conditions, ConditionType::HelmChartApplied);
    let is_so = applied.is_some_and(|applied| {
        applied.status == ConditionStatus::False && applied.reason.as_deref() == Some(Reason::Contested.as_str())
    });
    let agent = row(status, "Deployment", stack::AGENT);
    !status.ready && is_so && says(agent, &["put back 3 times", USER])
}

/// F15: no object flickers.
#[test]
fn f15_a_cluster_addon_that_is_deleted_by_hand_is_made_anew_and_nothing_in_the_cluster_is_touched() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = installed(journey, ground).await?;
        ground.looks_write_nothing(journey, "before").await?;
        let client = ground.workload.client();
        let before = stack::uids(&client, "v1").await?;
        let mark = ground.workload.audit_log().mark().await?;
        let addons = journey.api::<ClusterAddon>();
        let first = addons.get(&name_for(CLUSTER)).await?.uid();
        journey.delete::<ClusterAddon>(&name_for(CLUSTER)).await?;
        eventually(SOON, "another ClusterAddon", async || {
            let now = addons.get(&name_for(CLUSTER)).await?.uid();
            ensure!(now != first, "it is the old one");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        ground.complete(journey, &class, "v1").await?;
        let after = stack::uids(&client, "v1").await?;
        ensure!(before == after, "{before:#?} {after:#?}");
        let written = ground.written_since(mark).await?;
        let deleted: Vec<&String> = written.iter().filter(|write| write.starts_with("delete")).collect();
        ensure!(deleted.is_empty(), "{deleted:#?}");
        Ok(())
    })
}
