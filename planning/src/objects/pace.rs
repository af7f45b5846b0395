//! How soon the health of an object is read again whose status changes.

use jiff::{SignedDuration, Timestamp};

use super::observed::HealthSeen;
use crate::next::rests_until;

/// After an object was written. Its controller mostly says within moments what became of it.
const FIRST: SignedDuration = SignedDuration::from_millis(100);

/// Later, at most: a controller that reports progress every second must not cost a read a second.
const LONGEST: SignedDuration = SignedDuration::from_secs(10);

/// Each time twice as long: so often until it is the longest.
const DOUBLINGS: u32 = 7;

impl HealthSeen {
    /// The same as what is known after this, which was known before.
    #[must_use]
    pub fn after(self, before: Option<&Self>) -> Self {
        let reads = before.map_or(0, |before| before.reads.saturating_add(1));
        Self { reads, ..self }
    }

    /// Until when it is not read again, whatever changes; `None` when that is over.
    pub(super) fn rests_until(&self, now: Timestamp) -> Option<Timestamp> {
        let rest = FIRST.saturating_mul(1 << self.reads.min(DOUBLINGS));
        rests_until(self.at, rest.min(LONGEST), now)
    }
}

#[cfg(test)]
mod tests {
    use crds::resource::Health;

    use super::*;

    fn read_at(at: Timestamp) -> HealthSeen {
        HealthSeen {
            state: Health::InProgress,
            message: String::new(),
            resource_version: "1".to_owned(),
            at,
            reads: 0,
        }
    }

    #[test]
    fn what_was_just_written_is_read_soon_and_then_ever_more_seldom() {
        let written: Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let mut seen = read_at(written);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let until = seen.rests_until(seen.at).expect("a rest");
            pauses.push(until.duration_since(seen.at).as_millis());
            assert_eq!(seen.rests_until(until), None);
            seen = read_at(until).after(Some(&seen));
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        let written_again = read_at(seen.at);
        let soon = seen.at + FIRST;
        assert_eq!(written_again.rests_until(seen.at), Some(soon));
    }

    #[test]
    fn an_object_that_is_read_for_years_is_read_no_more_often() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().expect("a time");
        let before = HealthSeen {
            reads: u32::MAX,
            ..read_at(now)
        };
        let seen = read_at(now).after(Some(&before));
        assert_eq!(seen.rests_until(now), Some(now + LONGEST));
    }
}
