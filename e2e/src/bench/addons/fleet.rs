//! The Clusters that the benchmark writes, with what Cluster API and its providers would write of them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::ClusterAddon;
use e2e::operator::Operator;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{bench::replay::Identity, progress::Progress};

/// That of the stack.
pub(super) const KUBERNETES: &str = "v1.34.0";
/// Requests of the benchmark at once.
const WRITERS: usize = 32;
/// Longer than any working operator takes for what this benchmark is meant for.
const DEADLINE: Duration = Duration::from_mins(15);
/// How often the ClusterAddons are listed. What is measured is told by the audit logs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The same of a single one.
const SHORT_LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The names of so many Clusters.
pub(super) fn names(stem: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{stem}{number:04}")).collect()
}

/// Clusters in one namespace.
pub(super) struct Fleet {
    clusters: Api<DynamicObject>,
    control_planes: Api<DynamicObject>,
    secrets: Api<Secret>,
    addons: Api<ClusterAddon>,
}

/// Whether the API server of a cluster has answered once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initialized {
    Yes,
    NotYet,
}

impl Fleet {
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        let of_kind = |group, kind| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta1", kind));
            Api::namespaced_with(client.clone(), namespace, &resource)
        };
        Self {
            clusters: of_kind("cluster.x-k8s.io", "Cluster"),
            control_planes: of_kind("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
            secrets: Api::namespaced(client.clone(), namespace),
            addons: Api::namespaced(client.clone(), namespace),
        }
    }

    /// What there is before a Cluster is, here: its kubeconfig and its control plane.
    pub(super) async fn prepare(&self, name: &str, kubeconfig: &str, initialized: Initialized) -> Result<()> {
        let secret = serde_json::from_value(json!({
            "metadata": { "name": format!("{name}-kubeconfig"), "labels": { "cluster.x-k8s.io/cluster-name": name } },
            "type": "cluster.x-k8s.io/secret", "stringData": { "value": kubeconfig },
        }))
        .context("unable to read a Secret of our own")?;
        let created = self.secrets.create(&PostParams::default(), &secret).await;
        created.context("failed to create a kubeconfig")?;
        let control_plane = control_plane(name)?;
        let created = self.control_planes.create(&PostParams::default(), &control_plane).await;
        created.context("failed to create a control plane")?;
        if initialized == Initialized::Yes {
            self.initialize_control_plane(name).await?;
        }
        Ok(())
    }

    /// A control plane says that its API server has answered.
    pub(super) async fn initialize_control_plane(&self, name: &str) -> Result<()> {
        let status = json!({ "initialized": true, "ready": true, "version": KUBERNETES, "replicas": 1 });
        set_status(&self.control_planes, name, status).await
    }

    /// Creates a Cluster whose topology is reconciled.
    pub(super) async fn create(&self, name: &str, class: &str, initialized: Initialized) -> Result<Identity> {
        let created = self
            .clusters
            .create(&PostParams::default(), &cluster(name, class)?)
            .await
            .context("failed to create a Cluster")?;
        self.tell(name, initialized).await?;
        Ok(Identity {
            uid: created.uid().unwrap_or_default(),
            resource_version: created.resource_version().unwrap_or_default(),
        })
    }

    /// Writes the status of a Cluster, as Cluster API does.
    pub(super) async fn tell(&self, name: &str, initialized: Initialized) -> Result<()> {
        let now = Timestamp::now().to_string();
        let is = |type_: &str, status: bool| {
            let status = if status { "True" } else { "False" };
            json!({ "type": type_, "status": status, "lastTransitionTime": now })
        };
        let conditions = [
            is("TopologyReconciled", true),
            is("ControlPlaneInitialized", initialized == Initialized::Yes),
        ];
        let status = json!({ "infrastructureReady": true, "phase": "Provisioned", "conditions": conditions });
        set_status(&self.clusters, name, status).await
    }

    /// Gives a Cluster another class; the answer is the Cluster.
    async fn change(&self, name: &str, class: &str) -> Result<DynamicObject> {
        let topology = json!({ "spec": { "topology": { "class": class } } });
        let patched = self
            .clusters
            .patch(name, &PatchParams::default(), &Patch::Merge(topology))
            .await;
        patched.context("failed to change the class of a Cluster")
    }

    /// Creates all Clusters; who they are, by name.
    pub(super) async fn create_all(&self, names: &[String], class: &str) -> Result<BTreeMap<String, Identity>> {
        stream::iter(names)
            .map(async |name| Ok::<_, anyhow::Error>((name.clone(), self.create(name, class, Initialized::Yes).await?)))
            .buffer_unordered(WRITERS)
            .try_collect()
            .await
    }

    /// Gives all Clusters another class; the answer are the Clusters.
    pub(super) async fn change_all(&self, names: &[String], class: &str) -> Result<Vec<DynamicObject>> {
        stream::iter(names)
            .map(async |name| self.change(name, class).await)
            .buffer_unordered(WRITERS)
            .try_collect()
            .await
    }

    /// The kubeconfigs and control planes of all Clusters.
    pub(super) async fn prepare_all<'k>(&self, names: &[String], kubeconfig: impl Fn(usize) -> &'k str) -> Result<()> {
        stream::iter(names.iter().enumerate())
            .map(Ok)
            .try_for_each_concurrent(WRITERS, async |(number, name)| {
                self.prepare(name, kubeconfig(number), Initialized::Yes).await
            })
            .await
    }

    /// Waits until so many clusters have all add-ons of this class.
    pub(super) async fn until_complete(
        &self,
        count: usize,
        class: &str,
        operator: &mut Operator,
        progress: &Progress,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            operator.check()?;
            let listed = self.addons.list(&ListParams::default()).await;
            let listed = listed.context("failed to list the ClusterAddons")?;
            let complete = listed.iter().filter(|addon| is_complete(addon, class)).count();
            if complete >= count {
                return Ok(());
            }
            progress.tick(&format!("{complete} of {count} clusters have the add-ons of {class}"));
            ensure!(begin.elapsed() < DEADLINE, "{}", left(&listed.items, class, complete));
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Waits until the ClusterAddon of one Cluster is so.
    pub(super) async fn until(
        &self,
        name: &str,
        operator: &mut Operator,
        holds: impl Fn(&ClusterAddon) -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        let name = crds::cluster_addon::name_for(name);
        loop {
            operator.check()?;
            let addon = self.addons.get_opt(&name).await;
            let addon = addon.context("failed to read a ClusterAddon")?;
            if addon.as_ref().is_some_and(&holds) {
                return Ok(());
            }
            ensure!(
                begin.elapsed() < DEADLINE,
                "the ClusterAddon {name} is not as it should be: {addon:?}"
            );
            sleep(SHORT_LOOK_INTERVAL).await;
        }
    }
}

