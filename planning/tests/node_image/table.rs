//! One release, one look, one decision.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::ReleaseAssets;
use crds::conditions::{Condition, ConditionStatus, ConditionType, Severity, find, is_true, lint};
use crds::providers::Provider;
use crds::providers::image_status::{ImagePhase, NodeImageStatus, Progress, ProviderPhase, ProviderReleaseStatus};
use jiff::{SignedDuration, Timestamp};
use planning::next::Next;
use planning::node_image::{
    Files, ImageEntry, ImageView, OwnerView, ReleaseAction, ReleaseObserved, ReleasePlan, plan,
};
use planning::outage::Outage;
use planning::stack::ActionFailure;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "openstack-ferrol-1-27-v4";

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("a time")
}

pub(crate) fn entry(name: &str, content: &str) -> ImageEntry {
    ImageEntry {
        name: name.to_owned(),
        spec: json!({"content": content}),
        content: content.to_owned(),
    }
}

pub(crate) fn assets() -> ReleaseAssets {
    ReleaseAssets {
        digest: "sha256:aa".to_owned(),
        ..ReleaseAssets::default()
    }
}

pub(crate) fn owner(name: &str) -> OwnerView {
    OwnerView {
        uid: format!("uid of {name}"),
        name: name.to_owned(),
    }
}

fn owners(names: &[&str]) -> BTreeSet<OwnerView> {
    names.iter().map(|name| owner(name)).collect()
}

pub(crate) fn observed(images: Vec<ImageEntry>) -> ReleaseObserved {
    ReleaseObserved {
        provider: Provider::OpenStack,
        name: NAME.to_owned(),
        uid: owner(NAME).uid,
        generation: 1,
        deleting: false,
        finalizer: true,
        paused: false,
        moved: false,
        moved_images: BTreeMap::new(),
        requested_at: None,
        files: Files::Ready {
            images,
            assets: assets(),
        },
        listed: true,
        objects: BTreeMap::new(),
        failures: BTreeMap::new(),
        status: ProviderReleaseStatus::default(),
        status_written_at: None,
    }
}

fn view(content: &str, owned_by: &[&str]) -> ImageView {
    ImageView {
        uid: "uid".to_owned(),
        version: "7".to_owned(),
        owners: owners(owned_by),
        spec: json!({"content": content}),
        content: content.to_owned(),
        ready: true,
        phase: Some(ImagePhase::Ready),
        size: Some(100),
        ..ImageView::default()
    }
}

fn unready(phase: ImagePhase, severity: Severity, reason: &str) -> ImageView {
    ImageView {
        ready: false,
        phase: Some(phase),
        reason: Some(reason.to_owned()),
        severity: Some(severity),
        explanation: Some("it is so".to_owned()),
        size: None,
        ..view("x", &[NAME])
    }
}

fn with(entries: &[(&str, &str)], objects: &[(&str, ImageView)]) -> ReleaseObserved {
    let images = entries.iter().map(|(name, content)| entry(name, content)).collect();
    let objects = objects.iter().map(|(name, view)| ((*name).to_owned(), view.clone()));
    ReleaseObserved {
        objects: objects.collect(),
        ..observed(images)
    }
}

/// The plan, whose status lints clean.
fn planned(observed: &ReleaseObserved) -> ReleasePlan {
    let plan = plan(observed, now());
    if observed.listed {
        let generation = plan.status.observed_generation.unwrap_or_default();
        assert_eq!(
            lint(&plan.status.conditions, observed.generation, generation),
            [],
            "{plan:#?}"
        );
        if !observed.paused && !observed.moved {
            let is_ready = is_true(&plan.status.conditions, ConditionType::Ready);
            assert_eq!(plan.status.ready, is_ready, "{plan:#?}");
        }
        assert_eq!(planning::node_image::plan(observed, now()), plan);
    }
    plan
}

fn ready(plan: &ReleasePlan) -> &Condition {
    find(&plan.status.conditions, ConditionType::Ready).unwrap_or_else(|| panic!("{plan:#?}"))
}

