//! Steps of a release with a provider, for which the modelled world of the scenarios has no commands.

use std::collections::BTreeMap;

use crds::conditions::{ConditionStatus, ConditionType, find};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::observed::{Controlled, ProviderProgress};
use super::*;
use crate::object_key::{GroupKind, ObjectKey, ObjectRef};
use crate::objects::{Attempt, Belongs, Failure, Intent, ObjectAction, ObjectObserved, Read, Seen, Wait, key_of};
use crate::unlisted::Unlisted;
use crate::waves::wave_of;

const TAG: &str = "docker-harbor-1-34-v1";

fn now() -> Timestamp {
    "2026-11-21T10:00:00Z".parse().expect("a time")
}

/// A release that refers to its own provider's object.
fn observed(provider: Provider) -> ReleaseObserved {
    let mut observed: ReleaseObserved = serde_json::from_value(json!({
        "tag": TAG, "namespace": "fleet", "uid": "u", "generation": 1, "deleting": false, "finalizer": true,
        "group_kinds": [], "paused": false, "requested_at": null, "approved_prune": null, "status": {}, "used_by": null,
        "spec": { "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1", "kind": "DockerClusterStackRelease", "name": TAG,
        } },
        "assets": { "Missing": { "message": "it is far away" } }, "provider": "Missing", "rendering": "NotRendered", "objects": {},
    }))
    .expect("what a look has found");
    observed.provider = provider;
    observed
}

fn uncontrolled(uid: &str) -> Provider {
    Provider::Found {
        uid: uid.to_owned(),
        ready: false,
        controlled: false,
        foreign_controller: None,
        phase: None,
        message: None,
        progress: None,
    }
}

/// The identity of the provider's object that is taken.
fn taken(plan: &ReleasePlan) -> Option<String> {
    let mut actions = plan.steps.iter().flat_map(Step::on_owner);
    actions.find_map(|action| match action {
        ReleaseAction::ControlProvider { uid } => Some(uid.clone()),
        _ => None,
    })
}

#[test]
fn the_provider_s_object_is_not_taken_again_before_the_watch_may_have_shown_it() {
    let mut observed = observed(uncontrolled("one"));
    assert_eq!(taken(&plan(&observed, now())).as_deref(), Some("one"));
    observed.controlled = Some(Controlled {
        uid: "one".to_owned(),
        at: now(),
    });
    let soon = plan(&observed, now());
    assert_eq!((taken(&soon), soon.next), (None, Next::At(now() + ECHO)));
    assert_eq!(taken(&plan(&observed, now() + ECHO)).as_deref(), Some("one"));

    observed.provider = uncontrolled("another");
    assert_eq!(taken(&plan(&observed, now())).as_deref(), Some("another"));
}

fn seen(ours: bool) -> ObjectObserved {
    ObjectObserved {
        version: "v1beta1".to_owned(),
        served: true,
        watched: true,
        seen: Some(Seen {
            uid: "o".to_owned(),
            trigger: "o g1".to_owned(),
            resource_version: "1".to_owned(),
            ours,
            deleting: false,
        }),
        ..ObjectObserved::default()
    }
}

/// A release that asks for one object.
fn installed(key: &ObjectKey) -> ReleaseObserved {
    let mut observed = observed(Provider::NotWanted);
    let files =
        json!({ "Ready": { "digest": "sha256:f", "source": "directory /releases", "kubernetes_version": "v1.34.1" } });
    observed.assets = serde_json::from_value(files).expect("files");
    let intent = Intent {
        object: ObjectRef {
            version: "v1beta1".to_owned(),
            key: key.clone(),
        },
        digest: "sha256:a".to_owned(),
        wave: wave_of(&key.group_kind()),
    };
    observed.rendering = Rendering::Rendered {
        intents: BTreeMap::from([(key.clone(), intent)]),
    };
    observed.group_kinds = [key.group_kind()].into();
    observed
}

