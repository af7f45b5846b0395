//! Which releases are in use: the classes that Clusters name, wherever the Clusters live.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::names::ReleaseTag;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::{Discovery, DiscoveryError};
use operator_kit::object::GroupKind;
use operator_kit::pages::Pages;
use operator_kit::projection::{Notice, ProjectedWatch};
use operator_kit::shallow::Shallow;
use operator_kit::telemetry::Readiness;
use planning::topology::Topology;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::shared_answer::SharedAnswer;

/// The class that a Cluster uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassInUse {
    /// Namespace of the class.
    pub(crate) namespace: String,
    /// The release it comes from.
    pub(crate) tag: ReleaseTag,
}

/// The watch of Clusters. Keeps a class name per Cluster, nothing else.
pub(crate) struct Clusters {
    watch: ProjectedWatch<ClassInUse>,
    client: Client,
    discovery: Discovery,
    listed: SharedAnswer<Users, ClustersError>,
    crds: CrdWatch,
}

/// By release, the Clusters (`namespace/name`) that use it.
type Users = BTreeMap<(String, ReleaseTag), BTreeSet<String>>;

/// The API server did not say which Clusters there are.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClustersError {
    /// The kind could not be looked up.
    #[error("failed to look up the kind Cluster")]
    Discover(#[source] DiscoveryError),
    /// They could not be listed.
    #[error("failed to list the Clusters")]
    List(#[source] Box<kube::Error>),
}

/// Whole objects per page: a page of Clusters stays below a megabyte.
const PAGE_SIZE: u32 = 50;

/// The group of Clusters and their classes.
pub(crate) const CLUSTER_API_GROUP: &str = "cluster.x-k8s.io";

/// The watch of Clusters with what it stands on, and its news. Begun before a process leads where webhooks need it.
pub(crate) struct ClusterSight {
    pub(crate) discovery: Discovery,
    pub(crate) crds: CrdWatch,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) notices: mpsc::Receiver<Notice<ClassInUse>>,
}

impl ClusterSight {
    pub(crate) fn start(client: &Client, readiness: &Readiness, cancel: &CancellationToken) -> Self {
        let discovery = Discovery::new(client.clone());
        let crds = CrdWatch::start(client.clone(), discovery.clone(), readiness, cancel.clone());
        let (clusters, notices) = Clusters::start(client.clone(), discovery.clone(), &crds, cancel.clone());
        Self {
            discovery,
            crds,
            clusters: Arc::new(clusters),
            notices,
        }
    }

    /// Lets news pass while nobody acts on it: whoever begins to work looks at everything anyway, and a watch waits for its reader.
    pub(crate) async fn stand_by(&mut self) {
        while self.notices.recv().await.is_some() {}
        std::future::pending::<()>().await;
    }
}

impl Clusters {
    pub(crate) fn start(
        client: Client,
        discovery: Discovery,
        crds: &CrdWatch,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice<ClassInUse>>) {
        let (reader, kinds) = (client.clone(), discovery.clone());
        let (watch, notices) =
            ProjectedWatch::start(client, discovery, crds, kind(), |cluster| class_in_use(cluster), cancel);
        let clusters = Self {
            watch,
            client: reader,
            discovery: kinds,
            listed: SharedAnswer::default(),
            crds: crds.clone(),
        };
        (clusters, notices)
    }

    /// By release, the Clusters (`namespace/name`) that use its class in this namespace; `None` until all Clusters are known.
    pub(crate) fn used_by(&self, namespace: &str) -> Option<BTreeMap<ReleaseTag, BTreeSet<String>>> {
        if !self.watch.synced() {
            #[cfg(feature = "mutants")]
            if operator_kit::mutants::planted(operator_kit::mutants::Mutant::UnlistedIsUnused) {
                return Some(BTreeMap::new());
            }
            return None;
        }
        let mut used: BTreeMap<ReleaseTag, BTreeSet<String>> = BTreeMap::new();
        for ((cluster_namespace, name), class) in self.watch.snapshot() {
            if class.namespace == namespace {
                used.entry(class.tag.clone())
                    .or_default()
                    .insert(format!("{cluster_namespace}/{name}"));
            }
        }
        Some(used)
    }