#[track_caller]
fn fails(plan: &ReleasePlan, severity: Severity, reason: &str) {
    let ready = ready(plan);
    assert_eq!(
        (ready.status, ready.severity, ready.reason.as_deref()),
        (ConditionStatus::False, Some(severity), Some(reason)),
        "{plan:#?}"
    );
}

fn name(name: &str) -> String {
    name.to_owned()
}

#[test]
fn the_finalizer_comes_before_everything_that_has_to_go_again() {
    let mut observed = with(&[("a", "x")], &[]);
    observed.finalizer = false;
    assert_eq!(planned(&observed).actions, [ReleaseAction::AddFinalizer]);
}

#[test]
fn an_image_that_is_not_there_is_made_and_one_that_is_there_is_shared() {
    let observed = with(
        &[("a", "x"), ("b", "x"), ("c", "x")],
        &[("b", view("x", &["openstack-ferrol-1-27-v3"])), ("c", view("x", &[]))],
    );
    let plan = planned(&observed);
    let version = name("7");
    assert_eq!(
        plan.actions,
        [
            ReleaseAction::CreateImage {
                name: name("a"),
                spec: json!({"content": "x"}),
            },
            ReleaseAction::AdoptImage {
                name: name("b"),
                version: version.clone(),
            },
            ReleaseAction::AdoptImage {
                name: name("c"),
                version
            },
        ]
    );
    fails(&plan, Severity::Info, "ProcessOngoing");
    assert_eq!(plan.status.phase, Some(ProviderPhase::Pending));
}

#[test]
fn a_release_with_all_images_or_none_is_ready_and_says_no_more() {
    for observed in [with(&[], &[]), with(&[("a", "x")], &[("a", view("x", &[NAME]))])] {
        let plan = planned(&observed);
        assert_eq!((plan.actions.len(), plan.status.ready), (0, true));
        assert_eq!(
            (plan.status.phase, &plan.status.message),
            (Some(ProviderPhase::Ready), &None)
        );
        assert_eq!((plan.status.progress, plan.next), (None, Next::Await));
        assert_eq!(plan.status.assets, Some(assets()));
    }
}

#[test]
fn other_bytes_under_the_same_version_stall_the_later_release_and_leave_the_image() {
    let others = view("y", &["openstack-ferrol-1-27-v3"]);
    let plan = planned(&with(&[("a", "x")], &[("a", others)]));
    assert_eq!(plan.actions, []);
    fails(&plan, Severity::Error, "NodeImageDiffers");
    assert!(is_true(&plan.status.conditions, ConditionType::Stalled));
    assert_eq!(plan.status.phase, Some(ProviderPhase::Failed));
    assert_eq!(
        plan.status.message.as_deref(),
        Some(
            "a: openstack-ferrol-1-27-v3 has another image under this name; publish this release with a new version of its images"
        )
    );
}

#[test]
fn the_spec_follows_the_file_where_nobody_else_is_concerned() {
    let plan = planned(&with(&[("a", "x")], &[("a", view("y", &[NAME]))]));
    let update = ReleaseAction::UpdateImage {
        name: name("a"),
        version: name("7"),
        spec: json!({"content": "x"}),
    };
    assert_eq!(plan.actions, [update]);
    assert!(!plan.status.ready);
}

#[test]
fn an_image_that_is_to_lie_elsewhere_goes_and_is_made_anew_unless_others_need_it() {
    let place = |store: &str| json!({"content": store, "store": store});
    let planned = |found: Value, owned_by: &[&str]| {
        let image = ImageEntry {
            spec: place("new"),
            ..entry("a", "new")
        };
        let there = ImageView {
            spec: found,
            ..view("old", owned_by)
        };
        planned(&ReleaseObserved {
            objects: [("a".to_owned(), there)].into(),
            ..observed(vec![image])
        })
    };
    let delete = ReleaseAction::DeleteImage {
        name: name("a"),
        uid: name("uid"),
        version: name("7"),
    };
    let plan = planned(place("old"), &[NAME]);
    assert_eq!((plan.actions, plan.status.ready), (vec![delete], false));
    let plan = planned(place("old"), &[NAME, "openstack-ferrol-1-27-v3"]);
    assert_eq!(plan.actions, []);
    fails(&plan, Severity::Error, "NodeImageDiffers");
    // What cannot be read is put right where it is.
    let plan = planned(Value::Null, &[NAME]);
    assert!(matches!(plan.actions.as_slice(), [ReleaseAction::UpdateImage { .. }]));
}

