//! When a driver should look again.

use jiff::Timestamp;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_slow_down_and_never_stop() {
        let delays: Vec<i64> = (0..12).map(retry_delay_seconds).collect();
        assert_eq!(delays, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }
}
