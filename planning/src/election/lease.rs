//! The rules of one Lease, after the protocol of client-go's leader election: what a candidate does next, from what it saw and when.

use std::time::Duration;

/// How patient replicas are with each other. Each must be well below the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Others wait this long without a sign of life before they take over. Whole seconds on the wire, at least one.
    pub lease_duration: Duration,
    /// A holder that could not renew for this long holds it no longer.
    pub renew_deadline: Duration,
    /// Between attempts, of holders to renew and of others to look.
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
    /// Scales the defaults to another lease duration, cut to whole seconds and not below one: a holder believes in no more than it can promise.
    pub fn of(lease_duration: Duration) -> Self {
        let lease_duration = Duration::from_secs(lease_duration.as_secs().max(1));
        Self {
            lease_duration,
            renew_deadline: lease_duration * 2 / 3,
            retry_period: lease_duration * 2 / 15,
        }
    }
}

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Its resourceVersion; `None` when it does not exist.
    pub version: Option<String>,
    /// `None` when nobody has taken it, or it was released.
    pub holder: Option<String>,
    /// How long the holder promised to need at most between renewals.
    pub promised: Duration,
}

/// What a candidate may do with a Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Take it, or renew it.
    Write,
    /// Leave it alone and look again later.
    Wait,
    /// Hold it no longer, as of now.
    Resign,
}

/// One replica and one Lease.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    timing: Timing,
    /// The last state, and when it was seen first.
    seen: Option<(Sighting, Duration)>,
    /// When the last write that succeeded was sent; only while it holds the Lease.
    renewed: Option<Duration>,
}

