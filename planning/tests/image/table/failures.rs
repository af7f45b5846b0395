//! What follows from a deed that has ended.

use std::time::Duration;

use planning::image::{
    Deed, DeedName, DiscardReason, Done, Failure, FailureClass, Form, HaltReason, Op, Retry, Settlement, Step,
    StopReason, after, look_again,
};

use super::{Input, KEY, OTHER, earlier, ended, failure, input, retry, sealed, transfer, wall};

fn outcome(deed: Deed, outcome: Result<Done, Failure>, before: Option<Retry>) -> Settlement {
    let input = input().changed(|input| {
        input.kept.retry = before;
        input.op = Some(ended(deed, outcome));
    });
    match input.step() {
        Step::Settle(settlement) => settlement,
        other => panic!("{other:?}"),
    }
}

fn failed(class: FailureClass, before: Option<Retry>) -> Settlement {
    outcome(transfer(2), Err(failure(class)), before)
}

/// How long until the next try.
#[track_caller]
fn delay(settlement: &Settlement) -> Duration {
    match settlement {
        Settlement::Retry(retry) => retry.until.duration_since(wall()).unsigned_abs(),
        other => panic!("{other:?}"),
    }
}

/// As long as said, or up to a quarter longer, by a second to a minute; what is done at once is done at once.
pub(super) fn is_about(delay: Duration, seconds: u64) -> bool {
    let least = Duration::from_secs(seconds);
    let more = (least / 4).clamp(Duration::from_secs(1), Duration::from_mins(1));
    if least.is_zero() {
        delay.is_zero()
    } else {
        (least..=least + more).contains(&delay)
    }
}

#[track_caller]
fn waits(settlement: &Settlement, seconds: u64) {
    let delay = delay(settlement);
    assert!(is_about(delay, seconds), "{delay:?} and not {seconds} s");
}

/// Failed so many times in a row, waits so many seconds each time.
#[track_caller]
fn waits_in_turn(class: FailureClass, seconds: &[u64]) {
    let mut before = None;
    for (turn, seconds) in seconds.iter().enumerate() {
        let settlement = failed(class, before);
        let delay = delay(&settlement);
        assert!(
            is_about(delay, *seconds),
            "{class:?} {turn}: {delay:?} and not {seconds} s"
        );
        before = match settlement {
            Settlement::Retry(retry) => Some(retry),
            _ => None,
        };
    }
}

