//! A Cluster as Cluster API and its providers would make it and take it away, written by the test itself: what an operator reads of it, and no more.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, name_for},
    labels,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::stack::{NOTING, Version};
use crate::{Journey, eventually, journey::SOON};

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
const CONTROL_PLANES: (&str, &str) = ("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane");
const INFRASTRUCTURE: (&str, &str) = ("infrastructure.cluster.x-k8s.io/v1beta1", "DockerCluster");
/// With which Cluster API keeps a Cluster until everything of it is gone.
const FINALIZER: &str = "cluster.cluster.x-k8s.io";
const LAST_HOOK: &str = "BeforeClusterDelete";

/// How its workers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One of them is older than it shall be, for whatever reason.
    Roll,
    /// They are as they shall be, as is the whole Cluster.
    UpToDate,
}

/// A Cluster of a journey.
#[derive(Clone, Copy)]
pub struct Cluster<'a> {
    /// Whose.
    pub journey: &'a Journey,
    /// By which its add-ons are told from those of others, too.
    pub name: &'a str,
}

impl Cluster<'_> {
    /// Makes it with its control plane; its API server has not answered yet. The answer is its uid.
    pub async fn make(self, version: Version) -> Result<String> {
        let name = self.name;
        let object = |(api_version, kind): (&str, &str), spec: Value| {
            json!({
                "apiVersion": api_version, "kind": kind, "spec": spec,
                "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": name } },
            })
        };
        self.journey.apply(object(INFRASTRUCTURE, json!({}))).await?;
        let machines = json!({
            "apiVersion": INFRASTRUCTURE.0, "kind": "DockerMachineTemplate", "name": name,
        });
        let kubernetes = version.kubernetes();
        let plane = json!({
            "version": kubernetes, "replicas": 1, "kubeadmConfigSpec": {}, "machineTemplate": { "infrastructureRef": machines },
        });
        self.journey.apply(object(CONTROL_PLANES, plane)).await?;
        let reference =
            |(api_version, kind): (&str, &str)| json!({ "apiVersion": api_version, "kind": kind, "name": name });
        let spec = json!({
            "infrastructureRef": reference(INFRASTRUCTURE), "controlPlaneRef": reference(CONTROL_PLANES),
            "topology": { "class": version.class(), "version": kubernetes, "controlPlane": { "replicas": 1 } },
        });
        let mut cluster = object((CLUSTER_API, "Cluster"), spec);
        cluster["metadata"]["finalizers"] = json!([FINALIZER]);
        let made = self.journey.apply(cluster).await?;
        made.uid().context("it has an identity")
    }

    /// Its API server answers, and this kubeconfig leads there.
    pub async fn initialize(self, kubeconfig: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": self.kubeconfig(), "labels": { "cluster.x-k8s.io/cluster-name": self.name },
            },
            "stringData": { "value": kubeconfig },
        });
        self.journey.apply(secret).await?;
        let begun_with = Version::First.kubernetes();
        let plane = json!({ "version": begun_with, "initialized": true, "ready": true, "replicas": 1 });
        self.report(CONTROL_PLANES, plane).await?;
        self.report(
            (CLUSTER_API, "Cluster"),
            json!({ "conditions": conditions(true), "phase": "Provisioned" }),
        )
        .await
    }

    /// Cluster API counts its only worker.
    pub async fn report_workers(self, workers: Workers) -> Result<()> {
        let are_new = workers == Workers::UpToDate;
        let counts = json!({ "replicas": 1, "upToDateReplicas": i32::from(are_new) });
        self.report(
            (CLUSTER_API, "Cluster"),
            json!({ "conditions": conditions(are_new), "v1beta2": { "workers": counts } }),
        )
        .await
    }

    /// Its control plane is told the Kubernetes version of this version, and comes to have it.
    pub async fn upgrade_control_plane(self, version: Version) -> Result<()> {
        let kubernetes = version.kubernetes();
        let told = Patch::Merge(json!({ "spec": { "version": kubernetes } }));
        let planes = self.journey.objects(CONTROL_PLANES.0, CONTROL_PLANES.1);
        let patched = planes.patch(self.name, &PatchParams::default(), &told).await;
        patched.context("failed to change a control plane")?;
        self.report(CONTROL_PLANES, json!({ "version": kubernetes })).await
    }

    async fn report(self, (api_version, kind): (&str, &str), status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        let api = self.journey.objects(api_version, kind);
        let reported = api.patch_status(self.name, &PatchParams::default(), &patch).await;
        reported
            .map(drop)
            .with_context(|| format!("failed to report of {kind}"))
    }

    fn kubeconfig(self) -> String {
        format!("{}-kubeconfig", self.name)
    }

    fn api(self) -> Api<DynamicObject> {
        self.journey.objects(CLUSTER_API, "Cluster")
    }

    async fn merge(self, patch: Value) -> Result<()> {
        let patched = self
            .api()
            .patch(self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.map(drop).context("failed to change a Cluster")
    }

    /// As it is now.
    pub async fn read(self) -> Result<DynamicObject> {
        self.api().get(self.name).await.context("failed to read a Cluster")
    }

    /// Gives it another class, with the Kubernetes version that is its.
    pub async fn change(self, version: Version) -> Result<()> {
        let topology = json!({ "class": version.class(), "version": version.kubernetes() });
        self.merge(json!({ "spec": { "topology": topology } })).await
    }

    /// Writes words into a ConfigMap from which Clusters may take values.
    pub async fn write_words(self, words: &str) -> Result<()> {
        let holder = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": self.words(), "labels": { labels::VALUES: labels::VALUES_ALLOWED } },
            "data": { labels::VALUES_KEY: format!("words: {words}\n") },
        });
        self.journey.apply(holder).await.map(drop)
    }

    /// Has it take its values from there, too.
    pub async fn take_words(self) -> Result<()> {
        let from = format!("{NOTING}=configmap/{}", self.words());
        self.merge(json!({ "metadata": { "annotations": { labels::VALUES_FROM: from } } }))
            .await
    }

    /// Nobody needs the words any more.
    pub async fn erase_words(self) -> Result<()> {
        let holders = self.journey.objects("v1", "ConfigMap");
        let erased = holders.delete(&self.words(), &DeleteParams::default()).await;
        erased.map(drop).context("failed to delete words")
    }

    fn words(self) -> String {
        format!("{}-words", self.name)
    }

    /// Somebody asks for its end.
    pub async fn delete(self) -> Result<()> {
        let deleted = self.api().delete(self.name, &DeleteParams::default()).await;
        deleted.map(drop).context("failed to delete a Cluster")
    }

    /// What it consisted of is gone, and then it is too.
    pub async fn vanish(self) -> Result<()> {
        let gone = async |api: Api<DynamicObject>, name: &str| {
            let deleted = api.delete(name, &DeleteParams::default()).await;
            deleted.map(drop).with_context(|| format!("failed to delete {name}"))
        };
        let objects = |(api_version, kind): (&str, &str)| self.journey.objects(api_version, kind);
        gone(objects(CONTROL_PLANES), self.name).await?;
        gone(objects(INFRASTRUCTURE), self.name).await?;
        gone(objects(("v1", "Secret")), &self.kubeconfig()).await?;
        self.merge(json!({ "metadata": { "finalizers": null } })).await
    }

    /// Cluster API was told that nothing holds the end up any more.
    pub async fn let_go(self) -> Result<()> {
        self.merge(json!({ "metadata": { "annotations": { labels::OK_TO_DELETE: "" } } }))
            .await
    }

    /// Its ClusterAddon, if there is one.
    pub async fn addon(self) -> Result<Option<ClusterAddon>> {
        let addons = self.journey.api::<ClusterAddon>();
        let found = addons.get_opt(&name_for(self.name)).await;
        found.context("failed to read a ClusterAddon")
    }

    /// Its ClusterAddon, once it is so.
    pub async fn until(
        self,
        what: &str,
        holds: impl Fn(&ClusterAddon, &ClusterAddonStatus) -> bool,
    ) -> Result<ClusterAddon> {
        eventually(SOON, format!("{}: {what}", self.name), async || {
            let addon = self.addon().await?.context("there is no ClusterAddon")?;
            let status = addon.status.clone().unwrap_or_default();
            ensure!(holds(&addon, &status), "{status:#?}");
            Ok::<_, anyhow::Error>(addon)
        })
        .await
    }

    /// Waits until its add-ons are those of a version.
    pub async fn complete(self, version: Version) -> Result<ClusterAddon> {
        let class = version.class();
        self.until("its add-ons to be complete", |_, status| {
            let is_of_class = status
                .applied
                .as_ref()
                .is_some_and(|applied| applied.cluster_stack == class);
            status.ready && is_of_class && status.applied == status.target && is_over(status)
        })
        .await
    }

    /// Waits until they are so with other values than before.
    pub async fn complete_anew(self, version: Version, before: &ClusterAddon) -> Result<ClusterAddon> {
        let digest = |addon: &ClusterAddon| addon.status.as_ref()?.applied.as_ref()?.digest.clone();
        let old = digest(before);
        let renewed = self.until("its values to have arrived", |addon, _| {
            let new = digest(addon);
            new.is_some() && new != old
        });
        renewed.await?;
        self.complete(version).await
    }

    /// Is asked to go, and waits until nothing of its add-ons holds that up.
    pub async fn empty(self) -> Result<()> {
        self.delete().await?;
        self.emptied().await
    }

    /// Cluster API takes it away, and nothing is left of it.
    pub async fn end(self) -> Result<()> {
        self.let_go().await?;
        self.vanish().await?;
        self.forgotten().await
    }

    /// Waits until nothing of its add-ons holds up its deletion.
    pub async fn emptied(self) -> Result<()> {
        let emptied = self.until("its last stages to be done", |_, status| {
            let mut hooks = status.stages.iter().map(|stage| stage.hook.as_deref());
            hooks.all(|hook| hook == Some(LAST_HOOK)) && is_over(status)
        });
        emptied.await.map(drop)
    }

    /// Waits until there is no ClusterAddon of it, and nothing of what was drawn at random for it.
    pub async fn forgotten(self) -> Result<()> {
        let addon = name_for(self.name);
        self.journey.gone::<ClusterAddon>(&addon).await?;
        let (secrets, memo) = (self.journey.objects("v1", "Secret"), memo_of(&addon));
        eventually(SOON, format!("{memo} to be gone"), async || {
            let found = secrets.get_metadata_opt(&memo).await?;
            ensure!(found.is_none(), "it is there");
            Ok::<_, anyhow::Error>(())
        })
        .await
    }
}

/// Its API server has answered; whether Cluster API has given all of the Cluster what its topology says.
fn conditions(reconciled: bool) -> [Value; 2] {
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({ "type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    [
        condition("ControlPlaneInitialized", true),
        condition("TopologyReconciled", reconciled),
    ]
}

/// The name of the Secret with what was drawn at random for a ClusterAddon.
pub(super) fn memo_of(addon: &str) -> String {
    format!("{addon}-memo")
}

fn is_over(status: &ClusterAddonStatus) -> bool {
    !status.stages.is_empty() && status.stages.iter().all(|stage| stage.phase == StagePhase::Done)
}

/// Objects of a kind in a namespace, wherever.
pub fn objects(client: &Client, (api_version, kind): (&str, &str), namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), namespace, &kube::api::ApiResource::from_gvk(&kind))
}