impl Candidate {
    /// Several replicas with one identity hold the Lease together: it keeps others from it as long as one of them renews it.
    pub fn new(identity: String, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            renewed: None,
        }
    }

    /// Takes what was seen. Only another version is news.
    pub fn saw(&mut self, sighting: Sighting, now: Duration) {
        if self
            .seen
            .as_ref()
            .is_none_or(|(seen, _)| seen.version != sighting.version)
        {
            self.seen = Some((sighting, now));
        }
    }

    /// A write of ours has succeeded; `sent` is when it left, `now` when that is known.
    ///
    /// What is held by it counts from when it left. Who held nothing before does not begin with a write of long ago, whose time may be over before the
    /// first renewal: the Lease is in his name, and he writes it again.
    pub fn wrote(&mut self, sent: Duration, now: Duration) {
        let is_fresh = now.saturating_sub(sent) * 2 < self.timing.renew_deadline;
        self.renewed = match self.renewed {
            Some(renewed) => Some(renewed.max(sent)),
            None => is_fresh.then_some(sent),
        };
    }

    /// It was let go.
    pub fn released(&mut self) {
        self.renewed = None;
    }

    /// Until when nobody else can have taken it; `None` for who does not hold it.
    pub fn valid_until(&self) -> Option<Duration> {
        self.renewed
            .map(|renewed| renewed.saturating_add(self.timing.renew_deadline))
    }

    /// How long a call or a pause may last: a holder must notice in time that it is none.
    pub fn patience(&self, now: Duration) -> Duration {
        self.valid_until()
            .map_or(self.timing.renew_deadline, |end| end.saturating_sub(now))
    }

    /// Who holds it, as far as that was seen, alive or not.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.0.holder.as_deref()
    }

    /// Whether it was seen without a holder, or its holder was silent for as long as it had promised.
    pub fn is_free(&self, now: Duration) -> bool {
        self.seen
            .as_ref()
            .is_some_and(|(seen, since)| seen.holder.is_none() || now.saturating_sub(*since) >= seen.promised)
    }

    /// What to do now.
    pub fn step(&self, now: Duration) -> Step {
        let is_ours = |holder: Option<&str>| holder == Some(self.identity.as_str());
        if let Some(end) = self.valid_until() {
            let ours = self.seen.is_none() || is_ours(self.holder());
            return if ours && now < end { Step::Write } else { Step::Resign };
        }
        // Held in our name, it is our own write whose answer was lost, or of those who hold it together with us.
        if self.is_free(now) || is_ours(self.holder()) {
            Step::Write
        } else {
            Step::Wait
        }
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

    /// A candidate at second 100, with a Lease that was seen first this many seconds ago.
    fn candidate(seen: Option<(Option<&str>, u64)>, since_renewal: Option<u64>) -> Candidate {
        let ago = |seconds| Duration::from_secs(100 - seconds);
        let mut candidate = Candidate::new("me".to_owned(), TIMING);
        if let Some((holder, unchanged_for)) = seen {
            let sighting = Sighting {
                version: Some("7".to_owned()),
                holder: holder.map(str::to_owned),
                promised: Duration::from_secs(15),
            };
            candidate.saw(sighting, ago(unchanged_for));
        }
        if let Some(since_renewal) = since_renewal {
            candidate.wrote(ago(since_renewal), ago(since_renewal));
        }
        candidate
    }

    #[test]
    fn candidates_follow_the_protocol() {
        let cases = [
            ("nothing known yet", None, None, Step::Wait),
            ("no lease, or released", Some((None, 0)), None, Step::Write),
            ("another leads", Some((Some("other"), 14)), None, Step::Wait),
            ("another fell silent", Some((Some("other"), 15)), None, Step::Write),
            (
                "our write whose answer was lost",
                Some((Some("me"), 0)),
                None,
                Step::Write,
            ),
            ("we lead", Some((Some("me"), 3)), Some(3), Step::Write),
            ("we lead and could not look", None, Some(9), Step::Write),
            (
                "we lead but could not renew",
                Some((Some("me"), 10)),
                Some(10),
                Step::Resign,
            ),
            (
                "we were taken for dead",
                Some((Some("other"), 0)),
                Some(3),
                Step::Resign,
            ),
            ("somebody released our lease", Some((None, 0)), Some(3), Step::Resign),
        ];
        for (case, seen, since_renewal, step) in cases {
            let candidate = candidate(seen, since_renewal);
            assert_eq!(candidate.step(Duration::from_secs(100)), step, "{case}");
        }
    }

    #[test]
    fn a_state_that_is_seen_again_is_as_old_as_before() {
        let mut candidate = candidate(Some((Some("other"), 10)), None);
        let again = candidate.seen.clone().unwrap().0;
        candidate.saw(again, Duration::from_secs(100));
        assert!(candidate.is_free(Duration::from_secs(105)));
        assert!(!candidate.is_free(Duration::from_secs(104)));
    }

    #[test]
    fn nobody_begins_with_a_write_of_long_ago_and_an_old_one_takes_nothing_from_a_newer() {
        let at = Duration::from_secs;
        let mut candidate = candidate(Some((Some("me"), 0)), None);
        candidate.wrote(at(95), at(100));
        assert_eq!((candidate.valid_until(), candidate.step(at(100))), (None, Step::Write));
        candidate.wrote(at(96), at(100));
        assert_eq!(candidate.valid_until(), Some(at(106)));
        candidate.wrote(at(90), at(100));
        assert_eq!(candidate.valid_until(), Some(at(106)));
        candidate.wrote(at(98), at(105));
        assert_eq!(candidate.valid_until(), Some(at(108)));
    }

    #[test]
    fn a_leader_gives_up_before_others_take_over() {
        for seconds in [0.1, 1.0, 1.9, 5.0, 15.0, 60.0] {
            let timing = Timing::of(Duration::from_secs_f64(seconds));
            let promised = Duration::from_secs(timing.lease_duration.as_secs());
            assert!(timing.renew_deadline < promised, "{seconds}");
            assert!(timing.retry_period * 3 <= timing.renew_deadline);
        }
        assert_eq!(Timing::of(Duration::from_secs(15)), Timing::default());
    }
}
