//! The names that tie a stack, its releases and its classes together, and their two spellings.
//!
//! A *release tag* is written with dashes only (`openstack-scs-1-32-v0-sha-abc`) and is at the same time the name of the
//! `ClusterStackRelease`. A *class name* keeps the dot of the version (`openstack-scs-1-32-v0-sha.abc`) and is the name of the
//! `ClusterClass`. For stable versions both are equal. Both consist of a [`ReleaseStem`] and a [`StackVersion`].
//!
//! Parsing normalises numbers (`v01` is `v1`), so a text that came from outside is canonical only if it equals what is printed.

mod channel;
mod kubernetes;
mod release;
mod version;

use thiserror::Error;

pub use self::{
    channel::Channel,
    kubernetes::KubernetesMinor,
    release::{ClassName, ReleaseStem, ReleaseTag},
    version::StackVersion,
};

/// Why a text is not one of our names. The message begins with the contract's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The number of dash-separated parts is wrong.
    #[error("invalid format: {value:?} is not of the form <provider>-<name>-<major>-<minor>-<version>")]
    Format {
        /// The whole text.
        value: String,
    },
    /// The provider is empty or could not be one part of a tag.
    #[error("invalid provider {value:?}: use lower-case letters and digits only")]
    Provider {
        /// The provider as given.
        value: String,
    },
    /// The name of the stack is empty or could not be one part of a tag.
    #[error("invalid name {value:?}: use lower-case letters and digits only")]
    Name {
        /// The name as given.
        value: String,
    },
    /// The major part of the Kubernetes version is not a number.
    #[error("invalid major version {value:?}")]
    MajorVersion {
        /// The part as given.
        value: String,
    },
    /// The minor part of the Kubernetes version is not a number.
    #[error("invalid minor version {value:?}")]
    MinorVersion {
        /// The part as given.
        value: String,
    },
    /// Not a Kubernetes version of the form wanted: `1.32`, or `v1.32.4` where a full version stands.
    #[error("invalid kubernetes version {value:?}")]
    KubernetesVersion {
        /// The text as given.
        value: String,
    },
    /// Not `v<number>` or `v<number>-<channel>.<patch>`.
    #[error("invalid version string {value}")]
    Version {
        /// The text as given.
        value: String,
    },
    /// A version that is well-formed but contains what no Kubernetes object name may (upper case, `_`), or makes the name too long.
    #[error(
        "invalid version string {value}: the release could not be the name of an object; use lower-case letters and digits"
    )]
    NotAnObjectName {
        /// The version in dot form.
        value: String,
    },
    /// Not a word of letters, digits and `_`.
    #[error("invalid channel {value:?}: use lower-case letters and digits only")]
    Channel {
        /// The text as given.
        value: String,
    },
}

/// The parts of tags that come from a spec: they must survive splitting at `-` and the one `.` of a class name.
fn is_tag_part(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// What the contract's grammar calls a word (`\w`): ASCII letters, digits and `_`.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A decimal number without sign; `None` also when it does not fit.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// `serde`, `FromStr`-based: every name is a string on the wire.
macro_rules! string_on_the_wire {
    ($($name:ty),+) => {$(
        impl TryFrom<String> for $name {
            type Error = $crate::names::NameError;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.to_string()
            }
        }
    )+};
}
use string_on_the_wire;
