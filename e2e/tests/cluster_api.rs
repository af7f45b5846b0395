//! The real Cluster API as the lab runs it, with nothing of ours in it: what every journey on it stands on.
//!
//! Cluster, class and templates are of kinds that no provider reconciles, so a life ends here once Cluster API has asked whether the cluster may be
//! made, and has made it.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{
    ControlPlane, Options,
    cluster_api::{Manager, Provider, Release},
    definitions, eventually,
    hooks::{Answer, Hook, Recorder, discovery, handlers},
    journey::SOON,
    kwok::Kwok,
};
use k8s_openapi::{
    api::{apps::v1::Deployment, batch::v1::Job},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde::Deserialize;
use serde_json::{Value, json};

const GROUP: &str = "toys.example.com";
const VERSION: &str = "v1";
const CLUSTER: &str = "default/toy";
/// Managers end by force after three seconds.
const STOPPED: Duration = Duration::from_secs(10);

/// A kind that says so of any field, and that it keeps both versions of the contract.
fn definition(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}"), "labels": {
            "cluster.x-k8s.io/v1beta1": VERSION, "cluster.x-k8s.io/v1beta2": VERSION,
        } },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List") },
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

fn objects(client: &Client, api_version: &str, kind: &str) -> Result<Api<DynamicObject>> {
    let (group, version) = api_version.split_once('/').context("an API version with a group")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Ok(Api::default_namespaced_with(client.clone(), &kind))
}

fn toys(client: &Client, kind: &str) -> Result<Api<DynamicObject>> {
    objects(client, &format!("{GROUP}/{VERSION}"), kind)
}

async fn create(client: &Client, object: &Value) -> Result<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let api = objects(client, &text("apiVersion"), &text("kind"))?;
    let created = api
        .create(&PostParams::default(), &DynamicObject::deserialize(object)?)
        .await;
    created.with_context(|| format!("failed to create {object}"))
}

/// A class of toys and a Cluster of it, in the API version that every minor serves.
async fn create_cluster(client: &Client) -> Result<()> {
    let kinds = [
        "ToyCluster",
        "ToyClusterTemplate",
        "ToyControlPlane",
        "ToyControlPlaneTemplate",
    ];
    definitions::install(client, &kinds.map(definition)).await?;
    let toys = format!("{GROUP}/{VERSION}");
    for kind in ["ToyClusterTemplate", "ToyControlPlaneTemplate"] {
        let template = json!({
            "apiVersion": toys, "kind": kind, "metadata": { "name": "toy" },
            "spec": { "template": { "spec": {} } },
        });
        create(client, &template).await?;
    }
    let template = |kind: &str| json!({ "ref": { "apiVersion": toys, "kind": kind, "name": "toy" } });
    let class = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass", "metadata": { "name": "toy" },
        "spec": {
            "infrastructure": template("ToyClusterTemplate"), "controlPlane": template("ToyControlPlaneTemplate"),
        },
    });
    create(client, &class).await?;
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "toy" },
        "spec": { "topology": { "class": "toy", "version": "v1.33.5" } },
    });
    create(client, &cluster).await.map(drop)
}

/// The condition that names the hook that blocks. Before 1.12 it comes and goes.
async fn says_what_blocks(client: &Client) -> Result<()> {
    let clusters = objects(client, "cluster.x-k8s.io/v1beta1", "Cluster")?;
    eventually(SOON, "the Cluster to say what blocks it", async || {
        let cluster = clusters.get("toy").await?;
        let said = cluster.data["status"].to_string();
        ensure!(
            said.contains("BeforeClusterCreate") && said.contains("the oven is cold"),
            "{said}"
        );
        Ok(())
    })
    .await
}

/// By this, whoever answers hooks can tell which he may name: nothing that is always there says the minor.
async fn classes_tell_of_the_hooks_of_1_12(client: &Client) -> Result<bool> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let classes = serde_json::to_value(definitions.get("clusterclasses.cluster.x-k8s.io").await?)?;
    let versions = classes["spec"]["versions"].as_array().cloned().unwrap_or_default();
    let upgrade = "/schema/openAPIV3Schema/properties/spec/properties/upgrade";
    Ok(versions
        .iter()
        .any(|version| version["storage"] == true && version.pointer(upgrade).is_some()))
}

