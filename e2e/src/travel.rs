//! The ways that journeys go again and again, with a disturbance each time: courses over stations at which the world is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use anyhow::{Context, Result, anyhow, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    Journey,
    addons::{
        self, Beyond,
        stack::{self, Version},
    },
    eventually,
    journey::{SOON, USER},
    provider,
    releases::{Releases, harbor_tag, write_small_stack},
    web::{IndexServer, sha256},
    world::{VERSIONS, uids, untouched},
};

const STACK: &str = "harbor";
const CLUSTER: &str = "wharf";
/// How many parts the stacks fall into where processes share them.
pub const SHARDS: u64 = 2;
/// What worlds call the second stack, whose name is another one in each.
pub const THE_NEIGHBOUR: &str = "NEIGHBOUR";
/// The beginning of the name of a second stack.
const NEIGHBOUR: &str = "quay";

/// A way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Course {
    /// Two releases become usable.
    Install,
    /// A new release takes the place of the old one, whose objects are pruned.
    Upgrade,
    /// Objects are deleted, changed and robbed of their labels, and put back.
    Repair,
    /// The stack is deleted: everything goes, what a cluster uses only after the cluster.
    Remove,
    /// A release waits for its provider, whose template changes.
    Provider,
    /// Two processes share two stacks by Lease: one comes from a directory, the other from a server that may fail.
    Shared,
    /// A cluster gets its add-ons, goes to the next release, and is deleted.
    Addons,
    /// All of it in one life: subscribe, upgrade, drop a version, delete.
    Life,
}

impl Course {
    /// From the shortest to the longest.
    pub const ALL: [Self; 8] = [
        Self::Install,
        Self::Upgrade,
        Self::Repair,
        Self::Remove,
        Self::Provider,
        Self::Shared,
        Self::Addons,
        Self::Life,
    ];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Repair => "repair",
            Self::Remove => "remove",
            Self::Provider => "provider",
            Self::Shared => "shared",
            Self::Addons => "addons",
            Self::Life => "life",
        }
    }

    /// Goes the whole way; `arrived` judges the world at each station.
    pub async fn travel(self, journey: &Journey, arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
        match self {
            Self::Install => install(journey, arrived).await,
            Self::Upgrade => upgrade(journey, arrived).await,
            Self::Repair => repair(journey, arrived).await,
            Self::Remove => remove(journey, arrived).await,
            Self::Provider => provided(journey, arrived).await,
            Self::Shared => shared(journey, arrived).await,
            Self::Addons => with_addons(journey, arrived).await,
            Self::Life => life(journey, arrived).await,
        }
    }

    /// Whether nothing is left at its end.
    pub fn is_emptied(self) -> bool {
        matches!(self, Self::Remove | Self::Shared | Self::Addons | Self::Life)
    }

    /// What has to be there before an operator starts.
    pub async fn prepare(self, journey: &mut Journey) -> Result<()> {
        match self {
            Self::Shared => journey.source = Some(IndexServer::start().await?),
            Self::Addons => journey.beyond = Some(Beyond::prepare(journey).await?),
            _ => {}
        }
        Ok(())
    }
}

/// Where the world is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Station {
    /// The first release is usable.
    Installed,
    /// What was damaged is whole again.
    Repaired,
    /// The provider has done its part for the first release.
    Provided,
    /// It has done so again, after another template.
    Adjusted,
    /// The second release has taken the place of the first.
    Replaced,
    /// Both stacks have a usable release.
    Spread,
    /// Of one of them a second release has taken the place of the first.
    Followed,
    /// A cluster has the add-ons of the first of two releases.
    Equipped,
    /// It has those of the second.
    Refitted,
    /// It is gone, and nothing is left of its add-ons.
    Forsaken,
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

async fn install(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    publish(journey, "v1")?;
    publish(journey, "v2")?;
    want(journey, &["v1", "v2"]).await?;
    journey.usable(STACK, "v1, v2").await?;
    arrived(Station::Subscribed).await
}

async fn upgrade(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    publish(journey, "v1")?;
    want(journey, &[]).await?;
    journey.usable(STACK, "v1").await?;
    arrived(Station::Installed).await?;

    publish(journey, "v2")?;
    journey.usable(STACK, "v2").await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v1")).await?;
    arrived(Station::Replaced).await
}