#[test]
fn a_copy_of_a_marked_object_opens_no_gate() {
    let key = |name: &str| ObjectKey::new("cluster.x-k8s.io", "ClusterClass", "fleet", name);
    let acts = |marked: &str| {
        let mut observed = installed(&key(TAG));
        observed.provider = Provider::Missing;
        observed.objects.insert(key(marked), seen(true));
        let absent = || ObjectObserved {
            seen: None,
            ..seen(true)
        };
        observed.objects.entry(key(TAG)).or_insert_with(absent);
        let plan = plan(&observed, now());
        plan.steps
            .iter()
            .any(|step| step.actions.iter().any(|action| action.object().is_some()))
    };
    assert!(!acts("docker-harbor-1-34-copy"));
    assert!(acts(TAG), "it was installed before its status was lost");
}

#[test]
fn a_clock_that_was_set_back_holds_no_object_up() {
    let mut observed = observed(Provider::NotWanted);
    observed.rendering = Rendering::Failed {
        message: "it took long".to_owned(),
        transient: Some(crate::objects::RenderAttempts {
            attempts: 9,
            at: now() + SignedDuration::from_hours(1),
        }),
    };
    assert_eq!(plan(&observed, now()).next, Next::Now);
}

fn unlisted(since: Timestamp) -> Provider {
    Provider::NotListed(Unlisted {
        since,
        error: Some("conversion webhook failed".to_owned()),
    })
}

#[test]
fn a_provider_whose_watch_does_not_list_stops_a_release_for_seconds_only_and_then_is_told() {
    let mut observed = observed(unlisted(now()));
    observed.status.observed_generation = Some(1);
    let first = now() + SignedDuration::from_secs(10);
    let soon = plan(&observed, now());
    assert_eq!((&soon.status, soon.next), (&observed.status, Next::At(first)));
    let late = plan(&observed, first);
    let condition = find(&late.status.conditions, ConditionType::ProviderClusterStackReleaseReady);
    let condition = condition.expect("it is told of the provider");
    assert_eq!(condition.reason.as_deref(), Some("NotObservedYet"));
    let words = "providerClusterStackRelease has not been looked at yet: conversion webhook failed";
    assert_eq!(condition.message.as_deref(), Some(words));
    assert_eq!(
        late.next,
        Next::At(first + SignedDuration::from_mins(1)),
        "the words may change"
    );

    let on_its_way = Unlisted {
        since: now(),
        error: None,
    };
    observed.provider = Provider::NotListed(on_its_way);
    let long = plan(&observed, now() + SignedDuration::from_secs(25));
    assert_eq!(long.status, observed.status, "a long list is no trouble");
    assert_eq!(long.next, Next::At(now() + SignedDuration::from_secs(35)));
}

#[test]
fn a_release_that_was_ready_stays_so_while_the_watch_of_its_provider_does_not_list() {
    const TYPE: ConditionType = ConditionType::ProviderClusterStackReleaseReady;
    let key = ObjectKey::new("cluster.x-k8s.io", "ClusterClass", "fleet", TAG);
    let mut observed = installed(&key);
    observed.provider = Provider::Found {
        uid: "one".to_owned(),
        ready: true,
        controlled: true,
        foreign_controller: None,
        phase: None,
        message: None,
        progress: None,
    };
    observed.status = plan(&observed, now()).status;
    observed.provider = unlisted(now());
    let told = |observed: &ReleaseObserved| {
        let late = plan(observed, now() + SignedDuration::from_mins(1));
        let told = find(&late.status.conditions, TYPE)
            .cloned()
            .expect("it is told of the provider");
        (told.status, told.message.unwrap_or_default())
    };
    let words = "providerClusterStackRelease was ready and has not been looked at since: conversion webhook failed";
    assert_eq!(told(&observed), (ConditionStatus::True, words.to_owned()));
    observed.generation += 1;
    assert_eq!(
        told(&observed).0,
        ConditionStatus::False,
        "it may refer to another object by now"
    );
}

