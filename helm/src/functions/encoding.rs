//! Encodings and checksums of strings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};

use super::{Called, Function, mismatch};
use crate::base64_text;
use crate::sha1::sha1;
use crate::value::Type::Str;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("b64enc", &[Str], |arguments| {
        of_text(arguments, |text| STANDARD.encode(text).into())
    }),
    Function::new("b64dec", &[Str], |arguments| of_text(arguments, decoded_or_error)),
    Function::new("b32enc", &[Str], |arguments| {
        of_text(arguments, |text| base32(text).into())
    }),
    Function::new("b32dec", &[Str], |arguments| {
        of_text(arguments, |text| match super::base32::decoded(text) {
            Ok(bytes) => Value::from(bytes),
            Err(position) => Value::from(format!("illegal base32 data at input byte {position}")),
        })
    }),
    Function::new("sha1sum", &[Str], |arguments| {
        of_text(arguments, |text| hex::encode(sha1(text)).into())
    }),
    Function::new("sha256sum", &[Str], |arguments| {
        of_text(arguments, |text| hex::encode(Sha256::digest(text)).into())
    }),
    Function::new("sha512sum", &[Str], |arguments| {
        of_text(arguments, |text| hex::encode(Sha512::digest(text)).into())
    }),
    Function::new("adler32sum", &[Str], |arguments| {
        of_text(arguments, |text| adler32(text).to_string().into())
    }),
];

fn of_text(arguments: &[Value], convert: impl Fn(&[u8]) -> Value) -> Called {
    let [Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    Ok(convert(text))
}

/// What went wrong is the result, not an error.
fn decoded_or_error(text: &[u8]) -> Value {
    match base64_text::decode(text) {
        Ok(bytes) => Value::from(bytes),
        Err(position) => Value::from(format!("illegal base64 data at input byte {position}")),
    }
}

fn base32(text: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut encoded = String::new();
    for chunk in text.chunks(5) {
        let bits = (0..5).fold(0u64, |bits, index| {
            bits << 8 | u64::from(chunk.get(index).copied().unwrap_or(0))
        });
        let digits = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = usize::try_from(bits >> (35 - 5 * index) & 31).unwrap_or(0);
            encoded.push(if index < digits {
                char::from(ALPHABET[digit])
            } else {
                '='
            });
        }
    }
    encoded
}

fn adler32(text: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = text.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
