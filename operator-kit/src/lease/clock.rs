//! The clock by which a holder knows that its Lease has run out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time from some moment on, never set back. Clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// Since the machine was started, the time that it slept included: for everybody else that time has passed too, and the monotonic clock, which
    /// `Instant` reads, stands still then. (A process that is stopped finds its time passed by either.)
    pub fn since_boot() -> Self {
        Self(Arc::new(|| {
            let time = clock_gettime(ClockId::Boottime);
            let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
            Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
        }))
    }

    /// A clock of another kind.
    pub fn of(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Clock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_counts_from_the_start_of_the_machine() {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let now = Clock::since_boot().now();
        assert!(now.as_secs_f64() + 1.0 >= seconds, "{now:?} {seconds}");
    }
}