async fn repair(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    publish(journey, "v1")?;
    want(journey, &[]).await?;
    journey.usable(STACK, "v1").await?;
    arrived(Station::Installed).await?;
    let tag = harbor_tag("v1");
    let before = uids(journey, &tag).await?;

    let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
    classes.delete(&tag, &DeleteParams::default()).await?;
    let machines = journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate");
    let other = json!({ "spec": { "template": { "spec": { "customImage": "registry.example.com/somebody:else" } } } });
    let image = damage(&machines, &format!("{tag}-worker"), other).await?;
    let configs = journey.objects("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate");
    let unlabelled = json!({ "metadata": { "labels": { labels::PART_OF: null, labels::INSTANCE: null } } });
    let marked = damage(&configs, &format!("{tag}-worker"), unlabelled).await?;
    whole_again(&machines, &image).await?;
    whole_again(&configs, &marked).await?;
    eventually(SOON, "the class to be back", async || classes.get(&tag).await.map(drop)).await?;
    arrived(Station::Repaired).await?;

    let mut kept = before;
    kept.remove(&format!("ClusterClass {tag}"));
    untouched(journey, &kept).await
}

async fn remove(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    install(journey, &mut arrived).await?;
    let in_use = build_cluster(journey).await?;
    journey.delete::<ClusterStack>(STACK).await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v2")).await?;
    journey.gone::<ClusterStack>(STACK).await?;
    arrived(Station::Deleted).await?;
    untouched(journey, &in_use).await?;
    remove_cluster(journey).await?;
    arrived(Station::Empty).await
}

async fn provided(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    provider::install(journey).await?;
    provider::template(journey, "small").await?;
    publish(journey, "v1")?;
    let spec = json!({ "autoSubscribe": true, "noProvider": false, "providerRef": provider::reference() });
    journey.stack(STACK, spec).await?;
    let tag = harbor_tag("v1");
    provider::reports(journey, &tag, ("small", true)).await?;
    journey.usable(STACK, "v1").await?;
    arrived(Station::Provided).await?;

    provider::template(journey, "large").await?;
    provider::reports(journey, &tag, ("large", false)).await?;
    journey.usable(STACK, "").await?;
    provider::reports(journey, &tag, ("large", true)).await?;
    journey.usable(STACK, "v1").await?;
    arrived(Station::Adjusted).await
}

async fn shared(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    let neighbour = neighbour(&journey.namespace);
    let source = journey.folder().join("neighbour");
    write_small_stack(&source, &neighbour, 1)?;
    journey.releases.publish_stack(&source, "v1")?;
    journey
        .stack(&neighbour, json!({ "name": neighbour, "versions": ["v1"] }))
        .await?;
    publish(journey, "v1")?;
    want(journey, &[]).await?;
    journey.usable(&neighbour, "v1").await?;
    journey.usable(STACK, "v1").await?;
    // Who is asked for it has looked at the source.
    journey.ask_stack(STACK, "first").await?;
    arrived(Station::Spread).await?;

    publish(journey, "v2")?;
    journey.ask_stack(STACK, "second").await?;
    journey.usable(STACK, "v2").await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v1")).await?;
    arrived(Station::Followed).await?;

    for stack in [STACK, &neighbour] {
        journey.delete::<ClusterStack>(stack).await?;
    }
    for stack in [STACK, &neighbour] {
        journey.gone::<ClusterStack>(stack).await?;
    }
    arrived(Station::Empty).await
}

async fn with_addons(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    let beyond = journey.beyond.as_ref().context("nobody prepared the course")?;
    let cluster = addons::cluster(journey);
    stack::subscribe(journey).await?;
    cluster.make(Version::First).await?;
    cluster.initialize(&beyond.kubeconfig).await?;
    cluster.complete(Version::First).await?;
    arrived(Station::Equipped).await?;

    cluster.change(Version::Second).await?;
    cluster.complete(Version::Second).await?;
    arrived(Station::Refitted).await?;

    cluster.empty().await?;
    // Who has been told late may still have put something back; while the Cluster is there, that goes again.
    eventually(SOON, "nothing to be left of the add-ons", async || {
        beyond.ground.stands(cluster, None).await
    })
    .await?;
    cluster.end().await?;
    arrived(Station::Forsaken).await?;

    journey.delete::<ClusterStack>(STACK).await?;
    journey.gone::<ClusterStack>(STACK).await?;
    arrived(Station::Empty).await
}

/// The name of a stack that is in another shard than the first one in this namespace.
pub fn neighbour(namespace: &str) -> String {
    // As the operator shares them out; this room drives it from outside.
    let shard = |stack: &str| {
        let digest = sha256(format!("{namespace}/docker-{stack}").as_bytes());
        u64::from_str_radix(&digest[..16], 16).map(|number| number % SHARDS)
    };
    let mut names = (0..100).map(|number| format!("{NEIGHBOUR}{number}"));
    let other = names.find(|name| shard(name) != shard(STACK));
    other.unwrap_or_else(|| NEIGHBOUR.to_owned())
}

async fn life(journey: &Journey, mut arrived: impl AsyncFnMut(Station) -> Result<()>) -> Result<()> {
    install(journey, &mut arrived).await?;
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

    remove_cluster(journey).await?;
    arrived(Station::Empty).await
}

