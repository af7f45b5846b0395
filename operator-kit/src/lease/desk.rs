//! Where a Lease lies while nothing is asked about it, and what is known of it while something is.
//!
//! A call takes as long as it takes. So each Lease has errands of its own, one at a time, and none waits for those of another.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use planning::election::Candidate;

use super::group::Group;
use super::slot::{Slot, Trouble};

/// A Lease with what a process knows of it.
pub(super) trait Leased: Send + 'static {
    fn slot(&self) -> &Slot;
}

impl Leased for Slot {
    fn slot(&self) -> &Slot {
        self
    }
}

impl Leased for Group {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

/// One Lease and its errands.
pub(super) struct Desk<L> {
    /// Absent while it is away with an errand.
    lease: Option<L>,
    /// As it was when the errand began: what is held then is held for as long.
    known: Candidate,
    /// The errand only reads.
    reads: bool,
    /// When the next look or renewal is due.
    due: Duration,
    /// The last errand failed: nothing is tried before the next is due.
    failed: bool,
}

/// An errand that is done.
pub(super) struct Done<L> {
    pub(super) desk: usize,
    lease: L,
    pub(super) outcome: Result<(), Trouble>,
}

/// Errands under way.
pub(super) type Errands<L> = FuturesUnordered<BoxFuture<'static, Done<L>>>;

impl<L: Leased> Desk<L> {
    pub(super) fn new(lease: L) -> Self {
        Self {
            known: lease.slot().candidate.clone(),
            lease: Some(lease),
            reads: true,
            due: Duration::ZERO,
            failed: false,
        }
    }

    pub(super) fn candidate(&self) -> &Candidate {
        self.lease.as_ref().map_or(&self.known, |lease| &lease.slot().candidate)
    }

    /// The Lease, unless it is away.
    pub(super) fn lease(&mut self) -> Option<&mut L> {
        self.lease.as_mut()
    }

    pub(super) fn is_held(&self) -> bool {
        self.candidate().valid_until().is_some()
    }

    /// Whether nothing is under way by which it could be held, or let go.
    pub(super) fn is_quiet(&self) -> bool {
        self.lease.is_some() || self.reads
    }

    pub(super) fn has_failed(&self) -> bool {
        self.lease.is_some() && self.failed
    }

    /// Whether something may be done that is not due yet.
    pub(super) fn is_ready(&self, now: Duration) -> bool {
        self.lease.is_some() && (!self.failed || now >= self.due)
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.lease.is_some() && now >= self.due
    }

    /// When something is to be done with it, if it is not away.
    pub(super) fn due(&self) -> Option<Duration> {
        self.lease.is_some().then_some(self.due)
    }

    /// The next errand is due at once.
    pub(super) fn hurry(&mut self) {
        self.due = Duration::ZERO;
    }

    /// Whether it is here and well, so that there is nothing to tell.
    pub(super) fn is_well(&self) -> bool {
        self.lease.is_some() && !self.failed
    }

    /// Takes it back.
    pub(super) fn back(&mut self, done: Done<L>) {
        self.failed = done.outcome.is_err();
        self.lease = Some(done.lease);
    }

    /// The Lease for an errand; the next one is due then.
    pub(super) fn away(&mut self, reads: bool, due: Duration) -> Option<L> {
        let lease = self.lease.take()?;
        self.known = lease.slot().candidate.clone();
        (self.reads, self.due) = (reads, due);
        Some(lease)
    }
}

/// Sends a Lease on an errand.
pub(super) fn send<L, F>(errands: &Errands<L>, desk: usize, errand: F)
where
    F: Future<Output = (L, Result<(), Trouble>)> + Send + 'static,
    L: 'static,
{
    let errand = errand.map(move |(lease, outcome)| Done { desk, lease, outcome });
    errands.push(errand.boxed());
}

/// The next errand that is done; for ever none where none is under way.
pub(super) async fn next<L>(errands: &mut Errands<L>) -> Done<L> {
    match errands.next().await {
        Some(done) => done,
        None => std::future::pending().await,
    }
}
