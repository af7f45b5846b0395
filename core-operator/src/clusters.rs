//! Which releases are in use: the classes that Clusters name, wherever the Clusters live; and of Clusters that have add-ons of ours, or may have, what
//! decides about these.

mod facts;
mod mark;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use crds::names::ReleaseTag;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::{Discovery, DiscoveryError};
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::pages::Pages;
use operator_kit::projection::{Notice, Place, ProjectedWatch};
use operator_kit::read::{ReadError, read};
use operator_kit::shallow::Shallow;
use operator_kit::telemetry::Readiness;
use planning::topology::Topology;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::facts::{ClusterFacts, Part};
pub(crate) use self::mark::Mark;
use crate::shared_answer::SharedAnswer;

/// The class that a Cluster uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClassInUse {
    /// Namespace of the class.
    pub(crate) namespace: String,
    /// The release it comes from.
    pub(crate) tag: ReleaseTag,
}

/// What is kept of Clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// The class, where it is named like one of ours.
    Classes,
    /// Besides, what decides about add-ons: of these Clusters, and of those that have a ClusterAddon.
    Facts,
}

/// What is kept of one Cluster. Nothing of those of foreign classes, or without one, that have no ClusterAddon.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) class: Option<ClassInUse>,
    pub(crate) facts: Option<Box<ClusterFacts>>,
}

/// Why the ClusterAddon of a Cluster could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmade {
    /// In the words of whoever refused it.
    pub(crate) why: String,
    /// Its namespace is being deleted.
    pub(crate) namespace_ends: bool,
}

/// The watch of Clusters.
pub(crate) struct Clusters {
    watch: ProjectedWatch<Kept>,
    /// Those that have a ClusterAddon.
    tended: Arc<RwLock<HashSet<Place>>>,
    /// Why those that shall have a ClusterAddon have none, where making it failed.
    unmade: RwLock<HashMap<Place, Unmade>>,
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

/// Whether kinds of a group can be part of a cluster: those of Cluster API and of its providers. Whoever may write Clusters leads us to no others.
pub(crate) fn is_of_cluster_api(group: &str) -> bool {
    group
        .strip_suffix(CLUSTER_API_GROUP)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// The watch of Clusters with what it stands on, and its news. Begun before a process leads where webhooks need it.
pub(crate) struct ClusterSight {
    pub(crate) discovery: Discovery,
    pub(crate) crds: CrdWatch,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) notices: mpsc::Receiver<Notice<Kept>>,
}

impl ClusterSight {
    pub(crate) fn start(client: &Client, keeps: Keeps, readiness: &Readiness, cancel: &CancellationToken) -> Self {
        let discovery = Discovery::new(client.clone());
        let crds = CrdWatch::start(client.clone(), discovery.clone(), readiness, cancel.clone());
        let (clusters, notices) = Clusters::start(client.clone(), discovery.clone(), &crds, keeps, cancel.clone());
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
        keeps: Keeps,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice<Kept>>) {
        let (reader, kinds) = (client.clone(), discovery.clone());
        let tended = Arc::new(RwLock::new(HashSet::new()));
        let of_add_ons = Arc::clone(&tended);
        let project = move |cluster: &Shallow<DynamicObject>| kept(cluster, keeps, &of_add_ons);
        let (watch, notices) = ProjectedWatch::start(client, discovery, crds, kind(), project, cancel);
        let clusters = Self {
            watch,
            tended,
            unmade: RwLock::default(),
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
        for ((cluster_namespace, name), kept) in self.watch.snapshot() {
            if let Some(class) = kept.class.as_ref().filter(|class| class.namespace == namespace) {
                used.entry(class.tag.clone())
                    .or_default()
                    .insert(format!("{cluster_namespace}/{name}"));
            }
        }
        Some(used)
    }

    /// The releases that Clusters use, by namespace and tag; `None` until all Clusters are known.
    pub(crate) fn in_use(&self) -> Option<BTreeSet<(String, ReleaseTag)>> {
        let all = self.watch.synced().then(|| self.watch.snapshot())?.into_iter();
        let classes = all.filter_map(|(_, kept)| kept.class.clone());
        Some(classes.map(|class| (class.namespace, class.tag)).collect())
    }

    /// Whether all Clusters are known: before that, absence means nothing.
    pub(crate) fn is_listed(&self) -> bool {
        self.watch.synced()
    }

    /// What decides about the add-ons of a Cluster, as the watch saw it last. `None` also of Clusters of which that is not kept.
    pub(crate) fn facts(&self, namespace: &str, name: &str) -> Option<ClusterFacts> {
        self.watch.get(namespace, name)?.facts.as_deref().cloned()
    }

    /// The Clusters (namespace and name) that the test accepts, of those of which facts are kept.
    pub(crate) fn with_facts(&self, accept: impl Fn(&Kept, &ClusterFacts) -> bool) -> Vec<Place> {
        let accept = |_: &Place, kept: &Kept| kept.facts.as_deref().is_some_and(|facts| accept(kept, facts));
        let accepted = self.watch.select(accept).into_iter();
        accepted.map(|(place, _)| place).collect()
    }

    /// The same as [`Self::facts`] of any Cluster as it is now, as the API server itself says; `None` when it says that there is none.
    pub(crate) async fn read(&self, namespace: &str, name: &str) -> Result<Option<ClusterFacts>, ReadError> {
        let key = ObjectKey::new(CLUSTER_API_GROUP, "Cluster", namespace, name);
        let found = read(&self.client, &self.discovery, &self.crds, &key).await?;
        Ok(found.as_ref().map(ClusterFacts::of))
    }

    /// The version in which the kind is served, for references to Clusters; `None` while it is not.
    pub(crate) async fn api_version(&self) -> Result<Option<String>, DiscoveryError> {
        let resolved = self.crds.resolve_kind(&self.discovery, &kind()).await?;
        Ok(resolved.map(|resolved| resolved.resource.api_version))
    }

    /// A Cluster has a ClusterAddon: from its next change on facts are kept, whatever its class.
    pub(crate) fn tend(&self, namespace: &str, name: &str) {
        let mut tended = self.tended.write().unwrap_or_else(PoisonError::into_inner);
        tended.insert((namespace.to_owned(), name.to_owned()));
    }

    /// It has none any more.
    pub(crate) fn forget(&self, namespace: &str, name: &str) {
        let mut tended = self.tended.write().unwrap_or_else(PoisonError::into_inner);
        tended.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// Its ClusterAddon was to be made: nothing is in the way, or this.
    pub(crate) fn note_unmade(&self, place: &Place, why: Option<Unmade>) {
        let mut unmade = self.unmade.write().unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => drop(unmade.insert(place.clone(), why)),
            None => drop(unmade.remove(place)),
        }
    }

    /// What was in the way of its ClusterAddon when it was to be made last.
    pub(crate) fn unmade(&self, namespace: &str, name: &str) -> Option<Unmade> {
        let unmade = self.unmade.read().unwrap_or_else(PoisonError::into_inner);
        unmade.get(&(namespace.to_owned(), name.to_owned())).cloned()
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

fn kept(cluster: &DynamicObject, keeps: Keeps, tended: &RwLock<HashSet<Place>>) -> Option<Kept> {
    let class = class_in_use(cluster);
    let is_tended = || {
        let place = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        tended.read().unwrap_or_else(PoisonError::into_inner).contains(&place)
    };
    let has_facts = keeps == Keeps::Facts && (class.is_some() || is_tended());
    let facts = has_facts.then(|| Box::new(ClusterFacts::of(cluster)));
    (class.is_some() || facts.is_some()).then_some(Kept { class, facts })
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
