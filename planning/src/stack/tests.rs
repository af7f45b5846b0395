//! Words of a stack for which the modelled world of the scenarios has no commands.

use std::collections::BTreeMap;

use crds::conditions::{Condition, ConditionStatus, ConditionType, MESSAGE_BYTES, Severity, find};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Listing, ProviderTemplate, ReleaseView, StackObserved, StackPlan, StackWaiting, plan};
use crate::next::Next;
use crate::outage::Outage;
use crate::unlisted::Unlisted;

const TAG: &str = "docker-harbor-1-34-";

fn observed(spec: &Value, listing: &Listing) -> StackObserved {
    let mut whole = json!({
        "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "noProvider": true, "autoSubscribe": false,
    });
    for (field, value) in spec.as_object().expect("a spec") {
        whole[field] = value.clone();
    }
    let observed = json!({
        "name": "harbor", "namespace": "stacks", "uid": "a", "generation": 1, "deleting": false, "paused": false,
        "requested_at": null, "approved_prune": null, "labels": {}, "annotations": {}, "spec": whole, "status": {},
        "status_written_at": null, "source": "directory /releases", "listing": listing, "releases": {}, "used_by": {}, "template": "NotWanted",
        "provider_objects": {},
    });
    serde_json::from_value(observed).expect("a look at a stack")
}

fn known(versions: &[&str]) -> Listing {
    let tags: Vec<String> = versions.iter().map(|version| format!("{TAG}{version}")).collect();
    lists(&tags)
}

fn lists(tags: &[String]) -> Listing {
    let releases: Vec<Value> = tags.iter().map(|tag| json!({"tag": tag})).collect();
    serde_json::from_value(json!({"Known": {"releases": releases, "foreign": 0}})).expect("a listing")
}

/// A release of the stack that says this of itself.
fn release(observed: &mut StackObserved, version: &str, ready: bool, condition: &Value) {
    let view = json!({
        "uid": version, "owner": "Us", "deleting": false, "spec": {}, "ready": ready, "kubernetes_version": null,
        "digest": null, "source": null, "conditions": [condition],
    });
    let view = serde_json::from_value(view).expect("a look at a release");
    observed.releases.insert(format!("{TAG}{version}"), view);
}

fn ready(plan: &StackPlan) -> &Condition {
    find(&plan.status.conditions, ConditionType::Ready).expect("Ready")
}

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

#[test]
fn only_the_source_that_a_release_came_from_is_told_to_hold_it_back() {
    let told = |came_from: &Value| {
        let mut observed = observed(&json!({"autoSubscribe": true}), &known(&["v4"]));
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T09:00:00Z"});
        release(&mut observed, "v5", true, &ready);
        let view = observed.releases.get_mut(&format!("{TAG}v5")).expect("the release");
        (view.digest, view.source) = (Some("sha256:5".to_owned()), came_from.as_str().map(str::to_owned));
        let conditions = plan(&observed, now()).status.conditions;
        let synced = find(&conditions, ConditionType::ReleasesSynced).expect("ReleasesSynced");
        synced.reason.as_deref() == Some("VersionWentBackwards")
    };
    assert!(told(&json!("directory /releases")));
    assert!(
        !told(&json!("repository fleet/releases")),
        "a mirror that ends earlier holds nothing back"
    );
    assert!(!told(&json!(null)));
}

#[test]
fn f45_names_of_others_at_the_source_are_one_number_also_while_it_is_silent() {
    let holds = |foreign: usize| serde_json::from_value(json!({"Known": {"releases": [], "foreign": foreign}}));
    let mut observed = observed(&json!({"autoSubscribe": true}), &holds(3).expect("a listing"));
    let told = |observed: &StackObserved| plan(observed, now()).status.foreign_count;
    assert_eq!(told(&observed), Some(3));
    observed.status = plan(&observed, now()).status;
    observed.listing = Listing::Unavailable {
        message: "no answer".to_owned(),
        outage: None,
    };
    assert_eq!(told(&observed), Some(3));
    observed.listing = holds(0).expect("a listing");
    assert_eq!(told(&observed), None);
}

