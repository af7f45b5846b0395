//! Rules 1 to 19: the object, what is under way, and what holds everything up.

use std::time::Duration;

use planning::image::{AttemptReason, Awaited, DeedName, DiscardReason, RecordSeen, RecordState};
use planning::image::{
    Deed, FailureClass, Form, HaltReason, Halted, Intent, JobsSight, Op, OpState, SENDING_RESTS, Settlement, Sight,
    Step, StopReason, Unshown, Until, WaitReason,
};

use super::{
    Input, KEY, NOW, OTHER, before, ended, failure, holds_for, input, is_done, op, record, retry, running, transfer,
    verified, waits_for, writes_attempt,
};

fn halted() -> Option<Halted> {
    Some(Halted {
        reason: HaltReason::Refused,
        message: "it takes no such image".to_owned(),
        key: KEY.to_owned(),
        generation: 1,
        identity: Some("secret/1".to_owned()),
        request: None,
    })
}

#[test]
fn r01_what_is_under_way_ends_when_it_is_paused() {
    let input = input().changed(|input| {
        input.wanted.paused = true;
        input.op = running(transfer(2), 1);
    });
    assert_eq!(input.step(), Step::Stop(StopReason::Paused));
}

#[test]
fn r02_nothing_begins_while_it_is_paused() {
    let input = input().changed(|input| input.wanted.paused = true);
    waits_for(&input.step(), WaitReason::Paused);
}

#[test]
fn r03_what_has_ended_is_noted_first() {
    let input = input().changed(|input| {
        input.wanted.finalizer = false;
        input.op = Some(ended(transfer(2), Err(failure(FailureClass::Unavailable))));
    });
    assert!(matches!(input.step(), Step::Settle(Settlement::Retry(_))));
}

#[test]
fn r04_what_is_told_to_end_is_waited_for_five_seconds() {
    let input = input().changed(|input| {
        let why = StopReason::Changed;
        input.op = Some(op(transfer(2), OpState::Stopping { since: NOW, why }));
    });
    assert!(matches!(
        waits_for(&input.step(), WaitReason::Stopping).until,
        Until::At(_)
    ));
    let job = input.changed(|input| input.op = input.op.take().map(in_job));
    let wait = waits_for(&job.step(), WaitReason::Stopping);
    assert_eq!(wait.until, Until::Told(Awaited::Job), "its node says when it is over");
    assert!(wait.look.is_some_and(|look| look > NOW));
}

#[test]
fn r06_the_object_is_claimed_before_anything_is_done() {
    for (finalizer, owner_noted) in [(false, true), (true, false)] {
        let input = input().changed(|input| {
            (input.wanted.finalizer, input.wanted.owner_noted) = (finalizer, owner_noted);
            input.seen.cloud = Sight::Unseen;
        });
        assert_eq!(input.step(), Step::Claim);
    }
}

#[test]
fn r07_a_spec_without_sense_is_held_and_what_is_under_way_ends() {
    let input = input().changed(|input| input.wanted.invalid = Some("it has no name".to_owned()));
    holds_for(&input.step(), HaltReason::InvalidSpec);
    let input = input.changed(|input| input.op = running(transfer(2), 1));
    assert_eq!(input.step(), Step::Stop(StopReason::Changed));
}

#[test]
fn r08_what_is_under_way_for_another_content_ends_unless_it_clears_away() {
    let with = |deed| {
        input().changed(|input| {
            input.op = running(deed, 1).map(|op| Op {
                key: OTHER.to_owned(),
                ..op
            });
        })
    };
    assert_eq!(with(transfer(2)).step(), Step::Stop(StopReason::Changed));
    let discard = Deed::Discard {
        id: "x".to_owned(),
        attempt: 1,
        why: DiscardReason::LowerAttempt,
    };
    waits_for(&with(discard).step(), WaitReason::Working);
}

#[test]
fn r09_a_line_is_told_with_how_many_are_before() {
    let input = input().changed(|input| {
        let since = before(5);
        input.op = Some(op(transfer(2), OpState::Queued { since, ahead: 3 }));
    });
    let wait = waits_for(&input.step(), WaitReason::Queued);
    assert_eq!(wait.message, "3 others are before it in line");
}