#[test]
fn how_far_a_provider_is_is_told_once() {
    const TYPE: ConditionType = ConditionType::ProviderClusterStackReleaseReady;
    let told = |message: &str| {
        let key = ObjectKey::new("cluster.x-k8s.io", "ClusterClass", "fleet", TAG);
        let mut observed = installed(&key);
        observed.provider = Provider::Found {
            uid: "one".to_owned(),
            ready: false,
            controlled: true,
            foreign_controller: None,
            phase: Some("Transferring".to_owned()),
            message: Some(message.to_owned()),
            progress: Some(ProviderProgress {
                done: 32,
                total: Some(64),
                unit: "bytes".to_owned(),
            }),
        };
        let plan = plan(&observed, now());
        let told = find(&plan.status.conditions, TYPE).cloned().expect("it is told");
        told.message.unwrap_or_default()
    };
    let waits = "providerClusterStackRelease not ready yet: Transferring";
    assert_eq!(told("50 % of 64 B"), format!("{waits}, 50 % of 64 B"));
    assert_eq!(
        told("it is sent"),
        format!("{waits}, it is sent, 50 % (32 of 64 bytes)")
    );
}

#[test]
fn objects_that_cannot_be_watched_are_told_in_the_words_of_the_api_server() {
    let key = ObjectKey::new("cluster.x-k8s.io", "ClusterClass", "fleet", TAG);
    let mut observed = installed(&key);
    let unseen = ObjectObserved {
        watched: false,
        seen: None,
        ..seen(true)
    };
    observed.objects.insert(key.clone(), unseen);
    let told = |observed: &ReleaseObserved| {
        let plan = plan(observed, now());
        let applied = find(&plan.status.conditions, ConditionType::HelmChartApplied).cloned();
        (applied.and_then(|applied| applied.message), plan.next)
    };
    let later = Next::At(now() + SignedDuration::from_mins(1));
    let words = "objects have not been looked at yet";
    assert_eq!(told(&observed), (Some(words.to_owned()), later));
    observed
        .unwatched
        .insert(key.group_kind(), "it is forbidden".to_owned());
    let words = format!("{words}: ClusterClass.cluster.x-k8s.io cannot be watched: it is forbidden");
    assert_eq!(told(&observed), (Some(words), later));
}

/// A release that is to go, with one object that no watch shows, in the inventory with this status and digest, if at all.
fn leaving(row: Option<(&str, &str)>) -> (ReleaseObserved, GroupKind) {
    let key = ObjectKey::new("rbac.authorization.k8s.io", "ClusterRoleBinding", "", "administrator");
    let mut observed = observed(Provider::NotWanted);
    observed.deleting = true;
    observed.used_by = Some(BTreeSet::new());
    observed.group_kinds = [key.group_kind()].into();
    observed.unlisted = observed.group_kinds.clone();
    if let Some((status, digest)) = row {
        let row = json!({
            "group": key.group, "version": "v1", "kind": key.kind, "name": key.name, "status": status, "digest": digest,
        });
        observed.status.resources = vec![serde_json::from_value(row).expect("a row")];
        let unseen = ObjectObserved {
            watched: false,
            seen: None,
            ..seen(true)
        };
        observed.objects.insert(key.clone(), unseen);
    }
    (observed, key.group_kind())
}

fn goes(plan: &ReleasePlan) -> bool {
    let mut actions = plan.steps.iter().flat_map(Step::on_owner);
    actions.any(|action| matches!(action, ReleaseAction::RemoveFinalizer))
}

fn says(plan: &ReleasePlan) -> String {
    let applied = find(&plan.status.conditions, ConditionType::HelmChartApplied).cloned();
    applied.and_then(|applied| applied.message).unwrap_or_default()
}

