//! A Cluster is given another class while a stage on the way to the last one waits: what was begun is not gone on with, and nothing of it stays.

use anyhow::{Result, ensure};
use crds::{
    cluster_addon::{AddonVersion, StagePhase},
    events::Happening,
};
use e2e::{Journey, releases::StackSource, shim::cluster};

use crate::{
    ground::{CLUSTER, Ground, class, is_told_of, on_the_newest, phases, release_of, set_topology, until_addon},
    reshaped::{AGENT, NOTE, SERVICE, STAGES, add_chart, add_object, add_stage},
    stack,
};

/// What the network of our stack waits for, and what no network ever comes to.
const READY: &str = "network.status.readyReplicas == network.spec.replicas";
const NEVER: &str = "network.status.readyReplicas > 100 * network.spec.replicas";
/// What only the release has that is given up: of a stage that is done, of the one that waits, and of one that never has its turn.
const BUOYS: &str = "ConfigMap kube-system/cluster-addon-buoys";
const CHAIN: &str = "ConfigMap kube-system/cluster-addon-chain";
const FOGHORN: &str = "cluster-addon-foghorn";

/// The release that comes to no end: it differs in what it adds, changes and leaves out.
async fn endless(journey: &Journey) -> Result<String> {
    let source = StackSource::quay("v2")?;
    source.replace(STAGES, READY, NEVER)?;
    source.replace(AGENT, stack::image("v2"), stack::image("v3"))?;
    source.replace(NOTE, SERVICE, "")?;
    add_object(&source, "network", "ConfigMap", "", "chain")?;
    for (name, before) in [("buoys", "network"), ("foghorn", "lighthouse")] {
        add_chart(&source, name)?;
        add_object(&source, name, "ConfigMap", "", name)?;
        add_stage(&source, name, before)?;
    }
    let tag = journey.releases.publish_stack(&source.path(), "v5")?;
    release_of(journey, &tag, "v2", "v5").await?;
    Ok(tag)
}

/// The Cluster is on the way to that release, and stays in the middle of a stage.
async fn is_in_the_middle(journey: &Journey, ground: &Ground, endless: &str) -> Result<()> {
    set_topology(journey, endless, "v1.35.0").await?;
    let is_waiting = [
        ("buoys", StagePhase::Done),
        ("network", StagePhase::WaitingForPostCondition),
        ("foghorn", StagePhase::Pending),
        ("lighthouse", StagePhase::Pending),
    ];
    until_addon(journey, "the network to be waited for", |status| {
        let is_meant = |target: &AddonVersion| target.cluster_stack == endless;
        status.target.as_ref().is_some_and(is_meant) && phases(status) == is_waiting
    })
    .await?;
    let there = stack::ours(&ground.workload.client(), &ground.home).await?;
    for place in [BUOYS, CHAIN] {
        ensure!(there.contains(place), "{place} is not among {there:#?}");
    }
    Ok(())
}

/// From add-ons that are complete to the release that comes to no end, and from there to each of these in turn; the answer is what was written meanwhile.
async fn others_take_its_place(
    journey: &mut Journey,
    ground: &Ground,
    (from, version, kubernetes): (&str, &str, &str),
    to: &[(&str, &str)],
) -> Result<()> {
    let endless = endless(journey).await?;
    journey.apply(cluster(CLUSTER, from, kubernetes, 1)).await?;
    ground.complete(journey, from, version).await?;
    let client = ground.workload.client();
    let mark = ground.workload.audit_log().mark().await?;
    let mut before = stack::uids(&client, version).await?;
    for (class, version) in to {
        is_in_the_middle(journey, ground, &endless).await?;
        set_topology(journey, class, "v1.35.0").await?;
        let addon = ground.complete(journey, class, version).await?;
        is_told_of(journey, &addon, &[Happening::UpgradePreempted]).await?;
        let after = stack::uids(&client, version).await?;
        stack::are_the_same(&before, &after)?;
        before = after;
    }
    let written = ground.written_since(mark).await?;
    let begun: Vec<&String> = written.iter().filter(|write| write.contains(FOGHORN)).collect();
    ensure!(begun.is_empty(), "a stage that had no turn: {begun:#?}");
    ground.looks_write_nothing(journey, "pre-empted").await
}

/// The release that it came from, and one that neither was.
#[test]
fn a_class_that_is_set_in_the_middle_of_a_stage_takes_the_place_of_the_one_before_at_once() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let first = class(journey, "v2", "v4").await?;
        let next = class(journey, "v2", "v6").await?;
        let to = [(first.as_str(), "v4"), (next.as_str(), "v6")];
        others_take_its_place(journey, ground, (&first, "v4", "v1.35.0"), &to).await
    })
}

/// Cluster API is held back for the stage that is given up, and goes on for those of the next class.
#[test]
fn a_class_that_is_set_while_an_upgrade_of_kubernetes_is_held_back_by_the_one_before_is_gone_on_with() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let first = class(journey, "v1", "v1").await?;
        let next = class(journey, "v2", "v6").await?;
        others_take_its_place(journey, ground, (&first, "v1", "v1.34.0"), &[(&next, "v6")]).await
    })
}