#[test]
fn r10_a_transfer_that_does_not_move_is_stopped() {
    let after = |seconds| input().changed(|input| input.op = running(transfer(2), seconds)).step();
    let rests = SENDING_RESTS.as_secs();
    waits_for(&after(rests), WaitReason::Transferring);
    assert_eq!(after(rests + 1), Step::Stop(StopReason::Stalled));
}

#[test]
fn r10_what_was_sent_as_a_whole_has_the_time_that_its_size_takes_to_be_stored() {
    let after = |seconds, sent, total| {
        let moved = before(seconds);
        let state = OpState::Running {
            since: moved,
            moved,
            bytes: Some((sent, total)),
        };
        input().changed(|input| input.op = Some(op(transfer(2), state))).step()
    };
    waits_for(&after(20 * 60, 100, Some(100)), WaitReason::Transferring);
    waits_for(&after(25 * 60, 1 << 31, Some(1 << 31)), WaitReason::Transferring);
    assert_eq!(after(25 * 60, 100, Some(100)), Step::Stop(StopReason::Stalled));
    for (sent, total) in [(99, Some(100)), (100, None)] {
        assert_eq!(
            after(20 * 60, sent, total),
            Step::Stop(StopReason::Stalled),
            "{sent} of {total:?}"
        );
    }
}

#[test]
fn an_edited_spec_is_tried_at_once() {
    let input = input().changed(|input| {
        input.kept.attempt = 0;
        input.kept.key = None;
        input.kept.retry = retry(DeedName::Probe, FailureClass::SourceGone, 60);
    });
    waits_for(&input.step(), WaitReason::Source);
    let edited = input.changed(|input| input.wanted.generation = 2);
    assert!(
        matches!(edited.step(), Step::Record(Intent::Attempt { number: 1, .. })),
        "{:?}",
        edited.step()
    );
}

fn build() -> Deed {
    Deed::Build {
        id: "x".to_owned(),
        attempt: 2,
    }
}

fn in_job(op: Op) -> Op {
    Op { form: Form::Job, ..op }
}

/// A Job that began so long ago, of which bytes moved so long ago.
fn job(deed: Deed, seconds: u64, moved: Option<u64>) -> Option<Op> {
    let state = OpState::Running {
        since: before(seconds),
        moved: before(moved.unwrap_or(seconds)),
        bytes: moved.map(|_| (7, None)),
    };
    Some(in_job(op(deed, state)))
}

#[test]
fn r10_a_build_is_stopped_by_its_own_deadline_and_the_time_that_a_node_may_take() {
    let after = |minutes: u64| {
        input().changed(|input| {
            input.wanted.build = Some(Duration::from_mins(30));
            input.op = job(build(), minutes * 60, None);
        })
    };
    waits_for(&after(45).step(), WaitReason::Building);
    assert_eq!(after(46).step(), Step::Stop(StopReason::Stalled));
}

#[test]
fn r10_what_was_built_has_to_move_like_everything_that_is_sent() {
    let moved = |seconds| {
        input().changed(|input| {
            input.wanted.build = Some(Duration::from_mins(30));
            input.op = job(build(), 9000, Some(seconds));
        })
    };
    let rests = SENDING_RESTS.as_secs();
    waits_for(&moved(rests).step(), WaitReason::Transferring);
    assert_eq!(moved(rests + 1).step(), Step::Stop(StopReason::Stalled));
}

#[test]
fn r10_a_job_may_take_a_while_to_begin() {
    let after = |seconds, moved| {
        input()
            .changed(|input| input.op = job(transfer(2), seconds, moved))
            .step()
    };
    waits_for(&after(900, None), WaitReason::Transferring);
    assert_eq!(after(901, None), Step::Stop(StopReason::Stalled));
    assert_eq!(
        after(901, Some(SENDING_RESTS.as_secs() + 1)),
        Step::Stop(StopReason::Stalled)
    );
}

