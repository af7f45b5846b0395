//! A fleet and the one real API server that all of its clusters are, reached in several ways: what add-ons make there is called after the Cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, ClusterAddonStatus, labels};
use e2e::{ControlPlane, Journey, Operator, Options, audit::Mark, eventually, journey::SOON};
use futures::{TryStreamExt, stream};
use k8s_openapi::api::{
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::Role,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{
    by_hand::{ByHand, stack_of},
    ground::{CLUSTER_API, status},
};

const STACK: &str = "harbor";
/// How the operator calls itself at every API server.
const OPERATOR: &str = "stackwright-core-operator";
/// Where the add-ons are in a cluster.
const NAMESPACE: &str = "kube-system";
/// Requests of the test at once.
const WRITERS: usize = 8;

/// One chart with three objects, each called after its cluster.
const ADD_ONS: [(&str, &str); 5] = [
    (
        "clusteraddon.yaml",
        "apiVersion: clusteraddonconfig.x-k8s.io/v1alpha1\n\
         clusterAddonVersion: clusteraddons.clusterstack.x-k8s.io/v1alpha1\n\
         addonStages:\n  AfterControlPlaneInitialized:\n  - name: note\n    action: apply\n",
    ),
    (
        "cluster-addon/note/Chart.yaml",
        "apiVersion: v2\nname: note\ndescription: Says whose cluster it is\ntype: application\nversion: 0.1.0\n",
    ),
    ("cluster-addon/note/values.yaml", "cluster: unnamed\n"),
    (
        "cluster-addon/note/overwrite.yaml",
        "cluster: {{ .Cluster.metadata.name | quote }}\n",
    ),
    (
        "cluster-addon/note/templates/note.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.cluster }}\n\
         data:\n  cluster: {{ .Values.cluster | quote }}\n  addons: << .ClusterAddonVersion >>\n\
         ---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Values.cluster }}\n\
         ---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {{ .Values.cluster }}\n\
         rules:\n- apiGroups: [\"\"]\n  resources: [configmaps]\n  resourceNames: [{{ .Values.cluster }}]\n  verbs: [get]\n",
    ),
];

/// The names of so many clusters.
pub(super) fn names(stem: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{stem}-{number:02}")).collect()
}

/// The Clusters of one class each, and where they are.
pub(super) struct Fleet<'j> {
    pub(super) journey: &'j Journey,
    /// Each version of the add-ons as a class.
    classes: [String; 2],
    /// That of those with which nothing is wrong.
    pub(super) kubeconfig: String,
    pub(super) workload: ControlPlane,
}

impl<'j> Fleet<'j> {
    /// Starts the operator and makes both classes.
    pub(super) async fn found(journey: &'j mut Journey) -> Result<(Self, Operator)> {
        journey.options.flags.push("--allow-workload-loopback".into());
        // Every decision about a hundred clusters is more than anybody reads.
        journey.options.record = None;
        let journey: &Journey = journey;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        operator.ready().await?;
        let source = stack_of(&ADD_ONS)?;
        let publish = |version| journey.releases.publish_stack(&source.path(), version);
        let classes = [publish("v1")?, publish("v2")?];
        let workload = ControlPlane::start(Options::default()).await?;
        journey.stack(STACK, json!({ "versions": ["v1", "v2"] })).await?;
        for class in &classes {
            journey.release_ready(class).await?;
        }
        let fleet = Self {
            classes,
            kubeconfig: workload.access().admin_kubeconfig().await?,
            workload,
            journey,
        };
        Ok((fleet, operator))
    }

    /// A Cluster of the first class, whose kubeconfig is this.
    pub(super) fn cluster(&self, name: &str, kubeconfig: &str) -> ByHand {
        ByHand::new(name, &self.classes[0], kubeconfig.as_bytes())
    }

    /// Brings Clusters of the first class about, whose kubeconfig is this.
    pub(super) async fn bring(&self, names: &[&str], kubeconfig: &str) -> Result<()> {
        let clusters = stream::iter(names.iter().map(|name| Ok(self.cluster(name, kubeconfig))));
        clusters
            .try_for_each_concurrent(WRITERS, async |cluster: ByHand| {
                cluster.bring(self.journey).await.map(drop)
            })
            .await
    }

    /// Gives Clusters the second class.
    pub(super) async fn upgrade(&self, names: &[&str]) -> Result<()> {
        let class = json!({ "spec": { "topology": { "class": self.classes[1] } } });
        let clusters = self.journey.objects(CLUSTER_API, "Cluster");
        stream::iter(names.iter().map(Ok))
            .try_for_each_concurrent(WRITERS, async |name| {
                let patched = clusters
                    .patch(name, &PatchParams::default(), &Patch::Merge(&class))
                    .await;
                patched.map(drop).context("failed to change the class of a Cluster")
            })
            .await
    }

