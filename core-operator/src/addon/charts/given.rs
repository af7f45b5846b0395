//! The Secrets and ConfigMaps that a Cluster takes values from: read when values are made, and only where whoever may write them allows it.

use crds::labels::VALUES_FROM;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ObjectMeta;
use kube::{Api, Client};
use planning::addon::{Holder, HolderKind, ValuesFrom, ValuesFromError, Withheld, is_given, values_from};
use rendering::ValuesDocument;
use serde_json::Value;

/// What a Cluster was given for the values of its charts, in the order of its annotation. Nothing of it is told.
#[derive(Default)]
pub(super) struct Given {
    named: Vec<ValuesFrom>,
    /// What came of each of them.
    documents: Vec<Result<Document, GivenError>>,
}

struct Document {
    /// As errors have it.
    name: String,
    text: Vec<u8>,
}

/// Why something that a Cluster names is not there. What the API server says of a Secret may repeat it, so its code alone is told.
#[derive(Debug, thiserror::Error)]
pub(super) enum GivenError {
    /// The annotation cannot be read.
    #[error(transparent)]
    Annotation(#[from] ValuesFromError),
    /// The API server did not give it.
    #[error(
        "failed to read the {holder}, which the annotation {VALUES_FROM} of the Cluster names{}; it is tried again",
        code.map(|code| format!(": the API server answers with the code {code}")).unwrap_or_default()
    )]
    Read {
        /// Which.
        holder: Holder,
        /// What the API server answered, if it did.
        code: Option<u16>,
    },
    /// It is not there (yet, or any more).
    #[error(
        "the {holder}, which the annotation {VALUES_FROM} of the Cluster names, is not in the namespace of the Cluster; it is looked for again"
    )]
    Missing {
        /// Which.
        holder: Holder,
    },
    /// It is not for this.
    #[error("no values are taken from the {holder}, which the annotation {VALUES_FROM} of the Cluster names: {why}")]
    Withheld {
        /// Which.
        holder: Holder,
        /// Why not.
        why: Withheld,
    },
    /// It is there, and has nothing under the key.
    #[error(
        "the {holder}, which the annotation {VALUES_FROM} of the Cluster names, has no key {key}: name another key, or add it"
    )]
    NoKey {
        /// Which.
        holder: Holder,
        /// The key.
        key: String,
    },
}

impl GivenError {
    /// Whether it may be otherwise when it is tried again, without anybody having changed the Cluster.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Annotation(_) => false,
            // A watch tells of those that have the label; who else comes or changes is found this way.
            Self::Read { .. } | Self::Missing { .. } | Self::Withheld { .. } | Self::NoKey { .. } => true,
        }
    }
}

impl Given {
    /// What lies over the values of a chart, or why some of that cannot be taken.
    pub(super) fn of(&self, chart: &str) -> Result<Vec<ValuesDocument<'_>>, &GivenError> {
        let all = self.named.iter().zip(&self.documents);
        let own = all.filter(|(named, _)| named.chart.as_deref().is_none_or(|of| of == chart));
        own.map(|(_, document)| document.as_ref().map(Document::document))
            .collect()
    }

    /// All of it that can be taken.
    pub(super) fn documents(&self) -> impl Iterator<Item = ValuesDocument<'_>> {
        self.documents.iter().flatten().map(Document::document)
    }

    /// What is named, without what is in there.
    pub(super) fn named(&self) -> &[ValuesFrom] {
        &self.named
    }
}

impl Document {
    fn document(&self) -> ValuesDocument<'_> {
        ValuesDocument {
            name: &self.name,
            text: &self.text,
        }
    }
}

/// Reads what a Cluster names, which is as the API server gave it. What is not there, or may not be taken, stops the charts that it is for alone; an error is
/// what stops all of them.
pub(super) async fn read(client: &Client, namespace: &str, cluster: &Value) -> Result<Given, GivenError> {
    let annotations = cluster.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|annotations| annotations.get(VALUES_FROM)?.as_str());
    let named = values_from(annotation.unwrap_or_default())?;
    let mut documents = Vec::new();
    for ValuesFrom { holder, key, .. } in &named {
        let found = match holder.kind {
            HolderKind::Secret => in_secret(client, namespace, holder, key).await,
            HolderKind::ConfigMap => in_config_map(client, namespace, holder, key).await,
        };
        let no_key = || GivenError::NoKey {
            holder: holder.clone(),
            key: key.clone(),
        };
        let text = match found {
            // Nobody knows what is there.
            Err(error @ GivenError::Read { .. }) => return Err(error),
            found => found.and_then(|text| text.ok_or_else(no_key)),
        };
        documents.push(text.map(|text| Document {
            name: format!("the key {key} of the {holder}"),
            text,
        }));
    }
    Ok(Given { named, documents })
}

async fn in_secret(
    client: &Client,
    namespace: &str,
    holder: &Holder,
    key: &str,
) -> Result<Option<Vec<u8>>, GivenError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut secret = there(holder, api.get_opt(&holder.name).await)?;
    is_allowed(holder, &secret.metadata, secret.type_.as_deref())?;
    Ok(secret.data.as_mut().and_then(|data| Some(data.remove(key)?.0)))
}

async fn in_config_map(
    client: &Client,
    namespace: &str,
    holder: &Holder,
    key: &str,
) -> Result<Option<Vec<u8>>, GivenError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut map = there(holder, api.get_opt(&holder.name).await)?;
    is_allowed(holder, &map.metadata, None)?;
    let text = map.data.as_mut().and_then(|data| Some(data.remove(key)?.into_bytes()));
    Ok(text.or_else(|| Some(map.binary_data.as_mut()?.remove(key)?.0)))
}

fn there<K>(holder: &Holder, found: kube::Result<Option<K>>) -> Result<K, GivenError> {
    let holder = || holder.clone();
    let found = found.map_err(|error| GivenError::Read {
        holder: holder(),
        code: match &error {
            kube::Error::Api(status) => Some(status.code),
            _ => None,
        },
    })?;
    found.ok_or_else(|| GivenError::Missing { holder: holder() })
}

fn is_allowed(holder: &Holder, metadata: &ObjectMeta, secret_type: Option<&str>) -> Result<(), GivenError> {
    let allowed = is_given(holder, metadata.labels.as_ref(), secret_type);
    allowed.map_err(|why| GivenError::Withheld {
        holder: holder.clone(),
        why,
    })
}
