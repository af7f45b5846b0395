//! What is in the way of an image, on which condition it is told, how bad it is, and in which words.

use crds::conditions::{ConditionType, Reason, Severity, find};
use jiff::{SignedDuration, Timestamp};

use super::view::View;
use super::wall_of;
use crate::image::failure::{Failure, FailureClass};
use crate::image::kept::Retry;
use crate::image::op::{DeedName, StopReason};
use crate::image::retry::RACES;
use crate::image::seen::Sight;
use crate::image::step::{HaltReason, Step};
use crate::image::wait::{Since, Until};
use crate::image::wording::{
    SECRET_MISSING, SECRET_MISSING_FOR_DELETION, UNREADABLE_FOR_DELETION, advises, needs_a_remedy, reason_of_failure,
    reason_of_halt, remedy, remedy_of_failure,
};
use crate::outage::Outage;

/// Something that is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The condition that does not hold for it.
    pub(super) type_: ConditionType,
    pub(super) severity: Severity,
    pub(super) reason: Reason,
    pub(super) message: String,
    /// Whether nothing will change until somebody acts.
    pub(super) is_final: bool,
}

/// What somebody has to change comes first, then what is tried again, then what could not be seen.
pub(super) fn troubles(view: &View<'_>) -> Vec<Trouble> {
    let halt = halt(view);
    let retry = view.retry().map(|retry| of_retry(retry, view));
    let secret = without_secret(view);
    let cloud = of_sight(&view.seen.cloud, view, of_look);
    let unshown = unshown(view);
    let is_needed = !view.is_whole() && view.wanted.deleting.is_none() && !view.wanted.adopts();
    let source = is_needed.then(|| of_sight(&view.seen.source, view, of_probe)).flatten();
    [halt, secret, retry, cloud, unshown, source]
        .into_iter()
        .flatten()
        .collect()
}

/// Nothing more is tried: as was decided, or as was just written.
fn halt(view: &View<'_>) -> Option<Trouble> {
    let kept = view
        .kept
        .halted
        .as_ref()
        .filter(|halted| !view.is_ready && view.wanted.deleting.is_none() && halted.holds(view.wanted));
    let (halt, message) = match view.step {
        Step::Hold(halt) => (halt.reason, &halt.message),
        _ => kept.map(|halted| (halted.reason, &halted.message))?,
    };
    let message = if needs_a_remedy(halt) && !advises(message) {
        format!("{message}; {}", remedy(halt))
    } else {
        message.clone()
    };
    let type_ = match halt {
        HaltReason::SourceNotFound | HaltReason::SourceNotAnImage | HaltReason::DigestUnknown => {
            ConditionType::SourceAvailable
        }
        HaltReason::SourceMismatch | HaltReason::Unverifiable => ConditionType::Verified,
        HaltReason::InvalidSpec
        | HaltReason::NameTaken
        | HaltReason::Ambiguous
        | HaltReason::Refused
        | HaltReason::JobsUnavailable
        | HaltReason::BuildFailed
        | HaltReason::OutOfMemory
        | HaltReason::SealNotKept
        | HaltReason::Unsupported => ConditionType::ImageTransferred,
    };
    Some(Trouble {
        type_,
        severity: Severity::Error,
        reason: reason_of_halt(halt),
        message,
        is_final: true,
    })
}

fn without_secret(view: &View<'_>) -> Option<Trouble> {
    let is_deleting = view.wanted.deleting.is_some();
    let (reason, message) = match &view.wanted.invalid {
        _ if view.wanted.identity.is_some() => return None,
        Some(invalid) if is_deleting => (Reason::InvalidSpec, format!("{invalid}; {UNREADABLE_FOR_DELETION}")),
        // That is told of the image.
        Some(_) => return None,
        None if is_deleting => (Reason::SecretNotFound, SECRET_MISSING_FOR_DELETION.to_owned()),
        None => (Reason::SecretNotFound, SECRET_MISSING.to_owned()),
    };
    Some(Trouble {
        type_: ConditionType::CloudAvailable,
        severity: Severity::Error,
        reason,
        message: with_deadline(message, view),
        is_final: false,
    })
}

