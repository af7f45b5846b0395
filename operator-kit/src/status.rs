//! Writes the status of an object of ours: whole, by update, and only when it says something new.
//!
//! An update carries the resourceVersion that was read, so a late writer is refused and fields of an older status go.

use std::fmt::Debug;

use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::comparison::same_meaning;
use crate::failure::{Class, class_of};

/// How a status write ended.
#[derive(Clone, Debug, PartialEq)]
pub enum StatusWrite<K> {
    /// The object as the API server stored it.
    Written(Box<K>),
    /// The status already said this; nothing was sent.
    Unchanged,
    /// Somebody wrote the object after it was read: observe again, then decide again.
    Conflict,
    /// The object is gone.
    Gone,
}

/// The status could not be written.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// A status that cannot be expressed as JSON.
    #[error("failed to express the status of {name:?} as JSON")]
    Encode {
        /// The object's name.
        name: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The API server refused or did not answer.
    #[error("failed to write the status of {name:?}")]
    Replace {
        /// The object's name.
        name: String,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl StatusError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Encode { .. } => Class::Terminal,
            Self::Replace { source, .. } => class_of(source),
        }
    }
}

/// Writes `wanted.status` unless it means the same as `read.status`.
///
/// `wanted` is `read` with another status; its resourceVersion is the precondition. Absent, null and empty are different
/// from each other only where the API server would keep them apart: null and absent are the same.
pub async fn replace_status<K>(
    api: &Api<K>,
    read: &K,
    wanted: &K,
    field_manager: &str,
) -> Result<StatusWrite<K>, StatusError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = wanted.name_any();
    if same_meaning(&status_of(read, &name)?, &status_of(wanted, &name)?) {
        return Ok(StatusWrite::Unchanged);
    }
    let params = PostParams {
        dry_run: false,
        field_manager: Some(field_manager.to_owned()),
    };
    let replaced = api.replace_status(&name, &params, wanted);
    #[cfg(feature = "mutants")]
    let replaced = or_patched(replaced, api, wanted);
    match replaced.await {
        Ok(stored) => Ok(StatusWrite::Written(Box::new(stored))),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(StatusWrite::Conflict),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(StatusWrite::Gone),
        Err(source) => Err(StatusError::Replace {
            name,
            source: Box::new(source),
        }),
    }
}

/// The API server refuses an object without a version; a patch needs none.
#[cfg(feature = "mutants")]
async fn or_patched<K>(replaced: impl Future<Output = kube::Result<K>>, api: &Api<K>, wanted: &K) -> kube::Result<K>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    if !crate::mutants::planted(crate::mutants::Mutant::StatusWithoutVersion) {
        return replaced.await;
    }
    let name = wanted.name_any();
    let status = status_of(wanted, &name).unwrap_or_default();
    let patch = serde_json::json!([{ "op": "add", "path": "/status", "value": status }]);
    let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
    let (params, patch) = (kube::api::PatchParams::default(), kube::api::Patch::Json::<()>(patch));
    api.patch_status(&name, &params, &patch).await
}

fn status_of<K: Serialize>(object: &K, name: &str) -> Result<Value, StatusError> {
    let mut value = serde_json::to_value(object).map_err(|source| StatusError::Encode {
        name: name.to_owned(),
        source,
    })?;
    Ok(value.get_mut("status").map_or(Value::Null, Value::take))
}

#[cfg(test)]
mod tests;
