//! The ladder: the first rule that fits decides. What concerns the object comes before what is under way, and that before what the cloud has.

use std::time::Duration;

use super::absent;
use super::case::{Case, hold, look};
use super::deletion;
use super::kept::Kept;
use super::op::{DeedName, Form, Op, OpState, StopReason};
use super::records::{self, cloud_takes};
use super::retry::settle;
use super::seen::{Seen, Sight};
use super::spread::spread;
use super::step::{HaltReason, Intent, Step};
use super::wait::{Awaited, Since, Until, Wait, WaitReason};
use super::wanted::{Now, Wanted};
use super::wording::{BUILDING, SECRET_MISSING, SENDING, in_line};

/// How long the cloud is left alone at least where nothing has to be done there, or people must do it: see [`look_ready`].
pub const LOOK_READY: Duration = Duration::from_mins(10);
/// How much longer at most, so that not all are looked at at once.
const LOOK_SPREAD: Duration = Duration::from_mins(2);
/// How old a look may be on which something is done.
pub const LOOK_WAITING: Duration = Duration::from_secs(30);
/// How long one answer of a cloud may take.
pub const SHORT_DEED: Duration = Duration::from_mins(1);
/// How long what is told to end may take to; whoever runs it ends it by force then.
pub const STOPPING: Duration = Duration::from_secs(5);
/// How long the same options are left alone that could not be brought in line.
pub const AMEND_AGAIN: Duration = Duration::from_mins(10);
/// How long nothing may move of what is sent, whosoever's turn it is: longer than whoever sends it waits for the source or the cloud.
pub const SENDING_RESTS: Duration = Duration::from_mins(5);
/// How long a Job may take to find a node, whose images it has to fetch. After that nobody expects that it begins at all.
const JOB_BEGINS: Duration = Duration::from_mins(15);
/// How often one looks whether a Job that was told to end is gone: it is when its program and its node say so.
const JOB_ENDS: Duration = Duration::from_secs(5);

/// How long an image is left alone that is as wanted, or that others' images stand in the way of: ten minutes, and by its key up to two more.
pub fn look_ready(key: &str) -> Duration {
    LOOK_READY + spread(key, 0, LOOK_SPREAD)
}

/// What is done next. Total: every input has an answer, and the same input the same one.
pub fn decide(wanted: &Wanted, kept: &Kept, seen: &Seen, op: Option<&Op>, now: Now) -> Step {
    let case = Case {
        wanted,
        kept,
        seen,
        op,
        now,
    };
    let step = paused(&case)
        .or_else(|| ended(&case))
        .or_else(|| deletion::moved(&case))
        .or_else(|| deletion::ladder(&case))
        .or_else(|| unclaimed(&case))
        .or_else(|| invalid(&case))
        .or_else(|| of_another_content(&case))
        .or_else(|| under_way(&case))
        .or_else(|| forgotten(&case))
        .or_else(|| halted(&case))
        .or_else(|| without_secret(&case))
        .or_else(|| resting(&case))
        .unwrap_or_else(|| in_cloud(&case));
    renewed(&case, step)
}

pub(super) fn is_active(op: &Op) -> bool {
    matches!(op.state, OpState::Queued { .. } | OpState::Running { .. })
}

fn paused(case: &Case<'_>) -> Option<Step> {
    if !case.wanted.paused {
        return None;
    }
    if case.op.is_some_and(is_active) {
        return Some(Step::Stop(StopReason::Paused));
    }
    let message = "the work on it is paused";
    Some(waiting(case, WaitReason::Paused, Awaited::Edit, message))
}

/// What is over is noted, and what is about to be is waited for.
fn ended(case: &Case<'_>) -> Option<Step> {
    let op = case.op?;
    match &op.state {
        OpState::Ended { outcome, .. } => {
            let settlement = settle(op, outcome, case.wanted, case.kept, case.now);
            Some(Step::Settle(settlement))
        }
        OpState::Stopping { since, .. } => {
            let (until, look) = match op.form {
                Form::InProcess => (Until::At(Since::Steady(*since + STOPPING)), None),
                Form::Job => (Until::Told(Awaited::Job), Some(case.now.steady + JOB_ENDS)),
            };
            Some(Step::Await(Wait {
                reason: WaitReason::Stopping,
                since: Since::Steady(*since),
                until,
                look,
                message: "what is under way is told to end".to_owned(),
            }))
        }
        OpState::Queued { .. } | OpState::Running { .. } => None,
    }
}

fn unclaimed(case: &Case<'_>) -> Option<Step> {
    let is_ours = case.wanted.finalizer && case.wanted.owner_noted;
    (!is_ours).then_some(Step::Claim)
}

fn invalid(case: &Case<'_>) -> Option<Step> {
    let message = case.wanted.invalid.as_ref()?;
    Some(match case.op {
        Some(op) if is_active(op) => Step::Stop(StopReason::Changed),
        _ => hold(HaltReason::InvalidSpec, message, None),
    })
}

fn of_another_content(case: &Case<'_>) -> Option<Step> {
    let op = case.op.filter(|op| is_active(op) && op.key != case.wanted.key)?;
    let clears = matches!(op.deed.name(), DeedName::Discard | DeedName::Relinquish);
    (!clears).then_some(Step::Stop(StopReason::Changed))
}

/// What is under way is waited for as long as it moves.
pub(super) fn under_way(case: &Case<'_>) -> Option<Step> {
    let op = case.op?;
    match op.state {
        OpState::Queued { since, ahead } => Some(Step::Await(Wait {
            reason: WaitReason::Queued,
            since: Since::Steady(since),
            // Whoever runs it wakes the driver.
            until: Until::Told(Awaited::Turn),
            look: None,
            message: in_line(ahead),
        })),
        OpState::Running { since, moved, bytes } => {
            let has_begun = op.form == Form::InProcess || bytes.is_some();
            Some(running(case, op.deed.name(), since, moved, has_begun))
        }
        OpState::Stopping { .. } | OpState::Ended { .. } => None,
    }
}

