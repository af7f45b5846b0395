//! When the provider's object of a release is applied again, and when not.

use crds::conditions::{ConditionType, find};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::{AppliedProviderObject, ProviderObject, StackAction, StackObserved, StackPlan, plan};
use crate::next::{ECHO, Next};

const TAG: &str = "docker-harbor-1-34-v1";

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

fn object(spec: &Value) -> ProviderObject {
    serde_json::from_value(json!({"spec": spec, "labels": {}, "annotations": {}, "deleting": false}))
        .expect("an object")
}

/// A stack with one release, whose provider object has this spec, if there is one.
fn observed(there: Option<&Value>) -> StackObserved {
    let spec = json!({
        "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false, "versions": ["v1"],
        "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackReleaseTemplate", "name": "images",
        },
    });
    let mut observed: StackObserved = serde_json::from_value(json!({
        "name": "harbor", "namespace": "stacks", "uid": "a", "generation": 1, "deleting": false, "paused": false,
        "requested_at": null, "approved_prune": null, "labels": {}, "annotations": {}, "spec": spec, "status": {},
        "status_written_at": null, "listing": "NotAsked", "releases": {}, "used_by": {}, "provider_objects": {},
        "template": { "Found": { "template": { "spec": { "size": "large", "unknown": true } } } },
    }))
    .expect("a look at a stack");
    let spec = plan(&observed, now())
        .actions
        .into_iter()
        .find_map(|action| match action {
            StackAction::CreateRelease { spec, .. } => Some(spec),
            _ => None,
        });
    let release = json!({
        "uid": "v1", "owner": "Us", "deleting": false, "spec": spec.expect("a release is created"), "ready": false,
        "kubernetes_version": null, "digest": null, "source": null, "conditions": [],
    });
    let release = serde_json::from_value(release).expect("a look at a release");
    observed.releases.insert(TAG.to_owned(), release);
    observed.provider_objects = there.map(|spec| (TAG.to_owned(), object(spec))).into_iter().collect();
    observed
}

/// The same after the one apply that was due had been answered with this spec.
fn applied(mut observed: StackObserved, became: &Value) -> StackObserved {
    let action = apply(&plan(&observed, now())).expect("an apply is due");
    let applied = AppliedProviderObject {
        action,
        became: object(became),
        at: now(),
        reversals: Vec::new(),
    };
    observed.applied.insert(TAG.to_owned(), applied);
    observed
}

fn apply(plan: &StackPlan) -> Option<StackAction> {
    let mut actions = plan.actions.iter();
    actions
        .find(|action| matches!(action, StackAction::ApplyProviderObject { .. }))
        .cloned()
}

#[test]
fn what_was_applied_is_not_applied_again_before_a_watch_may_have_shown_it() {
    let small = json!({"size": "small"});
    for there in [None, Some(&small)] {
        let behind = applied(observed(there), &json!({"size": "large", "unknown": true}));
        let soon = plan(&behind, now());
        assert_eq!(apply(&soon), None, "{there:?}");
        assert_eq!(soon.next, Next::At(now() + ECHO), "{there:?}");
        let late = plan(&behind, now() + ECHO);
        assert!(apply(&late).is_some(), "{there:?}");
    }
}

#[test]
fn what_the_api_server_drops_from_an_object_is_not_applied_for_ever() {
    let large = json!({"size": "large"});
    let mut observed = applied(observed(None), &large);
    observed.provider_objects.insert(TAG.to_owned(), object(&large));
    let much_later = now() + SignedDuration::from_hours(1);
    assert_eq!(apply(&plan(&observed, much_later)), None);

    observed
        .provider_objects
        .insert(TAG.to_owned(), object(&json!({"size": "theirs"})));
    assert!(apply(&plan(&observed, much_later)).is_some(), "somebody changed it");
}

#[test]
fn another_template_reaches_an_object_that_was_applied_a_moment_ago() {
    let mut behind = applied(observed(None), &json!({"size": "large"}));
    let template = json!({ "Found": { "template": { "spec": { "size": "larger" } } } });
    behind.template = serde_json::from_value(template).expect("a template");
    assert!(apply(&plan(&behind, now())).is_some());
}

#[test]
fn what_the_template_and_the_stack_no_longer_have_leaves_the_object_of_the_provider() {
    let spec = json!({"size": "large", "unknown": true});
    let given = |observed: &mut StackObserved, template: &Value, labels: &Value| {
        observed.template =
            serde_json::from_value(json!({"Found": {"template": {"spec": template}}})).expect("a template");
        observed.labels = serde_json::from_value(labels.clone()).expect("labels");
    };
    let mut observed = observed(None);
    given(&mut observed, &spec, &json!({"team": "blue"}));
    let Some(StackAction::ApplyProviderObject {
        spec,
        labels,
        annotations,
        ..
    }) = apply(&plan(&observed, now()))
    else {
        panic!("nothing is applied");
    };
    let there = ProviderObject {
        spec,
        labels,
        annotations,
        ..object(&json!({}))
    };
    observed.provider_objects.insert(TAG.to_owned(), there);
    assert_eq!(apply(&plan(&observed, now())), None, "it is as wanted");

    given(&mut observed, &json!({"size": "large"}), &json!({"team": "blue"}));
    assert!(apply(&plan(&observed, now())).is_some(), "a field left the template");
    given(&mut observed, &json!({"size": "large", "unknown": true}), &json!({}));
    assert!(apply(&plan(&observed, now())).is_some(), "a label left the stack");
}

#[test]
fn who_keeps_changing_the_provider_s_object_is_named_and_left_alone_for_a_while() {
    let theirs = json!({"size": "theirs"});
    let mut observed = applied(observed(None), &json!({"size": "large", "unknown": true}));
    let rival = ProviderObject {
        managers: vec!["argocd".to_owned()],
        ..object(&theirs)
    };
    observed.provider_objects.insert(TAG.to_owned(), rival);
    let seconds = |seconds| now() + SignedDuration::from_secs(seconds);
    let reversals = |observed: &mut StackObserved, times: &[i64]| {
        let before = observed.applied.get_mut(TAG).expect("it was applied");
        before.reversals = times.iter().map(|at| seconds(*at)).collect();
        before.at = *before.reversals.last().expect("a time");
    };
    reversals(&mut observed, &[0, 20]);
    assert!(apply(&plan(&observed, seconds(40))).is_some(), "twice may be a mistake");
    reversals(&mut observed, &[0, 20, 40]);
    let held = plan(&observed, seconds(60));
    assert_eq!((apply(&held), held.next), (None, Next::At(seconds(600))));
    let condition = find(
        &held.status.conditions,
        ConditionType::ProviderClusterStackReleasesSynced,
    )
    .expect("it is told");
    assert_eq!(condition.reason.as_deref(), Some("Contested"));
    let words = format!(
        "DockerClusterStackRelease {TAG}: it was changed by argocd; put back 3 times in ten minutes, left alone until 10:10 UTC"
    );
    assert_eq!(condition.message.as_deref(), Some(words.as_str()));
    assert!(apply(&plan(&observed, seconds(600))).is_some(), "it is tried again");
}
