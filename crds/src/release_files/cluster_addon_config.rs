//! clusteraddon.yaml: the stages in which add-ons are installed, by lifecycle hook.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{CLUSTER_ADDON_CONFIG, ReleaseFileError, read_yaml};
use crate::cluster_addon::StageAction;

/// The stages of the add-ons of a release. Its presence means that the release has stages at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAddonConfig {
    /// Stages by hook, in the order in which they run. Any name may stand for a hook; what stands under others than those of [`HOOKS`](super::HOOKS) is never run.
    #[serde(default)]
    pub addon_stages: BTreeMap<String, Vec<AddonStage>>,
    /// The version of Cluster API in whose form the values templates get the Cluster. Additive: the Go operator always gives v1beta1.
    #[serde(default)]
    pub cluster_api_version: ClusterApiVersion,
}

/// A version of Cluster API's own kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ClusterApiVersion {
    /// `cluster.x-k8s.io/v1beta1`.
    #[default]
    V1Beta1,
    /// `cluster.x-k8s.io/v1beta2`.
    V1Beta2,
}

/// The most stages that a release may list. The status of a ClusterAddon has a row of up to some 1.3 KiB for each, beside its inventory, in an object that the API server
/// takes up to 1.5 MiB of; nobody has more than a dozen.
pub const MAX_STAGES: usize = 100;

impl ClusterAddonConfig {
    /// Reads clusteraddon.yaml.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReleaseFileError> {
        let config: Self = read_yaml(CLUSTER_ADDON_CONFIG, bytes)?;
        let found = config.addon_stages.values().map(Vec::len).sum();
        if found > MAX_STAGES {
            return Err(ReleaseFileError::TooManyStages { found });
        }
        Ok(config)
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
    /// How long the stage may take, from its beginning until what must hold after it holds; such as `90s` or `1h30m`, at most a week. Additive.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "as_text",
        deserialize_with = "length_of_time"
    )]
    pub timeout: Option<Duration>,
    /// What happens when it takes longer: by itself, other stages and the cluster wait on; only before the deletion of a cluster they do not. Additive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
}

/// What a stage that takes too long means to what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// All of it waits until the stage is done.
    Stop,
    /// It goes on without the stage, which is tried on.
    Continue,
}

/// The longest that a stage may be given. Who waits longer waits for somebody who is not coming.
const LONGEST_TIMEOUT: Duration = Duration::from_hours(7 * 24);

fn length_of_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let length: Option<SignedDuration> = text.parse().ok();
    length
        .and_then(|length| Duration::try_from(length).ok())
        .filter(|length| !length.is_zero() && *length <= LONGEST_TIMEOUT)
        .map(Some)
        .ok_or_else(|| {
            de::Error::custom(format!(
                "{text:?} is no length of time such as 90s or 1h30m, of a week at most"
            ))
        })
}

#[expect(clippy::ref_option, reason = "serde gives the field as it is")]
fn as_text<S: Serializer>(timeout: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match timeout {
        Some(length) => serializer.collect_str(&format_args!("{}ns", length.as_nanos())),
        None => serializer.serialize_none(),
    }
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
