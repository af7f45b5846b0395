//! Addresses between the brackets of a host, as Go's `net/netip` reads them. What it refuses, it refuses in Go's words.

use crate::format::quote;
use crate::text;

/// What kind of address a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    V4,
    /// With or without a zone.
    V6,
}

/// How many bytes an address has.
const BYTES: usize = 16;

/// What is wrong, and the rest of the text where that is.
type Problem<'t> = (&'static str, &'t [u8]);

/// Reads an address.
pub(crate) fn parse(address: &[u8]) -> Result<Address, String> {
    let kind = match address.iter().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => v4(address).map(|()| Address::V4),
        Some(b':') => v6(address).map(|()| Address::V6),
        Some(_) => Err(("missing IPv6 address", &[][..])),
        None => Err(("unable to parse IP", &[][..])),
    };
    kind.map_err(|(problem, rest)| {
        let quoted = |text: &[u8]| text::lossy(&quote(text));
        let place = match rest {
            [] => String::new(),
            rest => format!(" (at {})", quoted(rest)),
        };
        format!("ParseAddr({}): {problem}{place}", quoted(address))
    })
}

fn v4(address: &[u8]) -> Result<(), Problem<'_>> {
    let (mut value, mut digits, mut dots) = (0, 0, 0);
    for (position, byte) in address.iter().enumerate() {
        let rest = &address[position..];
        match byte {
            b'0'..=b'9' if digits == 1 && value == 0 => return Err(("IPv4 field has octet with leading zero", &[])),
            b'0'..=b'9' => {
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", &[]));
                }
            }
            b'.' if digits == 0 || rest.len() == 1 => return Err(("IPv4 field must have at least one digit", rest)),
            b'.' if dots == 3 => return Err(("IPv4 address too long", &[])),
            b'.' => {
                dots += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", rest)),
        }
    }
    if dots < 3 {
        return Err(("IPv4 address too short", &[]));
    }
    Ok(())
}

fn v6(address: &[u8]) -> Result<(), Problem<'_>> {
    let (mut rest, zone) = super::cut(address, b'%');
    if zone.is_some_and(<[u8]>::is_empty) {
        return Err(("zone must be a non-empty string", &[]));
    }
    let mut has_gap = false;
    if let Some(behind) = rest.strip_prefix(b"::") {
        has_gap = true;
        rest = behind;
        if rest.is_empty() {
            return Ok(());
        }
    }
    let mut bytes = 0;
    while bytes < BYTES {
        let digits = group(rest)?;
        if rest.get(digits) == Some(&b'.') {
            embedded(rest, bytes, has_gap)?;
            bytes += 4;
            rest = &[];
            break;
        }
        bytes += 2;
        rest = &rest[digits..];
        rest = match rest {
            [] => break,
            [b':'] => return Err(("colon must be followed by more characters", rest)),
            [b':', behind @ ..] => behind,
            _ => return Err(("unexpected character, want colon", rest)),
        };
        if let [b':', behind @ ..] = rest {
            if has_gap {
                return Err(("multiple :: in address", rest));
            }
            has_gap = true;
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest, bytes == BYTES, has_gap) {
        ([], true, true) => Err(("the :: must expand to at least one field of zeros", &[])),
        ([], false, false) => Err(("address string too short", &[])),
        ([], ..) => Ok(()),
        _ => Err(("trailing garbage after address", rest)),
    }
}

/// The number of digits that the text begins with.
fn group(text: &[u8]) -> Result<usize, Problem<'_>> {
    match text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() {
        0 => Err(("each colon-separated field must have at least one digit", text)),
        digits @ 1..=4 => Ok(digits),
        _ => Err(("each group must have 4 or less digits", text)),
    }
}

/// An address of the old kind in the place of the last four bytes.
fn embedded(text: &[u8], bytes: usize, has_gap: bool) -> Result<(), Problem<'_>> {
    if !has_gap && bytes != BYTES - 4 {
        return Err((
            "embedded IPv4 address must replace the final 2 fields of the address",
            text,
        ));
    }
    if bytes + 4 > BYTES {
        return Err((
            "too many hex fields to fit an embedded IPv4 at the end of the address",
            text,
        ));
    }
    v4(text)
}
