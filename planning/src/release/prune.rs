//! What becomes of objects that the rendering does not want (any more): the guards, the limit, the order.

use std::collections::{BTreeMap, BTreeSet};

use crds::policy::PruneLimit;
use crds::resource::Resource;
use jiff::Timestamp;

use super::action::ReleaseAction;
use super::inventory::{Inventoried, key_of, row};
use super::object::{look_again_at, retry_at};
use super::objects::Objects;
use super::observed::{Attempt, Belongs, KindScope, ObjectObserved, Read, ReleaseObserved};
use super::rows::intent;
use crate::approval::{Approval, Doomed, Permission};
use crate::next::Next;
use crate::object_key::ObjectKey;
use crate::stored_data::is_definition;

/// What becomes of one leftover object.
pub(super) enum Fate {
    /// It is not there (a 404 was seen, or its kind is not served): the inventory may forget it.
    Gone,
    /// It stays in the world and leaves the inventory: it is not ours (alone) to delete, or says that it wants to be kept.
    LeftAlone,
    /// It has to go.
    Going {
        /// What brings that nearer. None while the API server or a finalizer is at work.
        action: Option<ReleaseAction>,
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
        // Another release wants it too and takes it over once this one is gone.
        return Fate::LeftAlone;
    }
    match &object.memory.read {
        // Also when a watch shows it: the guards need what only the object itself says.
        None => Fate::going(ReleaseAction::Read { key: key.clone() }),
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
            Some(_) => Fate::going(ReleaseAction::Read { key: key.clone() }),
            None => Fate::Going {
                action: None,
                next: Next::Await,
            },
        },
        Some(Read::Found {
            uid, resource_version, ..
        }) => Fate::going(ReleaseAction::Delete {
            key: key.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
        }),
    }
}

impl Fate {
    /// The uid of what would be deleted now.
    fn doomed(&self) -> Option<&String> {
        match self {
            Self::Going {
                action: Some(ReleaseAction::Delete { uid, .. }),
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
                action: Some(ReleaseAction::Read { .. }),
                ..
            }
        );
        is_look || matches!(self, Self::Failed { .. })
    }

    fn going(action: ReleaseAction) -> Self {
        Self::Going {
            action: Some(action),
            next: Next::Await,
        }
    }
}

/// What carries the mark of a release that is no more is left to whoever applied it too.
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
pub(super) fn within_limit(observed: &ReleaseObserved, fates: BTreeMap<ObjectKey, Fate>, limit: PruneLimit) -> Objects {
    let doomed = fates.iter().filter_map(|(key, fate)| {
        Some(Doomed {
            uid: fate.doomed()?.clone(),
            name: key.clone(),
        })
    });
    let doomed: BTreeSet<Doomed<ObjectKey>> = doomed.collect();
    let open = fates.values().filter(|fate| fate.is_open()).count();
    let limit = limit.of(observed.objects.len()).saturating_sub(open);
    let is_recorded = |key: &ObjectKey| row(observed, key).is_some_and(|row| row.prune_approved);
    let permission = approval(observed).permission(&doomed, limit, is_recorded);
    let doomed: BTreeSet<ObjectKey> = doomed.into_iter().map(|doomed| doomed.name).collect();
    match permission {
        Permission::Given => Objects {
            leftovers: fates,
            ..Objects::default()
        },
        Permission::Unrecorded => Objects {
            leftovers: fates,
            approved: doomed,
            ..Objects::default()
        },
        Permission::Missing(digest) => {
            let others = fates.into_iter().filter(|(key, _)| !doomed.contains(key));
            Objects {
                leftovers: others.collect(),
                held: doomed,
                asked: Some(digest),
                ..Objects::default()
            }
        }
    }
}

/// The digest that the status will call approved, and in its rows the objects that this is about. What the release wants again is none of them.
pub(super) fn record(observed: &ReleaseObserved, objects: &Objects, rows: &mut [Resource]) -> Option<String> {
    let (digest, goes_on) = if objects.approved.is_empty() {
        (approval(observed).recorded(), true)
    } else {
        (observed.approved_prune.as_deref(), false)
    };
    for row in &mut *rows {
        let key = key_of(row);
        let is_named = objects.approved.contains(&key) || goes_on && row.prune_approved;
        row.prune_approved = is_named && digest.is_some() && intent(observed, &key).is_none();
    }
    digest
        .filter(|_| rows.iter().any(|row| row.prune_approved))
        .map(str::to_owned)
}

fn approval(observed: &ReleaseObserved) -> Approval<'_> {
    Approval {
        annotation: observed.approved_prune.as_deref(),
        status: observed.status.approved_prune.as_deref(),
    }
}
