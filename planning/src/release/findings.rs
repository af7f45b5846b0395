//! What the conditions of a ClusterStackRelease say: one finding for each part of the work, and whether it goes on or stands still.

use crds::cluster_stack_release::FOREIGN_PROVIDER_REF;
use crds::conditions::{ConditionType, Finding, Reason, Severity, is_true};
use crds::resource::{Health, Left, Resource, SyncStatus};

use super::inventory::{key_of, row};
use super::object::{Sync, SyncState};
use super::objects::{Objects, may_install, moved_from};
use super::observed::{Assets, Provider, ReleaseObserved, Rendering};
use super::prune::Fate;
use super::reach::unseen;
use super::rows::{is_left, stands};
use super::waiting::Waiting;
use super::without_files::{self, is_without_files};
use super::wording::{awaited_kinds, missing_kinds, progress_of_provider, refusals, summary};
use crate::object_key::{GroupKind, ObjectKey};

/// What is to be said of each part of the work, without the summary.
pub(super) fn of_the_parts(observed: &ReleaseObserved, objects: &Objects, rows: &[Resource]) -> Vec<Finding> {
    let mut findings = vec![downloaded(observed), provider(observed)];
    findings.extend(templated(observed));
    findings.extend(applied(observed, objects, rows));
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
fn applied(observed: &ReleaseObserved, objects: &Objects, rows: &[Resource]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    if observed.deleting {
        return Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::Deleting,
            with_failing(deleting_message(observed, objects), failing(observed, objects, rows)),
        ));
    }
    if !is_compared(observed) {
        return uncompared(observed, rows);
    }
    if let Some(message) = failing(observed, objects, rows) {
        let reason = failing_reason(observed, objects, rows);
        return Some(Finding::fails(TYPE, Severity::Warning, reason, message));
    }
    if objects.wanted.values().any(|sync| sync.state == SyncState::Pending) {
        return Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::ObjectsApplyingOngoing,
            "objects are being applied",
        ));
    }
    if objects.wanted.iter().any(|(key, sync)| is_unknown(observed, key, sync)) {
        let mut message = "objects have not been looked at yet".to_owned();
        if let Some((kind, words)) = observed.unwatched.first_key_value() {
            message = format!("{message}: {kind} cannot be watched: {words}");
        }
        return Some(Finding::fails(TYPE, Severity::Info, Reason::NotObservedYet, message));
    }
    let unhealthy: Vec<String> = rows.iter().filter_map(|row| unhealthy(observed, row)).collect();
    if !unhealthy.is_empty() {
        return Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::ObjectsNotHealthy,
            summary(&unhealthy),
        ));
    }
    Some(installed(rows))
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

/// What is not as wanted, objects of kinds that are not served by their kinds.
fn failing(observed: &ReleaseObserved, objects: &Objects, rows: &[Resource]) -> Option<String> {
    let unserved = |key: &ObjectKey| {
        let sync = objects.wanted.get(key);
        sync.is_some_and(|sync| sync.state == SyncState::KindMissing)
    };
    let refused = refused(observed, rows).filter(|row| !unserved(&key_of(row))).map(told);
    let refused = Some(refusals(refused)).filter(|words| !words.is_empty());
    let missing = missing_kinds(observed, objects.wanted.keys().filter(|key| unserved(key)));
    let parts: Vec<String> = refused.into_iter().chain(missing).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The rows of which the API server, or we, say why they are not as wanted.
fn refused<'a>(observed: &ReleaseObserved, rows: &'a [Resource]) -> impl Iterator<Item = &'a Resource> {
    rows.iter()
        .filter(|row| row.status == Some(SyncStatus::NotSynced) && !row.error.is_empty())
        .filter(|row| !is_left(observed, row))
}

fn told(row: &Resource) -> (String, &str) {
    (format!("{} {}", row.kind, row.name), &row.error)
}

/// Everything is applied; the message tells what is left otherwise, and what a newer release has.
fn installed(rows: &[Resource]) -> Finding {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    let superseded: Vec<(String, String)> = rows.iter().filter_map(handed_over).collect();
    let superseded = superseded.iter().map(|(object, why)| (object.clone(), why.as_str()));
    let left = rows.iter().filter(|row| !row.error.is_empty()).map(told);
    let message = refusals(left.chain(superseded));
    if message.is_empty() {
        return Finding::holds(TYPE);
    }
    let drifted = |row: &Resource| !row.error.is_empty() && row.left != Some(Left::InNewerForm);
    let reason = if rows.iter().any(drifted) {
        Reason::Drifted
    } else {
        Reason::InNewerForm
    };
    Finding::holds_because(TYPE, reason, message)
}

fn handed_over(row: &Resource) -> Option<(String, String)> {
    let release = Some(&row.superseded_by).filter(|release| !release.is_empty())?;
    let why = format!("release {release}, which is newer, has it in the form that it wants");
    Some((format!("{} {}", row.kind, row.name), why))
}

/// Nothing could be compared: what was applied is taken to be there still. Without anything applied there is nothing to say.
fn uncompared(observed: &ReleaseObserved, rows: &[Resource]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    if rows.is_empty() {
        return None;
    }
    if rows.iter().all(|row| stands(observed, row)) {
        return Some(installed(rows));
    }
    let message = "objects of the release are there that could not be compared with it yet";
    Some(Finding::fails(TYPE, Severity::Info, Reason::NotObservedYet, message))
}

/// Whether it is open how an object is. One that was in line and has not been looked at since a restart is taken to be so still.
fn is_unknown(observed: &ReleaseObserved, key: &ObjectKey, sync: &Sync) -> bool {
    sync.state == SyncState::Unverified && row(observed, key).is_none_or(|row| !stands(observed, row))
}