#[test]
fn of_releases_that_share_an_image_the_latest_says_what_may_be_amended() {
    let amended = |names: &[&str]| ImageView {
        spec: json!({"content": "x", "option": 1}),
        ..view("x", names)
    };
    for (others, updates) in [("openstack-ferrol-1-27-v3", 1), ("openstack-ferrol-1-27-v10", 0)] {
        let plan = planned(&with(&[("a", "x")], &[("a", amended(&[NAME, others]))]));
        assert_eq!(plan.actions.len(), updates, "{others}");
        assert!(plan.status.ready);
    }
    // By hand, in what may not differ: the latest puts it back, the others say it.
    let plan = planned(&with(
        &[("a", "x")],
        &[("a", view("y", &[NAME, "openstack-ferrol-1-27-v10"]))],
    ));
    assert_eq!(plan.actions, []);
    fails(&plan, Severity::Error, "NodeImageDiffers");
}

#[test]
fn an_image_that_left_the_file_goes_with_its_last_owner() {
    let mut foreign = view("x", &[NAME]);
    foreign.foreign = true;
    let observed = with(
        &[],
        &[
            ("alone", view("x", &[NAME])),
            ("foreign", foreign),
            ("others", view("x", &["openstack-ferrol-1-27-v3"])),
            ("shared", view("x", &[NAME, "openstack-ferrol-1-27-v3"])),
        ],
    );
    let version = || name("7");
    assert_eq!(
        planned(&observed).actions,
        [
            ReleaseAction::DeleteImage {
                name: name("alone"),
                uid: name("uid"),
                version: version(),
            },
            ReleaseAction::DropOwner {
                name: name("foreign"),
                version: version(),
            },
            ReleaseAction::DropOwner {
                name: name("shared"),
                version: version(),
            },
        ]
    );
}

#[test]
fn an_object_that_is_somebody_elses_or_goes_is_left_alone() {
    let mut foreign = view("x", &[]);
    foreign.foreign = true;
    let plan = planned(&with(&[("a", "x")], &[("a", foreign)]));
    assert_eq!(plan.actions, []);
    fails(&plan, Severity::Error, "ForeignOwner");
    let mut leaving = view("x", &[NAME]);
    leaving.deleting = true;
    let plan = planned(&with(&[("a", "x")], &[("a", leaving)]));
    assert_eq!((plan.actions.len(), plan.status.ready), (0, false));
    assert!(is_true(&plan.status.conditions, ConditionType::Reconciling));
}

#[test]
fn files_that_are_away_take_nothing_from_images_that_are_there() {
    let message = || name("nobody answers");
    let pinned = || name("sha256:aa");
    let mut observed = with(&[], &[("a", view("x", &[NAME]))]);
    observed.status.assets = Some(assets());
    observed.status.images = vec![crds::providers::image_status::ImageRow {
        name: name("a"),
        ..Default::default()
    }];
    for (files, reason) in [
        (Files::NotRead, None),
        (Files::Unusable { message: message() }, Some("FailedCreateAssetsClient")),
        (Files::Missing { message: message() }, Some("ReleaseNotFound")),
        (Files::Broken { message: message() }, Some("IssueWithReleaseAssets")),
        (
            Files::DigestDiffers {
                pinned: pinned(),
                found: name("sha256:bb"),
            },
            Some("DigestChanged"),
        ),
    ] {
        observed.files = files;
        let plan = planned(&observed);
        assert_eq!((plan.actions.len(), plan.status.ready), (0, true));
        assert_eq!(ready(&plan).reason.as_deref(), reason);
        assert_eq!(plan.status.assets, Some(assets()));
    }
    // What it knew it needs, and is not there, is missing nevertheless.
    observed.objects.clear();
    let plan = planned(&observed);
    assert_eq!((plan.status.ready, plan.status.images.len()), (false, 1));
}

