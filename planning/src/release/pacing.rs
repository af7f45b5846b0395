//! How often a status is written because its words changed and nothing else. A provider and a download tell how far they are as often as they like, and
//! every write costs the API server, everybody who watches, and the stack, which repeats the words.

use std::collections::BTreeMap;

use crds::cluster_stack_release::ClusterStackReleaseStatus;
use crds::conditions::lint;
use jiff::{SignedDuration, Timestamp};

use super::observed::ReleaseObserved;
use crate::next::{Next, rests_until};
use crate::objects::key_of;

/// Least time between one write of the status and another that brings other words only.
const WORDS_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// The status as it is to be written now, and when time alone lets more be said. What programs act on is never held back: only messages are.
pub(super) fn paced(
    observed: &ReleaseObserved,
    status: ClusterStackReleaseStatus,
    now: Timestamp,
) -> (ClusterStackReleaseStatus, Next) {
    let written = observed.status_written_at;
    let Some(due) = written.and_then(|at| rests_until(at, WORDS_INTERVAL, now)) else {
        return (status, Next::Await);
    };
    match in_words_of(&observed.status, &status) {
        Some(unchanged) => (unchanged, Next::At(due)),
        None => (status, Next::Await),
    }
}

/// The status with the messages of the one before, if they are all that differs; `None` too where somebody else wrote those messages, and they make
/// no sense.
fn in_words_of(
    before: &ClusterStackReleaseStatus,
    status: &ClusterStackReleaseStatus,
) -> Option<ClusterStackReleaseStatus> {
    let words = |status: &ClusterStackReleaseStatus| -> BTreeMap<String, Option<String>> {
        let conditions = status.conditions.iter();
        conditions
            .map(|condition| (condition.type_.clone(), condition.message.clone()))
            .collect()
    };
    let words_before = words(before);
    if words_before == words(status) || silent(before) != silent(status) {
        return None;
    }
    let mut unchanged = status.clone();
    for condition in &mut unchanged.conditions {
        condition.message = words_before.get(&condition.type_).cloned().flatten();
    }
    let generation = status.observed_generation.unwrap_or_default();
    lint(&unchanged.conditions, generation, generation)
        .is_empty()
        .then_some(unchanged)
}

/// The same without messages, in one order.
fn silent(status: &ClusterStackReleaseStatus) -> ClusterStackReleaseStatus {
    let mut silent = status.clone();
    for condition in &mut silent.conditions {
        condition.message = None;
    }
    silent.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    silent.resources.sort_by_cached_key(key_of);
    silent
}

#[cfg(test)]
mod tests {
    use crds::conditions::{ConditionType, find};
    use serde_json::json;

    use super::super::observed::{Provider, ProviderProgress};
    use super::super::plan::plan;
    use super::*;

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
