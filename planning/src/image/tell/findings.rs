//! The conditions of an image: the cloud, the source, the way between them, whether it is right, and what follows for whoever waits.

use crds::conditions::{ConditionStatus, ConditionType, Finding, Reason, Severity, with_ready};
use crds::providers::Provider;

use super::trouble::{Trouble, helpful};
use super::view::{View, Work};
use crate::image::judge::{converted, pinned};
use crate::image::kept::CloudImage;
use crate::image::seen::{RecordState, Sight};
use crate::image::sending::chosen;
use crate::image::step::{AttemptReason, Intent, Step};
use crate::image::wait::WaitReason;
use crate::image::wanted::{DeletionPolicy, Via, Wanted};
use crate::image::wording::{BUILDING, DEACTIVATED, FOREIGN_TRANSFER, IMPORTING, NO_DIGEST, SENDING, STORING, in_line};

const PREPARED: &str = "the image is being prepared";
/// Of somebody else's image, where the cloud tells no digest of the kind that is asked for, or the file at the source is packed.
const UNCOMPARED: &str = "the image is somebody else's, and nothing that is told of it can be compared with the spec's digest; \
                          give the sha512 of the image itself to have it compared";
/// Of somebody else's image, where nobody says what it must be.
const NOTHING_PROMISED: &str = "the image is somebody else's, and no digest in the spec says what it must be";

/// All of them, Ready first.
pub(super) fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut findings = vec![cloud(view)];
    if view.wanted.deleting.is_some() {
        findings.push(deleted(view));
    } else {
        findings.extend(source(view));
        findings.push(transferred(view));
        findings.extend(verified(view));
    }
    if view.provider == Provider::OpenStack {
        let of_openstack = of_openstack(view, &findings);
        findings.extend(of_openstack);
    }
    let mut findings = with_ready(findings);
    let activity = activity(view, &findings[0]);
    findings.extend(activity);
    findings
}

fn trouble<'a>(view: &'a View<'_>, type_: ConditionType) -> Option<&'a Trouble> {
    view.troubles.iter().find(|trouble| trouble.type_ == type_)
}

fn fails(trouble: &Trouble) -> Finding {
    Finding::fails(
        trouble.type_,
        trouble.severity,
        trouble.reason,
        trouble.message.as_str(),
    )
}

fn cloud(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::CloudAvailable;
    match trouble(view, TYPE) {
        Some(trouble) if view.is_ready => Finding::holds_because(TYPE, trouble.reason, trouble.message.as_str()),
        Some(trouble) => fails(trouble),
        None if view.cloud.is_none() && !view.is_ready => {
            Finding::unknown(TYPE, Reason::NotObservedYet, "the cloud has not been asked yet")
        }
        None => Finding::holds(TYPE),
    }
}

/// Of no interest for images that somebody else makes, and that are built.
fn source(view: &View<'_>) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::SourceAvailable;
    let is_adopted = view.kept.image.as_ref().is_some_and(|image| image.adopted);
    if let Some(trouble) = trouble(view, TYPE) {
        return Some(fails(trouble));
    }
    if view.wanted.adopts() || is_adopted || view.wanted.build.is_some() {
        return None;
    }
    Some(match &view.seen.source {
        _ if view.is_whole() => Finding::holds(TYPE),
        // An object of which nothing else is known must not look as if all was well.
        Sight::Seen { .. } if view.cloud.is_some() => Finding::holds(TYPE),
        Sight::Seen { .. } => Finding::unknown(TYPE, Reason::NotObservedYet, "the cloud has not been asked yet"),
        Sight::Unseen | Sight::Failed { .. } => {
            Finding::unknown(TYPE, Reason::NotObservedYet, "the source has not been asked yet")
        }
    })
}

fn transferred(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::ImageTransferred;
    if let Some(trouble) = trouble(view, TYPE).filter(|_| !view.is_ready) {
        return fails(trouble);
    }
    let goes_on = |reason, message: &str| Finding::fails(TYPE, Severity::Info, reason, message);
    if view.work == Work::Deactivated && !view.is_ready {
        return Finding::fails(TYPE, Severity::Error, Reason::ImageDeactivated, DEACTIVATED);
    }
    // Ours is in the way of somebody else's that is asked for.
    if view.is_ready || view.is_whole() && !view.wanted.adopts() {
        return Finding::holds(TYPE);
    }
    if let Some(ahead) = view.queued() {
        return goes_on(Reason::TransferQueued, &in_line(ahead));
    }
    let held = view.seen.jobs.held().filter(|_| view.moving().is_some());
    match (view.work, held) {
        (Work::Building, Some(held)) => return Finding::fails(TYPE, Severity::Warning, Reason::Building, held),
        (Work::Transferring, Some(held)) => return Finding::fails(TYPE, Severity::Warning, Reason::Transferring, held),
        _ => {}
    }
    match view.work {
        Work::Transferring if view.moving().is_some() => goes_on(Reason::Transferring, &sending(view)),
        Work::Transferring if view.is_sealed() => goes_on(Reason::Transferring, STORING),
        Work::Transferring => goes_on(Reason::Transferring, FOREIGN_TRANSFER),
        Work::Building => goes_on(Reason::Building, BUILDING),
        Work::Importing => goes_on(Reason::Importing, IMPORTING),
        Work::Verifying | Work::Preparing | Work::Deactivated | Work::Nothing => missing(view),
    }
}