#[test]
fn a_release_whose_files_were_never_read_says_why_and_is_not_ready() {
    let message = || name("nobody answers");
    let outage = Outage {
        since: now() - SignedDuration::from_mins(5),
        attempts: 3,
        next: Some(now() + SignedDuration::from_mins(1)),
    };
    let differs = Files::DigestDiffers {
        pinned: name("sha256:aa"),
        found: name("sha256:bb"),
    };
    let unavailable = Files::Unavailable {
        message: message(),
        outage: Some(outage),
    };
    for (files, severity, reason, phase, stalled) in [
        (
            Files::NotRead,
            Severity::Info,
            "ReleaseAssetsNotDownloadedYet",
            ProviderPhase::Reading,
            false,
        ),
        (
            Files::Unusable { message: message() },
            Severity::Error,
            "FailedCreateAssetsClient",
            ProviderPhase::Failed,
            false,
        ),
        (
            unavailable,
            Severity::Warning,
            "SourceUnavailable",
            ProviderPhase::Pending,
            false,
        ),
        (
            Files::Missing { message: message() },
            Severity::Warning,
            "ReleaseNotFound",
            ProviderPhase::Pending,
            false,
        ),
        (
            Files::Broken { message: message() },
            Severity::Error,
            "IssueWithReleaseAssets",
            ProviderPhase::Failed,
            true,
        ),
        (differs, Severity::Error, "DigestChanged", ProviderPhase::Failed, true),
    ] {
        let plan = planned(&ReleaseObserved {
            files,
            ..observed(Vec::new())
        });
        fails(&plan, severity, reason);
        assert_eq!(
            (plan.status.phase, plan.status.assets.is_none()),
            (Some(phase), true),
            "{reason}"
        );
        assert_eq!(
            is_true(&plan.status.conditions, ConditionType::Stalled),
            stalled,
            "{reason}"
        );
    }
}

#[test]
fn the_phase_is_that_of_the_image_furthest_behind_and_the_message_that_of_the_first() {
    let table: [(&[ImagePhase], ProviderPhase); 4] = [
        (
            &[ImagePhase::Verifying, ImagePhase::Transferring],
            ProviderPhase::Transferring,
        ),
        (&[ImagePhase::Pending, ImagePhase::Importing], ProviderPhase::Pending),
        (&[ImagePhase::Building, ImagePhase::Failed], ProviderPhase::Failed),
        (&[ImagePhase::Ready, ImagePhase::Verifying], ProviderPhase::Preparing),
    ];
    for (phases, expected) in table {
        let images: Vec<(&str, ImageView)> = ["a", "b"]
            .into_iter()
            .zip(
                phases
                    .iter()
                    .map(|phase| unready(*phase, Severity::Info, "Transferring")),
            )
            .collect();
        let plan = planned(&with(&[("a", "x"), ("b", "x")], &images));
        assert_eq!(plan.status.phase, Some(expected));
        assert_eq!(plan.status.message.as_deref(), Some("a: it is so"));
        assert_eq!(ready(&plan).message.as_deref(), Some("a: it is so; and 1 more"));
    }
}

