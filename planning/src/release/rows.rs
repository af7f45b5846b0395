//! What the status will say of each object. Decides nothing about the objects.

use std::collections::BTreeSet;

use crds::conditions::cut;
use crds::policy::DriftPolicy;
use crds::resource::{Health, Left, Resource, SyncStatus};

use super::bounds::shorten_errors;
use super::inventory::{key_of, row};
use super::object::{Sync, SyncState};
use super::objects::{Objects, drift_policy};
use super::observed::{Intent, ObjectObserved, ReleaseObserved, Rendering};
use super::prune::Fate;
use super::reach::is_out_of_reach;
use crate::health::matters;
use crate::object_key::ObjectKey;

/// The rows: wanted objects and leftovers that are still there, sorted by key. After the status was lost they are what carries our mark.
pub(super) fn rows(observed: &ReleaseObserved, objects: &Objects) -> Vec<Resource> {
    let mut keys: BTreeSet<ObjectKey> = observed.status.resources.iter().map(key_of).collect();
    keys.extend(objects.wanted.keys().cloned());
    keys.extend(objects.leftovers.keys().cloned());
    keys.extend(objects.held.iter().cloned());
    if keys.is_empty() {
        let marked = |object: &ObjectObserved| object.seen.as_ref().is_some_and(|seen| seen.ours);
        let objects = observed.objects.iter().filter(|(_, object)| marked(object));
        keys.extend(objects.map(|(key, _)| key.clone()));
    }
    let mut rows: Vec<Resource> = keys
        .into_iter()
        .filter(|key| {
            // That nothing of a kind was applied is known by its rows.
            let is_over = matches!(objects.leftovers.get(key), Some(Fate::Gone | Fate::LeftAlone));
            !is_over || (row(observed, key).is_some() && is_out_of_reach(observed, key))
        })
        .map(|key| {
            let object = observed.objects.get(&key);
            match (objects.wanted.get(&key), objects.leftovers.get(&key)) {
                (Some(sync), _) => wanted_row(observed, &key, sync, object),
                (None, Some(Fate::Failed { message, .. })) => with_error(stale_row(observed, &key, object), message),
                (None, Some(_)) => stale_row(observed, &key, object),
                (None, None) if objects.held.contains(&key) => stale_row(observed, &key, object),
                (None, None) => kept_row(observed, &key, object),
            }
        })
        .collect();
    shorten_errors(&mut rows);
    rows
}

/// Whether the object of a row was seen to be as the release wants it, or is left otherwise.
pub(super) fn stands(observed: &ReleaseObserved, row: &Resource) -> bool {
    row.status == Some(SyncStatus::Synced) || is_left(observed, row)
}

/// Whether a row tells of a difference that is left: by the drift policy, or because going back would lose stored data. Also after a restart, when
/// nobody has looked yet.
pub(super) fn is_left(observed: &ReleaseObserved, row: &Resource) -> bool {
    match row.left {
        Some(Left::Drifted) => drift_policy(observed) == DriftPolicy::Warn,
        Some(Left::InNewerForm) => true,
        Some(Left::Unknown) | None => false,
    }
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

/// The row of what is not wanted. Once that goes, nothing of it is applied: if the release wants it again, it makes it anew, whatever the drift policy.
fn stale_row(observed: &ReleaseObserved, key: &ObjectKey, object: Option<&ObjectObserved>) -> Resource {
    let row = kept_row(observed, key, object);
    // A release that is to go itself wants nothing again.
    if observed.deleting || !object.is_some_and(ObjectObserved::is_going) {
        return row;
    }
    Resource {
        digest: String::new(),
        ..row
    }
}

fn with_error(row: Resource, message: &str) -> Resource {
    Resource {
        status: Some(SyncStatus::NotSynced),
        error: cut(message),
        superseded_by: String::new(),
        left: None,
        ..row
    }
}

/// What is not there has no health.
fn without_object(row: Resource, message: &str) -> Resource {
    Resource {
        health: None,
        ..with_error(row, message)
    }
}

fn wanted_row(observed: &ReleaseObserved, key: &ObjectKey, sync: &Sync, object: Option<&ObjectObserved>) -> Resource {
    let row = Resource {
        version: version(observed, key),
        ..kept_row(observed, key, object)
    };
    match &sync.state {
        // No longer so, and nothing else is known yet.
        SyncState::Unverified | SyncState::Pending if is_start_of(&row.error, &unserved(key)) => with_error(row, ""),
        SyncState::Unverified | SyncState::Pending => row,
        SyncState::Held { .. } if stands(observed, &row) => row,
        SyncState::Held { release } => with_error(
            row,
            &format!("the object belongs to release {release}, which has not said yet what it applied"),
        ),
        SyncState::KindMissing => without_object(row, &unserved(key)),
        SyncState::Missing { message } => without_object(row, message),
        SyncState::Superseded { release } => Resource {
            status: Some(SyncStatus::Synced),
            error: String::new(),
            manager: String::new(),
            superseded_by: release.clone(),
            left: None,
            health: None,
            ..row
        },
        SyncState::Outgrown { message } => Resource {
            manager: String::new(),
            left: Some(Left::InNewerForm),
            ..with_error(row, message)
        },
        SyncState::Failed { message } | SyncState::Contested { message } => with_error(row, message),
        SyncState::Synced | SyncState::Drifted { .. } => {
            let (status, error, left) = match &sync.state {
                SyncState::Drifted { message } => (SyncStatus::NotSynced, cut(message), Some(Left::Drifted)),
                _ => (SyncStatus::Synced, String::new(), None),
            };
            Resource {
                status: Some(status),
                error,
                digest: digest(observed, key).unwrap_or_else(|| row.digest.clone()),
                health: Some(health(key, object)),
                manager: object.map_or_else(String::new, |object| manager(object, &row)),
                superseded_by: String::new(),
                left,
                ..row
            }
        }
    }
}

fn unserved(key: &ObjectKey) -> String {
    format!("the API server does not serve the kind {}", key.group_kind())
}

/// Whether an error is this text, perhaps shortened.
fn is_start_of(error: &str, text: &str) -> bool {
    !error.is_empty() && text.starts_with(error)
}

/// What the status said stands until somebody has looked.
fn manager(object: &ObjectObserved, row: &Resource) -> String {
    let memory = &object.memory;
    if memory.verified.is_none() && memory.drifted.is_none() && row.superseded_by.is_empty() {
        return row.manager.clone();
    }
    memory.foreign_manager.clone().unwrap_or_default()
}

/// What the rendering asks for.
pub(super) fn intent<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Option<&'a Intent> {
    match &observed.rendering {
        Rendering::Rendered { intents } => intents.get(key),
        _ => None,
    }
}

fn version(observed: &ReleaseObserved, key: &ObjectKey) -> String {
    let named = |row: &Resource| row.version.clone();
    match intent(observed, key) {
        Some(intent) => intent.object.version.clone(),
        None => row(observed, key).map(named).unwrap_or_default(),
    }
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
