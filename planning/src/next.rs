//! When a driver should look again.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The next time a plan wants to be made, unless a watch wakes the driver before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Next {
    /// Only something that happens can change the decision.
    Await,
    /// Time alone changes the decision at this instant.
    At(Timestamp),
    /// There is more to do at once.
    Now,
}

impl Next {
    /// The earlier of two.
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::At(a), Self::Await) | (Self::Await, Self::At(a)) => Self::At(a),
            (Self::Await, Self::Await) => Self::Await,
        }
    }
}

/// Seconds until a failed operation is tried again: 1, 2, 4, … up to five minutes.
///
/// Without jitter, because the keys of one release fail and recover together anyway; the API server says itself when it is to be left alone, and the client keeps to it.
pub fn retry_delay_seconds(attempts: u32) -> i64 {
    const LONGEST: i64 = 300;
    let exponent = attempts.saturating_sub(1).min(9);
    (1_i64 << exponent).min(LONGEST)
}

/// How long a watch may take to show what was written. One that is interrupted begins again within this time.
pub(crate) const ECHO: SignedDuration = SignedDuration::from_secs(10);

/// Until when something is left alone that was done at an instant, and is for so long; `None` when that is over. An instant in the future was noted
/// before the clock was set back, and holds nothing up.
pub(crate) fn rests_until(done: Timestamp, rest: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    let until = done.checked_add(rest).ok()?;
    (done <= now && now < until).then_some(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_ends_in_time_and_with_a_clock_that_is_set_back() {
        let done: Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let rest = SignedDuration::from_secs(5);
        let until = |after: i64| rests_until(done, rest, done + SignedDuration::from_secs(after));
        assert_eq!([until(0), until(4)], [Some(done + rest), Some(done + rest)]);
        assert_eq!([until(5), until(3600), until(-1), until(-3600)], [None; 4]);
        assert_eq!(rests_until(Timestamp::MAX, rest, Timestamp::MAX), None);
    }

    #[test]
    fn retries_slow_down_and_never_stop() {
        let delays: Vec<i64> = (0..12).map(retry_delay_seconds).collect();
        assert_eq!(delays, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }
}
