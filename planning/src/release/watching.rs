//! What becomes of objects that are looked at and not written: those of a release whose files cannot be had, and those of a release that is to go
//! and stays for the Clusters that use it. What was made for the latter now, nobody might remove.

use crds::policy::DriftPolicy;
use jiff::Timestamp;

use super::action::ReleaseAction;
use super::inventory::{Inventoried, inventoried, key_of, row};
use super::object::{Sync, SyncState, failed_look, look_again_at, marked, refused, settled, superseded};
use super::objects::drift_policy;
use super::observed::{Belongs, ObjectObserved, Read, ReleaseObserved};
use super::rows::intent;
use crate::object_key::ObjectKey;

/// Why objects are not repaired.
#[derive(Clone, Copy)]
pub(super) enum Unrepaired {
    /// Nobody knows how they have to be.
    WithoutFiles,
    /// The release is to go.
    Deleting,
}

impl Unrepaired {
    const ALL: [Self; 2] = [Self::WithoutFiles, Self::Deleting];

    /// How words about an object begin that are true only until it is there again, or the release is otherwise.
    fn words(self) -> &'static str {
        match self {
            Self::WithoutFiles => "cannot be repaired without the files of the release",
            Self::Deleting => "is not repaired, because the release is being deleted",
        }
    }

    fn gone(self, what: &str) -> SyncState {
        SyncState::Missing {
            message: format!("{}: {what}", self.words()),
        }
    }

    fn broken(self, what: &str) -> Sync {
        Sync::still(SyncState::Failed {
            message: format!("{}: {what}", self.words()),
        })
    }
}

/// Where the objects stand that the inventory names.
pub(super) fn watched(
    observed: &ReleaseObserved,
    why: Unrepaired,
    now: Timestamp,
) -> impl Iterator<Item = (ObjectKey, Sync)> {
    let keys = observed.status.resources.iter().map(key_of);
    keys.map(move |key| {
        let nothing = ObjectObserved::default();
        let object = observed.objects.get(&key).unwrap_or(&nothing);
        let sync = look(observed, &key, object, why, now);
        (key, sync)
    })
}

fn look(observed: &ReleaseObserved, key: &ObjectKey, object: &ObjectObserved, why: Unrepaired, now: Timestamp) -> Sync {
    if !object.served {
        return Sync::still(SyncState::KindMissing);
    }
    if !object.watched {
        return Sync::still(SyncState::Unverified);
    }
    let applied = inventoried(observed, key);
    let as_applied = match applied {
        Inventoried::Applied(digest) => Some(digest),
        Inventoried::No | Inventoried::Named => None,
    };
    if let Some(holder) = &object.holder
        && !object.seen.as_ref().is_some_and(|seen| seen.ours)
        && holder.outranks(as_applied)
    {
        return superseded(holder);
    }
    let intent = intent(observed, key);
    let refused = intent.and_then(|intent| refused(intent, object, applied, now));
    if let Some(wait) = refused.or_else(|| failed_look(object, now)) {
        return wait;
    }
    let Some(seen) = &object.seen else {
        return unseen(key, object, applied, why, now);
    };
    match &object.holder {
        _ if seen.deleting => Sync::still(why.gone("the object is being deleted")),
        _ if seen.ours => match intent {
            Some(intent) => {
                let leave = match drift_policy(observed) {
                    DriftPolicy::Correct | DriftPolicy::Warn => DriftPolicy::Warn,
                    DriftPolicy::Ignore => DriftPolicy::Ignore,
                };
                let sync = marked(key, intent, object, seen, applied, leave, now);
                if sync.is_apply() {
                    return why.broken("the release asks for another form of the object by now");
                }
                sync
            }
            None => Sync {
                // Whether it still is as applied nobody can tell; what was said of it stands.
                state: said(observed, key),
                ..settled(key, object, seen, now)
            },
        },
        Some(holder) => match &holder.digest {
            None => Sync::still(SyncState::Unverified),
            digest if digest.as_deref() == as_applied => settled(key, object, seen, now),
            Some(_) => why.broken(&format!("the object belongs to release {} now", holder.place())),
        },
        None => why.broken("the object carries the mark of another release"),
    }
}

/// No watch shows the object with a mark.
fn unseen(key: &ObjectKey, object: &ObjectObserved, applied: Inventoried<'_>, why: Unrepaired, now: Timestamp) -> Sync {
    match &object.memory.read {
        None => Sync::look(ReleaseAction::Read { key: key.clone() }),
        Some(Read::Absent) if applied == Inventoried::Named => Sync::still(why.gone("the object was never made")),
        Some(Read::Absent) => Sync::still(why.gone("the object was deleted")),
        Some(Read::Found { deleting: true, at, .. }) => match look_again_at(object, *at, now) {
            Some(due) if now < due => Sync::until(why.gone("the object is being deleted"), due),
            _ => Sync::look(ReleaseAction::Read { key: key.clone() }),
        },
        // It was never marked: the takeover had yet to come, or it is somebody else's.
        Some(Read::Found {
            belongs: Belongs::Predecessor,
            ..
        }) => Sync::still(SyncState::Unverified),
        Some(Read::Found { .. }) if applied == Inventoried::Named => Sync::still(SyncState::Unverified),
        Some(Read::Found { .. }) => why.broken("the object has lost the mark of the release"),
    }
}

/// What the status says of an object that is there.
fn said(observed: &ReleaseObserved, key: &ObjectKey) -> SyncState {
    let passing = |error: &str| Unrepaired::ALL.iter().any(|why| error.starts_with(why.words()));
    match row(observed, key) {
        Some(row) if !row.error.is_empty() && !passing(&row.error) => SyncState::Unverified,
        Some(row) if row.digest.is_empty() => SyncState::Unverified,
        _ => SyncState::Synced,
    }
}
