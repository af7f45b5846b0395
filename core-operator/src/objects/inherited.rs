//! Inventories as the Go operator wrote them: a row names no namespace where the manifest names none. Ours say where the object is.

use crds::resource::Resource;
use kube::discovery::Scope;
use operator_kit::object::GroupKind;

use super::place::Place;

/// Completes the rows of an owner whose objects are in this namespace where a manifest does not say so. A kind that is not served keeps its rows as they are: it may have no namespaces.
pub(crate) async fn locate(place: &Place, namespace: &str, rows: &mut [Resource]) {
    for row in rows.iter_mut().filter(|row| row.namespace.is_empty()) {
        let kind = GroupKind::new(row.group.as_str(), row.kind.as_str());
        if let Ok(Some(resolved)) = place.discovery.resolve_kind(&kind).await
            && resolved.scope == Scope::Namespaced
        {
            namespace.clone_into(&mut row.namespace);
        }
    }
}