    /// The releases that Clusters use, by namespace and tag; `None` until all Clusters are known.
    pub(crate) fn in_use(&self) -> Option<BTreeSet<(String, ReleaseTag)>> {
        let classes = self.watch.synced().then(|| self.watch.snapshot())?.into_iter();
        Some(
            classes
                .map(|(_, class)| (class.namespace.clone(), class.tag.clone()))
                .collect(),
        )
    }

    /// The Clusters (`namespace/name`) that use a release now, as the API server itself says. A watch may be behind by as long as it takes to begin
    /// again, and a release that is taken away in the meantime cannot be given back.
    pub(crate) async fn users_now(
        &self,
        namespace: &str,
        tag: &ReleaseTag,
    ) -> Result<BTreeSet<String>, Arc<ClustersError>> {
        #[cfg(feature = "mutants")]
        if operator_kit::mutants::planted(operator_kit::mutants::Mutant::UnlistedIsUnused) {
            return Ok(BTreeSet::new());
        }
        let place = (namespace.to_owned(), tag.clone());
        let of_release = |users: &Users| users.get(&place).cloned().unwrap_or_default();
        self.listed.ask(self.list(), of_release).await
    }

    /// Asks the API server for all Clusters.
    async fn list(&self) -> Result<Users, ClustersError> {
        let mut users = Users::new();
        let resolved = self.crds.resolve_kind(&self.discovery, &kind()).await;
        let Some(resolved) = resolved.map_err(ClustersError::Discover)? else {
            return Ok(users);
        };
        let mut pages = Pages::<Shallow<DynamicObject>>::new(resolved.api_within(&self.client, ""), "", PAGE_SIZE);
        while let Some(page) = pages.next_page().await {
            let page = page.map_err(|source| ClustersError::List(Box::new(source)))?;
            for cluster in &page {
                if let Some(class) = class_in_use(cluster) {
                    let place = format!("{}/{}", cluster.namespace().unwrap_or_default(), cluster.name_any());
                    users.entry((class.namespace, class.tag)).or_default().insert(place);
                }
            }
        }
        Ok(users)
    }
}

fn kind() -> GroupKind {
    GroupKind::new(CLUSTER_API_GROUP, "Cluster")
}

/// A Cluster without topology, or with a class that is not named like ours, is none of our business.
pub(crate) fn class_in_use(cluster: &DynamicObject) -> Option<ClassInUse> {
    let own = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let topology = Topology::of(&cluster.data, own)?;
    Some(ClassInUse {
        tag: topology.class_name().ok()?.into(),
        namespace: topology.class_namespace,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(spec: &Value) -> Option<(String, String)> {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": {"name": "web", "namespace": "team"}, "spec": spec,
        });
        let cluster = serde_json::from_value(cluster).expect("an object");
        class_in_use(&cluster).map(|class| (class.namespace, class.tag.to_string()))
    }

    #[test]
    fn both_spellings_of_the_class_are_read() {
        let table = [
            (
                json!({"topology": {"class": "docker-harbor-1-34-v1"}}),
                Some(("team", "docker-harbor-1-34-v1")),
            ),
            (
                json!({"topology": {"class": "docker-harbor-1-34-v0-sha.abc", "classNamespace": "fleet"}}),
                Some(("fleet", "docker-harbor-1-34-v0-sha-abc")),
            ),
            (
                json!({"topology": {"classRef": {"name": "docker-harbor-1-34-v2", "namespace": "fleet"}}}),
                Some(("fleet", "docker-harbor-1-34-v2")),
            ),
            (json!({"topology": {"class": "somebody-elses"}}), None),
            (json!({"topology": null}), None),
            (json!({}), None),
        ];
        for (spec, expected) in table {
            let expected = expected.map(|(namespace, tag)| (namespace.to_owned(), tag.to_owned()));
            assert_eq!(of(&spec), expected, "{spec}");
        }
    }
}
