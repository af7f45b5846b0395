//! Deletes one object, only if it is the one that was meant.

use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::client::Client;

use crate::discovery::{Discovery, DiscoveryError};
use crate::failure::{Class, class_of};
use crate::object::{ObjectKey, namespace};

/// What is true of the object after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It was there and is gone.
    Deleted,
    /// It was already gone, its kind is no longer served, or no object can have this key.
    Gone,
    /// It is marked for deletion; finalizers hold it. Its going is seen by the watch.
    Terminating,
    /// Another object has the name now. Nothing was deleted.
    Replaced,
}

/// The object could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// The kind could not be looked up.
    #[error("failed to look up the kind of {key} to delete it")]
    Discover {
        /// Which object.
        key: ObjectKey,
        /// Why.
        #[source]
        source: DiscoveryError,
    },
    /// The API server refused or did not answer.
    #[error("failed to delete {key}")]
    Delete {
        /// Which object.
        key: ObjectKey,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl DeleteError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Discover { source, .. } => source.class(),
            Self::Delete { source, .. } => class_of(source),
        }
    }
}

/// Deletes the object with this key if its uid is still `uid`; dependents are deleted in the background.
///
/// Without a uid whatever bears the name is deleted: only for objects whose uid was never learnt.
pub async fn delete(
    client: &Client,
    discovery: &Discovery,
    key: &ObjectKey,
    uid: Option<&str>,
) -> Result<Deletion, DeleteError> {
    if !key.is_addressable() {
        return Ok(Deletion::Gone);
    }
    let found = discovery
        .resolve_kind(&key.group_kind())
        .await
        .map_err(|source| DeleteError::Discover {
            key: key.clone(),
            source,
        })?;
    let Some(resolved) = found else {
        return Ok(Deletion::Gone);
    };
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: uid.map(|uid| Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    match resolved.api(client, namespace(key)).delete(&key.name, &params).await {
        // An object in the answer is one that finalizers (or a grace period) keep alive.
        Ok(answer) if answer.is_left() => Ok(Deletion::Terminating),
        Ok(_) => Ok(Deletion::Deleted),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Deletion::Gone),
        Err(kube::Error::Api(status)) if status.code == 409 && uid.is_some() => Ok(Deletion::Replaced),
        Err(source) => Err(DeleteError::Delete {
            key: key.clone(),
            source: Box::new(source),
        }),
    }
}

#[cfg(test)]
mod tests;
