//! What status says after a step.

use planning::image::{
    AttemptReason, Deed, DeedName, DiscardReason, Done, FailureClass, HaltReason, Halted, Intent, Kept, Retry,
    Settlement, Step, StopReason, after,
};

use super::{Input, KEY, ended, failure, had, input, retry, sealed, transfer};

fn attempt(number: u32, why: AttemptReason) -> Step {
    Step::Record(Intent::Attempt {
        number,
        key: KEY.to_owned(),
        why,
    })
}

fn written(input: &Input, step: &Step) -> Kept {
    after(
        step,
        &input.wanted,
        &input.kept,
        &input.seen,
        input.op.as_ref(),
        Input::now(),
    )
}

#[test]
fn an_attempt_never_falls() {
    let kept = written(&input(), &attempt(1, AttemptReason::EarlierLife));
    assert_eq!(kept.attempt, 2);
}

#[test]
fn giving_up_again_and_again_slows_down() {
    let mut input = input();
    for seconds in [0, 0, 0, 1, 2, 4] {
        input.kept = written(&input, &attempt(3, AttemptReason::Stalled));
        let until = input.kept.retry.as_ref().expect("it is counted").until;
        let delay = until.duration_since(super::wall()).unsigned_abs();
        assert!(
            super::failures::is_about(delay, seconds),
            "{delay:?} and not {seconds} s"
        );
    }
}

#[test]
fn what_is_built_is_counted_on_where_its_record_is_given_up() {
    let mut input = input();
    input.wanted.build = Some(std::time::Duration::from_hours(2));
    input.kept.retry = retry(DeedName::Build, FailureClass::Unavailable, 0).map(|before| Retry { count: 2, ..before });
    let kept = written(&input, &attempt(3, AttemptReason::Stalled));
    let retry = kept.retry.expect("it is counted");
    assert_eq!((retry.deed, retry.count), (DeedName::Build, 3));
}

#[test]
fn other_bytes_are_counted_however_the_record_of_the_first_try_ends() {
    for why in [
        AttemptReason::Stalled,
        AttemptReason::Spoilt,
        AttemptReason::ImportFailed,
    ] {
        let mismatch = || Err(failure(FailureClass::SourceMismatch));
        let mut input = input().changed(|input| input.op = Some(ended(transfer(2), mismatch())));
        input.kept = written(&input, &input.step());
        input.op = None;
        input.kept = written(&input, &attempt(3, why));
        input.op = Some(ended(transfer(3), mismatch()));
        let halted = written(&input, &input.step()).halted;
        assert_eq!(
            halted.map(|halted| halted.reason),
            Some(HaltReason::SourceMismatch),
            "{why:?}"
        );
    }
}

#[test]
fn transfers_for_nothing_are_counted_however_their_records_end() {
    for (class, reason) in [
        (FailureClass::OutOfMemory, HaltReason::OutOfMemory),
        (FailureClass::Sealing, HaltReason::SealNotKept),
    ] {
        let mut input = input();
        for number in 2..5 {
            assert_eq!(input.kept.halted, None, "{class:?}");
            input.op = Some(ended(transfer(number), Err(failure(class))));
            input.kept = written(&input, &input.step());
            input.op = None;
            if number < 4 {
                input.kept = written(&input, &attempt(number + 1, AttemptReason::Stalled));
            }
        }
        assert_eq!(input.kept.halted.map(|halted| halted.reason), Some(reason), "{class:?}");
    }
}

#[test]
fn builds_that_fail_are_counted_however_they_do_and_whatever_fails_between() {
    let why = StopReason::Stalled;
    let exit = |exit| FailureClass::BuildFailed { exit };
    for classes in [
        [exit(1), exit(2), exit(1)],
        [exit(1), FailureClass::Stopped { why }, exit(2)],
        [FailureClass::Stopped { why }; 3],
    ] {
        let mut input = input();
        for class in classes {
            assert_eq!(input.kept.halted, None, "{classes:?}");
            for class in [FailureClass::JobVanished, FailureClass::Unavailable, class] {
                let build = Deed::Build {
                    id: format!("{KEY}-2"),
                    attempt: 2,
                };
                input.op = Some(ended(build, Err(failure(class))));
                input.kept = written(&input, &input.step());
            }
        }
        assert_eq!(
            input.kept.halted.map(|halted| halted.reason),
            Some(HaltReason::BuildFailed),
            "{classes:?}"
        );
    }
}

