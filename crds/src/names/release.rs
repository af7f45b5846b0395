//! Release tags and class names: a stem and a version, in two spellings.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{KubernetesMinor, NameError, StackVersion, is_tag_part, string_on_the_wire};

/// Longest name that a custom resource may have.
const OBJECT_NAME_BYTES: usize = 253;

/// `<provider>-<name>-<major>-<minor>`: what all releases of one `ClusterStack` share.
///
/// It is also the Helm release name of the class chart and the beginning of the file names of a release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseStem {
    provider: String,
    name: String,
    kubernetes_minor: KubernetesMinor,
}

impl ReleaseStem {
    /// Refuses a provider or name that would make the tag ambiguous (empty, `-`, `.`) or no object name.
    pub fn new(provider: &str, name: &str, kubernetes_minor: KubernetesMinor) -> Result<Self, NameError> {
        if !is_tag_part(provider) {
            return Err(NameError::Provider {
                value: provider.to_owned(),
            });
        }
        if !is_tag_part(name) {
            return Err(NameError::Name { value: name.to_owned() });
        }
        Ok(Self {
            provider: provider.to_owned(),
            name: name.to_owned(),
            kubernetes_minor,
        })
    }

    /// The infrastructure, such as `openstack`.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The name of the stack, such as `scs`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Kubernetes minor that the stack installs.
    pub fn kubernetes_minor(&self) -> KubernetesMinor {
        self.kubernetes_minor
    }
}

impl fmt::Display for ReleaseStem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            provider,
            name,
            kubernetes_minor,
        } = self;
        write!(
            formatter,
            "{provider}-{name}-{}-{}",
            kubernetes_minor.major(),
            kubernetes_minor.minor()
        )
    }
}

/// The tag of a release and the name of its `ClusterStackRelease`: dashes only, five parts, or seven for versions that are not stable.
///
/// Every value is a valid object name. Orders by provider, name, Kubernetes minor, version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReleaseTag {
    stem: ReleaseStem,
    version: StackVersion,
}

impl ReleaseTag {
    /// Refuses a version that cannot stand in an object name.
    pub fn new(stem: ReleaseStem, version: StackVersion) -> Result<Self, NameError> {
        let tag = Self { stem, version };
        if tag.version.fits_object_names() && tag.to_string().len() <= OBJECT_NAME_BYTES {
            Ok(tag)
        } else {
            Err(NameError::NotAnObjectName {
                value: tag.version.to_string(),
            })
        }
    }

    /// The first four parts.
    pub fn stem(&self) -> &ReleaseStem {
        &self.stem
    }

    /// The infrastructure, such as `openstack`.
    pub fn provider(&self) -> &str {
        self.stem.provider()
    }

    /// The name of the stack, such as `scs`.
    pub fn name(&self) -> &str {
        self.stem.name()
    }

    /// The Kubernetes minor that the release installs.
    pub fn kubernetes_minor(&self) -> KubernetesMinor {
        self.stem.kubernetes_minor()
    }

    /// The version of the stack.
    pub fn version(&self) -> &StackVersion {
        &self.version
    }

    /// The `ClusterClass` that this release brings.
    pub fn class_name(&self) -> ClassName {
        ClassName(self.clone())
    }
}

impl FromStr for ReleaseTag {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (stem, version) = split(text, 2)?;
        Self::new(stem, StackVersion::parse_dash(version)?)
    }
}

impl fmt::Display for ReleaseTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.stem, self.version.dash())
    }
}

/// The name of the `ClusterClass` of a release, as `Cluster.spec.topology.class` has it: the version keeps its dot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClassName(ReleaseTag);

impl ClassName {
    /// The release that brings this class.
    pub fn release_tag(&self) -> &ReleaseTag {
        &self.0
    }
}

impl From<ClassName> for ReleaseTag {
    fn from(class: ClassName) -> Self {
        class.0
    }
}

impl From<ReleaseTag> for ClassName {
    fn from(tag: ReleaseTag) -> Self {
        Self(tag)
    }
}

impl FromStr for ClassName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (stem, version) = split(text, 1)?;
        Ok(Self(ReleaseTag::new(stem, version.parse()?)?))
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.0.stem, self.0.version)
    }
}

/// Stem and the text of the version, in which a dash stands never or `dashes` times.
fn split(text: &str, dashes: usize) -> Result<(ReleaseStem, &str), NameError> {
    let mut parts = text.splitn(5, '-');
    let (Some(provider), Some(name), Some(major), Some(minor), Some(version)) =
        (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(NameError::Format { value: text.to_owned() });
    };
    if ![0, dashes].contains(&version.matches('-').count()) {
        return Err(NameError::Format { value: text.to_owned() });
    }
    let stem = ReleaseStem::new(provider, name, KubernetesMinor::from_parts(major, minor)?)?;
    Ok((stem, version))
}

string_on_the_wire!(ReleaseTag, ClassName);
