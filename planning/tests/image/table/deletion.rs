//! Rules D1 to D8: the object is being deleted.

use std::time::Duration;

use planning::image::{
    Cloud, CloudImage, Deed, DeedName, DeletionPolicy, DiscardReason, Done, FailureClass, Kept, RecordSeen,
    RecordState, Sight, Since, Step, StopReason, Unshown, Until, WaitReason,
};

use super::{
    Input, NOW, OTHER, before, earlier, failure, had, is_done, looked, record, retry, running, transfer, verified,
    waits_for,
};

/// Deleted so many seconds ago.
fn deleted(seconds: i64, records: &[RecordSeen]) -> Input {
    Input::with(records).changed(|input| {
        input.wanted.deleting = Some(earlier(seconds));
        had(input, 2);
    })
}

fn finish(left_behind: &[&str]) -> Step {
    Step::Finish {
        left_behind: left_behind.iter().map(|&id| id.to_owned()).collect(),
    }
}

fn discard(id: &str, attempt: u32) -> Deed {
    Deed::Discard {
        id: id.to_owned(),
        attempt,
        why: DiscardReason::Deleted,
    }
}

#[test]
fn d1_without_our_finalizer_nothing_is_ours() {
    let input = deleted(1, &[verified(2)]).changed(|input| input.wanted.finalizer = false);
    assert!(matches!(input.step(), Step::Rest { .. }));
}

#[test]
fn d2_what_makes_an_image_ends_at_once() {
    let input = deleted(1, &[]).changed(|input| input.op = running(transfer(2), 1));
    assert_eq!(input.step(), Step::Stop(StopReason::Deleted));
}

#[test]
fn d3_what_clears_away_is_waited_for() {
    let input = deleted(1, &[]).changed(|input| input.op = running(discard("wanted-2", 2), 1));
    waits_for(&input.step(), WaitReason::Working);
}

#[test]
fn d4_an_adopted_image_is_let_go_without_asking_the_cloud() {
    let input = deleted(1, &[]).changed(|input| {
        input.kept = Kept {
            image: input
                .kept
                .image
                .take()
                .map(|image| CloudImage { adopted: true, ..image }),
            ..Kept::default()
        };
        input.seen.cloud = Sight::Unseen;
    });
    assert_eq!(input.step(), finish(&[]));
}

#[test]
fn d5_the_cloud_is_looked_at_first() {
    let input = deleted(9000, &[]).changed(|input| input.seen.cloud = Sight::Unseen);
    is_done(&input.step(), &Deed::Look);
}

#[test]
fn d5_a_cloud_that_does_not_answer_for_an_hour_is_left_with_what_is_known() {
    let away = |seconds| {
        deleted(seconds, &[]).changed(|input| {
            input.seen.cloud = Sight::Failed {
                failure: failure(FailureClass::Unavailable),
                since: before(100),
                count: 9,
                next: NOW + Duration::from_secs(5),
            };
        })
    };
    assert!(matches!(
        waits_for(&away(3599).step(), WaitReason::CloudUnavailable).until,
        Until::At(Since::Wall(_))
    ));
    assert_eq!(away(3600).step(), finish(&["wanted-2"]));
    let secret = |seconds| deleted(seconds, &[]).changed(|input| input.wanted.identity = None);
    waits_for(&secret(3599).step(), WaitReason::Secret);
    assert_eq!(secret(3600).step(), finish(&["wanted-2"]));
}

#[test]
fn d6_a_retained_image_stays_without_our_marks_and_what_is_unfinished_goes() {
    let retained =
        |records: &[RecordSeen]| deleted(1, records).changed(|input| input.wanted.deletion = DeletionPolicy::Retain);
    let id = "wanted-2".to_owned();
    is_done(&retained(&[verified(2)]).step(), &Deed::Relinquish { id });
    is_done(
        &retained(&[record(2, RecordState::Whole)]).step(),
        &discard("wanted-2", 2),
    );
}