/// Its record is given up, and clearing it away does not work at once.
fn given_up(input: &mut Input, number: u32, why: AttemptReason) {
    input.op = None;
    input.kept = written(input, &attempt(number + 1, why));
    for outcome in [Err(failure(FailureClass::Unavailable)), Ok(Done::Discarded)] {
        let discard = Deed::Discard {
            id: format!("{KEY}-{number}"),
            attempt: number,
            why: DiscardReason::LowerAttempt,
        };
        input.op = Some(ended(discard, outcome));
        input.kept = written(input, &input.step());
    }
}

#[test]
fn what_is_too_large_is_sent_seldom_however_its_records_end_and_are_cleared_away() {
    for why in [
        AttemptReason::Stalled,
        AttemptReason::Spoilt,
        AttemptReason::ImportFailed,
    ] {
        let mut input = input();
        for (number, seconds) in [(2, 240), (3, 240), (4, 1800), (5, 1800)] {
            input.op = Some(ended(transfer(number), Err(failure(FailureClass::Quota))));
            input.kept = written(&input, &input.step());
            let until = input.kept.retry.as_ref().expect("it is tried again").until;
            let delay = until.duration_since(super::wall()).unsigned_abs();
            assert!(
                super::failures::is_about(delay, seconds),
                "{why:?} {number}: {delay:?} and not {seconds} s"
            );
            given_up(&mut input, number, why);
        }
    }
}

#[test]
fn other_bytes_are_counted_also_where_something_cannot_be_cleared_away_between() {
    let mut input = input();
    let mismatch = || Err(failure(FailureClass::SourceMismatch));
    input.op = Some(ended(transfer(2), mismatch()));
    input.kept = written(&input, &input.step());
    given_up(&mut input, 2, AttemptReason::Spoilt);
    input.op = Some(ended(transfer(3), mismatch()));
    let kept = written(&input, &input.step());
    let halted = kept.halted.map(|halted| (halted.reason, halted.message));
    let words = "twice in a row: it did not work".to_owned();
    assert_eq!(halted, Some((HaltReason::SourceMismatch, words)));
    assert_eq!(kept.in_vain, None, "it begins anew");
}

#[test]
fn giving_up_slows_down_also_while_transfers_are_counted() {
    let mut input = input();
    input.kept.in_vain = retry(DeedName::Transfer, FailureClass::Quota, 0);
    for _ in 0..4 {
        input.kept = written(&input, &attempt(3, AttemptReason::Spoilt));
    }
    let until = input.kept.retry.as_ref().map(|retry| retry.until);
    assert!(until > Some(super::wall()), "{until:?}");
}

#[test]
fn transfers_are_counted_until_one_is_done_or_somebody_acts() {
    let input = input().changed(|input| input.kept.in_vain = retry(DeedName::Transfer, FailureClass::Quota, 0));
    let after_deed = |deed: Deed, done: Done| {
        let input = input.clone().changed(|input| input.op = Some(ended(deed, Ok(done))));
        written(&input, &Step::Settle(Settlement::Progressed)).in_vain
    };
    let create = Deed::Create { attempt: 3, id: None };
    assert!(after_deed(create, Done::Created { id: "x".to_owned() }).is_some());
    assert_eq!(after_deed(transfer(3), Done::Sent), None);
    for intent in [Intent::Anew, Intent::Forget] {
        assert_eq!(
            written(&input, &Step::Record(intent.clone())).in_vain,
            None,
            "{intent:?}"
        );
    }
    let halted = Halted {
        reason: HaltReason::Refused,
        message: "it is not taken".to_owned(),
        key: KEY.to_owned(),
        generation: 1,
        identity: Some("secret/1".to_owned()),
        request: None,
    };
    assert_eq!(written(&input, &Step::Settle(Settlement::Halt(halted))).in_vain, None);
    let probe = ended(Deed::Probe, Err(failure(FailureClass::Quota)));
    let refused = input.changed(|input| (input.kept.in_vain, input.op) = (None, Some(probe)));
    assert_eq!(written(&refused, &refused.step()).in_vain, None, "nothing was sent");
}

