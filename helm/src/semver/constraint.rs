//! Ranges of versions: how they are written and which versions they take.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::{Library, Version};
use crate::bounds::{BoundError, read};
use crate::format::quoted;
use crate::text;

/// A range such as `>=1.2 <2, !=1.5.0 || ~3`.
#[derive(Clone, Debug)]
pub struct Constraints {
    /// One of these must hold with all its parts.
    alternatives: Vec<Vec<Constraint>>,
}

#[derive(Clone, Debug)]
struct Constraint {
    operator: Operator,
    version: Version,
    /// How many numbers were written: `1.x` has one.
    written: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// Two versions with a hyphen between them.
static HYPHEN: LazyLock<Regex> = LazyLock::new(|| {
    let suffix = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*";
    let number = r"[0-9xX*|]+";
    let version = format!(r"v?({number})(?:\.({number}))?(?:\.({number}))?(?:-({suffix}))?(?:\+({suffix}))?");
    let space = r"[\t\n\f\r ]";
    Regex::new(&format!("{space}*({version}){space}+-{space}+({version}){space}*"))
        .expect("a constant pattern compiles")
});

/// How many bytes a range, and how many alternatives it may have since 3.5 of the library.
const MAX_RANGE: usize = 512;
const MAX_ALTERNATIVES: usize = 32;

/// A text that is no range. Displays as the library says it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// One of the alternatives does not read as one; newer libraries quote it.
    #[error("improper constraint: {0}")]
    Improper(String),
    /// A number is too large, or digits stand beside wildcards, or a version is too long.
    #[error("constraint parser error")]
    Version,
    /// The range is too long.
    #[error("constraint string is too long (max {MAX_RANGE} bytes)")]
    TooLong,
    /// The range has too many alternatives.
    #[error("too many constraint groups (max {MAX_ALTERNATIVES})")]
    TooManyAlternatives,
    /// Reading it is more work than is allowed.
    #[error(transparent)]
    Bound(BoundError),
}

