//! The real Cluster API asks our operator: it takes the handlers that it is told, whatever its minor; a Cluster of others goes on at once, and one of ours waits and can be
//! let go by hand.

use anyhow::{Context, Result, ensure};
use crds::{cluster_addon::name_for, labels};
use e2e::{
    Journey,
    cluster_api::{Manager, Provider, Release},
    eventually,
    hooks::{Hook, Recorder},
    journey::{SOON, journey},
    shim::{Contract, cluster, install},
    webhooks::Certificates,
};
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
const CLUSTER_STACKS: &str = "clusterstack.x-k8s.io/v1alpha1";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// The name under which Cluster API knows the operator; it is behind the names of the handlers.
const EXTENSION: &str = "core-operator";
/// The class of another tool.
const FOREIGN: &str = "quick-start";
const VERSION: &str = "v1.34.0";
/// The class is for another one.
const OTHER_VERSION: &str = "v1.34.1";

/// A release of our stack, and its class once more under a name that is not ours.
async fn classes(journey: &Journey) -> Result<String> {
    let class = journey.releases.publish_quay("v1", "v1")?;
    let spec = json!({ "provider": "shim", "name": "quay", "kubernetesVersion": "1.34", "versions": ["v1"] });
    journey.stack("quay", spec).await?;
    eventually(SOON, "the class with its templates", async || {
        let objects = journey.inventory(&class).await?;
        ensure!(
            objects.len() == 5 && objects.values().all(Option::is_some),
            "{objects:?}"
        );
        Ok(())
    })
    .await?;
    let ours = journey.objects(CLUSTER_API, "ClusterClass").get(&class).await?;
    let foreign = json!({
        "apiVersion": CLUSTER_API, "kind": "ClusterClass", "metadata": { "name": FOREIGN }, "spec": ours.data["spec"],
    });
    journey.apply(foreign).await?;
    Ok(class)
}

/// The infrastructure that Cluster API has made for a Cluster: none as long as it is held up before everything else.
async fn infrastructure(journey: &Journey, name: &str) -> Result<Vec<DynamicObject>> {
    let of_cluster = ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={name}"));
    let list = journey.objects(INFRASTRUCTURE, "ShimCluster").list(&of_cluster).await;
    Ok(list.context("failed to list ShimClusters")?.items)
}

async fn goes_on(journey: &Journey, name: &str) -> Result<()> {
    eventually(SOON, format!("infrastructure of {name}"), async || {
        let made = infrastructure(journey, name).await?;
        let cluster = journey.objects(CLUSTER_API, "Cluster").get(name).await?;
        ensure!(made.len() == 1, "{:#}", cluster.data["status"]);
        Ok(())
    })
    .await
}

/// How often a hook was answered so, as the operator counts it.
async fn answered(journey: &mut Journey, hook: &str, answer: &str) -> Result<bool> {
    let page = journey.operator()?.metrics_page().await?;
    let series = format!("stackwright_hook_answers_total{{hook=\"{hook}\",answer=\"{answer}\"}}");
    Ok(page.contains(&series))
}

/// Cluster API before 1.12 would take none of the handlers if there was one that it does not know.
async fn is_discovered(journey: &Journey, release: Release) -> Result<()> {
    let mut handlers = Recorder::discovered(&journey.client, EXTENSION).await?;
    let known = Hook::ALL.into_iter().filter(|hook| release.knows(*hook));
    let mut expected: Vec<String> = known.map(|hook| format!("{}.{EXTENSION}", hook.dashed())).collect();
    handlers.sort();
    expected.sort();
    assert_eq!(handlers, expected);
    Ok(())
}

/// The condition that says which hook holds a Cluster up, and with which words of ours. Before 1.12 it comes and goes.
async fn is_held_up(journey: &Journey, name: &str, words: &[&str]) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SOON, "the Cluster to say what holds it up", async || {
        let said = clusters.get(name).await?.data["status"].to_string();
        ensure!(words.iter().all(|word| said.contains(word)), "{said}");
        Ok(())
    })
    .await
}

fn asks_our_operator(release: Release) -> Result<()> {
    journey(async |here| {
        here.elsewhere_with_played_providers(async |journey| {
            install(&journey.client, &Contract::ALL).await?;
            let certificates = Certificates::at(&journey.folder().join("hooks"))?;
            journey.options.flags.extend(certificates.hook_flags());
            let _manager = Manager::start(journey.control_plane(), Provider::Core, release).await?;
            journey.operate().await?;
            let class = classes(journey).await?;
            let port = journey.operator()?.hook_port().await?;
            certificates
                .extend(&journey.client, EXTENSION, port, &journey.namespace)
                .await?;
            is_discovered(journey, release).await?;

            journey.apply(cluster("foreign", FOREIGN, VERSION, 0)).await?;
            goes_on(journey, "foreign").await?;
            let create = "BeforeClusterCreate";
            ensure!(answered(journey, create, "go-on").await?, "nobody was asked");
            ensure!(!answered(journey, create, "hold").await?, "it was held up first");

            journey.apply(cluster("web", &class, OTHER_VERSION, 0)).await?;
            let way_round = format!("{}={create}@{class}", labels::SKIP_HOOK);
            is_held_up(journey, "web", &[create, "VersionMismatch", &way_round]).await?;
            let made = infrastructure(journey, "web").await?;
            ensure!(made.is_empty(), "it is held up: {made:?}");

            journey.apply(skipping(create, &class)).await?;
            goes_on(journey, "web").await
        })
        .await
    })
}

/// The add-on of the Cluster as somebody leaves it who does as the message says; there may be none yet.
fn skipping(hook: &str, class: &str) -> Value {
    json!({
        "apiVersion": CLUSTER_STACKS, "kind": "ClusterAddon",
        "metadata": { "name": name_for("web"), "annotations": { (labels::SKIP_HOOK): format!("{hook}@{class}") } },
        "spec": { "clusterRef": { "apiVersion": CLUSTER_API, "kind": "Cluster", "name": "web" } },
    })
}

#[test]
fn our_operator_is_asked_and_holds_up_nobody_but_clusters_of_ours_on_1_10() -> Result<()> {
    asks_our_operator(Release::V1_10)
}

#[test]
fn our_operator_is_asked_and_holds_up_nobody_but_clusters_of_ours_on_1_12() -> Result<()> {
    asks_our_operator(Release::V1_12)
}

#[test]
fn our_operator_is_asked_and_holds_up_nobody_but_clusters_of_ours_on_1_13() -> Result<()> {
    asks_our_operator(Release::V1_13)
}

#[test]
fn our_operator_is_asked_and_holds_up_nobody_but_clusters_of_ours_on_1_14() -> Result<()> {
    asks_our_operator(Release::V1_14)
}
