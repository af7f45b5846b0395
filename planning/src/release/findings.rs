//! What the conditions of a ClusterStackRelease say: one finding for each part of the work, and whether it goes on or stands still.

use crds::cluster_stack_release::FOREIGN_PROVIDER_REF;
use crds::conditions::{ConditionType, Finding, Reason, Severity, is_true};
use crds::resource::Resource;

use super::objects::{may_install, moved_from};
use super::observed::{Assets, Provider, ReleaseObserved};
use super::progress::progress_of_provider;
use super::waiting::Waiting;
use super::without_files::{self, is_without_files};
use crate::objects::{Decisions, OwnerKind, Rendering, Wait, summary};

/// What is to be said of each part of the work, without the summary.
pub(super) fn of_the_parts(observed: &ReleaseObserved, decisions: &Decisions, rows: &[Resource]) -> Vec<Finding> {
    let mut findings = vec![downloaded(observed), provider(observed)];
    findings.extend(templated(observed));
    findings.extend(applied(observed, decisions, rows));
    findings
}

fn downloaded(observed: &ReleaseObserved) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    if observed.deleting {
        return downloaded_once(observed);
    }
    if let Some(pinned) = moved_from(observed) {
        let message = format!(
            "the source now holds other bytes under this tag than those that were applied, {pinned}, which stay; \
             publish a new version, or delete this ClusterStackRelease to accept the new bytes"
        );
        return Finding::fails(TYPE, Severity::Error, Reason::DigestChanged, message);
    }
    match &observed.assets {
        Assets::Ready {
            digest,
            moved_to: Some(other),
            ..
        } => {
            let message = format!(
                "the tag was moved: the source now has {other} under it, which is refused; {digest}, which was pinned, stays in use; \
                 publish a new version, or delete this ClusterStackRelease to accept the new bytes"
            );
            Finding::holds_because(TYPE, Reason::DigestChanged, message)
        }
        Assets::Ready {
            warning: Some(warning), ..
        } => {
            let message =
                format!("used though it is not verified, because the mode of verification is Warn: {warning}");
            Finding::holds_because(TYPE, Reason::VerificationFailed, message)
        }
        Assets::Ready { .. } => Finding::holds(TYPE),
        Assets::Refused { message, awaited } => {
            let severity = if *awaited { Severity::Warning } else { Severity::Error };
            Finding::fails(TYPE, severity, Reason::VerificationFailed, message)
        }
        Assets::Broken { message } => Finding::fails(TYPE, Severity::Error, Reason::IssueWithReleaseAssets, message),
        Assets::Missing {
            message,
            withdrawn,
            outage,
        } if is_without_files(observed) => without_files::downloaded(message, *withdrawn, outage.as_ref()),
        Assets::Missing { message, outage, .. } => {
            const REASON: Reason = Reason::ReleaseAssetsNotDownloadedYet;
            let told = &observed.status.conditions;
            let outage = outage.as_ref().map(|outage| outage.as_told_before(told, TYPE, REASON));
            let message = without_files::told(message, outage.as_ref());
            Finding::fails(TYPE, Severity::Info, REASON, message)
        }
        Assets::NotRead => downloaded_once(observed),
    }
}

/// What it takes to install a release again is nobody's trouble once it is to go.
fn downloaded_once(observed: &ReleaseObserved) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    if observed.status.assets.is_some() || matches!(observed.assets, Assets::Ready { .. }) {
        return Finding::holds(TYPE);
    }
    let message = "assets not downloaded yet";
    Finding::fails(TYPE, Severity::Info, Reason::ReleaseAssetsNotDownloadedYet, message)
}

