//! How often a status is written because its words changed and nothing else. A provider, a download and whoever holds a stage up tell how far they are as
//! often as they like, and every write costs the API server, everybody who watches, and the stack, which repeats the words of its releases.

use std::collections::BTreeMap;

use crds::cluster_addon::ClusterAddonStatus;
use crds::cluster_stack_release::ClusterStackReleaseStatus;
use crds::conditions::{Condition, lint};
use crds::resource::Resource;
use jiff::{SignedDuration, Timestamp};

use crate::next::{Next, rests_until};
use crate::objects::key_of;

/// Least time between one write of the status and another that brings other words only.
const WORDS_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// A status that has words for people.
pub(crate) trait Worded: Clone + PartialEq {
    /// The generation that it is about.
    fn generation(&self) -> Option<i64>;

    /// The conditions.
    fn conditions(&mut self) -> &mut Vec<Condition>;

    /// The inventory.
    fn resources(&mut self) -> &mut Vec<Resource>;

    /// The messages beside those of the conditions: as many, in the same order, in two statuses that differ in words only.
    fn messages(&mut self) -> Vec<&mut Option<String>>;
}

impl Worded for ClusterStackReleaseStatus {
    fn generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn resources(&mut self) -> &mut Vec<Resource> {
        &mut self.resources
    }

    fn messages(&mut self) -> Vec<&mut Option<String>> {
        Vec::new()
    }
}

impl Worded for ClusterAddonStatus {
    fn generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn conditions(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn resources(&mut self) -> &mut Vec<Resource> {
        &mut self.resources
    }

    fn messages(&mut self) -> Vec<&mut Option<String>> {
        let stages = self.stages.iter_mut().map(|row| &mut row.message);
        stages
            .chain(self.hook.iter_mut().map(|hook| &mut hook.message))
            .collect()
    }
}

/// The status as it is to be written now, and when time alone lets more be said. `written` is when the one `before` was. What programs act on is never held
/// back: only messages are.
pub(crate) fn paced<Status: Worded>(
    before: &Status,
    written: Option<Timestamp>,
    status: Status,
    now: Timestamp,
) -> (Status, Next) {
    let Some(due) = written.and_then(|at| rests_until(at, WORDS_INTERVAL, now)) else {
        return (status, Next::Await);
    };
    match in_words_of(before, &status) {
        Some(unchanged) => (unchanged, Next::At(due)),
        None => (status, Next::Await),
    }
}

/// The status with the messages of the one before, if they are all that differs; `None` too where somebody else wrote those messages, and they make
/// no sense.
fn in_words_of<Status: Worded>(before: &Status, status: &Status) -> Option<Status> {
    let (words, mut silent_before) = parted(before);
    let (words_now, mut silent_now) = parted(status);
    if words == words_now || in_order(&mut silent_before) != in_order(&mut silent_now) {
        return None;
    }
    let mut unchanged = status.clone();
    for condition in unchanged.conditions() {
        condition.message = words.of_conditions.get(&condition.type_).cloned().flatten();
    }
    for (message, before) in unchanged.messages().into_iter().zip(words.beside) {
        *message = before;
    }
    let generation = status.generation().unwrap_or_default();
    lint(unchanged.conditions(), generation, generation)
        .is_empty()
        .then_some(unchanged)
}

/// The messages of a status.
#[derive(PartialEq)]
struct Words {
    of_conditions: BTreeMap<String, Option<String>>,
    beside: Vec<Option<String>>,
}

/// The messages, and the status without them.
fn parted<Status: Worded>(status: &Status) -> (Words, Status) {
    let mut silent = status.clone();
    let conditions = silent.conditions().iter_mut();
    let of_conditions = conditions
        .map(|condition| (condition.type_.clone(), condition.message.take()))
        .collect();
    let beside = silent.messages().into_iter().map(Option::take).collect();
    let words = Words { of_conditions, beside };
    (words, silent)
}

/// The same, whatever the order of conditions and rows was.
fn in_order<Status: Worded>(status: &mut Status) -> &Status {
    status.conditions().sort_by(|a, b| a.type_.cmp(&b.type_));
    status.resources().sort_by_cached_key(key_of);
    status
}

#[cfg(test)]
mod tests {
    use crds::conditions::{ConditionType, find};
    use serde_json::json;

