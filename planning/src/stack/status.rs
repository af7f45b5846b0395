//! The status of a ClusterStack: summary, catalogue and conditions, in an order that never depends on the order of inputs.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack::{AvailableRelease, ClusterStackStatus, ReleasePhase, ReleaseSummary};
use crds::conditions::{ConditionStatus, ConditionType, Finding, Reason, Severity, find, is_true, merge, with_ready};
use crds::names::{ReleaseStem, ReleaseTag};
use jiff::Timestamp;

use super::observed::{ListedRelease, Listing, Owner, ProviderTemplate, ReleaseView, StackObserved};
use super::plan::{StackAction, StackWaiting};
use super::provider::objection;
use super::select::Selection;

/// How many releases the catalogue in the status names; the rest is a count.
const CATALOGUE: usize = 50;

/// How many names a message spells out.
const NAMED: usize = 5;

/// The status that follows from what was seen and decided.
pub(super) fn status(
    observed: &StackObserved,
    selection: &Selection,
    stem: &ReleaseStem,
    actions: &[StackAction],
    waiting: &[StackWaiting],
    now: Timestamp,
) -> ClusterStackStatus {
    let views: BTreeMap<&ReleaseTag, Option<&ReleaseView>> = selection
        .wanted
        .iter()
        .map(|tag| (tag, observed.releases.get(&tag.to_string())))
        .collect();
    let ready: Vec<String> = views
        .iter()
        .filter(|(_, view)| view.is_some_and(is_usable))
        .map(|(tag, _)| tag.version().to_string())
        .collect();
    let (available, available_count) = catalogue(observed, stem);
    let mut findings = with_ready(findings(observed, selection, waiting));
    findings.extend(activity(&findings, actions, waiting));
    ClusterStackStatus {
        observed_generation: Some(observed.generation),
        latest_release: latest_release(observed, selection),
        summary: views.iter().map(|(tag, view)| summary(tag, *view)).collect(),
        usable_versions: (!ready.is_empty()).then(|| ready.join(", ")),
        available,
        available_count,
        next_release: selection
            .latest
            .as_ref()
            .map(ToString::to_string)
            .filter(|tag| !observed.releases.get(tag).is_some_and(is_usable)),
        last_handled_reconcile_at: handled(observed),
        conditions: merge(&observed.status.conditions, findings, now),
    }
}

/// The status of a stack whose spec cannot be used: what is there stays as it is, and the message says what to change.
pub(super) fn invalid(observed: &StackObserved, message: &str, now: Timestamp) -> ClusterStackStatus {
    let type_ = ConditionType::ClusterStackReleasesSynced;
    let mut findings = with_ready(vec![Finding::fails(
        type_,
        Severity::Error,
        Reason::InvalidSpec,
        message,
    )]);
    findings.push(Finding::holds_because(
        ConditionType::Stalled,
        Reason::InvalidSpec,
        message,
    ));
    ClusterStackStatus {
        observed_generation: Some(observed.generation),
        last_handled_reconcile_at: handled(observed),
        conditions: merge(&observed.status.conditions, findings, now),
        ..observed.status.clone()
    }
}

/// Whether Clusters of this stack may name the release: what another stack owns can go at any time.
fn is_usable(view: &ReleaseView) -> bool {
    view.ready && !view.deleting && !matches!(view.owner, Owner::Other { .. })
}

fn handled(observed: &StackObserved) -> Option<String> {
    observed
        .requested_at
        .clone()
        .or_else(|| observed.status.last_handled_reconcile_at.clone())
}

/// `docker-ferrol-1-27-v2 | v1.27.3`: the class of the newest ready release and its Kubernetes version.
fn latest_release(observed: &StackObserved, selection: &Selection) -> Option<String> {
    let tag = selection.latest_ready.as_ref()?;
    let kubernetes = observed
        .releases
        .get(&tag.to_string())?
        .kubernetes_version
        .as_deref()
        .unwrap_or_default();
    Some(format!("{} | {kubernetes}", tag.class_name()))
}

fn summary(tag: &ReleaseTag, view: Option<&ReleaseView>) -> ReleaseSummary {
    let name = tag.version().dash();
    let Some(view) = view else {
        return ReleaseSummary {
            name,
            ready: false,
            phase: ReleasePhase::Unknown,
            message: None,
        };
    };
    if is_usable(view) {
        return ReleaseSummary {
            name,
            ready: true,
            phase: ReleasePhase::Done,
            message: None,
        };
    }
    ReleaseSummary {
        name,
        ready: false,
        phase: phase(view),
        message: explanation(view),
    }
}

