//! When the values of a cluster's charts are made again, and what is said of them. Decides; reads nothing.
//!
//! Templates see the whole of three objects, status and all, which changes every few seconds. So they are executed when something shows that it is worth it,
//! and what is rendered depends on the values that come out, not on the objects that went in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::policy::HelmProfile;
use jiff::{SignedDuration, Timestamp};
use operator_kit::failure::chain;
use planning::addon::Values;
use planning::digest::digest_of_everything;
use planning::next::Next;
use planning::objects::RenderAttempts;
use rendering::ChartValues;

use super::bundle::Bundle;
use super::hidden::Hidden;
use crate::clusters::Mark;

/// Between two executions that nobody has asked for.
const PAUSE: SignedDuration = SignedDuration::from_secs(10);

/// What is a moment, and no habit.
const MEMORABLE: SignedDuration = SignedDuration::from_hours(1);

/// So often in [`MEMORABLE`] something may change by itself, less one.
const RESTLESS: usize = 3;

/// What shows that values may be others, without the objects being read. Digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Occasion {
    /// The release and the Cluster alone: of these, values that were made before are better than none.
    pub(crate) base: String,
    /// What somebody decided: the release with its templates; identity, generation and labels of the objects; what the Cluster takes values from.
    pub(crate) decided: String,
    /// What comes by itself: their annotations, how far the cluster is.
    pub(crate) happened: String,
}

impl Occasion {
    /// Of a release and the objects of a cluster: the Cluster, its control plane, its infrastructure; and of what `given` tells, which the Cluster takes values
    /// from.
    pub(crate) fn of(
        bundle: &Bundle,
        profile: HelmProfile,
        (marks, given): (&[Option<Mark>; 3], &GivenMarks),
        is_initialized: bool,
    ) -> Self {
        let decided = |mark: &Option<Mark>| {
            mark.as_ref()
                .map(|mark| (mark.uid.clone(), mark.generation, mark.labels.clone()))
        };
        let decided: Vec<_> = marks.iter().map(decided).collect();
        let cluster = marks[0].as_ref().map(|mark| &mark.uid);
        let happened = |mark: &Option<Mark>| mark.as_ref().map(|mark| mark.annotations.clone());
        let happened: Vec<_> = marks.iter().map(happened).collect();
        Self {
            base: digest_of_everything(&(bundle.identity_of_values(), profile.to_string(), cluster)),
            decided: digest_of_everything(&(bundle.identity_of_values(), profile.to_string(), decided, given)),
            happened: digest_of_everything(&(happened, is_initialized)),
        }
    }
}

/// What a Cluster says that it takes values from, and the version of each of these objects that a watch shows and that may be taken.
pub(crate) type GivenMarks = (Option<String>, Vec<Option<String>>);

/// The values of all charts of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Evaluated {
    /// By folder of the chart.
    pub(crate) charts: BTreeMap<String, Arc<ChartValues>>,
    /// The charts that have none, and why, with file and line.
    pub(crate) failed: BTreeMap<String, String>,
    /// Whether some of them may have values when they are made again, without anybody having changed the Cluster.
    pub(crate) may_pass: bool,
    /// The charts that have those that were made before, and why there are no others.
    pub(crate) held: BTreeMap<String, String>,
    /// Of all of them.
    pub(crate) digest: String,
    /// What nobody may read of them.
    pub(crate) hidden: Hidden,
    /// What is otherwise than the release asks for, in words.
    pub(crate) note: Option<String>,
}

impl Evaluated {
    pub(crate) fn of(
        charts: BTreeMap<String, Arc<ChartValues>>,
        failed: BTreeMap<String, String>,
        hidden: Hidden,
        note: Option<String>,
    ) -> Self {
        Self {
            digest: digest_of(&charts, &failed),
            hidden,
            charts,
            failed,
            may_pass: false,
            held: BTreeMap::new(),
            note,
        }
    }

    /// Whether there is more than before and nothing else: charts have values that had none yet.
    fn completes(&self, before: &Self) -> bool {
        let is_same = |(chart, values): (&String, &Arc<ChartValues>)| {
            let now = self.charts.get(chart);
            now.is_some_and(|now| now.digest == values.digest)
        };
        !before.failed.is_empty() && before.charts.iter().all(is_same)
    }
}

/// What a chart without values says does not matter, only that it has none.
fn digest_of(charts: &BTreeMap<String, Arc<ChartValues>>, failed: &BTreeMap<String, String>) -> String {
    let made = charts.iter().map(|(name, values)| (name, Some(&values.digest)));
    let digests: BTreeMap<&String, Option<&String>> = made.chain(failed.keys().map(|name| (name, None))).collect();
    digest_of_everything(&digests)
}