/// When the object goes although the image could not be deleted.
fn with_deadline(message: String, view: &View<'_>) -> String {
    match view.step {
        Step::Await(wait) if view.wanted.deleting.is_some() => match wait.until {
            Until::At(Since::Wall(deadline)) => {
                format!("{message}; the object goes without at {}", to_the_second(deadline))
            }
            _ => message,
        },
        _ => message,
    }
}

fn of_retry(retry: &Retry, view: &View<'_>) -> Trouble {
    let (type_, severity) = place(retry.class);
    let could_not_fetch =
        retry.class == FailureClass::Unknown && retry.deed == DeedName::Transfer && view.kept.imports_failed > 0;
    let (severity, reason) = match (retry.class, retry.deed) {
        (FailureClass::Unavailable, DeedName::Probe) => (severity, Reason::SourceUnavailable),
        _ if could_not_fetch => (Severity::Warning, Reason::ImportFailed),
        (class, deed) if class.is_race() && retry.count > RACES => (Severity::Warning, reason_of_many(deed)),
        (class, _) => (severity, reason_of_failure(class)),
    };
    let type_ = if reason == Reason::SourceUnavailable {
        ConditionType::SourceAvailable
    } else {
        type_
    };
    let outage = Outage {
        since: retry.first_time,
        attempts: retry.count,
        next: Some(retry.until),
    };
    let message = outage.tell(&helpful(&retry.message, retry.class));
    Trouble {
        type_,
        severity,
        reason,
        message: with_deadline(message, view),
        is_final: retry.class == FailureClass::Permission,
    }
}

/// What a race is called that comes again and again.
const fn reason_of_many(deed: DeedName) -> Reason {
    if deed.is_long() || matches!(deed, DeedName::Import) {
        Reason::TransferStalled
    } else {
        Reason::CloudUnavailable
    }
}

/// What somebody does about it is said with it, once.
pub(super) fn helpful(message: &str, class: FailureClass) -> String {
    match remedy_of_failure(class).filter(|_| !advises(message)) {
        Some(remedy) => format!("{message}; {remedy}"),
        None => message.to_owned(),
    }
}

/// The condition that a failure is told on, and how bad it is.
const fn place(class: FailureClass) -> (ConditionType, Severity) {
    let transferred = ConditionType::ImageTransferred;
    let source = ConditionType::SourceAvailable;
    match class {
        FailureClass::Unavailable => (ConditionType::CloudAvailable, Severity::Warning),
        FailureClass::Throttled => (ConditionType::CloudAvailable, Severity::Info),
        FailureClass::Credentials | FailureClass::Permission => (ConditionType::CloudAvailable, Severity::Error),
        FailureClass::SourceGone | FailureClass::SourceBroken | FailureClass::SourceChanged => {
            (source, Severity::Warning)
        }
        FailureClass::SourceNotAnImage | FailureClass::DigestUnknown => (source, Severity::Error),
        FailureClass::SourceMismatch => (ConditionType::Verified, Severity::Warning),
        FailureClass::Quota | FailureClass::Invalid | FailureClass::Unsupported => (transferred, Severity::Error),
        FailureClass::InUse
        | FailureClass::BuildFailed { .. }
        | FailureClass::OutOfMemory
        | FailureClass::Sealing
        | FailureClass::Stopped {
            why: StopReason::Stalled,
        } => (transferred, Severity::Warning),
        // Races, and what is over in a moment.
        FailureClass::Busy
        | FailureClass::State
        | FailureClass::Gone
        | FailureClass::Unknown
        | FailureClass::NotOurs
        | FailureClass::JobVanished
        | FailureClass::Stopped { .. } => (transferred, Severity::Info),
    }
}

