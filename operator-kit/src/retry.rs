//! When to try again after a transient failure. Pure arithmetic and a book of attempts; waiting is the caller's.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The ceiling of the first delay.
pub const FIRST_CEILING: Duration = Duration::from_millis(500);

/// The ceiling of every later delay: what is broken for longer is looked at every few minutes.
pub const LAST_CEILING: Duration = Duration::from_mins(5);

/// No delay is shorter: a full jitter may draw nothing at all.
pub const FLOOR: Duration = Duration::from_millis(50);

/// The delay before attempt number `attempt` (the first failure asks for attempt 1): uniform between [`FLOOR`] and a
/// ceiling that doubles from [`FIRST_CEILING`] to [`LAST_CEILING`]. The same arguments give the same delay.
pub fn delay(attempt: u32, seed: u64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let ceiling = FIRST_CEILING.saturating_mul(1 << doublings).min(LAST_CEILING);
    let share = mix(seed.wrapping_add(u64::from(attempt))) >> 44;
    // 20 bits are enough of a lottery, and leave the product exact.
    let spread = (ceiling.saturating_sub(FLOOR).as_micros() * u128::from(share)) >> 20;
    FLOOR + Duration::from_micros(u64::try_from(spread).unwrap_or(u64::MAX))
}

/// Spreads the bits of a counter over the word (the finaliser of `SplitMix64`).
fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// How often each object failed in a row.
///
/// An entry lives from a failure to the next success or to the object's deletion: the caller must say both, or entries
/// of objects that failed and vanished stay.
#[derive(Debug)]
pub struct RetryBook<K> {
    entries: HashMap<K, Entry>,
}

#[derive(Debug)]
struct Entry {
    generation: i64,
    attempts: u32,
}

impl<K> Default for RetryBook<K> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash + Clone> RetryBook<K> {
    /// Notes a failure of the object at this generation and says how long to wait. A new generation starts anew: an edit
    /// deserves a prompt attempt.
    pub fn failed(&mut self, key: &K, generation: i64) -> Duration {
        let entry = self.entries.entry(key.clone()).or_insert(Entry {
            generation,
            attempts: 0,
        });
        if entry.generation != generation {
            *entry = Entry {
                generation,
                attempts: 0,
            };
        }
        entry.attempts = entry.attempts.saturating_add(1);
        delay(entry.attempts, seed_of(key))
    }

    /// The object succeeded or is gone.
    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Failures in a row.
    pub fn attempts(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.attempts)
    }

    /// Objects that failed last time.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No object failed last time.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn seed_of(key: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_last_ceiling_and_stay_within_it() {
        for seed in 0..200 {
            for attempt in 0..40_u32 {
                let ceiling = FIRST_CEILING
                    .saturating_mul(1 << (attempt.clamp(1, 17) - 1))
                    .min(LAST_CEILING);
                let delay = delay(attempt, seed);
                assert!(delay >= FLOOR && delay <= ceiling, "attempt {attempt}: {delay:?}");
            }
        }
    }

    #[test]
    fn jitter_spreads_over_the_whole_range() {
        let delays: Vec<f64> = (0..1000).map(|seed| delay(20, seed).as_secs_f64()).collect();
        let ceiling = LAST_CEILING.as_secs_f64();
        assert!(delays.iter().any(|delay| *delay < 0.1 * ceiling));
        assert!(delays.iter().any(|delay| *delay > 0.9 * ceiling));
    }

    #[test]
    fn an_edit_a_success_and_a_deletion_start_anew() {
        let mut book = RetryBook::default();
        book.failed(&"web", 1);
        book.failed(&"web", 1);
        assert_eq!(book.attempts(&"web"), 2);
        book.failed(&"web", 2);
        assert_eq!(book.attempts(&"web"), 1);
        book.forget(&"web");
        assert_eq!(book.attempts(&"web"), 0);
        assert!(book.is_empty());
    }
}