/// Why what is not as wanted is so. Where none of it is wanted, all of that which fails is to go.
fn failing_reason(observed: &ReleaseObserved, objects: &Objects, rows: &[Resource]) -> Reason {
    let is_wanted = |row: &Resource| objects.wanted.contains_key(&key_of(row));
    let mut refused = refused(observed, rows).peekable();
    if refused.peek().is_some() && !refused.any(is_wanted) {
        Reason::FailedToDeleteObjects
    } else {
        applied_reason(objects)
    }
}

/// The most telling reason among the objects that are wanted and not in line.
fn applied_reason(objects: &Objects) -> Reason {
    let any = |test: fn(&SyncState) -> bool| objects.wanted.values().any(|sync| test(&sync.state));
    if any(|state| matches!(state, SyncState::Failed { .. })) {
        Reason::FailedToApplyObjects
    } else if any(|state| matches!(state, SyncState::Contested { .. })) {
        Reason::Contested
    } else if any(|state| matches!(state, SyncState::KindMissing)) {
        Reason::KindNotFound
    } else if any(|state| matches!(state, SyncState::Missing { .. })) {
        Reason::Drifted
    } else {
        Reason::ObjectsApplyingOngoing
    }
}

fn unhealthy(observed: &ReleaseObserved, row: &Resource) -> Option<String> {
    let health = row.health?;
    if matches!(health, Health::Current | Health::Unknown) {
        return None;
    }
    let seen = observed
        .objects
        .get(&key_of(row))
        .and_then(|object| object.memory.health.as_ref());
    let message = seen.map(|seen| seen.message.as_str()).unwrap_or_default();
    Some(format!("{} {} is {health}: {message}", row.kind, row.name))
}

/// What keeps a release whose known objects are gone.
fn unlisted(observed: &ReleaseObserved, kind: &GroupKind) -> String {
    match observed.unwatched.get(kind) {
        Some(words) => format!("objects may be left: {kind} cannot be watched: {words}"),
        None => format!("waits for the list of {kind}, of which objects may be left"),
    }
}

fn deleting_message(observed: &ReleaseObserved, objects: &Objects) -> String {
    match &observed.used_by {
        None => "waits until it is known which Clusters use the class".to_owned(),
        Some(clusters) if !clusters.is_empty() => {
            let clusters: Vec<String> = clusters.iter().cloned().collect();
            format!("the class stays while Clusters use it: {}", summary(&clusters))
        }
        Some(_) => {
            let left: Vec<String> = objects
                .leftovers
                .iter()
                .filter(|(_, fate)| matches!(fate, Fate::Going { .. } | Fate::Failed { .. }))
                .map(|(key, _)| format!("{} {}", key.kind, key.name))
                .collect();
            match unseen(observed).first() {
                _ if !left.is_empty() => format!("deleting {}", summary(&left)),
                Some(kind) => unlisted(observed, kind),
                None => "deleting the last traces".to_owned(),
            }
        }
    }
}

/// `Reconciling` while something is under way or awaited, `Stalled` when only somebody's action helps, nothing when ready.
pub(super) fn activity(
    observed: &ReleaseObserved,
    objects: &Objects,
    waiting: &[Waiting],
    ready: bool,
) -> Option<Finding> {
    let approval = awaited_approval(waiting);
    let stalled = waiting.iter().find_map(|item| stall(item, objects, observed.deleting));
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
            deleting_message(observed, objects),
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
    waiting.iter().find_map(|item| match item {
        Waiting::PruneApproval { digest, objects } => Some(format!(
            "{objects} objects that left the release would be deleted, more than pruneLimit allows; to allow it set the annotation {}: {digest}",
            crds::labels::APPROVE_PRUNE
        )),
        _ => None,
    })
}

fn stall(waiting: &Waiting, objects: &Objects, deleting: bool) -> Option<(Reason, String)> {
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
        // Nobody is kept from anything: that the objects stay as they are is meant.
        Waiting::Object { key, .. } if deleting && objects.wanted.contains_key(key) => None,
        Waiting::Object { key, .. } if is_contested(objects, key) => None,
        Waiting::Object { key, message } => {
            let reason = if deleting || !objects.wanted.contains_key(key) {
                Reason::FailedToDeleteObjects
            } else {
                applied_reason(objects)
            };
            Some((reason, format!("{} {}: {message}", key.kind, key.name)))
        }
        _ => None,
    }
}

fn is_contested(objects: &Objects, key: &ObjectKey) -> bool {
    let sync = objects.wanted.get(key);
    sync.is_some_and(|sync| matches!(sync.state, SyncState::Contested { .. }))
}

fn progress(waiting: &[Waiting]) -> String {
    match waiting.first() {
        None => "objects are being applied".to_owned(),
        Some(Waiting::Assets) => "waits for the files of the release".to_owned(),
        Some(Waiting::Signature) => "waits for a good signature of the release".to_owned(),
        Some(Waiting::Provider) => "waits for the provider".to_owned(),
        Some(Waiting::SlowRendering) => "waits until the class chart is rendered".to_owned(),
        Some(Waiting::Health { .. }) => "waits until objects are healthy".to_owned(),
        Some(Waiting::Object { key, .. }) => format!("{} {} is put back again by itself", key.kind, key.name),
        Some(Waiting::Holder { release }) => format!("waits until release {release} says what it applied"),
        Some(Waiting::Kind { .. }) => awaited_kinds(waiting.iter().filter_map(|item| match item {
            Waiting::Kind { group_kind } => Some(group_kind),
            _ => None,
        })),
        Some(_) => "waits".to_owned(),
    }
}
