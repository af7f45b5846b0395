//! What the operator has no right to see: kinds of a release that it may not even list, so that it applies nothing of them.

use std::collections::BTreeSet;

use crds::resource::{Resource, SyncStatus};

use super::inventory::{key_of, row};
use super::observed::ReleaseObserved;
use super::wording::listed;
use crate::object_key::{GroupKind, ObjectKey};

/// Whether the operator may not list the kind of an object, and nobody has said that he applied it. Nothing is applied to what no watch shows, and what
/// nobody may look at cannot be deleted either: a release that asked for it would never go.
pub(super) fn is_out_of_reach(observed: &ReleaseObserved, key: &ObjectKey) -> bool {
    observed.forbidden.contains(&key.group_kind()) && !row(observed, key).is_some_and(is_applied)
}

/// Whether a row tells of an object that was applied: by us with its digest, or by the Go operator, which calls synced what it applied.
fn is_applied(row: &Resource) -> bool {
    !row.digest.is_empty() || (row.status == Some(SyncStatus::Synced) && row.superseded_by.is_empty())
}

/// The kinds that may have objects of the release which nobody has seen.
pub(super) fn unseen(observed: &ReleaseObserved) -> BTreeSet<GroupKind> {
    let unwatched = observed
        .objects
        .iter()
        .filter(|(_, object)| object.served && !object.watched);
    let mut kinds: BTreeSet<GroupKind> = unwatched.map(|(key, _)| key.group_kind()).collect();
    kinds.extend(observed.unlisted.iter().cloned());
    kinds.retain(|kind| {
        let rows = observed.status.resources.iter();
        let named: Vec<&Resource> = rows.filter(|row| key_of(row).group_kind() == *kind).collect();
        // A kind that no row names may have had some before the status was lost.
        !observed.forbidden.contains(kind) || named.is_empty() || named.into_iter().any(is_applied)
    });
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