fn phase(view: &ReleaseView) -> ReleasePhase {
    if matches!(view.owner, Owner::Other { .. }) {
        return ReleasePhase::Unknown;
    }
    if is_true(&view.conditions, ConditionType::ProviderClusterStackReleaseReady)
        && is_true(&view.conditions, ConditionType::ClusterStackReleaseDownloaded)
    {
        ReleasePhase::ApplyingObjects
    } else if is_true(&view.conditions, ConditionType::ClusterStackReleaseDownloaded) {
        ReleasePhase::ProviderWork
    } else if find(&view.conditions, ConditionType::ClusterStackReleaseDownloaded).is_some() {
        ReleasePhase::DownloadingAssets
    } else {
        ReleasePhase::Unknown
    }
}

/// Why Clusters cannot use it: reason and message of the release's Ready, so that nobody has to open the release to learn why it is not.
fn explanation(view: &ReleaseView) -> Option<String> {
    if let Owner::Other { name } = &view.owner {
        let reason = Reason::ReleaseOwnedByOtherStack.as_str();
        return Some(format!("{reason}: the release belongs to ClusterStack {name}"));
    }
    let ready = find(&view.conditions, ConditionType::Ready)?;
    if view.deleting && ready.status == ConditionStatus::True {
        return Some(format!("{}: the release is being deleted", Reason::Deleting.as_str()));
    }
    let reason = ready.reason.as_deref()?;
    Some(match ready.message.as_deref() {
        Some(message) if !message.is_empty() => crds::conditions::cut(format!("{reason}: {message}")),
        _ => reason.to_owned(),
    })
}

/// The newest releases that could be used, newest first, and how many there are in all.
fn catalogue(observed: &StackObserved, stem: &ReleaseStem) -> (Vec<AvailableRelease>, Option<i64>) {
    let Listing::Known { releases, .. } = &observed.listing else {
        return (observed.status.available.clone(), observed.status.available_count);
    };
    let mut ours: Vec<&ListedRelease> = releases.iter().filter(|listed| listed.tag.stem() == stem).collect();
    ours.sort_by(|left, right| right.tag.cmp(&left.tag));
    let available = ours
        .iter()
        .take(CATALOGUE)
        .map(|listed| available(observed, listed))
        .collect();
    (available, i64::try_from(ours.len()).ok())
}

fn available(observed: &StackObserved, listed: &ListedRelease) -> AvailableRelease {
    let view = observed.releases.get(&listed.tag.to_string());
    AvailableRelease {
        version: listed.tag.version().to_string(),
        release: listed.tag.to_string(),
        kubernetes_version: listed
            .kubernetes_version
            .clone()
            .or_else(|| view.and_then(|view| view.kubernetes_version.clone())),
        digest: listed
            .digest
            .clone()
            .or_else(|| view.and_then(|view| view.digest.clone())),
        ready: view.is_some_and(is_usable),
    }
}

fn findings(observed: &StackObserved, selection: &Selection, waiting: &[StackWaiting]) -> Vec<Finding> {
    let mut findings = source(observed);
    findings.push(releases(observed, waiting));
    findings.extend(provider(observed, waiting));
    findings.extend(available_finding(observed, selection));
    findings
}

/// The source counts only for a stack that subscribes: a stack of listed versions does not need a list.
fn source(observed: &StackObserved) -> Vec<Finding> {
    if !observed.spec.auto_subscribe {
        return Vec::new();
    }
    let client = ConditionType::AssetsClientAPIAvailable;
    let synced = ConditionType::ReleasesSynced;
    match &observed.listing {
        Listing::NotAsked => vec![Finding::unknown(
            synced,
            Reason::NotObservedYet,
            "the source has not been asked yet",
        )],
        Listing::Unusable { message } => {
            vec![Finding::fails(
                client,
                Severity::Error,
                Reason::FailedCreateAssetsClient,
                message,
            )]
        }
        Listing::Unavailable { message } => {
            vec![
                Finding::holds(client),
                Finding::fails(synced, Severity::Warning, Reason::FailedToSync, message),
            ]
        }
        Listing::Known { .. } => vec![Finding::holds(client), Finding::holds(synced)],
    }
}

fn releases(observed: &StackObserved, waiting: &[StackWaiting]) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleasesSynced;
    for item in waiting {
        match item {
            StackWaiting::InvalidSpec { message } => {
                return Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message);
            }
            StackWaiting::OwnedByOther { tag, stack } => {
                let message = format!("release {tag} belongs to ClusterStack {stack}");
                return Finding::fails(TYPE, Severity::Warning, Reason::ReleaseOwnedByOtherStack, message);
            }
            StackWaiting::ReleaseWrite { tag, message } => {
                let message = format!("release {tag}: {message}");
                return Finding::fails(TYPE, Severity::Warning, Reason::FailedToCreateOrUpdate, message);
            }
            StackWaiting::PruneApproval { digest, releases } => {
                let message = format!(
                    "{releases} of {} releases left the source and would be deleted, more than pruneLimit allows; to allow it set the annotation {}: {digest}",
                    observed.releases.len(),
                    crds::labels::APPROVE_PRUNE
                );
                return Finding::fails(TYPE, Severity::Warning, Reason::PruneNotApproved, message);
            }
            _ => {}
        }
    }
    Finding::holds(TYPE)
}