/// Whoever asked for another way is told why it is not taken.
fn sending(view: &View<'_>) -> String {
    // A process that has not asked does not know.
    let is_known = view.seen.abilities.is_some() && matches!(view.seen.source, Sight::Seen { .. });
    match chosen(view.wanted, &view.kept, view.seen) {
        (_, Some(why)) if is_known => format!("{SENDING}: {why}"),
        _ => SENDING.to_owned(),
    }
}

/// Nothing is there, and nothing is on its way yet.
fn missing(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::ImageTransferred;
    let Some(cloud) = view.cloud else {
        return Finding::unknown(TYPE, Reason::NotObservedYet, "the cloud has not been asked yet");
    };
    if let Step::Await(wait) = view.step
        && wait.reason == WaitReason::ImageNotFound
    {
        return Finding::fails(TYPE, Severity::Warning, Reason::ImageNotFound, wait.message.as_str());
    }
    let is_there = |id: &String| {
        let ours = cloud.records.iter().any(|record| record.id == *id);
        ours || cloud.others.iter().any(|other| other.id == *id)
    };
    if let Some(image) = view.kept.image.as_ref().filter(|image| !is_there(&image.id)) {
        let message = if image.adopted {
            format!("the image {} that was used is gone from the cloud", image.id)
        } else {
            format!("the image {} is gone from the cloud; it is brought again", image.id)
        };
        return Finding::fails(TYPE, Severity::Warning, Reason::ImageGone, message);
    }
    Finding::fails(TYPE, Severity::Info, Reason::Progressing, PREPARED)
}

fn verified(view: &View<'_>) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::Verified;
    if let Some(trouble) = trouble(view, TYPE).filter(|_| !view.is_ready) {
        return Some(fails(trouble));
    }
    let adopted = view.kept.image.as_ref().filter(|image| image.adopted);
    if view.is_ready {
        return match adopted {
            Some(image) => Some(verified_others(image, view.wanted)),
            None => Some(verified_ours(view)),
        };
    }
    if view.wanted.adopts() {
        return None;
    }
    let is_marked = view.record.is_some_and(|record| record.verified.is_some());
    Some(match view.work {
        Work::Deactivated if is_marked => Finding::holds(TYPE),
        Work::Verifying | Work::Deactivated => {
            let message = "the image is compared with what it must be";
            Finding::fails(TYPE, Severity::Info, Reason::Verifying, message)
        }
        _ if view.kept.mismatches > 0 => {
            let message = "the cloud had other bytes than it must; it is begun anew";
            Finding::fails(TYPE, Severity::Warning, Reason::ImageMismatch, message)
        }
        _ => Finding::unknown(TYPE, Reason::NotObservedYet, "there is nothing to be compared yet"),
    })
}

/// Somebody else's image is used because it was asked for; whether it is right is another question.
fn verified_others(image: &CloudImage, wanted: &Wanted) -> Finding {
    const TYPE: ConditionType = ConditionType::Verified;
    let promised = wanted.digest.as_ref().map(ToString::to_string);
    let message = match &promised {
        Some(_) if image.source_digest == promised => return Finding::holds(TYPE),
        Some(_) => UNCOMPARED,
        None => NOTHING_PROMISED,
    };
    Finding::unknown(TYPE, Reason::Unverifiable, message)
}

fn verified_ours(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::Verified;
    let drift = view.record.map(|record| record.drift.as_slice()).unwrap_or_default();
    if !drift.is_empty() {
        let options: Vec<String> = drift
            .iter()
            .map(|drift| format!("{} is {} and should be {}", drift.field, drift.found, drift.wanted))
            .collect();
        let refused = view.seen.amended.as_ref().filter(|amended| amended.is_of(drift));
        let refused = refused.and_then(|amended| amended.refused.as_ref());
        let why = refused.map(|failure| format!(", because {}", helpful(&failure.message, failure.class)));
        let message = format!(
            "options are otherwise in the cloud: {}{}",
            options.join("; "),
            why.unwrap_or_default()
        );
        return Finding::holds_because(TYPE, Reason::ImageDiffers, message);
    }
    if let Some((from, to)) = converted(view.format(), view.wanted) {
        let message = format!(
            "the cloud has made {to} of the {from} that was sent; what was sent is as it must be, and nobody can compare what the cloud made of it"
        );
        return Finding::holds_because(TYPE, Reason::TransferOnly, message);
    }
    // Without a look at the source only the mark says which digest was promised; what was told of it stays.
    let is_promised = pinned(view.wanted, view.seen).is_some();
    if is_promised || view.wanted.build.is_some() || says_holds(view, TYPE) {
        return Finding::holds(TYPE);
    }
    let message = match view.wanted.via {
        Via::ServerSide => format!("the cloud has what was sent: {NO_DIGEST}"),
        Via::Auto | Via::Upload | Via::Staged => {
            "the cloud has what was sent; no digest says what that should be".to_owned()
        }
    };
    Finding::holds_because(TYPE, Reason::TransferOnly, message)
}