impl Constraints {
    /// Reads a range.
    pub fn parse(text: &[u8], library: Library) -> Result<Self, ConstraintError> {
        let is_limited = library == Library::V3_5;
        if is_limited && text.len() > MAX_RANGE {
            return Err(ConstraintError::TooLong);
        }
        let text = text::lossy(text);
        let text = without_hyphens(&text).map_err(ConstraintError::Bound)?;
        if is_limited && text.split("||").count() > MAX_ALTERNATIVES {
            return Err(ConstraintError::TooManyAlternatives);
        }
        let improper = |alternative: &str| {
            ConstraintError::Improper(if is_limited {
                quoted(alternative)
            } else {
                alternative.to_owned()
            })
        };
        let alternatives = text.split("||").map(|alternative| {
            let parts = Written::split(alternative).ok_or_else(|| improper(alternative))?;
            parts.iter().map(|part| Constraint::new(part, library)).collect()
        });
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a version is in the range. Prereleases are only in alternatives that name one.
    pub fn check(&self, version: &Version) -> bool {
        let names_prerelease = |constraint: &Constraint| !constraint.version.prerelease().is_empty();
        self.alternatives.iter().any(|all| {
            (version.prerelease().is_empty() || all.iter().any(names_prerelease))
                && all.iter().all(|constraint| constraint.check(version))
        })
    }
}

/// `1.2 - 1.4` is `>= 1.2, <= 1.4`. Of several hyphens Go rewrites for each the first text like what it found, wherever that stands now.
fn without_hyphens(text: &str) -> Result<Cow<'_, str>, BoundError> {
    let is_free = |part: &[u8]| matches!(part, [before, b'-', behind] if is_space(*before) && is_space(*behind));
    if !text.as_bytes().windows(3).any(is_free) {
        return Ok(Cow::Borrowed(text));
    }
    let mut rewritten = Cow::Borrowed(text);
    for parts in HYPHEN.captures_iter(text) {
        read(rewritten.len())?;
        let bounds = format!(">= {}, <= {} ", &parts[1], &parts[7]);
        rewritten = Cow::Owned(rewritten.replacen(&parts[0], &bounds, 1));
    }
    Ok(rewritten)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

fn trim_start(text: &str) -> &str {
    take(text, is_space).1
}

/// Cuts a text behind the bytes of a kind that it begins with.
fn take(text: &str, is_kind: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_kind(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// What a sign leads, unless nothing of the kind follows the sign.
fn led(text: &str, sign: char, is_kind: impl Fn(u8) -> bool) -> (&str, &str) {
    match text.strip_prefix(sign).map(|behind| take(behind, is_kind)) {
        Some((led, rest)) if !led.is_empty() => (led, rest),
        _ => ("", text),
    }
}

/// The same for identifiers with points between them.
fn led_identifiers(text: &str, sign: char) -> (&str, &str) {
    let is_kind = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let (mut last, mut rest) = led(text, sign, is_kind);
    while !last.is_empty() {
        (last, rest) = led(rest, '.', is_kind);
    }
    let all = &text[..text.len() - rest.len()];
    (all.strip_prefix(sign).unwrap_or_default(), rest)
}

/// One part of a range as it is written. What is left out is empty.
struct Written<'a> {
    operator: Operator,
    version: &'a str,
    numbers: [&'a str; 3],
    prerelease: &'a str,
}

impl<'a> Written<'a> {
    /// The parts of an alternative, with commas or spaces between them; nothing if it has anything else.
    fn split(alternative: &'a str) -> Option<Vec<Self>> {
        let mut parts = Vec::new();
        let mut rest = trim_start(alternative);
        loop {
            let (part, behind) = Self::read(rest)?;
            parts.push(part);
            let next = trim_start(behind);
            if next.is_empty() {
                return Some(parts);
            }
            let is_apart = next.len() < behind.len();
            rest = match next.strip_prefix(',') {
                Some(next) => trim_start(next),
                None => is_apart.then_some(next)?,
            };
        }
    }

    /// The part that a text begins with, and what is behind it.
    fn read(text: &'a str) -> Option<(Self, &'a str)> {
        let (operator, rest) = take(text, |byte| b"=!<>~^".contains(&byte));
        let operator = match operator {
            "" | "=" => Operator::Equal,
            "!=" => Operator::NotEqual,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            ">=" | "=>" => Operator::GreaterOrEqual,
            "<=" | "=<" => Operator::LessOrEqual,
            "^" => Operator::Caret,
            "~" | "~>" => Operator::Tilde,
            _ => return None,
        };
        let version = trim_start(rest);
        // Helm's library takes a bar here, which no version has.
        let is_digit = |byte: u8| byte.is_ascii_digit() || b"xX*|".contains(&byte);
        let (major, rest) = take(version.strip_prefix('v').unwrap_or(version), is_digit);
        if major.is_empty() {
            return None;
        }
        let (minor, rest) = led(rest, '.', is_digit);
        let (patch, rest) = led(rest, '.', is_digit);
        let (prerelease, rest) = led_identifiers(rest, '-');
        let (_, rest) = led_identifiers(rest, '+');
        let part = Self {
            operator,
            version: &version[..version.len() - rest.len()],
            numbers: [major, minor, patch],
            prerelease,
        };
        Some((part, rest))
    }
}

impl Constraint {
    fn new(part: &Written<'_>, library: Library) -> Result<Self, ConstraintError> {
        let numbers = part
            .numbers
            .map(|text| Some(text).filter(|text| !["", "x", "X", "*"].contains(text)));
        let (written, text) = match numbers {
            [None, ..] => (0, "0.0.0".to_owned()),
            [Some(major), None, _] => (1, format!("{major}.0.0")),
            [Some(major), Some(minor), None] => (2, format!("{major}.{minor}.0")),
            [Some(_), Some(_), Some(_)] => (3, part.version.to_owned()),
        };
        // A prerelease counts also behind a wildcard: `>=1.2-0`.
        let text = match part.prerelease {
            prerelease if written < 3 && !prerelease.is_empty() => format!("{text}-{prerelease}"),
            _ => text,
        };
        let version = Version::parse(text.as_bytes(), library).map_err(|_| ConstraintError::Version)?;
        Ok(Self {
            operator: part.operator,
            version,
            written,
        })
    }

    fn check(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.operator {
            Operator::Equal if self.written == 3 => version == wanted,
            Operator::Equal | Operator::Tilde => version >= wanted && self.close_to(version),
            Operator::NotEqual => self.differs(version),
            Operator::Greater => self.is_greater(version),
            Operator::Less => version < wanted,
            Operator::GreaterOrEqual => version >= wanted,
            Operator::LessOrEqual => self.is_at_most(version),
            Operator::Caret => version >= wanted && self.compatible(version),
        }
    }

    /// `!=1.x` refuses all of 1; `!=1.2-a` of 1.2 only what has the same prerelease; `!=*` is `!=0.0.0`.
    fn differs(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            1 => left.0 != right.0,
            2 => (left.0, left.1) != (right.0, right.1) || version.prerelease() != self.version.prerelease(),
            _ => version != &self.version,
        }
    }

    /// `<=1` takes all of 1.x; `<=1.2` all of 1.2.x.
    fn is_at_most(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            3 => version <= &self.version,
            1 => left.0 <= right.0,
            _ => (left.0, left.1) <= (right.0, right.1),
        }
    }

    /// `>1` means above all of 1.x; `>1.2` above all of 1.2.x.
    fn is_greater(&self, version: &Version) -> bool {
        let wanted = &self.version;
        match self.written {
            1 => version.major() > wanted.major(),
            2 => (version.major(), version.minor()) > (wanted.major(), wanted.minor()),
            _ => version > wanted,
        }
    }

    /// `~1.2.3` lets the patch move, `~1` the minor as well, `*` and `~0.0.0` everything.
    fn close_to(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        match self.written {
            0 => true,
            3 if right == (0, 0, 0) => true,
            1 => left.0 == right.0,
            _ => (left.0, left.1) == (right.0, right.1),
        }
    }

    /// `^`: everything may move behind the first number that is not zero.
    fn compatible(&self, version: &Version) -> bool {
        let (left, right) = (version.numbers(), self.version.numbers());
        if right.0 > 0 || self.written == 1 {
            left.0 == right.0
        } else if right.1 > 0 || self.written == 2 {
            (left.0, left.1) == (0, right.1)
        } else {
            left == right
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_version(text: &str) -> Version {
        Version::parse(text.as_bytes(), Library::V3_5).unwrap()
    }

    #[test]
    fn ranges_take_the_versions_that_go_takes() {
        for (range, version, taken) in [
            (">=1.2", "1.2.3-beta", false),
            (">=1.2.3-0", "1.2.3-beta", true),
            (">=1.19-0 <1.30", "1.27.3-gke.100", true),
            (">=1.19-0 <1.30 || 2", "2.0.0-a", false),
            ("<1.3", "v1.2", true),
            ("1.2 - 1.4", "1.3.9", true),
            ("1.2 - 1.4", "1.4.9", true),
            ("=1.2", "1.2.5", true),
            ("1.2.3", "1.2.3+build", true),
            ("!=1.2.x", "1.2.5", false),
            ("!=1.2.x", "1.3.5", true),
            ("!=1.2.3", "1.2.4", true),
            ("~1", "1.9", true),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("^0.2.3", "0.3.0", false),
            ("^0.2.3", "0.2.4", true),
            ("^0.0.3", "0.0.4", false),
            ("^1.2", "1.9", true),
            ("^1", "2.0", false),
            (">1 <2, !=1.5.0 || 3", "1.4", false),
            (">1 <2, !=1.5.0 || 3", "3.1", true),
            ("*", "1.0.0-a", false),
            ("*", "1.0.0", true),
            ("", "1.0.0", false),
            ("~0.0.0", "7.1.0", true),
            (">=1.19-0", "v1.27.3-gke.100", true),
            (">= 1.19.0-0 < 2", "1.34.0", true),
            ("~1.2.x || >3", "1.2.9", true),
            (">x", "1", true),
            ("<=1.2", "1.2.9", true),
        ] {
            let constraints = Constraints::parse(range.as_bytes(), Library::V3_5);
            let found = constraints.is_ok_and(|constraints| constraints.check(&read_version(version)));
            assert_eq!(found, taken, "{version} in {range:?}");
        }
    }

    #[test]
    fn versions_print_canonically_and_order_by_precedence() {
        assert_eq!(read_version("v1.2").to_string(), "1.2.0");
        assert!(Version::parse(b"1.2.3.4", Library::V3_5).is_err());
        assert!(Version::parse(b"latest", Library::V3_5).is_err());
        let order = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1",
        ];
        for pair in order.windows(2) {
            assert!(read_version(pair[0]) < read_version(pair[1]), "{pair:?}");
        }
    }
}
