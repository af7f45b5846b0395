//! Inventories as the Go operator wrote them: a row names no namespace where the manifest names none. Ours say where the object is.

use std::collections::BTreeMap;

use crds::resource::Resource;
use kube::discovery::Scope;
use operator_kit::object::{GroupKind, ObjectKey};
use planning::release::key_of;

use crate::context::Context;

/// Completes the rows of a release in this namespace. A kind that is not served keeps its rows as they are: it may have no namespaces.
pub(super) async fn locate(context: &Context, namespace: &str, rows: &mut [Resource]) {
    for row in rows.iter_mut().filter(|row| row.namespace.is_empty()) {
        let kind = GroupKind::new(row.group.as_str(), row.kind.as_str());
        if let Ok(Some(resolved)) = context.discovery.resolve_kind(&kind).await
            && resolved.scope == Scope::Namespaced
        {
            namespace.clone_into(&mut row.namespace);
        }
    }
}

/// The key of a row of another release in this namespace, among objects whose keys are complete.
pub(super) fn key_among<T>(objects: &BTreeMap<ObjectKey, T>, namespace: &str, row: &Resource) -> ObjectKey {
    let key = key_of(row);
    if !row.namespace.is_empty() || objects.contains_key(&key) {
        return key;
    }
    ObjectKey::new(key.group, key.kind, namespace, key.name)
}