/// What a look at the cloud failed with. A Secret that makes no sense is told as one.
fn of_look(class: FailureClass) -> (ConditionType, Severity, Reason) {
    let type_ = ConditionType::CloudAvailable;
    match class {
        FailureClass::Throttled | FailureClass::Busy => (type_, Severity::Info, Reason::Throttled),
        FailureClass::Credentials => (type_, Severity::Error, Reason::CredentialsRejected),
        FailureClass::Permission => (type_, Severity::Error, Reason::PermissionDenied),
        FailureClass::Invalid | FailureClass::Unsupported => (type_, Severity::Error, Reason::CloudNotSet),
        _ => (type_, Severity::Warning, Reason::CloudUnavailable),
    }
}

/// What asking the source, and the cloud for room, failed with.
fn of_probe(class: FailureClass) -> (ConditionType, Severity, Reason) {
    let source = ConditionType::SourceAvailable;
    match class {
        FailureClass::Unavailable | FailureClass::Unknown => (source, Severity::Warning, Reason::SourceUnavailable),
        FailureClass::Throttled => (source, Severity::Info, Reason::Throttled),
        class => {
            let (type_, severity) = place(class);
            (type_, severity, reason_of_failure(class))
        }
    }
}

fn of_sight<T>(
    sight: &Sight<T>,
    view: &View<'_>,
    place: fn(FailureClass) -> (ConditionType, Severity, Reason),
) -> Option<Trouble> {
    let Sight::Failed {
        failure,
        since,
        count,
        next,
    } = sight
    else {
        return None;
    };
    let (type_, severity, reason) = place(failure.class);
    let message = with_request(helpful(&failure.told(), failure.class), failure);
    let told = |since: Timestamp, next: Timestamp| {
        let outage = Outage {
            since,
            attempts: *count,
            next: Some(next),
        };
        with_deadline(outage.tell(&message), view)
    };
    Some(Trouble {
        type_,
        severity,
        reason,
        message: as_told_before(view, type_, wall_of(*since, view.now), wall_of(*next, view.now), told),
        is_final: failure.class == FailureClass::Permission,
    })
}

/// What is done again and again and does not show.
fn unshown(view: &View<'_>) -> Option<Trouble> {
    let unshown = view.seen.unshown.as_ref();
    let unshown = unshown.filter(|unshown| !view.is_ready && unshown.times > RACES)?;
    Some(Trouble {
        type_: ConditionType::ImageTransferred,
        severity: Severity::Warning,
        reason: Reason::CloudUnavailable,
        message: with_deadline(format!("{}; it is done again, ever later", unshown.told()), view),
        is_final: false,
    })
}

fn with_request(message: String, failure: &Failure) -> String {
    match &failure.request_id {
        Some(id) => format!("{message} (request {id})"),
        None => message,
    }
}

/// The two clocks are not read at the same instant, so a moment of one may fall on either side of a second of the other: what was told stays.
fn as_told_before(
    view: &View<'_>,
    type_: ConditionType,
    since: Timestamp,
    next: Timestamp,
    told: impl Fn(Timestamp, Timestamp) -> String,
) -> String {
    let before = find(&view.before.conditions, type_).and_then(|condition| condition.message.as_deref());
    let near = |time: Timestamp| {
        let seconds = [0, -1, 1].map(SignedDuration::from_secs);
        seconds.map(|second| time.saturating_add(second).unwrap_or(time))
    };
    let Some(before) = before else {
        return told(since, next);
    };
    let mut candidates = near(since)
        .into_iter()
        .flat_map(|since| near(next).map(|next| told(since, next)));
    let same = candidates.find(|candidate| candidate == before);
    same.unwrap_or_else(|| told(since, next))
}

fn to_the_second(time: Timestamp) -> Timestamp {
    time.round(jiff::Unit::Second).unwrap_or(time)
}
