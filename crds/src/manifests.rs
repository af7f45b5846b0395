//! What is installed into a management cluster: the CRDs and the ClusterRoles of people.
//!
//! Use these CRDs and not `ClusterStack::crd()`: labels and the finish of the schema are added here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

use crate::{ClusterAddon, ClusterStack, ClusterStackRelease, labels};

/// The CRDs of the three kinds, in the order ClusterStack, ClusterStackRelease, ClusterAddon.
pub fn custom_resource_definitions() -> [CustomResourceDefinition; 3] {
    [ClusterStack::crd(), ClusterStackRelease::crd(), ClusterAddon::crd()].map(finished)
}

fn finished(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let labels = [
        (labels::PROVIDER, labels::PROVIDER_CLUSTER_STACK_OPERATOR),
        (labels::CONTRACT_V1BETA1, "v1beta1"),
        (labels::CLUSTERCTL, ""),
        (labels::CLUSTERCTL_MOVE, ""),
    ];
    crd.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    // The shape of the Go operator's CRDs: an absent category list, and no null anywhere.
    crd.spec.names.categories = None;
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            refuse_null(schema);
        }
    }
    crd
}

/// Optional fields come out of the derive as nullable. We never write null, and with it a default would not fill in.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        refuse_null(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => refuse_null(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(refuse_null),
        None => {}
    }
}
