//! The shim plays the providers of the real Cluster API: its Clusters come up, are upgraded and go as those of real providers do.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use crds::ClusterAddon;
use e2e::{
    ControlPlane, Journey, Options,
    cluster_api::{Manager, Provider, Release},
    eventually,
    journey::{SOON, journey},
    kwok::Kwok,
    releases::StackSource,
    shim::{Contract, Hold, Shim, Workload, cluster, identity, install},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Node, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta1";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io/v1beta1";
const CLUSTER: &str = "web";
const OF_CLUSTER: &str = "cluster.x-k8s.io/cluster-name=web";

/// Kubernetes version by name of the Node.
type Nodes = BTreeMap<String, String>;

async fn nodes(client: &Client) -> Result<Nodes> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let version = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.kubelet_version.clone());
    let named = nodes
        .iter()
        .map(|node| (node.name_any(), version(node).unwrap_or_default()));
    Ok(named.collect())
}

/// Versions of the Nodes, sorted.
fn versions(nodes: &Nodes) -> Vec<&str> {
    let mut versions: Vec<_> = nodes.values().map(String::as_str).collect();
    versions.sort_unstable();
    versions
}

async fn until_nodes(client: &Client, expected: &[&str]) -> Result<Nodes> {
    eventually(SOON, format!("Nodes of {expected:?}"), async || {
        let nodes = nodes(client).await?;
        ensure!(versions(&nodes) == expected, "{nodes:?}");
        Ok(nodes)
    })
    .await
}

/// Waits until the Cluster exists and `holds` says so of it.
async fn until_cluster(journey: &Journey, what: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SOON, what, async || {
        let cluster = clusters.get(CLUSTER).await?;
        ensure!(holds(&cluster.data), "{:#}", cluster.data["status"]);
        Ok(())
    })
    .await
}

/// Every object of a kind that belongs to the Cluster.
async fn of_cluster(journey: &Journey, api_version: &str, kind: &str) -> Result<Vec<DynamicObject>> {
    let list = journey
        .objects(api_version, kind)
        .list(&ListParams::default().labels(OF_CLUSTER))
        .await;
    Ok(list.with_context(|| format!("failed to list {kind}"))?.items)
}

/// The control plane of the Cluster, spec and status.
async fn control_plane(journey: &Journey) -> Result<Value> {
    let mut planes = of_cluster(journey, CONTROL_PLANE, "ShimControlPlane").await?;
    Ok(planes.pop().context("no control plane")?.data)
}

/// Waits until so many Machines have this version.
async fn until_machines(journey: &Journey, version: &str, count: usize) -> Result<()> {
    eventually(SOON, format!("{count} Machines of {version}"), async || {
        let machines = of_cluster(journey, CLUSTER_API, "Machine").await?;
        let found = machines
            .iter()
            .filter(|machine| machine.data["spec"]["version"] == version)
            .count();
        let seen: Vec<_> = machines
            .iter()
            .map(|machine| (machine.name_any(), &machine.data["status"]))
            .collect();
        ensure!(found == count, "{seen:#?}");
        Ok(())
    })
    .await
}

fn condition_of_cluster<'a>(cluster: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = cluster["status"]["v1beta2"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// Both Kubernetes minors of our stack, as classes.
async fn classes(journey: &mut Journey) -> Result<[String; 2]> {
    let tags = [
        journey.releases.publish_quay("v1", "v1")?,
        journey.releases.publish_quay("v2", "v2")?,
    ];
    journey.operate().await?;
    for (name, minor, version) in [("old", "1.34", "v1"), ("new", "1.35", "v2")] {
        let spec = json!({ "provider": "shim", "name": "quay", "kubernetesVersion": minor, "versions": [version] });
        journey.stack(name, spec).await?;
    }
    for tag in &tags {
        journey.release_ready(tag).await?;
    }
    Ok(tags)
}

