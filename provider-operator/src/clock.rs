//! The one clock of the process: what is stored is measured with the world's time, everything else with the steady one, which executors share.
//! Decides nothing.

use std::time::Duration;

use jiff::Timestamp;
use planning::image::Now;
use planning::next::Next;
use tokio::time::Instant;

/// The steady clock of this process: decisions, executors and memory have the same one, or they do not understand each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady(Instant);

impl Steady {
    /// Zero is now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the beginning of the process.
    pub(crate) fn now(self) -> Duration {
        self.0.elapsed()
    }
}

/// Tells the time. Clones tell the same; in unit tests all of it goes with the clock of the runtime, which a test may pause and run through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    steady: Steady,
    #[cfg(test)]
    began: Timestamp,
}

impl Clock {
    pub(crate) fn start(steady: Steady) -> Self {
        Self {
            steady,
            #[cfg(test)]
            began: Timestamp::now(),
        }
    }

    /// Both times of this moment.
    pub(crate) fn now(&self) -> Now {
        Now {
            wall: self.wall(),
            steady: self.steady.now(),
        }
    }

    /// The world's time.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the clock is a handle like the others")]
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    /// The world's time.
    #[cfg(test)]
    pub(crate) fn wall(&self) -> Timestamp {
        self.began.checked_add(self.steady.now()).unwrap_or(self.began)
    }

    /// How long until a plan wants to be made again, if it does by itself.
    pub(crate) fn until(&self, next: Next) -> Option<Duration> {
        match next {
            Next::Await => None,
            Next::Now => Some(Duration::ZERO),
            Next::At(at) => Some(Duration::try_from(at.duration_since(self.wall())).unwrap_or_default()),
        }
    }
}
