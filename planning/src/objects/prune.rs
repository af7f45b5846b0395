//! What becomes of objects that nobody wants (any more): the guards, the limit.

use std::collections::{BTreeMap, BTreeSet};

use crds::resource::Resource;
use jiff::Timestamp;

use super::action::ObjectAction;
use super::decisions::{Asked, Decisions};
use super::inventory::{Inventoried, key_of};
use super::observed::{Attempt, Belongs, KindScope, ObjectObserved, Read};
use super::set::ObjectSet;
use super::sync::retry_at;
use super::terminating::look_again_at;
use crate::approval::{Doomed, Permission};
use crate::next::Next;
use crate::object_key::ObjectKey;
use crate::stored_data::is_definition;

/// What becomes of one object that nobody wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is not there (a 404 was seen, or its kind is not served): the inventory may forget it.
    Gone,
    /// It stays in the world and leaves the inventory: it is not ours (alone) to delete, or says that it wants to be kept.
    LeftAlone,
    /// It has to go.
    Going {
        /// What brings that nearer. None while the API server or a finalizer is at work.
        action: Option<ObjectAction>,
        /// When it is looked at again.
        next: Next,
    },
    /// Its deletion, or the look before it, failed and is tried again later.
    Failed {
        /// The API server's words.
        message: String,
        /// When it is tried again.
        next: Next,
    },
}

/// Decides about one leftover.
pub(super) fn fate(key: &ObjectKey, object: &ObjectObserved, inventoried: Inventoried<'_>, now: Timestamp) -> Fate {
    let cannot_exist = object.scope == KindScope::ClusterWide && !key.namespace.is_empty();
    if !object.served || cannot_exist {
        return Fate::Gone;
    }
    if let Some(failure) = &object.memory.failure
        && matches!(failure.tried, Attempt::Look | Attempt::Deletion)
        && let Some(retry_at) = retry_at(failure, now)
    {
        return Fate::Failed {
            message: failure.message.clone(),
            next: Next::At(retry_at),
        };
    }
    if object.shared {
        // Another owner wants it too and takes it over once this one is gone.
        return Fate::LeftAlone;
    }
    match &object.memory.read {
        // Also when a watch shows it: the guards need what only the object itself says.
        None => Fate::going(ObjectAction::Read { key: key.clone() }),
        Some(Read::Absent) => Fate::Gone,
        Some(Read::Found { keep, belongs, .. }) if *keep || !may_delete(belongs, object, inventoried) => {
            Fate::LeftAlone
        }
        Some(Read::Found { .. }) if holds_others(key) => Fate::LeftAlone,
        Some(Read::Found { deleting: true, at, .. }) => match look_again_at(object, *at, now) {
            Some(due) if now < due => Fate::Going {
                action: None,
                next: Next::At(due),
            },
            Some(_) => Fate::going(ObjectAction::Read { key: key.clone() }),
            None => Fate::Going {
                action: None,
                next: Next::Await,
            },
        },
        Some(Read::Found {
            uid, resource_version, ..
        }) => Fate::going(ObjectAction::Delete {
            key: key.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
        }),
    }
}

impl Fate {
    /// Whether nothing is left to do for the owner.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Gone | Self::LeftAlone)
    }

    pub(super) fn action(&self) -> Option<&ObjectAction> {
        match self {
            Self::Going { action, .. } => action.as_ref(),
            Self::Gone | Self::LeftAlone | Self::Failed { .. } => None,
        }
    }

    pub(super) fn next(&self) -> Next {
        match self {
            Self::Failed { next, .. } | Self::Going { next, .. } => *next,
            Self::Gone | Self::LeftAlone => Next::Await,
        }
    }

    /// The uid of what would be deleted now.
    fn doomed(&self) -> Option<&String> {
        match self {
            Self::Going {
                action: Some(ObjectAction::Delete { uid, .. }),
                ..
            } => Some(uid),
            _ => None,
        }
    }

    /// Whether it would be deleted is not known yet: it has to be looked at first, or that has failed and is tried again.
    pub(super) fn is_open(&self) -> bool {
        let is_look = matches!(
            self,
            Self::Going {
                action: Some(ObjectAction::Read { .. }),
                ..
            }
        );
        is_look || matches!(self, Self::Failed { .. })
    }

    fn going(action: ObjectAction) -> Self {
        Self::Going {
            action: Some(action),
            next: Next::Await,
        }
    }
}

/// What carries the mark of an owner that is no more is left to whoever applied it too.
fn may_delete(belongs: &Belongs, object: &ObjectObserved, inventoried: Inventoried<'_>) -> bool {
    match belongs {
        Belongs::Us | Belongs::Predecessor => true,
        Belongs::OtherOwner => {
            // Of one that goes already the inventory no longer says that it was applied.
            let is_going = inventoried == Inventoried::Named && object.is_going();
            object.holder.is_none() && (is_going || matches!(inventoried, Inventoried::Applied(_)))
        }
        Belongs::Stranger | Belongs::Nobody => false,
    }
}

/// Deleting one of these deletes other people's objects with it.
fn holds_others(key: &ObjectKey) -> bool {
    let namespace = key.group.is_empty() && key.kind == "Namespace";
    namespace || is_definition(&key.group_kind())
}

/// What becomes of leftovers now, and which of them stay because deleting so many needs an approval that is not there.
///
/// What has not been looked at counts as one more that would be deleted: looks that fail would take as many as the limit allows from one round to the next.
/// What was approved goes all the same.
pub(super) fn within_limit(set: &ObjectSet<'_>, fates: BTreeMap<ObjectKey, Fate>) -> Decisions {
    let doomed = fates.iter().filter_map(|(key, fate)| {
        Some(Doomed {
            uid: fate.doomed()?.clone(),
            name: key.clone(),
        })
    });
    let doomed: BTreeSet<Doomed<ObjectKey>> = doomed.collect();
    let open = fates.values().filter(|fate| fate.is_open()).count();
    let limit = set.prune.limit.of(set.objects.len()).saturating_sub(open);
    let is_recorded = |key: &ObjectKey| set.row(key).is_some_and(|row| row.prune_approved);
    let permission = set.approval().permission(&doomed, limit, is_recorded);
    let doomed: BTreeSet<ObjectKey> = doomed.into_iter().map(|doomed| doomed.name).collect();
    match permission {
        Permission::Given => Decisions {
            leftovers: fates,
            ..Decisions::default()
        },
        Permission::Unrecorded => Decisions {
            leftovers: fates,
            approved: doomed,
            ..Decisions::default()
        },
        Permission::Missing(digest) => {
            let others = fates.into_iter().filter(|(key, _)| !doomed.contains(key));
            Decisions {
                leftovers: others.collect(),
                asked: Some(Asked {
                    digest,
                    objects: doomed.len(),
                }),
                held: doomed,
                ..Decisions::default()
            }
        }
    }
}

/// The digest that the status will call approved, and in its rows the objects that this is about. What the owner wants again is none of them.
pub(super) fn record(set: &ObjectSet<'_>, decisions: &Decisions, rows: &mut [Resource]) -> Option<String> {
    let (digest, goes_on) = if decisions.approved.is_empty() {
        (set.approval().recorded(), true)
    } else {
        (set.prune.annotation, false)
    };
    for row in &mut *rows {
        let key = key_of(row);
        let is_named = decisions.approved.contains(&key) || goes_on && row.prune_approved;
        row.prune_approved = is_named && digest.is_some() && set.intent(&key).is_none();
    }
    digest
        .filter(|_| rows.iter().any(|row| row.prune_approved))
        .map(str::to_owned)
}
