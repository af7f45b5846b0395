//! What the conditions of a ClusterStack say: of its source, its releases and its provider, and whether work goes on.

use crds::conditions::{
    ConditionStatus, ConditionType, Finding, MESSAGE_BYTES, Reason, Severity, one_line, with_ready,
};
use crds::names::ReleaseTag;

use super::observed::{Listing, ProviderTemplate, StackObserved};
use super::obstacle::{Obstacle, explanation, nothing_listed, obstacles, told};
use super::plan::{StackAction, StackWaiting};
use super::provider::objection;
use super::select::{LatestUnknown, Selection};

/// Why a stack that subscribes takes none of several releases.
const NO_ORDER: &str =
    "no release is taken by itself: hash releases without a date have no order; name one in spec.versions";

/// What a stack says that is in line because there is no line.
const NOTHING_ASKED_FOR: &str =
    "no release is asked for: name versions in spec.versions, or set spec.autoSubscribe to true";

/// Everything there is to say.
pub(super) fn findings(
    observed: &StackObserved,
    selection: &Selection,
    actions: &[StackAction],
    waiting: &[StackWaiting],
) -> Vec<Finding> {
    let obstacles = obstacles(observed, selection);
    // What is listed was asked for by name.
    let (listed, others): (Vec<&Obstacle>, Vec<&Obstacle>) = obstacles
        .iter()
        .partition(|obstacle| selection.listed.contains(obstacle.tag));
    let mut findings = source(observed, selection, &listed);
    findings.push(releases(observed, selection, waiting, &listed));
    findings.extend(provider(observed, waiting));
    findings.extend(available(observed, selection, &others));
    let mut findings = with_ready(findings);
    findings.extend(activity(observed, &findings, actions, waiting, &obstacles));
    findings
}

/// The source counts for a stack that subscribes. A stack of listed versions needs no list, but it needs the source for what it does not have yet.
fn source(observed: &StackObserved, selection: &Selection, listed: &[&Obstacle]) -> Vec<Finding> {
    let client = ConditionType::AssetsClientAPIAvailable;
    let synced = ConditionType::ReleasesSynced;
    if !observed.spec.auto_subscribe && listed.is_empty() {
        return Vec::new();
    }
    match &observed.listing {
        Listing::Unusable { message } => {
            vec![Finding::fails(
                client,
                Severity::Error,
                Reason::FailedCreateAssetsClient,
                message,
            )]
        }
        Listing::Unavailable { message, outage } => {
            let told = &observed.status.conditions;
            let outage = outage
                .as_ref()
                .map(|outage| outage.as_told_before(told, synced, Reason::FailedToSync));
            let message = outage.map_or_else(|| message.clone(), |outage| outage.tell(message));
            vec![
                Finding::holds(client),
                Finding::fails(synced, Severity::Warning, Reason::FailedToSync, message),
            ]
        }
        _ if !observed.spec.auto_subscribe => Vec::new(),
        Listing::NotAsked => vec![Finding::unknown(
            synced,
            Reason::NotObservedYet,
            "the source has not been asked yet",
        )],
        Listing::Known { .. } => vec![Finding::holds(client), subscribed(observed, selection)],
    }
}

/// The source was asked; whether it told which release is the newest.
fn subscribed(observed: &StackObserved, selection: &Selection) -> Finding {
    const TYPE: ConditionType = ConditionType::ReleasesSynced;
    match selection.latest_unknown {
        Some(LatestUnknown::NothingListed) => {
            Finding::holds_because(TYPE, Reason::ReleaseNotFound, nothing_listed(observed))
        }
        Some(LatestUnknown::NoOrder) => Finding::holds_because(TYPE, Reason::Waiting, NO_ORDER),
        Some(LatestUnknown::SourceSilent) | None => match (&selection.withheld, &selection.latest) {
            (Some(withheld), Some(latest)) => Finding::holds_because(
                TYPE,
                Reason::VersionWentBackwards,
                went_backwards(observed, withheld, latest),
            ),
            _ => Finding::holds(TYPE),
        },
    }
}

fn went_backwards(observed: &StackObserved, withheld: &ReleaseTag, latest: &ReleaseTag) -> String {
    let source = &observed.source;
    format!(
        "the newest release that {source} shows is {latest}, which is older than {withheld}, which is here and is not shown any more; \
         somebody may hold newer releases back. If it was withdrawn on purpose, delete its ClusterStackRelease"
    )
}

