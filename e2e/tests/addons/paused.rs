//! Somebody wants the add-ons of a Cluster to be left alone for a while.

use anyhow::{Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::name_for,
    conditions::{ConditionType, Reason, find},
    labels,
};
use e2e::{Journey, audit::Mark, shim::cluster};
use serde_json::json;

use crate::{
    changed::{change_the_agent, delete_the_note},
    drift::as_left,
    ground::{CLUSTER, Ground, class, control_plane, on_the_newest, set_topology, until_addon, until_cluster},
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
    let name = name_for(CLUSTER);
    journey
        .annotate::<ClusterAddon>(&name, labels::PAUSED, Some("true"))
        .await?;
    says_that_it_is_paused(journey, labels::PAUSED).await?;
    let mark = meddle(ground).await?;
    set_topology(journey, next, "v1.35.0").await?;
    until_cluster(journey, "the Cluster to say that its add-ons are paused", |cluster| {
        let said = cluster["status"].to_string();
        said.contains(&format!("the annotation {} of the ClusterAddon is set", labels::PAUSED))
    })
    .await?;
    let plane = control_plane(journey, "ShimControlPlane").await?;
    ensure!(plane.data["spec"]["version"] == "v1.34.0", "{:#}", plane.data);
    is_left_alone(ground, mark).await?;
    journey.annotate::<ClusterAddon>(&name, labels::PAUSED, None).await?;
    ground.complete(journey, next, "v2").await.map(drop)
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
fn what_is_changed_or_deleted_while_add_ons_or_their_cluster_are_paused_is_left_alone_and_put_right_afterwards()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let [old, new] = [class(journey, "v1", "v1").await?, class(journey, "v2", "v2").await?];
        journey.apply(cluster(CLUSTER, &old, "v1.34.0", 1)).await?;
        ground.complete(journey, &old, "v1").await?;
        by_the_add_ons(journey, ground, &new).await?;
        by_the_cluster(journey, ground, &new).await?;
        ground.looks_write_nothing(journey, "afterwards").await
    })
}
