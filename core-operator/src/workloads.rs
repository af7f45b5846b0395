//! The ways to the workload clusters whose add-ons are looked after. Whoever asks for one is told how it is, and never waits for a cluster.

use std::collections::HashMap;
use std::sync::Mutex;

use axum::http::HeaderValue;
use crds::cluster_addon::{ClusterAddon, name_for};
use crds::labels;
use futures::channel::mpsc::UnboundedSender;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::runtime::reflector::ObjectRef;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::lease::Fence;
use operator_kit::workload::{
    Connection, News, Reason, Settings, State, Suspicion, Workload, WorkloadClusters, WorkloadMetrics,
};
use planning::addon;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::addon::ClusterPlace;
use crate::args::WorkloadArgs;
use crate::objects::{Place, lock};

/// All of them.
pub(crate) struct Workloads {
    clusters: WorkloadClusters,
    /// By the uid of the Cluster.
    followed: Mutex<HashMap<String, Followed>>,
    woken: UnboundedSender<ObjectRef<ClusterAddon>>,
    stop: CancellationToken,
}

/// What is known of one that is followed.
struct Followed {
    cluster: ClusterPlace,
    /// When its first attempt was seen to be under way.
    begun: Timestamp,
    /// Of the connection that stood last.
    place: Option<Kept>,
}

/// The objects behind one connection.
struct Kept {
    connection: Connection,
    place: Place,
    /// Ends the watch of definitions.
    _end: DropGuard,
}

impl Workloads {
    /// Follows nothing yet. Kubeconfigs are read with the client of the management cluster, in this namespace or, when it is empty, in all. ClusterAddons are
    /// woken through `woken` when what their cluster serves changed; what else happens there is told to whoever reads the news, as somebody must.
    pub(crate) fn new(
        management: &Client,
        (args, namespace): (&WorkloadArgs, &str),
        (fence, user_agent, metrics): (Fence, HeaderValue, WorkloadMetrics),
        woken: UnboundedSender<ObjectRef<ClusterAddon>>,
        stop: &CancellationToken,
    ) -> (Self, mpsc::Receiver<News>) {
        let settings = Settings {
            qps: args.workload_qps,
            burst: args.workload_burst,
            addresses: args.addresses(),
            ..Settings::new(fence, user_agent, labels::PART_OF)
        };
        let (clusters, news) = WorkloadClusters::new(management.clone(), settings, metrics, stop.clone());
        clusters.watch_secrets(namespace);
        let workloads = Self {
            clusters,
            followed: Mutex::default(),
            woken,
            stop: stop.clone(),
        };
        (workloads, news)
    }

    /// Follows the cluster of a ClusterAddon whose objects are marked so, from now on. How it is reached now, and the place of its objects while it answers.
    pub(crate) fn reach(
        &self,
        (namespace, cluster): (&str, &str),
        uid: &str,
        part_of: &str,
        now: Timestamp,
    ) -> (addon::Connection, Option<Place>) {
        let workload = Workload {
            namespace: namespace.to_owned(),
            name: cluster.to_owned(),
            owner: part_of.to_owned(),
        };
        self.clusters.follow(uid, &workload);
        let mut followed = lock(&self.followed);
        let known = followed.entry(uid.to_owned()).or_insert_with(|| Followed {
            cluster: (namespace.to_owned(), cluster.to_owned()),
            begun: now,
            place: None,
        });
        let state = self.clusters.get(uid);
        if !matches!(state, State::Healthy(_)) {
            // What was watched through it has ended.
            known.place = None;
        }
        match state {
            State::Disconnected => (addon::Connection::Disconnected, None),
            State::Connecting => (addon::Connection::Connecting { since: known.begun }, None),
            State::Suspect(suspicion) => (suspected(&suspicion, now), None),
            State::Healthy(connection) => {
                let place = self.place(known, connection);
                (addon::Connection::Healthy, Some(place))
            }
        }
    }

    /// Something happened for which a cluster may answer now.
    pub(crate) fn hurry(&self, uid: &str) {
        self.clusters.hurry(uid);
    }

    /// Ends everything there is of a cluster.
    pub(crate) fn forget(&self, uid: &str) {
        self.clusters.forget(uid);
        lock(&self.followed).remove(uid);
    }

    /// The Cluster with this uid, if it is followed.
    pub(crate) fn cluster(&self, uid: &str) -> Option<ClusterPlace> {
        Some(lock(&self.followed).get(uid)?.cluster.clone())
    }

    fn place(&self, known: &mut Followed, connection: Connection) -> Place {
        if let Some(kept) = known.place.as_ref().filter(|kept| kept.connection.is(&connection)) {
            return kept.place.clone();
        }
        let end = self.stop.child_token();
        let Connection {
            client,
            discovery,
            objects,
        } = connection.clone();
        let crds = CrdWatch::start_aside(client.clone(), discovery.clone(), end.clone());
        tokio::spawn(end.clone().run_until_cancelled_owned(wake(
            crds.clone(),
            self.woken.clone(),
            addon_of(&known.cluster),
        )));
        let place = Place {
            client,
            discovery,
            crds,
            objects,
        };
        known.place = Some(Kept {
            connection,
            place: place.clone(),
            _end: end.drop_guard(),
        });
        place
    }
}

fn addon_of((namespace, cluster): &ClusterPlace) -> ObjectRef<ClusterAddon> {
    ObjectRef::new(&name_for(cluster)).within(namespace)
}

/// Wakes a ClusterAddon when its cluster serves other kinds than before.
async fn wake(crds: CrdWatch, woken: UnboundedSender<ObjectRef<ClusterAddon>>, addon: ObjectRef<ClusterAddon>) {
    let mut changes = crds.subscribe();
    while !matches!(changes.recv().await, Err(broadcast::error::RecvError::Closed)) {
        if woken.unbounded_send(addon.clone()).is_err() {
            return;
        }
    }
}

fn suspected(suspicion: &Suspicion, now: Timestamp) -> addon::Connection {
    let message = suspicion.reason.to_string();
    if let Reason::Refuse(_) = suspicion.reason {
        return addon::Connection::Refused { message };
    }
    let age = SignedDuration::try_from(suspicion.since.elapsed()).unwrap_or(SignedDuration::MAX);
    let since = now.checked_sub(age).unwrap_or(Timestamp::MIN);
    addon::Connection::Suspect { since, message }
}
