//! node-images.yaml: the images that a provider must bring into the cloud.
//!
//! Each provider has its own key and its own options, so [`NodeImages`] reads the frame only and keeps the rest. What an entry means to a provider,
//! the files below say. Keys that they do not know are passed over, but not in the shape of the OpenStack resource controller: whoever
//! uses that expects the controller's own answer, which is to refuse them.

mod docker;
mod entry;
mod filestore;
mod openstack;
mod orc;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

pub use self::{docker::docker_images, filestore::filestore_images, openstack::openstack_images};
use super::{ReleaseFileError, read_yaml};

/// The node images of a release, by the key under which a provider finds its own, such as `openStackNodeImages`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeImages(pub BTreeMap<String, Vec<NodeImage>>);

impl NodeImages {
    /// Reads node-images.yaml: every list in it must be one of images, every other key is passed over.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        let file: BTreeMap<String, serde_yaml::Value> = read_yaml(bytes)?;
        file.into_iter()
            .filter(|(_, value)| value.is_sequence())
            .map(|(key, value)| Ok((key, serde_yaml::from_value(value)?)))
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(ReleaseFileError::ReadYaml)
    }
}

/// One image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeImage {
    /// Where the bytes are; an image that is built has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Options for the cloud, such as the name and the disk format.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub create_opts: Map<String, Value>,
    /// Every other key.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Why an entry of node-images.yaml cannot be used. All of them are mistakes in the release. Fields are paths from the key of the provider, such as
/// `openStackNodeImages[0].createOpts.name`; entries are counted from 0.
#[derive(Debug, Error)]
pub enum NodeImageError {
    /// A field is missing or empty.
    #[error("node-images.yaml has no {field}")]
    Missing {
        /// Which.
        field: String,
    },
    /// A field has another form than it must have.
    #[error("unable to read {field} of node-images.yaml")]
    Read {
        /// Which.
        field: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A field that this version does not act on, where passing it over would change what is asked for.
    #[error("{field} of node-images.yaml is not known in this version: leave it out")]
    Unknown {
        /// Which.
        field: String,
    },
    /// Two fields of which only one may be there.
    #[error("{field} and {other} of node-images.yaml exclude each other: leave one out")]
    Exclude {
        /// One.
        field: String,
        /// The other.
        other: String,
    },
    /// A digest that is none, or by another algorithm.
    #[error("{field} of node-images.yaml is no digest: use {expected}")]
    Digest {
        /// Which.
        field: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A digest by an algorithm that two files can be made for.
    #[error("{field} of node-images.yaml is {algorithm}, which proves nothing: use sha256 or sha512")]
    WeakDigest {
        /// Which.
        field: String,
        /// The algorithm.
        algorithm: String,
    },
    /// A release names a Secret: it would be sent to wherever the release says.
    #[error("{field} of node-images.yaml names a Secret, which a release may not choose: leave it out")]
    SecretOfRelease {
        /// Which.
        field: String,
    },
    /// A list or an object where text, a number or a boolean is asked for.
    #[error("{field} of node-images.yaml must be text, a number or a boolean")]
    NotScalar {
        /// Which.
        field: String,
    },
}
