//! What the status will say of each object. Decides nothing about the objects.

use std::collections::BTreeSet;

use crds::conditions::cut;
use crds::policy::DriftPolicy;
use crds::resource::{Health, Left, Resource, SyncStatus};

use super::bounds::shorten_errors;
use super::decisions::Decisions;
use super::inventory::key_of;
use super::observed::ObjectObserved;
use super::prune::{Fate, record};
use super::set::ObjectSet;
use super::sync::{Sync, SyncState};
use crate::health::matters;
use crate::object_key::ObjectKey;

/// What the next status says of the objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The rows, sorted by key.
    pub resources: Vec<Resource>,
    /// The digest of a prune that was approved and is not over.
    pub approved_prune: Option<String>,
}

impl ObjectSet<'_> {
    /// What follows for the status: rows of wanted objects and of leftovers that are still there. After the status was lost they are what carries our mark.
    pub fn inventory(&self, decisions: &Decisions) -> Inventory {
        let mut resources = rows(self, decisions);
        let approved_prune = record(self, decisions, &mut resources);
        Inventory {
            resources,
            approved_prune,
        }
    }

    /// Whether the object of a row was seen to be as the owner wants it, or is left otherwise.
    pub fn stands(&self, row: &Resource) -> bool {
        row.status == Some(SyncStatus::Synced) || self.is_left(row)
    }

    /// Whether a row tells of a difference that is left: by the drift policy, or because going back would lose stored data. Also after a restart, when
    /// nobody has looked yet.
    pub(super) fn is_left(&self, row: &Resource) -> bool {
        match row.left {
            Some(Left::Drifted) => self.drift == DriftPolicy::Warn,
            Some(Left::InNewerForm) => true,
            Some(Left::Unknown) | None => false,
        }
    }
}

fn rows(set: &ObjectSet<'_>, decisions: &Decisions) -> Vec<Resource> {
    let Decisions {
        wanted,
        leftovers,
        held,
        ..
    } = decisions;
    let mut keys: BTreeSet<ObjectKey> = set.rows.iter().map(key_of).collect();
    keys.extend(wanted.keys().chain(leftovers.keys()).chain(held).cloned());
    if keys.is_empty() {
        let marked = set.objects.iter().filter(|(_, object)| object.is_ours());
        keys.extend(marked.map(|(key, _)| key.clone()));
    }
    let mut rows: Vec<Resource> = keys
        .into_iter()
        .filter(|key| {
            // That nothing of a kind was applied is known by its rows.
            let is_over = leftovers.get(key).is_some_and(Fate::is_over);
            !is_over || (set.row(key).is_some() && set.is_out_of_reach(key))
        })
        .map(|key| {
            let object = set.objects.get(&key);
            match (wanted.get(&key), leftovers.get(&key)) {
                (Some(sync), _) => wanted_row(set, &key, sync, object),
                (None, Some(Fate::Failed { message, .. })) => with_error(stale_row(set, &key, object), message),
                (None, Some(_)) => stale_row(set, &key, object),
                (None, None) if held.contains(&key) => stale_row(set, &key, object),
                (None, None) => kept_row(set, &key, object),
            }
        })
        .collect();
    shorten_errors(&mut rows);
    rows
}

/// The row as it stands, or a new one of an object that nothing was applied to.
fn kept_row(set: &ObjectSet<'_>, key: &ObjectKey, object: Option<&ObjectObserved>) -> Resource {
    set.row(key).cloned().unwrap_or_else(|| Resource {
        group: key.group.clone(),
        version: object.map(|object| object.version.clone()).unwrap_or_default(),
        kind: key.kind.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        status: Some(SyncStatus::NotSynced),
        ..Resource::default()
    })
}

/// The row of what is not wanted. Once that goes, nothing of it is applied: if the owner wants it again, it makes it anew, whatever the drift policy.
fn stale_row(set: &ObjectSet<'_>, key: &ObjectKey, object: Option<&ObjectObserved>) -> Resource {
    let row = kept_row(set, key, object);
    // An owner that is to go itself wants nothing again.
    if set.deleting || !object.is_some_and(ObjectObserved::is_going) {
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

fn wanted_row(set: &ObjectSet<'_>, key: &ObjectKey, sync: &Sync, object: Option<&ObjectObserved>) -> Resource {
    let row = Resource {
        version: version(set, key),
        ..kept_row(set, key, object)
    };
    match &sync.state {
        // No longer so, and nothing else is known yet.
        SyncState::Unverified | SyncState::Pending if is_start_of(&row.error, &unserved(key)) => with_error(row, ""),
        SyncState::Unverified | SyncState::Pending => row,
        SyncState::Held { .. } if set.stands(&row) => row,
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
                digest: digest(set, key).unwrap_or_else(|| row.digest.clone()),
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

fn version(set: &ObjectSet<'_>, key: &ObjectKey) -> String {
    let named = |row: &Resource| row.version.clone();
    match set.intent(key) {
        Some(intent) => intent.object.version.clone(),
        None => set.row(key).map(named).unwrap_or_default(),
    }
}

fn digest(set: &ObjectSet<'_>, key: &ObjectKey) -> Option<String> {
    set.intent(key).map(|intent| intent.digest.clone())
}

fn health(key: &ObjectKey, object: Option<&ObjectObserved>) -> Health {
    match object.and_then(|object| object.memory.health.as_ref()) {
        Some(seen) => seen.state,
        None if matters(&key.group_kind()) => Health::Unknown,
        None => Health::Current,
    }
}
