//! A connection that stands, with what is followed through it. Dropped, it ends all of that.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::client::Client;
use kube::core::GroupVersionKind;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::kinds::{Way, ways};
use super::kubeconfig::Access;
use super::metrics::WorkloadMetrics;
use super::pulse::Pulse;
use super::state::Connection;
use crate::discovery::{Catalogues, Discovery, DiscoveryError};
use crate::failure::chain;
use crate::object::GroupKind;
use crate::objects::{Marked, Notice, ObjectWatches};

/// Until discovery that failed is read again.
const DISCOVERY_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Link {
    access: Access,
    connection: Connection,
    pulse: Pulse,
    /// How kinds are followed.
    followed: BTreeMap<GroupKind, Way>,
    /// When those that are not followed yet are looked for again.
    retry: Option<Instant>,
    metrics: WorkloadMetrics,
    _end: DropGuard,
}

impl Link {
    pub(super) fn new(
        access: Access,
        (client, pulse): (Client, Pulse),
        (label, owner): (&str, &str),
        (catalogues, metrics): (&Catalogues, WorkloadMetrics),
        cancel: &CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice>) {
        let end = cancel.child_token();
        let discovery = Discovery::sharing(client.clone(), catalogues);
        let marked = Marked::by(label, owner);
        let (objects, notices) = ObjectWatches::new(client.clone(), discovery.clone(), marked, end.clone());
        let link = Self {
            access,
            connection: Connection {
                client,
                discovery,
                objects,
            },
            pulse,
            followed: BTreeMap::new(),
            retry: None,
            metrics,
            _end: end.drop_guard(),
        };
        (link, notices)
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

    /// The watch of a kind has ended because it is no longer served.
    pub(super) fn stopped(&mut self, kind: &GroupKind, list_pause: Duration) {
        self.leave(kind);
        self.retry_after(list_pause);
    }

    /// When to call [`Link::follow`] again although nothing else is to be followed.
    pub(super) fn retry(&self) -> Option<Instant> {
        self.retry
    }

    /// What is served may be another than when it was looked at last.
    pub(super) fn look_again(&mut self) {
        self.connection.discovery.invalidate();
    }

    /// Follows exactly these kinds, as far as they are served; whether all of them are.
    pub(super) async fn follow(&mut self, kinds: &[GroupVersionKind], watches: usize, list_pause: Duration) -> bool {
        let wanted = ways(kinds, watches);
        let is_other = |kind: &GroupKind, way: Way| wanted.get(kind).is_none_or(|(_, wanted)| *wanted != way);
        let followed = self.followed.iter();
        let others: Vec<GroupKind> = followed
            .filter(|(kind, way)| is_other(kind, **way))
            .map(|(kind, _)| kind.clone())
            .collect();
        self.connection.objects.keep(|kind, _| !others.contains(kind));
        for kind in &others {
            self.leave(kind);
        }
        self.retry = None;
        for (kind, (gvk, way)) in wanted {
            match self.begin(&gvk, way, list_pause).await {
                Ok(true) => self.enter(kind, way),
                Ok(false) => self.retry_after(list_pause),
                Err(error) => {
                    tracing::debug!(error = chain(&error), %kind, "unable to follow a kind in a workload cluster");
                    self.retry_after(DISCOVERY_PAUSE);
                    break;
                }
            }
        }
        self.retry.is_none()
    }

    async fn begin(&self, gvk: &GroupVersionKind, way: Way, list_pause: Duration) -> Result<bool, DiscoveryError> {
        match way {
            Way::Watched => self.connection.objects.ensure(gvk).await,
            Way::Listed => self.connection.objects.ensure_listed(gvk, list_pause).await,
        }
    }

    fn retry_after(&mut self, pause: Duration) {
        let then = Instant::now() + pause;
        self.retry = Some(self.retry.map_or(then, |retry| retry.min(then)));
    }

    fn enter(&mut self, kind: GroupKind, way: Way) {
        if self.followed.insert(kind, way).is_none() && way == Way::Watched {
            self.metrics.watches(1);
        }
    }

    fn leave(&mut self, kind: &GroupKind) {
        if self.followed.remove(kind) == Some(Way::Watched) {
            self.metrics.watches(-1);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for kind in self.followed.keys().cloned().collect::<Vec<_>>() {
            self.leave(&kind);
        }
    }
}
