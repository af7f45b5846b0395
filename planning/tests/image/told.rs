//! What people read of an image: conditions, phase, message and events, after every step.

use std::time::Duration;

use crds::conditions::{Condition, ConditionStatus, ConditionType, Severity, find, is_true, lint};
use crds::events::Happening;
use crds::guide::{IMAGE_REASONS, REASONS};
use crds::providers::Provider;
use crds::providers::image_status::{ImagePhase, NodeImageStatus, Sealed, SentVia, TransferStatus};
use jiff::SignedDuration;
use planning::image::{
    Abilities, Algorithm, Amended, Cloud, Deed, DeedName, DiscardReason, Done, Drift, Failure, FailureClass, Form,
    HaltReason, Halted, ImagePolicy, JobsSight, Now, Op, OpState, Pinned, Quota, RecordSeen, RecordState,
    SENDING_RESTS, Sight, Situation, Source, Step, Told, Via, after, tell,
};
use planning::next::Next;

use crate::status::HALTS;
use crate::sweep::every;
use crate::table::{
    Input, KEY, NOW, before, ended, failure, foreign, had, input, looked, op, record, retry, running, sealed, transfer,
    verified, wall,
};

fn told_at(input: &Input, step: &Step, provider: Provider, before: &NodeImageStatus, now: Now) -> Told {
    let Input { wanted, kept, seen, op } = input;
    let situation = Situation {
        provider,
        wanted,
        kept,
        seen,
        op: op.as_ref(),
        step,
        before,
    };
    tell(&situation, now)
}

/// After the step that is decided, on an object whose status says nothing yet.
fn told(input: &Input) -> NodeImageStatus {
    told_after(input, &NodeImageStatus::default()).status
}

fn told_after(input: &Input, before: &NodeImageStatus) -> Told {
    told_at(input, &input.step(), Provider::OpenStack, before, Input::now())
}

fn condition(status: &NodeImageStatus, type_: ConditionType) -> &Condition {
    find(&status.conditions, type_).unwrap_or_else(|| panic!("no {type_}: {status:#?}"))
}

/// Status, severity and reason of one condition.
type Says<'a> = (ConditionStatus, Option<Severity>, Option<&'a str>);

fn says(status: &NodeImageStatus, type_: ConditionType) -> Says<'_> {
    let condition = condition(status, type_);
    (condition.status, condition.severity, condition.reason.as_deref())
}

fn message(status: &NodeImageStatus, type_: ConditionType) -> &str {
    condition(status, type_).message.as_deref().unwrap_or_default()
}

const HOLDS: Says<'static> = (ConditionStatus::True, None, None);

const fn holds_for(reason: &str) -> Says<'_> {
    (ConditionStatus::True, None, Some(reason))
}

const fn fails(severity: Severity, reason: &str) -> Says<'_> {
    (ConditionStatus::False, Some(severity), Some(reason))
}

/// An image that is there and as it must be, with its status.
fn ready() -> (Input, NodeImageStatus) {
    let mut input = Input::with(&[verified(2)]);
    had(&mut input, 2);
    let status = told(&input);
    assert!(status.ready);
    (input, status)
}

fn away(class: FailureClass) -> Sight<Cloud> {
    Sight::Failed {
        failure: Failure {
            request_id: Some("req-1".to_owned()),
            ..failure(class)
        },
        since: before(100),
        count: 3,
        next: NOW + Duration::from_secs(20),
    }
}

#[test]
fn every_step_gives_conditions_that_lint_clean_and_say_the_same_a_moment_later() {
    let words: Vec<String> = REASONS
        .iter()
        .chain(IMAGE_REASONS)
        .map(|entry| entry.word.to_string())
        .collect();
    let now = Input::now();
    let later = Now {
        wall: now.wall + SignedDuration::from_secs(7),
        steady: now.steady + Duration::from_secs(7),
    };
    let mut count = 0_u32;
    every(|input| {
        count += 1;
        // One of so many that every input is still varied: the number divides none of the sizes of their lists.
        if !count.is_multiple_of(37) {
            return;
        }
        let provider = if count.is_multiple_of(2) {
            Provider::OpenStack
        } else {
            Provider::FileStore
        };
        let step = input.step();
        let first = told_at(input, &step, provider, &NodeImageStatus::default(), now);
        let status = &first.status;
        let generation = input.wanted.generation;
        let flaws = lint(
            &status.conditions,
            generation,
            status.observed_generation.unwrap_or_default(),
        );
        assert_eq!(flaws, [], "{step:?} {status:#?} for {input:#?}");
        for condition in &status.conditions {
            let reason = condition.reason.as_ref();
            assert!(
                reason.is_none_or(|reason| words.contains(reason)),
                "{reason:?} is not explained"
            );
        }
        if !input.wanted.paused {
            let is_ready = is_true(&status.conditions, ConditionType::Ready);
            assert_eq!(status.ready, is_ready, "{step:?} {status:#?} for {input:#?}");
            assert_eq!(status.phase == Some(ImagePhase::Ready), is_ready);
        }
        let is_stalled = is_true(&status.conditions, ConditionType::Stalled);
        assert!(
            is_stalled || input.wanted.paused || !matches!(step, Step::Hold(_)),
            "{step:?}"
        );
        if matches!(step, Step::Await(_) | Step::Rest { .. } | Step::Hold(_)) {
            let again = told_at(input, &step, provider, status, later);
            assert_eq!(again.status, first.status, "{step:?} for {input:#?}");
            assert_eq!(again.notes, [], "{step:?}");
        }
        let Input { wanted, kept, seen, op } = input;
        let kept = after(&step, wanted, kept, seen, op.as_ref(), now);
        let mut read = planning::image::Kept::of_status(status);
        read.sealed.clone_from(&kept.sealed);
        assert_eq!(read, kept, "{step:?}");
    });
    assert!(count > 500_000, "{count}");
}

