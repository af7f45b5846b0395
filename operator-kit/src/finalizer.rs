//! What keeps an object of ours until all is gone that was made for it: a finalizer, and what is noted beside it. When it is set and taken away is decided
//! by operators.
//!
//! Finalizers are a list with more than one author. It is written whole, at the resourceVersion that was read: who comes late, or has read what is old, is
//! refused and takes nothing away from others.

use std::fmt::Debug;

use kube::api::{Api, Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::failure::{Class, class_of};

/// How an object was marked.
#[derive(Clone, Debug, PartialEq)]
pub enum Marking<K> {
    /// It has the finalizer and what was noted, as the API server stored it.
    Kept(Box<K>),
    /// The API server took the write and stored something else, as policies may have it do. Whoever wrote it again at once would do so for ever.
    Changed(Box<K>),
}

/// The finalizers of an object could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FinalizerError {
    /// The API server refused or did not answer. It refuses what somebody else has written since it was read.
    #[error("failed to write the finalizers of {name:?}")]
    Patch {
        /// The object's name.
        name: String,
        /// The API server's answer.
        #[source]
        source: Box<kube::Error>,
    },
}

impl FinalizerError {
    /// See [`class_of`].
    pub fn class(&self) -> Class {
        match self {
            Self::Patch { source, .. } => class_of(source),
        }
    }
}

/// Adds `finalizer` to the object that was read, and notes these annotations (names and values) with the same write.
pub async fn mark<K>(
    api: &Api<K>,
    read: &K,
    finalizer: &str,
    annotations: &[(&str, &str)],
    field_manager: &str,
) -> Result<Marking<K>, FinalizerError>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let mut finalizers = read.finalizers().to_vec();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(finalizer.to_owned());
    }
    let mut metadata = written(read, &finalizers);
    if !annotations.is_empty() {
        let noted = annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        metadata.insert("annotations".to_owned(), Value::Object(noted.collect()));
    }
    let marked = Box::new(patch(api, read, metadata, field_manager).await?);
    let is_noted = |(name, value): &(&str, &str)| marked.annotations().get(*name).is_some_and(|noted| noted == value);
    let is_kept = finalizers
        .iter()
        .all(|finalizer| marked.finalizers().contains(finalizer))
        && annotations.iter().all(is_noted);
    Ok(if is_kept {
        Marking::Kept(marked)
    } else {
        Marking::Changed(marked)
    })
}

/// Takes `finalizer` away from the object that was read, and gives the object as it was then. If it is to be deleted and has no other finalizer, it is gone.
pub async fn remove<K>(api: &Api<K>, read: &K, finalizer: &str, field_manager: &str) -> Result<K, FinalizerError>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let finalizers = read.finalizers().iter();
    let left: Vec<String> = finalizers.filter(|present| *present != finalizer).cloned().collect();
    patch(api, read, written(read, &left), field_manager).await
}

/// What is written of the metadata, with its precondition.
fn written<K: Resource>(read: &K, finalizers: &[String]) -> Map<String, Value> {
    Map::from_iter([
        ("resourceVersion".to_owned(), json!(read.resource_version())),
        ("finalizers".to_owned(), json!(finalizers)),
    ])
}

async fn patch<K>(
    api: &Api<K>,
    read: &K,
    metadata: Map<String, Value>,
    field_manager: &str,
) -> Result<K, FinalizerError>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let params = PatchParams {
        field_manager: Some(field_manager.to_owned()),
        ..PatchParams::default()
    };
    let patch = json!({ "metadata": metadata });
    let answer = api.patch(&read.name_any(), &params, &Patch::Merge(patch)).await;
    answer.map_err(|source| FinalizerError::Patch {
        name: read.name_any(),
        source: Box::new(source),
    })
}

#[cfg(test)]
mod tests;
