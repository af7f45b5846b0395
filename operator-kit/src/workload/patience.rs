//! How long to wait before a cluster is asked again. Pure.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::state::Reason;

/// Before the second attempt; it doubles.
const FIRST: Duration = Duration::from_secs(1);

/// The longest pause while a cluster has never answered: it is being made, and its add-ons wait for it.
const LONGEST_BEFORE: Duration = Duration::from_secs(15);

/// The longest pause for one that did.
const LONGEST_AFTER: Duration = Duration::from_mins(1);

/// The longest pause for a kubeconfig that is refused, which nothing mends but another one.
const LONGEST_REFUSED: Duration = Duration::from_mins(5);

/// The pauses of one cluster.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    uid: u64,
    failures: u32,
    was_healthy: bool,
}

impl Patience {
    pub(super) fn of(uid: &str) -> Self {
        Self {
            uid: digest(&uid),
            failures: 0,
            was_healthy: false,
        }
    }

    /// It answers.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.was_healthy = true;
    }

    /// Something happened for which it may answer now.
    pub(super) fn forget(&mut self) {
        self.failures = 0;
    }

    /// The pause after another failure; without a reason there is no kubeconfig.
    pub(super) fn pause(&mut self, reason: Option<&Reason>) -> Duration {
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        let longest = match reason {
            Some(Reason::Refuse(_)) => LONGEST_REFUSED,
            _ if self.was_healthy => LONGEST_AFTER,
            _ => LONGEST_BEFORE,
        };
        self.spread(doubled.min(longest))
    }

    /// Up to a tenth longer or shorter, and always the same for the same cluster: what began together does not stay together.
    pub(super) fn spread(&self, time: Duration) -> Duration {
        let part = u32::try_from(digest(&(self.uid, self.failures)) % 21).unwrap_or_default();
        time * (90 + part) / 100
    }
}

fn digest(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(patience: &mut Patience, reason: Option<&Reason>) -> Duration {
        (0..40).map(|_| patience.pause(reason)).max().unwrap()
    }

    #[test]
    fn a_cluster_that_is_being_made_is_asked_more_often_than_one_that_went() {
        let away = Reason::Wait { seconds: 10 };
        let mut patience = Patience::of("one");
        assert!(longest(&mut patience, Some(&away)) <= LONGEST_BEFORE * 11 / 10);
        assert!(longest(&mut patience, None) <= LONGEST_BEFORE * 11 / 10);
        patience.succeeded();
        let after = longest(&mut patience, Some(&away));
        assert!(
            after > LONGEST_BEFORE * 2 && after <= LONGEST_AFTER * 11 / 10,
            "{after:?}"
        );
    }

    #[test]
    fn pauses_grow_until_something_happens() {
        let mut patience = Patience::of("one");
        let begin = patience.pause(None);
        assert!(begin < FIRST * 2);
        for _ in 0..5 {
            patience.pause(None);
        }
        assert!(patience.pause(None) > FIRST * 10);
        patience.forget();
        assert!(patience.pause(None) < FIRST * 2);
    }

    #[test]
    fn clusters_that_failed_together_are_not_asked_together() {
        let pauses: std::collections::BTreeSet<_> = (0..50)
            .map(|number| Patience::of(&number.to_string()).pause(None))
            .collect();
        assert!(pauses.len() > 10, "{pauses:?}");
    }
}
