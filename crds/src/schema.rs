//! Pieces of schema that types of other crates do not bring along.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use crate::{PROVIDER_GROUP, cluster_stack_release::FOREIGN_PROVIDER_REF};

/// A reference is one value: server-side apply replaces it as a whole, as with the Go operator's CRDs.
pub(crate) fn atomic_object_reference(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = ObjectReference::json_schema(generator);
    schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    schema
}

/// The rule of a reference to an object of a provider.
pub(crate) fn of_provider_group() -> Rule {
    Rule::new(format!(
        "has(self.apiVersion) && self.apiVersion.startsWith('{PROVIDER_GROUP}/') && has(self.kind)"
    ))
    .message(FOREIGN_PROVIDER_REF)
}

/// The rule of a field that keeps its first value.
pub(crate) fn immutable() -> Rule {
    Rule::new("self == oldSelf").message("field is immutable")
}
