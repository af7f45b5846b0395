//! What becomes of a release that was applied and whose files cannot be had now: its objects are watched. Nothing can be written, because
//! nobody knows what; nothing is deleted.

use crds::conditions::{ConditionType, Finding, Reason};
use jiff::Timestamp;

use super::action::ReleaseAction;
use super::inventory::{Inventoried, inventoried, key_of, row};
use super::object::{Sync, SyncState, failed_look, look_again_at, settled};
use super::objects::Objects;
use super::observed::{Assets, ObjectObserved, Read, ReleaseObserved};
use crate::object_key::ObjectKey;

/// How words about an object begin that are true only until it is there again, or the files are.
const UNREPAIRED: &str = "cannot be repaired without the files of the release";

/// Whether all that the inventory names was applied and the files cannot be had. Without an inventory nobody knows what was applied.
pub(super) fn is_without_files(observed: &ReleaseObserved) -> bool {
    let rows = &observed.status.resources;
    matches!(observed.assets, Assets::Missing { .. })
        && !observed.deleting
        && observed.status.assets.is_some()
        && !rows.is_empty()
        && rows.iter().all(|row| !row.digest.is_empty())
}

/// That the files cannot be had does not make unusable what is applied; it is told.
pub(super) fn downloaded(message: &str, withdrawn: bool) -> Finding {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    const APPLIED: &str = "what is applied stays and is watched, but cannot be repaired until they are back";
    if withdrawn {
        let message = format!("the files of the release are no longer in the source: {APPLIED}");
        return Finding::holds_because(TYPE, Reason::ReleaseNotFound, message);
    }
    let message = format!("the files of the release cannot be had now: {APPLIED}; {message}");
    Finding::holds_because(TYPE, Reason::SourceUnavailable, message)
}

/// Where the objects stand that the inventory names.
pub(super) fn watched(observed: &ReleaseObserved, now: Timestamp) -> Objects {
    let nothing = ObjectObserved::default();
    let keys = observed.status.resources.iter().map(key_of);
    let wanted = keys.map(|key| {
        let object = observed.objects.get(&key).unwrap_or(&nothing);
        let sync = look(observed, &key, object, now);
        (key, sync)
    });
    Objects {
        wanted: wanted.collect(),
        ..Objects::default()
    }
}

fn look(observed: &ReleaseObserved, key: &ObjectKey, object: &ObjectObserved, now: Timestamp) -> Sync {
    if !object.served {
        return Sync::still(SyncState::KindMissing);
    }
    if !object.watched {
        return Sync::still(SyncState::Unverified);
    }
    if let Some(wait) = failed_look(object, now) {
        return wait;
    }
    let Some(seen) = &object.seen else {
        return unmarked(key, object, now);
    };
    let applied = inventoried(observed, key);
    let is_held = |digest: &str| applied == Inventoried::Applied(digest);
    match &object.holder {
        _ if seen.deleting => gone("the object is being deleted"),
        _ if seen.ours => Sync {
            // Whether it still is as applied nobody can tell; what was said of it stands.
            state: said(observed, key),
            ..settled(key, object, seen, now)
        },
        Some(holder) if is_held(&holder.digest) => settled(key, object, seen, now),
        Some(holder) if holder.digest.is_empty() => Sync::still(SyncState::Unverified),
        Some(holder) => unrepaired(&format!("the object belongs to release {} now", holder.release)),
        None => unrepaired("the object carries the mark of another release"),
    }
}

/// No watch shows the object with a mark.
fn unmarked(key: &ObjectKey, object: &ObjectObserved, now: Timestamp) -> Sync {
    match &object.memory.read {
        None => Sync::look(ReleaseAction::Read { key: key.clone() }),
        Some(Read::Absent) => gone("the object was deleted"),
        Some(Read::Found { deleting: true, at, .. }) => match look_again_at(object, *at) {
            Some(due) if now < due => Sync::until(gone("the object is being deleted").state, due),
            _ => Sync::look(ReleaseAction::Read { key: key.clone() }),
        },
        Some(Read::Found { .. }) => unrepaired("the object has lost the mark of the release"),
    }
}

fn gone(what: &str) -> Sync {
    Sync::still(SyncState::Missing {
        message: format!("{UNREPAIRED}: {what}"),
    })
}

fn unrepaired(what: &str) -> Sync {
    Sync::still(SyncState::Failed {
        message: format!("{UNREPAIRED}: {what}"),
    })
}

/// What the status says of an object that is there.
fn said(observed: &ReleaseObserved, key: &ObjectKey) -> SyncState {
    match row(observed, key) {
        Some(row) if !row.error.is_empty() && !row.error.starts_with(UNREPAIRED) => SyncState::Unverified,
        _ => SyncState::Synced,
    }
}