#[test]
fn a_kind_that_may_not_be_listed_keeps_a_release_only_if_something_of_it_was_applied() {
    let words = "nobody may list them".to_owned();
    for (row, gone) in [
        // Its status may have been lost.
        (None, false),
        (Some(("not-synced", "")), true),
        // As the Go operator writes what it applied.
        (Some(("synced", "")), false),
        (Some(("synced", "sha256:a")), false),
        (Some(("not-synced", "sha256:a")), false),
    ] {
        let (mut observed, kind) = leaving(row);
        assert!(!goes(&plan(&observed, now())), "its list may come: {row:?}");
        observed.unwatched.insert(kind.clone(), words.clone());
        assert!(!goes(&plan(&observed, now())), "it may mend itself: {row:?}");
        observed.forbidden.insert(kind);
        let plan = plan(&observed, now());
        assert_eq!(goes(&plan), gone, "{row:?}");
        // What it says decides the next time too.
        let named = plan.status.resources.iter().map(key_of);
        assert!(named.eq(observed.objects.keys().cloned()), "{:#?}", plan.status);
        let reads = plan
            .steps
            .iter()
            .flat_map(|step| &step.actions)
            .any(|action| action.object().is_some());
        assert_eq!(reads, !gone && row.is_some(), "{row:?}: {:#?}", plan.steps);
    }
}

#[test]
fn a_release_that_waits_for_a_list_to_go_says_for_which_and_why_it_does_not_come() {
    let (mut observed, kind) = leaving(None);
    let waiting = plan(&observed, now());
    let words = "waits for the list of ClusterRoleBinding.rbac.authorization.k8s.io, of which objects may be left";
    assert_eq!(says(&waiting), words);
    assert_eq!(
        waiting.next,
        Next::At(now() + SignedDuration::from_mins(1)),
        "why may be known by then"
    );
    observed.unwatched.insert(kind, "it is broken".to_owned());
    let words = "objects may be left: ClusterRoleBinding.rbac.authorization.k8s.io cannot be watched: it is broken";
    assert_eq!(says(&plan(&observed, now())), words);
}

/// A release that is up to date, and of which so many leftovers were read while the look at so many more has failed.
fn with_leftovers(read: usize, failed: usize) -> ReleaseObserved {
    let mut observed = observed(Provider::NotWanted);
    observed.assets = serde_json::from_value(
        json!({ "Ready": { "digest": "sha256:f", "source": "directory /releases", "kubernetes_version": "v1.34.1" } }),
    )
    .expect("files");
    observed.rendering = Rendering::Rendered {
        intents: BTreeMap::new(),
    };
    for number in 0..read + failed {
        let key = ObjectKey::new("", "ConfigMap", "fleet", format!("leftover-{number:02}"));
        let mut object = seen(true);
        if number < read {
            object.memory.read = Some(Read::Found {
                uid: "o".to_owned(),
                resource_version: "1".to_owned(),
                belongs: Belongs::Us,
                keep: false,
                deleting: false,
                at: now(),
            });
        } else {
            object.memory.failure = Some(Failure {
                tried: Attempt::Look,
                message: "nobody answers".to_owned(),
                loses_data: false,
                attempts: 1,
                at: now(),
            });
        }
        observed.group_kinds.insert(key.group_kind());
        observed.objects.insert(key, object);
    }
    observed
}

/// What `approve-prune` has to say, by this plan for a release.
fn asked(observed: &ReleaseObserved) -> Option<String> {
    plan(observed, now())
        .waiting
        .into_iter()
        .find_map(|waiting| match waiting {
            Waiting::Objects(Wait::PruneApproval { digest, .. }) => Some(digest),
            _ => None,
        })
}

fn deletions(plan: &ReleasePlan) -> usize {
    let actions = plan.steps.iter().flat_map(Step::on_objects);
    actions
        .filter(|action| matches!(action, ObjectAction::Delete { .. }))
        .count()
}

#[test]
fn leftovers_whose_look_fails_count_for_the_prune_limit() {
    assert_eq!(deletions(&plan(&with_leftovers(6, 4), now())), 6);
    let too_many = plan(&with_leftovers(6, 5), now());
    assert_eq!(deletions(&too_many), 0);
    let waiting = |plan: &ReleasePlan| format!("{:?}", plan.status.conditions);
    assert!(waiting(&too_many).contains("nobody answers"), "{}", waiting(&too_many));
    assert!(
        !waiting(&too_many).contains("approve-prune"),
        "nobody knows yet how many"
    );
}