#[test]
fn what_is_not_at_the_source_is_told_with_what_is() {
    let spec = json!({"versions": ["v3"]});
    let harbor = |versions: &[&str]| versions.iter().map(|version| format!("{TAG}{version}")).collect();
    let table: [(Vec<String>, &str); 3] = [
        (harbor(&["v1", "v2", "v10"]), ": v10, v2, v1"),
        (
            vec!["docker-ferrol-1-34-v3".to_owned(), "docker-ferrol-1-34-v4".to_owned()],
            " no release of docker-harbor-1-34, but of docker-ferrol-1-34",
        ),
        (vec![], " no release of docker-harbor-1-34, nor any other"),
    ];
    for (tags, words) in table {
        let plan = plan(&observed(&spec, &lists(&tags)), now());
        let expected = format!("{TAG}v3 is not in directory /releases, which has{words}");
        assert_eq!(ready(&plan).message.as_ref(), Some(&expected));
    }
}

#[test]
fn a_stack_that_follows_nothing_is_told_what_there_is_instead() {
    let spec = json!({"autoSubscribe": true, "channel": "alpha"});
    for (tag, instead) in [
        ("docker-harbor-1-34-v2", "but v2"),
        ("docker-ferrol-1-33-v2", "but of docker-ferrol-1-33"),
    ] {
        let plan = plan(&observed(&spec, &lists(&[tag.to_owned()])), now());
        let expected = format!(
            "directory /releases has no release of docker-harbor for Kubernetes 1.34 in channel alpha, {instead}"
        );
        assert_eq!(ready(&plan).message.as_ref(), Some(&expected));
    }
}

#[test]
fn a_stack_of_listed_versions_needs_a_source_for_what_it_does_not_have() {
    let unusable = Listing::Unusable {
        message: "use another one".to_owned(),
    };
    let spec = json!({"versions": ["v1"]});
    let mut observed = observed(&spec, &unusable);
    let words = |observed: &StackObserved| {
        let plan = plan(observed, now());
        (ready(&plan).reason.clone(), ready(&plan).severity)
    };
    let told = (Some("FailedCreateAssetsClient".to_owned()), Some(Severity::Error));
    assert_eq!(words(&observed), told);
    let well = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z"});
    release(&mut observed, "v1", true, &well);
    assert_eq!(words(&observed), (None, None), "it has all of them");
}

#[test]
fn a_source_that_does_not_answer_is_told_with_since_when_how_often_and_when_next() {
    let outage = Outage {
        since: "2026-11-21T09:00:00Z".parse().expect("a time"),
        attempts: 7,
        next: Some("2026-11-21T10:15:00Z".parse().expect("a time")),
    };
    let silent = Listing::Unavailable {
        message: "connection refused".to_owned(),
        outage: Some(outage.clone()),
    };
    let mut observed = observed(&json!({"autoSubscribe": true}), &silent);
    assert_eq!(
        ready(&plan(&observed, now())).message,
        Some(outage.tell("connection refused"))
    );

    // A process that starts in the middle of it finds when it began.
    let told = |reason: &str| {
        let condition = json!({
            "type": "ReleasesSynced", "status": "False", "severity": "Warning", "reason": reason,
            "lastTransitionTime": "2026-11-20T08:00:00Z",
        });
        vec![serde_json::from_value(condition).expect("a condition")]
    };
    let since = "2026-11-20T08:00:00Z".parse().expect("a time");
    let longer = Outage {
        since,
        ..outage.clone()
    };
    for (reason, expected) in [("FailedToSync", &longer), ("ReleaseNotFound", &outage)] {
        observed.status.conditions = told(reason);
        let message = ready(&plan(&observed, now())).message.clone();
        assert_eq!(message, Some(expected.tell("connection refused")), "{reason}");
    }
}

