//! Plays the providers of infrastructure, bootstrap and control planes by Cluster API's contract, for kinds of its own.
//!
//! It is as small as a provider can be and as honest as one has to be: it writes what a provider writes, in the order in which a provider has it to
//! write, and does it in a name that may nothing else. The workload clusters of its Clusters are real API servers, which tests bring; of these it writes
//! Nodes only. Cluster API itself is real; add-ons are nobody's here but the operator's.
//!
//! Control planes run elsewhere, as hosted ones do: no Machines belong to them. They come up with the version that is asked for, go on by one minor at most and
//! never back. Machines are Nodes that are ready from the beginning, until something that plays kubelets takes them over.
//!
//! Nothing takes time unless a test says so: [`PlayedCluster::hold`] keeps a step back and [`PlayedCluster::release`] lets it happen.
//!
//! ```no_run
//! # async fn upgrade(management: &e2e::ControlPlane, workload: &e2e::ControlPlane) -> anyhow::Result<()> {
//! use e2e::shim::{Contract, Hold, Shim, Workload, install};
//!
//! install(&management.client(), &Contract::ALL).await?;
//! let shim = Shim::start(management.access(), &Workload::at(workload.access()).await?).await?;
//! let web = shim.cluster("fleet", "web");
//! web.hold(Hold::Upgrade);
//! // … a new version is asked for, and the control plane is on its way …
//! web.release(Hold::Upgrade);
//! # Ok(()) }
//! ```

mod contract;
mod deeds;
mod due;
mod kinds;
mod rights;
mod seen;
mod template;
mod watching;
mod workload;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use anyhow::{Context, Result};
use kube::{Client, discovery};
use tokio::{sync::watch, task::JoinSet};

pub use self::{
    contract::Contract,
    kinds::{definitions, install},
    rights::identity,
    template::cluster,
    workload::Workload,
};
use self::{
    due::{Held, Kinds},
    watching::Stores,
};
use crate::{Identity, control_plane::Access, web::lock};

/// A step that a test can keep back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hold {
    /// The Secret with the kubeconfig. Cluster API, which has then connected in vain, tries again after 30 seconds.
    Kubeconfig,
    /// The infrastructure is not there, and so nothing else.
    Infrastructure,
    /// The control plane does not come up: no version, not initialized, no workers.
    Initialization,
    /// The control plane stays at its version and is on its way to the new one.
    Upgrade,
    /// Machines do not come up by themselves; [`PlayedCluster::admit_machines`] lets them.
    Machines,
    /// What is deleted stays, with its finalizer.
    Deletion,
}

/// Namespace and name of a Cluster.
type Key = (String, String);

/// A running shim. Dropped, it does nothing more; what it wrote stays.
pub struct Shim {
    stage: Arc<Stage>,
    _tasks: JoinSet<()>,
}

/// What all its tasks share.
struct Stage {
    client: Client,
    kinds: Kinds,
    stores: Stores,
    directions: Mutex<Directions>,
    /// Why the last look at a Cluster failed.
    troubles: Mutex<BTreeMap<Key, String>>,
    /// Rings when something was seen or a test said something.
    bell: watch::Sender<()>,
}

/// What tests say.
struct Directions {
    workload: Workload,
    /// Instead of that one, by namespace.
    namespaces: BTreeMap<String, Workload>,
    clusters: BTreeMap<Key, Direction>,
}

#[derive(Clone, Default)]
struct Direction {
    held: Held,
    /// Instead of that of its namespace.
    workload: Option<Workload>,
}

