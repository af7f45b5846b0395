//! The clusters in which add-ons are: how each is reached now, and the place of its objects while it answers. Nobody waits for a cluster here.
//!
//! Whoever works on add-ons asks with [`Workloads::reach`] and is woken when the answer is another ([`operator_kit::workload::News`]). The place is that of
//! one connection: once the way is another, its watches have ended, and it must not be kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::Context as _;
use crds::labels;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use operator_kit::lease::Fence;
use operator_kit::workload::{
    Connection as Handles, Dial, News, Reason, Settings, State, Suspicion, Workload, WorkloadClusters, WorkloadMetrics,
};
use planning::addon::Connection;
use planning::health;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::PROGRAM;
use crate::addon::ClusterPlace;
use crate::args::WorkloadArgs;
use crate::objects::{Place, lock};

/// What the ways to workload clusters need that only the process knows.
#[derive(Clone)]
pub(crate) struct Outside {
    /// That of the management client.
    pub(crate) fence: Fence,
    pub(crate) metrics: WorkloadMetrics,
    /// Instead of the network, as tests have it.
    pub(crate) wires: Option<Arc<dyn Dial>>,
}

/// The ways to workload clusters.
pub(crate) struct Workloads {
    clusters: WorkloadClusters,
    followed: Mutex<HashMap<String, Followed>>,
}

/// A cluster that is followed, by the uid of its Cluster.
struct Followed {
    cluster: ClusterPlace,
    /// The value of the label on what is ours in it.
    part_of: String,
    waiting: Waiting,
}

/// Since when something is waited for, as it was told first: it must not move from one look to the next.
#[derive(Clone, Copy)]
enum Waiting {
    Nothing,
    /// For the first answer.
    Answer(Timestamp),
    /// For a cluster to answer again that does not since this time.
    Return(Instant, Timestamp),
}

/// How clusters are reached, in the words of the kit.
fn settings(args: &WorkloadArgs, fence: Fence) -> anyhow::Result<Settings> {
    let user_agent = HeaderValue::try_from(PROGRAM.user_agent()).context("the name of the program is no header")?;
    Ok(Settings {
        qps: f64::from(args.workload_qps),
        burst: args.workload_burst,
        addresses: args.addresses(),
        watches: usize::from(args.workload_watches),
        matters: health::matters,
        annotation: Some(labels::STAGE.to_owned()),
        ..Settings::new(fence, user_agent, labels::PART_OF)
    })
}

impl Workloads {
    /// Follows no cluster yet. The news must be read: clusters wait for that.
    pub(crate) fn new(
        management: Client,
        args: &WorkloadArgs,
        outside: Outside,
        stop: &CancellationToken,
    ) -> anyhow::Result<(Self, mpsc::Receiver<News>)> {
        let Outside { fence, metrics, wires } = outside;
        let (settings, stop) = (settings(args, fence)?, stop.clone());
        let (clusters, news) = match wires {
            None => WorkloadClusters::new(management, settings, metrics, stop),
            Some(wires) => WorkloadClusters::dialling(management, settings, metrics, wires, stop),
        };
        let workloads = Self {
            clusters,
            followed: Mutex::default(),
        };
        Ok((workloads, news))
    }

    /// Follows the cluster of an add-on from now on. How it is reached now, and the place of its objects while it answers. Never waits for the cluster.
    /// `part_of` is the value of the label on what the add-on has in it.
    pub(crate) fn reach(
        &self,
        namespace: &str,
        cluster: &str,
        uid: &str,
        part_of: &str,
        now: Timestamp,
    ) -> (Connection, Option<Place>) {
        let workload = Workload {
            namespace: namespace.to_owned(),
            name: cluster.to_owned(),
            owner: part_of.to_owned(),
        };
        // Noted first: news of it must find whom they concern.
        let mut entries = self.followed();
        if !entries.contains_key(uid) {
            self.forget_earlier(&mut entries, (namespace, cluster));
        }
        let followed = entries.entry(uid.to_owned()).or_insert_with(|| Followed {
            cluster: ClusterPlace::default(),
            part_of: String::new(),
            waiting: Waiting::Nothing,
        });
        followed.cluster = (namespace.to_owned(), cluster.to_owned());
        part_of.clone_into(&mut followed.part_of);
        self.clusters.follow(uid, &workload);
        match self.clusters.get(uid) {
            State::Disconnected => {
                followed.waiting = Waiting::Nothing;
                (Connection::Disconnected, None)
            }
            State::Connecting => {
                let since = followed.waiting.for_answer(now);
                (Connection::Connecting { since }, None)
            }
            State::Healthy(handles) => {
                followed.waiting = Waiting::Nothing;
                (Connection::Healthy, Some(place(handles)))
            }
            State::Suspect(suspicion) => (followed.waiting.for_return(suspicion, now), None),
        }
    }

