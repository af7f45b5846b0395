//! The status of a ClusterStackRelease: rows of the inventory, conditions, and the list of what is awaited.

use std::collections::BTreeSet;
use std::fmt::Write;

use crds::cluster_stack_release::{ClusterStackReleaseStatus, ReleaseAssets};
use crds::conditions::{ConditionStatus, ConditionType, Finding, Reason, Severity, cut, merge, with_ready};
use crds::resource::{Health, Resource, SyncStatus};
use jiff::Timestamp;

use super::object::{Inventoried, Sync, SyncState};
use super::observed::{Assets, ObjectObserved, Provider, ReleaseObserved, Rendering};
use super::plan::{Objects, Waiting, may_install, moved_from};
use super::prune::{Fate, prune_digest};
use crate::health::matters;
use crate::object_key::{GroupKind, ObjectKey, ObjectRef};

/// How many objects a message names before it only counts.
const NAMED: usize = 3;

/// The key of an inventory row.
pub fn key_of(row: &Resource) -> ObjectKey {
    ObjectKey::new(
        row.group.as_str(),
        row.kind.as_str(),
        row.namespace.as_str(),
        row.name.as_str(),
    )
}

/// What the inventory says of an object.
pub(super) fn inventoried<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Inventoried<'a> {
    match row(observed, key) {
        None => Inventoried::No,
        Some(row) if row.digest.is_empty() => Inventoried::Named,
        Some(row) => Inventoried::Applied(&row.digest),
    }
}

fn row<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Option<&'a Resource> {
    observed.status.resources.iter().find(|row| key_of(row) == *key)
}

/// The status that follows from what was seen and decided.
pub(super) fn status(
    observed: &ReleaseObserved,
    objects: &Objects,
    waiting: &[Waiting],
    now: Timestamp,
) -> ClusterStackReleaseStatus {
    let resources = rows(observed, objects);
    let mut findings = vec![downloaded(observed), provider(observed)];
    findings.extend(templated(observed));
    findings.extend(applied(observed, objects, &resources));
    let mut findings = with_ready(findings);
    let ready = findings
        .iter()
        .any(|finding| finding.condition_type() == ConditionType::Ready && finding.status() == ConditionStatus::True)
        && !observed.deleting
        && matches!(observed.rendering, Rendering::Rendered { .. });
    findings.extend(activity(observed, objects, waiting, ready));
    let (assets, kubernetes_version) = pins(observed);
    ClusterStackReleaseStatus {
        observed_generation: Some(observed.generation),
        ready,
        kubernetes_version,
        resources,
        assets,
        last_handled_reconcile_at: observed
            .requested_at
            .clone()
            .or_else(|| observed.status.last_handled_reconcile_at.clone()),
        conditions: merge(&observed.status.conditions, findings, now),
    }
}

/// What the status pins: the first digest that was used stays, whatever the source says later.
fn pins(observed: &ReleaseObserved) -> (Option<ReleaseAssets>, Option<String>) {
    match &observed.assets {
        Assets::Ready {
            digest,
            source,
            kubernetes_version,
        } if moved_from(observed).is_none() => {
            let assets = ReleaseAssets {
                digest: digest.clone(),
                source: source.clone(),
                verified_by: None,
            };
            (Some(assets), Some(kubernetes_version.clone()))
        }
        _ => (
            observed.status.assets.clone(),
            observed.status.kubernetes_version.clone(),
        ),
    }
}

/// The rows: wanted objects and leftovers that are still there, sorted by key.
fn rows(observed: &ReleaseObserved, objects: &Objects) -> Vec<Resource> {
    let mut keys: BTreeSet<ObjectKey> = observed.status.resources.iter().map(key_of).collect();
    keys.extend(objects.wanted.keys().cloned());
    keys.extend(objects.leftovers.keys().cloned());
    keys.extend(objects.held.iter().cloned());
    keys.into_iter()
        .filter(|key| !matches!(objects.leftovers.get(key), Some(Fate::Gone | Fate::LeftAlone)))
        .map(|key| {
            let object = observed.objects.get(&key);
            match (objects.wanted.get(&key), objects.leftovers.get(&key)) {
                (Some(sync), _) => wanted_row(observed, &key, sync, object),
                (None, Some(Fate::Failed { message, .. })) => with_error(kept_row(observed, &key, object), message),
                _ => kept_row(observed, &key, object),
            }
        })
        .collect()
}

