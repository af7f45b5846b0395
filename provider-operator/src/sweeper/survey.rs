//! What clouds have of ours, and which objects there are: everything that a sweep is decided on. Asks clouds and the API server, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crds::labels;
use crds::providers::Provider;
use futures::future::join_all;
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt};
use operator_kit::failure::chain;
use operator_kit::pages::{Pages, Unreadable};
use planning::image::{Failure, OwnedImage};
use provider_plugin::{Marked, Owned, OwnerId};

use crate::executor::InProcess;
use crate::identity::{Connection, Connections, SecretError, Secrets};
use crate::kinds::Kind;

/// Objects of a page.
const PAGE_SIZE: u32 = 200;

/// With what it is found out.
#[derive(Clone, Copy)]
pub(super) struct Survey<'a> {
    pub(super) client: &'a Client,
    pub(super) secrets: &'a Secrets,
    pub(super) connections: &'a Connections,
    pub(super) asking: &'a InProcess,
    /// Whose images are looked for, and nobody else's.
    pub(super) owner: &'a OwnerId,
    /// The one namespace that is looked after; all when empty.
    pub(super) namespace: &'a str,
    /// The label that objects have whose clouds are asked; any when empty.
    pub(super) watch_filter: &'a str,
}

/// A cloud as one identity sees it. Ordered, so that a sweep is told in the same order each time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    pub(super) provider: Provider,
    /// As in metrics.
    pub(super) cloud: String,
    /// Which cloud of a Secret in which version, or which store.
    identity: (String, String),
}

/// What one identity sees.
pub(super) struct Sight {
    pub(super) connection: Arc<Connection>,
    /// The newest object of this identity.
    pub(super) newest: Arc<DynamicObject>,
    /// What carries our owner there or is held by us, of objects of the namespace that is looked after.
    pub(super) owned: Result<Vec<OwnedImage>, Failure>,
    /// Whose those are, by id: what has moved here carries the owner that it had.
    owners: BTreeMap<String, OwnerId>,
}

impl Sight {
    /// By which marks an image is known that is to be deleted: held by this one, who has decided it.
    pub(super) fn marked(&self, image: &OwnedImage, holder: &OwnerId) -> Marked {
        Marked {
            owner: self.owners.get(&image.id).unwrap_or(holder).clone(),
            object: image.object.clone(),
            attempt: image.attempt,
            holder: Some(holder.clone()),
        }
    }
}

/// All image objects of one kind, whatever filter the operator has.
pub(super) struct Listed {
    pub(super) objects: Vec<Arc<DynamicObject>>,
    /// As `namespace/name`, also those that cannot be read.
    pub(super) names: BTreeSet<String>,
}

/// What clouds have.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) sights: BTreeMap<Scope, Sight>,
    /// What could not be asked, as sentences for people.
    pub(super) unasked: BTreeSet<String>,
}