/// In which form calls carry the Cluster: its API version, and the class by the name of that version. That of 1.12 says no version, and is v1beta1.
fn form_of(release: Release) -> (Value, &'static str) {
    let (old, new) = ("/spec/topology/class", "/spec/topology/classRef/name");
    match release {
        Release::V1_10 => (json!("cluster.x-k8s.io/v1beta1"), old),
        Release::V1_12 => (Value::Null, old),
        Release::V1_13 | Release::V1_14 => (json!("cluster.x-k8s.io/v1beta2"), new),
    }
}

async fn holds_a_cluster_back_and_lets_it_go(release: Release) -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let manager = Manager::start(&control_plane, Provider::Core, release).await?;
    assert_eq!(
        classes_tell_of_the_hooks_of_1_12(&client).await?,
        release.knows(Hook::BeforeWorkersUpgrade)
    );
    let recorder = Recorder::start(release).await?;
    recorder.register(&client, "recorder").await?;
    let handlers = Recorder::discovered(&client, "recorder").await?;
    let known = Hook::ALL.into_iter().filter(|hook| release.knows(*hook));
    assert_eq!(handlers.len(), known.count(), "{handlers:?}");
    let wait = Answer::Wait {
        seconds: 1,
        message: "the oven is cold".to_owned(),
    };
    recorder.answer(Hook::BeforeClusterCreate, wait.clone());
    create_cluster(&client).await?;
    let calls = recorder.called(Hook::BeforeClusterCreate, CLUSTER, 2).await?;
    assert!(calls.iter().all(|call| call.answer == wait), "{calls:#?}");
    let cluster = &calls[0].request["cluster"];
    let (version, class) = form_of(release);
    assert_eq!(cluster.get("apiVersion").unwrap_or(&Value::Null), &version, "{cluster}");
    assert_eq!(cluster.pointer(class), Some(&json!("toy")), "{cluster}");
    says_what_blocks(&client).await?;
    let made = toys(&client, "ToyCluster")?;
    assert!(made.list(&ListParams::default()).await?.items.is_empty(), "it blocks");

    recorder.answer(Hook::BeforeClusterCreate, Answer::Proceed);
    for kind in ["ToyCluster", "ToyControlPlane"] {
        let made = toys(&client, kind)?;
        eventually(SOON, format!("a {kind} to be made"), async || {
            let made = made.list(&ListParams::default()).await?.items;
            if made.is_empty() {
                Err(anyhow!("there is none"))
            } else {
                Ok(())
            }
        })
        .await?;
    }
    let others = recorder
        .calls()
        .into_iter()
        .filter(|call| call.hook != Hook::BeforeClusterCreate);
    assert_eq!(others.count(), 0, "nothing else is due");
    tokio::time::timeout(STOPPED, manager.stop()).await??;
    dump.call_off();
    control_plane.stop().await
}

#[tokio::test]
async fn a_hook_holds_a_cluster_back_and_lets_it_go_on_1_10() -> Result<()> {
    holds_a_cluster_back_and_lets_it_go(Release::V1_10).await
}

#[tokio::test]
async fn a_hook_holds_a_cluster_back_and_lets_it_go_on_1_12() -> Result<()> {
    holds_a_cluster_back_and_lets_it_go(Release::V1_12).await
}

#[tokio::test]
async fn a_hook_holds_a_cluster_back_and_lets_it_go_on_1_13() -> Result<()> {
    holds_a_cluster_back_and_lets_it_go(Release::V1_13).await
}

#[tokio::test]
async fn a_hook_holds_a_cluster_back_and_lets_it_go_on_1_14() -> Result<()> {
    holds_a_cluster_back_and_lets_it_go(Release::V1_14).await
}