/// The last values of each chart, of one release and Cluster. They take the place of those that cannot be made: what is applied is looked after meanwhile.
#[derive(Debug, Default)]
struct Sound {
    base: String,
    /// With what nobody may read of them.
    charts: BTreeMap<String, (Arc<ChartValues>, Hidden)>,
}

impl Sound {
    /// The values with those of before where there are no others; an error when no chart has any.
    fn complete(&mut self, base: &str, evaluated: Arc<Evaluated>) -> Result<Arc<Evaluated>, Unmade> {
        if self.base != base {
            base.clone_into(&mut self.base);
            self.charts.clear();
        }
        for (chart, values) in &evaluated.charts {
            let sound = (Arc::clone(values), evaluated.hidden.clone());
            self.charts.insert(chart.clone(), sound);
        }
        let Some(first) = evaluated.failed.values().next() else {
            return Ok(evaluated);
        };
        let mut completed = Evaluated::clone(&evaluated);
        for (chart, message) in &evaluated.failed {
            if let Some((values, hidden)) = self.charts.get(chart) {
                completed.failed.remove(chart);
                completed.held.insert(chart.clone(), message.clone());
                completed.charts.insert(chart.clone(), Arc::clone(values));
                completed.hidden = completed.hidden.with(hidden);
            }
        }
        if completed.charts.is_empty() {
            return Err(Unmade {
                message: first.clone(),
                transient: evaluated.may_pass,
            });
        }
        completed.digest = digest_of(&completed.charts, &completed.failed);
        Ok(Arc::new(completed))
    }
}

/// Why there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmade {
    /// For people, with file and line.
    pub(crate) message: String,
    /// Whether trying again may help.
    pub(crate) transient: bool,
}

impl Unmade {
    /// Somebody has to do something.
    pub(crate) fn for_good(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            message: chain(error),
            transient: false,
        }
    }

    /// Trying again may help.
    pub(crate) fn for_now(message: &str) -> Self {
        Self {
            message: message.to_owned(),
            transient: true,
        }
    }
}

/// When to make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// They are as they would be.
    No,
    /// Then.
    At(Timestamp),
    /// Now; what is known of them until they are made holds or does not.
    Now {
        /// Whether what is known is of what is asked for.
        holds: bool,
    },
}

/// What is remembered of the values of one cluster.
#[derive(Debug, Default)]
pub(crate) struct ValuesMemory {
    last: Option<Last>,
    sound: Sound,
    /// The last values that there were, whatever came after them.
    digest: Option<String>,
    changes: Changes,
}

#[derive(Debug)]
struct Last {
    occasion: Occasion,
    at: Timestamp,
    outcome: Result<Arc<Evaluated>, String>,
    /// How often in a row they, or those of some charts, could not be made for a reason that may pass.
    attempts: Option<RenderAttempts>,
}

/// Changes that came by themselves, within an hour; three at most.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<Timestamp>);

impl Changes {
    /// One more.
    pub(crate) fn note(&mut self, now: Timestamp) {
        self.0.retain(|at| is_memorable(*at, now));
        if self.0.len() == RESTLESS {
            self.0.remove(0);
        }
        self.0.push(now);
    }

    /// Somebody has decided otherwise: it begins anew.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    /// Until when there are too many of them, if there are.
    pub(crate) fn restless_until(&self, now: Timestamp) -> Option<Timestamp> {
        let mut recent = self.0.iter().filter(|at| is_memorable(**at, now));
        let first = recent.next()?;
        (recent.count() + 1 >= RESTLESS).then(|| later(*first, MEMORABLE))
    }
}

/// What is from the future is from before the clock was set.
fn is_memorable(at: Timestamp, now: Timestamp) -> bool {
    let age = now.duration_since(at);
    !age.is_negative() && age < MEMORABLE
}

fn later(at: Timestamp, pause: SignedDuration) -> Timestamp {
    at.checked_add(pause).unwrap_or(Timestamp::MAX)
}

impl ValuesMemory {
    /// Whether to make them for this occasion.
    pub(crate) fn due(&self, occasion: &Occasion, now: Timestamp) -> Due {
        let Some(last) = &self.last else {
            return Due::Now { holds: false };
        };
        if last.occasion.decided != occasion.decided {
            return Due::Now { holds: false };
        }
        let retried = last.attempts.map(|attempts| attempts.retry_at(now).unwrap_or(now));
        // Of the same objects a wrong template makes nothing else either. A clock that was set back does not lengthen it.
        let changed = (last.occasion != *occasion).then(|| later(last.at.min(now), PAUSE));
        let at = match &last.outcome {
            Err(_) if retried.is_some() => retried,
            Ok(_) | Err(_) => changed.into_iter().chain(retried).min(),
        };
        match at {
            None => Due::No,
            Some(at) if at <= now => Due::Now { holds: true },
            Some(at) => Due::At(at),
        }
    }

