//! A Cluster of our class is made: its add-ons come stage by stage, and then nothing is written any more (A6, A7, F6, F29).

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::{StagePhase, name_for},
    labels,
};
use e2e::{
    cluster_api::Release,
    shim::{Hold, cluster},
};
use kube::{
    ResourceExt,
    api::{ListParams, ObjectMeta},
};
use serde_json::json;

use crate::{
    ground::{CLUSTER, CLUSTER_API, class, course, phases, status, until_addon},
    stack,
};

/// A6 and A7, F6: the second stage waits for what must hold after the first, with words that say what does not.
fn come_stage_by_stage(release: Release) -> Result<()> {
    course(release, async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        let web = ground.web();
        web.hold(Hold::Machines);
        // Nobody's business: it has no class.
        journey
            .apply(json!({
                "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": "classic" },
                "spec": { "paused": true, "infrastructureRef": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "ShimCluster", "name": "classic",
                } },
            }))
            .await?;
        let made = journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        let waits = [
            ("network", StagePhase::WaitingForPostCondition),
            ("lighthouse", StagePhase::Pending),
        ];
        let addon = until_addon(journey, "the network to be waited for", |status| {
            phases(status) == waits
        })
        .await?;
        let told = status(&addon);
        let message = told.stages[0].message.as_deref().unwrap_or_default();
        ensure!(message.contains("readyReplicas"), "{message}");
        ensure!(!told.ready && told.applied.is_none(), "{told:#?}");
        let there = stack::ours(&ground.workload.client(), &ground.home).await?;
        ensure!(
            there.contains("Deployment kube-system/cluster-addon-network") && !there.contains("Namespace /quay"),
            "{there:#?}"
        );

        web.release(Hold::Machines);
        let addon = ground.complete(journey, &class, "v1").await?;
        is_of(&addon.metadata, made.uid().as_deref())?;
        let all = journey.api::<ClusterAddon>().list(&ListParams::default()).await?;
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, [name_for(CLUSTER)], "one for each Cluster of ours");
        ground.looks_write_nothing(journey, "at-rest").await
    })
}

/// The Cluster owns it, and it does not go without us.
fn is_of(addon: &ObjectMeta, uid: Option<&str>) -> Result<()> {
    let owner = addon.owner_references.iter().flatten().next().context("no owner")?;
    ensure!(
        (owner.kind.as_str(), owner.name.as_str()) == ("Cluster", CLUSTER) && Some(owner.uid.as_str()) == uid,
        "{owner:?}"
    );
    let finalizers = addon.finalizers.iter().flatten();
    ensure!(
        finalizers.clone().any(|name| name == labels::ADDON_FINALIZER),
        "{:?}",
        finalizers.collect::<Vec<_>>()
    );
    Ok(())
}

#[test]
fn a6_a7_f6_f29_add_ons_come_stage_by_stage_in_the_namespaces_of_their_charts_and_then_nothing_is_written_on_1_10()
-> Result<()> {
    come_stage_by_stage(Release::V1_10)
}

#[test]
fn a6_a7_f6_f29_add_ons_come_stage_by_stage_in_the_namespaces_of_their_charts_and_then_nothing_is_written_on_1_12()
-> Result<()> {
    come_stage_by_stage(Release::V1_12)
}

#[test]
fn a6_a7_f6_f29_add_ons_come_stage_by_stage_in_the_namespaces_of_their_charts_and_then_nothing_is_written_on_1_13()
-> Result<()> {
    come_stage_by_stage(Release::V1_13)
}

#[test]
fn a6_a7_f6_f29_add_ons_come_stage_by_stage_in_the_namespaces_of_their_charts_and_then_nothing_is_written_on_1_14()
-> Result<()> {
    come_stage_by_stage(Release::V1_14)
}
