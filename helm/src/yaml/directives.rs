//! Which version of YAML a directive may name: for Go 1.1 alone, in numbers of up to two digits. Our scanner takes 1.2 and longer numbers too.

use super::dialect::Edit;

/// How a directive begins that names a version.
pub(super) const VERSION: &[u8] = b"%YAML";

/// What makes a number too long for our scanner as well.
const ZEROS: &[u8] = b"000000000";

/// What makes our scanner refuse the version that a directive at a position names, if Go's does, for the same reason.
pub(super) fn refused_version(text: &[u8], position: usize) -> Option<Edit> {
    let version = text[position..].strip_prefix(VERSION)?;
    let blanks = version.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let major = position + VERSION.len() + blanks;
    let dot = major + digits(&text[major..]);
    if dot - major > 2 {
        return Some((major..major, ZEROS));
    }
    let minor = Some(dot + 1).filter(|_| text.get(dot) == Some(&b'.'))?;
    let end = minor + digits(&text[minor..]);
    match &text[minor..end] {
        [_, _, _, ..] => Some((minor..minor, ZEROS)),
        // Neither scanner takes 1.3.
        b"2" | b"02" => Some((minor..end, b"3")),
        _ => None,
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}
