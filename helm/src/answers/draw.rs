//! Randomness and time for one answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A point in time, with the precision of Go's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since 1970 in UTC.
    pub seconds: i64,
    /// The part of a second, less than 1,000,000,000.
    pub nanoseconds: u32,
}

impl From<Duration> for Moment {
    /// That long after 1970 began: `SystemTime::now().duration_since(UNIX_EPOCH)`.
    fn from(since: Duration) -> Self {
        Self {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos(),
        }
    }
}

/// An endless stream of random bytes, and the time.
///
/// The bytes are SHA-256 over the seed and a counter: whoever does not know the seed cannot tell them from chance.
pub struct Draw {
    seed: [u8; 32],
    counter: u64,
    block: [u8; 32],
    used: usize,
    now: Moment,
}

impl Draw {
    /// The stream of a seed. A seed is for one answer.
    pub const fn new(seed: [u8; 32], now: Moment) -> Self {
        Self {
            seed,
            counter: 0,
            block: [0; 32],
            used: 32,
            now,
        }
    }

    /// The time at which the answer is made.
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// Fills a buffer with random bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for byte in buffer {
            if self.used == self.block.len() {
                self.block = Sha256::new()
                    .chain_update(self.seed)
                    .chain_update(self.counter.to_be_bytes())
                    .finalize()
                    .into();
                self.counter += 1;
                self.used = 0;
            }
            *byte = self.block[self.used];
            self.used += 1;
        }
    }

    /// So many random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// A number from 0 to below `end`, each as likely as the others. `end` must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The last numbers that would make some remainders likelier are drawn again.
        let fair = u64::MAX - u64::MAX % end;
        loop {
            let number = u64::from_be_bytes(self.bytes());
            if number < fair {
                return number % end;
            }
        }
    }
}
