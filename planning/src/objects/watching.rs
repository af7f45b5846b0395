//! What becomes of objects that are looked at and not written: those of an owner whose files cannot be had, and those of one that is to go and has to
//! stay for now. What was made for the latter now, nobody might remove.

use std::collections::BTreeMap;

use crds::policy::DriftPolicy;
use jiff::Timestamp;

use super::action::ObjectAction;
use super::decisions::Decisions;
use super::inventory::{Inventoried, key_of};
use super::observed::{Belongs, ObjectObserved, Read};
use super::set::{ObjectSet, OwnerKind};
use super::sync::{Sync, SyncState, failed_look, marked, refused, settled, superseded};
use super::terminating::look_again_at;
use crate::object_key::ObjectKey;

/// Why objects are not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrepaired {
    /// Nobody knows how they have to be.
    WithoutFiles,
    /// The owner is to go.
    Deleting,
}

impl Unrepaired {
    const ALL: [Self; 2] = [Self::WithoutFiles, Self::Deleting];

    /// How words about an object begin that are true only until it is there again, or the owner is otherwise. An add-on has the files of a release too.
    fn words(self, owner: OwnerKind) -> String {
        match self {
            Self::WithoutFiles => "cannot be repaired without the files of the release".to_owned(),
            Self::Deleting => format!("is not repaired, because the {owner} is being deleted"),
        }
    }
}

impl ObjectSet<'_> {
    /// What becomes of the objects where none may be written: it is told how those are that the inventory names. What an intent asks for and nobody made
    /// is nothing that could stay. Of an owner that is to go, what nobody named and a watch shows stays too.
    pub fn watched(&self, why: Unrepaired, now: Timestamp) -> Decisions {
        let nothing = ObjectObserved::default();
        let keys = self.rows.iter().map(key_of);
        let wanted: BTreeMap<ObjectKey, Sync> = keys
            .map(|key| {
                let object = self.objects.get(&key).unwrap_or(&nothing);
                let sync = Look { set: self, why, now }.at(&key, object);
                (key, sync)
            })
            .collect();
        let unnamed = self
            .objects
            .iter()
            .filter(|(key, object)| why == Unrepaired::Deleting && object.is_ours() && !wanted.contains_key(*key));
        Decisions {
            held: unnamed.map(|(key, _)| key.clone()).collect(),
            wanted,
            ..Decisions::default()
        }
    }
}

/// What one look at an object depends on.
struct Look<'a> {
    set: &'a ObjectSet<'a>,
    why: Unrepaired,
    now: Timestamp,
}

impl Look<'_> {
    fn at(&self, key: &ObjectKey, object: &ObjectObserved) -> Sync {
        let Self { set, now, .. } = *self;
        if !object.served {
            return Sync::still(SyncState::KindMissing);
        }
        if !object.watched {
            return Sync::still(SyncState::Unverified);
        }
        let applied = set.inventoried(key);
        let as_applied = match applied {
            Inventoried::Applied(digest) => Some(digest),
            Inventoried::No | Inventoried::Named => None,
        };
        if let Some(holder) = &object.holder
            && !object.is_ours()
            && holder.outranks(as_applied)
        {
            return superseded(holder);
        }
        let intent = set.intent(key);
        let refused = intent.and_then(|intent| refused(intent, object, applied, now));
        if let Some(wait) = refused.or_else(|| failed_look(object, now)) {
            return wait;
        }
        let Some(seen) = &object.seen else {
            return self.unseen(key, object, applied);
        };
        match &object.holder {
            _ if seen.deleting => Sync::still(self.gone("the object is being deleted")),
            _ if seen.ours => match intent {
                Some(intent) => {
                    let drift = match set.drift {
                        DriftPolicy::Correct | DriftPolicy::Warn => DriftPolicy::Warn,
                        DriftPolicy::Ignore => DriftPolicy::Ignore,
                    };
                    let sync = marked(&ObjectSet { drift, ..*set }, key, intent, object, seen, now);
                    if sync.is_apply() {
                        let owner = set.owner;
                        return self.broken(&format!("the {owner} asks for another form of the object by now"));
                    }
                    sync
                }
                None => Sync {
                    // Whether it still is as applied nobody can tell; what was said of it stands.
                    state: said(set, key),
                    ..settled(key, object, seen, now)
                },
            },
            Some(holder) => match &holder.digest {
                None => Sync::still(SyncState::Unverified),
                digest if digest.as_deref() == as_applied => settled(key, object, seen, now),
                Some(_) => self.broken(&format!("the object belongs to release {} now", holder.place())),
            },
            None => self.broken(&format!("the object carries the mark of another {}", set.owner)),
        }
    }

    /// No watch shows the object with a mark.
    fn unseen(&self, key: &ObjectKey, object: &ObjectObserved, applied: Inventoried<'_>) -> Sync {
        match &object.memory.read {
            None => Sync::look(ObjectAction::Read { key: key.clone() }),
            Some(Read::Absent) if applied == Inventoried::Named => Sync::still(self.gone("the object was never made")),
            Some(Read::Absent) => Sync::still(self.gone("the object was deleted")),
            Some(Read::Found { deleting: true, at, .. }) => match look_again_at(object, *at, self.now) {
                Some(due) if self.now < due => Sync::until(self.gone("the object is being deleted"), due),
                _ => Sync::look(ObjectAction::Read { key: key.clone() }),
            },
            // It was never marked: the takeover had yet to come, or it is somebody else's.
            Some(Read::Found {
                belongs: Belongs::Predecessor,
                ..
            }) => Sync::still(SyncState::Unverified),
            Some(Read::Found { .. }) if applied == Inventoried::Named => Sync::still(SyncState::Unverified),
            Some(Read::Found { .. }) => {
                let owner = self.set.owner;
                self.broken(&format!("the object has lost the mark of the {owner}"))
            }
        }
    }

    fn gone(&self, what: &str) -> SyncState {
        let message = format!("{}: {what}", self.why.words(self.set.owner));
        SyncState::Missing { message }
    }

    fn broken(&self, what: &str) -> Sync {
        let message = format!("{}: {what}", self.why.words(self.set.owner));
        Sync::still(SyncState::Failed { message })
    }
}

/// What the status says of an object that is there.
fn said(set: &ObjectSet<'_>, key: &ObjectKey) -> SyncState {
    let passing = |error: &str| {
        let mut all = Unrepaired::ALL.iter();
        all.any(|why| error.starts_with(&why.words(set.owner)))
    };
    match set.row(key) {
        Some(row) if !row.error.is_empty() && !passing(&row.error) => SyncState::Unverified,
        Some(row) if row.digest.is_empty() => SyncState::Unverified,
        _ => SyncState::Synced,
    }
}
