//! The status of a ClusterStack: summary, catalogue and conditions, in an order that never depends on the order of inputs.

use std::collections::BTreeMap;

use crds::cluster_stack::{AvailableRelease, ClusterStackStatus, ReleasePhase, ReleaseSummary};
use crds::conditions::{ConditionType, Finding, Reason, Severity, find, is_true, merge, with_ready};
use crds::names::{ReleaseStem, ReleaseTag};
use jiff::Timestamp;

use super::approval;
use super::findings::findings;
use super::observed::{ListedRelease, Listing, Owner, ReleaseView, StackObserved};
use super::obstacle::{explanation, is_usable};
use super::orphans;
use super::plan::{StackAction, StackWaiting};
use super::select::Selection;
use crate::shortening::shorten;

/// How many releases the catalogue in the status names; the rest is a count.
const CATALOGUE: usize = 50;

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
    ClusterStackStatus {
        observed_generation: Some(observed.generation),
        latest_release: latest_release(observed, selection),
        summary: summaries(&views),
        usable_versions: (!ready.is_empty()).then(|| ready.join(", ")),
        available,
        available_count,
        foreign_count: foreign_count(observed),
        next_release: selection
            .latest
            .as_ref()
            .map(ToString::to_string)
            .filter(|tag| !observed.releases.get(tag).is_some_and(is_usable)),
        orphans: orphans::status(observed, &selection.wanted),
        approved_prune: approval::status(observed, &selection.left_source),
        last_handled_reconcile_at: handled(observed),
        conditions: merge(
            &observed.status.conditions,
            findings(observed, selection, actions, waiting),
            now,
        ),
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

fn summaries(views: &BTreeMap<&ReleaseTag, Option<&ReleaseView>>) -> Vec<ReleaseSummary> {
    let mut summaries: Vec<ReleaseSummary> = views.iter().map(|(tag, view)| summary(tag, *view)).collect();
    shorten(summaries.iter_mut().filter_map(|summary| summary.message.as_mut()));
    summaries
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

/// How many names of others the source holds; nothing where it holds none. One number, however many they are.
fn foreign_count(observed: &StackObserved) -> Option<i64> {
    match &observed.listing {
        Listing::Known { foreign, .. } => i64::try_from(*foreign).ok().filter(|count| *count > 0),
        _ => observed.status.foreign_count,
    }
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
