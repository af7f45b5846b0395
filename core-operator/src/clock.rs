//! The one clock of the drivers; `planning` gets its time as an argument.

use jiff::Timestamp;

/// Tells the time. In unit tests it goes with the clock of the runtime, which a test may pause and run through.
pub(crate) struct Clock {
    #[cfg(test)]
    begun: (Timestamp, tokio::time::Instant),
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            #[cfg(test)]
            begun: (Timestamp::now(), tokio::time::Instant::now()),
        }
    }

    /// Now.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the clock is a handle like the others")]
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    #[cfg(test)]
    pub(crate) fn now(&self) -> Timestamp {
        let (began, instant) = self.begun;
        began.checked_add(instant.elapsed()).unwrap_or(began)
    }
}
