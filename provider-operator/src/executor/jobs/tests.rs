//! The desk of Jobs, told what drivers, the watch and the API server say. That all of it together brings an image, `every_call` shows.

use crds::providers::image_status::{SentVia, TransferStatus};
use planning::image::{Deed, Done, Failure, FailureClass, OpState, StopReason};

use super::desk::{Desk, Leaves, Target, without_right};
use super::known::{Known, Over, Stage};
use super::names;
use crate::objects::ObjectId;
use crate::stand_ins::{object, plan};
use std::time::Duration;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn known(object: &ObjectId, uid: &str, stage: Stage) -> Known {
    let deed = Deed::Transfer {
        id: "image-2".to_owned(),
        attempt: 2,
        staged: false,
    };
    Known {
        plan: plan(object, deed),
        name: names::job(object, 2),
        uid: uid.to_owned(),
        stage,
        is_noted: false,
    }
}

fn over() -> Stage {
    Stage::Over(Over {
        is_complete: true,
        reason: String::new(),
        message: String::new(),
    })
}

fn sent(bytes: i64, attempt: i64) -> TransferStatus {
    TransferStatus {
        attempt,
        via: SentVia::Upload,
        sent_bytes: bytes,
        total_bytes: Some(100),
        bytes_per_second: 0,
        seconds_left: None,
        last_progress_time: None,
        resumes: 0,
        started_at: None,
        holder: String::new(),
        summary: String::new(),
        sealed: None,
    }
}

fn state(desk: &mut Desk, object: &ObjectId, told: Option<&TransferStatus>, at: u64) -> Option<OpState> {
    desk.view(object, told, seconds(at)).map(|view| view.op.state)
}

#[test]
fn bytes_count_when_the_program_that_sends_them_runs() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    assert!(desk.begin(&known(&object, "one", Stage::Begins).plan, seconds(1)));
    assert_eq!(desk.made(&object, "one", seconds(2)), None);
    let running = |since, moved, bytes| {
        Some(OpState::Running {
            since: seconds(since),
            moved: seconds(moved),
            bytes,
        })
    };
    let stale = sent(70, 2);
    assert_eq!(
        state(&mut desk, &object, Some(&stale), 5),
        running(2, 2, None),
        "an earlier try sent them"
    );
    assert_eq!(
        desk.see(&known(&object, "one", Stage::Sends), seconds(9)),
        (true, false)
    );
    assert_eq!(state(&mut desk, &object, None, 9), running(2, 9, Some((0, None))));
    assert_eq!(
        state(&mut desk, &object, Some(&sent(10, 2)), 12),
        running(2, 12, Some((10, Some(100))))
    );
    assert_eq!(
        state(&mut desk, &object, Some(&sent(10, 2)), 30),
        running(2, 12, Some((10, Some(100))))
    );
    assert_eq!(
        state(&mut desk, &object, Some(&sent(20, 2)), 31),
        running(2, 31, Some((20, Some(100))))
    );
    assert_eq!(
        state(&mut desk, &object, Some(&sent(99, 1)), 32),
        running(2, 31, Some((0, None))),
        "another attempt"
    );
}

#[test]
fn a_job_that_is_there_when_the_process_begins_is_under_way() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    assert!(!desk.is_listed());
    desk.begin_list();
    assert_eq!(
        desk.see(&known(&object, "one", Stage::Begins), seconds(3)),
        (true, false)
    );
    let noted = Known {
        is_noted: true,
        ..known(&crate::stand_ins::object("fleet", "debian"), "two", over())
    };
    assert_eq!(desk.see(&noted, seconds(3)), (false, false), "its end is known");
    assert_eq!(desk.end_list(), Vec::<String>::new());
    assert!(desk.is_listed());
    let is_running = matches!(state(&mut desk, &object, None, 4), Some(OpState::Running { .. }));
    assert!(is_running && !desk.begin(&known(&object, "", Stage::Begins).plan, seconds(4)));
    // The next list does not have it.
    desk.begin_list();
    assert_eq!(desk.end_list(), ["one"]);
    assert_eq!(desk.gone("one", seconds(5)), Some(object.clone()));
    let Some(OpState::Ended {
        outcome: Err(failure), ..
    }) = state(&mut desk, &object, None, 6)
    else {
        panic!("it has ended")
    };
    assert_eq!(failure.class, FailureClass::JobVanished);
    assert_eq!(desk.forget(&object), Some(Leaves(None)), "nothing stays");
}

