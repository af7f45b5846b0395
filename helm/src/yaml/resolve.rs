//! What a scalar without quotes means: the type rules of go-yaml v2, which are YAML 1.1 with omissions.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::node::Node;
use crate::number;

/// Prefix of the standard tags, written `!!` in documents.
pub(super) const TAG_PREFIX: &str = "tag:yaml.org,2002:";

static TIMESTAMP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^[0-9]{4}-([0-9]{1,2})-([0-9]{1,2})",
        r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[-+][0-9]{2}:[0-9]{2}))",
        r"|(?: +([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?))?$",
    ))
    .expect("a constant pattern of this file compiles")
});

/// The type that a scalar resolves to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Resolved {
    /// Null, a boolean or a number.
    Node(Node),
    /// A date or time, which documents keep as its text.
    Timestamp,
    /// Anything else.
    Text,
}

impl Resolved {
    /// The standard tag of the type without its prefix.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Node(Node::Null) => "null",
            Self::Node(Node::Bool(_)) => "bool",
            Self::Node(Node::Int(_) | Node::Uint(_)) => "int",
            Self::Node(Node::Float(_)) => "float",
            Self::Timestamp => "timestamp",
            Self::Node(_) | Self::Text => "str",
        }
    }
}

/// Resolves the text of a plain scalar.
pub(super) fn resolve(text: &str) -> Resolved {
    match text.as_bytes().first() {
        None => Resolved::Node(Node::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => match special_float(text) {
            Some(number) => Resolved::Node(Node::Float(number)),
            // A dot does not take part in the removal of underscores, so only the plain form is a number.
            None => float(text).map_or(Resolved::Text, Resolved::Node),
        },
        Some(b'+' | b'-' | b'0'..=b'9') => number(text),
        Some(_) => Resolved::Text,
    }
}

/// Whether a string that resolves to text must still be quoted, because other YAML readers see a base-60 number in it.
pub(super) fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else {
        return false;
    };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let is_sexagesimal = |place: &str| match place.as_bytes() {
        [unit] | [b'0'..=b'5', unit] => unit.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|digit: char| digit.is_ascii_digit())
        && are_digits(first)
        && rest.split(':').all(is_sexagesimal)
        && are_digits(fraction)
}

fn word(text: &str) -> Resolved {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Node(Node::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Node(Node::Bool(false))
        }
        "~" | "null" | "Null" | "NULL" => Resolved::Node(Node::Null),
        _ => Resolved::Text,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(text: &str) -> Resolved {
    if let Some(number) = special_float(text) {
        return Resolved::Node(Node::Float(number));
    }
    if text.as_bytes().get(4) == Some(&b'-') && is_timestamp(text) {
        return Resolved::Timestamp;
    }
    let digits = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    if let Some(number) = number::parse_int(&digits) {
        return Resolved::Node(Node::Int(number));
    }
    if let Some(number) = number::parse_uint(&digits) {
        return Resolved::Node(Node::Uint(number));
    }
    float(&digits).map_or(Resolved::Text, Resolved::Node)
}

/// A decimal float; out of range it is no number, as in Go.
fn float(text: &str) -> Option<Node> {
    // Of such characters, both languages read the same numbers.
    let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    let number = text.bytes().all(is_part).then(|| text.parse::<f64>().ok())?;
    number.filter(|number| number.is_finite()).map(Node::Float)
}

fn is_timestamp(text: &str) -> bool {
    let Some(parts) = TIMESTAMP.captures(text) else {
        return false;
    };
    let part = |group: usize| parts.get(group).and_then(|part| part.as_str().parse::<u32>().ok());
    let year: u32 = text[..4].parse().unwrap_or_default();
    let (Some(month), Some(day)) = (part(1), part(2)) else {
        return false;
    };
    let clock = [(3, 24), (4, 60), (5, 60), (6, 24), (7, 60), (8, 60)];
    (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && clock
            .iter()
            .all(|&(group, limit)| part(group).is_none_or(|value| value < limit))
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
