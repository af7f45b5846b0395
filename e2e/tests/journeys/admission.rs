//! What the API server asks the operator before it lets a request pass: the rules of the contract with their words, and that nobody waits
//! for an operator that is down.

mod asked;
mod classes;
mod renewal;
mod second_version;
mod stopped;
mod tables;
mod weight;

use anyhow::{Result, ensure};
use e2e::{Journey, eventually, journey::SOON, webhooks::Certificates};
use kube::Client;
use serde_json::{Value, json};

use self::asked::Objects;

/// The version of Cluster API that the control plane has.
const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
const CLUSTER_STACKS: &str = "clusterstack.x-k8s.io/v1alpha1";
/// The release of our own stack as `v1`, and its Kubernetes version.
const CLASS: &str = "docker-harbor-1-34-v1";
const VERSION: &str = "v1.34.0";

/// Starts an operator with webhooks, and returns when the API server asks it about this namespace, and about `others`.
async fn guarded(journey: &mut Journey, others: &[&str]) -> Result<Certificates> {
    let certificates = Certificates::at(&journey.folder().join("certificates"))?;
    journey.options.flags.extend(certificates.flags());
    journey.operate().await?;
    let port = journey.operator()?.webhook_port().await?;
    let namespaces = [&[journey.namespace.as_str()], others].concat();
    certificates
        .configure(&journey.client, &journey.namespace, port, &namespaces)
        .await?;
    is_asked(&clusters(journey)).await?;
    Ok(certificates)
}

fn clusters(journey: &Journey) -> Objects {
    Objects::new(&journey.client, CLUSTER_API, &journey.namespace, "clusters")
}

fn stacks(journey: &Journey) -> Objects {
    Objects::new(&journey.client, CLUSTER_STACKS, &journey.namespace, "clusterstacks")
}

fn releases(client: &Client, namespace: &str) -> Objects {
    Objects::new(client, CLUSTER_STACKS, namespace, "clusterstackreleases")
}

fn addons(journey: &Journey) -> Objects {
    Objects::new(&journey.client, CLUSTER_STACKS, &journey.namespace, "clusteraddons")
}

/// Waits until the API server has heard of the configuration: the operator warns of a class that nobody brings.
async fn is_asked(clusters: &Objects) -> Result<()> {
    let unknown = cluster("unknown", "docker-nobody-1-34-v1", VERSION);
    eventually(SOON, "the API server to ask the operator", async || {
        let answer = clusters.try_create(&unknown).await?;
        ensure!(answer.accepted() && !answer.warnings.is_empty(), "{answer:?}");
        anyhow::Ok(())
    })
    .await
}

fn cluster(name: &str, class: &str, version: &str) -> Value {
    json!({
        "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": name },
        "spec": { "topology": { "class": class, "version": version } },
    })
}

/// A Cluster as people wrote them before there were classes.
fn classic(name: &str) -> Value {
    json!({ "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": name }, "spec": { "paused": true } })
}

fn addon(name: &str, cluster_namespace: &str) -> Value {
    json!({
        "apiVersion": CLUSTER_STACKS, "kind": "ClusterAddon", "metadata": { "name": name },
        "spec": { "clusterRef": { "apiVersion": CLUSTER_API, "kind": "Cluster", "name": "web", "namespace": cluster_namespace } },
    })
}

/// Publishes the release of [`CLASS`] and has it installed.
async fn installed(journey: &Journey) -> Result<()> {
    let tag = journey.releases.publish_harbor("v1", "v1")?;
    ensure!(tag == CLASS, "{tag}");
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    let release = journey.release_ready(&tag).await?;
    let version = e2e::journey::status(&release).kubernetes_version;
    ensure!(version.as_deref() == Some(VERSION), "{version:?}");
    Ok(())
}