#[test]
fn an_image_that_is_there_and_right_is_ready() {
    let (input, status) = ready();
    assert_eq!(status.phase, Some(ImagePhase::Ready));
    let none_says = holds_for("TransferOnly");
    for (type_, expected) in [
        (ConditionType::Ready, none_says),
        (ConditionType::CloudAvailable, HOLDS),
        (ConditionType::SourceAvailable, HOLDS),
        (ConditionType::ImageTransferred, HOLDS),
        (ConditionType::Verified, none_says),
        (ConditionType::OpenStackImageServiceClientAvailable, HOLDS),
        (ConditionType::OpenStackImageImportStarted, HOLDS),
        (ConditionType::OpenStackImageActive, HOLDS),
    ] {
        assert_eq!(says(&status, type_), expected, "{type_}");
    }
    assert_eq!(status.conditions.len(), 8);
    let promised = input.changed(|input| {
        input.seen.source = Sight::Seen {
            value: Source {
                digest: Pinned::parse(&format!("sha256:{}", "b".repeat(64))),
                ..Source::default()
            },
            at: before(1),
            fresh: true,
        };
    });
    assert_eq!(says(&told(&promised), ConditionType::Ready), HOLDS);
}

#[test]
fn an_image_that_the_cloud_converted_is_ready_and_says_what_nobody_can_compare() {
    let made = RecordSeen {
        format: Some("raw".to_owned()),
        ..verified(2)
    };
    let mut input = Input::with(&[made]).changed(|input| {
        input.wanted.via = Via::Staged;
        input.wanted.format = Some("qcow2".to_owned());
        input.wanted.digest = Pinned::parse(&format!("sha256:{}", "b".repeat(64)));
    });
    had(&mut input, 2);
    let digest = format!("sha256:{}", "b".repeat(64));
    let Sight::Seen { value, .. } = &mut input.seen.cloud else {
        panic!("the cloud was seen");
    };
    value.records[0].verified = Some(digest.clone());
    if let Some(image) = &mut input.kept.image {
        image.source_digest = Some(digest);
    }
    let status = told(&input);
    assert!(status.ready, "{status:#?}");
    assert_eq!(says(&status, ConditionType::Verified), holds_for("TransferOnly"));
    let says_so = |status: &NodeImageStatus| message(status, ConditionType::Verified).contains("raw of the qcow2");
    assert!(says_so(&status), "{status:#?}");
    // Nor does an outage after a restart make it more.
    let out = input.changed(|input| input.seen.cloud = away(FailureClass::Unavailable));
    assert!(says_so(&told_after(&out, &status).status));
}

#[test]
fn whoever_asked_the_cloud_to_fetch_an_image_is_told_why_it_is_sent() {
    let sent = input().changed(|input| {
        input.wanted.via = Via::ServerSide;
        input.seen.abilities = Some(Abilities {
            server_side: true,
            staged: true,
        });
        input.seen.cloud = looked(
            Cloud {
                records: vec![record(2, RecordState::Empty)],
                others: Vec::new(),
            },
            before(1),
        );
        input.op = running(transfer(2), 5);
    });
    let transferred = |input: &Input| message(&told(input), ConditionType::ImageTransferred).to_owned();
    let no_digest = "no digest says what the cloud should have fetched";
    assert_eq!(transferred(&sent), format!("the image is sent: {no_digest}"));
    let private = sent.clone().changed(|input| input.wanted.fetchable = false);
    assert_eq!(
        transferred(&private),
        "the image is sent: the cloud cannot read it where it lies"
    );
    let asked = sent.changed(|input| input.wanted.via = Via::Upload);
    assert_eq!(transferred(&asked), "the image is sent");

    let (input, _) = ready();
    let status = told(&input.changed(|input| input.wanted.via = Via::ServerSide));
    assert_eq!(says(&status, ConditionType::Verified), holds_for("TransferOnly"));
    assert!(message(&status, ConditionType::Verified).ends_with(no_digest));
}

#[test]
fn an_outage_is_not_a_bad_image() {
    let (input, before_it) = ready();
    let out = input.changed(|input| input.seen.cloud = away(FailureClass::Unavailable));
    let status = told_after(&out, &before_it).status;
    assert!(status.ready);
    assert_eq!(status.phase, Some(ImagePhase::Ready));
    assert_eq!(
        says(&status, ConditionType::CloudAvailable),
        holds_for("CloudUnavailable")
    );
    assert_eq!(
        message(&status, ConditionType::CloudAvailable),
        "it did not work (request req-1) (since 2026-01-01T11:58:20Z, tried 3 times, next try at 2026-01-01T12:00:20Z)"
    );
    assert_eq!(
        message(&status, ConditionType::Ready),
        message(&status, ConditionType::CloudAvailable)
    );
    // Of an image that was not ready it is why.
    let status = told(&out);
    assert_eq!((status.ready, status.phase), (false, Some(ImagePhase::Pending)));
    assert_eq!(
        says(&status, ConditionType::Ready),
        fails(Severity::Warning, "CloudUnavailable")
    );
    assert_eq!(says(&status, ConditionType::Reconciling), holds_for("CloudUnavailable"));
}