/// Whether a condition held without a reason before.
fn says_holds(view: &View<'_>, type_: ConditionType) -> bool {
    let before = crds::conditions::find(&view.before.conditions, type_);
    let same = view.before.content_key.as_ref() == Some(&view.wanted.key);
    before.is_some_and(|before| same && before.status == ConditionStatus::True && before.reason.is_none())
}

fn deleted(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::ImageTransferred;
    if let Some(trouble) = trouble(view, TYPE) {
        return fails(trouble);
    }
    let message = match view.wanted.deletion {
        DeletionPolicy::Delete => "the image is being deleted from the cloud",
        DeletionPolicy::Retain => "the image is left to the cloud as nobody's",
    };
    Finding::fails(TYPE, Severity::Info, Reason::Deleting, message)
}

/// The words of the Go provider, which say no more than the others.
fn of_openstack(view: &View<'_>, findings: &[Finding]) -> Vec<Finding> {
    let of = |type_: ConditionType| findings.iter().find(|finding| finding.condition_type() == type_);
    let cloud = of(ConditionType::CloudAvailable).map(client);
    if view.wanted.deleting.is_some() {
        return cloud.into_iter().collect();
    }
    let not_active = |reason, finding: &Finding| {
        let severity = finding.severity().unwrap_or(Severity::Info);
        Finding::fails(ConditionType::OpenStackImageActive, severity, reason, finding.message())
    };
    let active = of(ConditionType::ImageTransferred).map(|transferred| match transferred.status() {
        ConditionStatus::True => Finding::holds(ConditionType::OpenStackImageActive),
        ConditionStatus::Unknown => Finding::unknown(
            ConditionType::OpenStackImageActive,
            Reason::NotObservedYet,
            transferred.message(),
        ),
        ConditionStatus::False => not_active(why_not_active(view), transferred),
    });
    cloud.into_iter().chain(Some(started(view))).chain(active).collect()
}

fn client(cloud: &Finding) -> Finding {
    const TYPE: ConditionType = ConditionType::OpenStackImageServiceClientAvailable;
    match (cloud.status(), cloud.severity(), cloud.reason()) {
        (ConditionStatus::True, _, _) => Finding::holds(TYPE),
        (ConditionStatus::False, Some(severity), _) => {
            let reason = Reason::OpenStackImageServiceClientNotSet;
            Finding::fails(TYPE, severity, reason, cloud.message())
        }
        (_, _, reason) => Finding::unknown(TYPE, reason.unwrap_or(Reason::NotObservedYet), cloud.message()),
    }
}

fn started(view: &View<'_>) -> Finding {
    const TYPE: ConditionType = ConditionType::OpenStackImageImportStarted;
    let has_begun = |state| !matches!(state, RecordState::Empty | RecordState::Going);
    let is_moving = view.moving().is_some() && view.queued().is_none();
    if view.is_ready || is_moving || view.record.is_some_and(|record| has_begun(record.state)) {
        return Finding::holds(TYPE);
    }
    if view.cloud.is_none() {
        return Finding::unknown(TYPE, Reason::NotObservedYet, "the cloud has not been asked yet");
    }
    let reason = Reason::OpenStackImageImportNotStartReason;
    Finding::fails(TYPE, Severity::Info, reason, "nothing was sent yet")
}

fn why_not_active(view: &View<'_>) -> Reason {
    if let Step::Record(Intent::Attempt {
        why: AttemptReason::ImportStalled,
        ..
    }) = view.step
    {
        return Reason::OpenStackImageImportTimeOutReason;
    }
    match view.record.map(|record| record.state) {
        None | Some(RecordState::Going) => Reason::OpenStackImageNotCreateYet,
        Some(RecordState::Empty | RecordState::Receiving | RecordState::Importing) => {
            Reason::OpenStackImageNotImportedYet
        }
        Some(RecordState::Spoilt | RecordState::Dead | RecordState::Whole | RecordState::Withdrawn) => {
            Reason::IssueWithOpenStackImage
        }
    }
}

/// Whether to wait or to act, for whoever looks at this alone.
fn activity(view: &View<'_>, ready: &Finding) -> Option<Finding> {
    if ready.status() == ConditionStatus::True {
        return None;
    }
    if let Some(last) = view.troubles.iter().find(|trouble| trouble.is_final)
        && view.wanted.deleting.is_none()
        && ready.status() == ConditionStatus::False
    {
        let message = last.message.as_str();
        return Some(Finding::holds_because(ConditionType::Stalled, last.reason, message));
    }
    let reason = ready.reason().unwrap_or(Reason::Progressing);
    Some(Finding::holds_because(
        ConditionType::Reconciling,
        reason,
        ready.message(),
    ))
}