    /// What came of making them.
    pub(crate) fn made(&mut self, occasion: Occasion, outcome: Result<Arc<Evaluated>, Unmade>, now: Timestamp) {
        let before = self.last.take();
        let is_decided = before
            .as_ref()
            .is_none_or(|last| last.occasion.decided != occasion.decided);
        if is_decided {
            self.changes.forget();
        }
        let tried = before
            .as_ref()
            .filter(|_| !is_decided)
            .and_then(|last| last.attempts)
            .map_or(0, |before| before.attempts);
        let again = || RenderAttempts {
            attempts: tried.saturating_add(1),
            at: now,
        };
        let (outcome, may_pass) = match outcome.and_then(|evaluated| self.sound.complete(&occasion.base, evaluated)) {
            Ok(evaluated) => {
                let is_other = self.digest.as_ref().is_some_and(|digest| *digest != evaluated.digest);
                let last = before.as_ref().and_then(|last| last.outcome.as_ref().ok());
                // The objects of a cluster come one after the other, and templates get on with them. That ends, since what was made once is never missed again.
                let is_on_the_way = last.is_some_and(|last| evaluated.completes(last));
                if is_other && !is_decided && !is_on_the_way {
                    self.changes.note(now);
                }
                self.digest = Some(evaluated.digest.clone());
                let may_pass = evaluated.may_pass;
                (Ok(evaluated), may_pass)
            }
            Err(Unmade { transient: true, .. })
                if !is_decided && before.as_ref().is_some_and(|last| last.outcome.is_ok()) =>
            {
                // What is known holds, and it is tried again after the pause.
                self.last = before.map(|last| Last {
                    at: now,
                    attempts: last.attempts.map(|_| again()),
                    ..last
                });
                return;
            }
            Err(Unmade { message, transient }) => (Err(message), transient),
        };
        self.last = Some(Last {
            occasion,
            at: now,
            outcome,
            attempts: may_pass.then(again),
        });
    }

    /// Whoever asks for it wants to see now what becomes of them.
    pub(crate) fn try_again(&mut self) {
        self.last = None;
        self.changes.forget();
    }

    /// The values, if there are any that may be used.
    pub(crate) fn usable(&self, now: Timestamp) -> Option<&Arc<Evaluated>> {
        let last = self
            .last
            .as_ref()
            .filter(|_| self.changes.restless_until(now).is_none());
        last?.outcome.as_ref().ok()
    }

    /// How they are.
    pub(crate) fn seen(&self, now: Timestamp) -> Values {
        let Some(last) = &self.last else {
            return Values::Awaited;
        };
        match &last.outcome {
            Err(message) => Values::Failed {
                message: message.clone(),
            },
            Ok(_) if self.changes.restless_until(now).is_some() => Values::Unstable {
                message: format!(
                    "the values of the charts have changed {RESTLESS} times within an hour without anybody having changed the Cluster: \
                     their templates must not use what changes by itself, such as times and counts in a status"
                ),
            },
            Ok(evaluated) => Values::Known {
                digest: evaluated.digest.clone(),
            },
        }
    }

