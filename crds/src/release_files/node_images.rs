//! node-images.yaml: the images that a provider must bring into the cloud.
//!
//! Each provider has its own key and its own options, so this reads the frame only and keeps the rest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{NODE_IMAGES, ReleaseFileError, read_yaml};

/// The node images of a release, by the key under which a provider finds its own, such as `openStackNodeImages`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeImages(pub BTreeMap<String, Vec<NodeImage>>);

impl NodeImages {
    /// Reads node-images.yaml: every list in it must be one of images, every other key is passed over.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        let file: BTreeMap<String, serde_yaml::Value> = read_yaml(NODE_IMAGES, bytes)?;
        file.into_iter()
            .filter(|(_, value)| value.is_sequence())
            .map(|(key, value)| Ok((key, serde_yaml::from_value(value)?)))
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|source| ReleaseFileError::ReadYaml {
                file: NODE_IMAGES,
                source,
            })
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
