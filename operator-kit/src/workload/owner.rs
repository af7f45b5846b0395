//! The one owner of connections to workload clusters. Whoever works on a cluster asks it how the cluster is, and is never made to wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use http::HeaderValue;
use kube::client::Client;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::addresses::Addresses;
use super::cluster::Task;
use super::metrics::WorkloadMetrics;
use super::names::Names;
use super::pulse::Pulse;
use super::secrets;
use super::state::{News, State};
use super::transport::{Dial, Network};
use crate::discovery::Catalogues;
use crate::lease::Fence;
use crate::object::GroupKind;

/// Requests to one cluster under way at once, as long as they are answered soon. Watches come on top. A cluster has few objects of ours, and there
/// are many clusters.
pub const CONNECTIONS: usize = 4;

/// News that may wait for the reader; more hold the clusters back that have some.
const NEWS_WAITING: usize = 1024;

/// How workload clusters are reached, and how hard they are pushed.
#[derive(Clone, Debug)]
pub struct Settings {
    /// That of the management client: who lost his Lease writes nowhere.
    pub fence: Fence,
    /// Requests a second to one cluster that are sustained; 0 or less is no limit. None of them counts for another cluster, or the management cluster.
    pub qps: f64,
    /// Requests to one cluster that may go at once before `qps` takes hold.
    pub burst: u32,
    /// Sent with every request.
    pub user_agent: HeaderValue,
    /// Where clusters may be.
    pub addresses: Addresses,
    /// Most watches in one cluster, of kinds and of single objects together. One is that of its CRDs.
    pub watches: usize,
    /// Most objects of ours that are remembered of one cluster.
    pub objects: usize,
    /// Of which kinds the watch matters more than that of others.
    pub matters: fn(&GroupKind) -> bool,
    /// Between two lists of a kind for which there is no watch.
    pub list_pause: Duration,
    /// The key of the label that marks our objects.
    pub label: String,
    /// The key of the annotation of our objects whose value is kept.
    pub annotation: Option<String>,
}

impl Settings {
    /// What is good for a fleet.
    pub fn new(fence: Fence, user_agent: HeaderValue, label: &str) -> Self {
        Self {
            fence,
            qps: 20.0,
            burst: 40,
            user_agent,
            addresses: Addresses::default(),
            watches: 8,
            // Twenty times what a large stack brings; some 20 MiB where each is as large as may be.
            objects: 5_000,
            matters: |_| true,
            list_pause: Duration::from_mins(10),
            label: label.to_owned(),
            annotation: None,
        }
    }
}

/// A cluster to be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Namespace of the Cluster.
    pub namespace: String,
    /// Name of the Cluster.
    pub name: String,
    /// The value of the label on what is ours in it; others may keep theirs there.
    pub owner: String,
}

/// The connections of this process to workload clusters, by the uid of the Cluster. Clones share them.
#[derive(Clone)]
pub struct WorkloadClusters {
    owner: Arc<Owner>,
}

pub(super) struct Owner {
    /// Where the Secrets with the kubeconfigs are.
    pub(super) management: Client,
    pub(super) settings: Settings,
    pub(super) dial: Arc<dyn Dial>,
    pub(super) metrics: WorkloadMetrics,
    /// Most clusters serve the same kinds.
    pub(super) catalogues: Catalogues,
    news: mpsc::Sender<News>,
    entries: Mutex<HashMap<Arc<str>, Arc<Entry>>>,
    /// What hears of kubeconfigs, by namespace: there is one for each that has a cluster, and nobody looks at the Secrets of others.
    hearing: Mutex<HashMap<String, Hearing>>,
    cancel: CancellationToken,
}

/// One cluster, as its task and those who ask for it share it.
pub(super) struct Entry {
    pub(super) uid: Arc<str>,
    pub(super) workload: Workload,
    state: RwLock<State>,
    /// What is heard through the last connection.
    pulse: Mutex<Option<Pulse>>,
    orders: Mutex<Orders>,
    /// Ask the cluster again, now.
    pub(super) again: Notify,
    /// Whether it would be told if the kubeconfig was written now.
    pub(super) is_told: watch::Receiver<bool>,
    pub(super) cancel: CancellationToken,
}

/// What hears of the kubeconfigs of a namespace.
struct Hearing {
    cancel: CancellationToken,
    /// Whether it would tell if one was written now.
    tells: watch::Receiver<bool>,
}

/// What others want of the task.
#[derive(Default)]
struct Orders {
    /// The version of the Secret that was heard of last.
    told: Option<String>,
    /// The version that was read last.
    read: Option<String>,
}

impl WorkloadClusters {
    /// Follows nothing yet. The Secrets are read with the client of the management cluster. The receiver must be read: clusters that have news wait
    /// for it.
    pub fn new(
        management: Client,
        settings: Settings,
        metrics: WorkloadMetrics,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<News>) {
        let network = Network {
            addresses: settings.addresses,
            user_agent: settings.user_agent.clone(),
            names: Names::default(),
        };
        Self::dialling(management, settings, metrics, Arc::new(network), cancel)
    }

    /// The same, over other wires than those of the network.
    pub fn dialling(
        management: Client,
        settings: Settings,
        metrics: WorkloadMetrics,
        dial: Arc<dyn Dial>,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<News>) {
        let (news, receiver) = mpsc::channel(NEWS_WAITING);
        let owner = Owner {
            management,
            settings,
            dial,
            metrics,
            catalogues: Catalogues::default(),
            news,
            entries: Mutex::default(),
            hearing: Mutex::default(),
            cancel,
        };
        (Self { owner: Arc::new(owner) }, receiver)
    }

