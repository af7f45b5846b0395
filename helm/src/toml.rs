//! TOML: reading it as the decoder of Helm reads it, and writing it as the encoder does.

mod cursor;
mod encode;
mod numbers;
mod read;
mod strings;
mod tables;

pub(crate) use encode::{Error, encode};
pub(crate) use read::{Unread, read};

/// The two versions of the TOML library that Helm versions have. They differ in what they read and how they write floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// TOML 1.0, by version 1.5 of the library.
    V1_0,
    /// TOML 1.1, by version 1.6 of the library.
    V1_1,
}

/// A key as TOML writes it: bare where it can be.
fn quoted_key(key: &[u8]) -> Vec<u8> {
    let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.iter().all(is_bare) {
        return key.to_vec();
    }
    quoted(key)
}

/// A string between double quotes.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in text {
        match byte {
            b'"' => quoted.extend_from_slice(b"\\\""),
            b'\\' => quoted.extend_from_slice(b"\\\\"),
            0x08 => quoted.extend_from_slice(b"\\b"),
            b'\t' => quoted.extend_from_slice(b"\\t"),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            0x0c => quoted.extend_from_slice(b"\\f"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            0..0x20 | 0x7f => quoted.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}
