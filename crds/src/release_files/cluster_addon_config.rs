//! clusteraddon.yaml: the stages in which add-ons are installed, by lifecycle hook.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::SignedDuration;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};
use thiserror::Error;

use super::{ReleaseFileError, read_yaml};
use crate::{cluster_addon::StageAction, conditions::one_line};

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
        let config: Self = read_yaml(bytes)?;
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
/// So much is told of a text that is no timeout, in bytes.
const TOLD: usize = 60;

/// Why a text is no timeout of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeoutError {
    /// A length of time beyond the bound.
    #[error("{text:?} is longer than a stage may take, which is a week, 168h")]
    TooLong {
        /// The text.
        text: String,
    },
    /// A number with a unit that timeouts do not have.
    #[error(
        "{text:?}: there is no unit {unit}: a length of time is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h"
    )]
    UnknownUnit {
        /// The text.
        text: String,
        /// The unit.
        unit: String,
    },
    /// Something else, or no time at all.
    #[error(
        "{text:?} is no length of time, which is written with h, m and s, such as 90s or 1h30m, and is a week at most, 168h"
    )]
    NoLength {
        /// The text.
        text: String,
    },
}

/// Reads the `timeout` of a stage.
pub fn parse_timeout(text: &str) -> Result<Duration, TimeoutError> {
    let told = || one_line(text, TOLD);
    let Ok(length) = text.parse::<SignedDuration>() else {
        return Err(match unknown_unit(text) {
            Some("d" | "day" | "days") if leading_number(text) > 7 => TimeoutError::TooLong { text: told() },
            Some(unit) => TimeoutError::UnknownUnit {
                text: told(),
                unit: one_line(unit, TOLD),
            },
            None => TimeoutError::NoLength { text: told() },
        });
    };
    match Duration::try_from(length) {
        Ok(length) if length > LONGEST_TIMEOUT => Err(TimeoutError::TooLong { text: told() }),
        Ok(length) if !length.is_zero() => Ok(length),
        _ => Err(TimeoutError::NoLength { text: told() }),
    }
}

/// The first unit behind a number that there is not.
fn unknown_unit(text: &str) -> Option<&str> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let mut units = text.split(|letter: char| !letter.is_alphabetic());
    units.find(|unit| !unit.is_empty() && format!("1{unit}").parse::<SignedDuration>().is_err())
}

/// The whole number at the beginning, or 0.
fn leading_number(text: &str) -> u64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().unwrap_or(0)
}

fn length_of_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let timeout = Option::<Timeout>::deserialize(deserializer)?;
    Ok(timeout.map(|Timeout(length)| length))
}

/// Refused where it stands: what refuses it later knows its place no more.
struct Timeout(Duration);

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfText)
    }
}

/// Reads a [`Timeout`].
struct OfText;

impl Visitor<'_> for OfText {
    type Value = Timeout;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a length of time")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timeout, E> {
        parse_timeout(text).map(Timeout).map_err(E::custom)
    }
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