    /// How a cluster is now. Asks nobody.
    pub fn get(&self, uid: &str) -> State {
        let entry = self.owner.entries().get(uid).cloned();
        entry.map_or(State::Disconnected, |entry| entry.state())
    }

    /// Follows a cluster from now on, unless it is followed already, and hears when its kubeconfig is written.
    pub fn follow(&self, uid: &str, workload: &Workload) {
        let mut entries = self.owner.entries();
        if let Some(entry) = entries.get(uid) {
            if entry.workload == *workload {
                return;
            }
            entry.cancel.cancel();
        }
        let entry = Arc::new(Entry {
            uid: Arc::from(uid),
            workload: workload.clone(),
            state: RwLock::new(State::Connecting),
            pulse: Mutex::default(),
            orders: Mutex::default(),
            again: Notify::new(),
            // While nobody can forget the last cluster of the namespace.
            is_told: self.hear(&workload.namespace),
            cancel: self.owner.cancel.child_token(),
        });
        entries.insert(Arc::clone(&entry.uid), Arc::clone(&entry));
        drop(entries);
        self.owner.metrics.enters(&State::Connecting);
        let owner = Arc::clone(&self.owner);
        tokio::spawn(Task { owner, entry }.run());
    }

    /// Something happened for which a cluster may answer now, such as its control plane being initialised: it is asked at once, and does not wait for the
    /// end of a pause or of an attempt that began before. A healthy one is left in peace.
    pub fn hurry(&self, uid: &str) {
        let entry = self.owner.entries().get(uid).cloned();
        if let Some(entry) = entry {
            entry.again.notify_one();
        }
    }

    /// Whether a cluster is being asked by those who work on it, and has said nothing for a while, so that they may wait for long. It is known before anybody knows
    /// whether the cluster is lost. Asks nobody.
    pub fn keeps_silent(&self, uid: &str) -> bool {
        let entry = self.owner.entries().get(uid).cloned();
        entry.is_some_and(|entry| entry.pulse().as_ref().is_some_and(Pulse::keeps_silent))
    }

    /// Hears from now on when kubeconfigs are written in a namespace. Gives whether it does by now.
    fn hear(&self, namespace: &str) -> watch::Receiver<bool> {
        let mut hearing = self.owner.hearing();
        if let Some(hearing) = hearing.get(namespace) {
            return hearing.tells.clone();
        }
        let cancel = self.owner.cancel.child_token();
        let (hears, tells) = watch::channel(false);
        let begun = Hearing {
            cancel: cancel.clone(),
            tells: tells.clone(),
        };
        hearing.insert(namespace.to_owned(), begun);
        drop(hearing);
        let following = secrets::follow(self.owner.management.clone(), namespace.to_owned(), self.clone(), hears);
        tokio::spawn(async move { cancel.run_until_cancelled_owned(following).await });
        tells
    }

    /// The Secret with the kubeconfig of a Cluster (namespace and name) has this version now. It is connected to anew when that says something else
    /// than before.
    pub fn kubeconfig_written(&self, (namespace, name): (&str, &str), version: &str) {
        let is_of = |entry: &Entry| entry.workload.namespace == namespace && entry.workload.name == name;
        for entry in self.owner.entries().values().filter(|entry| is_of(entry)) {
            entry.hear_of(version);
        }
    }

    /// Ends everything there is of a cluster: its task, its watches, and the connections that nobody uses any more.
    pub fn forget(&self, uid: &str) {
        let mut entries = self.owner.entries();
        let Some(entry) = entries.remove(uid) else { return };
        entry.cancel.cancel();
        let namespace = &entry.workload.namespace;
        if !entries.values().any(|other| other.workload.namespace == *namespace)
            && let Some(hearing) = self.owner.hearing().remove(namespace)
        {
            hearing.cancel.cancel();
        }
    }

    #[cfg(test)]
    pub(super) fn owner_metrics(&self) -> WorkloadMetrics {
        self.owner.metrics.clone()
    }

    /// Clusters that are followed.
    pub fn len(&self) -> usize {
        self.owner.entries().len()
    }

    /// No cluster is followed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Owner {
    fn entries(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken after the entries, where both are.
    fn hearing(&self) -> MutexGuard<'_, HashMap<String, Hearing>> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the reader, and not for one who has gone.
    pub(super) async fn tell(&self, news: News) {
        let _ = self.news.send(news).await;
    }
}

impl Entry {
    pub(super) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Enters a state; gives the one before.
    pub(super) fn enter(&self, state: State, metrics: &WorkloadMetrics) -> State {
        let mut slot = self.state.write().unwrap_or_else(PoisonError::into_inner);
        metrics.enters(&state);
        let before = std::mem::replace(&mut *slot, state);
        metrics.leaves(&before);
        before
    }

    /// There is a connection through which this is heard.
    pub(super) fn hears(&self, pulse: &Pulse) {
        *self.pulse() = Some(pulse.clone());
    }

    fn pulse(&self) -> MutexGuard<'_, Option<Pulse>> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Secret has this version now.
    fn hear_of(&self, version: &str) {
        let mut orders = self.orders();
        if orders.read.as_deref() != Some(version) && orders.told.as_deref() != Some(version) {
            orders.told = Some(version.to_owned());
            self.again.notify_one();
        }
    }

    /// The Secret was read in this version.
    pub(super) fn has_read(&self, version: Option<&str>) {
        self.orders().read = version.map(str::to_owned);
    }

    /// Whether another version of the Secret was heard of since it was read.
    pub(super) fn is_secret_newer(&self) -> bool {
        let orders = self.orders();
        orders.told.is_some() && orders.told != orders.read
    }
}