fn a_cluster_lives_its_whole_life(release: Release) -> Result<()> {
    journey(async |here| {
        here.elsewhere_with_played_providers(async |journey| {
            install(&journey.client, &Contract::ALL).await?;
            let options = Options {
                workloads: true,
                ..Options::default()
            };
            let workload = ControlPlane::start(options).await?;
            let dump = workload.failure_dump();
            let _kwok = Kwok::start(&workload).await?;
            let _manager = Manager::start(journey.control_plane(), Provider::Core, release).await?;
            let served = Workload::at(workload.access()).await?;
            let shim = Shim::start(journey.control_plane().access(), &served).await?;
            let classes = classes(journey).await?;
            let lived = live(journey, &shim, &workload.client(), &classes).await;
            lived.with_context(|| format!("{:#?}", shim.troubles()))?;
            dump.call_off();
            Ok(())
        })
        .await
    })
}

#[test]
fn a_cluster_comes_up_is_upgraded_and_goes_step_by_step_as_the_test_says_on_1_10() -> Result<()> {
    a_cluster_lives_its_whole_life(Release::V1_10)
}

#[test]
fn a_cluster_comes_up_is_upgraded_and_goes_step_by_step_as_the_test_says_on_1_14() -> Result<()> {
    a_cluster_lives_its_whole_life(Release::V1_14)
}

/// Those between, in a run on everything.
#[test]
fn a_cluster_comes_up_is_upgraded_and_goes_step_by_step_as_the_test_says_on_the_others() -> Result<()> {
    let journeys = Release::for_journeys();
    let others = journeys
        .into_iter()
        .filter(|release| ![Release::V1_10, Release::V1_14].contains(release));
    others.into_iter().try_for_each(a_cluster_lives_its_whole_life)
}

async fn live(journey: &Journey, shim: &Shim, workload: &Client, [old, new]: &[String; 2]) -> Result<()> {
    let web = shim.cluster(&journey.namespace, CLUSTER);
    web.hold(Hold::Initialization);
    journey.apply(cluster(CLUSTER, old, "v1.34.0", 2)).await?;
    until_cluster(journey, "the infrastructure to be there", |cluster| {
        cluster["status"]["infrastructureReady"] == true
    })
    .await?;
    assert_eq!(
        control_plane(journey).await?["status"]["version"],
        Value::Null,
        "it is held back"
    );
    assert_eq!(
        nodes(workload).await?,
        Nodes::new(),
        "no worker joins what is not there"
    );

    web.release(Hold::Initialization);
    let available =
        |cluster: &Value| condition_of_cluster(cluster, "Available").is_some_and(|is| is["status"] == "True");
    until_cluster(journey, "the Cluster to be available", available).await?;
    let first = until_nodes(workload, &["v1.34.0", "v1.34.0"]).await?;
    nodes_taken_over(workload).await?;
    pods_run(workload).await?;

    upgrade(journey, shim, workload, new).await?;
    let second = nodes(workload).await?;
    let names = |nodes: &Nodes| nodes.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(&first).intersection(&names(&second)).count(),
        0,
        "workers are not mended, they are replaced"
    );
    until_cluster(journey, "the Cluster to be available", available).await?;

    goes(journey, workload).await?;
    assert_eq!(shim.troubles(), BTreeMap::new());
    Ok(())
}

/// Cluster API connects with the kubeconfig of the Secret and finds the Nodes of its Machines.
async fn nodes_taken_over(workload: &Client) -> Result<()> {
    let api = Api::<Node>::all(workload.clone());
    eventually(SOON, "Cluster API to lift the taint of new Nodes", async || {
        let nodes = api.list(&ListParams::default()).await?;
        let tainted = |node: &&Node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
        let tainted: Vec<_> = nodes.iter().filter(tainted).map(ResourceExt::name_any).collect();
        ensure!(tainted.is_empty(), "{tainted:?}");
        Ok(())
    })
    .await
}