/// The worst of what keeps the release objects from being those that are asked for, and usable.
fn releases(
    observed: &StackObserved,
    selection: &Selection,
    waiting: &[StackWaiting],
    listed: &[&Obstacle],
) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleasesSynced;
    let mut failures: Vec<Finding> = waiting.iter().filter_map(|item| failure(observed, item)).collect();
    if let Some(worst) = listed.first() {
        failures.push(Finding::fails(
            TYPE,
            worst.severity,
            worst.reason,
            told(observed, listed, ""),
        ));
    }
    failures.into_iter().min_by_key(Finding::severity).unwrap_or_else(|| {
        if selection.wanted.is_empty() && !observed.spec.auto_subscribe {
            Finding::holds_because(TYPE, Reason::Waiting, NOTHING_ASKED_FOR)
        } else {
            Finding::holds(TYPE)
        }
    })
}

fn failure(observed: &StackObserved, waiting: &StackWaiting) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleasesSynced;
    let warning = |reason, message| Some(Finding::fails(TYPE, Severity::Warning, reason, message));
    match waiting {
        StackWaiting::InvalidSpec { message } => {
            Some(Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message))
        }
        StackWaiting::OwnedByOther { tag, stack } => {
            let message = format!(
                "release {tag} belongs to ClusterStack {stack}, and a namespace has each release once: take the version out of one of the two \
                 stacks, let them follow different channels, or move one to another namespace"
            );
            // Among warnings the name of the condition decides which one Ready repeats; what the source says must not be hidden by this.
            let severity = match observed.listing {
                Listing::Unavailable { .. } => Severity::Info,
                _ => Severity::Warning,
            };
            Some(Finding::fails(
                TYPE,
                severity,
                Reason::ReleaseOwnedByOtherStack,
                message,
            ))
        }
        StackWaiting::ReleaseWrite { tag, message } => {
            warning(Reason::FailedToCreateOrUpdate, format!("release {tag}: {message}"))
        }
        StackWaiting::PruneApproval { digest, releases } => {
            let message = format!(
                "{releases} of {} releases left the source and would be deleted, more than pruneLimit allows; to allow it set the annotation {}: {digest}",
                observed.releases.len(),
                crds::labels::APPROVE_PRUNE
            );
            warning(Reason::PruneNotApproved, message)
        }
        StackWaiting::PruneRecord { releases } => {
            let message = format!(
                "{releases} releases that left the source are deleted as soon as status.approvedPrune says so; where that does not come, the CRD of \
                 ClusterStacks is older than this operator: bring the CRDs up to date"
            );
            Some(Finding::fails(TYPE, Severity::Info, Reason::Progressing, message))
        }
        _ => None,
    }
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
        StackWaiting::ProviderWrite { subject, message } => Some((Reason::FailedToCreateOrUpdate, subject, message)),
        StackWaiting::ProviderContested { subject, message } => Some((Reason::Contested, subject, message)),
        _ => None,
    });
    if let Some((reason, subject, message)) = refused {
        let message = format!("{subject}: {message}");
        return Some(Finding::fails(TYPE, Severity::Warning, reason, message));
    }
    Some(match &observed.template {
        ProviderTemplate::KindMissing { kind } => {
            let message =
                format!("the API server does not serve the kind {kind} of providerRef; install the provider's CRDs");
            Finding::fails(TYPE, Severity::Error, Reason::KindNotFound, message)
        }
        ProviderTemplate::NotListed(unlisted) => Finding::unknown(
            TYPE,
            Reason::NotObservedYet,
            unlisted.tell("the provider template has not been looked at yet"),
        ),
        ProviderTemplate::Missing => {
            let message = "provider template could not be found - check provider reference of cluster stack";
            Finding::fails(TYPE, Severity::Error, Reason::ProviderTemplateNotFound, message)
        }
        ProviderTemplate::TooLarge { bytes, most } => {
            let message = format!(
                "spec.template of the provider template is too large: it has {bytes} bytes, at most {most} are taken"
            );
            Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message)
        }
        ProviderTemplate::TooDeep => {
            let message = "the provider template has more levels of lists and maps than can be read, make it flatter";
            Finding::fails(TYPE, Severity::Error, Reason::InvalidSpec, message)
        }
        ProviderTemplate::Found { .. } | ProviderTemplate::NotWanted => Finding::holds(TYPE),
    })
}