#[test]
fn r10_what_holds_a_job_up_is_told_until_it_begins() {
    let why = "no node takes it".to_owned();
    let input = input().changed(|input| {
        input.seen.jobs = JobsSight::Held { why: why.clone() };
        input.op = job(build(), 1, None);
    });
    let wait = waits_for(&input.step(), WaitReason::Building).clone();
    assert_eq!(wait.message, format!("its Job does not go on: {why}"));
    let input = input.changed(|input| input.op = job(build(), 1, Some(1)));
    let wait = waits_for(&input.step(), WaitReason::Transferring).clone();
    assert!(!wait.message.contains(&why), "{}", wait.message);
}

#[test]
fn r11_an_answer_is_waited_for_a_minute() {
    let after = |seconds| input().changed(|input| input.op = running(Deed::Look, seconds)).step();
    waits_for(&after(60), WaitReason::Working);
    assert_eq!(after(61), Step::Stop(StopReason::Stalled));
}

#[test]
fn r12_what_moves_is_waited_for() {
    let input = input().changed(|input| input.op = running(transfer(2), 5));
    assert!(matches!(
        waits_for(&input.step(), WaitReason::Transferring).until,
        Until::At(_)
    ));
}

#[test]
fn r13_another_content_is_written_before_anything_is_done_for_it() {
    let input = input().changed(|input| input.kept.key = Some(OTHER.to_owned()));
    assert_eq!(input.step(), Step::Record(Intent::Forget));
}

#[test]
fn r14_who_is_halted_stands_still_without_looking_again() {
    let input = input().changed(|input| {
        input.kept.halted = halted();
        input.seen.cloud = super::looked(planning::image::Cloud::default(), before(9000));
    });
    holds_for(&input.step(), HaltReason::Refused);
}

#[test]
fn r14_who_is_halted_clears_away_first() {
    let spoilt = Input::with(&[record(2, RecordState::Spoilt)]).changed(|input| input.kept.halted = halted());
    writes_attempt(&spoilt.step(), 3, AttemptReason::Spoilt);
    let lower = spoilt.changed(|input| input.kept.attempt = 3);
    let deed = Deed::Discard {
        id: "wanted-2".to_owned(),
        attempt: 2,
        why: DiscardReason::LowerAttempt,
    };
    is_done(&lower.step(), &deed);
}

/// Halted after the second attempt, with what is left in the cloud.
fn halted_with(remains: &[RecordSeen]) -> Input {
    Input::with(remains).changed(|input| {
        input.kept.halted = halted();
        input.kept.attempt = 3;
    })
}

fn discards_the_second() -> Deed {
    Deed::Discard {
        id: "wanted-2".to_owned(),
        attempt: 2,
        why: DiscardReason::LowerAttempt,
    }
}