#[test]
fn a_clock_that_is_read_a_moment_later_changes_no_words() {
    let (input, before_it) = ready();
    let out = input.changed(|input| input.seen.cloud = away(FailureClass::Unavailable));
    let first = told_after(&out, &before_it).status;
    let Now { wall, steady } = Input::now();
    for milliseconds in [-600, 600] {
        let wall = wall + SignedDuration::from_millis(milliseconds);
        let again = told_at(&out, &out.step(), Provider::OpenStack, &first, Now { wall, steady });
        assert_eq!(again.status, first, "{milliseconds}");
    }
}

#[test]
fn a_restart_changes_nothing_before_the_first_look() {
    let (input, before_it) = ready();
    let restarted = input.changed(|input| input.seen.cloud = Sight::Unseen);
    let told = told_after(&restarted, &before_it);
    assert_eq!(
        (told.status, told.notes.len(), told.next),
        (before_it.clone(), 0, Next::Now)
    );
    let looks = restarted.changed(|input| input.op = running(Deed::Look, 5));
    assert_eq!(told_after(&looks, &before_it).status, before_it);
    let looked = looks.changed(|input| input.op = Some(ended(Deed::Look, Ok(Done::Looked))));
    assert_eq!(told_after(&looked, &before_it).status, before_it);
}

#[test]
fn a_new_object_says_that_nothing_is_known_of_it() {
    let new = input().changed(|input| {
        input.seen.cloud = Sight::Unseen;
        input.kept = planning::image::Kept::default();
    });
    let status = told(&new);
    let unknown = (ConditionStatus::Unknown, None, Some("NotObservedYet"));
    assert_eq!(says(&status, ConditionType::Ready), unknown);
    assert_eq!(says(&status, ConditionType::Reconciling), holds_for("NotObservedYet"));
    assert_eq!((status.ready, status.phase), (false, Some(ImagePhase::Pending)));
}

#[test]
fn what_was_seen_to_go_wrong_ends_ready() {
    let (_, before_it) = ready();
    let with = |record| {
        let mut input = Input::with(&[record]);
        had(&mut input, 2);
        told_after(&input, &before_it).status
    };
    let withdrawn = with(RecordSeen {
        state: RecordState::Withdrawn,
        ..verified(2)
    });
    assert_eq!((withdrawn.ready, withdrawn.phase), (false, Some(ImagePhase::Failed)));
    assert_eq!(
        says(&withdrawn, ConditionType::Ready),
        fails(Severity::Error, "ImageDeactivated")
    );
    assert_eq!(
        says(&withdrawn, ConditionType::OpenStackImageActive),
        fails(Severity::Error, "IssueWithOpenStackImage")
    );
    let spoilt = with(record(2, RecordState::Spoilt));
    assert!(!spoilt.ready);
    let mut gone = input();
    had(&mut gone, 2);
    let gone = told_after(&gone, &before_it).status;
    assert_eq!(says(&gone, ConditionType::Ready), fails(Severity::Warning, "ImageGone"));
    assert_eq!(
        message(&gone, ConditionType::Ready),
        "the image wanted-2 is gone from the cloud; it is brought again"
    );
    let mut other = Input::with(&[verified(2)]);
    had(&mut other, 2);
    "other".clone_into(&mut other.wanted.key);
    assert!(!told_after(&other, &before_it).status.ready);
}

#[test]
fn options_that_differ_are_told_and_the_image_stays_ready() {
    let drift = Drift {
        field: "min_disk".to_owned(),
        found: "10".to_owned(),
        wanted: "20".to_owned(),
    };
    let mut input = Input::with(&[RecordSeen {
        drift: vec![drift],
        ..verified(2)
    }]);
    had(&mut input, 2);
    let status = told(&input);
    assert!(status.ready);
    assert_eq!(says(&status, ConditionType::Ready), holds_for("ImageDiffers"));
    assert_eq!(
        message(&status, ConditionType::Verified),
        "options are otherwise in the cloud: min_disk is 10 and should be 20"
    );
}

#[test]
fn options_that_the_cloud_refuses_are_told_with_its_words_and_what_to_do() {
    let drift = vec![Drift {
        field: "visibility".to_owned(),
        found: "private".to_owned(),
        wanted: "public".to_owned(),
    }];
    let refused = Failure {
        message: "the cloud answered 403 to a change of the image".to_owned(),
        ..failure(FailureClass::Permission)
    };
    let mut input = Input::with(&[RecordSeen {
        drift: drift.clone(),
        ..verified(2)
    }])
    .changed(|input| {
        input.seen.amended = Some(Amended {
            drift,
            at: before(5),
            refused: Some(refused),
        });
    });
    had(&mut input, 2);
    let status = told(&input);
    assert!(status.ready);
    assert_eq!(
        message(&status, ConditionType::Verified),
        "options are otherwise in the cloud: visibility is private and should be public, because the cloud answered 403 to a change of \
         the image; give the project or user the right, or ask for less"
    );
    // Of other options nothing was said yet.
    if let Some(amended) = &mut input.seen.amended {
        amended.drift[0].found = "shared".to_owned();
    }
    let message = message(&told(&input), ConditionType::Verified).to_owned();
    assert!(message.ends_with("should be public"), "{message}");
}