/// The row as it stands, or a new one of an object that nothing was applied to.
fn kept_row(observed: &ReleaseObserved, key: &ObjectKey, object: Option<&ObjectObserved>) -> Resource {
    row(observed, key).cloned().unwrap_or_else(|| Resource {
        group: key.group.clone(),
        version: object.map(|object| object.version.clone()).unwrap_or_default(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        status: Some(SyncStatus::NotSynced),
        ..Resource::default()
    })
}

fn with_error(row: Resource, message: &str) -> Resource {
    Resource {
        status: Some(SyncStatus::NotSynced),
        error: cut(message.to_owned()),
        ..row
    }
}

fn wanted_row(observed: &ReleaseObserved, key: &ObjectKey, sync: &Sync, object: Option<&ObjectObserved>) -> Resource {
    let row = Resource {
        version: version(observed, key),
        ..kept_row(observed, key, object)
    };
    match &sync.state {
        SyncState::Unverified | SyncState::Pending => row,
        SyncState::KindMissing => with_error(
            row,
            &format!("the API server does not serve the kind {}", key.group_kind()),
        ),
        SyncState::Failed { message } | SyncState::Contested { message } => with_error(row, message),
        SyncState::Synced | SyncState::Drifted { .. } => {
            let error = match &sync.state {
                SyncState::Drifted { message } => cut(message.clone()),
                _ => String::new(),
            };
            Resource {
                status: Some(SyncStatus::Synced),
                error,
                digest: digest(observed, key).unwrap_or(row.digest),
                health: Some(health(key, object)),
                manager: object
                    .and_then(|object| object.memory.foreign_manager.clone())
                    .unwrap_or_default(),
                ..row
            }
        }
    }
}

fn intent<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Option<&'a super::observed::Intent> {
    match &observed.rendering {
        Rendering::Rendered { intents } => intents.get(key),
        _ => None,
    }
}

fn version(observed: &ReleaseObserved, key: &ObjectKey) -> String {
    intent(observed, key)
        .map(|intent| &intent.object)
        .map(|ObjectRef { version, .. }| version.clone())
        .unwrap_or_default()
}

fn digest(observed: &ReleaseObserved, key: &ObjectKey) -> Option<String> {
    intent(observed, key).map(|intent| intent.digest.clone())
}

fn health(key: &ObjectKey, object: Option<&ObjectObserved>) -> Health {
    match object.and_then(|object| object.memory.health.as_ref()) {
        Some(seen) => seen.state,
        None if matters(&key.group_kind()) => Health::Unknown,
        None => Health::Current,
    }
}

fn downloaded(observed: &ReleaseObserved) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    if let Some(pinned) = moved_from(observed) {
        let message = format!(
            "the source now holds other bytes under this tag than {pinned}, which this release is pinned to; what is applied stays; \
             publish a new version, or delete this ClusterStackRelease to accept the new bytes"
        );
        return Finding::fails(TYPE, Severity::Error, Reason::DigestChanged, message);
    }
    match &observed.assets {
        Assets::Ready { .. } => Finding::holds(TYPE),
        Assets::Broken { message } => Finding::fails(TYPE, Severity::Error, Reason::IssueWithReleaseAssets, message),
        Assets::Missing { message } => {
            Finding::fails(TYPE, Severity::Info, Reason::ReleaseAssetsNotDownloadedYet, message)
        }
        Assets::NotRead if observed.status.assets.is_some() => Finding::holds(TYPE),
        Assets::NotRead => Finding::fails(
            TYPE,
            Severity::Info,
            Reason::ReleaseAssetsNotDownloadedYet,
            "assets not downloaded yet",
        ),
    }
}

