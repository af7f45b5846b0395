//! What is installed into a management cluster: the CRDs, the `ClusterRole`s of people and of the operators, the webhooks.
//!
//! Use these CRDs and not `ClusterStack::crd()`: labels and the finish of the schema are added here. `crds/yaml` holds the same as files,
//! `crds/providers` the kinds of providers of node images, the roles of their operator and what builds may connect to, `crds/webhooks` and `crds/hooks` what is of use only where the operator serves webhooks and
//! lifecycle hooks, `crds/cert-manager` their certificates.

mod builds;
mod certificates;
mod files;
mod hooks;
mod operator;
mod provider_operator;
mod providers;
mod roles;
mod webhooks;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

pub use self::builds::network_policy_of_builds;
pub use self::files::{Installation, ManifestError, Part};
pub use self::hooks::{extension_config, hook_service};
pub use self::operator::{OPERATOR_RIGHTS, OperatorRight, OperatorRole, VERBS_OF_OBJECTS, core_operator_roles};
pub use self::provider_operator::{PROVIDER_OPERATOR_RIGHTS, ProviderOperatorRole, provider_operator_roles};
pub use self::providers::provider_definitions;
pub use self::roles::cluster_roles;
pub use self::webhooks::{validating_webhook_configuration, webhook_service};
use crate::{ClusterAddon, ClusterStack, ClusterStackRelease, labels};

/// Where the operator is installed unless somebody says otherwise: where the Go operator is.
pub const NAMESPACE: &str = "cso-system";

/// The CRDs of the three kinds, in the order ClusterStack, ClusterStackRelease, ClusterAddon.
pub fn custom_resource_definitions() -> [CustomResourceDefinition; 3] {
    [ClusterStack::crd(), ClusterStackRelease::crd(), ClusterAddon::crd()]
        .map(|crd| finished(crd, labels::PROVIDER_CLUSTER_STACK_OPERATOR))
}

/// With the labels and the finish that all of our CRDs have.
fn finished(mut crd: CustomResourceDefinition, provider: &str) -> CustomResourceDefinition {
    let labels = [
        (labels::PROVIDER, provider),
        (labels::CONTRACT_V1BETA1, "v1beta1"),
        (labels::CLUSTERCTL, ""),
        (labels::CLUSTERCTL_MOVE_HIERARCHY, ""),
    ];
    crd.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    // The derive writes an empty list, which the API server drops: whoever compares would see a difference for ever.
    crd.spec.names.categories = None;
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            finish_schema(schema);
        }
    }
    crd
}

/// Optional fields come out of the derive as nullable. The CRDs of the Go operator have none, and a default does not fill in for a null that
/// is allowed. Line breaks inside a paragraph of a description are those of our source text.
fn finish_schema(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(description) = schema.description.as_mut() {
        let paragraphs: Vec<String> = description
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect();
        *description = paragraphs.join("\n\n");
    }
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        finish_schema(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => finish_schema(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(finish_schema),
        None => {}
    }
}