#[test]
fn what_follows_the_words_of_a_release_is_kept_however_long_they_are() {
    let spec = json!({"versions": ["v1", "v2"]});
    let mut observed = observed(&spec, &known(&["v1", "v2"]));
    for version in ["v1", "v2"] {
        let broken = json!({
            "type": "Ready", "status": "False", "severity": "Error", "lastTransitionTime": "2026-11-21T10:00:00Z",
            "reason": "IssueWithReleaseAssets", "message": "ü".repeat(MESSAGE_BYTES / 2),
        });
        release(&mut observed, version, false, &broken);
    }
    let plan = plan(&observed, now());
    let message = ready(&plan).message.as_deref().expect("a message");
    assert!(
        message.len() <= MESSAGE_BYTES && message.len() > MESSAGE_BYTES - 4,
        "{}",
        message.len()
    );
    assert!(
        message.starts_with(&format!("{TAG}v2 cannot be used yet: ü")),
        "{message}"
    );
    assert!(message.ends_with("ü...; also not usable: v1"), "{message}");
}

#[test]
fn a_stack_that_is_being_deleted_says_nothing_of_a_pause() {
    let mut observed = observed(&json!({"suspend": true}), &known(&[]));
    observed.paused = true;
    observed.deleting = true;
    let plan = plan(&observed, now());
    assert!(!plan.status_due && plan.status == observed.status, "{plan:?}");
}

#[test]
fn a_pause_is_written_when_the_limit_of_one_write_a_second_allows_it() {
    let mut observed = observed(&json!({"suspend": true}), &known(&[]));
    observed.status_written_at = Some(now());
    let early = plan(&observed, now());
    assert!(!early.status_due, "{early:?}");
    let later = now() + jiff::SignedDuration::from_secs(1);
    let due = plan(&observed, later);
    assert!(due.status_due, "{due:?}");
    observed.status = due.status;
    assert_eq!(plan(&observed, later).status, observed.status);
}

#[test]
fn a_stack_of_hashes_without_order_says_that_one_has_to_be_named() {
    let spec = json!({"autoSubscribe": true, "channel": "sha"});
    let plan = plan(&observed(&spec, &known(&["v0-sha-abc"])), now());
    let ready = ready(&plan);
    let words = "no release is taken by itself: hash releases without a date have no order; name one in spec.versions";
    assert_eq!(
        (ready.reason.as_deref(), ready.message.as_deref()),
        (Some("Waiting"), Some(words))
    );
}

#[test]
fn what_was_said_of_the_source_stands_until_a_new_process_has_asked_it() {
    let spec = json!({"versions": ["v3"]});
    let mut observed = observed(&spec, &known(&["v1"]));
    observed.status = plan(&observed, now()).status;
    observed.listing = Listing::NotAsked;
    let plan = plan(&observed, now());
    assert_eq!(plan.status, observed.status);
    assert_eq!(plan.waiting, [StackWaiting::Lists]);
}

#[test]
fn a_stack_that_asks_for_nothing_says_so() {
    let plan = plan(&observed(&json!({}), &known(&["v1"])), now());
    let ready = ready(&plan);
    let words = "no release is asked for: name versions in spec.versions, or set spec.autoSubscribe to true";
    assert_eq!(
        (ready.status, ready.reason.as_deref(), ready.message.as_deref()),
        (ConditionStatus::True, Some("Waiting"), Some(words))
    );
}

#[test]
fn a_source_that_cannot_be_used_is_nothing_to_wait_for() {
    let unusable = Listing::Unusable {
        message: "use another one".to_owned(),
    };
    let plan = plan(&observed(&json!({"autoSubscribe": true}), &unusable), now());
    let conditions = &plan.status.conditions;
    assert_eq!(find(conditions, ConditionType::Reconciling), None);
    let stalled = find(conditions, ConditionType::Stalled).expect("Stalled");
    assert_eq!(
        (stalled.reason.as_deref(), stalled.message.as_deref()),
        (Some("FailedCreateAssetsClient"), Some("use another one"))
    );
}

