//! Watches of everything that the shim reads, and a task for each Cluster that looks at it whenever something has changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::{
        WatchStreamExt,
        reflector::{Store, reflector, store::Writer},
        watcher::{self, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    Key, Stage,
    deeds::Worker,
    due::Kinds,
    kinds::Kind,
    seen::{CLUSTER_NAME, Seen},
};
use crate::web::lock;

/// How long after a look that failed comes the next when nothing changes meanwhile.
const RETRY: Duration = Duration::from_millis(500);

/// What the watches have.
pub(super) struct Stores {
    clusters: Store<DynamicObject>,
    machines: Store<DynamicObject>,
    objects: BTreeMap<Kind, Store<DynamicObject>>,
}

impl Stores {
    /// Starts to watch; `version` is the one in which Cluster API's own kinds are read.
    pub(super) fn watch(
        client: &Client,
        version: &str,
        kinds: &Kinds,
        bell: &watch::Sender<()>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let mut follow = |resource: ApiResource| {
            let writer = Writer::new(resource.clone());
            let store = writer.as_reader();
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            let events = watcher(api, watcher::Config::default()).default_backoff();
            let bell = bell.clone();
            let told = reflector(writer, events).for_each(move |_| {
                bell.send_replace(());
                std::future::ready(())
            });
            tasks.spawn(told);
            store
        };
        let of_cluster_api =
            |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", version, kind));
        Self {
            clusters: follow(of_cluster_api("Cluster")),
            machines: follow(of_cluster_api("Machine")),
            objects: kinds
                .iter()
                .map(|(kind, served)| (*kind, follow(served.resource.clone())))
                .collect(),
        }
    }

    pub(super) fn keys(&self) -> BTreeSet<Key> {
        let clusters = self.clusters.state();
        let clusters = clusters
            .iter()
            .map(|cluster| (cluster.namespace().unwrap_or_default(), cluster.name_any()));
        let mut keys: BTreeSet<Key> = clusters.collect();
        for store in self.objects.values() {
            keys.extend(store.state().iter().filter_map(|object| key_of(object)));
        }
        keys
    }

    pub(super) fn seen(&self, key: &Key) -> Seen {
        let of_cluster = |store: &Store<DynamicObject>| {
            let found = store.state_filter(|object: &DynamicObject| key_of(object).as_ref() == Some(key));
            found.into_iter().map(|object| (*object).clone())
        };
        let is_it = |cluster: &DynamicObject| {
            cluster.namespace().as_ref() == Some(&key.0) && cluster.metadata.name.as_ref() == Some(&key.1)
        };
        Seen {
            cluster: self.clusters.find(is_it).map(|cluster| (*cluster).clone()),
            machines: of_cluster(&self.machines)
                .map(|machine| (machine.name_any(), machine))
                .collect(),
            objects: self
                .objects
                .iter()
                .map(|(kind, store)| (*kind, of_cluster(store).collect()))
                .collect(),
        }
    }
}

/// Cluster API labels whatever a Cluster refers to.
fn key_of(object: &DynamicObject) -> Option<Key> {
    let cluster = object.labels().get(CLUSTER_NAME)?;
    Some((object.namespace()?, cluster.clone()))
}

/// Until it is aborted: one task for each Cluster that was ever there.
pub(super) async fn attend(stage: Arc<Stage>) {
    let mut bell = stage.bell.subscribe();
    let mut attended = BTreeSet::new();
    let mut tasks = JoinSet::new();
    loop {
        for key in stage.stores.keys() {
            if attended.insert(key.clone()) {
                tasks.spawn(attend_one(Arc::clone(&stage), key));
            }
        }
        if bell.changed().await.is_err() {
            return;
        }
    }
}

async fn attend_one(stage: Arc<Stage>, key: Key) {
    let mut bell = stage.bell.subscribe();
    let mut worker = Worker::new(Arc::clone(&stage), key.clone());
    loop {
        bell.mark_unchanged();
        let looked = worker.look().await;
        let failed = looked.is_err();
        match looked {
            Ok(()) => drop(lock(&stage.troubles).remove(&key)),
            Err(error) => drop(lock(&stage.troubles).insert(key.clone(), format!("{error:#}"))),
        }
        tokio::select! {
            changed = bell.changed() => if changed.is_err() { return },
            () = sleep(RETRY), if failed => {}
        }
    }
}
