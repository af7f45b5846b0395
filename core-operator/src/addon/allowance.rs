//! What several reads in a workload cluster may take together, in memory and in time: each answer has bounds of its own, and there may be a hundred.

use std::time::Duration;

use operator_kit::parts::{bytes_of, parts_of};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// How much one may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes as JSON.
    pub(super) bytes: usize,
    /// Parts; see [`operator_kit::parts`].
    pub(super) parts: usize,
    /// From the first question to the last answer.
    pub(super) time: Duration,
}

/// What is left of it.
#[derive(Debug)]
pub(super) struct Allowance {
    limits: Limits,
    bytes: usize,
    parts: usize,
    until: Instant,
}

/// There is nothing left of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Spent {
    /// Of the bytes.
    #[error("more than {limit} bytes of objects")]
    Bytes {
        /// All there was.
        limit: usize,
    },
    /// Of the parts.
    #[error("objects with more than {limit} lists, maps and fields")]
    Parts {
        /// All there was.
        limit: usize,
    },
    /// Of the time.
    #[error("objects for more than {} s", limit.as_secs())]
    Time {
        /// All there was.
        limit: Duration,
    },
}

impl Allowance {
    /// From now on.
    pub(super) fn new(limits: Limits) -> Self {
        let Limits { bytes, parts, time } = limits;
        Self {
            limits,
            bytes,
            parts,
            until: Instant::now() + time,
        }
    }

    /// Waits for one of the reads, as long as there is time.
    pub(super) async fn wait<T>(&self, reading: impl Future<Output = T>) -> Result<T, Spent> {
        let limit = self.limits.time;
        timeout_at(self.until, reading).await.map_err(|_| Spent::Time { limit })
    }

    /// Takes what was read from what is left. Whoever may keep it no more must not ask for more.
    pub(super) fn take(&mut self, found: &Value) -> Result<(), Spent> {
        let Limits { bytes, parts, .. } = self.limits;
        let left = self.parts.checked_sub(parts_of(found));
        self.parts = left.ok_or(Spent::Parts { limit: parts })?;
        let left = self.bytes.checked_sub(bytes_of(found));
        self.bytes = left.ok_or(Spent::Bytes { limit: bytes })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: Limits = Limits {
        bytes: 20,
        parts: 10,
        time: Duration::from_secs(8),
    };

    #[test]
    fn what_is_read_counts_together() {
        let mut allowance = Allowance::new(LIMITS);
        assert_eq!(allowance.take(&json!({ "a": "123456" })), Ok(()));
        assert_eq!(allowance.take(&json!(["123456"])), Err(Spent::Bytes { limit: 20 }));
        let mut allowance = Allowance::new(LIMITS);
        assert_eq!(allowance.take(&json!([{}])), Ok(()));
        assert_eq!(allowance.take(&json!([])), Err(Spent::Parts { limit: 10 }));
    }

    #[tokio::test(start_paused = true)]
    async fn all_of_the_reads_end_by_one_deadline() {
        let allowance = Allowance::new(LIMITS);
        for expected in [Ok(()), Ok(()), Err(Spent::Time { limit: LIMITS.time })] {
            let reading = tokio::time::sleep(Duration::from_secs(3));
            assert_eq!(allowance.wait(reading).await, expected);
        }
    }
}