/// `has_begun`: whether bytes of the image can be expected to move. In a Job they cannot before it has a node, and its image is built.
fn running(case: &Case<'_>, deed: DeedName, since: Duration, moved: Duration, has_begun: bool) -> Step {
    let deadline = match deed {
        DeedName::Build if !has_begun => since + JOB_BEGINS + case.wanted.build.unwrap_or_default(),
        DeedName::Transfer if !has_begun => since + JOB_BEGINS,
        DeedName::Build | DeedName::Transfer => moved + sent_patience(case),
        deed if deed.is_long() => moved + case.seen.stall,
        _ => since + SHORT_DEED,
    };
    if case.now.steady > deadline {
        return Step::Stop(StopReason::Stalled);
    }
    let held = case.seen.jobs.held().filter(|_| !has_begun);
    let (reason, message) = match deed {
        DeedName::Build if !has_begun => (WaitReason::Building, BUILDING),
        DeedName::Build | DeedName::Transfer => (WaitReason::Transferring, SENDING),
        DeedName::ReadBack => (WaitReason::Transferring, "the image is read back to be verified"),
        DeedName::Import => (WaitReason::Importing, "the cloud is told to fetch the image"),
        _ => (WaitReason::Working, "the cloud's answer is awaited"),
    };
    Step::Await(Wait {
        reason,
        since: Since::Steady(since),
        until: Until::At(Since::Steady(deadline)),
        look: None,
        message: held.unwrap_or_else(|| message.to_owned()),
    })
}

/// How long nothing may move of what is sent. Whoever waits for the source, or for the cloud to take more, gives up before, and knows whose turn it was; once
/// the cloud has all bytes, it stores them, and nothing moves any more.
fn sent_patience(case: &Case<'_>) -> Duration {
    match case.op.map(|op| &op.state) {
        Some(OpState::Running {
            bytes: Some((sent, Some(total))),
            ..
        }) if sent >= total => cloud_takes(*total) + SENDING_RESTS,
        _ => SENDING_RESTS.max(case.seen.stall),
    }
}

fn forgotten(case: &Case<'_>) -> Option<Step> {
    let is_other = case.kept.key.as_ref().is_some_and(|key| *key != case.wanted.key);
    is_other.then_some(Step::Record(Intent::Forget))
}

/// Nothing is done until somebody changes something, but what is in nobody's interest is cleared away first.
fn halted(case: &Case<'_>) -> Option<Step> {
    let halted = case.kept.halted.as_ref()?;
    if !halted.holds(case.wanted) {
        return Some(Step::Record(Intent::Anew));
    }
    let stands = |look| hold(halted.reason, &halted.message, look);
    if case.wanted.identity.is_none() {
        return Some(stands(None));
    }
    match case.cloud() {
        Ok((cloud, _)) if records::has_best(case, cloud) => None,
        // What could not be cleared away, or is still shown, is cleared away in its time: nobody tells of that.
        Ok((cloud, _)) => Some(records::tidy(case, cloud).unwrap_or_else(|| stands(case.tidied_again()))),
        Err(Step::Await(wait)) => Some(stands(wait.look)),
        Err(look) => Some(look),
    }
}

fn without_secret(case: &Case<'_>) -> Option<Step> {
    let is_missing = case.wanted.identity.is_none();
    is_missing.then(|| waiting(case, WaitReason::Secret, Awaited::Secret, SECRET_MISSING))
}

/// Something is tried again later. What could not be cleared away holds up nothing else.
fn resting(case: &Case<'_>) -> Option<Step> {
    let retry = case.retry().filter(|retry| !retry.is_of_tidying())?;
    Some(case.until_retry(retry))
}

fn in_cloud(case: &Case<'_>) -> Step {
    match case.cloud() {
        Ok((cloud, at)) => records::ladder(case, cloud, at).unwrap_or_else(|| absent::ladder(case, cloud, at)),
        Err(step) => step,
    }
}

/// Another look first, where the time for it has come or the last is too old to act on.
fn renewed(case: &Case<'_>, step: Step) -> Step {
    let Sight::Seen { at, fresh: true, .. } = &case.seen.cloud else {
        return step;
    };
    let now = case.now.steady;
    let is_due = match &step {
        Step::Await(Wait { look: Some(look), .. }) | Step::Rest { look } => now >= *look,
        Step::Hold(halt) => halt.look.is_some_and(|look| now >= look),
        Step::Do { deed, .. } => {
            let asks = matches!(deed.name(), DeedName::Look | DeedName::Probe);
            !asks && now.saturating_sub(*at) > LOOK_WAITING
        }
        // What is in the cloud is another object's.
        Step::Finish { .. } if case.wanted.moved => false,
        Step::Record(Intent::Attempt { .. } | Intent::Publishing { .. } | Intent::Image { .. })
        | Step::Finish { .. } => now.saturating_sub(*at) > LOOK_WAITING,
        Step::Record(Intent::Forget | Intent::Anew)
        | Step::Await(_)
        | Step::Stop(_)
        | Step::Settle(_)
        | Step::Claim => false,
    };
    if is_due { look() } else { step }
}

/// Waits for what only a watch tells of.
pub(super) fn waiting(case: &Case<'_>, reason: WaitReason, awaited: Awaited, message: &str) -> Step {
    Step::Await(Wait {
        reason,
        since: Since::Steady(case.now.steady),
        until: Until::Told(awaited),
        look: None,
        message: message.to_owned(),
    })
}