#[test]
fn an_end_is_asked_for_once_and_stays_until_it_is_noted() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    assert_eq!(desk.see(&known(&object, "one", over()), seconds(1)), (false, true));
    assert_eq!(desk.see(&known(&object, "one", over()), seconds(2)), (false, false));
    desk.over(&object, "another", Ok(Done::Sent), seconds(3));
    assert!(matches!(
        state(&mut desk, &object, None, 3),
        Some(OpState::Running { .. })
    ));
    desk.over(&object, "one", Ok(Done::Sent), seconds(4));
    let ended = OpState::Ended {
        outcome: Ok(Done::Sent),
        at: seconds(4),
    };
    assert_eq!(state(&mut desk, &object, None, 9), Some(ended));
    let stays = Target {
        name: names::job(&object, 2),
        uid: "one".to_owned(),
    };
    assert_eq!(desk.forget(&object), Some(Leaves(Some(stays))));
    assert_eq!(state(&mut desk, &object, None, 9), None);
    assert!(
        desk.begin(&known(&object, "", Stage::Begins).plan, seconds(10)),
        "there may be another one"
    );
}

#[test]
fn what_is_stopped_while_it_is_made_is_deleted_by_whoever_made_it() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    desk.begin(&known(&object, "one", Stage::Begins).plan, seconds(1));
    assert!(desk.is_wanted(&object));
    assert_eq!(desk.stop(&object, StopReason::Deleted, seconds(2)), None);
    assert!(!desk.is_wanted(&object));
    assert!(desk.made(&object, "one", seconds(3)).is_some());
    assert!(desk.is_stopping(&object, "one"));
    assert!(desk.end_stopped(&object, "one", seconds(4)) && !desk.end_stopped(&object, "one", seconds(5)));
    let Some(OpState::Ended {
        outcome: Err(failure), ..
    }) = state(&mut desk, &object, None, 6)
    else {
        panic!("it has ended")
    };
    let why = StopReason::Deleted;
    assert_eq!(failure.class, FailureClass::Stopped { why });
}

#[test]
fn a_job_that_goes_is_not_the_one_that_is_being_made() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    desk.begin(&known(&object, "", Stage::Begins).plan, seconds(1));
    for stage in [Stage::Goes, over()] {
        assert_eq!(desk.see(&known(&object, "old", stage), seconds(2)), (false, false));
    }
    assert_eq!(desk.gone("old", seconds(3)), None);
    desk.made(&object, "new", seconds(4));
    assert!(matches!(
        state(&mut desk, &object, None, 5),
        Some(OpState::Running { .. })
    ));
}

#[test]
fn a_job_that_does_not_go_is_waited_for_once_by_each_process() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    desk.begin_list();
    desk.see(&known(&object, "one", Stage::Begins), seconds(1));
    desk.end_list();
    desk.stop(&object, StopReason::Deleted, seconds(2));
    // Its node does not answer.
    assert!(desk.end_stopped(&object, "one", seconds(62)));
    desk.forget(&object);
    for second in [70, 80] {
        let news = desk.see(&known(&object, "one", Stage::Goes), seconds(second));
        assert_eq!(news, (false, false));
        assert_eq!(state(&mut desk, &object, None, second), None);
    }
    // The next process does not know how long the last one has waited.
    let mut next = Desk::default();
    next.begin_list();
    assert_eq!(next.see(&known(&object, "one", Stage::Goes), seconds(1)), (true, false));
    assert!(next.is_stopping(&object, "one"));
}

