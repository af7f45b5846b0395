//! The small files of a release, from bytes to types: metadata.yaml, clusteraddon.yaml, node-images.yaml and hashes.json.
//!
//! Nothing here limits the size of the input; whoever reads the bytes does. Only what aliases make of it is bounded, and stages are counted, because a status
//! tells of each. Whether files agree with each other or with the tag is judged by whoever has all of them. Unknown keys are accepted, as the formats have grown and will; where that is otherwise, the file says so.

mod aliases;
mod cluster_addon_config;
mod metadata;
mod node_images;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;

pub use self::{
    aliases::bound_aliases,
    cluster_addon_config::{
        AddonStage, ClusterAddonConfig, ClusterApiVersion, MAX_STAGES, OnFailure, TimeoutError, WaitForCondition,
        WatchedObject, parse_timeout,
    },
    metadata::Metadata,
    node_images::{NodeImage, NodeImageError, NodeImages, docker_images, filestore_images, openstack_images},
};
use crate::names::NameError;

/// Name of the file with the versions of a release; every release has it.
pub const METADATA: &str = "metadata.yaml";
/// Name of the file with the stages of the add-ons; a release without it has one stage.
pub const CLUSTER_ADDON_CONFIG: &str = "clusteraddon.yaml";
/// The names under which clusteraddon.yaml lists stages: the lifecycle hooks of Cluster API, in the order in which a cluster meets them. Stages under other names
/// are never run.
pub const HOOKS: [&str; 9] = [
    "BeforeClusterCreate",
    "AfterControlPlaneInitialized",
    "BeforeClusterUpgrade",
    "BeforeControlPlaneUpgrade",
    "AfterControlPlaneUpgrade",
    "BeforeWorkersUpgrade",
    "AfterWorkersUpgrade",
    "AfterClusterUpgrade",
    "BeforeClusterDelete",
];
/// Name of the template for the values of the only add-on chart, in releases without stages.
pub const CLUSTER_ADDON_VALUES: &str = "cluster-addon-values.yaml";
/// The same as a template of Tera; a release has one of the two. The Go operator does not know it.
pub const CLUSTER_ADDON_VALUES_TERA: &str = "cluster-addon-values.yaml.tera";
/// Name of the file with the node images.
pub const NODE_IMAGES: &str = "node-images.yaml";
/// Name of the file with the hashes of what a release was made from.
pub const HASHES: &str = "hashes.json";

/// Why a file of a release cannot be used. All of them are mistakes in the release. Whoever tells of one names the file before.
#[derive(Debug, Error)]
pub enum ReleaseFileError {
    /// Not YAML, or not of the shape that the file must have.
    #[error(transparent)]
    ReadYaml(serde_yaml::Error),
    /// With what its aliases name it is more than anybody writes.
    #[error("its aliases (`*name`) make more of it than is allowed: name less by them, or fewer times")]
    TooManyAliases,
    /// Not JSON, or not of the shape that the file must have.
    #[error(transparent)]
    ReadJson(serde_json::Error),
    /// clusteraddon.yaml lists more stages than a status has room for.
    #[error("addonStages has {found} stages together, {MAX_STAGES} are allowed: put their charts together")]
    TooManyStages {
        /// How many it has.
        found: usize,
    },
    /// `versions.clusterStack` of metadata.yaml is missing or empty.
    #[error("clusterstack version empty")]
    ClusterStackVersionEmpty,
    /// `versions.kubernetes` of metadata.yaml is missing or empty.
    #[error("kubernetes version empty")]
    KubernetesVersionEmpty,
    /// `versions.components.clusterAddon` of metadata.yaml is missing or empty.
    #[error("cluster addon version empty")]
    ClusterAddonVersionEmpty,
    /// A version of metadata.yaml has another form than it must have.
    #[error("unable to use {field} of metadata.yaml")]
    ReadVersion {
        /// Path of the field.
        field: &'static str,
        /// What is wrong with it.
        #[source]
        source: NameError,
    },
}

/// hashes.json: what the parts of a release were made from, to see whether the next release changes them. Absent parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hashes {
    /// Of the whole stack directory.
    pub cluster_stack: String,
    /// Of its directory `cluster-addon`.
    pub cluster_addon_dir: String,
    /// Of its file `cluster-addon-values.yaml`.
    pub cluster_addon_values: String,
    /// Of its directory with node images.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_image_dir: String,
}

impl Hashes {
    /// Reads hashes.json.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        serde_json::from_slice(without_mark(bytes)).map_err(ReleaseFileError::ReadJson)
    }

    /// The text of hashes.json for a new release: the same hashes always give the same bytes.
    #[expect(clippy::missing_panics_doc, reason = "a struct of texts is always JSON")]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a struct of texts is JSON");
        format!("{text}\n")
    }
}

/// A text without the byte order mark that some editors write before it: Go's parser of YAML passes over it, ours takes it for a column.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

fn read_yaml<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ReleaseFileError> {
    let text = without_mark(bytes);
    bound_aliases(text)?;
    serde_yaml::from_slice(text).map_err(ReleaseFileError::ReadYaml)
}
