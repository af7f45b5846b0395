//! Reads one object by its key.

use kube::api::DynamicObject;
use kube::client::Client;
use kube::core::GroupVersionKind;

use crate::crd_watch::CrdWatch;
use crate::discovery::{Discovery, DiscoveryError, Resolved};
use crate::failure::{Class, class_of};
use crate::object::{ObjectKey, namespace};

/// The object could not be read; whether it exists is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The kind could not be looked up.
    #[error("failed to look up the kind of {key} to read it")]
    Discover {
        /// Which object.
        key: ObjectKey,
        /// Why.
        #[source]
        source: DiscoveryError,
    },
    /// The API server refused or did not answer.
    #[error("failed to read {key}")]
    Get {
        /// Which object.
        key: ObjectKey,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl ReadError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Discover { source, .. } => source.class(),
            Self::Get { source, .. } => class_of(source),
        }
    }
}

/// The object as it is now, with its managedFields, in the version that the API server prefers; `None` when there is none, its kind is not served, or no
/// object can have this key (an inventory says what somebody wrote into it). What discovery only leaves out may be there.
pub async fn read(
    client: &Client,
    discovery: &Discovery,
    crds: &CrdWatch,
    key: &ObjectKey,
) -> Result<Option<DynamicObject>, ReadError> {
    let Some(resolved) = resolve(discovery, crds, key).await? else {
        return Ok(None);
    };
    get(client, &resolved, key).await
}

/// The same in the form of `version` where that is served: what was written in one version differs from what is read in another, whoever changed it.
pub async fn read_in(
    client: &Client,
    discovery: &Discovery,
    crds: &CrdWatch,
    key: &ObjectKey,
    version: &str,
) -> Result<Option<DynamicObject>, ReadError> {
    let Some(preferred) = resolve(discovery, crds, key).await? else {
        return Ok(None);
    };
    let gvk = GroupVersionKind::gvk(&key.group, version, &key.kind);
    let resolved = discovery.resolve(&gvk).await.map_err(undiscovered(key))?;
    get(client, &resolved.unwrap_or(preferred), key).await
}

async fn resolve(discovery: &Discovery, crds: &CrdWatch, key: &ObjectKey) -> Result<Option<Resolved>, ReadError> {
    if !key.is_addressable() {
        return Ok(None);
    }
    let found = crds.resolve_kind(discovery, &key.group_kind()).await;
    found.map_err(undiscovered(key))
}

fn undiscovered(key: &ObjectKey) -> impl FnOnce(DiscoveryError) -> ReadError {
    |source| ReadError::Discover {
        key: key.clone(),
        source,
    }
}

async fn get(client: &Client, resolved: &Resolved, key: &ObjectKey) -> Result<Option<DynamicObject>, ReadError> {
    let api = resolved.api(client, namespace(key));
    let answer = api.get_opt(&key.name).await;
    #[cfg(feature = "mutants")]
    if answer.is_err() && crate::mutants::planted(crate::mutants::Mutant::UnreadIsGone) {
        return Ok(None);
    }
    answer.map_err(|source| ReadError::Get {
        key: key.clone(),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests;
