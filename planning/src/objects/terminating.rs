//! When an object is looked at again that is being deleted.

use jiff::{SignedDuration, Timestamp};

use super::action::ObjectAction;
use super::observed::{ObjectObserved, Read};
use super::sync::{Sync, SyncState};
use crate::next::rests_until;
use crate::object_key::ObjectKey;

/// No watch shows an object without our mark, and none shows one of a kind that is only listed in time; while it is being deleted, it is read this often.
const TERMINATING_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// What becomes of an object that is wanted and is being deleted: once it is gone, it is created again.
pub(super) fn terminating(key: &ObjectKey, object: &ObjectObserved, now: Timestamp) -> Sync {
    if is_told_of(object) {
        return Sync::still(SyncState::Pending);
    }
    let look = || Sync::look(ObjectAction::Read { key: key.clone() });
    match &object.memory.read {
        None => look(),
        // It is shown as long as nobody knows whether its kind is served: what tells of that tells of it.
        Some(Read::Absent) => Sync::still(SyncState::Pending),
        Some(Read::Found { at, .. }) => match look_again_at(object, *at, now) {
            Some(due) if now < due => Sync::until(SyncState::Pending, due),
            _ => look(),
        },
    }
}

/// When to read an object again that is being deleted; `None` when a watch will tell.
pub(super) fn look_again_at(object: &ObjectObserved, read_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let due = || rests_until(read_at, TERMINATING_INTERVAL, now).unwrap_or(now);
    (!is_told_of(object)).then(due)
}

/// Whether a watch tells at once what becomes of the object.
fn is_told_of(object: &ObjectObserved) -> bool {
    object.seen.is_some() && !object.only_listed
}