fn provider(observed: &ReleaseObserved) -> Finding {
    const TYPE: ConditionType = ConditionType::ProviderClusterStackReleaseReady;
    let ongoing = |message: String| Finding::fails(TYPE, Severity::Info, Reason::ProcessOngoing, message);
    match &observed.provider {
        Provider::NotWanted | Provider::Found { ready: true, .. } => Finding::holds(TYPE),
        Provider::KindMissing { kind } => Finding::fails(
            TYPE,
            Severity::Warning,
            Reason::KindNotFound,
            format!("the API server does not serve the provider's kind {kind}; install the provider's CRDs"),
        ),
        Provider::NotListed => ongoing("providerClusterStackRelease has not been looked at yet".to_owned()),
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
        Provider::Found { phase, message, .. } => {
            let details: Vec<&str> = phase.iter().chain(message).map(String::as_str).collect();
            let colon = if details.is_empty() { "" } else { ": " };
            ongoing(format!(
                "providerClusterStackRelease not ready yet{colon}{}",
                details.join(", ")
            ))
        }
    }
}

/// Stated only when rendering failed.
fn templated(observed: &ReleaseObserved) -> Option<Finding> {
    let Rendering::Failed { message } = &observed.rendering else {
        return None;
    };
    Some(Finding::fails(
        ConditionType::HelmChartTemplated,
        Severity::Error,
        Reason::TemplateNewClusterStackFailed,
        message,
    ))
}

/// Whether the objects are as the release wants them; not stated before there is anything to say.
fn applied(observed: &ReleaseObserved, objects: &Objects, rows: &[Resource]) -> Option<Finding> {
    const TYPE: ConditionType = ConditionType::HelmChartApplied;
    if observed.deleting {
        return Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::Deleting,
            deleting_message(observed, objects),
        ));
    }
    if !matches!(observed.rendering, Rendering::Rendered { .. })
        || !may_install(observed)
        || moved_from(observed).is_some()
    {
        // Nothing could be compared: what was applied is taken to be there still.
        let installed = !rows.is_empty() && rows.iter().all(|row| row.status == Some(SyncStatus::Synced));
        return installed.then(|| Finding::holds(TYPE));
    }
    let failing: Vec<String> = rows
        .iter()
        .filter(|row| row.status == Some(SyncStatus::NotSynced) && !row.error.is_empty())
        .map(|row| format!("{} {}: {}", row.kind, row.name, row.error))
        .collect();
    if !failing.is_empty() {
        return Some(Finding::fails(
            TYPE,
            Severity::Warning,
            applied_reason(objects),
            summary(&failing),
        ));
    }
    if objects.wanted.iter().any(|(key, sync)| under_way(observed, key, sync)) {
        return Some(Finding::fails(
            TYPE,
            Severity::Info,
            Reason::ObjectsApplyingOngoing,
            "objects are being applied",
        ));
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
    Some(Finding::holds(TYPE))
}

/// Whether an object still has to be written. One that was in line and has not been looked at since a restart is taken to be so still.
fn under_way(observed: &ReleaseObserved, key: &ObjectKey, sync: &Sync) -> bool {
    match sync.state {
        SyncState::Pending => true,
        SyncState::Unverified => row(observed, key).is_none_or(|row| row.status != Some(SyncStatus::Synced)),
        _ => false,
    }
}

/// The most telling reason among the objects that are not in line.
fn applied_reason(objects: &Objects) -> Reason {
    let any = |test: fn(&SyncState) -> bool| objects.wanted.values().any(|sync| test(&sync.state));
    if any(|state| matches!(state, SyncState::Failed { .. })) {
        Reason::FailedToApplyObjects
    } else if any(|state| matches!(state, SyncState::Contested { .. })) {
        Reason::Contested
    } else if any(|state| matches!(state, SyncState::KindMissing)) {
        Reason::KindNotFound
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
                .filter(|(_, fate)| matches!(fate, Fate::Going(_) | Fate::Failed { .. }))
                .map(|(key, _)| format!("{} {}", key.kind, key.name))
                .collect();
            format!(
                "deleting {}",
                if left.is_empty() {
                    "the last traces".to_owned()
                } else {
                    summary(&left)
                }
            )
        }
    }
}

/// The first few, and how many more.
fn summary(items: &[String]) -> String {
    let mut text = items.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if items.len() > NAMED {
        let _ = write!(text, "; and {} more", items.len() - NAMED);
    }
    text
}

