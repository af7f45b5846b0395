//! An executor, clouds that do as they are told, and an API server that keeps what is written.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Bounds, Executor, InProcess, OpView, Order};
use crate::clock::Steady;
use crate::objects::ObjectId;
use crate::progress::Ledgers;
use crate::stand_ins::{Clay, Cluster, object, plan};
use planning::image::{Deed, Done, Failure, OpState};
use tokio::time::{self, Instant};

/// The version of the Secret where it does not matter.
const VERSION: &str = "uid/1";

pub(super) struct Bench {
    pub(super) clay: Arc<Clay>,
    pub(super) cluster: Arc<Cluster>,
    pub(super) executor: InProcess,
    woken: Arc<Mutex<Vec<ObjectId>>>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(Bounds::default())
    }

    pub(super) fn with(bounds: Bounds) -> Self {
        let cluster = Cluster::new();
        let woken = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&woken);
        let ledgers = Ledgers::new(cluster.client(), "operator-0".to_owned());
        let wake = move |object: &ObjectId| list.lock().unwrap().push(object.clone());
        Self {
            clay: Arc::default(),
            executor: InProcess::new(bounds, Steady::start(), ledgers, Arc::new(wake)),
            cluster,
            woken,
        }
    }

    pub(super) fn order(&self, object: &ObjectId, cloud: &str, deed: Deed) -> Order {
        Order {
            plan: plan(object, deed),
            connection: self.clay.connection(cloud, VERSION),
            files: None,
            job: None,
        }
    }

    /// Begins for `<namespace>/<name>` and says for which object.
    pub(super) fn begin(&self, name: &str, cloud: &str, deed: Deed) -> ObjectId {
        let (namespace, name) = name.split_once('/').unwrap();
        let object = object(namespace, name);
        self.executor.begin(self.order(&object, cloud, deed));
        object
    }

    pub(super) fn view(&self, object: &ObjectId) -> OpView {
        self.executor.look(object).expect("something is known of it")
    }

    pub(super) fn state(&self, object: &ObjectId) -> OpState {
        self.view(object).op.state
    }

    pub(super) fn is_running(&self, object: &ObjectId) -> bool {
        matches!(self.state(object), OpState::Running { .. })
    }

    /// How often the driver was woken for it.
    pub(super) fn woken(&self, object: &ObjectId) -> usize {
        self.woken
            .lock()
            .unwrap()
            .iter()
            .filter(|woken| *woken == object)
            .count()
    }

    /// How it ended, once it has; within two minutes.
    pub(super) async fn end(&self, object: &ObjectId) -> Result<Done, Failure> {
        let mut outcome = None;
        let what = format!("the end of {object}");
        eventually(&what, || {
            if let OpState::Ended { outcome: ended, .. } = self.state(object) {
                outcome = Some(ended);
            }
            outcome.is_some()
        })
        .await;
        outcome.unwrap()
    }
}

/// Waits until it is so, for two minutes of whatever time there is.
pub(super) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(2);
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not come about");
        time::sleep(Duration::from_millis(5)).await;
    }
}

/// A deed that takes as long as the bytes do.
pub(super) fn long() -> Deed {
    Deed::ReadBack {
        id: "image-1".to_owned(),
        attempt: 1,
    }
}
