//! What the status as it was read says of each object: the rows by which an owner knows what it applied.

use crds::resource::Resource;

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
