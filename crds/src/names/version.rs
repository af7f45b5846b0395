//! Versions of a stack, its add-ons and its node images: grammar, the two spellings, order.

use std::{cmp::Ordering, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Channel, NameError, is_tag_part, is_word, number, string_on_the_wire};

/// `v2`, or `v0-sha.abc`: a number, a channel and, unless the channel is stable, a patch.
///
/// Printed and parsed in dot form (metadata.yaml, `spec.versions`, class names); tags use [`StackVersion::dash`]. As in the Go operator
/// `v1-stable.3` is read as `v1`.
///
/// The order is total and consistent with equality: by number, then channel (stable last), then patch. Numbers inside patches
/// compare as numbers, so `alpha.9` is before `alpha.10`; hashes have an order that is stable, but says nothing about their age.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StackVersion {
    major: u64,
    channel: Channel,
    /// Empty if and only if the channel is stable.
    patch: String,
}

impl StackVersion {
    /// The stable version with this number.
    pub fn stable(major: u64) -> Self {
        Self {
            major,
            channel: Channel::stable(),
            patch: String::new(),
        }
    }

    /// Reads the spelling of tags, `v0-sha-abc`.
    pub fn parse_dash(text: &str) -> Result<Self, NameError> {
        Self::parse(text, '-')
    }

    /// The number after the `v`.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The word after the number, `stable` if there is none.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// What follows the channel; `None` for stable versions.
    pub fn patch(&self) -> Option<&str> {
        (!self.patch.is_empty()).then_some(self.patch.as_str())
    }

    /// Whether the version says what comes before and after it: numbers count up, a hash says nothing.
    pub fn has_order(&self) -> bool {
        self.patch.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// The spelling of tags and object names: `v0-sha-abc`.
    pub fn dash(&self) -> String {
        self.spelled('-')
    }

    /// Whether the parts may stand in the name of a Kubernetes object.
    pub(super) fn fits_object_names(&self) -> bool {
        self.channel.is_stable() || (is_tag_part(self.channel.as_str()) && is_tag_part(&self.patch))
    }

    fn spelled(&self, separator: char) -> String {
        let Self { major, channel, patch } = self;
        if channel.is_stable() {
            format!("v{major}")
        } else {
            format!("v{major}-{channel}{separator}{patch}")
        }
    }

    fn parse(text: &str, separator: char) -> Result<Self, NameError> {
        let invalid = || NameError::Version { value: text.to_owned() };
        let body = text.strip_prefix('v').ok_or_else(invalid)?;
        let (major, suffix) = body
            .split_once('-')
            .map_or((body, None), |(major, suffix)| (major, Some(suffix)));
        let major = number(major).ok_or_else(invalid)?;
        let Some(suffix) = suffix else {
            return Ok(Self::stable(major));
        };
        let (channel, patch) = suffix.split_once(separator).ok_or_else(invalid)?;
        if !is_word(patch) {
            return Err(invalid());
        }
        let channel: Channel = channel.parse().map_err(|_| invalid())?;
        let patch = if channel.is_stable() {
            String::new()
        } else {
            patch.to_owned()
        };
        Ok(Self { major, channel, patch })
    }
}

impl FromStr for StackVersion {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text, '.')
    }
}

impl fmt::Display for StackVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.spelled('.'))
    }
}

impl Ord for StackVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.major
            .cmp(&other.major)
            .then_with(|| self.channel.cmp(&other.channel))
            .then_with(|| runs(&self.patch).cmp(runs(&other.patch)))
            // `01` and `1` are the same number but not the same version.
            .then_with(|| self.patch.cmp(&other.patch))
    }
}

impl PartialOrd for StackVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A run of digits or of anything else. Numbers of any length compare by their count of digits first, which is why leading zeros are dropped.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Run<'text> {
    Number(usize, &'text str),
    Text(&'text str),
}

fn runs(text: &str) -> impl Iterator<Item = Run<'_>> {
    text.as_bytes()
        .chunk_by(|left, right| left.is_ascii_digit() == right.is_ascii_digit())
        .scan(0, |start, chunk| {
            let run = &text[*start..*start + chunk.len()];
            *start += chunk.len();
            Some(run)
        })
        .map(|run| {
            if run.starts_with(|first: char| first.is_ascii_digit()) {
                let digits = run.trim_start_matches('0');
                Run::Number(digits.len(), digits)
            } else {
                Run::Text(run)
            }
        })
}

string_on_the_wire!(StackVersion);
