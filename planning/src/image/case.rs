//! Everything that one decision is made from, and what several rules ask about it. Decides little.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::failure::FailureClass;
use super::kept::{Kept, Retry};
use super::op::{Deed, Form, Op};
use super::seen::{Cloud, Seen, Sight};
use super::step::{Halt, HaltReason, Step};
use super::unshown::Unshown;
use super::wait::{Since, Until, Wait, WaitReason};
use super::wanted::{Now, Wanted};

/// The arguments of one decision.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) kept: &'a Kept,
    pub(super) seen: &'a Seen,
    pub(super) op: Option<&'a Op>,
    pub(super) now: Now,
}

impl<'a> Case<'a> {
    /// What is in the cloud and when that was seen, or the step that finds out.
    #[expect(
        clippy::result_large_err,
        reason = "a step is no failure, and one is made for a decision"
    )]
    pub(super) fn cloud(&self) -> Result<(&'a Cloud, Duration), Step> {
        match &self.seen.cloud {
            Sight::Seen { value, at, fresh: true } => Ok((value, *at)),
            Sight::Unseen | Sight::Seen { fresh: false, .. } => Err(look()),
            Sight::Failed { next, .. } if self.now.steady >= *next => Err(look()),
            Sight::Failed {
                failure, since, next, ..
            } => Err(Step::Await(Wait {
                reason: reason_of(failure.class),
                since: Since::Steady(*since),
                until: Until::Again(Since::Steady(*next)),
                look: Some(*next),
                message: failure.message.clone(),
            })),
        }
    }

    /// What is tried again later, if that still holds.
    pub(super) fn retry(&self) -> Option<&'a Retry> {
        let retry = self.kept.retry.as_ref();
        retry.filter(|retry| retry.holds(self.wanted, self.now))
    }

    /// The same, if clearing away failed.
    pub(super) fn tidying_rests(&self) -> Option<&'a Retry> {
        self.retry().filter(|retry| retry.is_of_tidying())
    }

    /// What was done and no look has shown yet, and when the same is done again, while it is too early for that.
    pub(super) fn unshown(&self) -> Option<(&'a Unshown, Duration)> {
        let unshown = self.seen.unshown.as_ref()?;
        let again = unshown.again(&self.wanted.key);
        (self.now.steady < again).then_some((unshown, again))
    }

    /// The same, if something was cleared away.
    pub(super) fn tidying_unshown(&self) -> Option<(&'a Unshown, Duration)> {
        self.unshown().filter(|(unshown, _)| unshown.tidies())
    }

    /// When clearing away goes on, if it has to wait: it failed, or what it did is not seen yet.
    pub(super) fn tidied_again(&self) -> Option<Duration> {
        let failed = self.tidying_rests().map(|retry| self.steady_of(retry.until));
        failed.or_else(|| self.tidying_unshown().map(|(_, again)| again))
    }

    /// A moment of the world's clock on ours.
    pub(super) fn steady_of(&self, wall: Timestamp) -> Duration {
        let left = wall.duration_since(self.now.wall).max(SignedDuration::ZERO);
        self.now.steady.saturating_add(left.unsigned_abs())
    }

    /// Waits for the next try.
    pub(super) fn until_retry(&self, retry: &Retry) -> Step {
        let reason = match (reason_of(retry.class), retry.class) {
            (_, FailureClass::InUse) => WaitReason::InUse,
            (WaitReason::CloudUnavailable, class) if class != FailureClass::Unavailable => WaitReason::Retry,
            (reason, _) => reason,
        };
        Step::Await(Wait {
            reason,
            since: Since::Wall(retry.first_time),
            until: Until::Again(Since::Wall(retry.until)),
            look: Some(self.steady_of(retry.until)),
            message: retry.message.clone(),
        })
    }
}

/// Waits for something that only another look shows.
pub(super) fn until_seen(reason: WaitReason, since: Duration, until: Until, look: Duration, message: &str) -> Step {
    Step::Await(Wait {
        reason,
        since: Since::Steady(since),
        until,
        look: Some(look),
        message: message.to_owned(),
    })
}

/// Waits for a look that shows what was done.
pub(super) fn until_shown(unshown: &Unshown, again: Duration) -> Step {
    let until = Until::Again(Since::Steady(again));
    until_seen(WaitReason::Retry, unshown.at, until, again, &unshown.told())
}

/// What is waited for after a failure.
pub(super) const fn reason_of(class: FailureClass) -> WaitReason {
    match class {
        FailureClass::Credentials | FailureClass::Permission => WaitReason::Credentials,
        FailureClass::Throttled => WaitReason::Throttled,
        FailureClass::Quota => WaitReason::Quota,
        FailureClass::Busy => WaitReason::Busy,
        FailureClass::SourceGone
        | FailureClass::SourceBroken
        | FailureClass::SourceMismatch
        | FailureClass::SourceNotAnImage
        | FailureClass::SourceChanged
        | FailureClass::DigestUnknown => WaitReason::Source,
        FailureClass::Unavailable
        | FailureClass::Invalid
        | FailureClass::Unsupported
        | FailureClass::InUse
        | FailureClass::State
        | FailureClass::Gone
        | FailureClass::Unknown
        | FailureClass::NotOurs
        | FailureClass::JobVanished
        | FailureClass::Sealing
        | FailureClass::BuildFailed { .. }
        | FailureClass::OutOfMemory
        | FailureClass::Stopped { .. } => WaitReason::CloudUnavailable,
    }
}

pub(super) const fn look() -> Step {
    in_process(Deed::Look)
}

pub(super) const fn in_process(deed: Deed) -> Step {
    Step::Do {
        deed,
        form: Form::InProcess,
    }
}

pub(super) fn hold(reason: HaltReason, message: &str, look: Option<Duration>) -> Step {
    Step::Hold(Halt {
        reason,
        message: message.to_owned(),
        look,
    })
}
