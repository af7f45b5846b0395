//! The rules of the election: what a candidate does next, from what it saw and when. Pure.

use std::time::Duration;

/// How patient replicas are with each other. Each must be well below the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Others wait this long without a sign of life before they take over. Whole seconds on the wire, at least one.
    pub lease_duration: Duration,
    /// A leader that could not renew for this long stops leading.
    pub renew_deadline: Duration,
    /// Between attempts, of leaders to renew and of others to look.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// The values that Kubernetes' own components use.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Scales the defaults to another lease duration, not below one second.
    pub fn of(lease_duration: Duration) -> Self {
        let lease_duration = lease_duration.max(Duration::from_secs(1));
        Self {
            lease_duration,
            renew_deadline: lease_duration * 2 / 3,
            retry_period: lease_duration * 2 / 15,
        }
    }
}

/// A state of the lease, and for how long by our own clock nobody changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting<'a> {
    /// `None` when the lease does not exist or was released.
    pub(super) holder: Option<&'a str>,
    /// How long the holder promised to need at most between renewals.
    pub(super) promised: Duration,
    pub(super) unchanged_for: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Take the lease, or renew it.
    Write,
    /// Leave it alone and look again later.
    Wait,
    /// Stop leading, now.
    Resign,
}

/// What to do. `since_renewal` is the age of our last successful write, for a leader; `None` for everybody else.
pub(super) fn next(
    sighting: Option<Sighting<'_>>,
    since_renewal: Option<Duration>,
    identity: &str,
    timing: Timing,
) -> Step {
    if let Some(since_renewal) = since_renewal {
        let is_ours = sighting.is_none_or(|seen| seen.holder == Some(identity));
        return if is_ours && since_renewal < timing.renew_deadline {
            Step::Write
        } else {
            Step::Resign
        };
    }
    let Some(seen) = sighting else { return Step::Wait };
    match seen.holder {
        None => Step::Write,
        // Our own write whose answer was lost: nobody else bears this name.
        Some(holder) if holder == identity => Step::Write,
        Some(_) if seen.unchanged_for >= seen.promised => Step::Write,
        Some(_) => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    fn held_by(holder: Option<&str>, unchanged_for: u64) -> Sighting<'_> {
        Sighting {
            holder,
            promised: Duration::from_secs(15),
            unchanged_for: Duration::from_secs(unchanged_for),
        }
    }

    #[test]
    fn candidates_follow_the_protocol() {
        let cases = [
            ("nothing known yet", None, None, Step::Wait),
            ("no lease, or released", Some(held_by(None, 0)), None, Step::Write),
            ("another leads", Some(held_by(Some("other"), 14)), None, Step::Wait),
            (
                "another fell silent",
                Some(held_by(Some("other"), 15)),
                None,
                Step::Write,
            ),
            (
                "our write whose answer was lost",
                Some(held_by(Some("me"), 0)),
                None,
                Step::Write,
            ),
            ("we lead", Some(held_by(Some("me"), 3)), Some(3), Step::Write),
            ("we lead and could not look", None, Some(9), Step::Write),
            (
                "we lead but could not renew",
                Some(held_by(Some("me"), 10)),
                Some(10),
                Step::Resign,
            ),
            (
                "we were taken for dead",
                Some(held_by(Some("other"), 0)),
                Some(3),
                Step::Resign,
            ),
            (
                "somebody released our lease",
                Some(held_by(None, 0)),
                Some(3),
                Step::Resign,
            ),
        ];
        for (case, sighting, since_renewal, step) in cases {
            let since_renewal = since_renewal.map(Duration::from_secs);
            assert_eq!(next(sighting, since_renewal, "me", TIMING), step, "{case}");
        }
    }

    #[test]
    fn a_leader_gives_up_before_others_take_over() {
        for seconds in [1, 5, 15, 60] {
            let timing = Timing::of(Duration::from_secs(seconds));
            assert!(timing.renew_deadline < timing.lease_duration);
            assert!(timing.retry_period * 3 <= timing.renew_deadline);
        }
        assert_eq!(Timing::of(Duration::from_secs(15)), Timing::default());
    }
}
