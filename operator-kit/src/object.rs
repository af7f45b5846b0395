//! The identity of an object of any kind is `planning`'s: one type for inventories, watches and writes.
//!
//! An empty namespace means a cluster-scoped object. (kube wants an `Option`; [`namespace`] makes it one.)

use kube::core::GroupVersionKind;
pub use planning::object_key::{GroupKind, ObjectKey, ObjectRef};

/// The kind without its version.
pub fn group_kind(gvk: &GroupVersionKind) -> GroupKind {
    GroupKind::new(gvk.group.as_str(), gvk.kind.as_str())
}

/// The namespace as kube takes it: `None` for objects of cluster-scoped kinds.
pub fn namespace(key: &ObjectKey) -> Option<&str> {
    (!key.namespace.is_empty()).then_some(key.namespace.as_str())
}