#[test]
fn d7_every_record_goes_the_highest_attempt_last() {
    let old = RecordSeen {
        id: "other-3".to_owned(),
        key: OTHER.to_owned(),
        ..verified(3)
    };
    let records = [old, verified(2), record(1, RecordState::Receiving)];
    is_done(&deleted(1, &records).step(), &discard("wanted-1", 1));
    is_done(&deleted(1, &records[..2]).step(), &discard("wanted-2", 2));
    is_done(&deleted(1, &records[..1]).step(), &discard("other-3", 3));
}

#[test]
fn d7_an_image_in_use_is_waited_for_unless_the_user_lets_it_go() {
    let in_use = |seconds| {
        deleted(seconds, &[verified(2)])
            .changed(|input| input.kept.retry = retry(DeedName::Discard, FailureClass::InUse, 600))
    };
    let until = waits_for(&in_use(9000).step(), WaitReason::InUse).until;
    assert!(matches!(until, Until::Again(_)), "{until:?}");
    let forced = |seconds| in_use(seconds).changed(|input| input.wanted.force_finalize = true);
    waits_for(&forced(3599).step(), WaitReason::InUse);
    assert_eq!(forced(3600).step(), finish(&["wanted-2"]));
}

#[test]
fn d7_a_cloud_that_lets_us_delete_nothing_is_left_after_an_hour() {
    let refused = |seconds| {
        deleted(seconds, &[verified(2)])
            .changed(|input| input.kept.retry = retry(DeedName::Discard, FailureClass::Permission, 600))
    };
    assert!(matches!(
        waits_for(&refused(3599).step(), WaitReason::Credentials).until,
        Until::At(Since::Wall(_))
    ));
    assert_eq!(refused(3600).step(), finish(&["wanted-2"]));
}

#[test]
fn d7_what_was_deleted_and_is_still_shown_is_let_be_ever_longer_and_holds_nothing_up_after_an_hour() {
    let shown = |since, times, seconds| {
        deleted(since, &[verified(2)]).changed(|input| {
            input.seen.unshown = Some(Unshown {
                deed: discard("wanted-2", 2),
                times,
                at: before(seconds),
            });
        })
    };
    is_done(&shown(1, 1, 3).step(), &discard("wanted-2", 2));
    let wait = waits_for(&shown(1, 9, 1).step(), WaitReason::Retry);
    assert!(matches!(wait.until, Until::At(Since::Wall(_))), "{wait:?}");
    assert!(wait.look.is_some_and(|look| look > NOW), "{wait:?}");
    assert_eq!(shown(3600, 9, 1).step(), finish(&["wanted-2"]));
    // The first time it is shown in a moment, and nothing has to be left.
    let wait = waits_for(&shown(3600, 1, 0).step(), WaitReason::Retry);
    assert!(
        matches!(wait.until, Until::Again(_)) && wait.look.is_some_and(|look| look > NOW),
        "{wait:?}"
    );
}

#[test]
fn what_was_done_is_let_be_until_a_look_has_shown_it() {
    let (made, gone) = (Deed::Create { attempt: 2, id: None }, discard("wanted-2", 2));
    let relinquished = Deed::Relinquish {
        id: "wanted-2".to_owned(),
    };
    let done = |before: Option<Unshown>, deed: &Deed, done| {
        let op = super::ended(deed.clone(), Ok(done));
        Unshown::after(before, &op, NOW)
    };
    let once = done(None, &gone, Done::Discarded).expect("it is to be shown");
    assert_eq!((once.times, once.at), (1, NOW));
    let looked = done(Some(once.clone()), &Deed::Look, Done::Looked);
    let twice = done(looked, &gone, Done::Discarded).expect("it is to be shown");
    assert_eq!(twice.times, 2);
    let other = done(Some(twice.clone()), &relinquished, Done::Relinquished).expect("it is to be shown");
    assert_eq!(other.times, 1);
    assert_eq!(done(Some(twice), &transfer(2), Done::Sent), None);
    assert_eq!(done(None, &made, Done::Taken), None);

    let cloud = |records: &[RecordSeen]| Cloud {
        records: records.to_vec(),
        others: Vec::new(),
    };
    let made = done(
        None,
        &made,
        Done::Created {
            id: "wanted-2".to_owned(),
        },
    )
    .expect("it is to be shown");
    for (unshown, there, away) in [(&made, false, true), (&once, true, false), (&other, true, false)] {
        let stays = |records: &[RecordSeen]| unshown.clone().unless_shown(&cloud(records)).is_some();
        assert_eq!((stays(&[verified(2)]), stays(&[])), (there, away), "{unshown:?}");
    }
    let going = record(2, RecordState::Going);
    assert_eq!(once.unless_shown(&cloud(&[going])), None);
}

