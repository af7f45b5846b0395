//! Versions and version ranges as the Go library Masterminds/semver 3 reads them: lenient versions, `~`, `^`, `x`, hyphen ranges.

mod constraint;

use std::cmp::Ordering;
use std::fmt;

pub use constraint::{ConstraintError, Constraints};

/// A version of the library, as far as its answers tell it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// 3.4, which has no limits.
    V3_4,
    /// 3.5, which refuses what is long or grows beyond 64 bits, and quotes what it refuses.
    V3_5,
}

/// How many bytes a version may have since 3.5 of the library.
const MAX_VERSION: usize = 256;

/// A semantic version; minor and patch may be left out when it is written.
///
/// The default is what Go has before it reads any: 0.0.0, written as nothing.
#[derive(Clone, Debug, Default)]
pub struct Version {
    original: String,
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
}

impl Version {
    /// Reads `1.2.3`, `v1.2`, `1`, `1.2.3-rc.1+build`. The error is Go's text.
    pub fn parse(text: &[u8], library: Library) -> Result<Self, String> {
        if library == Library::V3_5 && text.len() > MAX_VERSION {
            return Err(format!("version string is too long (max {MAX_VERSION} bytes)"));
        }
        let parts = str::from_utf8(text)
            .ok()
            .and_then(|text| Some((text, Written::split(text)?)));
        let (text, written) = parts.ok_or("invalid semantic version")?;
        let Written {
            numbers,
            prerelease,
            metadata,
        } = written;
        let number = |index: usize| match numbers[index] {
            "" => Ok(0),
            digits => digits.parse::<u64>().map_err(|_| {
                format!("error parsing version segment: strconv.ParseUint: parsing {digits:?}: value out of range")
            }),
        };
        if prerelease.split('.').any(has_leading_zero) {
            return Err("version segment starts with 0".to_owned());
        }
        Ok(Self {
            original: text.to_owned(),
            major: number(0)?,
            minor: number(1)?,
            patch: number(2)?,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
        })
    }

    /// The text that was parsed.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// The first number.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// The second number, 0 when it was left out.
    pub fn minor(&self) -> u64 {
        self.minor
    }

    /// The third number, 0 when it was left out.
    pub fn patch(&self) -> u64 {
        self.patch
    }

    /// What follows the hyphen, empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// What follows the plus sign; it does not take part in comparisons.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The release that comes next when a number is raised. A prerelease is followed by its release. The error is Go's text.
    pub(crate) fn raised(&self, number: Number, library: Library) -> Result<Self, String> {
        let next = |value: u64| match value.checked_add(1) {
            None if library == Library::V3_5 => {
                Err(format!("{} version increment would overflow uint64", number.name()))
            }
            next => Ok(next.unwrap_or(0)),
        };
        let (major, minor, patch) = match number {
            Number::Major => (next(self.major)?, 0, 0),
            Number::Minor => (self.major, next(self.minor)?, 0),
            Number::Patch if self.prerelease.is_empty() => (self.major, self.minor, next(self.patch)?),
            Number::Patch => self.numbers(),
        };
        let version = Self {
            original: String::new(),
            major,
            minor,
            patch,
            prerelease: String::new(),
            metadata: String::new(),
        };
        Ok(version.rewritten(&self.original))
    }

    /// The same version with another prerelease. The error is Go's text.
    pub(crate) fn with_prerelease(&self, prerelease: &str) -> Result<Self, String> {
        for identifier in prerelease.split('.').filter(|_| !prerelease.is_empty()) {
            if has_leading_zero(identifier) {
                return Err("version segment starts with 0".to_owned());
            }
            if identifier.is_empty() || !is_identifier(identifier) {
                return Err("invalid prerelease string".to_owned());
            }
        }
        let version = Self {
            prerelease: prerelease.to_owned(),
            ..self.clone()
        };
        Ok(version.rewritten(&self.original))
    }

    /// The same version with other metadata. The error is Go's text.
    pub(crate) fn with_metadata(&self, metadata: &str) -> Result<Self, String> {
        let is_part = |identifier: &str| !identifier.is_empty() && is_identifier(identifier);
        if !metadata.is_empty() && !metadata.split('.').all(is_part) {
            return Err("invalid metadata string".to_owned());
        }
        let version = Self {
            metadata: metadata.to_owned(),
            ..self.clone()
        };
        Ok(version.rewritten(&self.original))
    }

    fn rewritten(self, original: &str) -> Self {
        let prefix = if original.starts_with('v') { "v" } else { "" };
        Self {
            original: format!("{prefix}{self}"),
            ..self
        }
    }

    fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }
}

/// Which number of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Major,
    Minor,
    Patch,
}

impl Number {
    const fn name(self) -> &'static str {
        match self {
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Patch => "patch",
        }
    }
}

/// The parts of a version as they are written; empty where they are left out.
struct Written<'a> {
    numbers: [&'a str; 3],
    prerelease: &'a str,
    metadata: &'a str,
}

impl<'a> Written<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let (text, metadata) = split_suffix(text, '+')?;
        let (text, prerelease) = split_suffix(text, '-')?;
        let mut numbers = [""; 3];
        for (index, digits) in text.strip_prefix('v').unwrap_or(text).split('.').enumerate() {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            *numbers.get_mut(index).filter(|_| is_number)? = digits;
        }
        Some(Self {
            numbers,
            prerelease,
            metadata,
        })
    }
}

/// A text and the identifiers behind a sign, which are sound and not empty if the sign is there.
fn split_suffix(text: &str, sign: char) -> Option<(&str, &str)> {
    let Some((text, suffix)) = text.split_once(sign) else {
        return Some((text, ""));
    };
    let is_sound = |identifier: &str| !identifier.is_empty() && is_identifier(identifier);
    suffix.split('.').all(is_sound).then_some((text, suffix))
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(formatter, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers()
            .cmp(&other.numbers())
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zero(identifier: &str) -> bool {
    identifier.len() > 1 && identifier.starts_with('0') && identifier.bytes().all(|byte| byte.is_ascii_digit())
}

/// A release comes after its prereleases; numbers come before words.
fn compare_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut others = right.split('.');
    for identifier in left.split('.') {
        let Some(other) = others.next() else {
            return Ordering::Greater;
        };
        let order = match (identifier.parse::<u64>(), other.parse::<u64>()) {
            (Ok(number), Ok(other)) => number.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => identifier.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
    }
    if others.next().is_some() {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}