/// Removes the cluster, and waits until the release that it used is gone too, which nobody asks for any more.
pub async fn remove_cluster(journey: &Journey) -> Result<()> {
    let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
    clusters.delete(CLUSTER, &DeleteParams::default()).await?;
    journey.gone::<ClusterStackRelease>(&harbor_tag("v1")).await
}

/// Changes an object as a user; the answer is how it was before.
async fn damage(api: &Api<DynamicObject>, name: &str, patch: Value) -> Result<DynamicObject> {
    let before = api.get(name).await?;
    let params = PatchParams {
        field_manager: Some(USER.to_owned()),
        ..PatchParams::default()
    };
    let after = api.patch(name, &params, &Patch::Merge(patch)).await?;
    ensure!(
        after.data != before.data || after.labels() != before.labels(),
        "{name} was not damaged"
    );
    Ok(before)
}

/// Waits until an object is as it was.
async fn whole_again(api: &Api<DynamicObject>, before: &DynamicObject) -> Result<()> {
    let name = before.name_any();
    eventually(SOON, format!("{name} to be whole again"), async || {
        let now = api.get(&name).await.context("failed to read it")?;
        ensure!(
            now.data == before.data && now.labels() == before.labels(),
            "{:?} {}",
            now.labels(),
            now.data
        );
        Ok(())
    })
    .await
}

fn publish(journey: &Journey, version: &str) -> Result<()> {
    let (_, packed) = PACKED.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let release = packed.folder_of(&harbor_tag(version));
    match &journey.source {
        Some(source) => source.publish(&release),
        None => journey.releases.publish(&release),
    }
}

/// The stack with these versions listed, and the newest besides.
async fn want(journey: &Journey, versions: &[&str]) -> Result<()> {
    let mut spec = json!({ "autoSubscribe": true, "versions": versions });
    if let Some(source) = &journey.source {
        spec["source"] = source.source();
    }
    journey.stack(STACK, spec).await
}

/// Makes a cluster on the first release; the answer is what that consists of, with uids.
pub async fn build_cluster(journey: &Journey) -> Result<BTreeMap<String, String>> {
    let tag = harbor_tag("v1");
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": CLUSTER },
        "spec": { "topology": { "class": tag, "version": "v1.34.0" } },
    });
    journey.apply(cluster).await?;
    uids(journey, &tag).await
}

/// What is there at a station, written by hand: without it, equal worlds might be equally wrong.
pub fn expected(station: Station) -> Vec<String> {
    let releases: &[&str] = match station {
        Station::Installed
        | Station::Repaired
        | Station::Provided
        | Station::Adjusted
        | Station::Spread
        | Station::Deleted => &["v1"],
        Station::Replaced | Station::Followed => &["v2"],
        Station::Equipped | Station::Refitted | Station::Forsaken | Station::Subscribed => &["v1", "v2"],
        Station::Upgraded => &["v1", "v2", "v3"],
        Station::Dropped => &["v1", "v3"],
        Station::Empty => &[],
    };
    let stack = (station < Station::Deleted).then(|| format!("ClusterStack {STACK}"));
    let provided = matches!(station, Station::Provided | Station::Adjusted);
    let provided = provided.then(|| format!("{} {}", provider::KIND, harbor_tag("v1")));
    let shared = matches!(station, Station::Spread | Station::Followed);
    let neighbour = shared.then(parts_of_the_neighbour);
    let with_addons = (Station::Equipped..=Station::Forsaken).contains(&station);
    // But for its add-ons, the second release is the first under another name.
    let own = with_addons.then(|| format!("DockerMachineTemplate {}-burst", harbor_tag("v2")));
    let addons = match station {
        Station::Equipped => addons::parts(Version::First),
        Station::Refitted => addons::parts(Version::Second),
        _ => BTreeSet::new(),
    };
    let mut expected: Vec<String> = releases
        .iter()
        .flat_map(|version| parts(version))
        .chain(stack)
        .chain(provided)
        .chain(own)
        .chain(addons)
        .chain(neighbour.into_iter().flatten())
        .collect();
    expected.sort();
    expected
}

/// A stack and its release, as worlds name them.
fn parts_of_the_neighbour() -> Vec<String> {
    let all = [
        "ClusterStackRelease ",
        "ClusterClass ",
        "DockerClusterTemplate -cluster",
        "DockerMachineTemplate -worker-0",
        "KubeadmControlPlaneTemplate -control-plane",
    ];
    let tag = format!(" docker-{THE_NEIGHBOUR}-1-34-v1");
    let parts = all.into_iter().map(|name| name.replacen(' ', &tag, 1));
    parts.chain([format!("ClusterStack {THE_NEIGHBOUR}")]).collect()
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