#[test]
fn a_right_that_is_missing_is_asked_for_again_and_is_not_what_a_quota_lacks() {
    let mut desk = Desk::default();
    desk.bar("full", "exceeded quota: two jobs".to_owned(), seconds(60));
    let why = desk.barred("full", seconds(10));
    assert_eq!(why.as_deref(), Some("exceeded quota: two jobs"));
    desk.bar("fleet", without_right("nobody may make jobs"), seconds(60));
    let why = desk.barred("fleet", seconds(10)).expect("words");
    assert!(why.contains("clusterstack-provider-operator-jobs"), "{why}");
    assert_eq!(desk.barred("other", seconds(10)), None);
    assert_eq!(desk.barred("fleet", seconds(61)), None);
    desk.bar_all("nobody may list jobs");
    assert!(desk.is_listed(), "nothing waits for a right");
    let why = desk.barred("fleet", seconds(9999)).expect("words");
    assert!(why.contains("clusterstack-provider-operator-sight-of-jobs"), "{why}");
    desk.begin_list();
    desk.end_list();
    assert_eq!(desk.barred("fleet", seconds(9999)), None);
}

#[test]
fn a_build_whose_image_does_not_move_is_told_as_built() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let of_build = |stage| {
        let mut known = known(&object, "one", stage);
        let id = "image-2".to_owned();
        known.plan.deed = Deed::Build { id, attempt: 2 };
        known
    };
    let class = |desk: &mut Desk| {
        desk.stop(&object, StopReason::Stalled, seconds(3));
        assert!(desk.end_stopped(&object, "one", seconds(4)));
        match state(desk, &object, None, 5) {
            Some(OpState::Ended {
                outcome: Err(failure), ..
            }) => failure.class,
            other => panic!("{other:?}"),
        }
    };
    desk.see(&of_build(Stage::Sends), seconds(1));
    assert_eq!(class(&mut desk), FailureClass::Unavailable);
    let mut other = Desk::default();
    other.see(&of_build(Stage::Begins), seconds(1));
    let why = StopReason::Stalled;
    assert_eq!(class(&mut other), FailureClass::Stopped { why });
}

#[test]
fn what_holds_a_job_up_is_told_while_it_is_so_and_when_it_is_ended_for_it() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    desk.see(&known(&object, "one", Stage::Begins), seconds(1));
    assert!(
        desk.look_after(&object, "one") && !desk.look_after(&object, "one"),
        "one looks"
    );
    let held = || Some("no node takes it".to_owned());
    assert!(desk.hold(&object, "one", held()) && !desk.hold(&object, "one", held()));
    assert_eq!(desk.held(&object), held());
    let mut other = Desk::default();
    other.see(&known(&object, "one", Stage::Begins), seconds(1));
    other.hold(&object, "one", held());
    desk.see(&known(&object, "one", Stage::Sends), seconds(2));
    assert_eq!(desk.held(&object), None, "it goes on");
    assert!(!desk.begins(&object, "one") && !desk.hold(&object, "one", held()));
    other.stop(&object, StopReason::Stalled, seconds(3));
    assert!(other.end_stopped(&object, "one", seconds(4)));
    let Some(OpState::Ended {
        outcome: Err(failure), ..
    }) = state(&mut other, &object, None, 5)
    else {
        panic!("it has ended")
    };
    assert!(failure.message.ends_with(": no node takes it"), "{}", failure.message);
}

fn of_attempt(object: &ObjectId, uid: &str, attempt: u32) -> Known {
    let mut known = known(object, uid, Stage::Begins);
    known.plan.deed = Deed::Transfer {
        id: format!("image-{attempt}"),
        attempt,
        staged: false,
    };
    known.name = names::job(object, attempt);
    known
}

fn is_running(desk: &mut Desk, object: &ObjectId) -> bool {
    matches!(state(desk, object, None, 99), Some(OpState::Running { .. }))
}

#[test]
fn a_job_that_was_taken_for_not_made_is_under_way_once_it_is_seen() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let job = of_attempt(&object, "one", 1);
    desk.begin(&job.plan, seconds(1));
    let lost = Failure::new(FailureClass::Unknown, "no answer");
    desk.fail(&object, Err(lost), seconds(2));
    assert!(!is_running(&mut desk, &object));
    assert_eq!(desk.see(&job, seconds(3)), (true, false));
    assert!(is_running(&mut desk, &object));
    assert_eq!(desk.forget(&object), None, "it has not ended");
    assert!(is_running(&mut desk, &object));
}