#[test]
fn two_images_that_differ_halt_and_three_that_nobody_can_tell_about() {
    let mut input = input();
    input.kept = written(&input, &attempt(3, AttemptReason::Mismatch));
    assert_eq!(input.kept.halted, None);
    let twice = written(&input, &attempt(4, AttemptReason::Mismatch));
    assert_eq!(
        twice.halted.map(|halted| halted.reason),
        Some(HaltReason::SourceMismatch)
    );
    for number in 4..6 {
        input.kept = written(&input, &attempt(number, AttemptReason::Unverifiable));
        assert_eq!(input.kept.halted, None);
    }
    let thrice = written(&input, &attempt(6, AttemptReason::Unverifiable));
    assert_eq!(
        thrice.halted.map(|halted| halted.reason),
        Some(HaltReason::Unverifiable)
    );
}

#[test]
fn what_nobody_could_tell_about_is_sent_the_next_time() {
    let kept = written(&input(), &attempt(3, AttemptReason::Unverifiable));
    assert_eq!(kept.imports_failed, planning::image::IMPORTS_AT_MOST);
}

#[test]
fn a_cloud_that_refuses_to_fetch_is_not_asked_again() {
    let kept = written(&input(), &Step::Settle(Settlement::ImportRefused));
    assert_eq!(kept.imports_failed, planning::image::IMPORTS_AT_MOST);
}

#[test]
fn another_content_keeps_the_number_and_nothing_else() {
    let input = input().changed(|input| {
        had(input, 2);
        input.kept.sealed = sealed(2, "aa");
        input.kept.retry = retry(DeedName::Transfer, FailureClass::Quota, 30);
        input.kept.in_vain = retry(DeedName::Transfer, FailureClass::Quota, 30);
        input.kept.imports_failed = 1;
    });
    let expected = Kept {
        attempt: 2,
        sealed: sealed(2, "aa"),
        ..Kept::default()
    };
    assert_eq!(written(&input, &Step::Record(Intent::Forget)), expected);
}

#[test]
fn an_image_that_is_shown_ends_all_that_was_counted() {
    let publish = Deed::Publish {
        id: "wanted-2".to_owned(),
        attempt: 2,
        verified: "sha256:bb".to_owned(),
    };
    let input = Input::with(&[super::record(2, planning::image::RecordState::Whole)]).changed(|input| {
        input.kept.publishing = Some("wanted-2".to_owned());
        input.kept.retry = retry(DeedName::Transfer, FailureClass::Unknown, 0);
        input.kept.in_vain = retry(DeedName::Transfer, FailureClass::Quota, 0);
        input.kept.imports_failed = 2;
        input.kept.mismatches = 1;
        input.op = Some(ended(publish, Ok(Done::Published)));
    });
    let expected = input.clone().changed(|input| had(input, 2)).changed(|input| {
        input.kept = Kept {
            publishing: None,
            retry: None,
            in_vain: None,
            imports_failed: 0,
            mismatches: 0,
            ..input.kept.clone()
        };
    });
    assert_eq!(written(&input, &Step::Settle(Settlement::Progressed)), expected.kept);
}

#[test]
fn success_ends_the_failures_of_what_comes_before_it_alone() {
    let noted = |deed: Deed, done: Done, of: DeedName| {
        let input = input().changed(|input| {
            input.kept.retry = retry(of, FailureClass::Unknown, 0);
            input.op = Some(ended(deed, Ok(done)));
        });
        written(&input, &Step::Settle(Settlement::Progressed)).retry.is_none()
    };
    let create = || Deed::Create { attempt: 2, id: None };
    let created = || Done::Created { id: "x".to_owned() };
    assert!(noted(create(), created(), DeedName::Probe));
    assert!(noted(create(), created(), DeedName::Create));
    assert!(!noted(create(), created(), DeedName::Transfer));
    assert!(noted(transfer(2), Done::Sent, DeedName::Transfer));
    assert!(!noted(transfer(2), Done::Sent, DeedName::Discard));
}

#[test]
fn nothing_is_written_after_nothing() {
    let input = input().changed(|input| {
        input.op = Some(ended(Deed::Look, Err(failure(FailureClass::Unavailable))));
    });
    assert_eq!(written(&input, &input.step()), input.kept);
}