#[test]
fn what_needs_somebody_is_told_in_the_words_of_the_image() {
    let refused = unready(ImagePhase::Failed, Severity::Error, "ImageRefused");
    let sends = unready(ImagePhase::Transferring, Severity::Info, "Transferring");
    let stalled = ImageView {
        stalled: true,
        ..refused
    };
    let plan = planned(&with(
        &[("a", "x"), ("b", "x")],
        &[("a", sends), ("b", stalled.clone())],
    ));
    fails(&plan, Severity::Error, "ImageRefused");
    assert_eq!(ready(&plan).message.as_deref(), Some("b: it is so; and 1 more"));
    // As long as something goes on, nobody is told that nothing does.
    assert!(is_true(&plan.status.conditions, ConditionType::Reconciling));
    let plan = planned(&with(&[("b", "x")], &[("b", stalled)]));
    assert!(is_true(&plan.status.conditions, ConditionType::Stalled));
}

#[test]
fn progress_is_in_bytes_where_they_are_known_of_all_and_else_in_images() {
    let sends = |total| ImageView {
        progress: Some(Progress {
            done: 40,
            total,
            unit: name("bytes"),
        }),
        message: Some(name("40 of 200 bytes")),
        ..unready(ImagePhase::Transferring, Severity::Info, "Transferring")
    };
    let progress = |total| {
        let images = [("a", sends(total)), ("b", view("x", &[NAME]))];
        let plan = planned(&with(&[("a", "x"), ("b", "x")], &images));
        assert_eq!(plan.status.message.as_deref(), Some("a: 40 of 200 bytes"));
        assert_eq!(plan.status.images[0].message.as_deref(), Some("40 of 200 bytes"));
        assert_eq!(ready(&plan).message.as_deref(), Some("a: it is so"));
        let progress = plan.status.progress.expect("progress");
        (progress.done, progress.total, progress.unit)
    };
    assert_eq!(progress(Some(200)), (140, Some(300), name("bytes")));
    assert_eq!(progress(None), (1, Some(2), name("images")));
}

#[test]
fn a_release_that_goes_waits_until_what_it_alone_owned_is_gone() {
    let mut leaving = view("x", &[NAME]);
    leaving.deleting = true;
    let deleted = |objects: &[(&str, ImageView)]| ReleaseObserved {
        deleting: true,
        ..with(&[("alone", "x"), ("shared", "x")], objects)
    };
    let alone = view("x", &[NAME]);
    let shared = view("x", &[NAME, "openstack-ferrol-1-27-v3"]);
    let plan = planned(&deleted(&[("alone", alone), ("shared", shared)]));
    assert!(matches!(
        &plan.actions[..],
        [ReleaseAction::DeleteImage { .. }, ReleaseAction::DropOwner { .. }]
    ));
    fails(&plan, Severity::Info, "Deleting");
    assert_eq!(plan.status.phase, Some(ProviderPhase::Deleting));
    let plan = planned(&deleted(&[("alone", leaving.clone())]));
    assert_eq!(plan.actions, []);
    assert_eq!(
        ready(&plan).message.as_deref(),
        Some("waits until images are gone: alone")
    );
    // The cloud may be away.
    let stuck = ImageView {
        severity: Some(Severity::Warning),
        reason: Some(name("CloudUnavailable")),
        explanation: Some(name("nobody answers")),
        ..leaving
    };
    fails(
        &planned(&deleted(&[("alone", stuck)])),
        Severity::Warning,
        "CloudUnavailable",
    );
    let others = view("x", &["openstack-ferrol-1-27-v3"]);
    assert_eq!(
        planned(&deleted(&[("shared", others)])).actions,
        [ReleaseAction::RemoveFinalizer]
    );
    let mut gone = deleted(&[]);
    gone.finalizer = false;
    assert_eq!(planned(&gone).actions, []);
}

#[test]
fn nothing_is_done_or_said_before_images_are_listed_or_while_it_is_paused() {
    let mut observed = with(&[("a", "x")], &[]);
    observed.listed = false;
    let plan = planned(&observed);
    assert_eq!(
        (plan.actions.len(), plan.status_due, &plan.status),
        (0, false, &observed.status)
    );
    let mut paused = with(&[("a", "x")], &[]);
    paused.paused = true;
    let plan = planned(&paused);
    assert_eq!(plan.actions, []);
    assert!(is_true(&plan.status.conditions, ConditionType::Paused));
}

