//! clusteraddon.yaml: the stages in which add-ons are installed, by lifecycle hook.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CLUSTER_ADDON_CONFIG, ReleaseFileError, read_yaml};
use crate::cluster_addon::StageAction;

/// The stages of the add-ons of a release. Its presence means that the release has stages at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAddonConfig {
    /// Stages by hook, in the order in which they run. Any name may stand for a hook; those in use are `AfterControlPlaneInitialized`,
    /// `BeforeClusterUpgrade` and `AfterClusterUpgrade`.
    #[serde(default)]
    pub addon_stages: BTreeMap<String, Vec<AddonStage>>,
}

impl ClusterAddonConfig {
    /// Reads clusteraddon.yaml.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        read_yaml(CLUSTER_ADDON_CONFIG, bytes)
    }
}

/// One chart and what to do with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddonStage {
    /// Directory of the chart in the archive of the add-ons.
    pub name: String,
    /// What to do. Every word but `apply` and `delete` is refused, where the Go operator would have deleted.
    pub action: StageAction,
    /// What must hold before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_pre_condition: Option<WaitForCondition>,
    /// What must hold after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_post_condition: Option<WaitForCondition>,
}

/// A CEL expression over objects of the workload cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitForCondition {
    /// The objects, each a variable of the expression.
    #[serde(default)]
    pub objects: Vec<WatchedObject>,
    /// One expression that gives a boolean; the plural is that of the file format.
    pub conditions: String,
}

/// An object of the workload cluster and the name of its variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedObject {
    /// Name of the variable.
    pub key: String,
    /// Group and version, as in a manifest.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace; empty for objects of the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}
