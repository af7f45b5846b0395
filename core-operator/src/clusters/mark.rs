//! What tells that an object may give other values to charts.

use kube::api::ObjectMeta;
use planning::digest::digest_of_everything;

/// What is seen of an object that values are made of, without it being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Digest.
    pub(crate) labels: String,
    /// Digest.
    pub(crate) annotations: String,
}

impl Mark {
    /// Of an object.
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            labels: digest_of_everything(&metadata.labels),
            annotations: digest_of_everything(&metadata.annotations),
        }
    }
}
