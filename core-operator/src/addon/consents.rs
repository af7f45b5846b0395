//! The Secrets and ConfigMaps from which Clusters may take values: which there are, and when one of them changes. By their metadata alone, and only of those
//! whose label allows it, so that what is in them stays where it is.
//!
//! A kind is followed in a namespace from the first Cluster there on that names one, until there is no ClusterAddon in it any more. Without the right to do so
//! nothing is lost but time: values are made again for other reasons too, and then these are read.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use crds::labels::{VALUES, VALUES_ALLOWED};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Client, ResourceExt};
use operator_kit::pages::Unreadable;
use operator_kit::shallow::Shallow;
use operator_kit::watch_log::WatchLog;
use operator_kit::watching::watching;
use planning::addon::{Holder, HolderKind};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::by_kind::KindChange;
use crate::objects::lock;

/// Metadata is about two kilobytes each with managedFields.
const PAGE_SIZE: u32 = 250;

/// A kind in a namespace.
type Followed = (HolderKind, String);

/// The version of each object that allows it, by name.
type Versions = HashMap<String, String>;

/// What may be taken, as watches show it.
pub(super) struct Consents {
    client: Client,
    changes: mpsc::UnboundedSender<KindChange>,
    cancel: CancellationToken,
    following: Mutex<HashMap<Followed, Following>>,
}

/// What is known of what is followed.
struct Following {
    versions: Arc<Mutex<Versions>>,
    /// Dropped, it ends the watch.
    _watch: DropGuard,
}

impl Consents {
    /// Follows nothing yet. Changes are told to whoever has named something.
    pub(super) fn new(client: Client, changes: mpsc::UnboundedSender<KindChange>, cancel: CancellationToken) -> Self {
        Self {
            client,
            changes,
            cancel,
            following: Mutex::default(),
        }
    }

    /// The version of an object that may be taken, as far as is known. Its kind is followed in its namespace from now on.
    pub(super) fn version(&self, holder: &Holder, namespace: &str) -> Option<String> {
        let mut following = lock(&self.following);
        let followed = (holder.kind, namespace.to_owned());
        let following = following
            .entry(followed)
            .or_insert_with(|| self.follow(holder.kind, namespace));
        lock(&following.versions).get(&holder.name).cloned()
    }

    /// Nobody in this namespace takes values from anything any more.
    pub(super) fn leave(&self, namespace: &str) {
        lock(&self.following).retain(|(_, followed), _| followed != namespace);
    }

    fn follow(&self, kind: HolderKind, namespace: &str) -> Following {
        let resource = match kind {
            HolderKind::Secret => ApiResource::erase::<Secret>(&()),
            HolderKind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
        };
        let (versions, watch) = (Arc::default(), self.cancel.child_token());
        let follower = Follower {
            kind,
            namespace: namespace.to_owned(),
            changes: self.changes.clone(),
            versions: Arc::clone(&versions),
        };
        let follow = follower.follow(Api::namespaced_with(self.client.clone(), namespace, &resource));
        tokio::spawn(watch.clone().run_until_cancelled_owned(follow));
        Following {
            versions,
            _watch: watch.drop_guard(),
        }
    }
}

/// The watch of one kind in one namespace.
struct Follower {
    kind: HolderKind,
    namespace: String,
    changes: mpsc::UnboundedSender<KindChange>,
    versions: Arc<Mutex<Versions>>,
}

impl Follower {
    /// Never ends.
    async fn follow(self, api: Api<Shallow<PartialObjectMeta<DynamicObject>>>) {
        let mut events = pin!(watching(api, &format!("{VALUES}={VALUES_ALLOWED}"), PAGE_SIZE));
        let mut log = WatchLog::new(format!("{}s with values for charts", self.kind));
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            log.heard(&event);
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(object.name_any());
                    self.set(object.name_any(), object.resource_version().as_deref());
                }
                Ok(Event::InitDone) => self.keep_only(&std::mem::take(&mut listed)),
                Ok(Event::Apply(object)) => self.set(object.name_any(), object.resource_version().as_deref()),
                Ok(Event::Delete(object)) => self.set(object.name_any(), None),
                Err(error) => {
                    // It is there as before.
                    if let Some(Unreadable { name, .. }) = Unreadable::of(&error) {
                        listed.insert(name.clone());
                    }
                }
            }
        }
    }

    fn set(&self, name: String, version: Option<&str>) {
        let before = {
            let mut versions = lock(&self.versions);
            match version {
                Some(version) => versions.insert(name.clone(), version.to_owned()),
                None => versions.remove(&name),
            }
        };
        if before.as_deref() != version {
            // A closed queue means that the process is about to end.
            let _ = self.changes.send(KindChange {
                kind: self.kind.group_kind(),
                namespace: self.namespace.clone(),
                name: Some(name),
            });
        }
    }

    fn keep_only(&self, listed: &HashSet<String>) {
        let known: Vec<String> = lock(&self.versions).keys().cloned().collect();
        for name in known.into_iter().filter(|name| !listed.contains(name)) {
            self.set(name, None);
        }
    }
}
