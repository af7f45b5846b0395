//! Everything that is installed as YAML, for one operator.

use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::builds::network_policy_of_builds;
use super::certificates::certificates;
use super::hooks::{extension_config, hook_service};
use super::webhooks::{validating_webhook_configuration, webhook_service};
use super::{
    cluster_roles, core_operator_roles, custom_resource_definitions, provider_definitions, provider_operator_roles,
};
use crate::providers::Provider;

/// What is installed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter)]
pub enum Part {
    /// The CRDs of stacks, releases and add-ons.
    Definitions,
    /// The roles of people and of the operator.
    Roles,
    /// Service and configuration of the webhooks, where the operator serves them.
    Webhooks,
    /// Service and ExtensionConfig of the lifecycle hooks, where the operator answers them.
    Hooks,
    /// The certificates of webhooks and hooks, where cert-manager runs.
    Certificates,
    /// The CRDs of the provider for OpenStack.
    OpenStack,
    /// The CRDs of the provider that has images as files.
    FileStore,
    /// The CRDs of the provider that looks for images in registries.
    Docker,
    /// The roles of the operator of the providers.
    ProviderRoles,
    /// What the Pods of Jobs may connect to. In no namespace: of use in each one whose images are built.
    Builds,
}

/// Where an operator is, and whom it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// The namespace of the operator.
    pub namespace: String,
    /// The namespaces of the Clusters whose lifecycle hooks it is asked about; all when empty.
    pub clusters: Vec<String>,
}

impl Installation {
    /// One in this namespace, for all Clusters.
    pub fn in_namespace(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            clusters: Vec::new(),
        }
    }
}

/// A manifest cannot be written.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It is no JSON.
    #[error("failed to write the manifest {name} as JSON")]
    Json {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// It is no YAML.
    #[error("failed to write the manifest {name} as YAML")]
    Yaml {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: serde_yaml::Error,
    },
}

impl Part {
    /// Its manifests in the order in which they can be applied: a name for the file of each, without an ending, and YAML that readers of
    /// YAML 1.1 such as kubectl understand alike. What is in a namespace is in that of the operator.
    pub fn files(self, installation: &Installation) -> Result<Vec<(String, String)>, ManifestError> {
        let Installation { namespace, clusters } = installation;
        let manifests = match self {
            Self::Definitions => of_definitions(&custom_resource_definitions())?,
            Self::OpenStack => of_definitions(&provider_definitions(Provider::OpenStack))?,
            Self::FileStore => of_definitions(&provider_definitions(Provider::FileStore))?,
            Self::Docker => of_definitions(&provider_definitions(Provider::Docker))?,
            Self::Roles => of_roles(cluster_roles().into_iter().chain(core_operator_roles()))?,
            Self::ProviderRoles => of_roles(provider_operator_roles())?,
            Self::Builds => {
                let name = "networkpolicy_builds";
                vec![(name.to_owned(), value(name, &network_policy_of_builds())?)]
            }
            Self::Webhooks => {
                let (service, configuration) = ("service", "validating_webhook_configuration");
                vec![
                    (service.to_owned(), value(service, &webhook_service(namespace))?),
                    (
                        configuration.to_owned(),
                        value(configuration, &validating_webhook_configuration(namespace))?,
                    ),
                ]
            }
            Self::Hooks => {
                let (service, configuration) = ("service", "extension_config");
                let clusters = clusters.iter().map(String::as_str);
                vec![
                    (service.to_owned(), value(service, &hook_service(namespace))?),
                    (configuration.to_owned(), extension_config(namespace, clusters)),
                ]
            }
            Self::Certificates => {
                let named = certificates(namespace).into_iter().map(|manifest| {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
                    let name = format!("{}_{}", text(&manifest["kind"]), text(&manifest["metadata"]["name"]));
                    (name, manifest)
                });
                named.collect()
            }
        };
        manifests
            .into_iter()
            .map(|(name, manifest)| match yaml(&manifest) {
                Ok(text) => Ok((name, text)),
                Err(source) => Err(ManifestError::Yaml { name, source }),
            })
            .collect()
    }
}

fn of_definitions(definitions: &[CustomResourceDefinition]) -> Result<Vec<(String, Value)>, ManifestError> {
    let named = definitions.iter().map(|definition| {
        let name = format!("{}_{}", definition.spec.group, definition.spec.names.plural);
        Ok((name.clone(), value(&name, definition)?))
    });
    named.collect()
}

fn of_roles(roles: impl Iterator<Item = ClusterRole>) -> Result<Vec<(String, Value)>, ManifestError> {
    let named = roles.map(|role| {
        let name = format!("role_{}", role.metadata.name.as_deref().unwrap_or_default());
        Ok((name.clone(), value(&name, &role)?))
    });
    named.collect()
}

fn value(name: &str, manifest: &impl Serialize) -> Result<Value, ManifestError> {
    serde_json::to_value(manifest).map_err(|source| ManifestError::Json {
        name: name.to_owned(),
        source,
    })
}

/// kubectl reads YAML 1.1, where a plain `Off` or `No` is a boolean; the serializer writes YAML 1.2 and would not quote it.
fn yaml(manifest: &Value) -> Result<String, serde_yaml::Error> {
    let yaml = serde_yaml::to_string(manifest)?;
    Ok(yaml.lines().map(|line| quoted_for_yaml_1_1(line) + "\n").collect())
}

fn quoted_for_yaml_1_1(line: &str) -> String {
    for separator in [": ", "- "] {
        if let Some((before, scalar)) = line.rsplit_once(separator)
            && is_boolean_in_yaml_1_1(scalar)
        {
            return format!("{before}{separator}'{scalar}'");
        }
    }
    line.to_owned()
}

/// The words beyond `true` and `false`, which the serializer knows.
fn is_boolean_in_yaml_1_1(scalar: &str) -> bool {
    matches!(
        scalar,
        "y" | "Y" | "yes" | "Yes" | "YES" | "n" | "N" | "no" | "No" | "NO" | "on" | "On" | "ON" | "off" | "Off" | "OFF"
    )
}
