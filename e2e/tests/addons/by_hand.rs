//! Clusters without Cluster API: what it and the providers write is written here, so that many can be there at once, and in any state.

use anyhow::{Context, Result};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::name_for,
    conditions::{ConditionStatus, ConditionType, find},
};
use e2e::{Journey, releases::StackSource};
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::ground::{CLUSTER_API, status};

/// The Kubernetes version of the stacks here.
pub(crate) const KUBERNETES: &str = "v1.34.0";
const CONTROL_PLANE_API: &str = "controlplane.cluster.x-k8s.io/v1beta1";
const INFRASTRUCTURE_API: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
/// Of the Secret with a kubeconfig.
const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

/// A Cluster that is up, as its user, Cluster API and the providers have written it.
pub(crate) struct ByHand {
    pub(crate) name: String,
    /// Empty for none.
    pub(crate) class: String,
    pub(crate) kubernetes: String,
    /// What is otherwise in its spec.
    pub(crate) spec: Value,
    /// What is in its Secret, and the type of that.
    pub(crate) kubeconfig: Vec<u8>,
    pub(crate) secret_type: &'static str,
}

impl ByHand {
    pub(crate) fn new(name: &str, class: &str, kubeconfig: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            class: class.to_owned(),
            kubernetes: KUBERNETES.to_owned(),
            spec: json!({}),
            kubeconfig: kubeconfig.to_vec(),
            secret_type: SECRET_TYPE,
        }
    }

    /// Brings it about: last the Cluster itself, which says that it is up.
    pub(crate) async fn bring(&self, journey: &Journey) -> Result<DynamicObject> {
        let name = &self.name;
        journey.apply(self.control_plane()).await?;
        let reached = json!({ "status": { "initialized": true, "ready": true, "version": self.kubernetes } });
        let planes = journey.objects(CONTROL_PLANE_API, "KubeadmControlPlane");
        planes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(reached))
            .await
            .with_context(|| format!("failed to play the control plane of {name}"))?;
        let infrastructure = json!({
            "apiVersion": INFRASTRUCTURE_API, "kind": "DockerCluster", "metadata": { "name": name }, "spec": {},
        });
        journey.apply(infrastructure).await?;
        journey.apply(self.secret()).await?;
        journey.apply(self.cluster()).await?;
        let clusters = journey.objects(CLUSTER_API, "Cluster");
        let up = json!({ "status": {
            "phase": "Provisioned", "controlPlaneReady": true, "infrastructureReady": true,
            "conditions": [is_true("ControlPlaneInitialized"), is_true("TopologyReconciled")],
        } });
        let cluster = clusters
            .patch_status(name, &PatchParams::default(), &Patch::Merge(up))
            .await;
        cluster.with_context(|| format!("failed to play Cluster API for {name}"))
    }

    fn control_plane(&self) -> Value {
        let template = json!({ "apiVersion": INFRASTRUCTURE_API, "kind": "DockerMachineTemplate", "name": "any" });
        json!({
            "apiVersion": CONTROL_PLANE_API, "kind": "KubeadmControlPlane", "metadata": { "name": self.name },
            "spec": {
                "version": self.kubernetes, "replicas": 1, "kubeadmConfigSpec": {},
                "machineTemplate": { "infrastructureRef": template },
            },
        })
    }

    fn cluster(&self) -> Value {
        let part =
            |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": self.name });
        let mut spec = json!({
            "controlPlaneRef": part(CONTROL_PLANE_API, "KubeadmControlPlane"),
            "infrastructureRef": part(INFRASTRUCTURE_API, "DockerCluster"),
        });
        if !self.class.is_empty() {
            spec["topology"] = json!({ "class": self.class, "version": self.kubernetes });
        }
        for (field, value) in self.spec.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({ "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": self.name }, "spec": spec })
    }

    /// The Secret with its kubeconfig.
    pub(crate) fn secret(&self) -> Value {
        let data = k8s_openapi::ByteString(self.kubeconfig.clone());
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": self.secret_type,
            "metadata": { "name": format!("{}-kubeconfig", self.name) }, "data": { "value": data },
        })
    }
}

fn is_true(condition: &str) -> Value {
    json!({ "type": condition, "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z" })
}

/// Our own stack with these add-ons instead of its own: texts by their paths in the folder of the stack.
pub(crate) fn stack_of(add_ons: &[(&str, &str)]) -> Result<StackSource> {
    let source = StackSource::harbor("v1")?;
    source.remove("clusteraddon.yaml")?;
    let charts = source.path().join("cluster-addon");
    std::fs::remove_dir_all(&charts).with_context(|| format!("failed to remove {}", charts.display()))?;
    for (path, text) in add_ons {
        source.write(path, text)?;
    }
    Ok(source)
}

/// The ClusterAddon of a Cluster, once its status is so.
pub(crate) async fn until_status(
    journey: &Journey,
    cluster: &str,
    what: &str,
    holds: impl Fn(&ClusterAddonStatus) -> bool,
) -> Result<ClusterAddon> {
    let is_so = |addon: &ClusterAddon| holds(&status(addon));
    journey.until(&name_for(cluster), what, is_so).await
}

/// Whether a condition is false, and says this.
pub(crate) fn says(status: &ClusterAddonStatus, condition: ConditionType, words: &[&str]) -> bool {
    let Some(found) = find(&status.conditions, condition).filter(|found| found.status == ConditionStatus::False) else {
        return false;
    };
    let message = found.message.as_deref().unwrap_or_default();
    words.iter().any(|words| message.contains(words))
}
