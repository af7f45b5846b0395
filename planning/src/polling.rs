//! When a source is asked again: as often as its stacks want while it answers, slower and slower while it does not, and never not at all.

use std::time::Duration;

/// The first wait after a source did not answer.
const FIRST_RETRY: Duration = Duration::from_secs(10);
/// The longest, unless its stacks want it asked more rarely.
const LONGEST_RETRY: Duration = Duration::from_mins(15);

/// How long to wait before a source is asked again.
///
/// `interval` is what its stacks want, `failures` how many times in a row it did not answer, and `told` how long it said, or is known, to be of
/// no use to ask. `spread` is any number: other numbers lead to waits that differ by up to a tenth, so that many sources are not asked at once.
pub fn next_poll(interval: Duration, failures: u32, told: Option<Duration>, spread: u64) -> Duration {
    let wait = match failures {
        0 => interval,
        failures => {
            let doubled = FIRST_RETRY.saturating_mul(1 << (failures - 1).min(16));
            // Who wants it asked every minute does not make it answer sooner.
            doubled.min(LONGEST_RETRY.max(interval))
        }
    };
    let wait = wait.max(told.unwrap_or_default());
    let tenth = wait / 10;
    let thousandths = u32::try_from(spread % 1000).unwrap_or_default();
    wait + tenth / 1000 * thousandths
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn source_that_answers_is_asked_at_its_interval() {
        assert_eq!(next_poll(5 * MINUTE, 0, None, 0), 5 * MINUTE);
        let latest = next_poll(5 * MINUTE, 0, None, 999);
        assert!(latest > 5 * MINUTE && latest < 5 * MINUTE * 11 / 10, "{latest:?}");
    }

    #[test]
    fn source_that_does_not_answer_is_asked_ever_more_rarely_and_always_again() {
        let waits: Vec<_> = (1..60)
            .map(|failures| next_poll(5 * MINUTE, failures, None, 0))
            .collect();
        assert_eq!(waits[0], FIRST_RETRY);
        assert!(waits.is_sorted());
        assert_eq!(waits.last(), Some(&LONGEST_RETRY));
        assert_eq!(next_poll(60 * MINUTE, u32::MAX, None, 0), 60 * MINUTE);
    }

    #[test]
    fn time_that_the_source_named_is_waited_for() {
        assert_eq!(next_poll(MINUTE, 1, Some(40 * MINUTE), 0), 40 * MINUTE);
        assert_eq!(next_poll(5 * MINUTE, 0, Some(MINUTE), 0), 5 * MINUTE);
    }
}