impl Survey<'_> {
    /// All objects there are now. Whoever deletes lists them after clouds were asked, so that nothing is taken from an object that has just come.
    ///
    /// # Errors
    /// Not all of them could be listed, and nobody knows which are missing.
    pub(super) async fn objects(&self, kind: &Kind) -> Result<Listed, kube::Error> {
        let resource = kind.images();
        let api: Api<DynamicObject> = if self.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), self.namespace, &resource)
        };
        let mut listed = Listed {
            objects: Vec::new(),
            names: BTreeSet::new(),
        };
        let mut pages = Pages::new(api, "", PAGE_SIZE);
        while let Some(page) = pages.next_page().await {
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    // Too large to be read, and there all the same.
                    let unreadable = Unreadable::of(&error);
                    let name = unreadable.map(|object| format!("{}/{}", object.namespace, object.name));
                    listed.names.insert(name.ok_or(error)?);
                    continue;
                }
            };
            listed.names.extend(page.iter().map(name_of));
            listed.objects.extend(page.into_iter().map(Arc::new));
        }
        Ok(listed)
    }

    /// What the clouds have that these objects name.
    pub(super) async fn clouds(&self, kind: &Kind, objects: &[Arc<DynamicObject>]) -> Seen {
        let mut seen = Seen::default();
        let mut identities = BTreeMap::<Scope, (Arc<Connection>, Arc<DynamicObject>)>::new();
        for object in objects.iter().filter(|object| self.is_watched(object)) {
            match self.connection(kind, object).await {
                Ok(Some((scope, connection))) => {
                    let (_, newest) = identities
                        .entry(scope)
                        .or_insert_with(|| (connection, Arc::clone(object)));
                    if is_newer(object, newest) {
                        *newest = Arc::clone(object);
                    }
                }
                // The driver tells of a Secret that is missing.
                Ok(None) => {}
                Err(words) => drop(seen.unasked.insert(words)),
            }
        }
        let asked = identities
            .into_iter()
            .map(|(scope, (connection, newest))| self.sight(scope, connection, newest));
        seen.sights = join_all(asked).await.into_iter().collect();
        seen
    }

    async fn sight(&self, scope: Scope, connection: Arc<Connection>, newest: Arc<DynamicObject>) -> (Scope, Sight) {
        let owned = self.asking.owned(scope.provider, &connection, self.owner).await;
        let owner_of = |image: &Owned| (image.id.0.clone(), image.owner.clone());
        let owners = owned.iter().flatten().map(owner_of).collect();
        let ours = |owned: Vec<Owned>| {
            owned
                .into_iter()
                .filter(|image| self.is_ours(image))
                .map(|image| image_of(image, self.owner))
                .collect()
        };
        let sight = Sight {
            connection,
            newest,
            owned: owned.map(ours),
            owners,
        };
        (scope, sight)
    }

    /// The way to the cloud of an object, if it names one.
    async fn connection(
        &self,
        kind: &Kind,
        object: &DynamicObject,
    ) -> Result<Option<(Scope, Arc<Connection>)>, String> {
        // Of images that nobody made none is left behind.
        if !kind.makes_images {
            return Ok(None);
        }
        // Its driver says what is wrong with it.
        let Ok(wish) = kind.wish(object) else { return Ok(None) };
        let namespace = object.namespace().unwrap_or_default();
        let identity = self.secrets.identity_of(&namespace, kind, &wish, None).await;
        let identity = match identity {
            // Its driver says so: it leads to no cloud.
            Ok(None) | Err(SecretError::OfAType { .. }) => return Ok(None),
            Ok(Some(identity)) => identity,
            Err(error) => return Err(chain(&error)),
        };
        let connection = self.connections.get(kind.provider(), identity);
        let connection = connection.map_err(|error| format!("{}: {}", name_of(object), chain(&error)))?;
        let (name, version) = connection.identity();
        let scope = Scope {
            provider: kind.provider(),
            cloud: connection.cloud().to_string(),
            identity: (name.to_owned(), version.to_owned()),
        };
        Ok(Some((scope, connection)))
    }

    fn is_watched(&self, object: &DynamicObject) -> bool {
        let value = object.labels().get(labels::WATCH_FILTER).map(String::as_str);
        self.watch_filter.is_empty() || value == Some(self.watch_filter)
    }

    /// Objects of other namespaces are not listed, so nothing is known of their images.
    fn is_ours(&self, image: &Owned) -> bool {
        let namespace = image.object.split_once('/').map(|(namespace, _)| namespace);
        self.namespace.is_empty() || namespace == Some(self.namespace)
    }
}

pub(super) fn name_of(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn is_newer(object: &DynamicObject, than: &DynamicObject) -> bool {
    let born = |object: &DynamicObject| object.creation_timestamp().map(|time| time.0);
    (born(object), object.name_any()) > (born(than), than.name_any())
}

/// The image as this installation sees it.
fn image_of(owned: Owned, here: &OwnerId) -> OwnedImage {
    let Owned {
        id,
        owner: _,
        holder,
        key: _,
        object,
        attempt,
        created,
        verified,
        size,
    } = owned;
    OwnedImage {
        id: id.0,
        object,
        attempt,
        created,
        verified,
        size,
        held_elsewhere: holder != *here,
    }
}