#[test]
fn the_status_of_the_largest_stack_fits_into_what_an_api_server_stores() {
    let versions: Vec<String> = (0..crds::cluster_stack::VERSIONS_LENGTH)
        .map(|number| format!("v0-sha.{number:0>56}"))
        .collect();
    let mut observed = observed(&json!({"versions": versions}), &known(&[]));
    for version in &versions {
        let broken = json!({
            "type": "Ready", "status": "False", "severity": "Error", "lastTransitionTime": "2026-11-21T10:00:00Z",
            "reason": "IssueWithReleaseAssets", "message": "\"".repeat(MESSAGE_BYTES),
        });
        release(&mut observed, &version.replace('.', "-"), false, &broken);
    }
    let status = plan(&observed, now()).status;
    assert_eq!(status.summary.len(), versions.len());
    let bytes = serde_json::to_vec(&status).expect("JSON").len();
    assert!(bytes < 1_200_000, "{bytes} bytes");
    let told = |summary: &crds::cluster_stack::ReleaseSummary| summary.message.as_ref().map_or(0, String::len);
    assert!(status.summary.iter().all(|summary| told(summary) > 200));
}

#[test]
fn a_clock_that_was_set_back_holds_back_neither_the_status_nor_a_new_try() {
    let mut observed = observed(&json!({"versions": ["v1"]}), &known(&["v1"]));
    let later = now() + jiff::SignedDuration::from_hours(1);
    observed.status_written_at = Some(later);
    let failure = json!({"message": "no", "attempts": 9, "at": later});
    let failure = serde_json::from_value(failure).expect("a failure");
    let subject = format!("ClusterStackRelease {TAG}v1");
    observed.failures.insert(subject, failure);
    let plan = plan(&observed, now());
    assert!(plan.status_due && plan.actions.len() == 1, "{plan:?}");
    assert_eq!(plan.next, Next::Await);
}

#[test]
fn a_template_whose_watch_does_not_list_stops_a_stack_for_seconds_only_and_then_is_told() {
    let reference = json!({
        "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackReleaseTemplate", "name": "images",
    });
    let spec = json!({"noProvider": false, "providerRef": reference, "versions": ["v1"]});
    let mut observed = observed(&spec, &known(&["v1"]));
    observed.status.observed_generation = Some(1);
    observed.template = ProviderTemplate::NotListed(Unlisted {
        since: now(),
        error: Some("conversion webhook failed".to_owned()),
    });
    let first = now() + jiff::SignedDuration::from_secs(10);
    let soon = plan(&observed, now());
    assert_eq!((&soon.status, soon.next), (&observed.status, Next::At(first)));
    assert_eq!(soon.waiting, [StackWaiting::Lists]);
    let late = plan(&observed, first);
    assert!(
        matches!(late.actions.as_slice(), [super::StackAction::CreateRelease { .. }]),
        "{late:?}"
    );
    let type_ = ConditionType::ProviderClusterStackReleasesSynced;
    let condition = find(&late.status.conditions, type_).expect("it is told of the provider");
    let words = "the provider template has not been looked at yet: conversion webhook failed";
    assert_eq!(condition.message.as_deref(), Some(words));
}

/// A stack whose source holds none of these releases any more.
fn deserted(versions: std::ops::RangeInclusive<u32>) -> StackObserved {
    let mut observed = observed(&json!({}), &known(&[]));
    for number in versions {
        let broken = json!({"type": "Ready", "status": "False", "reason": "RenderFailed", "lastTransitionTime": "2026-11-21T09:00:00Z"});
        release(&mut observed, &format!("v{number}"), false, &broken);
    }
    observed
}

/// The releases that a plan deletes, and the digest that it wants to have approved.
fn prune(plan: &StackPlan) -> (Vec<String>, Option<String>) {
    let deleted = plan.actions.iter().filter_map(|action| match action {
        super::StackAction::DeleteRelease { tag, .. } => Some(tag.clone()),
        _ => None,
    });
    let digest = plan.waiting.iter().find_map(|waiting| match waiting {
        StackWaiting::PruneApproval { digest, .. } => Some(digest.clone()),
        _ => None,
    });
    (deleted.collect(), digest)
}

