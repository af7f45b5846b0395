//! An API server where objects live, and what it says of their kinds.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use operator_kit::apply::{AppliedObject, ApplyError, ApplyOptions, apply};
use operator_kit::crd_watch::{CrdWatch, Serving};
use operator_kit::delete::{DeleteError, Deletion, Version, delete};
use operator_kit::discovery::Discovery;
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::objects::ObjectWatches;
use operator_kit::read::{ReadError, read, read_in};
use planning::objects::{KindScope, ObjectObserved};
use serde_json::Value;

/// Handles of one API server. Clones share them.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) discovery: Discovery,
    pub(crate) crds: CrdWatch,
    /// The watches of the objects that are marked as ours. Somebody has to read what they tell.
    pub(crate) objects: ObjectWatches,
}

/// What is known of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindFacts {
    /// The API server serves it in some version.
    Served {
        /// Whether its objects have no namespace.
        cluster_scoped: bool,
    },
    /// There are no objects of it.
    NotServed,
    /// Discovery cannot tell: nothing may be concluded.
    Unsure,
}

impl KindFacts {
    /// Whether there may be objects of it.
    pub(crate) fn maybe_served(self) -> bool {
        self != Self::NotServed
    }

    /// Whether its objects have namespaces, as far as discovery tells.
    pub(crate) fn scope(self) -> KindScope {
        match self {
            Self::Served { cluster_scoped: true } => KindScope::ClusterWide,
            Self::Served { cluster_scoped: false } => KindScope::Namespaced,
            Self::NotServed | Self::Unsure => KindScope::Unknown,
        }
    }
}

impl Place {
    /// An object as it is now; see [`read`].
    pub(crate) async fn read(&self, key: &ObjectKey) -> Result<Option<DynamicObject>, ReadError> {
        read(&self.client, &self.discovery, &self.crds, key).await
    }

    /// An object as it is now, in this version; see [`read_in`].
    pub(crate) async fn read_in(&self, key: &ObjectKey, version: &str) -> Result<Option<DynamicObject>, ReadError> {
        read_in(&self.client, &self.discovery, &self.crds, key, version).await
    }

    /// Applies an object; see [`apply`].
    pub(crate) async fn apply(&self, body: &Value, options: &ApplyOptions<'_>) -> Result<AppliedObject, ApplyError> {
        apply(&self.client, &self.discovery, body, options).await
    }

    /// Deletes an object in the version that was read; see [`delete`].
    pub(crate) async fn delete(&self, key: &ObjectKey, version: Version<'_>) -> Result<Deletion, DeleteError> {
        delete(&self.client, &self.discovery, &self.crds, key, version).await
    }

    /// What is known of a kind; its objects are watched from now on.
    pub(crate) async fn kind(&self, kind: &GroupKind) -> KindFacts {
        let resolved = match self.crds.serving(&self.discovery, kind).await {
            Ok(Serving::Served(resolved)) => resolved,
            Ok(Serving::NotServed) => return KindFacts::NotServed,
            Ok(Serving::Unsure) | Err(_) => return KindFacts::Unsure,
        };
        let gvk = GroupVersionKind::gvk(&kind.group, &resolved.resource.version, &kind.kind);
        match self.objects.ensure(&gvk).await {
            Ok(true) => KindFacts::Served {
                cluster_scoped: resolved.scope == Scope::Cluster,
            },
            // It went in between, or was never there: the next look tells.
            Ok(false) | Err(_) => KindFacts::Unsure,
        }
    }

    /// Follows an object by its name, whoever's it is; see [`ObjectWatches::follow_named`]. Where nobody can say now whether its kind is served, it is read until
    /// somebody can.
    pub(crate) async fn follow_named(&self, key: &ObjectKey) {
        let served = match self.crds.serving(&self.discovery, &key.group_kind()).await {
            Ok(Serving::Served(resolved)) => Some(resolved),
            Ok(Serving::NotServed | Serving::Unsure) | Err(_) => None,
        };
        self.objects.follow_named(key, served.as_ref());
    }

    /// Whether the API server serves a kind in exactly this version, as far as is known.
    pub(crate) async fn serves(&self, gvk: &GroupVersionKind) -> bool {
        !matches!(self.discovery.resolve(gvk).await, Ok(None))
    }

    /// The kinds that are served and whose watches (begun here if need be) have yet to list. Asked before the objects are looked at: a list that ends in
    /// between must not count.
    pub(crate) async fn unlisted(&self, kinds: &BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
        let mut unlisted = BTreeSet::new();
        for kind in kinds {
            if self.kind(kind).await.maybe_served() && !self.objects.synced(kind) {
                unlisted.insert(kind.clone());
            }
        }
        unlisted
    }

    /// The charts that the objects of an owner say they come from ([`labels::STAGE`](crds::labels::STAGE)), as far as watches show them and keep what they say.
    pub(crate) fn origins(&self, part_of: &str) -> BTreeMap<ObjectKey, String> {
        let marked = self.objects.by_part_of(part_of, None).into_iter();
        marked
            .filter_map(|(key, seen)| Some((key, seen.annotation?.into_string())))
            .collect()
    }

    /// What the API server says of these kinds, and of those of these objects, that have not been listed; and which of them it does not let be listed.
    pub(crate) fn unwatched(
        &self,
        objects: &BTreeMap<ObjectKey, ObjectObserved>,
        unlisted: &BTreeSet<GroupKind>,
    ) -> (BTreeMap<GroupKind, String>, BTreeSet<GroupKind>) {
        let unwatched = objects.iter().filter(|(_, object)| object.served && !object.watched);
        let mut kinds: BTreeSet<GroupKind> = unwatched.map(|(key, _)| key.group_kind()).collect();
        kinds.extend(unlisted.iter().cloned());
        let (mut told, mut forbidden) = (BTreeMap::new(), BTreeSet::new());
        for kind in kinds {
            if let Some(trouble) = self.objects.trouble(&kind) {
                if trouble.forbidden {
                    forbidden.insert(kind.clone());
                }
                told.insert(kind, trouble.words().to_owned());
            } else if let Some(words) = self.crds.trouble(&kind) {
                told.insert(kind, words);
            }
        }
        (told, forbidden)
    }
}