/// Whether anything can be used; not stated when nothing is asked for. `others` are the obstacles of what was not asked for by name.
fn available(observed: &StackObserved, selection: &Selection, others: &[&Obstacle]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseAvailable;
    if let Some(ready) = &selection.latest_ready {
        let Some(worst) = others.first() else {
            return Some(Finding::holds(TYPE));
        };
        let mut until_then = match &selection.latest {
            Some(latest) if latest == worst.tag => format!("; {} is used until then", ready.version()),
            _ => String::new(),
        };
        until_then.push_str(&passed_over(selection, worst));
        return Some(Finding::holds_because(
            TYPE,
            worst.reason,
            told(observed, others, &until_then),
        ));
    }
    if let Some(worst) = others.first() {
        let after = passed_over(selection, worst);
        let words = format!("no release is ready yet; {}", worst.brief_words(observed));
        let message = one_line(&words, MESSAGE_BYTES.saturating_sub(after.len())) + &after;
        return Some(Finding::fails(TYPE, worst.severity, worst.reason, message));
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
    let fails = |severity, reason, message: &str| Some(Finding::fails(TYPE, severity, reason, message));
    match &observed.listing {
        // Without this a new stack would be Ready until the source has answered.
        Listing::NotAsked => fails(
            Severity::Info,
            Reason::NotObservedYet,
            "the source has not been asked yet",
        ),
        Listing::Unusable { .. } | Listing::Unavailable { .. } => None,
        Listing::Known { .. } if selection.latest_unknown == Some(LatestUnknown::NoOrder) => {
            fails(Severity::Warning, Reason::Waiting, NO_ORDER)
        }
        Listing::Known { .. } => fails(Severity::Warning, Reason::ReleaseNotFound, &nothing_listed(observed)),
    }
}

/// Of a newest release that is not on its way: that the one before it could be used, if somebody asked for it.
fn passed_over(selection: &Selection, worst: &Obstacle) -> String {
    match &selection.passed_over {
        Some(tag) if selection.latest.as_ref() == Some(worst.tag) && worst.severity != Severity::Info => {
            format!(
                "; only the newest is taken by itself: to use {0}, add it to spec.versions",
                tag.version()
            )
        }
        _ => String::new(),
    }
}

/// `Stalled` when only somebody's action helps, `Reconciling` while Ready is not True, a release is on its way or something is about to be done.
fn activity(
    observed: &StackObserved,
    findings: &[Finding],
    actions: &[StackAction],
    waiting: &[StackWaiting],
    obstacles: &[Obstacle],
) -> Option<Finding> {
    let ready = findings
        .iter()
        .find(|finding| finding.condition_type() == ConditionType::Ready)?;
    let stalled = |reason, message: &str| Some(Finding::holds_because(ConditionType::Stalled, reason, message));
    let broken = waiting.iter().find_map(|item| match item {
        StackWaiting::InvalidSpec { message } => Some(message),
        _ => None,
    });
    if let Some(message) = broken {
        return stalled(Reason::InvalidSpec, message);
    }
    if let Listing::Unusable { message } = &observed.listing
        && ready.reason() == Some(Reason::FailedCreateAssetsClient)
        && actions.is_empty()
    {
        return stalled(Reason::FailedCreateAssetsClient, message);
    }
    let idle = actions.is_empty() && waiting.is_empty();
    let about = obstacles
        .iter()
        .find(|obstacle| Some(obstacle.reason) == ready.reason());
    if let Some(worst) = about
        && ready.status() == ConditionStatus::False
        && idle
        && obstacles.iter().all(|obstacle| obstacle.stalled)
    {
        let message =
            "nothing changes until what is wrong with the release is mended, or the stack asks for another one";
        return stalled(worst.reason, message);
    }
    let on_its_way = obstacles.iter().any(|obstacle| obstacle.severity == Severity::Info);
    let busy = ready.status() != ConditionStatus::True || on_its_way || !actions.is_empty();
    busy.then(|| {
        let message = progress(actions, waiting, obstacles);
        Finding::holds_because(ConditionType::Reconciling, Reason::Progressing, message)
    })
}

fn progress(actions: &[StackAction], waiting: &[StackWaiting], obstacles: &[Obstacle]) -> &'static str {
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
        Some(StackWaiting::ProviderContested { .. }) => "an object of the provider is put back again by itself",
        Some(StackWaiting::PruneApproval { .. }) => "waits until the deletion of releases is approved",
        _ => match obstacles.last().map(|mildest| (mildest.reason, mildest.severity)) {
            Some((Reason::ReleaseNotFound, _)) => "waits for a release at the source",
            Some((Reason::Paused, _)) => "waits until a release is no longer paused",
            Some((Reason::InUse | Reason::Deleting, _)) => "waits until a release is gone",
            None | Some((_, Severity::Info)) => "waits for releases to become ready",
            Some(_) => "waits until what is in the way of a release is gone",
        },
    }
}