/// The same stack after somebody has approved what it wants to have approved and the status says so.
fn approved(mut observed: StackObserved) -> StackObserved {
    observed.approved_prune = prune(&plan(&observed, now())).1;
    let recording = plan(&observed, now());
    assert_eq!(
        prune(&recording),
        (vec![], None),
        "the status has to say first what is approved"
    );
    observed.status = recording.status;
    observed
}

#[test]
fn releases_that_are_going_are_neither_counted_nor_approved_again() {
    let mut observed = approved(deserted(1..=14));
    assert_eq!(prune(&plan(&observed, now())).0.len(), 14);
    observed.status.approved_prune = None;
    for view in observed.releases.values_mut() {
        view.deleting = true;
    }
    observed.releases.pop_first();
    assert_eq!(prune(&plan(&observed, now())), (vec![], None));
    observed.releases.values_mut().next().expect("a release").deleting = false;
    let (deleted, digest) = prune(&plan(&observed, now()));
    assert_eq!((deleted.len(), digest), (1, None), "one may always go");
}

#[test]
fn an_approved_deletion_goes_on_after_an_interruption_and_allows_nothing_else() {
    let mut observed = approved(deserted(1..=14));
    // Two are gone, then the process was killed.
    observed.releases.pop_first();
    observed.releases.pop_first();
    let going_on = plan(&observed, now());
    assert_eq!(prune(&going_on).0.len(), 12);
    assert!(going_on.status.approved_prune.is_some());

    let mut more = observed.clone();
    more.releases.extend(deserted(99..=99).releases);
    let (deleted, digest) = prune(&plan(&more, now()));
    assert!(
        deleted.is_empty() && digest.is_some(),
        "another one left the source: {deleted:?}"
    );

    let mut taken_back = observed.clone();
    taken_back.approved_prune = None;
    assert!(prune(&plan(&taken_back, now())).1.is_some());
    assert_eq!(plan(&taken_back, now()).status.approved_prune, None);

    for view in observed.releases.values_mut() {
        view.deleting = true;
    }
    assert_eq!(plan(&observed, now()).status.approved_prune, None, "it is done");
}

#[test]
fn an_approval_whose_last_release_is_gone_deletes_none_that_leaves_the_source_again() {
    let mut observed = approved(deserted(1..=14));
    assert_eq!(prune(&plan(&observed, now())).0.len(), 14);
    let releases = std::mem::take(&mut observed.releases);
    observed.status = plan(&observed, now()).status;
    assert_eq!(observed.status.approved_prune, None, "it is done");
    // The source had them again, and then one faulty list has not; the annotation is where somebody left it.
    observed.releases = made_again(releases);
    let again = plan(&observed, now());
    assert!(
        prune(&again).1.is_some(),
        "nobody has approved that: {:?}",
        again.waiting
    );
    assert_eq!(again.status.approved_prune, None);
}

#[test]
fn an_approval_of_which_one_release_is_left_deletes_none_that_leaves_the_source_again() {
    let mut observed = approved(deserted(1..=14));
    // The deletion of one is refused, and the source has the others again: they are made anew.
    let others = observed.releases.split_off(&format!("{TAG}v10"));
    assert_eq!((observed.releases.len(), others.len()), (1, 13));
    observed.status = plan(&observed, now()).status;
    assert!(observed.status.approved_prune.is_some(), "it goes on");
    observed.releases.extend(made_again(others));
    let again = plan(&observed, now());
    assert_eq!(prune(&again).0, Vec::<String>::new());
    assert!(
        prune(&again).1.is_some(),
        "nobody has approved that: {:?}",
        again.waiting
    );
}

/// Other releases of the same names.
fn made_again(mut releases: BTreeMap<String, ReleaseView>) -> BTreeMap<String, ReleaseView> {
    for view in releases.values_mut() {
        view.uid.push_str(" of another");
    }
    releases
}