#[test]
fn what_is_under_way_is_told_with_its_phase() {
    let (since, look) = (before(5), Sight::Unseen);
    let waiting = |deed: Deed| op(deed, OpState::Queued { since, ahead: 2 });
    let build = || Deed::Build {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    let read_back = || Deed::ReadBack {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    let empty = || Input::with(&[record(2, RecordState::Empty)]);
    let table = vec![
        (
            empty().changed(|input| input.op = running(transfer(2), 5)),
            ImagePhase::Transferring,
            "Transferring",
        ),
        (
            empty().changed(|input| input.op = Some(waiting(transfer(2)))),
            ImagePhase::Transferring,
            "TransferQueued",
        ),
        (
            empty().changed(|input| {
                input.wanted.build = Some(Duration::from_hours(2));
                input.op = running(build(), 5);
            }),
            ImagePhase::Building,
            "Building",
        ),
        (
            empty().changed(|input| {
                input.wanted.build = Some(Duration::from_hours(2));
                let (moved, bytes) = (since, Some((7, Some(9))));
                input.op = Some(op(build(), OpState::Running { since, moved, bytes }));
            }),
            ImagePhase::Transferring,
            "Transferring",
        ),
        (
            Input::with(&[record(2, RecordState::Receiving)]),
            ImagePhase::Transferring,
            "Transferring",
        ),
        (
            Input::with(&[record(2, RecordState::Importing)]),
            ImagePhase::Importing,
            "Importing",
        ),
        (
            Input::with(&[record(2, RecordState::Whole)]).changed(|input| input.op = running(read_back(), 5)),
            ImagePhase::Verifying,
            "Verifying",
        ),
        (
            Input::with(&[record(2, RecordState::Whole)]).changed(|input| input.kept.sealed = sealed(2, "aa")),
            ImagePhase::Verifying,
            "Verifying",
        ),
        (input(), ImagePhase::Preparing, "Progressing"),
        (
            input().changed(|input| input.seen.cloud = look),
            ImagePhase::Pending,
            "NotObservedYet",
        ),
    ];
    for (input, phase, reason) in table {
        let status = told(&input);
        assert_eq!(status.phase, Some(phase), "{reason}");
        assert_eq!(says(&status, ConditionType::Ready).2, Some(reason), "{phase}");
        assert_eq!(says(&status, ConditionType::Reconciling), holds_for(reason), "{phase}");
    }
}

#[test]
fn how_far_a_transfer_is_stands_beside_the_conditions_and_not_in_them() {
    let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| input.op = running(transfer(2), 5));
    let with_transfer = |sent| NodeImageStatus {
        transfer: Some(TransferStatus {
            attempt: 2,
            via: SentVia::Upload,
            sent_bytes: sent,
            total_bytes: Some(100),
            bytes_per_second: 1,
            seconds_left: None,
            last_progress_time: None,
            resumes: 0,
            started_at: None,
            holder: "pod".to_owned(),
            summary: format!("{sent} of 100 bytes"),
            sealed: None,
        }),
        ..NodeImageStatus::default()
    };
    let [first, second] = [40, 50].map(|sent| told_after(&input, &with_transfer(sent)).status);
    assert_eq!(first.conditions, second.conditions);
    assert_eq!(first.message.as_deref(), Some("40 of 100 bytes"));
    let progress = second.progress.expect("progress");
    assert_eq!(
        (progress.done, progress.total, progress.unit.as_str()),
        (50, Some(100), "bytes")
    );
    // What is over, however it ended, has no time left.
    let mut fast = with_transfer(40);
    if let Some(transfer) = &mut fast.transfer {
        transfer.seconds_left = Some(1);
        transfer.summary = "40 % of 100 B, 60 B/s, 1 s left".to_owned();
    }
    let going_on = told_after(&input, &fast).status.transfer.expect("a transfer");
    assert_eq!((going_on.seconds_left, going_on.bytes_per_second), (Some(1), 1));
    let over = Input::with(&[record(2, RecordState::Empty)]).changed(|input| {
        input.kept.retry = retry(DeedName::Transfer, FailureClass::SourceBroken, 60);
    });
    let over = told_after(&over, &fast).status.transfer.expect("a transfer");
    assert_eq!((over.seconds_left, over.bytes_per_second), (None, 0));
    assert_eq!(over.summary, "40 % of 100 B");
    // Of an attempt before nothing is said.
    let other = input.changed(|input| input.kept.attempt = 3);
    assert_eq!(told_after(&other, &with_transfer(40)).status.progress, None);
}

#[test]
fn every_halt_is_stalled_with_a_word_of_its_own_and_what_to_do() {
    let mut reasons = Vec::new();
    for reason in HALTS {
        let input = input().changed(|input| {
            input.kept.halted = Some(Halted {
                reason,
                message: "it does not work".to_owned(),
                key: input.wanted.key.clone(),
                generation: input.wanted.generation,
                identity: input.wanted.identity.clone(),
                request: None,
            });
        });
        let status = told(&input);
        assert!(is_true(&status.conditions, ConditionType::Stalled), "{reason:?}");
        assert_eq!(status.phase, Some(ImagePhase::Failed));
        let stalled = condition(&status, ConditionType::Stalled);
        reasons.extend(stalled.reason.clone());
        let says_more = !matches!(
            reason,
            HaltReason::InvalidSpec
                | HaltReason::NameTaken
                | HaltReason::Ambiguous
                | HaltReason::Unverifiable
                | HaltReason::JobsUnavailable
        );
        let message = stalled.message.as_deref().unwrap_or_default();
        assert_eq!(message.starts_with("it does not work; "), says_more, "{message}");
    }
    reasons.sort();
    reasons.dedup();
    assert_eq!(reasons.len(), HALTS.len());
}

#[test]
fn what_is_tried_again_says_since_when_how_often_and_when_next() {
    for (class, type_, severity, reason) in [
        (
            FailureClass::Unavailable,
            ConditionType::CloudAvailable,
            Severity::Warning,
            "CloudUnavailable",
        ),
        (
            FailureClass::Credentials,
            ConditionType::CloudAvailable,
            Severity::Error,
            "CredentialsRejected",
        ),
        (
            FailureClass::Permission,
            ConditionType::CloudAvailable,
            Severity::Error,
            "PermissionDenied",
        ),
        (
            FailureClass::Quota,
            ConditionType::ImageTransferred,
            Severity::Error,
            "QuotaExceeded",
        ),
        (
            FailureClass::Busy,
            ConditionType::ImageTransferred,
            Severity::Info,
            "Throttled",
        ),
        (
            FailureClass::SourceGone,
            ConditionType::SourceAvailable,
            Severity::Warning,
            "SourceNotFound",
        ),
        (
            FailureClass::SourceBroken,
            ConditionType::SourceAvailable,
            Severity::Warning,
            "SourceBroken",
        ),
        (
            FailureClass::SourceMismatch,
            ConditionType::Verified,
            Severity::Warning,
            "SourceMismatch",
        ),
        (
            FailureClass::OutOfMemory,
            ConditionType::ImageTransferred,
            Severity::Warning,
            "OutOfMemory",
        ),
        (
            FailureClass::Sealing,
            ConditionType::ImageTransferred,
            Severity::Warning,
            "SealNotKept",
        ),
    ] {
        let input = Input::with(&[record(2, RecordState::Empty)])
            .changed(|input| input.kept.retry = retry(Deed::Create { attempt: 2, id: None }.name(), class, 60));
        let status = told(&input);
        assert_eq!(says(&status, type_), fails(severity, reason), "{class:?}");
        let message = message(&status, type_);
        for part in ["since 2026-01-01T11:", "next try at 2026-01-01T12:01:00Z"] {
            assert!(message.contains(part), "{message}");
        }
        let is_stalled = class == FailureClass::Permission;
        assert_eq!(
            is_true(&status.conditions, ConditionType::Stalled),
            is_stalled,
            "{class:?}"
        );
    }
}

#[test]
fn a_limit_is_told_in_numbers() {
    let full = Failure {
        quota: Some(Box::new(Quota {
            resource: "image_size_total".to_owned(),
            limit: Some(10_000),
            used: Some(9_000),
            requested: Some(4_000),
        })),
        request_id: Some("req-9".to_owned()),
        ..failure(FailureClass::Quota)
    };
    let input = input().changed(|input| input.op = Some(ended(Deed::Create { attempt: 2, id: None }, Err(full))));
    let status = told(&input);
    let numbers = "it did not work (image_size_total: limit 10000, used 9000, wanted 4000)";
    let ready = message(&status, ConditionType::Ready);
    assert!(
        ready.starts_with(&format!("{numbers}; delete images that nobody needs")),
        "{ready}"
    );
    let last = status.last_failure.expect("a failure");
    assert_eq!(
        (
            last.reason.as_str(),
            last.message.as_str(),
            last.attempt,
            last.request_id.as_deref()
        ),
        ("QuotaExceeded", numbers, Some(2), Some("req-9"))
    );
    assert!(last.remedy.is_some());
}

#[test]
fn a_secret_that_is_not_there_is_named_and_what_was_ready_stays() {
    let (input, before_it) = ready();
    let missing = input.changed(|input| input.wanted.identity = None);
    assert_eq!(
        says(&told_after(&missing, &before_it).status, ConditionType::CloudAvailable),
        holds_for("SecretNotFound")
    );
    let new = missing.changed(|input| input.seen.cloud = Sight::Unseen);
    let status = told(&new);
    assert_eq!(
        says(&status, ConditionType::Ready),
        fails(Severity::Error, "SecretNotFound")
    );
    assert_eq!(status.phase, Some(ImagePhase::Failed));
}

#[test]
fn an_image_that_goes_says_what_it_waits_for_and_until_when() {
    let deleted = |input: Input| input.changed(|input| input.wanted.deleting = Some(wall()));
    let (there, before_it) = ready();
    let status = told_after(&deleted(there.clone()), &before_it).status;
    assert_eq!((status.ready, status.phase), (false, Some(ImagePhase::Deleting)));
    assert_eq!(says(&status, ConditionType::Ready), fails(Severity::Info, "Deleting"));
    assert_eq!(status.conditions.len(), 5);
    let out = deleted(
        there
            .clone()
            .changed(|input| input.seen.cloud = away(FailureClass::Unavailable)),
    );
    let status = told_after(&out, &before_it).status;
    let waits = message(&status, ConditionType::Ready);
    assert!(
        waits.ends_with("; the object goes without at 2026-01-01T13:00:00Z"),
        "{waits}"
    );
    let used = deleted(there).changed(|input| {
        input.kept.retry = retry(Deed::Relinquish { id: String::new() }.name(), FailureClass::InUse, 60);
    });
    let status = told_after(&used, &before_it).status;
    assert_eq!(
        says(&status, ConditionType::Ready),
        fails(Severity::Warning, "ImageInUse")
    );
}

#[test]
fn somebody_elses_image_is_told_as_that() {
    let adopts = |input: Input| input.changed(|input| input.wanted.policy = ImagePolicy::Adopt);
    let absent = told(&adopts(input()));
    assert_eq!(
        says(&absent, ConditionType::Ready),
        fails(Severity::Warning, "ImageNotFound")
    );
    assert!(find(&absent.conditions, ConditionType::SourceAvailable).is_none());
    let found = adopts(Input::among(&[foreign("theirs")]));
    let first = told_after(&found, &absent);
    assert_eq!(first.notes.len(), 1);
    assert_eq!(first.notes[0].reason, Happening::ImageAdopted);
    assert!(first.status.ready);
    assert_eq!(first.status.execution, None);
    let kept = planning::image::Kept::of_status(&first.status);
    let rests = found.changed(|input| input.kept = kept);
    let second = told_after(&rests, &first.status);
    assert_eq!((second.status, second.notes.len()), (first.status, 0));
    assert!(matches!(second.next, Next::At(_)), "{:?}", second.next);
}

#[test]
fn somebody_elses_image_that_was_not_compared_is_told_as_that() {
    let sha = |algorithm, hex: &str| {
        Some(Pinned {
            algorithm,
            hex: hex.to_owned(),
        })
    };
    let not_compared = (ConditionStatus::Unknown, None, Some("Unverifiable"));
    for (digest, expected, words) in [
        (None, not_compared, "no digest in the spec says what it must be"),
        (
            sha(Algorithm::Sha256, "aa"),
            not_compared,
            "give the sha512 of the image",
        ),
        (sha(Algorithm::Sha512, "aa"), HOLDS, ""),
    ] {
        let found = Input::among(&[foreign("theirs")]).changed(|input| {
            input.wanted.policy = ImagePolicy::Adopt;
            input.wanted.digest = digest;
        });
        let status = told(&found);
        assert!(status.ready);
        assert_eq!(says(&status, ConditionType::Ready), HOLDS);
        assert_eq!(says(&status, ConditionType::Verified), expected);
        let message = message(&status, ConditionType::Verified);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn an_image_that_is_given_to_everybody_is_no_longer_ready_by_its_name_alone() {
    let found = Input::among(&[foreign("theirs")]).changed(|input| input.wanted.policy = ImagePolicy::Adopt);
    let first = told_after(&found, &NodeImageStatus::default()).status;
    let given = planning::image::ForeignSeen {
        of_our_project: false,
        of_community: true,
        ..foreign("theirs")
    };
    let later = Input::among(&[given]).changed(|input| {
        input.wanted.policy = ImagePolicy::Adopt;
        input.kept = planning::image::Kept::of_status(&first);
    });
    let status = told_after(&later, &first).status;
    assert_eq!(
        (status.ready, says(&status, ConditionType::Ready)),
        (false, fails(Severity::Warning, "ImageNotFound"))
    );
}

#[test]
fn what_happened_is_told_once() {
    let create = || Deed::Create { attempt: 2, id: None };
    let id = || "wanted-2".to_owned();
    let discard = Deed::Discard {
        id: id(),
        attempt: 1,
        why: DiscardReason::LowerAttempt,
    };
    let publish = Deed::Publish {
        id: id(),
        attempt: 2,
        verified: "sha256:bb".to_owned(),
    };
    for (deed, done, expected) in [
        (create(), Done::Created { id: id() }, Some(Happening::ImageCreated)),
        (create(), Done::Ours { id: id() }, None),
        (discard, Done::Discarded, Some(Happening::ImageDiscarded)),
        (publish, Done::Published, Some(Happening::ImageVerified)),
    ] {
        let input = input().changed(|input| input.op = Some(ended(deed, Ok(done))));
        let first = told_after(&input, &NodeImageStatus::default());
        assert_eq!(first.notes.first().map(|note| note.reason), expected);
        let kept = planning::image::Kept::of_status(&first.status);
        let over = input.changed(|input| {
            input.op = None;
            input.kept = kept;
        });
        assert_eq!(told_after(&over, &first.status).notes, []);
    }
    let late = input().changed(|input| {
        input.wanted.deleting = Some(crate::table::earlier(7200));
        input.seen.cloud = away(FailureClass::Unavailable);
        had(input, 2);
    });
    let notes = told_after(&late, &NodeImageStatus::default()).notes;
    let left = notes.iter().find(|note| note.reason == Happening::ImageLeftBehind);
    assert!(
        left.is_some_and(|note| note.warning && note.message.ends_with("left there: wanted-2")),
        "{notes:?}"
    );
}

#[test]
fn what_is_left_to_another_installation_is_told_apart_from_what_the_cloud_did_not_delete() {
    let held = RecordSeen {
        held_elsewhere: true,
        ..verified(2)
    };
    let refused = Input::with(&[held, record(3, RecordState::Whole)]).changed(|input| {
        input.wanted.deleting = Some(crate::table::earlier(7200));
        input.kept.retry = retry(DeedName::Discard, FailureClass::Permission, 600);
    });
    let notes = told_after(&refused, &NodeImageStatus::default()).notes;
    let words = notes.into_iter().map(|note| (note.warning, note.reason, note.message));
    let expected = [
        "the object goes without its image, because the cloud did not delete it in time; left there: wanted-3",
        "the object goes without an image that another installation works on, which is that one's to delete; left there: wanted-2",
    ]
    .map(|message| (true, Happening::ImageLeftBehind, message.to_owned()));
    assert_eq!(words.collect::<Vec<_>>(), expected);
}

#[test]
fn a_paused_image_keeps_what_was_said_of_it() {
    let (input, before_it) = ready();
    let paused = input.changed(|input| input.wanted.paused = true);
    let told = told_after(&paused, &before_it);
    assert!(told.status.ready);
    assert_eq!(says(&told.status, ConditionType::Paused), holds_for("Paused"));
    assert_eq!(says(&told.status, ConditionType::Ready), holds_for("Paused"));
    assert_eq!(told.next, Next::Await);
    // And says the rest again once it is not.
    let resumed = paused.changed(|input| {
        input.wanted.paused = false;
        input.seen.cloud = Sight::Unseen;
    });
    let status = told_after(&resumed, &told.status).status;
    assert!(find(&status.conditions, ConditionType::Paused).is_none());
    assert!(status.ready);
}

#[test]
fn a_request_is_answered_when_somebody_looked() {
    let (input, before_it) = ready();
    let asked = input.changed(|input| {
        input.wanted.request = Some("now".to_owned());
        input.seen.cloud = Sight::Seen {
            value: Cloud {
                records: vec![verified(2)],
                others: Vec::new(),
            },
            at: before(1),
            fresh: false,
        };
    });
    let first = told_after(&asked, &before_it).status;
    assert_eq!(first.last_handled_reconcile_at, None);
    let seen = asked.changed(|input| {
        let cloud = Cloud {
            records: vec![verified(2)],
            others: Vec::new(),
        };
        input.seen.cloud = looked(cloud, before(0));
    });
    let second = told_after(&seen, &first).status;
    assert_eq!(second.last_handled_reconcile_at.as_deref(), Some("now"));
}

#[test]
fn it_is_looked_again_in_time_for_deadlines_and_not_before() {
    let at = |seconds| Next::At(wall() + SignedDuration::from_secs(seconds));
    let next = |input: &Input| told_after(input, &NodeImageStatus::default()).next;
    let sends = Input::with(&[record(2, RecordState::Empty)]).changed(|input| input.op = running(transfer(2), 5));
    let rests = i64::try_from(SENDING_RESTS.as_secs()).expect("seconds");
    assert_eq!(next(&sends), at(rests - 5 + 1));
    let queued = sends.changed(|input| {
        let since = before(5);
        let queued: Op = op(transfer(2), OpState::Queued { since, ahead: 2 });
        input.op = Some(queued);
    });
    assert_eq!(next(&queued), Next::Await);
    let out = input().changed(|input| input.seen.cloud = away(FailureClass::Unavailable));
    assert_eq!(next(&out), at(20));
    assert_eq!(next(&input()), Next::Now);
    let held = input().changed(|input| input.wanted.invalid = Some("spec.image.url is no URL".to_owned()));
    assert_eq!(next(&held), Next::Await);
}

#[test]
fn what_holds_a_job_up_is_told_as_long_as_it_is_under_way() {
    let mut input = input();
    input.wanted.build = Some(Duration::from_hours(1));
    input.seen.jobs = JobsSight::Held {
        why: "no node takes it".to_owned(),
    };
    let (id, attempt) = (format!("{KEY}-2"), 2);
    input.op = running(Deed::Build { id, attempt }, 1).map(|op| Op { form: Form::Job, ..op });
    let ready = |input: &Input| {
        let mut conditions = told(input).conditions.into_iter();
        let ready = conditions.rfind(|condition| condition.type_ == "Ready");
        ready.and_then(|ready| ready.message).unwrap_or_default()
    };
    assert_eq!(ready(&input), "its Job does not go on: no node takes it");
    input.seen.jobs = JobsSight::Usable;
    assert_eq!(ready(&input), "the image is built");
}

#[test]
fn what_fails_again_and_again_in_a_way_that_passes_is_a_warning_from_the_fourth_time_on() {
    let after = |deed, class, count| {
        let input = Input::with(&[record(2, RecordState::Empty)]).changed(|input| {
            input.kept.retry = retry(deed, class, 60).map(|retry| planning::image::Retry { count, ..retry });
        });
        let status = told(&input);
        let says = says(&status, ConditionType::ImageTransferred);
        (says.1, says.2.map(str::to_owned))
    };
    let warning = |reason: &str| (Some(Severity::Warning), Some(reason.to_owned()));
    for class in [
        FailureClass::State,
        FailureClass::Gone,
        FailureClass::Unknown,
        FailureClass::NotOurs,
        FailureClass::JobVanished,
    ] {
        let third = after(DeedName::Transfer, class, 3);
        assert_eq!(
            third,
            (Some(Severity::Info), Some("Progressing".to_owned())),
            "{class:?}"
        );
        assert_eq!(
            after(DeedName::Transfer, class, 4),
            warning("TransferStalled"),
            "{class:?}"
        );
        assert_eq!(
            after(DeedName::Create, class, 4),
            warning("CloudUnavailable"),
            "{class:?}"
        );
    }
}

#[test]
fn an_object_that_is_deleted_and_cannot_be_read_says_so() {
    let input = Input::with(&[]).changed(|input| {
        input.wanted.deleting = Some(wall());
        input.wanted.identity = None;
        input.wanted.invalid = Some("spec cannot be read: it has no image".to_owned());
    });
    let status = told(&input);
    let cloud = ConditionType::CloudAvailable;
    assert_eq!(says(&status, cloud), fails(Severity::Error, "InvalidSpec"));
    let told = message(&status, cloud);
    assert!(
        told.contains("it has no image") && told.contains("the object goes without at"),
        "{told}"
    );
}

#[test]
fn an_image_that_is_moved_keeps_what_was_said_of_it_and_says_who_has_it() {
    let (input, status) = ready();
    let moved = input.changed(|input| input.wanted.moved = true);
    let told = told_after(&moved, &status);
    assert!(told.status.ready && told.notes.is_empty());
    assert!(message(&told.status, ConditionType::Paused).contains("another management cluster"));
}

#[test]
fn what_the_cloud_says_of_an_import_is_told_while_it_goes_on_and_when_it_is_given_up() {
    let words = Some("Copied 15 MiB".to_owned());
    let importing = |state| {
        Input::with(&[RecordSeen {
            words: words.clone(),
            ..record(2, state)
        }])
    };
    let status = told(&importing(RecordState::Importing));
    assert_eq!(
        status.message.as_deref(),
        Some("the cloud fetches the image: Copied 15 MiB")
    );
    let condition = message(&status, ConditionType::ImageTransferred);
    assert_eq!(condition, "the cloud fetches the image", "it says nothing that moves");
    let retry = told(&importing(RecordState::Spoilt)).retry.expect("it slows down");
    assert_eq!(
        retry.message,
        "the record in the cloud takes no bytes any more: Copied 15 MiB"
    );
}

/// An image that the cloud fetches, of which it has so much.
fn fetched(state: RecordState, size: Option<u64>, words: Option<&str>) -> Input {
    let record = RecordSeen {
        size,
        words: words.map(str::to_owned),
        ..record(2, state)
    };
    Input::with(&[record]).changed(|input| {
        input.wanted.via = Via::ServerSide;
        input.wanted.digest = Some(Pinned {
            algorithm: Algorithm::Sha512,
            hex: "aa".to_owned(),
        });
    })
}

#[test]
fn what_the_cloud_fetches_itself_is_a_transfer_of_the_clouds() {
    let of_upload = NodeImageStatus {
        transfer: Some(TransferStatus {
            attempt: 1,
            via: SentVia::Upload,
            sent_bytes: 9,
            total_bytes: None,
            bytes_per_second: 3,
            seconds_left: Some(3),
            last_progress_time: None,
            resumes: 4,
            started_at: None,
            holder: "pod".to_owned(),
            summary: "9 B".to_owned(),
            sealed: Some(Sealed {
                attempt: 1,
                ..Sealed::default()
            }),
        }),
        ..NodeImageStatus::default()
    };
    let begun = told_after(&fetched(RecordState::Importing, None, None), &of_upload).status;
    let transfer = begun.transfer.clone().expect("a transfer");
    assert_eq!(
        (
            transfer.attempt,
            transfer.via,
            transfer.sent_bytes,
            transfer.total_bytes
        ),
        (2, SentVia::ServerSide, 0, Some(100))
    );
    assert_eq!(
        (transfer.holder.as_str(), transfer.resumes),
        ("", 0),
        "it is nobody's here"
    );
    assert_eq!(transfer.summary, "fetched by the cloud");
    let sealed = transfer.sealed.as_ref().map(|sealed| sealed.attempt);
    assert_eq!(sealed, Some(1), "what was sealed is of whoever sent it");
    assert_eq!(transfer.started_at.as_ref().map(|begun| begun.0), Some(wall()));
    assert_eq!(begun.message.as_deref(), Some("the cloud fetches the image"));

    let stored = fetched(RecordState::Importing, Some(30), Some("Copied 30 B"));
    let on_the_way = told_after(&stored, &begun).status;
    let transfer = on_the_way.transfer.clone().expect("a transfer");
    assert_eq!(transfer.summary, "fetched by the cloud, 30 % stored");
    let progress = on_the_way.progress.clone().expect("progress");
    assert_eq!((progress.done, progress.total), (30, Some(100)));
    assert_eq!(
        told_after(&stored, &on_the_way).status,
        on_the_way,
        "nothing moved, and nothing is news"
    );
    let unknown = stored.changed(|input| input.seen.source = Sight::Unseen);
    let transfer = told_after(&unknown, &begun).status.transfer.expect("a transfer");
    assert_eq!(transfer.summary, "fetched by the cloud, Copied 30 B");

    let whole = told_after(&fetched(RecordState::Whole, Some(100), None), &on_the_way).status;
    let transfer = whole.transfer.expect("a transfer");
    assert_eq!(
        (transfer.sent_bytes, transfer.summary.as_str()),
        (100, "fetched by the cloud")
    );
    assert_eq!(whole.progress, None, "nothing moves any more");
}

#[test]
fn an_import_of_which_nothing_came_is_the_last_failure() {
    for (state, age, words) in [
        (
            RecordState::Spoilt,
            1,
            "the cloud could not import the image: of the cloud",
        ),
        (
            RecordState::Importing,
            7200,
            "the cloud did not import the image in time: of the cloud",
        ),
    ] {
        let input = fetched(state, None, Some("of the cloud")).changed(|input| {
            if let Sight::Seen { value, .. } = &mut input.seen.cloud {
                value.records[0].first_seen = before(age);
            }
            input.seen.abilities = Some(Abilities {
                server_side: true,
                staged: true,
            });
        });
        let status = NodeImageStatus {
            attempt: Some(2),
            ..NodeImageStatus::default()
        };
        let failure = told_after(&input, &status).status.last_failure.expect("it is told");
        assert_eq!((failure.reason.as_str(), failure.attempt), ("ImportFailed", Some(2)));
        assert_eq!(failure.message, words);
        assert!(
            failure
                .remedy
                .is_some_and(|remedy| remedy.contains("spec.transfer.via"))
        );
    }
}

#[test]
fn an_image_has_the_format_that_the_cloud_says() {
    let mut input = Input::with(&[RecordSeen {
        format: Some("qcow2".to_owned()),
        ..verified(2)
    }]);
    had(&mut input, 2);
    let image = told(&input).image.expect("it is there");
    assert_eq!(image.disk_format.as_deref(), Some("qcow2"));
}

#[test]
fn a_source_that_could_not_be_asked_is_the_last_failure() {
    let input = input().changed(|input| {
        input.op = Some(ended(Deed::Probe, Err(failure(FailureClass::SourceGone))));
    });
    let failure = told(&input).last_failure.expect("something failed");
    assert_eq!((failure.reason.as_str(), failure.attempt), ("SourceNotFound", None));
    let looks = input.changed(|input| {
        input.op = Some(ended(Deed::Look, Err(super::table::failure(FailureClass::Unavailable))));
    });
    assert_eq!(told(&looks).last_failure, None);
}
