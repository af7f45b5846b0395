//! Charts that did not render: some have to be mended, others only take another try.

use crds::conditions::{ConditionStatus, ConditionType, Severity, find};
use planning::next::Next;
use planning::objects::{RenderAttempts, Rendering};
use planning::release::{ReleaseObserved, ReleasePlan, Waiting, plan};

use crate::world::{Record, World};

/// A release that is ready.
fn rendered() -> (ReleaseObserved, jiff::Timestamp) {
    let mut world = World::with_kinds();
    world.recording = true;
    world.command("publish docker-harbor-1-34-v1 objects=ConfigMap/values");
    world.command("apply stack harbor versions=[v1]");
    world.settle(jiff::SignedDuration::from_mins(30));
    let mut releases = world.recorded.iter().filter_map(|record| match record {
        Record::Release(observed, now) if matches!(observed.rendering, Rendering::Rendered { .. }) => {
            Some((observed, *now))
        }
        _ => None,
    });
    let (observed, now) = releases.next_back().expect("a release with a rendering");
    (observed.as_ref().clone(), now)
}

/// The decision about a release whose chart does not render.
fn unrendered(transient: impl FnOnce(jiff::Timestamp) -> Option<RenderAttempts>) -> (ReleasePlan, jiff::Timestamp) {
    let (observed, now) = rendered();
    let observed = ReleaseObserved {
        rendering: Rendering::Failed {
            message: "it took long".to_owned(),
            transient: transient(now),
        },
        ..observed
    };
    (plan(&observed, now), now)
}

fn is_stalled(plan: &ReleasePlan) -> bool {
    let mut conditions = plan.status.conditions.iter();
    conditions.any(|condition| {
        condition.type_ == ConditionType::Stalled.as_str() && condition.status == ConditionStatus::True
    })
}

#[test]
fn rendering_that_may_come_right_by_itself_is_tried_again_later_and_later() {
    for (attempts, delay) in [(1, 1), (2, 2), (5, 16), (60, 300)] {
        let (plan, now) = unrendered(|at| Some(RenderAttempts { attempts, at }));
        assert_eq!(plan.next, Next::At(now + jiff::SignedDuration::from_secs(delay)));
        assert!(plan.waiting.contains(&Waiting::NextRendering), "{:?}", plan.waiting);
        assert!(!is_stalled(&plan), "{:?}", plan.status.conditions);
    }
}

#[test]
fn chart_that_has_to_be_mended_waits_for_that() {
    let (plan, _) = unrendered(|_| None);
    assert_eq!(plan.next, Next::Await);
    assert!(plan.waiting.contains(&Waiting::Rendering), "{:?}", plan.waiting);
    assert!(is_stalled(&plan), "{:?}", plan.status.conditions);
}

fn awaited(failed: Option<&str>, ready: bool) -> (ReleaseObserved, ReleasePlan) {
    let (mut observed, now) = rendered();
    observed.rendering = Rendering::Awaited {
        failed: failed.map(str::to_owned),
    };
    observed.status.ready = ready;
    let plan = plan(&observed, now);
    (observed, plan)
}

#[test]
fn chart_that_takes_long_is_waited_for_with_a_reason_and_without_looking_again() {
    let (_, plan) = awaited(None, false);
    assert_eq!((plan.next, plan.steps.len()), (Next::Await, 0));
    assert!(plan.waiting.contains(&Waiting::SlowRendering), "{:?}", plan.waiting);
    assert!(!is_stalled(&plan), "{:?}", plan.status.conditions);
    let told = find(&plan.status.conditions, ConditionType::HelmChartTemplated).expect("a reason");
    assert_eq!(
        (told.status, told.severity, told.reason.as_deref()),
        (ConditionStatus::False, Some(Severity::Info), Some("Progressing"))
    );
}

#[test]
fn chart_that_failed_is_said_to_have_failed_while_it_is_tried_again() {
    let (failed, _) = unrendered(|at| Some(RenderAttempts { attempts: 1, at }));
    let (_, again) = awaited(Some("it took long"), false);
    let told = |plan: &ReleasePlan| find(&plan.status.conditions, ConditionType::HelmChartTemplated).cloned();
    assert!(told(&again).is_some());
    assert_eq!(told(&again), told(&failed));
    assert_eq!(again.next, Next::Await);
}

#[test]
fn release_stays_ready_while_its_chart_is_rendered_once_more() {
    let (observed, plan) = awaited(None, true);
    assert_eq!((plan.next, plan.steps.len()), (Next::Await, 0));
    assert_eq!(plan.status, observed.status);
    assert_eq!(plan.waiting, [Waiting::SlowRendering]);
}
