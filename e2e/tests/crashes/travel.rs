//! The way of the journey: subscribe, upgrade, drop a version, delete.

use std::{collections::BTreeMap, sync::LazyLock};

use anyhow::{Result, anyhow};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Journey,
    releases::{Releases, harbor_tag},
};
use kube::api::DeleteParams;
use serde_json::json;

use crate::world::{VERSIONS, uids, untouched};

const STACK: &str = "harbor";
const CLUSTER: &str = "wharf";

/// Where the world is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Station {
    /// Two releases are usable.
    Subscribed,
    /// A third appeared and is usable.
    Upgraded,
    /// The second is no longer wanted and gone.
    Dropped,
    /// The stack is gone; the first release stays because a cluster uses it.
    Deleted,
    /// The cluster is gone too, and nothing is left.
    Empty,
}

/// Three releases of our own stack, packed once for all journeys.
static PACKED: LazyLock<Result<(tempfile::TempDir, Releases)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir()?;
    let releases = Releases::at(folder.path())?;
    for version in VERSIONS {
        releases.publish_harbor(version, version)?;
    }
    Ok((folder, releases))
});

/// Goes the whole way; `arrived` judges the world at each station.
pub(crate) async fn travel(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    publish(journey, "v1")?;
    publish(journey, "v2")?;
    want(journey, &["v1", "v2"]).await?;
    journey.usable(STACK, "v1, v2").await?;
    arrived(Station::Subscribed).await?;
    let in_use = build_cluster(journey).await?;

    publish(journey, "v3")?;
    journey.usable(STACK, "v1, v2, v3").await?;
    arrived(Station::Upgraded).await?;
    untouched(journey, &in_use).await?;

    // No version is asked for any more: the newest stays because it is, the oldest because it is in use.
    want(journey, &[]).await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v2")).await?;
    arrived(Station::Dropped).await?;
    untouched(journey, &in_use).await?;

    journey.delete::<ClusterStack>(STACK).await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v3")).await?;
    arrived(Station::Deleted).await?;
    untouched(journey, &in_use).await?;

    let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
    clusters.delete(CLUSTER, &DeleteParams::default()).await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v1")).await?;
    arrived(Station::Empty).await
}

fn publish(journey: &Journey, version: &str) -> Result<()> {
    let (_, packed) = PACKED.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    journey.releases.publish(&packed.folder_of(&harbor_tag(version)))
}

/// The stack with these versions listed, and the newest besides.
async fn want(journey: &Journey, versions: &[&str]) -> Result<()> {
    journey
        .stack(STACK, json!({ "autoSubscribe": true, "versions": versions }))
        .await
}

/// A cluster on the first release; the answer is what that consists of.
async fn build_cluster(journey: &Journey) -> Result<BTreeMap<String, String>> {
    let tag = harbor_tag("v1");
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": CLUSTER },
        "spec": { "topology": { "class": tag, "version": "v1.34.0" } },
    });
    journey.apply(cluster).await?;
    uids(journey, &tag).await
}

/// What is there at a station, written by hand: without it, equal worlds might be equally wrong.
pub(crate) fn expected(station: Station) -> Vec<String> {
    let releases: &[&str] = match station {
        Station::Subscribed => &["v1", "v2"],
        Station::Upgraded => &["v1", "v2", "v3"],
        Station::Dropped => &["v1", "v3"],
        Station::Deleted => &["v1"],
        Station::Empty => &[],
    };
    let stack = (station < Station::Deleted).then(|| format!("ClusterStack {STACK}"));
    let mut expected: Vec<String> = releases
        .iter()
        .flat_map(|version| parts(version))
        .chain(stack)
        .collect();
    expected.sort();
    expected
}

/// What a release is and consists of.
fn parts(version: &str) -> Vec<String> {
    let own = match version {
        "v1" => Some("DockerMachineTemplate -burst"),
        "v3" => Some("DockerMachineTemplate -storage"),
        _ => None,
    };
    let all = [
        "ClusterStackRelease ",
        "ClusterClass ",
        "DockerClusterTemplate -cluster",
        "DockerMachineTemplate -control-plane",
        "DockerMachineTemplate -worker",
        "KubeadmConfigTemplate -worker",
        "KubeadmControlPlaneTemplate -control-plane",
    ];
    let tag = harbor_tag(version);
    let names = all.into_iter().chain(own);
    names.map(|name| name.replacen(' ', &format!(" {tag}"), 1)).collect()
}
