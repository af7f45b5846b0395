//! The API server that is a workload cluster: how the shim writes Nodes there, and what everybody else is told of it.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use url::Url;

use super::rights::{grant_in_workload, identity};
use crate::{
    Identity,
    control_plane::{Access, free_port},
};

/// An API server that does not answer in this time is away.
const DEADLINE: Duration = Duration::from_secs(5);
/// The four of which Cluster API wants to know before it calls a Machine healthy.
const CONDITIONS: [(&str, &str); 4] = [
    ("Ready", "True"),
    ("MemoryPressure", "False"),
    ("DiskPressure", "False"),
    ("PIDPressure", "False"),
];

/// A real API server that plays the workload cluster of one Cluster, or of several.
#[derive(Clone)]
pub struct Workload {
    kubeconfig: Arc<str>,
    host: String,
    port: u16,
    nodes: Api<Node>,
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = (&self.host, self.port);
        f.debug_struct("Workload")
            .field("address", &address)
            .finish_non_exhaustive()
    }
}

impl Workload {
    /// This API server, whose administrator the kubeconfig of the Clusters names. The shim itself gets no more rights there than it needs.
    pub async fn at(access: &Access) -> Result<Self> {
        grant_in_workload(&access.client(&Identity::Admin).await?).await?;
        let kubeconfig = access.admin_kubeconfig().await?;
        let nodes = Api::all(access.client(&identity()).await?);
        Self::new(&kubeconfig, nodes)
    }

    /// The same API server as others are told of it by this kubeconfig: with other credentials, by another way, or wrongly.
    pub fn told_by(&self, kubeconfig: &str) -> Result<Self> {
        Self::new(kubeconfig, self.nodes.clone())
    }

    /// The same credentials where nobody listens: an API server that is away for everybody, for the shim too.
    pub async fn away(access: &Access) -> Result<Self> {
        let nobody = format!("https://127.0.0.1:{}", free_port()?);
        let authority = access.certificate_authority().to_owned();
        let access = Access::admin(nobody, authority, access.token().to_owned());
        let nodes = Api::all(access.client(&identity()).await?);
        Self::new(&access.admin_kubeconfig().await?, nodes)
    }

    fn new(kubeconfig: &str, nodes: Api<Node>) -> Result<Self> {
        let read: Value = serde_yaml::from_str(kubeconfig).context("a kubeconfig is no YAML")?;
        let server = read.pointer("/clusters/0/cluster/server").and_then(Value::as_str);
        let server = server.context("a kubeconfig has no server")?;
        let url = Url::parse(server).with_context(|| format!("{server} is no URL"))?;
        let (host, port) = (url.host_str(), url.port_or_known_default());
        let missing = || anyhow!("{server} has no host and port");
        Ok(Self {
            kubeconfig: kubeconfig.into(),
            host: host.ok_or_else(missing)?.to_owned(),
            port: port.ok_or_else(missing)?,
            nodes,
        })
    }

    /// What Cluster API and our operators connect with.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Whether it is another word for the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kubeconfig, &other.kubeconfig)
    }

    pub(super) fn endpoint(&self) -> Value {
        json!({ "host": self.host, "port": self.port })
    }

    /// A kubelet registers its Node. One that is there stays as it is.
    pub(super) async fn bring_node(&self, name: &str, provider_id: &str, version: &str) -> Result<()> {
        let node = node(name, provider_id, version)?;
        match in_time(self.nodes.create(&PostParams::default(), &node)).await {
            Ok(_) => Ok(()),
            Err(error) if is_answered(&error, 409) => Ok(()),
            Err(error) => Err(error.context(format!("failed to bring the Node {name}"))),
        }
    }

    /// The machine of a Node is gone. An API server that is away cannot keep it: what is left there is that cluster's own business.
    pub(super) async fn remove_node(&self, name: &str) -> Result<()> {
        match in_time(self.nodes.delete(name, &DeleteParams::default())).await {
            Ok(_) => Ok(()),
            Err(error) if is_answered(&error, 404) || !is_refused(&error) => Ok(()),
            Err(error) => Err(error.context(format!("failed to remove the Node {name}"))),
        }
    }
}

async fn in_time<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T> {
    let answer = tokio::time::timeout(DEADLINE, call).await;
    Ok(answer.with_context(|| format!("no answer in {DEADLINE:?}"))??)
}

/// Whether the API server answered, and would not.
fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(_)))
}

fn is_answered(error: &anyhow::Error, code: u16) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == code)
}

/// Ready from the beginning: there may be nothing that makes it so later.
fn node(name: &str, provider_id: &str, version: &str) -> Result<Node> {
    let conditions = CONDITIONS.map(|(kind, status)| json!({ "type": kind, "status": status, "reason": "Shim" }));
    let resources = json!({ "cpu": "8", "memory": "32Gi", "pods": "110" });
    let node = json!({
        "metadata": {
            "name": name,
            "labels": { "kubernetes.io/hostname": name },
        },
        "spec": {
            "providerID": provider_id,
            // As a bootstrap provider has it registered; Cluster API lifts it when it has set the labels.
            "taints": [{ "key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule" }],
        },
        "status": {
            "nodeInfo": {
                "kubeletVersion": version, "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "",
                "kubeProxyVersion": version, "machineID": "", "operatingSystem": "linux", "osImage": "", "systemUUID": "",
            },
            "capacity": resources, "allocatable": resources, "conditions": conditions,
        },
    });
    serde_json::from_value(node).context("our own Node cannot be read")
}
