//! Pieces of schema that types of other crates do not bring along.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
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

/// The rule of the field that says where an image lies.
pub(crate) fn of_place() -> Rule {
    Rule::new("self == oldSelf")
        .message("an image stays where it is; delete the object, and make one for the other place")
}

/// The rule of a number of attempts: it says whose what is beside it is, which what comes late must not replace.
pub(crate) fn never_falls() -> Rule {
    Rule::new("self >= oldSelf").message("what a later attempt has written stays")
}

/// One of a few words, for a field that need not be there. Through an `Option` the description of the field would give way to that of the type.
pub(crate) fn choice<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    schema.remove("description");
    schema
}

/// A length of time as `spec.interval` of a stack has it, which `duration()` of CEL and jiff read alike.
pub(crate) const LENGTH_OF_TIME: &str = r"^([0-9]+(\.[0-9]+)?(s|m|h))+$";

/// An amount such as `2`, `500m` or `20Gi`, in the words of Kubernetes and without its page-long description of them.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    // As Kubernetes' own CRD generator has it; the pattern binds texts only.
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    })
}

/// Amounts by what they are of, such as `cpu` and `memory`.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = BTreeMap::<String, String>::json_schema(generator);
    schema.insert("additionalProperties".to_owned(), quantity(generator).to_value());
    schema
}