fn provider(observed: &ReleaseObserved) -> Finding {
    const TYPE: ConditionType = ConditionType::ProviderClusterStackReleaseReady;
    let ongoing = |message: String| Finding::fails(TYPE, Severity::Info, Reason::ProcessOngoing, message);
    match &observed.provider {
        Provider::NotWanted | Provider::Found { ready: true, .. } => Finding::holds(TYPE),
        Provider::Foreign => Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, FOREIGN_PROVIDER_REF),
        Provider::KindMissing { kind } => Finding::fails(
            TYPE,
            Severity::Warning,
            Reason::KindNotFound,
            format!("the API server does not serve the provider's kind {kind}; install the provider's CRDs"),
        ),
        // Nothing says that it is no longer so: one refused list must not take all releases out of use.
        Provider::NotListed(unlisted) if was_ready(observed) => Finding::holds_because(
            TYPE,
            Reason::NotObservedYet,
            unlisted.tell("providerClusterStackRelease was ready and has not been looked at since"),
        ),
        Provider::NotListed(unlisted) => Finding::fails(
            TYPE,
            Severity::Info,
            Reason::NotObservedYet,
            unlisted.tell("providerClusterStackRelease has not been looked at yet"),
        ),
        Provider::Missing => ongoing("providerClusterStackRelease does not exist yet".to_owned()),
        Provider::Found {
            foreign_controller: Some(controller),
            ..
        } => Finding::fails(
            TYPE,
            Severity::Error,
            Reason::ForeignOwner,
            format!("providerClusterStackRelease is controlled by {controller}"),
        ),
        Provider::Found {
            phase,
            message,
            progress,
            ..
        } => {
            // A provider that says it in its own words says it better.
            let says_it = message.as_ref().is_some_and(|message| message.contains(" %"));
            let progress = progress.as_ref().filter(|_| !says_it).map(progress_of_provider);
            let told = [phase, message, &progress].into_iter().flatten();
            let mut details: Vec<&str> = told.map(String::as_str).collect();
            if details.is_empty() {
                details.push("its operator has said nothing of it so far");
            }
            ongoing(format!(
                "providerClusterStackRelease not ready yet: {}",
                details.join(", ")
            ))
        }
    }
}

/// Whether the provider's part was done when the release was last looked at, as it is wanted now.
fn was_ready(observed: &ReleaseObserved) -> bool {
    observed.status.observed_generation == Some(observed.generation)
        && is_true(
            &observed.status.conditions,
            ConditionType::ProviderClusterStackReleaseReady,
        )
}

/// What is said of a chart that takes long.
const SLOW_RENDERING: &str = "the class chart takes long to render, or many are before it; others do not wait for it";

/// Stated only when the chart of a release that is wanted has not been rendered though it could be.
fn templated(observed: &ReleaseObserved) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartTemplated;
    let failed = match &observed.rendering {
        Rendering::Failed { message, .. } => Some(message),
        Rendering::Awaited { failed } => failed.as_ref(),
        Rendering::NotRendered | Rendering::Rendered { .. } => return None,
    };
    if observed.deleting {
        return None;
    }
    Some(match failed {
        Some(message) => Finding::fails(TYPE, Severity::Error, Reason::TemplateNewClusterStackFailed, message),
        None => Finding::fails(TYPE, Severity::Info, Reason::Progressing, SLOW_RENDERING),
    })
}

/// Whether the objects are as the release wants them; not stated before there is anything to say.
fn applied(observed: &ReleaseObserved, decisions: &Decisions, rows: &[Resource]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    let set = observed.set();
    if observed.deleting {
        let message = with_failing(deleting_message(observed, decisions), set.failing(decisions, rows));
        return Some(Finding::fails(TYPE, Severity::Info, Reason::Deleting, message));
    }
    if is_compared(observed) {
        Some(set.applied(decisions, rows))
    } else {
        set.uncompared(rows)
    }
}

/// Whether the objects were looked at one by one.
fn is_compared(observed: &ReleaseObserved) -> bool {
    is_without_files(observed)
        || matches!(observed.rendering, Rendering::Rendered { .. })
            && may_install(observed)
            && moved_from(observed).is_none()
}

