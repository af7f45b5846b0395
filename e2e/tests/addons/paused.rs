//! Somebody wants the add-ons of a Cluster to be left alone for a while: nothing is written meanwhile, and an upgrade of Kubernetes waits, before its first
//! stage and in the middle of it.

use anyhow::{Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::name_for,
    conditions::{ConditionType, Reason, find},
    labels,
};
use e2e::{Journey, audit::Mark, eventually, hooks::Hook, journey::SOON, shim::cluster};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::json;

use crate::{
    changed::{change_the_agent, delete_the_note},
    drift::as_left,
    ground::{
        CLUSTER, Ground, answered_again, class, control_plane, on_the_newest, set_topology, until_addon, until_cluster,
    },
    stack,
    upgraded::{CONTROL_PLANE, is_held_back, lose_the_network},
    values::change_cluster,
};

/// An object is changed and one is deleted; the answer is from when on nothing is to be written.
async fn meddle(ground: &Ground) -> Result<Mark> {
    let client = ground.workload.client();
    let mark = ground.workload.audit_log().mark().await?;
    change_the_agent(&client).await?;
    delete_the_note(&client).await?;
    Ok(mark)
}

/// What somebody did is as it was left, and the operator has written nothing.
async fn is_left_alone(ground: &Ground, mark: Mark) -> Result<()> {
    as_left(ground).await?;
    let written = ground.written_since(mark).await?;
    ensure!(written.is_empty(), "{written:#?}");
    Ok(())
}

/// The ClusterAddon says that it is paused, by this.
pub(crate) async fn says_that_it_is_paused(journey: &Journey, by: &str) -> Result<()> {
    until_addon(journey, &format!("the pause by {by} to be told"), |status| {
        find(&status.conditions, ConditionType::Ready).is_some_and(|ready| {
            let message = ready.message.as_deref().unwrap_or_default();
            ready.reason.as_deref() == Some(Reason::Paused.as_str()) && message.contains(by)
        })
    })
    .await
    .map(drop)
}

/// The annotation on the ClusterAddon: the upgrade of Kubernetes that comes meanwhile is held up.
async fn by_the_add_ons(journey: &Journey, ground: &Ground, next: &str) -> Result<()> {
    set_pause(journey, Some("true")).await?;
    says_that_it_is_paused(journey, labels::PAUSED).await?;
    let mark = meddle(ground).await?;
    set_topology(journey, next, "v1.35.0").await?;
    holds_the_upgrade_up(journey).await?;
    is_left_alone(ground, mark).await
}

/// The same in the middle of that upgrade: its stage has begun, and what it waits for comes during the pause.
async fn in_the_middle(journey: &mut Journey, ground: &mut Ground, next: &str) -> Result<()> {
    lose_the_network(ground).await?;
    set_pause(journey, None).await?;
    is_held_back(journey, ground).await?;
    set_pause(journey, Some("true")).await?;
    says_that_it_is_paused(journey, labels::PAUSED).await?;
    let mark = ground.workload.audit_log().mark().await?;
    ground.with_kubelets().await?;
    network_is_ready(ground).await?;
    answered_again(journey, Hook::BeforeClusterUpgrade, "hold").await?;
    holds_the_upgrade_up(journey).await?;
    let written = ground.written_since(mark).await?;
    ensure!(written.is_empty(), "{written:#?}");

    set_pause(journey, None).await?;
    ground.complete(journey, next, "v2").await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["spec"]["version"] == "v1.35.0", "{:#}", plane.data);
    Ok(())
}

async fn set_pause(journey: &Journey, value: Option<&str>) -> Result<()> {
    let name = name_for(CLUSTER);
    journey.annotate::<ClusterAddon>(&name, labels::PAUSED, value).await
}

/// The Cluster says that it waits for the end of the pause, and Kubernetes is what it was.
async fn holds_the_upgrade_up(journey: &Journey) -> Result<()> {
    until_cluster(journey, "the Cluster to say that its add-ons are paused", |cluster| {
        let said = cluster["status"].to_string();
        said.contains(&format!("the annotation {} of the ClusterAddon is set", labels::PAUSED))
    })
    .await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["spec"]["version"] == "v1.34.0", "{:#}", plane.data);
    Ok(())
}

/// What the stage waits for is so, whoever looks.
async fn network_is_ready(ground: &Ground) -> Result<()> {
    let agents: Api<Deployment> = Api::namespaced(ground.workload.client(), stack::AGENT.0);
    eventually(SOON, "the network to be ready", async || {
        let agent = agents.get(stack::AGENT.1).await?;
        let wanted = agent.spec.as_ref().and_then(|spec| spec.replicas);
        let ready = agent.status.as_ref().and_then(|status| status.ready_replicas);
        ensure!(ready.is_some() && ready == wanted, "{:?}", agent.status);
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// `spec.paused` of the Cluster, and then its annotation: that the operator says the second shows that it has looked since the objects were changed.
async fn by_the_cluster(journey: &Journey, ground: &Ground, class: &str) -> Result<()> {
    change_cluster(journey, json!({ "spec": { "paused": true } })).await?;
    says_that_it_is_paused(journey, "spec.paused").await?;
    let mark = meddle(ground).await?;
    let annotated = json!({ "metadata": { "annotations": { labels::PAUSED: "true" } }, "spec": { "paused": false } });
    change_cluster(journey, annotated).await?;
    says_that_it_is_paused(journey, labels::PAUSED).await?;
    is_left_alone(ground, mark).await?;
    change_cluster(
        journey,
        json!({ "metadata": { "annotations": { labels::PAUSED: null } } }),
    )
    .await?;
    ground.complete(journey, class, "v2").await.map(drop)
}

#[test]
fn what_is_changed_or_deleted_while_add_ons_or_their_cluster_are_paused_is_left_alone_and_put_right_and_an_upgrade_waits()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let [old, new] = [class(journey, "v1", "v1").await?, class(journey, "v2", "v2").await?];
        journey.apply(cluster(CLUSTER, &old, "v1.34.0", 1)).await?;
        ground.complete(journey, &old, "v1").await?;
        by_the_add_ons(journey, ground, &new).await?;
        in_the_middle(journey, ground, &new).await?;
        by_the_cluster(journey, ground, &new).await?;
        ground.looks_write_nothing(journey, "afterwards").await
    })
}