/// When it is looked again at what is halted.
#[track_caller]
fn looks_again(step: &Step) -> Option<Duration> {
    match step {
        Step::Hold(halt) if halt.reason == HaltReason::Refused => halt.look,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r14_what_could_not_be_cleared_away_of_a_halted_object_is_in_its_time() {
    let failed = |seconds| {
        halted_with(&[record(2, RecordState::Spoilt)])
            .changed(|input| input.kept.retry = retry(DeedName::Discard, FailureClass::InUse, seconds))
    };
    assert_eq!(looks_again(&failed(30).step()), Some(NOW + Duration::from_secs(30)));
    is_done(&failed(0).step(), &discards_the_second());
}

#[test]
fn r14_what_was_cleared_away_of_a_halted_object_and_is_still_shown_is_again_in_its_time() {
    let cleared = |seconds| {
        halted_with(&[record(2, RecordState::Spoilt)]).changed(|input| {
            input.seen.unshown = Some(Unshown {
                deed: discards_the_second(),
                times: 1,
                at: before(seconds),
            });
        })
    };
    let look = looks_again(&cleared(0).step());
    assert!(
        look.is_some_and(|look| look > NOW && look <= NOW + Duration::from_secs(2)),
        "{look:?}"
    );
    is_done(&cleared(3).step(), &discards_the_second());
}

#[test]
fn r14_nothing_of_a_halted_object_stays_because_the_cloud_still_deletes_something_else() {
    let first_goes = |second| halted_with(&[record(1, RecordState::Going), record(2, second)]).step();
    is_done(&first_goes(RecordState::Spoilt), &discards_the_second());
    assert_eq!(looks_again(&first_goes(RecordState::Going)), None);
}

#[test]
fn r14_a_halt_ends_with_an_edit_another_secret_or_a_request() {
    type Change = fn(&mut Input);
    let changes: [Change; 3] = [
        |input| input.wanted.generation = 2,
        |input| input.wanted.identity = Some("secret/2".to_owned()),
        |input| input.wanted.request = Some("now".to_owned()),
    ];
    for change in changes {
        let input = input().changed(|input| input.kept.halted = halted()).changed(change);
        assert_eq!(input.step(), Step::Record(Intent::Anew));
    }
}

#[test]
fn r14_an_image_that_is_there_after_all_ends_a_halt() {
    let input = Input::with(&[verified(2)]).changed(|input| input.kept.halted = halted());
    assert!(matches!(input.step(), Step::Record(Intent::Image { .. })));
}

#[test]
fn r15_nothing_is_asked_of_a_cloud_without_the_secret() {
    let input = input().changed(|input| input.wanted.identity = None);
    waits_for(&input.step(), WaitReason::Secret);
}

#[test]
fn r16_a_retry_is_waited_for_unless_somebody_asks_or_the_secret_is_another() {
    let input = input().changed(|input| input.kept.retry = retry(DeedName::Create, FailureClass::Quota, 30));
    waits_for(&input.step(), WaitReason::Quota);
    let asked = input
        .clone()
        .changed(|input| input.wanted.request = Some("now".to_owned()));
    assert!(matches!(asked.step(), Step::Do { .. }));
    let rotated = input.changed(|input| input.wanted.identity = Some("secret/2".to_owned()));
    assert!(matches!(rotated.step(), Step::Do { .. }));
}

#[test]
fn r16_a_retry_of_a_clock_that_was_set_back_holds_nothing_up() {
    let input = input().changed(|input| input.kept.retry = retry(DeedName::Create, FailureClass::Quota, 9000));
    assert!(matches!(input.step(), Step::Do { .. }));
}

#[test]
fn r17_nothing_is_done_without_a_look_that_is_fresh_and_young() {
    is_done(
        &input().changed(|input| input.seen.cloud = Sight::Unseen).step(),
        &Deed::Look,
    );
    let stale = input().changed(|input| {
        input.seen.cloud = Sight::Seen {
            value: planning::image::Cloud::default(),
            at: before(1),
            fresh: false,
        };
    });
    is_done(&stale.step(), &Deed::Look);
    let old = input().changed(|input| {
        input.seen.cloud = super::looked(planning::image::Cloud::default(), before(31));
    });
    is_done(&old.step(), &Deed::Look);
}

#[test]
fn r18_a_cloud_that_does_not_answer_is_left_alone_for_a_while() {
    let failed = |class, next| Sight::Failed {
        failure: failure(class),
        since: before(100),
        count: 3,
        next,
    };
    for (class, reason) in [
        (FailureClass::Unavailable, WaitReason::CloudUnavailable),
        (FailureClass::Credentials, WaitReason::Credentials),
        (FailureClass::Throttled, WaitReason::Throttled),
    ] {
        let next = NOW + Duration::from_secs(5);
        let input = input().changed(|input| input.seen.cloud = failed(class, next));
        assert_eq!(waits_for(&input.step(), reason).look, Some(next));
    }
}

#[test]
fn r19_a_cloud_that_did_not_answer_is_asked_again_in_its_time() {
    let input = input().changed(|input| {
        input.seen.cloud = Sight::Failed {
            failure: failure(FailureClass::Unavailable),
            since: before(100),
            count: 3,
            next: NOW,
        };
    });
    is_done(&input.step(), &Deed::Look);
}