    use super::*;
    use crate::release::{Provider, ProviderProgress, ReleaseObserved, plan};

    const START: i64 = 1_790_000_000;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(START * 1000 + milliseconds).expect("an instant")
    }

    /// A release that waits for a provider, which has done so much.
    fn waiting(done: u64) -> ReleaseObserved {
        let mut observed: ReleaseObserved = serde_json::from_value(json!({
            "tag": "docker-harbor-1-34-v1", "namespace": "fleet", "uid": "u", "generation": 1, "deleting": false, "finalizer": false,
            "group_kinds": [], "paused": false, "requested_at": null, "approved_prune": null,
            "spec": {}, "status": {}, "used_by": null, "assets": { "Missing": { "message": "it is far away" } },
            "provider": "Missing", "rendering": "NotRendered", "objects": {},
        }))
        .expect("what a look has found");
        observed.provider = says(false, done);
        observed
    }

    fn says(ready: bool, done: u64) -> Provider {
        Provider::Found {
            uid: "p".to_owned(),
            ready,
            controlled: true,
            foreign_controller: None,
            phase: None,
            message: None,
            progress: Some(ProviderProgress {
                done,
                total: None,
                unit: String::new(),
            }),
        }
    }

    fn words(status: &ClusterStackReleaseStatus) -> Option<&str> {
        let type_ = ConditionType::ProviderClusterStackReleaseReady;
        find(&status.conditions, type_)?.message.as_deref()
    }

    /// Plans, and writes what the plan says; whether that was anything.
    fn pass(observed: &mut ReleaseObserved, now: Timestamp) -> (bool, Next) {
        let plan = plan(observed, now);
        let differs = plan.status != observed.status;
        if differs {
            observed.status = plan.status;
            observed.status_written_at = Some(now);
        }
        (differs, plan.next)
    }

    #[test]
    fn progress_that_moves_ten_times_a_second_is_written_every_five_seconds_and_its_end_too() {
        let mut observed = waiting(0);
        let mut writes = Vec::new();
        for turn in 0..=200_u64 {
            observed.provider = says(false, turn);
            let now = i64::try_from(turn).expect("a number") * 100;
            if pass(&mut observed, at(now)).0 {
                writes.push(now);
            }
        }
        assert_eq!(writes, [0, 5_000, 10_000, 15_000, 20_000]);
        observed.provider = says(false, 999);
        let (false, Next::At(due)) = pass(&mut observed, at(20_100)) else {
            panic!("the last word is held back, and nothing tells until when");
        };
        assert_eq!((due, pass(&mut observed, due)), (at(25_000), (true, Next::Await)));
        assert!(words(&observed.status).is_some_and(|words| words.ends_with("999 so far")));
        assert_eq!(
            pass(&mut observed, at(25_100)),
            (false, Next::Await),
            "nothing is left to say"
        );
    }

    #[test]
    fn what_programs_act_on_is_written_at_once() {
        let mut observed = waiting(1);
        assert!(pass(&mut observed, at(0)).0);
        observed.provider = says(true, 2);
        assert!(pass(&mut observed, at(1)).0, "it is ready");
        observed.provider = says(false, 3);
        assert!(pass(&mut observed, at(2)).0, "it is not any more");
        observed.requested_at = Some("look".to_owned());
        assert!(pass(&mut observed, at(3)).0, "somebody waits for an answer");
    }

    #[test]
    fn a_clock_that_was_set_back_holds_no_words_back() {
        let mut observed = waiting(1);
        assert!(pass(&mut observed, at(60_000)).0);
        observed.provider = says(false, 2);
        assert!(pass(&mut observed, at(0)).0);
    }

    #[test]
    fn words_that_somebody_else_wrote_are_put_right_at_once() {
        let mut observed = waiting(1);
        assert!(pass(&mut observed, at(0)).0);
        let theirs = Some("all is well".to_owned());
        observed.status.conditions[0].message = theirs;
        assert!(pass(&mut observed, at(1)).0);
    }
}
