//! Which kinds are served, and how they are addressed. Answers from memory; asks the API server only when it must.
//!
//! A kind that was not there is remembered as missing until [`Discovery::invalidate`], so an object whose CRD is not
//! installed costs one pair of requests, not one per reconcile.
//!
//! An API that another server answers (by an `APIService`) and that is away is listed with what was known of it last, or with nothing, and marked
//! as stale. What such a list lacks may well be served, so that it counts as unknown and never as missing.

mod aggregated;
mod unaggregated;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, Arc, PoisonError, RwLock, Weak};

use kube::Resource;
use kube::api::{Api, DynamicObject};
use kube::client::{APIGroupDiscovery, APIResourceDiscovery, Client};
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind};
use kube::discovery::Scope;
use tokio::sync::Mutex;

use self::aggregated::{Answer, Tags};
use crate::failure::Class;
use crate::object::{GroupKind, group_kind};

/// Most kinds that are remembered of an API server, each version of one counted, and each version of a group. With what an honest one says of each, fewer fit into
/// an [answer](crate::parts::MOST_PARTS); some 30 MiB where all names are as long as may be.
const MOST: usize = 10_000;

/// Bytes of the longest name: that of a group, which may be a DNS name, and is remembered with each of its kinds.
const LONGEST: usize = 253;

/// Discovery could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server did not answer the discovery requests.
    #[error("failed to read which kinds the API server serves")]
    Read(#[source] Box<kube::Error>),
    /// The list of kinds of a group is not up to date, and the kind is not in it.
    #[error(
        "unable to tell whether {kind} is served: the server behind the API group does not answer the API server; look at its APIService"
    )]
    Stale {
        /// Which kind.
        kind: GroupKind,
    },
    /// Discovery has not the kind, and does not show every CRD of its group.
    #[error(
        "unable to tell whether {kind} is served: the API server does not show every CRD of its group; look whether all of them are established"
    )]
    Incomplete {
        /// Which kind.
        kind: GroupKind,
    },
    /// No API server serves what this one says.
    #[error(
        "the API server says that it serves more than {MOST} kinds, or one with too long a name; look whether it is one"
    )]
    Excessive,
    /// Discovery has not the kind, and nobody knows whether it shows every CRD.
    #[error("unable to tell whether {kind} is served: the list of CustomResourceDefinitions failed: {words}")]
    Unlisted {
        /// Which kind.
        kind: GroupKind,
        /// Why, in the API server's words.
        words: String,
    },
}

impl DiscoveryError {
    /// Always worth another attempt: the API server serves discovery whenever it serves anything.
    pub fn class(&self) -> Class {
        Class::Transient
    }
}

/// A served kind in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What [`Api::dynamic`] needs.
    pub resource: ApiResource,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Whether the kind has a `/status` subresource, so that status writes do not raise the generation.
    pub has_status: bool,
}

impl Resolved {
    /// The API for one object of this kind; a namespace given for a cluster-scoped kind is ignored.
    pub fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let api = Api::dynamic(client.clone(), &self.resource, &self.scope);
        match namespace {
            Some(namespace) if self.scope == Scope::Namespaced => api.constrain(namespace),
            _ => api,
        }
    }

    /// The API for the objects of this kind in one namespace; in all when it is empty, or when the kind has none.
    pub fn api_within<K>(&self, client: &Client, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        if self.scope == Scope::Namespaced && !namespace.is_empty() {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }
}

/// The cache of discovery. Clones share it.
#[derive(Clone)]
pub struct Discovery {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    catalogues: Catalogues,
    catalogue: RwLock<Option<Arc<Catalogue>>>,
    /// How often somebody said that what is served may have changed.
    wanted: AtomicU64,
    /// The value of `wanted` that the catalogue answers.
    covered: AtomicU64,
    reading: Mutex<()>,
    /// The groups of which a reading said something else than the one before, since they were last taken. Whoever reads has a question of his own; those
    /// who wait for a kind must hear of it all the same.
    differences: sync::Mutex<BTreeSet<String>>,
}

impl Inner {
    fn differences(&self) -> sync::MutexGuard<'_, BTreeSet<String>> {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What discovery told at one time.
#[derive(Debug, Default, PartialEq, Eq)]
struct Catalogue {
    /// Versions in the API server's order of preference.
    kinds: HashMap<GroupKind, Vec<Resolved>>,
    /// Their plurals, by group: so each CRD finds what is served of it.
    plurals: HashMap<String, HashSet<String>>,
    /// Groups and versions whose list is not up to date.
    stale: HashSet<(String, String)>,
    /// By which an API server knows that it says just this.
    tags: Tags,
}

impl Catalogue {
    fn is_stale(&self, group: &str, version: Option<&str>) -> bool {
        let mut stale = self.stale.iter();
        stale.any(|(of, in_version)| of == group && version.is_none_or(|version| version == in_version))
    }

