//! A Cluster is deleted: what has to be done before is done, and nothing holds it up that cannot be done.

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, cluster_addon::name_for, labels};
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    journey::SOON,
    shim::{Hold, Workload, cluster},
};
use kube::{ResourceExt, api::DeleteParams};

use crate::{
    ground::{CLUSTER, CLUSTER_API, class, course, on_the_newest, until_cluster},
    stack,
};

pub(crate) async fn ask_for_the_end(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    let deleted = clusters.delete(CLUSTER, &DeleteParams::default()).await;
    deleted.map(drop).context("failed to delete the Cluster")
}

/// Neither the Cluster nor its ClusterAddon is left.
pub(crate) async fn both_are_gone(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SOON, "the Cluster to be gone", async || {
        match clusters.get_opt(CLUSTER).await? {
            None => Ok(()),
            Some(cluster) => anyhow::bail!("{:#}", cluster.data["status"]),
        }
    })
    .await?;
    journey.gone::<ClusterAddon>(&name_for(CLUSTER)).await
}

/// F13, F15: the lighthouse is taken away while everything else is there, and the rest goes with the cluster.
fn stages_run_before(release: Release) -> Result<()> {
    course(release, async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let web = ground.web();
        web.hold(Hold::Deletion);
        ask_for_the_end(journey).await?;
        eventually(SOON, "Cluster API to be told that it may delete", async || {
            let cluster = journey.objects(CLUSTER_API, "Cluster").get(CLUSTER).await?;
            ensure!(
                cluster.annotations().contains_key(labels::OK_TO_DELETE),
                "{:#}",
                cluster.data["status"]
            );
            Ok(())
        })
        .await?;
        let there = stack::ours(&ground.workload.client(), &ground.home).await?;
        for trace in [
            "ConfigMap quay/cluster-addon-lighthouse",
            "Mooring quay/cluster-addon-lighthouse",
        ] {
            ensure!(!there.contains(trace), "{trace} is among {there:#?}");
        }
        for trace in ["Deployment kube-system/cluster-addon-network", "Namespace /quay"] {
            ensure!(there.contains(trace), "{trace} is not among {there:#?}");
        }
        web.release(Hold::Deletion);
        both_are_gone(journey).await
    })
}

#[test]
fn f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_10() -> Result<()>
{
    stages_run_before(Release::V1_10)
}

#[test]
fn f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_12() -> Result<()>
{
    stages_run_before(Release::V1_12)
}

#[test]
fn f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_13() -> Result<()>
{
    stages_run_before(Release::V1_13)
}

#[test]
fn f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_14() -> Result<()>
{
    stages_run_before(Release::V1_14)
}

/// Nobody can take anything away there; whoever deletes the Cluster is told so, and how to go on without.
#[test]
fn f15_a_cluster_whose_api_server_is_away_says_what_holds_it_up_and_goes_when_somebody_says_so() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let away = Workload::away(ground.workload.access()).await?;
        ground.web().serve(&away);
        ask_for_the_end(journey).await?;
        let way_round = format!("BeforeClusterDelete@{class}");
        until_cluster(journey, "the Cluster to say what holds it up", |cluster| {
            cluster["status"].to_string().contains(&way_round)
        })
        .await?;
        journey
            .annotate::<ClusterAddon>(&name_for(CLUSTER), labels::SKIP_HOOK, Some(&way_round))
            .await?;
        both_are_gone(journey).await
    })
}