/// What plays kubelets takes the Nodes over.
async fn pods_run(workload: &Client) -> Result<()> {
    let labels = json!({ "app": "it" });
    let pod = json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "it", "image": "none.invalid/none" }] } });
    let deployment = json!({
        "metadata": { "name": "it" }, "spec": { "selector": { "matchLabels": labels }, "template": pod },
    });
    let deployments = Api::<Deployment>::default_namespaced(workload.clone());
    deployments
        .create(&PostParams::default(), &serde_json::from_value(deployment)?)
        .await?;
    eventually(SOON, "a Deployment to be available on Nodes of the shim", async || {
        let status = deployments.get("it").await?.status.unwrap_or_default();
        ensure!(status.available_replicas == Some(1), "{status:?}");
        Ok(())
    })
    .await
}

/// First the control plane, then one worker after the other.
async fn upgrade(journey: &Journey, shim: &Shim, workload: &Client, class: &str) -> Result<()> {
    let web = shim.cluster(&journey.namespace, CLUSTER);
    web.hold(Hold::Upgrade);
    web.hold(Hold::Machines);
    let topology = json!({ "spec": { "topology": { "class": class, "version": "v1.35.0" } } });
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    clusters
        .patch(CLUSTER, &PatchParams::default(), &Patch::Merge(topology))
        .await?;
    eventually(SOON, "the control plane to be on its way", async || {
        let plane = control_plane(journey).await?;
        let is_rolling = plane["status"]["updatedReplicas"] == 0 && plane["status"]["upToDateReplicas"] == 0;
        ensure!(plane["spec"]["version"] == "v1.35.0" && is_rolling, "{plane:#}");
        assert_eq!(plane["status"]["version"], "v1.34.0", "it is held back");
        Ok(())
    })
    .await?;
    until_machines(journey, "v1.35.0", 0).await?;

    web.release(Hold::Upgrade);
    until_machines(journey, "v1.35.0", 1).await?;
    assert_eq!(
        versions(&nodes(workload).await?),
        ["v1.34.0", "v1.34.0"],
        "workers come one by one"
    );
    web.admit_machines(1);
    until_nodes(workload, &["v1.34.0", "v1.35.0"]).await?;
    until_machines(journey, "v1.35.0", 2).await?;
    web.release(Hold::Machines);
    until_nodes(workload, &["v1.35.0", "v1.35.0"]).await?;
    until_machines(journey, "v1.34.0", 0).await
}

async fn goes(journey: &Journey, workload: &Client) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    clusters.delete(CLUSTER, &DeleteParams::default()).await?;
    eventually(SOON, "nothing of the Cluster to be left", async || {
        let mut left: Vec<_> = nodes(workload)
            .await?
            .into_keys()
            .map(|name| format!("Node {name}"))
            .collect();
        for (api_version, kind) in [
            (CLUSTER_API, "Cluster"),
            (CLUSTER_API, "MachineDeployment"),
            (CLUSTER_API, "MachineSet"),
            (CLUSTER_API, "Machine"),
            (INFRASTRUCTURE, "ShimCluster"),
            (INFRASTRUCTURE, "ShimMachine"),
            (INFRASTRUCTURE, "ShimMachineTemplate"),
            (CONTROL_PLANE, "ShimControlPlane"),
            (BOOTSTRAP, "ShimConfig"),
            (BOOTSTRAP, "ShimConfigTemplate"),
            ("v1", "Secret"),
        ] {
            let objects = of_cluster(journey, api_version, kind).await?;
            left.extend(objects.iter().map(|object| format!("{kind} {}", object.name_any())));
        }
        let cluster = clusters.get_opt(CLUSTER).await?;
        left.extend(cluster.map(|_| "Cluster".to_owned()));
        ensure!(left.is_empty(), "{left:#?}");
        Ok(())
    })
    .await
}

