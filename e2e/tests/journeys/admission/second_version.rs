//! Clusters of v1beta2, which name their class by `classRef`, on a control plane of their own: that of the other journeys has v1beta1.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{
    ControlPlane, Identity, Lab, Operator, OperatorOptions, Options, definitions, eventually, releases::Releases,
    webhooks::Certificates,
};
use http::{Method, Request};
use serde_json::{Value, json};

use super::asked::Objects;
use super::{CLASS, VERSION, releases};

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta2";
const NAMESPACE: &str = "default";
const SOON: Duration = Duration::from_mins(1);

/// As much of a Cluster of v1beta2 as the webhooks read.
fn definition() -> Value {
    let text = json!({ "type": "string" });
    let class = json!({ "type": "object", "properties": { "name": text, "namespace": text }, "required": ["name"] });
    let topology = json!({ "type": "object", "properties": { "classRef": class, "version": text } });
    let spec = json!({ "type": "object", "properties": { "paused": { "type": "boolean" }, "topology": topology } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusters.cluster.x-k8s.io", "annotations": { "api-approved.kubernetes.io": "unapproved" } },
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster" },
            "versions": [{
                "name": "v1beta2", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

fn cluster(name: &str, class: &str, version: &str) -> Value {
    json!({
        "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": name },
        "spec": { "topology": { "classRef": { "name": class }, "version": version } },
    })
}

/// A release that nobody works on, with the version that it would have.
async fn release(api: &Objects) -> Result<()> {
    let release = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
        "metadata": { "name": CLASS, "annotations": { "cluster.x-k8s.io/paused": "" } }, "spec": {},
    });
    ensure!(api.create(&release).await?.accepted());
    eventually(SOON, "the release to have its version", async || {
        // The operator writes that the release is paused, too.
        let status = json!({ "status": { "kubernetesVersion": VERSION } });
        let answer = api.merge(&format!("{CLASS}/status"), &status).await?;
        ensure!(answer.accepted(), "{answer:?}");
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{}/{CLASS}", api.path));
        let seen: Value = api.client.request(request.body(Vec::new())?).await?;
        let paused = seen["status"]["conditions"]
            .as_array()
            .is_some_and(|conditions| !conditions.is_empty());
        ensure!(paused && seen["status"]["kubernetesVersion"] == VERSION, "{seen}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_that_name_their_class_by_reference_are_judged_alike() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let dump = control_plane.failure_dump();
    let client = control_plane.client();
    let definitions = [definitions::ours()?, vec![definition()]].concat();
    definitions::install(&client, &definitions).await?;
    let certificates = Certificates::at(&control_plane.folder().join("certificates"))?;
    let lab = Lab::load()?;
    let options = OperatorOptions {
        program: e2e::built::Program::CoreOperator,
        kubeconfig: control_plane.kubeconfig_for(&Identity::Admin).await?,
        namespace: NAMESPACE.to_owned(),
        release_dir: Releases::at(&control_plane.folder().join("releases"))?
            .root()
            .to_owned(),
        record: None,
        flags: certificates.flags(),
        log: control_plane.folder().join("core-operator.log"),
    };
    let mut operator = Operator::start(&lab, &options)?;
    operator.ready().await?;
    let port = operator.webhook_port().await?;
    certificates.configure(&client, "webhooks", port, &[NAMESPACE]).await?;
    let api = Objects::new(&client, CLUSTER_API, NAMESPACE, "clusters");
    eventually(SOON, "the API server to ask the operator", async || {
        let answer = api
            .try_create(&cluster("unknown", "docker-nobody-1-34-v1", VERSION))
            .await?;
        ensure!(answer.accepted() && !answer.warnings.is_empty(), "{answer:?}");
        anyhow::Ok(())
    })
    .await?;
    let of_releases = releases(&client, NAMESPACE);
    release(&of_releases).await?;

    let answer = api.try_create(&cluster("web", CLASS, "v1.34.9")).await?;
    let words = format!("clusterClass {CLASS} expects Kubernetes version {VERSION}, but got v1.34.9");
    ensure!(answer.code == 403 && answer.message.ends_with(&words), "{answer:?}");
    let answer = api.create(&cluster("web", CLASS, VERSION)).await?;
    ensure!(answer.code == 201 && answer.warnings.is_empty(), "{answer:?}");
    let other = json!({ "spec": { "topology": { "classRef": { "name": "docker-scs-1-34-v1" } } } });
    let answer = api.merge("web", &other).await?;
    let words = "Cluster.cluster.x-k8s.io \"web\" is invalid: spec.topology.classRef.name: Invalid value: \"docker-scs-1-34-v1\": \
                 cluster stack name must not change. Got scs, want harbor";
    ensure!(answer.code == 422 && answer.message.ends_with(words), "{answer:?}");
    eventually(SOON, "the release to be known as in use", async || {
        let answer = of_releases.try_delete(CLASS).await?;
        ensure!(
            answer.code == 400 && answer.message.ends_with("clusters using it: [\"web\"]"),
            "{answer:?}"
        );
        anyhow::Ok(())
    })
    .await?;

    operator.kill().await?;
    ensure!(
        !api.create(&cluster("new", CLASS, VERSION)).await?.accepted(),
        "it is guarded"
    );
    let version = json!({ "spec": { "topology": { "version": "v1.34.9" } } });
    ensure!(!api.merge("web", &version).await?.accepted(), "it is guarded");
    ensure!(
        api.create(&cluster("foreign", "quick-start", VERSION))
            .await?
            .accepted()
    );
    ensure!(api.merge("foreign", &version).await?.accepted());
    ensure!(
        api.merge(
            "web",
            &json!({ "metadata": { "labels": { "team": "a" } }, "spec": { "paused": true } })
        )
        .await?
        .accepted()
    );
    ensure!(api.delete("web").await?.accepted());
    dump.call_off();
    Ok(())
}