#[track_caller]
fn halts(settlement: &Settlement, reason: HaltReason) -> String {
    match settlement {
        Settlement::Halt(halted) if halted.reason == reason => halted.message.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cloud_that_does_not_answer_is_tried_ever_more_slowly() {
    waits_in_turn(FailureClass::Unavailable, &[1, 2, 4, 8, 16, 32, 64, 128, 240, 240, 240]);
}

#[test]
fn images_of_one_cloud_that_failed_together_do_not_come_back_together() {
    let minute = Duration::from_mins(1);
    let mut orders = Vec::new();
    for count in [7, 8] {
        let mut next: Vec<(Duration, usize)> = (0..100)
            .map(|image| {
                let key = format!("image {image}");
                let input = input().changed(|input| {
                    input.wanted.key.clone_from(&key);
                    input.kept.key = Some(key.clone());
                    input.kept.retry = retry(DeedName::Transfer, FailureClass::Unavailable, 0).map(|retry| Retry {
                        count: count - 1,
                        ..retry
                    });
                    let mut op = ended(transfer(2), Err(failure(FailureClass::Unavailable)));
                    op.key = key.clone();
                    input.op = Some(op);
                });
                let Step::Settle(settlement) = input.step() else {
                    panic!("{:?}", input.step());
                };
                // Looks are in memory, and spread alike.
                let look = look_again(&failure(FailureClass::Unavailable), &key, count);
                let kept = (look + Duration::from_millis(500)).as_secs();
                assert_eq!(kept, delay(&settlement).as_secs());
                (look, image)
            })
            .collect();
        next.sort();
        let (first, last) = (next[0].0, next[99].0);
        assert!(first >= Duration::from_secs(1 << (count - 1)), "{first:?}");
        assert!(last > first + first / 5 && last <= 5 * minute, "{first:?} to {last:?}");
        let at_once = next.windows(10).map(|ten| ten[9].0.saturating_sub(ten[0].0)).min();
        assert!(at_once > Some(first / 500), "ten within {at_once:?}");
        orders.push(next.into_iter().map(|(_, image)| image).collect::<Vec<_>>());
    }
    assert_ne!(orders[0], orders[1], "those that are together once stay so");
}

#[test]
fn a_race_is_looked_at_again_at_once_three_times() {
    for class in [
        FailureClass::State,
        FailureClass::Gone,
        FailureClass::Unknown,
        FailureClass::JobVanished,
        FailureClass::Stopped {
            why: StopReason::Stalled,
        },
    ] {
        waits_in_turn(class, &[0, 0, 0, 1, 2, 4]);
    }
}

#[test]
fn what_we_stopped_ourselves_says_nothing() {
    for why in [
        StopReason::Deleted,
        StopReason::Changed,
        StopReason::Paused,
        StopReason::Fenced,
    ] {
        assert_eq!(failed(FailureClass::Stopped { why }, None), Settlement::Nothing);
    }
}

#[test]
fn a_cloud_that_asks_for_patience_gets_it_for_an_hour_at_most() {
    let asks = |seconds| {
        let failure = Failure {
            retry_after: Some(Duration::from_secs(seconds)),
            ..failure(FailureClass::Throttled)
        };
        outcome(transfer(2), Err(failure), None)
    };
    waits(&asks(17), 17);
    waits(&asks(9000), 3600);
}

#[test]
fn what_people_must_do_is_waited_for_in_minutes() {
    for (class, seconds) in [
        (FailureClass::Busy, 30),
        (FailureClass::Quota, 240),
        (FailureClass::Credentials, 240),
        (FailureClass::Permission, 1800),
        (FailureClass::InUse, 3600),
    ] {
        waits_in_turn(class, &[seconds, seconds]);
    }
}

#[test]
fn what_is_too_large_when_it_is_sent_is_sent_twice_more_and_then_seldom() {
    waits_in_turn(FailureClass::Quota, &[240, 240, 1800, 1800]);
    let before = retry(DeedName::Create, FailureClass::Quota, 0).map(|before| Retry { count: 9, ..before });
    let create = Deed::Create { attempt: 2, id: None };
    waits(&outcome(create, Err(failure(FailureClass::Quota)), before), 240);
}

#[test]
fn what_will_never_be_taken_halts() {
    for (class, reason) in [
        (FailureClass::Invalid, HaltReason::Refused),
        (FailureClass::Unsupported, HaltReason::Unsupported),
        (FailureClass::SourceNotAnImage, HaltReason::SourceNotAnImage),
        (FailureClass::DigestUnknown, HaltReason::DigestUnknown),
        (FailureClass::BuildFailed { exit: 65 }, HaltReason::BuildFailed),
    ] {
        halts(&failed(class, None), reason);
    }
}

#[test]
fn a_source_that_is_not_there_for_four_minutes_halts() {
    let gone = |count, first_seconds_ago| {
        let before = retry(DeedName::Probe, FailureClass::SourceGone, 0).map(|before| Retry {
            count,
            first_time: earlier(first_seconds_ago),
            ..before
        });
        failed(FailureClass::SourceGone, before)
    };
    waits(&failed(FailureClass::SourceGone, None), 60);
    waits(&gone(1, 60), 180);
    waits(&gone(2, 100), 60);
    halts(&gone(2, 240), HaltReason::SourceNotFound);
    waits(&gone(2, 601), 60);
}

#[test]
fn what_a_cloud_does_not_take_by_a_stage_is_sent_as_it_is() {
    let staged = Deed::Transfer {
        id: "wanted-2".to_owned(),
        attempt: 2,
        staged: true,
    };
    for class in [
        FailureClass::Unsupported,
        FailureClass::Invalid,
        FailureClass::Permission,
    ] {
        let settlement = outcome(staged.clone(), Err(failure(class)), None);
        assert_eq!(settlement, Settlement::ImportRefused, "{class:?}");
        for (sealed, attempt) in [(None, 2), (sealed(1, "aa"), 2), (sealed(2, "aa"), 3)] {
            let mut input = input();
            input.kept.sealed = sealed;
            input.op = Some(ended(staged.clone(), Err(failure(class))));
            let kept = after(
                &Step::Settle(settlement.clone()),
                &input.wanted,
                &input.kept,
                &input.seen,
                input.op.as_ref(),
                Input::now(),
            );
            // What is on the stage goes with its record; what never came there leaves the record as it was.
            assert_eq!((kept.attempt, kept.imports_failed), (attempt, 2), "{class:?}");
        }
    }
    halts(&failed(FailureClass::Unsupported, None), HaltReason::Unsupported);
}

#[test]
fn what_failed_with_another_spec_does_not_count() {
    let before = retry(DeedName::Probe, FailureClass::SourceGone, 0).map(|before| Retry {
        count: 2,
        first_time: earlier(300),
        generation: 0,
        ..before
    });
    waits(&failed(FailureClass::SourceGone, before), 60);
}

#[test]
fn a_source_that_breaks_is_tried_ever_more_slowly() {
    waits_in_turn(FailureClass::SourceBroken, &[10, 30, 60, 120, 180, 240, 240, 240]);
}

#[test]
fn other_bytes_are_downloaded_once_more_before_they_are_believed() {
    let first = failed(FailureClass::SourceMismatch, None);
    waits(&first, 0);
    let before = retry(DeedName::Transfer, FailureClass::SourceMismatch, 0).map(|before| Retry {
        message: "it gave sha256:aa".to_owned(),
        ..before
    });
    let message = halts(
        &failed(FailureClass::SourceMismatch, before),
        HaltReason::SourceMismatch,
    );
    assert_eq!(message, "it did not work; the time before: it gave sha256:aa");
}

/// A Job that was told to end for something else.
fn ended_in_job(before: Option<Retry>) -> Input {
    let why = StopReason::Changed;
    input().changed(|input| {
        input.kept.retry = before;
        let op = ended(transfer(2), Err(failure(FailureClass::Stopped { why })));
        input.op = Some(Op { form: Form::Job, ..op });
    })
}

#[test]
fn a_job_that_others_delete_again_and_again_is_made_ever_more_seldom() {
    let mut before = None;
    for seconds in [0, 0, 0, 1, 2, 4] {
        let Step::Settle(settlement) = ended_in_job(before).step() else {
            panic!("it is noted first")
        };
        waits(&settlement, seconds);
        before = match settlement {
            Settlement::Retry(retry) => Some(retry),
            _ => None,
        };
    }
    let last = before.expect("it is tried again");
    assert_eq!((last.class, last.count), (FailureClass::JobVanished, 6));
    assert_eq!(
        last.message,
        "the Job was deleted before it was done, and its image is still wanted"
    );
}

#[test]
fn a_job_that_was_ended_because_something_else_is_wanted_says_nothing() {
    type Change = fn(&mut Input);
    let changes: [Change; 3] = [
        |input| OTHER.clone_into(&mut input.wanted.key),
        |input| input.wanted.invalid = Some("it has no name".to_owned()),
        |input| input.wanted.deleting = Some(wall()),
    ];
    for change in changes {
        let step = ended_in_job(None).changed(change).step();
        assert_eq!(step, Step::Settle(Settlement::Nothing));
    }
}

fn build() -> Deed {
    Deed::Build {
        id: "x".to_owned(),
        attempt: 2,
    }
}

#[test]
fn a_built_image_that_the_cloud_does_not_take_is_built_ever_more_seldom() {
    for class in [FailureClass::Unavailable, FailureClass::Throttled, FailureClass::Busy] {
        let mut before = None;
        for minutes in [1, 2, 4, 8, 16, 30, 30] {
            let settlement = outcome(build(), Err(failure(class)), before);
            waits(&settlement, 60 * minutes);
            before = match settlement {
                Settlement::Retry(retry) => Some(retry),
                _ => None,
            };
        }
    }
    let asks = Failure {
        retry_after: Some(Duration::from_mins(50)),
        ..failure(FailureClass::Throttled)
    };
    waits(&outcome(build(), Err(asks), None), 3000);
}

#[test]
fn what_keeps_a_built_image_from_the_cloud_is_counted_whatever_it_is() {
    let before = retry(DeedName::Build, FailureClass::Unknown, 0).map(|before| Retry { count: 3, ..before });
    let after = |class| outcome(build(), Err(failure(class)), before.clone());
    waits(&after(FailureClass::Unavailable), 60 * 8);
    // What a machine does to a build says nothing of the cloud.
    waits(&after(FailureClass::BuildFailed { exit: 1 }), 60);
}

#[test]
fn a_build_is_tried_three_times() {
    let class = FailureClass::BuildFailed { exit: 1 };
    let build = build();
    let tried = |count| {
        let before = retry(DeedName::Build, class, 0).map(|before| Retry { count, ..before });
        outcome(build.clone(), Err(failure(class)), before)
    };
    waits(&tried(0), 60);
    waits(&tried(1), 240);
    halts(&tried(2), HaltReason::BuildFailed);
    // One that takes too long takes a machine's time each time.
    let late = FailureClass::Stopped {
        why: StopReason::Stalled,
    };
    waits(&outcome(build, Err(failure(late)), None), 60);
}

/// What follows after so many failures of this kind in a row.
fn settled(class: FailureClass, times: usize) -> Settlement {
    let mut settlement = failed(class, None);
    for _ in 1..times {
        let before = match settlement {
            Settlement::Retry(retry) => Some(retry),
            other => panic!("{other:?}"),
        };
        settlement = failed(class, before);
    }
    settlement
}

#[test]
fn what_moves_all_bytes_for_nothing_is_given_up_the_third_time() {
    for (class, reason) in [
        (FailureClass::OutOfMemory, HaltReason::OutOfMemory),
        (FailureClass::Sealing, HaltReason::SealNotKept),
    ] {
        waits_in_turn(class, &[60, 240]);
        assert_eq!(halts(&settled(class, 3), reason), "it did not work");
    }
}

#[test]
fn an_import_that_the_cloud_refuses_is_no_end() {
    let import = Deed::Import {
        id: "x".to_owned(),
        attempt: 2,
    };
    for class in [
        FailureClass::Unsupported,
        FailureClass::Invalid,
        FailureClass::Permission,
    ] {
        let refused = outcome(import.clone(), Err(failure(class)), None);
        assert_eq!(refused, Settlement::ImportRefused, "{class:?}");
    }
}

#[test]
fn a_failed_look_and_a_failed_amendment_are_not_written() {
    let amend = Deed::Amend { id: "x".to_owned() };
    for deed in [Deed::Look, amend] {
        for class in [
            FailureClass::Unavailable,
            FailureClass::Permission,
            FailureClass::Invalid,
        ] {
            assert_eq!(outcome(deed.clone(), Err(failure(class)), None), Settlement::Nothing);
        }
    }
}

#[test]
fn a_taken_id_burns_its_attempt() {
    let create = |attempt| Deed::Create { attempt, id: None };
    assert_eq!(
        outcome(create(2), Ok(Done::Taken), None),
        Settlement::Burned { attempt: 3 }
    );
    assert_eq!(outcome(create(1), Ok(Done::Taken), None), Settlement::Nothing);
}

#[test]
fn an_attempt_whose_earlier_job_does_not_go_is_burned() {
    let build = Deed::Build {
        id: "wanted-2".to_owned(),
        attempt: 2,
    };
    for deed in [transfer(2), build] {
        let burned = Settlement::Burned { attempt: 3 };
        assert_eq!(outcome(deed.clone(), Ok(Done::Taken), None), burned, "{deed:?}");
    }
    assert_eq!(outcome(transfer(1), Ok(Done::Taken), None), Settlement::Nothing);
}

#[test]
fn what_ended_for_another_content_or_a_deleted_object_says_nothing() {
    let mut op = ended(transfer(2), Err(failure(FailureClass::Invalid)));
    let deleted = input().changed(|input| {
        input.wanted.deleting = Some(wall());
        input.op = Some(op.clone());
    });
    OTHER.clone_into(&mut op.key);
    let edited = input().changed(|input| input.op = Some(op));
    for input in [deleted, edited] {
        assert_eq!(input.step(), Step::Settle(Settlement::Nothing));
    }
    let discard = Deed::Discard {
        id: "x".to_owned(),
        attempt: 1,
        why: DiscardReason::Deleted,
    };
    let in_use = Input::with(&[]).changed(|input| {
        input.wanted.deleting = Some(wall());
        input.op = Some(ended(discard, Err(failure(FailureClass::InUse))));
    });
    assert!(matches!(in_use.step(), Step::Settle(Settlement::Retry(_))));
}

#[test]
fn looks_wait_for_people_longer_than_for_clouds() {
    for (class, count, seconds) in [
        (FailureClass::Unavailable, 3, 4),
        (FailureClass::Credentials, 1, 240),
        (FailureClass::Permission, 1, 1800),
    ] {
        let delay = look_again(&failure(class), KEY, count);
        assert!(is_about(delay, seconds), "{class:?}: {delay:?}");
    }
}