/// Writes what Cluster API makes of a Cluster with one worker, for tests in which it does not run.
async fn made_by_hand(journey: &Journey, name: &str) -> Result<()> {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": name });
    let reference = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": name });
    let named = || json!({ "name": name, "labels": labels });
    for (api_version, kind, spec) in [
        (INFRASTRUCTURE, "ShimCluster", json!({ "region": "north" })),
        (CONTROL_PLANE, "ShimControlPlane", json!({ "version": "v1.34.0" })),
        (
            CLUSTER_API,
            "Cluster",
            json!({
                "infrastructureRef": reference(INFRASTRUCTURE, "ShimCluster"),
                "controlPlaneRef": reference(CONTROL_PLANE, "ShimControlPlane"),
            }),
        ),
    ] {
        journey
            .apply(json!({ "apiVersion": api_version, "kind": kind, "metadata": named(), "spec": spec }))
            .await?;
    }
    let machine = json!({
        "apiVersion": CLUSTER_API, "kind": "Machine", "metadata": named(),
        "spec": {
            "clusterName": name, "version": "v1.34.0", "bootstrap": { "dataSecretName": "by-hand" },
            "infrastructureRef": reference(INFRASTRUCTURE, "ShimMachine"),
        },
    });
    let machine = journey.apply(machine).await?;
    let owner = json!({ "apiVersion": CLUSTER_API, "kind": "Machine", "name": name, "uid": machine.uid() });
    let mut metadata = named();
    metadata["ownerReferences"] = json!([owner]);
    let machine = json!({ "apiVersion": INFRASTRUCTURE, "kind": "ShimMachine", "metadata": metadata, "spec": {} });
    journey.apply(machine).await.map(drop)
}

#[test]
fn a_workload_cluster_that_is_away_holds_up_no_other_and_may_come_back_elsewhere() -> Result<()> {
    journey(async |here| here.elsewhere(async |journey| comes_back(journey).await).await)
}

async fn comes_back(journey: &Journey) -> Result<()> {
    install(&journey.client, &Contract::ALL).await?;
    let workload = ControlPlane::start(Options::default()).await?;
    let served = Workload::at(workload.access()).await?;
    let shim = Shim::start(journey.control_plane().access(), &served).await?;
    let far = shim.cluster(&journey.namespace, "far");
    let away = Workload::away(workload.access()).await?;
    far.serve(&away);
    for name in ["far", "near"] {
        made_by_hand(journey, name).await?;
    }
    eventually(SOON, "the near Node and the trouble with the far one", async || {
        let nodes = nodes(&workload.client()).await?;
        ensure!(nodes.keys().eq(["near"]), "{nodes:?}");
        let troubles = shim.troubles();
        ensure!(troubles.keys().map(|key| key.1.as_str()).eq(["far"]), "{troubles:?}");
        told_of(journey, &away).await
    })
    .await?;
    far.serve(&served);
    eventually(SOON, "both Nodes and no trouble", async || {
        let nodes = nodes(&workload.client()).await?;
        ensure!(nodes.keys().eq(["far", "near"]), "{nodes:?}");
        ensure!(shim.troubles().is_empty(), "{:?}", shim.troubles());
        told_of(journey, &served).await
    })
    .await?;
    let renewed = served.told_by(&format!("# renewed\n{}", served.kubeconfig()))?;
    far.serve(&renewed);
    eventually(SOON, "the renewed kubeconfig", async || {
        told_of(journey, &renewed).await
    })
    .await
}

/// Whether the Secret of the far Cluster says that this is its workload cluster.
async fn told_of(journey: &Journey, workload: &Workload) -> Result<()> {
    let secret = journey.api::<Secret>().get("far-kubeconfig").await?;
    let value = secret.data.unwrap_or_default().remove("value").map(|value| value.0);
    ensure!(
        value.as_deref() == Some(workload.kubeconfig().as_bytes()),
        "another kubeconfig"
    );
    ensure!(
        secret.type_.as_deref() == Some("cluster.x-k8s.io/secret"),
        "{:?}",
        secret.type_
    );
    Ok(())
}

