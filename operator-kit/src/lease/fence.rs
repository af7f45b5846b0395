//! Lets writes pass as long as the Leases under which they are made are certain to be held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::Clock;

/// How long after it left a write may still be done that nobody waits for any more: the API server ends what takes longer than a minute
/// (`--request-timeout`), and an answer is waited for for half of that.
const LANDING: Duration = Duration::from_mins(1);

/// Open until a moment that is put off with every renewal. Clones share it.
///
/// Asked right before a write leaves: a process that was stopped, or starved, for longer than its Lease lasted finds it shut before it can do harm.
/// What had left before is refused by the API server, where what it was meant for has changed since.
#[derive(Clone, Debug)]
pub struct Fence {
    /// `None`: always open.
    until: Option<Arc<AtomicU64>>,
    /// Until when what has left and was never answered for certain may still be done.
    landing: Arc<AtomicU64>,
    clock: Clock,
}

impl Default for Fence {
    /// Always open, for who needs no Lease.
    fn default() -> Self {
        Self {
            until: None,
            landing: Arc::default(),
            clock: Clock::since_boot(),
        }
    }
}

impl Fence {
    /// Shut until a Lease is held.
    pub fn shut(clock: Clock) -> Self {
        Self {
            until: Some(Arc::default()),
            landing: Arc::default(),
            clock,
        }
    }

    /// Whether a write may leave now.
    pub fn is_open(&self) -> bool {
        self.until
            .as_ref()
            .is_none_or(|until| self.clock.now() < Duration::from_nanos(until.load(Ordering::Acquire)))
    }

    /// A write leaves now.
    pub(crate) fn leaves(&self) -> Departure {
        Departure {
            landing: Arc::clone(&self.landing),
            until: nanos(self.clock.now().saturating_add(LANDING)),
        }
    }

    /// Whether something that has left may still be done though nobody waits for it.
    pub(crate) fn awaits_writes(&self) -> bool {
        self.clock.now() < Duration::from_nanos(self.landing.load(Ordering::Acquire))
    }

    /// Open until then; shut when there is no moment.
    pub(crate) fn set(&self, until: Option<Duration>) {
        if let Some(kept) = &self.until {
            kept.store(nanos(until.unwrap_or_default()), Ordering::Release);
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A write that has left. Dropped before an answer said what became of it, it may be done for a while yet.
#[derive(Debug)]
pub(crate) struct Departure {
    landing: Arc<AtomicU64>,
    until: u64,
}

impl Departure {
    /// It was answered so that nothing of it comes any more.
    pub(crate) fn answered(mut self) {
        self.until = 0;
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.landing.fetch_max(self.until, Ordering::AcqRel);
    }
}