/// `Reconciling` while something is under way or awaited, `Stalled` when only somebody's action helps, nothing when ready.
fn activity(observed: &ReleaseObserved, objects: &Objects, waiting: &[Waiting], ready: bool) -> Option<Finding> {
    let stalled = waiting.iter().find_map(stall);
    if let Some((reason, message)) = stalled
        && !ready
    {
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
    if let Some(Waiting::PruneApproval { digest, objects }) = waiting
        .iter()
        .find(|item| matches!(item, Waiting::PruneApproval { .. }))
    {
        let message = format!(
            "{objects} objects that left the release would be deleted, more than pruneLimit allows; to allow it set the annotation {}: {digest}",
            crds::labels::APPROVE_PRUNE
        );
        return Some(Finding::holds_because(
            ConditionType::Reconciling,
            Reason::PruneNotApproved,
            message,
        ));
    }
    (!ready).then(|| Finding::holds_because(ConditionType::Reconciling, Reason::Progressing, progress(waiting)))
}

fn stall(waiting: &Waiting) -> Option<(Reason, String)> {
    match waiting {
        Waiting::BrokenRelease => Some((
            Reason::BrokenRelease,
            "the files of the release have to be mended at the source".to_owned(),
        )),
        Waiting::DigestChanged => Some((Reason::DigestChanged, "the tag was moved to other bytes".to_owned())),
        Waiting::Rendering => Some((Reason::RenderFailed, "the class chart does not render".to_owned())),
        Waiting::Object { key, message } => Some((
            Reason::FailedToApplyObjects,
            format!("{} {}: {message}", key.kind, key.name),
        )),
        _ => None,
    }
}

fn progress(waiting: &[Waiting]) -> String {
    match waiting.first() {
        None => "objects are being applied".to_owned(),
        Some(Waiting::Assets) => "waits for the files of the release".to_owned(),
        Some(Waiting::Provider) => "waits for the provider".to_owned(),
        Some(Waiting::Kind { group_kind }) => format!("waits until the API server serves the kind {group_kind}"),
        Some(_) => "waits".to_owned(),
    }
}

/// Why nothing more happens, sorted and without repetition.
pub(super) fn waiting(observed: &ReleaseObserved, objects: &Objects) -> Vec<Waiting> {
    let mut waiting = BTreeSet::new();
    if observed.deleting {
        match &observed.used_by {
            None => waiting.insert(Waiting::ClusterList),
            Some(clusters) if !clusters.is_empty() => waiting.insert(Waiting::InUse {
                clusters: clusters.clone(),
            }),
            Some(_) => false,
        };
    } else {
        waiting.extend(waiting_for_inputs(observed));
        if !objects.held.is_empty() && settled(objects) {
            let digest = prune_digest(&objects.held);
            waiting.insert(Waiting::PruneApproval {
                digest,
                objects: objects.held.len(),
            });
        }
    }
    for (key, sync) in &objects.wanted {
        match &sync.state {
            SyncState::KindMissing => waiting.insert(Waiting::Kind {
                group_kind: GroupKind::new(&*key.group, &*key.kind),
            }),
            SyncState::Failed { message } | SyncState::Contested { message } => waiting.insert(Waiting::Object {
                key: key.clone(),
                message: message.clone(),
            }),
            SyncState::Synced | SyncState::Drifted { .. } | SyncState::Unverified | SyncState::Pending => false,
        };
    }
    for (key, fate) in &objects.leftovers {
        if let Fate::Failed { message, .. } = fate {
            waiting.insert(Waiting::Object {
                key: key.clone(),
                message: message.clone(),
            });
        }
    }
    waiting.into_iter().collect()
}

fn settled(objects: &Objects) -> bool {
    objects
        .wanted
        .values()
        .all(|sync| matches!(sync.state, SyncState::Synced | SyncState::Drifted { .. }))
}

fn waiting_for_inputs(observed: &ReleaseObserved) -> Vec<Waiting> {
    let assets = match &observed.assets {
        _ if moved_from(observed).is_some() => Some(Waiting::DigestChanged),
        Assets::Missing { .. } => Some(Waiting::Assets),
        Assets::Broken { .. } => Some(Waiting::BrokenRelease),
        Assets::Ready { .. } | Assets::NotRead => None,
    };
    let provider = match &observed.provider {
        Provider::NotWanted | Provider::Found { ready: true, .. } => None,
        _ => Some(Waiting::Provider),
    };
    let rendering = matches!(observed.rendering, Rendering::Failed { .. }).then_some(Waiting::Rendering);
    assets.into_iter().chain(provider).chain(rendering).collect()
}
