//! The little of DER and PEM that certificates and timestamps need beside what a library makes.

use base64::{Engine, prelude::BASE64_STANDARD as BASE64};

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const TEXT: u8 = 0x0c;
pub(crate) const TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;
/// The tag `[0]` around something that has its own.
pub(crate) const ZERO: u8 = 0xa0;

/// Parts after tag and length.
pub(crate) fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let bytes = parts.concat();
    let length = match bytes.len() {
        short @ 0..128 => vec![u8::try_from(short).unwrap()],
        long @ 128..256 => vec![0x81, u8::try_from(long).unwrap()],
        longer => [&[0x82], &u16::try_from(longer).unwrap().to_be_bytes()[..]].concat(),
    };
    [&[tag], &length[..], &bytes].concat()
}

/// Something that has always the same bytes.
pub(crate) fn constant(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

pub(crate) fn pem(label: &str, bytes: &[u8]) -> String {
    let text = BASE64.encode(bytes);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