    /// When time alone makes a difference.
    pub(crate) fn next(&self, occasion: &Occasion, now: Timestamp) -> Next {
        let due = match self.due(occasion, now) {
            Due::At(at) => Next::At(at),
            // What is due now is under way.
            Due::No | Due::Now { .. } => Next::Await,
        };
        match self.changes.restless_until(now) {
            Some(until) => due.sooner(Next::At(until)),
            None => due,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn occasion(decided: &str, happened: &str) -> Occasion {
        Occasion {
            base: "a release".to_owned(),
            decided: decided.to_owned(),
            happened: happened.to_owned(),
        }
    }

    fn values(digest: &str) -> Arc<Evaluated> {
        Arc::new(Evaluated {
            charts: BTreeMap::new(),
            failed: BTreeMap::new(),
            may_pass: false,
            held: BTreeMap::new(),
            digest: digest.to_owned(),
            hidden: Hidden::default(),
            note: None,
        })
    }

    fn failed(transient: bool) -> Unmade {
        Unmade {
            message: "no".to_owned(),
            transient,
        }
    }

    #[test]
    fn what_somebody_decides_is_evaluated_at_once_and_what_happens_every_ten_seconds() {
        let mut memory = ValuesMemory::default();
        assert_eq!(memory.due(&occasion("a", "1"), at(0)), Due::Now { holds: false });
        memory.made(occasion("a", "1"), Ok(values("x")), at(0));
        assert_eq!(memory.due(&occasion("a", "1"), at(100)), Due::No);
        assert_eq!(memory.due(&occasion("a", "2"), at(3)), Due::At(at(10)));
        assert_eq!(memory.next(&occasion("a", "2"), at(3)), Next::At(at(10)));
        assert_eq!(memory.due(&occasion("a", "2"), at(10)), Due::Now { holds: true });
        assert_eq!(memory.due(&occasion("b", "1"), at(1)), Due::Now { holds: false });
        // The clock was set back by an hour.
        assert_eq!(memory.due(&occasion("a", "2"), at(-3600)), Due::At(at(-3590)));
    }

    #[test]
    fn values_that_change_three_times_by_themselves_are_not_followed_until_somebody_decides_or_an_hour_has_passed() {
        let mut memory = ValuesMemory::default();
        for (number, digest) in ["x", "y", "x"].into_iter().enumerate() {
            let seconds = 10 * i64::try_from(number).unwrap();
            memory.made(occasion("a", &number.to_string()), Ok(values(digest)), at(seconds));
            let known = Values::Known {
                digest: digest.to_owned(),
            };
            assert_eq!(memory.seen(at(seconds)), known, "{number}");
        }
        let last = occasion("a", "3");
        memory.made(last.clone(), Ok(values("y")), at(30));
        assert!(matches!(memory.seen(at(30)), Values::Unstable { .. }));
        assert_eq!(memory.usable(at(30)), None);
        // The first change was at ten seconds.
        let until = at(10 + 3600);
        assert_eq!(memory.next(&last, at(30)), Next::At(until));
        assert!(matches!(memory.seen(until), Values::Known { .. }));
        memory.made(occasion("b", "3"), Ok(values("z")), at(31));
        assert!(matches!(memory.seen(at(31)), Values::Known { .. }));
    }

    #[test]
    fn values_that_stay_the_same_are_never_unstable_however_often_they_are_made() {
        let mut memory = ValuesMemory::default();
        for number in 0..100 {
            memory.made(occasion("a", &number.to_string()), Ok(values("x")), at(10 * number));
        }
        assert!(matches!(memory.seen(at(1000)), Values::Known { .. }));
    }

    #[test]
    fn values_hold_while_the_objects_that_they_are_made_of_cannot_be_read() {
        let mut memory = ValuesMemory::default();
        memory.made(occasion("a", "1"), Ok(values("x")), at(0));
        memory.made(occasion("a", "2"), Err(failed(true)), at(10));
        assert!(matches!(memory.seen(at(10)), Values::Known { .. }));
        assert_eq!(memory.due(&occasion("a", "2"), at(10)), Due::At(at(20)));
        memory.made(occasion("b", "2"), Err(failed(true)), at(20));
        assert!(matches!(memory.seen(at(20)), Values::Failed { .. }));
    }

    fn of_charts(made: &[&str], failed: &[&str]) -> Arc<Evaluated> {
        let made = made
            .iter()
            .map(|chart| ((*chart).to_owned(), Arc::new(ChartValues::none())));
        let failed = failed.iter().map(|chart| ((*chart).to_owned(), format!("no {chart}")));
        Arc::new(Evaluated::of(made.collect(), failed.collect(), Hidden::default(), None))
    }

    #[test]
    fn values_that_cannot_be_made_leave_those_of_before_and_of_another_release_none() {
        let mut memory = ValuesMemory::default();
        memory.made(occasion("a", "1"), Ok(of_charts(&["light", "quay"], &[])), at(0));
        let before = memory.seen(at(0));
        memory.made(occasion("b", "1"), Ok(of_charts(&["quay"], &["light"])), at(1));
        assert_eq!(memory.seen(at(1)), before);
        let usable = memory.usable(at(1)).expect("values");
        assert_eq!((usable.charts.len(), usable.failed.len()), (2, 0));
        assert_eq!(usable.held, [("light".to_owned(), "no light".to_owned())].into());
        // All of them, for as long as that lasts.
        for second in 2..5 {
            let decided = format!("c{second}");
            memory.made(
                occasion(&decided, "1"),
                Ok(of_charts(&[], &["light", "quay"])),
                at(second),
            );
            assert_eq!(memory.seen(at(second)), before);
            assert_eq!(memory.usable(at(second)).expect("values").held.len(), 2);
        }
        memory.made(occasion("a", "1"), Ok(of_charts(&["light", "quay"], &[])), at(5));
        assert_eq!(memory.usable(at(5)).expect("values").held.len(), 0);

        let of_another = Occasion {
            base: "another release".to_owned(),
            ..occasion("d", "1")
        };
        memory.made(of_another.clone(), Ok(of_charts(&["quay"], &["light"])), at(6));
        let usable = memory.usable(at(6)).expect("values");
        assert_eq!((usable.charts.len(), usable.failed.len(), usable.held.len()), (1, 1, 0));
        assert_ne!(memory.seen(at(6)), before, "it is another target");
        let of_a_third = Occasion {
            base: "a third".to_owned(),
            ..of_another
        };
        memory.made(of_a_third, Ok(of_charts(&[], &["light", "quay"])), at(7));
        let failed = Values::Failed {
            message: "no light".to_owned(),
        };
        assert_eq!(memory.seen(at(7)), failed);
    }

    #[test]
    fn charts_that_have_none_for_a_reason_that_may_pass_get_them_ever_later_and_the_others_what_changes_meanwhile() {
        let mut memory = ValuesMemory::default();
        let same = occasion("a", "1");
        let waits = || {
            Ok(Arc::new(Evaluated {
                may_pass: true,
                ..Evaluated::clone(&of_charts(&["quay"], &["light"]))
            }))
        };
        let retried = |memory: &ValuesMemory, now: Timestamp| match memory.due(&same, now) {
            Due::At(at) => at,
            other => panic!("{other:?}"),
        };
        memory.made(same.clone(), waits(), at(0));
        let first = retried(&memory, at(0));
        assert_eq!(memory.next(&same, at(0)), Next::At(first));
        assert_eq!(memory.due(&same, first), Due::Now { holds: true });
        memory.made(same.clone(), waits(), first);
        let second = retried(&memory, first);
        assert!(second.duration_since(first) > first.duration_since(at(0)));
        // Nor is the API server asked all the time that does not answer.
        memory.made(same.clone(), Err(failed(true)), second);
        assert!(matches!(memory.seen(second), Values::Known { .. }));
        let third = retried(&memory, second);
        assert!(third.duration_since(second) > second.duration_since(first));
        for number in 0..20 {
            memory.made(same.clone(), waits(), third + SignedDuration::from_secs(number));
        }
        let late = third + SignedDuration::from_secs(19);
        assert!(retried(&memory, late) > late + PAUSE);
        assert_eq!(memory.due(&occasion("a", "2"), late), Due::At(late + PAUSE));
        memory.made(same.clone(), Ok(of_charts(&["light", "quay"], &[])), late);
        assert_eq!(memory.due(&same, late + MEMORABLE), Due::No);
    }

    #[test]
    fn charts_that_have_their_first_values_one_after_the_other_are_not_unstable() {
        let charts = ["light", "pilot", "quay", "rope"];
        let mut memory = ValuesMemory::default();
        let mut targets = Vec::new();
        for made in 1..=charts.len() {
            let seconds = 10 * i64::try_from(made).unwrap();
            let (made, failed) = charts.split_at(made);
            memory.made(
                occasion("a", &seconds.to_string()),
                Ok(of_charts(made, failed)),
                at(seconds),
            );
            let seen = memory.seen(at(seconds));
            assert!(matches!(seen, Values::Known { .. }), "{made:?}: {seen:?}");
            assert!(!targets.contains(&seen), "{made:?}: it is another target");
            targets.push(seen);
        }
    }

    #[test]
    fn what_may_pass_is_tried_again_ever_later_and_a_wrong_template_when_its_objects_change() {
        let mut memory = ValuesMemory::default();
        let same = occasion("a", "1");
        memory.made(same.clone(), Err(failed(true)), at(0));
        let Due::At(first) = memory.due(&same, at(0)) else {
            panic!("{:?}", memory.due(&same, at(0)));
        };
        assert_eq!(memory.due(&same, first), Due::Now { holds: true });
        memory.made(same.clone(), Err(failed(true)), first);
        let Due::At(second) = memory.due(&same, first) else {
            panic!("{:?}", memory.due(&same, first));
        };
        assert!(second.duration_since(first) > first.duration_since(at(0)));

        memory.made(same.clone(), Err(failed(false)), second);
        assert_eq!(memory.due(&same, second + MEMORABLE), Due::No);
        assert_eq!(
            memory.due(&occasion("a", "2"), second + PAUSE),
            Due::Now { holds: true }
        );
        assert!(matches!(memory.seen(second), Values::Failed { .. }));
    }
}
