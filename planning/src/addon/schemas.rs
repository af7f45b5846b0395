//! How long it counts what was read of the schemas that the API server of a cluster publishes, and what is told of a condition that was checked against them.
//!
//! What is served changes with CRDs and with the version of Kubernetes, and what is published follows a moment later. Where it fits, nobody asks again before one of
//! them changes. What does not fit, or could not be read, is asked for now and then: a mistake about it must not hold a stage up for ever.
//!
//! Moments are those of a clock that never jumps; only their order and their distance matter.

use std::time::{Duration, Instant};

/// How long after a change of CRDs an API server may publish the schemas from before: it makes them anew a second later, and those of other servers behind it later
/// still.
pub const SCHEMAS_SETTLE: Duration = Duration::from_secs(5);

/// Between readings of schemas that could not be read, or that a condition does not fit.
pub const SCHEMAS_PAUSE: Duration = Duration::from_mins(1);

/// What is to be said of a condition before it is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may hold.
    Fits {
        /// What could not be checked.
        note: Option<String>,
    },
    /// It does not fit what was published, which may be from before a change.
    Unsettled {
        /// What does not fit, for people.
        message: String,
    },
    /// It does not fit what the API server serves.
    Unfit {
        /// What does not fit, for people.
        message: String,
    },
}

/// A verdict, and when to look again if nothing happens by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The verdict.
    pub verdict: Verdict,
    /// When to look again.
    pub again: Option<Instant>,
}

/// What is known of the schemas that a condition is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemasSeen {
    /// When what is published was read; nothing before the first time.
    pub read: Option<Instant>,
    /// Whether the CRDs and the version of Kubernetes are those of that time.
    pub is_of_now: bool,
    /// Whether something could not be read that may be read later.
    pub is_passing: bool,
    /// Since when the kinds of the condition are served as they are; nothing where they do not come and go.
    pub changed: Option<Instant>,
}

impl SchemasSeen {
    /// From when on what is published of the kinds is what is served.
    fn settled(&self) -> Option<Instant> {
        self.changed.map(|changed| changed + SCHEMAS_SETTLE)
    }

    /// The same, if it was read before.
    fn unsettled(&self, read: Instant) -> Option<Instant> {
        self.settled().filter(|settled| read < *settled)
    }
}

/// Whether nothing counts any more of what was read, and of the verdicts that came of it, so that all of it is to be read again. `verdict` is the one about the
/// condition, if there is one.
pub fn is_outlived(seen: &SchemasSeen, verdict: Option<&Verdict>, now: Instant) -> bool {
    let is_old = |read: Instant| {
        let has_settled = seen.unsettled(read).is_some_and(|settled| settled <= now);
        let is_unfit = matches!(verdict, Some(Verdict::Unfit { .. }));
        has_settled || ((seen.is_passing || is_unfit) && read + SCHEMAS_PAUSE <= now)
    };
    !seen.is_of_now || seen.read.is_some_and(is_old)
}

/// What is told of the verdict that follows from what was read: until it has settled, nothing is refused for good.
pub fn checked(seen: &SchemasSeen, verdict: Verdict, now: Instant) -> Checked {
    let read = seen.read.unwrap_or(now);
    let unsettled = seen.unsettled(read);
    let retry = seen.is_passing.then_some(read + SCHEMAS_PAUSE);
    let verdict = match verdict {
        Verdict::Unfit { message } if unsettled.is_some() => Verdict::Unsettled { message },
        verdict => verdict,
    };
    Checked {
        verdict,
        again: unsettled.into_iter().chain(retry).min(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const FITS: Verdict = Verdict::Fits { note: None };

    fn unfit() -> Verdict {
        Verdict::Unfit {
            message: "there is no field".to_owned(),
        }
    }

    fn a_second_before(moment: Instant) -> Instant {
        moment.checked_sub(SECOND).expect("the clock has run for longer")
    }

    /// Of kinds that do not come and go, read at this moment.
    fn seen(read: Instant) -> SchemasSeen {
        SchemasSeen {
            read: Some(read),
            is_of_now: true,
            is_passing: false,
            changed: None,
        }
    }

    #[test]
    fn what_fits_counts_until_something_else_is_served() {
        let read = Instant::now();
        let seen = seen(read);
        let later = read + 100 * SCHEMAS_PAUSE;
        for verdict in [None, Some(&FITS)] {
            assert!(!is_outlived(&seen, verdict, later));
            let other = SchemasSeen {
                is_of_now: false,
                ..seen
            };
            assert!(is_outlived(&other, verdict, read));
        }
        let unread = SchemasSeen { read: None, ..seen };
        assert!(!is_outlived(&unread, None, later), "there is nothing to be forgotten");
        let again = None;
        assert_eq!(checked(&seen, FITS, later), Checked { verdict: FITS, again });
    }

    #[test]
    fn what_was_read_before_it_settled_refuses_nothing_and_counts_only_until_then() {
        let changed = Instant::now();
        let settled = changed + SCHEMAS_SETTLE;
        let seen = |read| SchemasSeen {
            changed: Some(changed),
            ..seen(read)
        };
        let read = a_second_before(settled);
        let early = seen(read);
        let told = checked(&early, unfit(), read);
        assert!(matches!(told.verdict, Verdict::Unsettled { .. }), "{told:?}");
        assert_eq!(told.again, Some(settled));
        // What fits may fit no longer.
        let told = checked(&early, FITS, read);
        assert_eq!((told.verdict, told.again), (FITS, Some(settled)));
        for verdict in [FITS, unfit()] {
            assert!(!is_outlived(&early, Some(&verdict), read + SECOND / 2));
            assert!(is_outlived(&early, Some(&verdict), settled));
            assert!(!is_outlived(&seen(settled), Some(&verdict), settled + SECOND));
        }
        let told = checked(&seen(settled), unfit(), settled);
        assert_eq!((told.verdict, told.again), (unfit(), None));
    }

    #[test]
    fn what_does_not_fit_is_read_again_after_a_pause_when_somebody_asks() {
        let read = Instant::now();
        let due = read + SCHEMAS_PAUSE;
        assert!(!is_outlived(&seen(read), Some(&unfit()), a_second_before(due)));
        assert!(is_outlived(&seen(read), Some(&unfit()), due));
        assert!(!is_outlived(&seen(read), Some(&FITS), due));
        let told = checked(&seen(read), unfit(), read);
        assert_eq!((told.verdict, told.again), (unfit(), None), "nobody is woken for that");
    }

    #[test]
    fn what_could_not_be_read_is_read_again_after_a_pause_or_when_it_has_settled() {
        let read = Instant::now();
        let due = read + SCHEMAS_PAUSE;
        let passing = SchemasSeen {
            is_passing: true,
            ..seen(read)
        };
        assert!(!is_outlived(&passing, Some(&FITS), a_second_before(due)));
        assert!(is_outlived(&passing, Some(&FITS), due));
        assert_eq!(checked(&passing, FITS, read).again, Some(due));
        let sooner = SchemasSeen {
            changed: Some(read),
            ..passing
        };
        assert_eq!(checked(&sooner, FITS, read).again, Some(read + SCHEMAS_SETTLE));
    }
}
