//! Which kinds are served, and how they are addressed. Answers from memory; asks the API server only when it must.
//!
//! A kind that was not there is remembered as missing until [`Discovery::invalidate`], so an object whose CRD is not
//! installed costs one pair of requests, not one per reconcile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use futures::try_join;
use kube::api::{Api, DynamicObject};
use kube::client::{APIGroupDiscovery, APIResourceDiscovery, Client};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Scope;
use tokio::sync::Mutex;

use crate::failure::Class;
use crate::object::{GroupKind, group_kind};

/// Discovery could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server did not answer the aggregated discovery requests.
    #[error("failed to read which kinds the API server serves")]
    Read(#[source] Box<kube::Error>),
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
}

/// The cache of discovery. Clones share it.
#[derive(Clone)]
pub struct Discovery {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    catalogue: RwLock<Option<Arc<Catalogue>>>,
    /// How often somebody said that what is served may have changed.
    wanted: AtomicU64,
    /// The value of `wanted` that the catalogue answers.
    covered: AtomicU64,
    reading: Mutex<()>,
}

/// Versions in the API server's order of preference.
type Catalogue = HashMap<GroupKind, Vec<Resolved>>;

impl Discovery {
    /// Reads nothing yet; the first question does.
    pub fn new(client: Client) -> Self {
        Self {
            inner: Arc::new(Inner {
                client,
                catalogue: RwLock::new(None),
                wanted: AtomicU64::new(1),
                covered: AtomicU64::new(0),
                reading: Mutex::new(()),
            }),
        }
    }

    /// The kind in exactly this version; `None` when the API server does not serve it.
    pub async fn resolve(&self, gvk: &GroupVersionKind) -> Result<Option<Resolved>, DiscoveryError> {
        self.look_up(|catalogue| {
            catalogue
                .get(&group_kind(gvk))?
                .iter()
                .find(|served| served.resource.version == gvk.version)
                .cloned()
        })
        .await
    }

    /// The kind in the version that the API server prefers; `None` when it is not served at all.
    pub async fn resolve_kind(&self, kind: &GroupKind) -> Result<Option<Resolved>, DiscoveryError> {
        self.look_up(|catalogue| catalogue.get(kind)?.first().cloned()).await
    }

    /// What is served may have changed: the next question that memory cannot answer asks the API server again.
    pub fn invalidate(&self) {
        self.inner.wanted.fetch_add(1, Ordering::SeqCst);
    }

    /// Reads discovery now. True when something differs from what was known.
    pub async fn refresh(&self) -> Result<bool, DiscoveryError> {
        self.invalidate();
        self.read_when_stale().await
    }

    /// Whether a resource (plural and group, as in the name of its CRD) is served in any version, from memory.
    pub fn knows_resource(&self, plural: &str, group: &str) -> bool {
        self.catalogue().is_some_and(|catalogue| {
            catalogue
                .iter()
                .any(|(kind, served)| kind.group == group && served.iter().any(|entry| entry.resource.plural == plural))
        })
    }

    async fn look_up<T>(&self, find: impl Fn(&Catalogue) -> Option<T>) -> Result<Option<T>, DiscoveryError> {
        if let Some(found) = self.catalogue().as_deref().and_then(&find) {
            return Ok(Some(found));
        }
        if self.is_stale() {
            self.read_when_stale().await?;
        }
        Ok(self.catalogue().as_deref().and_then(&find))
    }

    /// One reader at a time; who waited for a reading that answers its question does not read again.
    async fn read_when_stale(&self) -> Result<bool, DiscoveryError> {
        let _reading = self.inner.reading.lock().await;
        if !self.is_stale() {
            return Ok(false);
        }
        let wanted = self.inner.wanted.load(Ordering::SeqCst);
        let fresh = Arc::new(read(&self.inner.client).await?);
        let mut slot = self.inner.catalogue.write().unwrap_or_else(PoisonError::into_inner);
        let changed = slot.as_ref() != Some(&fresh);
        *slot = Some(fresh);
        self.inner.covered.store(wanted, Ordering::SeqCst);
        Ok(changed)
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

async fn read(client: &Client) -> Result<Catalogue, DiscoveryError> {
    let (core, groups) = try_join!(
        client.list_core_api_versions_aggregated(),
        client.list_api_groups_aggregated()
    )
    .map_err(|source| DiscoveryError::Read(Box::new(source)))?;
    Ok(catalogue_of(core.items.into_iter().chain(groups.items)))
}

fn catalogue_of(groups: impl IntoIterator<Item = APIGroupDiscovery>) -> Catalogue {
    let mut catalogue = Catalogue::new();
    for group in groups {
        let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in group.versions {
            let Some(number) = version.version else { continue };
            for resolved in version
                .resources
                .into_iter()
                .filter_map(|resource| resolved_of(&name, &number, resource))
            {
                let kind = GroupKind::new(&name, &resolved.resource.kind);
                let versions = catalogue.entry(kind).or_default();
                // A second plural for the same kind is a view of it (as with metrics); the first one listed is the object.
                if versions.iter().all(|known| known.resource.version != number) {
                    versions.push(resolved);
                }
            }
        }
    }
    catalogue
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