impl Shim {
    /// Starts one that looks after every Cluster of its kinds in a management cluster, which has Cluster API's CRDs and [its own](install). The API server
    /// of all workload clusters is this one, unless [`Shim::serve`] or [`PlayedCluster::serve`] says another. As with Cluster API itself, a control plane
    /// has one of them.
    pub async fn start(management: &Access, workload: &Workload) -> Result<Self> {
        let admin = management.client(&Identity::Admin).await?;
        rights::grant_in_management(&admin).await?;
        let client = management.client(&identity()).await?;
        let kinds = kinds::served(&client).await?;
        let cluster_api = discovery::group(&client, "cluster.x-k8s.io").await;
        let cluster_api = cluster_api.context("no Cluster API: install its CRDs first")?;
        let version = cluster_api.preferred_version_or_latest();
        let (bell, _) = watch::channel(());
        let mut tasks = JoinSet::new();
        let stores = Stores::watch(&client, version, &kinds, &bell, &mut tasks);
        let stage = Arc::new(Stage {
            client,
            kinds,
            stores,
            directions: Mutex::new(Directions {
                workload: workload.clone(),
                namespaces: BTreeMap::new(),
                clusters: BTreeMap::new(),
            }),
            troubles: Mutex::default(),
            bell,
        });
        tasks.spawn(watching::attend(Arc::clone(&stage)));
        Ok(Self { stage, _tasks: tasks })
    }

    /// One of its Clusters, which need not be there yet.
    pub fn cluster(&self, namespace: &str, name: &str) -> PlayedCluster {
        PlayedCluster {
            stage: Arc::clone(&self.stage),
            key: (namespace.to_owned(), name.to_owned()),
        }
    }

    /// The workload cluster of the Clusters in this namespace is this API server.
    pub fn serve(&self, namespace: &str, workload: &Workload) {
        let mut directions = lock(&self.stage.directions);
        directions.namespaces.insert(namespace.to_owned(), workload.clone());
        drop(directions);
        self.stage.bell.send_replace(());
    }

    /// Forgets what was said of single Clusters in this namespace: nothing is held back any more.
    pub fn forget(&self, namespace: &str) {
        let mut directions = lock(&self.stage.directions);
        directions.clusters.retain(|(of, _), _| of != namespace);
        drop(directions);
        self.stage.bell.send_replace(());
    }

    /// Why the last look at a Cluster failed, by namespace and name; empty when all is well.
    pub fn troubles(&self) -> BTreeMap<(String, String), String> {
        lock(&self.stage.troubles).clone()
    }
}

/// How a test directs what happens with one Cluster. Whatever it says holds from the next look on.
#[derive(Clone)]
pub struct PlayedCluster {
    stage: Arc<Stage>,
    key: Key,
}

impl PlayedCluster {
    /// Keeps a step back that has not happened yet.
    pub fn hold(&self, step: Hold) {
        self.direct(|direction| {
            direction.held.back.insert(step);
        });
    }

    /// Lets it happen.
    pub fn release(&self, step: Hold) {
        self.direct(|direction| {
            direction.held.back.remove(&step);
        });
    }

    /// Lets so many further machines come up although [`Hold::Machines`] holds them.
    pub fn admit_machines(&self, count: usize) {
        self.direct(|direction| direction.held.admitted += count);
    }

    /// From now on its workload cluster is this API server: the Secret is written again, and Nodes are brought there.
    pub fn serve(&self, workload: &Workload) {
        self.direct(|direction| direction.workload = Some(workload.clone()));
    }

    fn direct(&self, change: impl FnOnce(&mut Direction)) {
        self.stage.direct(&self.key, change);
        self.stage.bell.send_replace(());
    }
}

impl Stage {
    fn direct(&self, key: &Key, change: impl FnOnce(&mut Direction)) {
        change(lock(&self.directions).clusters.entry(key.clone()).or_default());
    }

    /// What a test says of a Cluster now.
    fn directed(&self, key: &Key) -> (Held, Workload) {
        let directions = lock(&self.directions);
        let direction = directions.clusters.get(key).cloned().unwrap_or_default();
        let of_namespace = || directions.namespaces.get(&key.0).cloned();
        let workload = direction.workload.or_else(of_namespace);
        (direction.held, workload.unwrap_or_else(|| directions.workload.clone()))
    }
}