#[test]
fn a_refused_write_is_told_and_tried_again_later() {
    let mut observed = with(&[("a", "x")], &[("old", view("x", &[NAME]))]);
    for subject in ["a", "old"] {
        let failure = ActionFailure {
            message: name("the API server says no"),
            attempts: 3,
            at: now(),
        };
        observed.failures.insert(name(subject), failure);
    }
    let plan = planned(&observed);
    assert_eq!(plan.actions, []);
    assert_eq!(plan.next, Next::At(now() + SignedDuration::from_secs(4)));
    fails(&plan, Severity::Warning, "FailedToCreateOrUpdate");
    assert_eq!(ready(&plan).message.as_deref(), Some("a: the API server says no"));
    let later = planning::node_image::plan(&observed, now() + SignedDuration::from_secs(4));
    assert_eq!(later.actions.len(), 2);
    // What should have gone and did not is told beside images that can be used.
    let mut rest = with(&[], &[("old", view("x", &[NAME]))]);
    rest.failures.clone_from(&observed.failures);
    let plan = planned(&rest);
    assert!(plan.status.ready);
    assert_eq!(ready(&plan).reason.as_deref(), Some("FailedToDeleteObjects"));
}

#[test]
fn words_that_change_all_the_time_are_written_every_five_seconds_and_news_at_once() {
    let sends = unready(ImagePhase::Transferring, Severity::Info, "Transferring");
    let mut observed = with(&[("a", "x")], &[("a", sends)]);
    let first = planned(&observed);
    assert!(first.status_due);
    observed.status = first.status;
    observed.status_written_at = Some(now() - SignedDuration::from_secs(2));
    let same = planned(&observed);
    assert_eq!((same.status_due, same.next), (false, Next::Await));
    let image = observed.objects.get_mut("a").expect("an image");
    image.message = Some(name("50 of 200 bytes"));
    let moved = planned(&observed);
    assert_eq!(
        (moved.status_due, moved.next),
        (false, Next::At(now() + SignedDuration::from_secs(3)))
    );
    observed.objects.insert(name("a"), view("x", &[NAME]));
    assert!(planned(&observed).status_due);
}

#[test]
fn a_status_of_another_spec_makes_no_image_ready() {
    let status = NodeImageStatus {
        ready: true,
        observed_generation: Some(3),
        ..NodeImageStatus::default()
    };
    let of = |generation| ImageView::default().with_status(&status, generation).ready;
    assert_eq!((of(3), of(4)), (true, false));
}

#[test]
fn a_release_that_clusterctl_moved_goes_without_its_images() {
    let mut moved = with(&[("a", "x"), ("b", "x")], &[("a", view("x", &[NAME]))]);
    moved.moved = true;
    moved.finalizer = false;
    let plan = planned(&moved);
    assert_eq!(plan.actions, [], "nothing is made, and it is not claimed");
    assert!(is_true(&plan.status.conditions, ConditionType::Paused));
    moved.deleting = true;
    assert_eq!(planned(&moved).actions, []);
    moved.finalizer = true;
    assert_eq!(planned(&moved).actions, [ReleaseAction::RemoveFinalizer]);
}

#[test]
fn an_image_that_clusterctl_moved_is_not_made_again_before_its_release_follows() {
    let mut left = with(&[("a", "x")], &[]);
    let until = now() + SignedDuration::from_mins(1);
    left.moved_images.insert("a".to_owned(), until);
    let plan = planned(&left);
    assert_eq!((plan.actions.as_slice(), plan.next), (&[][..], Next::At(until)));
    let told = ready(&plan).message.as_deref().unwrap_or_default();
    assert!(told.contains("another management cluster"), "{told}");
    left.moved_images.insert("a".to_owned(), now());
    assert!(
        matches!(planned(&left).actions.as_slice(), [ReleaseAction::CreateImage { .. }]),
        "the release did not follow"
    );
}
