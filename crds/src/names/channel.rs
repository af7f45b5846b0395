//! Channels: which kind of version a stack follows.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{NameError, is_word, string_on_the_wire};

/// The channel of a version or a stack: `stable`, `custom`, or any other word such as `alpha`, `beta`, `sha`.
///
/// Orders by name, except that `stable` is the greatest: of two versions with the same number the stable one is newer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Channel(String);

impl Channel {
    /// The channel of versions without a suffix.
    pub const STABLE: &str = "stable";
    /// As the channel of a stack: every version that is not stable.
    pub const CUSTOM: &str = "custom";

    /// The channel of versions without a suffix, and the default of a stack.
    pub fn stable() -> Self {
        Self(Self::STABLE.to_owned())
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether versions of this channel have no suffix.
    pub fn is_stable(&self) -> bool {
        self.0 == Self::STABLE
    }

    /// Whether a stack on this channel follows versions of the channel `other`: the same word, and for `custom` every word but `stable`.
    pub fn follows(&self, other: &Self) -> bool {
        self == other || (self.0 == Self::CUSTOM && !other.is_stable())
    }
}

impl FromStr for Channel {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_word(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError::Channel { value: text.to_owned() })
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Ord for Channel {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.is_stable(), &self.0).cmp(&(other.is_stable(), &other.0))
    }
}

impl PartialOrd for Channel {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

string_on_the_wire!(Channel);