/// Whether all add-ons of the class are there.
pub(super) fn is_complete(addon: &ClusterAddon, class: &str) -> bool {
    addon.status.as_ref().is_some_and(|status| {
        let applied = status.applied.as_ref();
        status.ready && applied.is_some_and(|applied| applied.cluster_stack == class)
    })
}

/// What one of those says that are not complete.
fn left(addons: &[ClusterAddon], class: &str, complete: usize) -> String {
    let one = addons.iter().find(|addon| !is_complete(addon, class));
    let status = one.map(|addon| (addon.name_any(), &addon.status));
    format!("{complete} clusters have the add-ons of {class} after {DEADLINE:?}; one of the others: {status:?}")
}

async fn set_status(api: &Api<DynamicObject>, name: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    let patched = api.patch_status(name, &PatchParams::default(), &patch).await;
    patched
        .map(drop)
        .with_context(|| format!("failed to write the status of {name}"))
}

fn cluster(name: &str, class: &str) -> Result<DynamicObject> {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": name },
        "spec": {
            "controlPlaneRef": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "name": name,
            },
            "topology": { "class": class, "version": KUBERNETES },
        },
    });
    serde_json::from_value(cluster).context("unable to read a Cluster of our own")
}

fn control_plane(name: &str) -> Result<DynamicObject> {
    let control_plane = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane", "metadata": { "name": name },
        "spec": {
            "version": KUBERNETES, "replicas": 1, "kubeadmConfigSpec": {},
            "machineTemplate": { "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerMachineTemplate", "name": name,
            } },
        },
    });
    serde_json::from_value(control_plane).context("unable to read a control plane of our own")
}
