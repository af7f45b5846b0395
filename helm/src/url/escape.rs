//! Percent signs: which characters each part of a URL takes as they are.

use crate::format::quote;
use crate::text;

/// A part of a URL, as far as escaping tells it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    User,
    Host,
    /// What follows the percent sign in an address.
    Zone,
    Fragment,
}

/// Whether a part takes a byte only escaped.
fn needs_escape(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    let plain: &[u8] = match part {
        Part::Path => b"$&+,/:;=@",
        Part::User => b"$&+,;=",
        Part::Host | Part::Zone => b"!$&'()*+,;=:[]<>\"",
        Part::Fragment => b"$&+,/:;=?@!()*",
    };
    !plain.contains(&byte)
}

pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        if needs_escape(*byte, part) {
            escaped.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            escaped.push(*byte);
        }
    }
    escaped
}

/// The error is Go's text.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let is_host = matches!(part, Part::Host | Part::Zone);
    let mut unescaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            if is_host && first.is_ascii() && needs_escape(*first, part) {
                let character = text::lossy(&quote(&[*first]));
                return Err(format!("invalid character {character} in host name"));
            }
            unescaped.push(*first);
            rest = after;
            continue;
        }
        let byte = escaped_byte(after).filter(|byte| may_be_escaped(*byte, part));
        let Some(byte) = byte else {
            let escape = text::lossy(&quote(&rest[..rest.len().min(3)]));
            return Err(format!("invalid URL escape {escape}"));
        };
        unescaped.push(byte);
        rest = &after[2..];
    }
    Ok(unescaped)
}

/// The byte of the two digits after a percent sign.
fn escaped_byte(digits: &[u8]) -> Option<u8> {
    let digits = str::from_utf8(digits.get(..2)?).ok()?;
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal)
}

/// Hosts escape bytes beyond ASCII only; zones also what stands in hosts, and spaces.
fn may_be_escaped(byte: u8, part: Part) -> bool {
    match part {
        Part::Host => byte >= 0x80 || byte == b'%',
        Part::Zone => byte == b'%' || byte == b' ' || !needs_escape(byte, Part::Host),
        _ => true,
    }
}
