//! What the status as it was read says of each object: the rows by which a release knows what it applied.

use crds::resource::Resource;

use super::observed::ReleaseObserved;
use crate::object_key::ObjectKey;

/// What the inventory says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inventoried<'row> {
    /// It does not name it.
    No,
    /// It names it; no intent of ours was applied yet.
    Named,
    /// It names it, and the intent with this digest was applied.
    Applied(&'row str),
}

impl<'row> Inventoried<'row> {
    /// What a row says, or that there is none.
    pub fn of(row: Option<&'row Resource>) -> Self {
        match row {
            None => Self::No,
            Some(row) if row.digest.is_empty() => Self::Named,
            Some(row) => Self::Applied(&row.digest),
        }
    }
}

/// The key of an inventory row.
pub fn key_of(row: &Resource) -> ObjectKey {
    ObjectKey::new(
        row.group.as_str(),
        row.kind.as_str(),
        row.namespace.as_str(),
        row.name.as_str(),
    )
}

/// What the inventory says of an object.
pub(super) fn inventoried<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Inventoried<'a> {
    Inventoried::of(row(observed, key))
}

/// The row of an object as the status has it.
pub(super) fn row<'a>(observed: &'a ReleaseObserved, key: &ObjectKey) -> Option<&'a Resource> {
    observed.status.resources.iter().find(|row| {
        row.name == key.name && row.kind == key.kind && row.namespace == key.namespace && row.group == key.group
    })
}
