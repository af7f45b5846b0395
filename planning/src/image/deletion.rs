//! What is done before an object may go: nothing of it stays in the cloud, unless its user says so or nobody answers for too long.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::case::{Case, in_process, until_shown};
use super::decide::{LOOK_READY, is_active, under_way, waiting};
use super::failure::FailureClass;
use super::op::{Deed, DeedName, DiscardReason, StopReason};
use super::records::{lingers, until_gone};
use super::retry::RACES;
use super::seen::{Cloud, RecordSeen, RecordState, Sight};
use super::step::Step;
use super::wait::{Awaited, Since, Until, Wait, WaitReason};
use super::wanted::{DeletionPolicy, Wanted};
use super::wording::{MOVED, SECRET_MISSING_FOR_DELETION, UNREADABLE_FOR_DELETION};

/// How long a cloud may take to delete a record before nobody waits for it.
pub const GOING: Duration = Duration::from_mins(5);

/// The same object is in another management cluster, and the image is that one's: nothing is made, claimed or deleted here, and the object may go.
pub(super) fn moved(case: &Case<'_>) -> Option<Step> {
    if !case.wanted.moved {
        return None;
    }
    Some(match case.op {
        Some(op) if is_active(op) => Step::Stop(StopReason::Deleted),
        _ if case.wanted.deleting.is_some() && case.wanted.finalizer => Step::Finish {
            left_behind: Vec::new(),
        },
        _ => waiting(case, WaitReason::Moved, Awaited::Deletion, MOVED),
    })
}

/// `None` when the object is not being deleted.
pub(super) fn ladder(case: &Case<'_>) -> Option<Step> {
    let since = case.wanted.deleting?;
    if !case.wanted.finalizer {
        let look = case.now.steady + LOOK_READY;
        return Some(Step::Rest { look });
    }
    Some(
        stopped(case)
            .or_else(|| under_way(case))
            .or_else(|| never_made(case))
            .unwrap_or_else(|| in_cloud(case, since)),
    )
}

/// Nothing that makes an image goes on.
fn stopped(case: &Case<'_>) -> Option<Step> {
    let op = case.op?;
    let clears = matches!(
        op.deed.name(),
        DeedName::Look | DeedName::Discard | DeedName::Relinquish
    );
    (is_active(op) && !clears).then_some(Step::Stop(StopReason::Deleted))
}

/// Somebody else's image was used, and none was ever begun: whoever cannot make any need not be asked.
fn never_made(case: &Case<'_>) -> Option<Step> {
    let adopted = case.kept.image.as_ref().is_some_and(|image| image.adopted);
    let nothing = Vec::new();
    (case.wanted.made_by_others || adopted && case.kept.attempt == 0).then_some(Step::Finish { left_behind: nothing })
}

fn in_cloud(case: &Case<'_>, since: Timestamp) -> Step {
    let deadline = SignedDuration::try_from(case.seen.force_after)
        .ok()
        .and_then(|patience| since.checked_add(patience).ok())
        .unwrap_or(Timestamp::MAX);
    let is_late = case.now.wall >= deadline;
    if case.wanted.identity.is_none() {
        let wait = Wait {
            reason: WaitReason::Secret,
            since: Since::Wall(since),
            until: Until::At(Since::Wall(deadline)),
            look: Some(case.steady_of(deadline)),
            message: without_secret(case.wanted).to_owned(),
        };
        return given_up_or(is_late, case, Step::Await(wait));
    }
    match case.cloud() {
        Ok((cloud, at)) => cleared(case, cloud, at, deadline, is_late),
        Err(Step::Await(wait)) => {
            let look = wait.look.map(|look| look.min(case.steady_of(deadline)));
            let wait = Wait {
                until: Until::At(Since::Wall(deadline)),
                look,
                ..wait
            };
            given_up_or(is_late, case, Step::Await(wait))
        }
        // One look at least is made, however late it is.
        Err(look) => given_up_or(is_late && matches!(case.seen.cloud, Sight::Failed { .. }), case, look),
    }
}

/// What is missing, if the cloud cannot be asked.
const fn without_secret(wanted: &Wanted) -> &'static str {
    if wanted.invalid.is_some() {
        UNREADABLE_FOR_DELETION
    } else {
        SECRET_MISSING_FOR_DELETION
    }
}

/// The cloud does not answer: what status knows of is named.
fn given_up_or(is_late: bool, case: &Case<'_>, step: Step) -> Step {
    if !is_late {
        return step;
    }
    let image = case.kept.image.as_ref().filter(|image| !image.adopted);
    let ids = image.map(|image| image.id.clone()).into_iter();
    let mut left_behind: Vec<String> = ids.chain(case.kept.publishing.clone()).collect();
    left_behind.dedup();
    Step::Finish { left_behind }
}

/// Another installation works on it, whose object it is as well: that one decides about it. What the cloud deletes is nobody's any more.
pub(super) fn is_held_elsewhere(record: &RecordSeen) -> bool {
    record.held_elsewhere && record.state != RecordState::Going
}

fn cleared(case: &Case<'_>, cloud: &Cloud, at: Duration, deadline: Timestamp, is_late: bool) -> Step {
    let records = cloud.records.iter();
    let (elsewhere, mut left): (Vec<_>, Vec<_>) = records
        .filter(|record| !lingers(case, record))
        .partition(|record| is_held_elsewhere(record));
    left.sort_by_key(|record| (record.state == RecordState::Going, record.attempt));
    let finish = || Step::Finish {
        left_behind: left.iter().chain(&elsewhere).map(|record| record.id.clone()).collect(),
    };
    let Some(record) = left.first() else {
        return finish();
    };
    if record.state == RecordState::Going {
        return until_gone(record, at);
    }
    if let Some(retry) = case.tidying_rests() {
        let may_go = retry.class != FailureClass::InUse || case.wanted.force_finalize;
        return match case.until_retry(retry) {
            _ if may_go && is_late => finish(),
            Step::Await(wait) if may_go => Step::Await(Wait {
                until: Until::At(Since::Wall(deadline)),
                look: wait.look.map(|look| look.min(case.steady_of(deadline))),
                ..wait
            }),
            step => step,
        };
    }
    if let Some((unshown, again)) = case.tidying_unshown() {
        return match until_shown(unshown, again) {
            // What was done for the first time is seen in a moment.
            _ if is_late && unshown.times > RACES => finish(),
            Step::Await(wait) if !is_late => Step::Await(Wait {
                until: Until::At(Since::Wall(deadline)),
                look: wait.look.map(|look| look.min(case.steady_of(deadline))),
                ..wait
            }),
            step => step,
        };
    }
    let is_finished = matches!(record.state, RecordState::Whole | RecordState::Withdrawn) && record.verified.is_some();
    in_process(if case.wanted.deletion == DeletionPolicy::Retain && is_finished {
        Deed::Relinquish { id: record.id.clone() }
    } else {
        Deed::Discard {
            id: record.id.clone(),
            attempt: record.attempt,
            why: DiscardReason::Deleted,
        }
    })
}
