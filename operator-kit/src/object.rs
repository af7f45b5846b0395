//! The identity of an object of any kind is `planning`'s: one type for inventories, watches and writes.
//!
//! An empty namespace means a cluster-scoped object. (kube wants an `Option`; [`namespace`] makes it one.)

use kube::api::DynamicObject;
use kube::core::{GroupVersionKind, TypeMeta};
pub use planning::object_key::{GroupKind, ObjectKey, ObjectRef};
use serde_json::{Map, Value};

/// The kind without its version.
pub fn group_kind(gvk: &GroupVersionKind) -> GroupKind {
    GroupKind::new(gvk.group.as_str(), gvk.kind.as_str())
}

/// An object as JSON, of which nothing is there twice on the way: some take much memory.
pub fn json_of(object: DynamicObject) -> Value {
    let DynamicObject { types, metadata, data } = object;
    let mut fields = match data {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Some(TypeMeta { api_version, kind }) = types {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), kind.into());
    }
    // All of it is texts, numbers and JSON, and can be written.
    let metadata = serde_json::to_value(metadata).unwrap_or_default();
    fields.insert("metadata".to_owned(), metadata);
    fields.into()
}

/// The namespace as kube takes it: `None` for objects of cluster-scoped kinds.
pub fn namespace(key: &ObjectKey) -> Option<&str> {
    (!key.namespace.is_empty()).then_some(key.namespace.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_the_json_that_it_was_read_from() {
        for object in [
            json!({
                "apiVersion": "example.org/v1", "kind": "Lathe", "spec": { "a": [1] }, "status": {},
                "metadata": { "name": "a", "labels": { "b": "c" }, "managedFields": [{ "manager": "d", "fieldsV1": { "f:spec": {} } }] },
            }),
            json!({ "metadata": {} }),
        ] {
            let read: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
            assert_eq!(json_of(read), object);
        }
    }
}