#[test]
fn a_leftover_that_cannot_be_read_for_long_hides_no_approval_of_the_others() {
    let mut observed = with_leftovers(11, 1);
    for object in observed.objects.values_mut() {
        if let Some(failure) = &mut object.memory.failure {
            failure.attempts = 3;
        }
    }
    for waited in [0, 3600] {
        let later = now() + SignedDuration::from_secs(waited);
        let digest = asked(&with_leftovers(11, 0)).expect("a digest");
        let held = plan(&observed, later);
        assert_eq!(deletions(&held), 0);
        let conditions = format!("{:?}", held.status.conditions);
        assert!(conditions.contains(&digest), "after {waited} s: {conditions}");
    }
}

#[test]
fn approved_leftovers_go_though_the_look_at_another_fails() {
    let mut observed = with_leftovers(11, 0);
    observed.approved_prune = asked(&observed);
    let recording = plan(&observed, now());
    let mut next = with_leftovers(10, 1);
    next.approved_prune = observed.approved_prune;
    assert_eq!(deletions(&plan(&next, now())), 0, "the status does not say it");
    next.status = recording.status;
    assert_eq!(deletions(&plan(&next, now())), 10);
}

#[test]
fn an_approval_whose_last_object_is_gone_lets_nothing_go_that_leaves_the_release_again() {
    let mut observed = with_leftovers(11, 0);
    observed.approved_prune = asked(&observed);
    observed.status = plan(&observed, now()).status;
    assert_eq!(deletions(&plan(&observed, now())), 11);
    for object in observed.objects.values_mut() {
        object.seen = None;
        object.memory.read = Some(Read::Absent);
    }
    let done = plan(&observed, now()).status;
    assert_eq!((done.approved_prune.as_deref(), done.resources.len()), (None, 0));
    // Months later the release wanted all of them again, and then not; the annotation is where somebody left it.
    let mut again = with_leftovers(11, 0);
    for object in again.objects.values_mut() {
        if let Some(Read::Found { uid, .. }) = &mut object.memory.read {
            uid.push_str(" of another");
        }
    }
    again.approved_prune = observed.approved_prune;
    again.status = done;
    let again = plan(&again, now());
    assert_eq!(deletions(&again), 0, "nobody has approved that");
    assert!(matches!(
        &again.waiting[..],
        [.., Waiting::Objects(Wait::PruneApproval { objects: 11, .. })]
    ));
}

#[test]
fn a_leftover_that_changes_faster_than_it_is_read_hides_no_approval_of_the_others() {
    let mut observed = with_leftovers(11, 1);
    for object in observed.objects.values_mut() {
        if let Some(failure) = &mut object.memory.failure {
            failure.attempts = 3;
            failure.tried = Attempt::Deletion;
        }
    }
    for waited in [0, 3600] {
        let later = now() + SignedDuration::from_secs(waited);
        let digest = asked(&with_leftovers(11, 0)).expect("a digest");
        let held = plan(&observed, later);
        assert_eq!(deletions(&held), 0);
        let conditions = format!("{:?}", held.status.conditions);
        assert!(conditions.contains(&digest), "after {waited} s: {conditions}");
    }
}

#[test]
fn a_leftover_that_cannot_go_is_not_said_to_be_applied() {
    let mut observed = with_leftovers(0, 1);
    for object in observed.objects.values_mut() {
        object.memory.failure.as_mut().expect("one").tried = Attempt::Deletion;
    }
    let plan = plan(&observed, now());
    let reasons: Vec<_> = plan
        .status
        .conditions
        .iter()
        .map(|condition| (&condition.type_, &condition.reason))
        .collect();
    assert!(
        !format!("{reasons:?}").contains("ObjectsApplyingOngoing"),
        "{reasons:?}"
    );
}