#[test]
fn the_shim_may_write_neither_add_ons_nor_what_they_are_made_of() -> Result<()> {
    journey(async |journey| {
        install(&journey.client, &Contract::ALL).await?;
        let workload = ControlPlane::start(Options::default()).await?;
        let served = Workload::at(workload.access()).await?;
        let _shim = Shim::start(journey.control_plane().access(), &served).await?;
        let here = journey.control_plane().client_for(&identity()).await?;
        let there = workload.client_for(&identity()).await?;

        let named = || ObjectMeta {
            name: Some("it".to_owned()),
            ..ObjectMeta::default()
        };
        let config_map = ConfigMap {
            metadata: named(),
            ..ConfigMap::default()
        };
        let node = Node {
            metadata: named(),
            ..Node::default()
        };
        let (create, list) = (PostParams::default(), ListParams::default());
        let merge = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
        let addons = Api::<ClusterAddon>::namespaced(here.clone(), &journey.namespace);
        refused(addons.list(&list).await)?;
        refused(addons.patch("it", &PatchParams::default(), &merge).await)?;
        refused(addons.patch_status("it", &PatchParams::default(), &merge).await)?;
        for kind in ["Cluster", "Machine"] {
            let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", kind));
            let objects = Api::<DynamicObject>::namespaced_with(here.clone(), &journey.namespace, &kind);
            refused(objects.patch("it", &PatchParams::default(), &merge).await)?;
            refused(objects.patch_status("it", &PatchParams::default(), &merge).await)?;
        }
        refused(
            Api::<Secret>::namespaced(here.clone(), &journey.namespace)
                .list(&list)
                .await,
        )?;
        refused(
            Api::<ConfigMap>::namespaced(here, &journey.namespace)
                .create(&create, &config_map)
                .await,
        )?;
        refused(
            Api::<ConfigMap>::namespaced(there.clone(), "kube-system")
                .create(&create, &config_map)
                .await,
        )?;
        let nodes = Api::<Node>::all(there.clone());
        refused(nodes.list(&list).await)?;
        refused(nodes.patch("it", &PatchParams::default(), &merge).await)?;
        nodes.create(&create, &node).await.context("what it may")?;
        nodes
            .delete("it", &DeleteParams::default())
            .await
            .context("what it may")?;
        Ok(())
    })
}

/// What its third version is faulty in shows only when its add-ons are rendered.
#[test]
fn every_version_of_the_stack_makes_a_release_and_the_add_ons_of_one_fail() -> Result<()> {
    journey(async |journey| {
        let helm = journey.lab().helm.get("v3.19").context("no helm v3.19 in the lab")?;
        for (version, tag) in [
            ("v1", "shim-quay-1-34-v1"),
            ("v2", "shim-quay-1-35-v2"),
            ("v3", "shim-quay-1-35-v3"),
        ] {
            assert_eq!(journey.releases.publish_quay(version, version)?, tag);
            let source = StackSource::quay(version)?;
            for chart in ["network", "lighthouse"] {
                let mut command = Command::new(helm);
                command.args([
                    "template",
                    "cluster-addon",
                    "--include-crds",
                    "--namespace",
                    "kube-system",
                ]);
                let answer = command.arg(source.path().join("cluster-addon").join(chart)).output()?;
                let said = String::from_utf8_lossy(&answer.stderr);
                if (version, chart) == ("v3", "lighthouse") {
                    ensure!(said.contains("lighthouse: set lamp"), "{said}");
                } else {
                    ensure!(answer.status.success(), "{version} {chart}: {said}");
                }
            }
        }
        Ok(())
    })
}

fn refused<T>(answer: kube::Result<T>) -> Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(error) => Err(error).context("not because of a missing right"),
        Ok(_) => anyhow::bail!("it was let in"),
    }
}