#[test]
fn d7_what_another_installation_works_on_is_left_to_it_and_the_rest_goes() {
    let held = |record: RecordSeen| RecordSeen {
        held_elsewhere: true,
        ..record
    };
    for policy in [DeletionPolicy::Delete, DeletionPolicy::Retain] {
        let step = |seconds, records: &[RecordSeen]| {
            deleted(seconds, records)
                .changed(|input| input.wanted.deletion = policy)
                .step()
        };
        assert_eq!(step(1, &[held(verified(2))]), finish(&["wanted-2"]), "{policy:?}");
        let ours = record(3, RecordState::Whole);
        is_done(&step(1, &[held(verified(2)), ours.clone()]), &discard("wanted-3", 3));
        let refused = deleted(3600, &[held(verified(2)), ours]).changed(|input| {
            input.wanted.deletion = policy;
            input.kept.retry = retry(DeedName::Discard, FailureClass::Permission, 600);
        });
        assert_eq!(refused.step(), finish(&["wanted-3", "wanted-2"]), "{policy:?}");
        // Who marks what the cloud is deleting?
        let going = held(record(2, RecordState::Going));
        waits_for(&step(1, &[going]), WaitReason::Going);
    }
}

#[test]
fn d8_the_object_goes_when_a_look_shows_nothing() {
    assert_eq!(deleted(1, &[]).step(), finish(&[]));
    let lingers = RecordSeen {
        first_seen: before(301),
        ..record(2, RecordState::Going)
    };
    assert_eq!(deleted(1, &[lingers]).step(), finish(&[]));
    let going = record(2, RecordState::Going);
    waits_for(&deleted(1, &[going]).step(), WaitReason::Going);
}

#[test]
fn what_clusterctl_moved_is_neither_claimed_nor_deleted_in_the_cloud() {
    let moved = |seconds: Option<i64>| {
        Input::with(&[verified(2)]).changed(|input| {
            input.wanted.moved = true;
            // It takes all other annotations away, and then the finalizers.
            (input.wanted.owner_noted, input.wanted.finalizer) = (false, false);
            input.wanted.deleting = seconds.map(earlier);
            // However long ago the cloud was seen, it is not asked again.
            input.seen.cloud = looked(Cloud::default(), before(60));
            had(input, 2);
        })
    };
    waits_for(&moved(None).step(), WaitReason::Moved);
    waits_for(&moved(Some(1)).step(), WaitReason::Moved);
    let claimed = moved(Some(1)).changed(|input| input.wanted.finalizer = true);
    assert_eq!(claimed.step(), finish(&[]), "an earlier version of ours claimed it");
    let sends = moved(None).changed(|input| input.op = running(transfer(2), 1));
    assert_eq!(sends.step(), Step::Stop(StopReason::Deleted));
}

#[test]
fn d5_without_a_spec_that_can_be_read_nobody_can_tell_where_to_delete() {
    let unreadable = |seconds| {
        deleted(seconds, &[]).changed(|input| {
            input.wanted.identity = None;
            input.wanted.invalid = Some("spec cannot be read: it has no image".to_owned());
        })
    };
    let wait = waits_for(&unreadable(3599).step(), WaitReason::Secret);
    assert!(
        wait.message.contains("nobody can tell in which cloud"),
        "{}",
        wait.message
    );
    assert_eq!(unreadable(3600).step(), finish(&["wanted-2"]));
}