fn with_failing(message: String, failing: Option<String>) -> String {
    match failing {
        Some(failing) => format!("{message}; {failing}"),
        None => message,
    }
}

fn deleting_message(observed: &ReleaseObserved, decisions: &Decisions) -> String {
    match &observed.used_by {
        None => "waits until it is known which Clusters use the class".to_owned(),
        Some(clusters) if !clusters.is_empty() => {
            let clusters: Vec<String> = clusters.iter().cloned().collect();
            format!("the class stays while Clusters use it: {}", summary(&clusters))
        }
        Some(_) => observed.set().going(decisions),
    }
}

/// `Reconciling` while something is under way or awaited, `Stalled` when only somebody's action helps, nothing when ready.
pub(super) fn activity(
    observed: &ReleaseObserved,
    decisions: &Decisions,
    waiting: &[Waiting],
    ready: bool,
) -> Option<Finding> {
    let approval = awaited_approval(waiting);
    let stalled = waiting
        .iter()
        .find_map(|item| stall(item, decisions, observed.deleting));
    if let Some((reason, message)) = stalled
        && !ready
    {
        // Nothing else tells what else somebody may do.
        let message = approval.map_or(message.clone(), |approval| format!("{message}; {approval}"));
        return Some(Finding::holds_because(ConditionType::Stalled, reason, message));
    }
    if observed.deleting {
        let reason = if waiting.iter().any(|item| matches!(item, Waiting::InUse { .. })) {
            Reason::InUse
        } else {
            Reason::Deleting
        };
        return Some(Finding::holds_because(
            ConditionType::Reconciling,
            reason,
            deleting_message(observed, decisions),
        ));
    }
    if let Some(message) = approval {
        return Some(Finding::holds_because(
            ConditionType::Reconciling,
            Reason::PruneNotApproved,
            message,
        ));
    }
    (!ready).then(|| Finding::holds_because(ConditionType::Reconciling, Reason::Progressing, progress(waiting)))
}

/// What somebody has to say before so many objects go.
fn awaited_approval(waiting: &[Waiting]) -> Option<String> {
    about_objects(waiting).find_map(|wait| wait.approval(OwnerKind::Release))
}

fn about_objects(waiting: &[Waiting]) -> impl Iterator<Item = &Wait> {
    waiting.iter().filter_map(|item| match item {
        Waiting::Objects(wait) => Some(wait),
        _ => None,
    })
}

fn stall(waiting: &Waiting, decisions: &Decisions, deleting: bool) -> Option<(Reason, String)> {
    match waiting {
        Waiting::BrokenRelease => Some((
            Reason::BrokenRelease,
            "the files of the release have to be mended at the source".to_owned(),
        )),
        Waiting::Unverified => Some((
            Reason::VerificationFailed,
            "the release has to be signed again".to_owned(),
        )),
        Waiting::DigestChanged => Some((Reason::DigestChanged, "the tag was moved to other bytes".to_owned())),
        Waiting::InvalidSpec => Some((Reason::InvalidSpec, FOREIGN_PROVIDER_REF.to_owned())),
        Waiting::Rendering => Some((
            Reason::RenderFailed,
            "the class chart has to be mended at the source".to_owned(),
        )),
        Waiting::Objects(wait) => wait.stall(decisions, deleting),
        _ => None,
    }
}

fn progress(waiting: &[Waiting]) -> String {
    let words = match waiting.first() {
        None => "objects are being applied",
        Some(Waiting::Assets) => "waits for the files of the release",
        Some(Waiting::Signature) => "waits for a good signature of the release",
        Some(Waiting::Provider) => "waits for the provider",
        Some(Waiting::SlowRendering) => "waits until the class chart is rendered",
        Some(Waiting::Objects(wait)) => return wait.progress(about_objects(waiting)),
        Some(_) => "waits",
    };
    words.to_owned()
}
