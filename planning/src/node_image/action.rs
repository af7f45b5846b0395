//! What the driver of a release does to objects. Decides nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing to do. An executor has no choices: every operand is here, and each write names the version of the object that was seen, so that of two
/// releases that let go of an image at once one notices that it is the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReleaseAction {
    /// Put our finalizer on the release object.
    AddFinalizer,
    /// Create the object of an image, owned by the release.
    CreateImage {
        /// Its name.
        name: String,
        /// Its spec.
        spec: Value,
    },
    /// Make the release one of the owners of an object that is there: neither as controller nor so that it blocks a deletion.
    AdoptImage {
        /// Its name.
        name: String,
        /// Its resourceVersion.
        version: String,
    },
    /// Give an object another spec.
    UpdateImage {
        /// Its name.
        name: String,
        /// Its resourceVersion.
        version: String,
        /// The whole spec.
        spec: Value,
    },
    /// Take the release out of the owners of an object that others need.
    DropOwner {
        /// Its name.
        name: String,
        /// Its resourceVersion.
        version: String,
    },
    /// Delete an object, provided that it still has this identity and version.
    DeleteImage {
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
        /// Its resourceVersion.
        version: String,
    },
    /// Take our finalizer off the release object.
    RemoveFinalizer,
}

impl ReleaseAction {
    /// The name of the object of an image that it is done to; `finalizer` for the two that are done to the release itself.
    pub fn subject(&self) -> &str {
        match self {
            Self::AddFinalizer | Self::RemoveFinalizer => "finalizer",
            Self::CreateImage { name, .. }
            | Self::AdoptImage { name, .. }
            | Self::UpdateImage { name, .. }
            | Self::DropOwner { name, .. }
            | Self::DeleteImage { name, .. } => name,
        }
    }
}