fn provider(observed: &StackObserved, waiting: &[StackWaiting]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::ProviderClusterStackReleasesSynced;
    if observed.spec.no_provider {
        return None;
    }
    if let Some(message) = objection(&observed.spec) {
        return Some(Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message));
    }
    let refused = waiting.iter().find_map(|item| match item {
        StackWaiting::ProviderWrite { subject, message } => Some(format!("{subject}: {message}")),
        _ => None,
    });
    if let Some(message) = refused {
        return Some(Finding::fails(
            TYPE,
            Severity::Warning,
            Reason::FailedToCreateOrUpdate,
            message,
        ));
    }
    Some(match &observed.template {
        ProviderTemplate::KindMissing { kind } => {
            let message =
                format!("the API server does not serve the kind {kind} of providerRef; install the provider's CRDs");
            Finding::fails(TYPE, Severity::Error, Reason::KindNotFound, message)
        }
        ProviderTemplate::NotListed => Finding::unknown(
            TYPE,
            Reason::NotObservedYet,
            "the provider template has not been looked at yet",
        ),
        ProviderTemplate::Missing => {
            let message = "provider template could not be found - check provider reference of cluster stack";
            Finding::fails(TYPE, Severity::Error, Reason::ProviderTemplateNotFound, message)
        }
        ProviderTemplate::Found { .. } | ProviderTemplate::NotWanted => Finding::holds(TYPE),
    })
}

/// Whether anything can be used; not stated when nothing is asked for.
fn available_finding(observed: &StackObserved, selection: &Selection) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseAvailable;
    if selection.latest_ready.is_some() {
        return Some(Finding::holds(TYPE));
    }
    if let Some(tag) = selection.wanted.last() {
        let view = observed.releases.get(&tag.to_string());
        let explanation = view
            .and_then(explanation)
            .unwrap_or_else(|| "not observed yet".to_owned());
        let message = format!("no release is ready yet; {tag}: {explanation}");
        return Some(Finding::fails(TYPE, Severity::Info, Reason::Progressing, message));
    }
    if !observed.spec.auto_subscribe {
        return None;
    }
    match &observed.listing {
        // Without this a new stack would be Ready until the source has answered.
        Listing::NotAsked => Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::NotObservedYet,
            "the source has not been asked yet",
        )),
        Listing::Unusable { .. } | Listing::Unavailable { .. } => None,
        Listing::Known { .. } => {
            let message = format!(
                "the source lists no release of {}-{} for Kubernetes {} in channel {}",
                observed.spec.provider, observed.spec.name, observed.spec.kubernetes_version, observed.spec.channel
            );
            Some(Finding::fails(
                TYPE,
                Severity::Warning,
                Reason::ReleaseNotFound,
                message,
            ))
        }
    }
}

/// `Stalled` when only an edit helps, `Reconciling` while Ready is not True or something is about to be done.
fn activity(findings: &[Finding], actions: &[StackAction], waiting: &[StackWaiting]) -> Option<Finding> {
    let ready = findings
        .iter()
        .find(|finding| finding.condition_type() == ConditionType::Ready)
        .map(Finding::status);
    let broken = waiting.iter().find_map(|item| match item {
        StackWaiting::InvalidSpec { message } => Some(message),
        _ => None,
    });
    if let Some(message) = broken {
        return Some(Finding::holds_because(
            ConditionType::Stalled,
            Reason::InvalidSpec,
            message,
        ));
    }
    let busy = ready != Some(ConditionStatus::True) || !actions.is_empty();
    busy.then(|| {
        Finding::holds_because(
            ConditionType::Reconciling,
            Reason::Progressing,
            progress(actions, waiting),
        )
    })
}

fn progress(actions: &[StackAction], waiting: &[StackWaiting]) -> &'static str {
    if !actions.is_empty() {
        return "releases are being brought in line";
    }
    match waiting.first() {
        Some(StackWaiting::Source { .. }) => "waits for the source",
        Some(StackWaiting::NothingListed) => "waits for a release at the source",
        Some(StackWaiting::NoOrder) => "waits for a version to be named: hash releases without a date have no order",
        Some(StackWaiting::ProviderTemplate) => "waits for the provider template",
        Some(StackWaiting::OwnedByOther { .. }) => "waits until another stack lets go of a release",
        Some(StackWaiting::ReleaseWrite { .. } | StackWaiting::ProviderWrite { .. }) => {
            "a write failed and is tried again"
        }
        Some(StackWaiting::PruneApproval { .. }) => "waits until the deletion of releases is approved",
        _ => "waits for releases to become ready",
    }
}

/// The first few names, and how many more.
pub(super) fn enumerate(names: &[&str]) -> String {
    let names: BTreeSet<&str> = names.iter().copied().collect();
    let shown: Vec<&str> = names.iter().copied().take(NAMED).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
