//! A connection that stands, with what is followed through it. Dropped, it ends all of that.

use std::sync::Arc;

use kube::client::Client;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::kubeconfig::Access;
use super::pulse::Pulse;
use super::state::{Connection, News};
use crate::crd_watch::{CrdChange, CrdWatch};
use crate::discovery::Discovery;
use crate::objects::{Budget, Counted, Marked, Notice, ObjectWatches};

pub(super) struct Link {
    access: Access,
    connection: Connection,
    pulse: Pulse,
    _end: DropGuard,
    /// The watch of CRDs.
    _counted: Counted,
}

/// What is told of what there is in a cluster.
pub(super) struct Told {
    objects: mpsc::Receiver<Notice>,
    crds: broadcast::Receiver<CrdChange>,
}

impl Told {
    /// The next of it, for those who know the cluster by this uid.
    pub(super) async fn next(&mut self, uid: &Arc<str>) -> News {
        let uid = Arc::clone(uid);
        tokio::select! {
            Some(notice) = self.objects.recv() => News::Objects { uid, notice },
            change = served(&mut self.crds) => News::Served { uid, change },
        }
    }
}

/// Waits until another choice of kinds is served; `None` when anything may have changed.
async fn served(crds: &mut broadcast::Receiver<CrdChange>) -> Option<CrdChange> {
    match crds.recv().await {
        Ok(change) => Some(change),
        Err(broadcast::error::RecvError::Lagged(_)) => None,
        // The watch has ended, and the connection is about to.
        Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
    }
}

impl Link {
    pub(super) fn new(
        access: Access,
        (client, pulse): (Client, Pulse),
        discovery: Discovery,
        (marked, budget): (Marked, Budget),
        cancel: &CancellationToken,
    ) -> (Self, Told) {
        let end = cancel.child_token();
        let crds = CrdWatch::start_elsewhere(client.clone(), discovery.clone(), end.clone());
        let counted = Counted::begin(&budget.count);
        let budget = Budget {
            watches: budget.watches.saturating_sub(1),
            ..budget
        };
        let (objects, notices) = ObjectWatches::within(budget, client.clone(), discovery.clone(), marked, end.clone());
        let told = Told {
            objects: notices,
            crds: crds.subscribe(),
        };
        let link = Self {
            access,
            connection: Connection {
                client,
                discovery,
                crds,
                objects,
            },
            pulse,
            _end: end.drop_guard(),
            _counted: counted,
        };
        (link, told)
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    pub(super) fn connection(&self) -> Connection {
        self.connection.clone()
    }

    pub(super) fn client(&self) -> &Client {
        &self.connection.client
    }

    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }
}