#[tokio::test]
async fn a_handler_that_a_minor_does_not_know_costs_an_extension_all_its_handlers() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let _manager = Manager::start(&control_plane, Provider::Core, Release::V1_10).await?;
    let recorder = Recorder::with_handlers(Hook::ALL).await?;
    recorder.register(&client, "recorder").await?;
    let condition = eventually(SOON, "the discovery to be judged", async || {
        let condition = discovery(&client, "recorder").await?;
        ensure!(condition["status"] == "False", "{condition}");
        Ok(condition)
    })
    .await?;
    let said = condition.to_string();
    for hook in Hook::ALL {
        let is_named = said.contains(&format!("/{} is not in", hook.name()));
        assert_eq!(is_named, !Release::V1_10.knows(hook), "{said}");
    }
    assert_eq!(handlers(&client, "recorder").await?, Vec::<String>::new());
    dump.call_off();
    control_plane.stop().await
}

/// So journeys begin: on a control plane with the CRDs of all projects, of which a minor replaces its own.
#[tokio::test]
async fn what_was_stored_before_a_minor_came_is_converted() -> Result<()> {
    let options = Options {
        crds: true,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "toy" },
        "spec": { "paused": true, "controlPlaneRef": { "apiVersion": "toys.example.com/v1", "kind": "Toy", "name": "toy" } },
    });
    create(&client, &cluster).await?;
    let _manager = Manager::start(&control_plane, Provider::Core, Release::V1_14).await?;
    let read = objects(&client, Release::V1_14.newest_version(), "Cluster")?
        .get("toy")
        .await?;
    assert_eq!(read.data["spec"]["paused"], true);
    let reference = json!({ "apiGroup": "toys.example.com", "kind": "Toy", "name": "toy" });
    assert_eq!(read.data["spec"]["controlPlaneRef"], reference);
    dump.call_off();
    control_plane.stop().await
}

#[tokio::test]
async fn managers_of_kubeadm_and_docker_serve_beside_the_core() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let release = Release::V1_12;
    let _core = Manager::start(&control_plane, Provider::Core, release).await?;
    let _bootstrap = Manager::start_idle(&control_plane, Provider::KubeadmBootstrap, release).await?;
    let _control_plane = Manager::start(&control_plane, Provider::KubeadmControlPlane, release).await?;
    let _docker = Manager::start(&control_plane, Provider::Docker, release).await?;
    // What is stored in another version comes back as it was written: somebody converts.
    let template = json!({
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfigTemplate",
        "metadata": { "name": "toy" },
        "spec": { "template": { "spec": { "clusterConfiguration": { "apiServer": { "extraArgs": { "v": "2" } } } } } },
    });
    let made = eventually(SOON, "a template of kubeadm to be made", async || {
        create(&client, &template).await
    });
    let made = made.await?;
    let arguments = "/spec/template/spec/clusterConfiguration/apiServer/extraArgs";
    assert_eq!(made.data.pointer(arguments), Some(&json!({ "v": "2" })));
    dump.call_off();
    control_plane.stop().await
}

#[tokio::test]
async fn what_runs_on_a_played_node_is_ready_or_done_at_once() -> Result<()> {
    let options = Options {
        workloads: true,
        ..Options::default()
    };
    let control_plane = ControlPlane::start(options).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let kwok = Kwok::start(&control_plane).await?;
    kwok.node("toy").await?;
    let pod = json!({ "containers": [{ "name": "toy", "image": "none.invalid/none" }] });
    let labels = json!({ "app": "toy" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "toy" },
        "spec": { "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels }, "spec": pod } },
    });
    let mut once = pod.clone();
    once["restartPolicy"] = "Never".into();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "toy" },
        "spec": { "template": { "spec": once } },
    });
    create(&client, &deployment).await?;
    create(&client, &job).await?;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    eventually(SOON, "the Deployment to be available", async || {
        let status = deployments.get("toy").await?.status.unwrap_or_default();
        ensure!(status.available_replicas == Some(1), "{status:?}");
        Ok(())
    })
    .await?;
    let jobs: Api<Job> = Api::default_namespaced(client);
    eventually(SOON, "the Job to be done", async || {
        let status = jobs.get("toy").await?.status.unwrap_or_default();
        ensure!(status.succeeded == Some(1), "{status:?}");
        Ok(())
    })
    .await?;
    dump.call_off();
    control_plane.stop().await
}