#[test]
fn a_job_that_the_watch_shows_before_its_making_fails_was_made() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let job = of_attempt(&object, "one", 1);
    let lost = || Err(Failure::new(FailureClass::Unknown, "no answer"));
    desk.begin(&job.plan, seconds(1));
    desk.see(&job, seconds(2));
    assert_eq!(desk.fail(&object, lost(), seconds(3)), None);
    assert!(is_running(&mut desk, &object) && !desk.is_free(&object));
    // Stopped before anybody knew that there is one.
    let mut other = Desk::default();
    other.begin(&job.plan, seconds(1));
    assert_eq!(other.stop(&object, StopReason::Changed, seconds(2)), None);
    other.see(&job, seconds(3));
    let target = Target {
        name: names::job(&object, 1),
        uid: "one".to_owned(),
    };
    assert_eq!(other.fail(&object, lost(), seconds(4)), Some(target));
    assert!(other.is_stopping(&object, "one"), "it has to go before");
}

#[test]
fn a_job_that_nobody_knew_of_is_found_when_the_one_after_it_is_noted() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let (first, mut second) = (of_attempt(&object, "one", 1), of_attempt(&object, "two", 2));
    desk.see(&second, seconds(1));
    second.stage = over();
    desk.see(&second, seconds(2));
    desk.over(&object, "two", Ok(Done::Sent), seconds(3));
    assert_eq!(desk.see(&first, seconds(4)), (false, false));
    assert!(matches!(desk.forget(&object), Some(Leaves(Some(_)))));
    assert_eq!(desk.see(&first, seconds(5)), (true, false));
    assert!(is_running(&mut desk, &object));
    second.is_noted = true;
    assert_eq!(desk.see(&second, seconds(6)), (false, false));
    assert_eq!(desk.gone("two", seconds(7)), None);
    assert!(is_running(&mut desk, &object), "the one before it is still there");
}

#[test]
fn a_job_of_an_earlier_attempt_is_left_over_and_a_later_one_never() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let [first, second, third] = [1_u32, 2, 3].map(|attempt| of_attempt(&object, &attempt.to_string(), attempt));
    assert!(!desk.is_left_over(&first), "it may be the one that is under way");
    desk.begin(&second.plan, seconds(1));
    assert!(desk.is_left_over(&first) && !desk.is_left_over(&second) && !desk.is_left_over(&third));
    desk.made(&object, "2", seconds(2));
    assert!(desk.is_left_over(&first) && !desk.is_left_over(&second) && !desk.is_left_over(&third));
    for stage in [Stage::Goes, over()] {
        let first = Known { stage, ..first.clone() };
        assert!(!desk.is_left_over(&first), "it ends without us");
    }
}

#[test]
fn a_build_whose_pod_was_driven_from_its_node_begins_anew() {
    let (mut desk, object) = (Desk::default(), object("fleet", "ubuntu"));
    let mut known = known(&object, "one", Stage::Begins);
    let id = "image-2".to_owned();
    known.plan.deed = Deed::Build { id, attempt: 2 };
    desk.see(&known, seconds(1));
    assert!(desk.look_after(&object, "one") && desk.looks_on(&object, "one"));
    known.stage = Stage::Sends;
    desk.see(&known, seconds(5));
    assert!(!desk.looks_on(&object, "one") && !desk.begin_anew(&object, "one", seconds(6)));
    known.stage = Stage::Begins;
    desk.see(&known, seconds(9));
    // It may be that its node does not answer, and that it still sends.
    let sends = |state: Option<OpState>| matches!(state, Some(OpState::Running { bytes: Some(_), .. }));
    assert!(sends(state(&mut desk, &object, None, 10)));
    assert!(desk.look_after(&object, "one"), "somebody looks again");
    assert!(desk.looks_on(&object, "one") && desk.begin_anew(&object, "one", seconds(20)));
    let begins = OpState::Running {
        since: seconds(20),
        moved: seconds(20),
        bytes: None,
    };
    assert_eq!(state(&mut desk, &object, None, 30), Some(begins));
    assert!(!desk.before(&object, "one").sends, "it is not built");
    known.stage = Stage::Sends;
    desk.see(&known, seconds(40));
    assert!(sends(state(&mut desk, &object, None, 41)));
}
