//! Lets writes pass as long as the Leases under which they are made are certain to be held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::clock::Clock;

/// Open until a moment that is put off with every renewal. Clones share it.
///
/// Asked right before a write leaves: a process that was stopped, or starved, for longer than its Lease lasted finds it shut before it can do harm.
/// What had left before is refused by the API server, where what it was meant for has changed since.
#[derive(Clone, Debug)]
pub struct Fence {
    /// `None`: always open.
    until: Option<Arc<AtomicU64>>,
    clock: Clock,
}

impl Default for Fence {
    /// Always open, for who needs no Lease.
    fn default() -> Self {
        Self {
            until: None,
            clock: Clock::since_boot(),
        }
    }
}

impl Fence {
    /// Shut until a Lease is held.
    pub fn shut(clock: Clock) -> Self {
        Self {
            until: Some(Arc::default()),
            clock,
        }
    }

    /// Whether a write may leave now.
    pub fn is_open(&self) -> bool {
        self.until
            .as_ref()
            .is_none_or(|until| self.clock.now() < Duration::from_nanos(until.load(Ordering::Acquire)))
    }

    /// Open until then; shut when there is no moment.
    pub(crate) fn set(&self, until: Option<Duration>) {
        if let Some(kept) = &self.until {
            let nanos = until.unwrap_or_default().as_nanos();
            kept.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Release);
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }
}
