//! Encodings and checksums of strings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256, Sha512};

use super::{Called, Function, mismatch};
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
    match base64_decoded(text) {
        Ok(bytes) => Value::from(bytes),
        Err(position) => Value::from(format!("illegal base64 data at input byte {position}")),
    }
}

/// Decodes with Go's idea of where the first wrong byte is. Line ends are skipped.
fn base64_decoded(text: &[u8]) -> Result<Vec<u8>, usize> {
    let is_line_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let skip = |mut position: usize| {
        while text.get(position).is_some_and(|byte| is_line_end(*byte)) {
            position += 1;
        }
        position
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut position = 0;
    loop {
        let mut quantum = Vec::with_capacity(4);
        let mut is_last = false;
        while quantum.len() < 4 {
            let Some(byte) = text.get(position).copied() else {
                if quantum.is_empty() {
                    return Ok(bytes);
                }
                return Err(position - quantum.len());
            };
            position += 1;
            if let Some(digit) = base64_digit(byte) {
                quantum.push(digit);
            } else if byte == b'=' {
                position = padding_end(text, position, quantum.len(), skip)?;
                is_last = true;
                break;
            } else if !is_line_end(byte) {
                return Err(position - 1);
            }
        }
        let bits = quantum.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - quantum.len()));
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&decoded[..quantum.len() - 1]);
        if is_last {
            return Ok(bytes);
        }
    }
}

/// Checks the padding after its first sign; nothing may follow it.
fn padding_end(text: &[u8], mut position: usize, digits: usize, skip: impl Fn(usize) -> usize) -> Result<usize, usize> {
    match digits {
        0 | 1 => return Err(position - 1),
        2 => {
            position = skip(position);
            match text.get(position) {
                None => return Err(text.len()),
                Some(b'=') => position += 1,
                Some(_) => return Err(position - 1),
            }
        }
        _ => {}
    }
    position = skip(position);
    if position < text.len() {
        Err(position)
    } else {
        Ok(position)
    }
}

fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
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

/// SHA-1 (RFC 3174). Charts use it to name things, never to protect them.
fn sha1(text: &[u8]) -> Vec<u8> {
    let mut message = text.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.chunks(64) {
        sha1_block(&mut state, block);
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn sha1_block(state: &mut [u32; 5], block: &[u8]) {
    let mut words: Vec<u32> = block
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    for index in 16..80 {
        let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16];
        words.push(mixed.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (index, word) in words.iter().enumerate() {
        let (mix, constant) = match index {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(added);
    }
}

fn adler32(text: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (low, high) = text.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}
