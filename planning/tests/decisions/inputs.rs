//! A decision depends on what was observed and on nothing else: not on the order of lists, not on a round through JSON; and it is always made.

use crds::conditions::lint;
use jiff::Timestamp;
use planning::digest::digest;
use planning::next::Next;
use planning::release::{ReleaseObserved, ReleasePlan, Waiting};
use planning::stack::{Listing, StackObserved, StackPlan, StackWaiting};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::histories::{Turn, history, live_through};
use crate::world::{Record, World};

fn records(history: &[Turn], slow_caches: bool) -> Vec<Record> {
    let mut world = World::with_kinds();
    world.slow_caches = slow_caches;
    world.recording = true;
    live_through(&mut world, history);
    world.recorded
}

fn through_json<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let text = serde_json::to_string(value).expect("JSON");
    serde_json::from_str(&text).expect("what was written")
}

fn turned_release(observed: &ReleaseObserved) -> ReleaseObserved {
    let mut turned = observed.clone();
    turned.status.resources.reverse();
    turned.status.conditions.reverse();
    turned
}

/// Whether the plan leaves the status as it was read.
fn is_release_untouched(plan: &ReleasePlan) -> bool {
    plan.waiting.contains(&Waiting::Watches)
}

/// Whether the plan leaves all but the conditions as it was read, and those among them that do not speak of the pause.
fn is_release_paused(plan: &ReleasePlan) -> bool {
    plan.waiting.contains(&Waiting::Paused)
}

/// As above; the status of a stack that is being deleted is left too.
fn is_stack_untouched(plan: &StackPlan) -> bool {
    plan.waiting.contains(&StackWaiting::Lists) || !plan.status_due && plan.next == Next::Await
}

/// As above.
fn is_stack_paused(plan: &StackPlan) -> bool {
    let stopped = |why: &StackWaiting| matches!(why, StackWaiting::Paused | StackWaiting::Suspended);
    plan.waiting.iter().any(stopped)
}

fn turned_stack(observed: &StackObserved) -> StackObserved {
    let mut turned = observed.clone();
    turned.spec.versions.reverse();
    turned.status.conditions.reverse();
    if let Listing::Known { releases, .. } = &mut turned.listing {
        releases.reverse();
    }
    for view in turned.releases.values_mut() {
        view.conditions.reverse();
    }
    turned
}

/// Puts other values of the same type, or nothing, in the place of some leaves.
fn disturb(value: &mut Value, seeds: &mut impl Iterator<Item = u64>) {
    match value {
        Value::Object(fields) => {
            if let Some(name) = seeds
                .next()
                .filter(|seed| seed % 29 == 0)
                .and_then(|_| fields.keys().next().cloned())
            {
                fields.remove(&name);
            }
            fields.values_mut().for_each(|field| disturb(field, seeds));
        }
        Value::Array(items) => {
            if seeds.next().is_some_and(|seed| seed % 13 == 0) {
                items.extend(items.first().cloned());
            }
            for item in items.iter_mut() {
                disturb(item, seeds);
            }
        }
        Value::String(text) => match seeds.next().unwrap_or(1) % 41 {
            0 => text.clear(),
            2 => *text = "ü".repeat(700),
            3 => "9999-12-30T22:00:00Z".clone_into(text),
            4 => "-009999-01-02T01:59:59Z".clone_into(text),
            5 => "v18446744073709551615".clone_into(text),
            _ => {}
        },
        Value::Number(number) => match seeds.next().unwrap_or(1) % 17 {
            0 => *number = 0.into(),
            2 => *number = u32::MAX.into(),
            3 => *number = i64::MAX.into(),
            _ => {}
        },
        Value::Bool(flag) => *flag ^= seeds.next().unwrap_or(1).is_multiple_of(7),
        Value::Null => {}
    }
}

fn disturbed<T: Serialize + DeserializeOwned>(value: &T, seed: u64) -> Option<T> {
    let mut json = serde_json::to_value(value).expect("JSON");
    // A small generator of our own: the same seed, the same disturbance.
    let mut state = seed | 1;
    let mut seeds = std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    });
    disturb(&mut json, &mut seeds);
    serde_json::from_value(json).ok()
}

proptest! {
    #![proptest_config(crate::config(150))]

    #[test]
    fn the_order_of_lists_and_a_round_through_json_change_no_decision(history in history(), slow_caches in any::<bool>()) {
        for record in records(&history, slow_caches) {
            match record {
                Record::Stack(observed, now) => {
                    let plan = planning::stack::plan(&observed, now);
                    prop_assert_eq!(&planning::stack::plan(&through_json(&*observed), now), &plan);
                    prop_assert_eq!(through_json(&plan), plan.clone());
                    let turned = turned_stack(&observed);
                    let turned_plan = planning::stack::plan(&turned, now);
                    if is_stack_untouched(&plan) {
                        // As it was read, in the order in which it was read.
                        prop_assert_eq!(turned_plan.status, turned.status);
                    } else {
                        prop_assert_eq!(digest(&turned_plan), digest(&plan));
                    }
                }
                Record::Release(observed, now) => {
                    let plan = planning::release::plan(&observed, now);
                    prop_assert_eq!(&planning::release::plan(&through_json(&*observed), now), &plan);
                    prop_assert_eq!(through_json(&plan), plan.clone());
                    let turned = turned_release(&observed);
                    let turned_plan = planning::release::plan(&turned, now);
                    if is_release_untouched(&plan) {
                        prop_assert_eq!(turned_plan.status, turned.status);
                    } else if is_release_paused(&plan) {
                        prop_assert_eq!(turned_plan.status.conditions, plan.status.conditions);
                    } else {
                        prop_assert_eq!(digest(&turned_plan), digest(&plan));
                    }
                }
            }
        }
    }

    #[test]
    fn time_alone_changes_no_digest_of_a_plan(history in history()) {
        for record in records(&history, false) {
            if let Record::Release(observed, now) = record {
                let later = now.saturating_add(jiff::SignedDuration::from_nanos(1)).expect("an instant");
                prop_assert_eq!(digest(&planning::release::plan(&observed, later)), digest(&planning::release::plan(&observed, now)));
            }
        }
    }

    #[test]
    fn a_decision_is_made_whatever_was_observed(history in history(), seed in any::<u64>(), extreme in 0..3) {
        let records = records(&history, true);
        for (position, record) in records.iter().enumerate() {
            let seed = seed.wrapping_add(position as u64);
            match record {
                Record::Stack(observed, now) => {
                    let Some(observed) = disturbed(&**observed, seed) else { continue };
                    let plan = planning::stack::plan(&observed, moment(*now, extreme));
                    if !is_stack_untouched(&plan) && !is_stack_paused(&plan) {
                        let flaws = lint(&plan.status.conditions, observed.generation, plan.status.observed_generation.unwrap_or_default());
                        prop_assert!(flaws.is_empty(), "{flaws:?}");
                    }
                }
                Record::Release(observed, now) => {
                    let Some(observed) = disturbed(&**observed, seed) else { continue };
                    let plan = planning::release::plan(&observed, moment(*now, extreme));
                    if !is_release_untouched(&plan) && !is_release_paused(&plan) {
                        let flaws = lint(&plan.status.conditions, observed.generation, plan.status.observed_generation.unwrap_or_default());
                        prop_assert!(flaws.is_empty(), "{flaws:?}");
                    }
                }
            }
        }
    }
}

fn moment(now: Timestamp, extreme: i32) -> Timestamp {
    match extreme {
        0 => Timestamp::MIN,
        1 => Timestamp::MAX,
        _ => now,
    }
}