    /// The ClusterAddons, by their Clusters.
    async fn addons(&self) -> Result<BTreeMap<String, ClusterAddon>> {
        let addons = self.journey.api::<ClusterAddon>().list(&ListParams::default()).await;
        let addons = addons.context("failed to list the ClusterAddons")?.items.into_iter();
        let of = |addon: &ClusterAddon| addon.spec.cluster_ref.name.clone().unwrap_or_default();
        Ok(addons.map(|addon| (of(&addon), addon)).collect())
    }

    /// Waits until the ClusterAddons of these Clusters are so, which a check refuses with what there is instead.
    pub(super) async fn until(
        &self,
        what: &str,
        names: &[&str],
        is_so: impl Fn(&str, &ClusterAddonStatus) -> Result<()>,
    ) -> Result<()> {
        eventually(SOON, what, async || {
            let addons = self.addons().await?;
            let mut others = names.iter().filter_map(|name| {
                let told = addons.get(*name).map(status).unwrap_or_default();
                Some(is_so(name, &told).err()?.context((*name).to_owned()))
            });
            let Some(first) = others.next() else { return Ok(()) };
            Err(first.context(format!("{} of {}", 1 + others.count(), names.len())))
        })
        .await
    }

    /// Waits until these clusters have all add-ons of this version, as their ClusterAddons say; then that is so.
    pub(super) async fn have(&self, version: usize, names: &[&str]) -> Result<()> {
        let class = &self.classes[version - 1];
        self.until(&format!("the add-ons of {class}"), names, |_, status| {
            let applied = status.applied.as_ref().map(|applied| &applied.cluster_stack);
            ensure!(status.ready && applied == Some(class), "{:#?}", status.conditions);
            Ok(())
        })
        .await?;
        let version = format!("v{version}");
        let notes = self.made::<ConfigMap>().await?;
        for name in names {
            let note = notes.get(*name).and_then(|note| note.data.as_ref());
            let says = |key: &str| note.and_then(|note| note.get(key)).map(String::as_str);
            ensure!(
                says("cluster") == Some(*name) && says("addons") == Some(version.as_str()),
                "{name}: {note:?}"
            );
        }
        let accounts: BTreeSet<_> = self.made::<ServiceAccount>().await?.into_keys().collect();
        let roles: BTreeSet<_> = self.made::<Role>().await?.into_keys().collect();
        let is_whole = |name: &&str| accounts.contains(*name) && roles.contains(*name);
        ensure!(names.iter().all(is_whole), "{accounts:?} {roles:?}");
        Ok(())
    }

    /// What the operator has made of a kind in the API server of the clusters, by its name.
    pub(super) async fn made<K>(&self) -> Result<BTreeMap<String, K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let ours = ListParams::default().labels(labels::PART_OF);
        let made = Api::<K>::namespaced(self.workload.client(), NAMESPACE)
            .list(&ours)
            .await;
        let made = made.context("failed to list what add-ons made")?.items.into_iter();
        Ok(made.map(|object| (object.name_any(), object)).collect())
    }

    /// The versions of all that is written of these clusters: of their ClusterAddons, and of what they made.
    pub(super) async fn written(&self, names: &[&str]) -> Result<BTreeMap<(&'static str, String), String>> {
        let addons = self.addons().await?;
        let notes = self.made::<ConfigMap>().await?;
        let (accounts, roles) = (self.made::<ServiceAccount>().await?, self.made::<Role>().await?);
        let mut written = BTreeMap::new();
        for name in names {
            let versions = [
                (
                    "ClusterAddon",
                    addons.get(*name).and_then(ResourceExt::resource_version),
                ),
                ("ConfigMap", notes.get(*name).and_then(ResourceExt::resource_version)),
                (
                    "ServiceAccount",
                    accounts.get(*name).and_then(ResourceExt::resource_version),
                ),
                ("Role", roles.get(*name).and_then(ResourceExt::resource_version)),
            ];
            for (kind, version) in versions {
                let version = version.with_context(|| format!("there is no {kind} of {name}"))?;
                written.insert((kind, (*name).to_owned()), version);
            }
        }
        Ok(written)
    }

    /// The longest time without a write to the clusters since then, while there were any.
    pub(super) async fn longest_silence(&self, mark: Mark) -> Result<Duration> {
        let writes = self.workload.audit_log().told(mark, OPERATOR).await?;
        let mut times: Vec<_> = writes
            .of_agent(OPERATOR)
            .writes()
            .iter()
            .map(|write| write.received)
            .collect();
        times.sort_unstable();
        let silences = times
            .windows(2)
            .map(|pair| pair[1].duration_since(pair[0]).unsigned_abs());
        silences.max().context("nothing was written")
    }
}
