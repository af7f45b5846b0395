//! Kubernetes minor versions, as stacks and tags name them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{NameError, number, string_on_the_wire};

/// A Kubernetes version without its patch level: printed `1.32`, in tags `1-32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KubernetesMinor {
    /// The number before the dot; one digit, as the CRD demands.
    major: u8,
    minor: u32,
}

impl KubernetesMinor {
    /// The minor of a full version as it stands in metadata.yaml or in `Cluster.spec.topology.version`: `v1.32.4` (or `1.32.4`) gives `1.32`.
    pub fn of_full_version(version: &str) -> Result<Self, NameError> {
        let invalid = || NameError::KubernetesVersion {
            value: version.to_owned(),
        };
        let (major, rest) = version
            .strip_prefix('v')
            .unwrap_or(version)
            .split_once('.')
            .ok_or_else(invalid)?;
        let (minor, patch) = rest.split_once('.').ok_or_else(invalid)?;
        let patch = patch.split(['-', '+']).next().unwrap_or_default();
        number::<u32>(patch).ok_or_else(invalid)?;
        Self::from_parts(major, minor).map_err(|_| invalid())
    }

    /// From the two parts of a tag.
    pub(super) fn from_parts(major: &str, minor: &str) -> Result<Self, NameError> {
        let major = number(major)
            .filter(|number| *number < 10)
            .ok_or_else(|| NameError::MajorVersion {
                value: major.to_owned(),
            })?;
        let minor = number(minor).ok_or_else(|| NameError::MinorVersion {
            value: minor.to_owned(),
        })?;
        Ok(Self { major, minor })
    }

    /// The number before the dot.
    pub fn major(self) -> u8 {
        self.major
    }

    /// The number after the dot.
    pub fn minor(self) -> u32 {
        self.minor
    }
}

impl FromStr for KubernetesMinor {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (major, minor) = text
            .split_once('.')
            .ok_or_else(|| NameError::KubernetesVersion { value: text.to_owned() })?;
        Self::from_parts(major, minor)
    }
}

impl fmt::Display for KubernetesMinor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

string_on_the_wire!(KubernetesMinor);
