//! What the operator has no right to see: kinds of a release that it may not even list, so that it applied nothing of them.

use std::collections::BTreeSet;

use super::inventory::{Inventoried, inventoried, key_of};
use super::observed::ReleaseObserved;
use super::wording::listed;
use crate::object_key::{GroupKind, ObjectKey};

/// Whether the operator may not list the kind of an object, and has not said that it applied it. Nothing is applied to what no watch shows, and what
/// nobody may look at cannot be deleted either: a release that asked for it would never go.
pub(super) fn is_out_of_reach(observed: &ReleaseObserved, key: &ObjectKey) -> bool {
    observed.forbidden.contains(&key.group_kind()) && !matches!(inventoried(observed, key), Inventoried::Applied(_))
}

/// The kinds that may have objects of the release which nobody has seen.
pub(super) fn unseen(observed: &ReleaseObserved) -> BTreeSet<GroupKind> {
    let unwatched = observed
        .objects
        .iter()
        .filter(|(_, object)| object.served && !object.watched);
    let mut kinds: BTreeSet<GroupKind> = unwatched.map(|(key, _)| key.group_kind()).collect();
    kinds.extend(observed.unlisted.iter().cloned());
    let rows = &observed.status.resources;
    let applied = rows.iter().filter(|row| !row.digest.is_empty());
    let applied: BTreeSet<GroupKind> = applied.map(|row| key_of(row).group_kind()).collect();
    kinds.retain(|kind| !observed.forbidden.contains(kind) || applied.contains(kind));
    kinds
}

/// What people are told when a release goes that asked for objects which the operator may not see; `None` for none.
pub fn unreached(observed: &ReleaseObserved) -> Option<String> {
    let kinds: Vec<String> = observed.forbidden.iter().map(ToString::to_string).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "goes without a look at objects of the kind {}, which the operator may not list: by its inventory it applied none",
            listed(&kinds, ", ", " and")
        )
    })
}
