//! The Secrets and ConfigMaps from which Clusters may take values: which there are, and when one of them changes. By their metadata alone, and only of those
//! whose label allows it, so that what is in them stays where it is.
//!
//! A kind is followed from the first Cluster on that names one. Without the right to do so nothing is lost but time: values are made again for other
//! reasons too, and then these are read.

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
use tokio_util::sync::CancellationToken;

use crate::by_kind::KindChange;
use crate::objects::lock;

/// Metadata is about two kilobytes each with managedFields.
const PAGE_SIZE: u32 = 250;

/// Namespace and name.
type Place = (String, String);

/// The version of each object that allows it, by kind; of kinds that are followed.
type Versions = HashMap<HolderKind, HashMap<Place, String>>;

/// What may be taken, as watches show it.
pub(super) struct Consents {
    client: Client,
    /// The only namespace that is looked at, or empty.
    namespace: String,
    changes: mpsc::UnboundedSender<KindChange>,
    cancel: CancellationToken,
    versions: Arc<Mutex<Versions>>,
}

impl Consents {
    /// Follows nothing yet. Changes are told to whoever has named something.
    pub(super) fn new(
        client: Client,
        namespace: &str,
        changes: mpsc::UnboundedSender<KindChange>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            changes,
            cancel,
            versions: Arc::default(),
        }
    }

    /// The version of an object that may be taken, as far as is known. Its kind is followed from now on.
    pub(super) fn version(&self, holder: &Holder, namespace: &str) -> Option<String> {
        let mut versions = lock(&self.versions);
        if let Some(of_kind) = versions.get(&holder.kind) {
            return of_kind.get(&(namespace.to_owned(), holder.name.clone())).cloned();
        }
        versions.insert(holder.kind, HashMap::new());
        drop(versions);
        let follower = Follower {
            kind: holder.kind,
            changes: self.changes.clone(),
            versions: Arc::clone(&self.versions),
        };
        let follow = follower.follow(self.api(holder.kind));
        tokio::spawn(self.cancel.clone().run_until_cancelled_owned(follow));
        None
    }

    fn api(&self, kind: HolderKind) -> Api<Shallow<PartialObjectMeta<DynamicObject>>> {
        let resource = match kind {
            HolderKind::Secret => ApiResource::erase::<Secret>(&()),
            HolderKind::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
        };
        if self.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
        }
    }
}

/// The watch of one kind.
struct Follower {
    kind: HolderKind,
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
                    listed.insert(place(&object));
                    self.set(place(&object), object.resource_version());
                }
                Ok(Event::InitDone) => self.keep_only(&std::mem::take(&mut listed)),
                Ok(Event::Apply(object)) => self.set(place(&object), object.resource_version()),
                Ok(Event::Delete(object)) => self.set(place(&object), None),
                Err(error) => {
                    // It is there as before.
                    if let Some(Unreadable { namespace, name, .. }) = Unreadable::of(&error) {
                        listed.insert((namespace.clone(), name.clone()));
                    }
                }
            }
        }
    }

    fn set(&self, place: Place, version: Option<String>) {
        let before = {
            let mut versions = lock(&self.versions);
            let of_kind = versions.entry(self.kind).or_default();
            match &version {
                Some(version) => of_kind.insert(place.clone(), version.clone()),
                None => of_kind.remove(&place),
            }
        };
        if before != version {
            let (namespace, name) = place;
            // A closed queue means that the process is about to end.
            let _ = self.changes.send(KindChange {
                kind: self.kind.group_kind(),
                namespace,
                name: Some(name),
            });
        }
    }

    fn keep_only(&self, listed: &HashSet<Place>) {
        let known: Vec<Place> = lock(&self.versions)
            .get(&self.kind)
            .map(|of_kind| of_kind.keys().cloned().collect())
            .unwrap_or_default();
        for place in known.into_iter().filter(|place| !listed.contains(place)) {
            self.set(place, None);
        }
    }
}

fn place(object: &PartialObjectMeta<DynamicObject>) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}
