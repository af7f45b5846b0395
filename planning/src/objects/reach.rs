//! What the operator has no right to see: kinds of an owner that it may not even list, so that it applies nothing of them.

use std::collections::BTreeSet;

use crds::resource::{Resource, SyncStatus};
use jiff::Timestamp;

use super::inventory::key_of;
use super::set::ObjectSet;
use super::wording::listed;
use crate::next::Next;
use crate::object_key::{GroupKind, ObjectKey};
use crate::unlisted::next_words;

impl ObjectSet<'_> {
    /// Whether the operator may not list the kind of an object, and nobody has said that he applied it. Nothing is applied to what no watch shows, and what
    /// nobody may look at cannot be deleted either: an owner that asked for it would never go.
    pub fn is_out_of_reach(&self, key: &ObjectKey) -> bool {
        self.forbidden.contains(&key.group_kind()) && !self.row(key).is_some_and(is_applied)
    }

    /// The kinds that may have objects of the owner which nobody has seen.
    pub fn unseen(&self) -> BTreeSet<GroupKind> {
        let unwatched = self.objects.iter();
        let unwatched = unwatched.filter(|(_, object)| object.served && !object.watched);
        let mut kinds: BTreeSet<GroupKind> = unwatched.map(|(key, _)| key.group_kind()).collect();
        kinds.extend(self.unlisted.iter().cloned());
        kinds.retain(|kind| {
            let rows = self.rows.iter();
            let named: Vec<&Resource> = rows.filter(|row| key_of(row).group_kind() == *kind).collect();
            // A kind that no row names may have had some before the status was lost.
            !self.forbidden.contains(kind) || named.is_empty() || named.into_iter().any(is_applied)
        });
        kinds
    }

    /// What people are told when an owner goes that asked for objects which the operator may not see; `None` for none.
    pub fn unreached(&self) -> Option<String> {
        let kinds: Vec<String> = self.forbidden.iter().map(ToString::to_string).collect();
        (!kinds.is_empty()).then(|| {
            format!(
                "goes without a look at objects of the kind {}, which the operator may not list: by its inventory it applied none",
                listed(&kinds, ", ", " and")
            )
        })
    }

    /// When to look what is said by then of watches that have not listed.
    pub fn next_of_watches(&self, now: Timestamp) -> Next {
        let unwatched = self.objects.values().any(|object| object.served && !object.watched);
        if unwatched || self.deleting && !self.unseen().is_empty() {
            next_words(now)
        } else {
            Next::Await
        }
    }
}

/// Whether a row tells of an object that was applied: by us with its digest, or by the Go operator, which calls synced what it applied.
fn is_applied(row: &Resource) -> bool {
    !row.digest.is_empty() || (row.status == Some(SyncStatus::Synced) && row.superseded_by.is_empty())
}