    /// Whether the cluster of a Cluster is being asked and says nothing; see [`WorkloadClusters::keeps_silent`].
    pub(crate) fn keeps_silent(&self, cluster: &ClusterPlace) -> bool {
        let followed = self.followed();
        let mut of_cluster = followed.iter().filter(|(_, followed)| followed.cluster == *cluster);
        of_cluster.any(|(uid, _)| self.clusters.keeps_silent(uid))
    }

    /// Ends what there is of Clusters that had this namespace and name before another one was made under them: whoever forgets places would keep them for that
    /// one, whose kubeconfig they would read.
    fn forget_earlier(&self, entries: &mut HashMap<String, Followed>, (namespace, cluster): (&str, &str)) {
        entries.retain(|uid, followed| {
            let is_earlier = followed.cluster.0 == namespace && followed.cluster.1 == cluster;
            if is_earlier {
                self.clusters.forget(uid);
            }
            !is_earlier
        });
    }

    /// Something happened for which a cluster may answer now; see [`WorkloadClusters::hurry`].
    pub(crate) fn hurry(&self, uid: &str) {
        self.clusters.hurry(uid);
    }

    /// Ends everything there is of a cluster.
    pub(crate) fn forget(&self, uid: &str) {
        self.followed().remove(uid);
        self.clusters.forget(uid);
    }

    /// Forgets all clusters but these.
    pub(crate) fn keep(&self, is_needed: impl Fn(&ClusterPlace) -> bool) {
        let mut gone = Vec::new();
        self.followed().retain(|uid, followed| {
            let is_kept = is_needed(&followed.cluster);
            if !is_kept {
                gone.push(uid.clone());
            }
            is_kept
        });
        for uid in gone {
            self.clusters.forget(&uid);
        }
    }

    /// Whom news of a cluster concern: its Cluster, and the value of the label on what is ours in it.
    pub(crate) fn concerned(&self, uid: &str) -> Option<(ClusterPlace, String)> {
        let followed = self.followed();
        let followed = followed.get(uid)?;
        Some((followed.cluster.clone(), followed.part_of.clone()))
    }

    /// The places of the clusters that answer, by their Clusters.
    pub(crate) fn places(&self) -> Vec<(ClusterPlace, Place)> {
        let followed = self.followed();
        let places = followed.iter().filter_map(|(uid, followed)| {
            let handles = self.clusters.get(uid).connection()?.clone();
            Some((followed.cluster.clone(), place(handles)))
        });
        places.collect()
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<String, Followed>> {
        lock(&self.followed)
    }
}

fn place(handles: Handles) -> Place {
    let Handles {
        client,
        discovery,
        crds,
        objects,
    } = handles;
    Place {
        client,
        discovery,
        crds,
        objects,
    }
}

impl Waiting {
    fn for_answer(&mut self, now: Timestamp) -> Timestamp {
        let since = match *self {
            Self::Answer(since) => since,
            Self::Nothing | Self::Return(..) => now,
        };
        *self = Self::Answer(since);
        since
    }

    fn for_return(&mut self, suspicion: Suspicion, now: Timestamp) -> Connection {
        let since = match *self {
            Self::Return(from, since) if from == suspicion.since => since,
            _ => ago(suspicion.since, now),
        };
        *self = Self::Return(suspicion.since, since);
        match suspicion.reason {
            Reason::Refuse(refusal) => Connection::Refused {
                message: refusal.to_string(),
            },
            reason => Connection::Suspect {
                since,
                message: reason.to_string(),
            },
        }
    }
}

/// When that was, as calendars have it.
fn ago(instant: Instant, now: Timestamp) -> Timestamp {
    let elapsed = SignedDuration::try_from(instant.elapsed()).unwrap_or(SignedDuration::MAX);
    now.checked_sub(elapsed).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
pub(crate) mod tests;