    /// The groups of which the two say something else.
    fn differences(&self, other: &Self) -> BTreeSet<String> {
        let kinds = self.kinds.keys().chain(other.kinds.keys());
        let kinds = kinds.filter(|kind| self.kinds.get(*kind) != other.kinds.get(*kind));
        let stale = self.stale.symmetric_difference(&other.stale);
        let groups = kinds.map(|kind| &kind.group).chain(stale.map(|(group, _)| group));
        groups.cloned().collect()
    }
}

/// What several API servers say alike, kept once for all of them. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Catalogues(Arc<sync::Mutex<Vec<Weak<Catalogue>>>>);

impl Catalogues {
    /// The same, as it may be kept already.
    fn keep(&self, fresh: Catalogue) -> Arc<Catalogue> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|kept| kept.strong_count() > 0);
        if let Some(same) = known.iter().filter_map(Weak::upgrade).find(|kept| **kept == fresh) {
            return same;
        }
        let fresh = Arc::new(fresh);
        known.push(Arc::downgrade(&fresh));
        fresh
    }
}

impl Discovery {
    /// Reads nothing yet; the first question does.
    pub fn new(client: Client) -> Self {
        Self::sharing(client, &Catalogues::default())
    }

    /// The same, of one of many API servers that may say the same.
    pub fn sharing(client: Client, catalogues: &Catalogues) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                catalogues: catalogues.clone(),
                catalogue: RwLock::new(None),
                wanted: AtomicU64::new(1),
                covered: AtomicU64::new(0),
                reading: Mutex::new(()),
                differences: sync::Mutex::default(),
            }),
        }
    }

    /// The kind in exactly this version; `None` when the API server does not serve it.
    pub async fn resolve(&self, gvk: &GroupVersionKind) -> Result<Option<Resolved>, DiscoveryError> {
        self.look_up(&group_kind(gvk), Some(&gvk.version)).await
    }

    /// The kind in the version that the API server prefers; `None` when it is not served at all.
    pub async fn resolve_kind(&self, kind: &GroupKind) -> Result<Option<Resolved>, DiscoveryError> {
        self.look_up(kind, None).await
    }

    /// What is served may have changed: the next question that memory cannot answer asks the API server again.
    pub fn invalidate(&self) {
        self.inner.wanted.fetch_add(1, Ordering::SeqCst);
    }

    /// Reads discovery now.
    pub async fn refresh(&self) -> Result<(), DiscoveryError> {
        self.invalidate();
        self.read_when_stale().await
    }

    /// The groups of which discovery has said something else than was known, whoever read it, since this was last asked. For the one that tells all
    /// others, the watch of CRDs.
    pub(crate) fn take_differences(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.inner.differences())
    }

    /// Whether a resource (plural and group, as in the name of its CRD) is served in any version, from memory.
    pub fn knows_resource(&self, plural: &str, group: &str) -> bool {
        self.catalogue().is_some_and(|catalogue| {
            let plurals = catalogue.plurals.get(group);
            plurals.is_some_and(|plurals| plurals.contains(plural))
        })
    }

    /// Whether the list of kinds of this group is not up to date, from memory.
    pub fn is_stale_for(&self, group: &str) -> bool {
        self.catalogue()
            .is_some_and(|catalogue| catalogue.is_stale(group, None))
    }

    async fn look_up(&self, kind: &GroupKind, version: Option<&str>) -> Result<Option<Resolved>, DiscoveryError> {
        let find = |catalogue: &Catalogue| {
            let mut served = catalogue.kinds.get(kind)?.iter();
            let wanted = |served: &&Resolved| version.is_none_or(|version| served.resource.version == version);
            served.find(wanted).cloned()
        };
        if let Some(found) = self.catalogue().as_deref().and_then(find) {
            return Ok(Some(found));
        }
        if self.is_stale() {
            self.read_when_stale().await?;
        }
        let Some(catalogue) = self.catalogue() else {
            return Ok(None);
        };
        let found = find(&catalogue);
        if found.is_none() && catalogue.is_stale(&kind.group, version) {
            return Err(DiscoveryError::Stale { kind: kind.clone() });
        }
        Ok(found)
    }

    /// One reader at a time; who waited for a reading that answers its question does not read again.
    async fn read_when_stale(&self) -> Result<(), DiscoveryError> {
        let _reading = self.inner.reading.lock().await;
        if !self.is_stale() {
            return Ok(());
        }
        let wanted = self.inner.wanted.load(Ordering::SeqCst);
        let fresh = self.read().await?;
        let mut slot = self.inner.catalogue.write().unwrap_or_else(PoisonError::into_inner);
        // Who asked before there was any was told an error, and asks again by himself.
        let differences = slot.as_deref().map(|known| fresh.differences(known));
        *slot = Some(fresh);
        self.inner.differences().extend(differences.unwrap_or_default());
        self.inner.covered.store(wanted, Ordering::SeqCst);
        Ok(())
    }

    /// What the API server says now. What it says just as before it need not say again.
    async fn read(&self) -> Result<Arc<Catalogue>, DiscoveryError> {
        let known = self.catalogue();
        let tags = known.as_deref().map(|known| known.tags.clone()).unwrap_or_default();
        let answer = aggregated::read(&self.inner.client, &tags).await.map_err(unread)?;
        let fresh = match (answer, known) {
            (Answer::Same, Some(known)) => return Ok(known),
            (Answer::Other(groups, tags), _) if !groups.is_empty() => catalogue_of(groups, tags)?,
            // No API server serves nothing: it answered in the older form, of which none of this was read.
            _ => {
                let groups = unaggregated::read(&self.inner.client).await?;
                catalogue_of(groups, Tags::default())?
            }
        };
        Ok(self.inner.catalogues.keep(fresh))
    }

    fn is_stale(&self) -> bool {
        self.inner.covered.load(Ordering::SeqCst) < self.inner.wanted.load(Ordering::SeqCst)
    }

    fn catalogue(&self) -> Option<Arc<Catalogue>> {
        self.inner
            .catalogue
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// How aggregated discovery marks a list that it could not fetch (`k8s.io/api/apidiscovery/v2`, `DiscoveryFreshnessStale`).
const STALE: &str = "Stale";

fn unread(source: kube::Error) -> DiscoveryError {
    DiscoveryError::Read(Box::new(source))
}

fn catalogue_of(groups: impl IntoIterator<Item = APIGroupDiscovery>, tags: Tags) -> Result<Catalogue, DiscoveryError> {
    let mut catalogue = Catalogue {
        tags,
        ..Catalogue::default()
    };
    let mut room = Room::default();
    for group in groups {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            let Some(number) = version.version else { continue };
            room.take(version.resources.len() + 1, &[&name, &number])?;
            if version.freshness.as_deref() == Some(STALE) {
                catalogue.stale.insert((name.clone(), number.clone()));
            }
            for resolved in version
                .resources
                .into_iter()
                .filter_map(|resource| resolved_of(&name, &number, resource))
            {
                room.take(0, &[&resolved.resource.kind, &resolved.resource.plural])?;
                let kind = GroupKind::new(&name, &resolved.resource.kind);
                let versions = catalogue.kinds.entry(kind).or_default();
                // A second plural for the same kind is a view of it (as with metrics); the first one listed is the object.
                if versions.iter().all(|known| known.resource.version != number) {
                    let plurals = catalogue.plurals.entry(name.clone()).or_default();
                    plurals.insert(resolved.resource.plural.clone());
                    versions.push(resolved);
                }
            }
        }
    }
    Ok(catalogue)
}

/// How many kinds may come yet.
struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Room {
    /// So many more, with these names.
    fn take(&mut self, count: usize, names: &[&str]) -> Result<(), DiscoveryError> {
        let is_short = names.iter().all(|name| name.len() <= LONGEST);
        let left = self.0.checked_sub(count).filter(|_| is_short);
        self.0 = left.ok_or(DiscoveryError::Excessive)?;
        Ok(())
    }
}

fn resolved_of(group: &str, version: &str, resource: APIResourceDiscovery) -> Option<Resolved> {
    let gvk = GroupVersionKind::gvk(group, version, &resource.response_kind?.kind?);
    let scope = if resource.scope.as_deref() == Some("Namespaced") {
        Scope::Namespaced
    } else {
        Scope::Cluster
    };
    Some(Resolved {
        resource: ApiResource::from_gvk_with_plural(&gvk, &resource.resource?),
        scope,
        has_status: resource
            .subresources
            .iter()
            .any(|sub| sub.subresource.as_deref() == Some("status")),
    })
}

#[cfg(test)]
mod tests;
