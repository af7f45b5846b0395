//! Go's package `time`: instants, durations and zones, and their texts. Knows no templates and never asks what time it is.
//!
//! The local zone is UTC. Other zones come from the database that is built in; nothing of the system is read.

mod calendar;
mod duration;
mod element;
mod instant;
mod layout;
mod parse;
mod zone;

use std::fmt::Write as _;

pub(crate) use calendar::{MONTHS, WEEKDAYS};
pub(crate) use duration::{Duration, HOUR, MINUTE, SECOND};
pub(crate) use instant::Time;
pub(crate) use layout::{RFC_3339, RFC_3339_NANO};
pub(crate) use parse::parse;
pub(crate) use zone::Location;

/// Whether a text is a duration. The error is Go's text.
pub fn check_duration(text: &str) -> Result<(), String> {
    Duration::parse(text.as_bytes()).map(|_| ())
}

/// How Go quotes a text in the errors of this package: bytes beyond ASCII as `\x`.
fn quote(text: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for byte in text {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(*byte));
            }
            b' '..0x80 => quoted.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(quoted, "\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The digits that a text begins with as a number, and the rest; nothing when the number is above 2^63.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    const LIMIT: u64 = 1 << 63;
    let mut number = 0u64;
    let mut rest = text;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit - b'0')))
            .filter(|number| *number <= LIMIT)?;
        rest = after;
    }
    Some((number, rest))
}
