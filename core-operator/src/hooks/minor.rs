//! Which hooks the Cluster API that is installed knows: it takes a list of handlers as a whole, and one that it does not know costs all of them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use operator_kit::failure::chain;
use planning::addon::HookSet;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::timeout;

/// For one look, well within the time that Cluster API gives us.
const LOOK_DEADLINE: Duration = Duration::from_secs(4);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLASSES: &str = "clusterclasses.cluster.x-k8s.io";

/// It is not known which hooks there are.
#[derive(Debug, thiserror::Error)]
pub(super) enum MinorError {
    /// The request could not be put together.
    #[error("failed to ask for the CRD {CLASSES}")]
    Build(#[source] kube::core::request::Error),
    /// The API server refused or did not answer.
    #[error("failed to list the CRD {CLASSES}")]
    List(#[source] Box<kube::Error>),
    /// It took too long.
    #[error("no answer within {LOOK_DEADLINE:?} to listing the CRD {CLASSES}")]
    Wait,
    /// It is not there.
    #[error("there is no CRD {CLASSES}; install Cluster API, or say with --hook-set which hooks it knows")]
    Find,
}

/// Knows the minor, as far as that matters for hooks.
pub(super) struct Minor {
    chosen: Option<HookSet>,
    client: Client,
    /// What was seen last.
    seen: Mutex<Option<HookSet>>,
}

impl Minor {
    /// `chosen` is what somebody has said.
    pub(super) fn new(chosen: Option<HookSet>, client: Client) -> Self {
        Self {
            chosen,
            client,
            seen: Mutex::default(),
        }
    }

    /// The hooks that Cluster API knows now. It asks when it starts and when an ExtensionConfig changes, so that there is no need to remember; what was seen last
    /// counts where the API server does not answer.
    pub(super) async fn hook_set(&self) -> Result<HookSet, MinorError> {
        if let Some(chosen) = self.chosen {
            return Ok(chosen);
        }
        let looked = timeout(LOOK_DEADLINE, self.look()).await;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match (looked.unwrap_or(Err(MinorError::Wait)), *seen) {
            (Ok(set), _) => {
                *seen = Some(set);
                Ok(set)
            }
            (Err(error), Some(before)) => {
                tracing::warn!(error = %chain(&error), "the hooks of Cluster API are taken to be those of the last look");
                Ok(before)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// A list, for which the operator has the right anyway.
    async fn look(&self) -> Result<HookSet, MinorError> {
        let only = ListParams::default().fields(&format!("metadata.name={CLASSES}"));
        let request = Request::new(DEFINITIONS).list(&only).map_err(MinorError::Build)?;
        let answer = self.client.request::<Definitions>(request).await;
        let definitions = answer.map_err(|source| MinorError::List(Box::new(source)))?.items;
        let classes = definitions.first().ok_or(MinorError::Find)?;
        Ok(HookSet::of_classes(classes.has_upgrade()))
    }
}

/// Of CRDs what says the minor; of the rest, which is large, nothing is kept.
#[derive(Deserialize)]
struct Definitions {
    items: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    storage: bool,
    #[serde(default)]
    schema: Schema,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Schema {
    #[serde(rename = "openAPIV3Schema")]
    root: Level,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Level {
    properties: Properties,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    spec: Option<Box<Level>>,
    upgrade: Option<IgnoredAny>,
}

impl Definition {
    /// Whether the version that is stored has the field `spec.upgrade`.
    fn has_upgrade(&self) -> bool {
        let mut stored = self.spec.versions.iter().filter(|version| version.storage);
        stored.any(|version| {
            let spec = version.schema.root.properties.spec.as_ref();
            spec.is_some_and(|spec| spec.properties.upgrade.is_some())
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn has_upgrade(versions: &Value) -> bool {
        let definition =
            json!({ "metadata": { "name": CLASSES }, "spec": { "group": "cluster.x-k8s.io", "versions": versions } });
        let definition: Definition = serde_json::from_value(definition).expect("a CRD");
        definition.has_upgrade()
    }

    #[test]
    fn the_version_that_is_stored_says_the_minor() {
        let version = |storage: bool, fields: &[&str]| {
            let fields: serde_json::Map<String, Value> = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({ "type": "object" })))
                .collect();
            let spec = json!({ "type": "object", "properties": fields });
            let schema =
                json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": {} } } });
            json!({ "name": "v", "served": true, "storage": storage, "schema": schema })
        };
        let (old, new) = (["controlPlane", "workers"], ["controlPlane", "upgrade"]);
        assert!(has_upgrade(&json!([version(false, &old), version(true, &new)])));
        assert!(!has_upgrade(&json!([version(true, &old), version(false, &new)])));
        assert!(!has_upgrade(&json!([{ "name": "v", "storage": true }])));
    }
}
