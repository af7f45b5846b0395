//! Hashes of passwords, derived passwords, and encryption with a password.

use aes::Aes256;
use aes::cipher::{Block, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use base64::Engine as _;
use base64::alphabet::BCRYPT;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD};
use sha2::{Digest as _, Sha256};

use super::{Called, Function, mismatch};
use crate::answers::{Ask, Draw};
use crate::base64_text;
use crate::bounds::spend;
use crate::value::Type::{Str, Uint32};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::asking("bcrypt", &[Str], |ask| match ask.arguments {
        [Value::Str(password)] => bcrypt_hash(ask, password).map(Value::from),
        _ => Err(mismatch()),
    }),
    Function::asking("htpasswd", &[Str, Str], htpasswd),
    Function::new("derivePassword", &[Uint32, Str, Str, Str, Str], derive_password),
    Function::asking("encryptAES", &[Str, Str], encrypt),
    Function::new("decryptAES", &[Str, Str], decrypt),
];

/// How often bcrypt doubles its work.
const COST: u32 = 10;
const MAX_PASSWORD: usize = 72;
/// What a hash by bcrypt costs: a hundred are all that a render has steps for by default.
const HASH_STEPS: u64 = 100_000;
/// What a derived password costs, which takes twice as long.
const DERIVE_STEPS: u64 = 200_000;

/// What goes wrong is the result, not an error.
fn bcrypt_hash(mut ask: Ask<'_>, password: &[u8]) -> Result<String, String> {
    if password.len() > MAX_PASSWORD {
        let problem = "bcrypt: password length exceeds 72 bytes";
        return Ok(format!("failed to encrypt string with bcrypt: {problem}"));
    }
    ask.text(|draw| {
        spend(HASH_STEPS)?;
        let mut key = [password, &[0]].concat();
        // No more bytes take part.
        key.truncate(MAX_PASSWORD);
        let salt = draw.bytes();
        let hash = bcrypt::bcrypt(COST, salt, &key);
        let digits = GeneralPurpose::new(&BCRYPT, NO_PAD);
        // The last byte is not part of the format.
        let (salt, hash) = (digits.encode(salt), digits.encode(&hash[..23]));
        Ok(format!("$2a${COST}${salt}{hash}"))
    })
}

fn htpasswd(ask: Ask<'_>) -> Called {
    let [Value::Str(user), Value::Str(password)] = ask.arguments else {
        return Err(mismatch());
    };
    if user.contains(&b':') {
        return Ok(Value::from([b"invalid username: ", &**user].concat()));
    }
    let hash = bcrypt_hash(ask, password)?;
    Ok(Value::from([user, &b":"[..], hash.as_bytes()].concat()))
}

const SCOPE: &[u8] = b"com.lyndir.masterpassword";

/// The shapes of a type of password; each letter of a shape names a class of characters.
fn shapes(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

/// The characters of a class.
const fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The password of a site by the algorithm of Master Password, version 3.
fn derive_password(arguments: &[Value]) -> Called {
    let [
        Value::Int(counter, _),
        Value::Str(kind),
        Value::Str(password),
        Value::Str(user),
        Value::Str(site),
    ] = arguments
    else {
        return Err(mismatch());
    };
    let Some(shapes) = shapes(kind) else {
        return Ok(Value::from([b"cannot find password template ", &**kind].concat()));
    };
    spend(DERIVE_STEPS)?;
    let counter = u32::try_from(*counter).map_err(|_| mismatch())?;
    let cost = scrypt::Params::new(15, 8, 2).map_err(|error| error.to_string())?;
    let mut key = [0; 64];
    scrypt::scrypt(password, &scoped(user), &cost, &mut key).map_err(|error| error.to_string())?;
    let seed = authenticate(&key, &[scoped(site), counter.to_be_bytes().to_vec()].concat());
    let shape = shapes[usize::from(seed[0]) % shapes.len()].bytes();
    let password = shape.zip(&seed[1..]).map(|(class, byte)| {
        let characters = characters(class);
        characters[usize::from(*byte) % characters.len()]
    });
    Ok(Value::from(password.collect::<Vec<_>>()))
}

fn scoped(name: &[u8]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [SCOPE, &length.to_be_bytes(), name].concat()
}

/// HMAC (RFC 2104) of SHA-256 with a key as long as its block.
fn authenticate(key: &[u8; 64], message: &[u8]) -> [u8; 32] {
    let inner = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x36)).chain_update(message);
    let outer = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

const BLOCK: usize = 16;

/// The password itself is the key: zeros follow it, or what is too long is cut off.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&key.into())
}

/// AES-256 in CBC mode with a random first block, in base64. Nothing stays nothing.
fn encrypt(mut ask: Ask<'_>) -> Called {
    let [Value::Str(password), Value::Str(text)] = ask.arguments else {
        return Err(mismatch());
    };
    if text.is_empty() {
        return Ok(Value::from(""));
    }
    let text = ask.text(|draw| Ok(encrypted(draw, password, text)))?;
    Ok(Value::from(text))
}

fn encrypted(draw: &mut Draw, password: &[u8], text: &[u8]) -> String {
    let cipher = cipher(password);
    let padding = BLOCK - text.len() % BLOCK;
    let padding = [u8::try_from(padding).unwrap_or(0)].repeat(padding);
    let mut last: [u8; BLOCK] = draw.bytes();
    let mut bytes = last.to_vec();
    for plain in [text, &padding].concat().chunks_exact(BLOCK) {
        for (byte, plain) in last.iter_mut().zip(plain) {
            *byte ^= plain;
        }
        let mut block = Block::<Aes256>::from(last);
        cipher.encrypt_block(&mut block);
        last = block.into();
        bytes.extend_from_slice(&last);
    }
    STANDARD.encode(bytes)
}

fn decrypt(arguments: &[Value]) -> Called {
    let [Value::Str(password), Value::Str(text)] = arguments else {
        return Err(mismatch());
    };
    if text.is_empty() {
        return Ok(Value::from(""));
    }
    let bytes =
        base64_text::decode(text).map_err(|position| format!("illegal base64 data at input byte {position}"))?;
    // What Go sets aside before it decodes.
    let capacity = text.len() / 4 * 3;
    if capacity < BLOCK {
        let problem = format!("[:{BLOCK}] with capacity {capacity}");
        return Err(format!("runtime error: slice bounds out of range {problem}"));
    }
    Ok(Value::from(decrypted(&cipher(password), &bytes)?))
}

/// Errors are those of a program that does not check its input.
fn decrypted(cipher: &Aes256, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some((mut last, rest)) = bytes.split_at_checked(BLOCK) else {
        let length = bytes.len();
        return Err(format!("runtime error: slice bounds out of range [{BLOCK}:{length}]"));
    };
    if rest.len() % BLOCK != 0 {
        return Err("crypto/cipher: input not full blocks".to_owned());
    }
    let mut plain = Vec::with_capacity(rest.len());
    for encrypted in rest.chunks_exact(BLOCK) {
        let mut block = Block::<Aes256>::default();
        block.copy_from_slice(encrypted);
        cipher.decrypt_block(&mut block);
        plain.extend(block.iter().zip(last).map(|(byte, last)| byte ^ last));
        last = encrypted;
    }
    let Some(padding) = plain.last() else {
        return Err("runtime error: index out of range [-1]".to_owned());
    };
    let padding = usize::from(*padding);
    let Some(length) = plain.len().checked_sub(padding) else {
        let beyond = padding - plain.len();
        return Err(format!("runtime error: slice bounds out of range [:-{beyond}]"));
    };
    plain.truncate(length);
    Ok(plain)
}
