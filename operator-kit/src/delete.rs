//! Deletes one object, only if it is the one that was meant.

use kube::api::{DeleteParams, Preconditions, PropagationPolicy};
use kube::client::Client;
use kube::core::ObjectMeta;

use crate::crd_watch::CrdWatch;
use crate::discovery::{Discovery, DiscoveryError};
use crate::failure::{Class, class_of};
use crate::object::{ObjectKey, namespace};
use crate::secrets::Guard;

/// What is true of the object after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It was there and is gone.
    Deleted,
    /// It was already gone, its kind is no longer served, or no object can have this key.
    Gone,
    /// It is marked for deletion; finalizers hold it. Its going is seen by the watch.
    Terminating,
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
    /// It was written since it was read, or another object has its name. Nothing was deleted.
    #[error("failed to delete {key}: it changed in between")]
    Changed {
        /// Which object.
        key: ObjectKey,
    },
    /// The API server, or whom it asks, refused or did not answer.
    #[error("failed to delete {key}")]
    Delete {
        /// Which object.
        key: ObjectKey,
        /// The API server's answer; of a Secret its code alone.
        #[source]
        source: Box<kube::Error>,
    },
}

impl DeleteError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Discover { source, .. } => source.class(),
            Self::Changed { .. } => Class::Transient,
            Self::Delete { source, .. } => class_of(source),
        }
    }
}

/// An object as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// Its identity.
    pub uid: &'a str,
    /// Its version.
    pub resource_version: &'a str,
}

/// Deletes the object with this key if it is still the one that was read; dependents are deleted in the background.
///
/// So a deletion that arrives late, from a process that was taken for dead, does not hit what its successor has written.
pub async fn delete(
    client: &Client,
    discovery: &Discovery,
    crds: &CrdWatch,
    key: &ObjectKey,
    read: Version<'_>,
) -> Result<Deletion, DeleteError> {
    if !key.is_addressable() {
        return Ok(Deletion::Gone);
    }
    let found = crds
        .resolve_kind(discovery, &key.group_kind())
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
        preconditions: Some(Preconditions {
            uid: Some(read.uid.to_owned()),
            resource_version: Some(read.resource_version.to_owned()),
        }),
        ..DeleteParams::default()
    };
    let failed = |error| DeleteError::Delete {
        key: key.clone(),
        source: Box::new(Guard::of(&key.group_kind()).error(error)),
    };
    let api = resolved.api(client, namespace(key));
    match api.delete(&key.name, &params).await {
        // An object in the answer is one that finalizers (or a grace period) keep alive.
        Ok(answer) if answer.is_left() => Ok(Deletion::Terminating),
        Ok(_) => Ok(Deletion::Deleted),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Deletion::Gone),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            match api.get_metadata_opt(&key.name).await.map_err(failed)? {
                None => Ok(Deletion::Gone),
                // A policy may answer so too.
                Some(now) if is_still(&now.metadata, read) => Err(failed(kube::Error::Api(status))),
                Some(_) => Err(DeleteError::Changed { key: key.clone() }),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

fn is_still(now: &ObjectMeta, read: Version<'_>) -> bool {
    now.uid.as_deref() == Some(read.uid) && now.resource_version.as_deref() == Some(read.resource_version)
}

#[cfg(test)]
mod tests;
