//! Passwords and keys that nobody can know beforehand.

use anyhow::{Result, anyhow};
use rustls::crypto::aws_lc_rs;

/// 48 digits of hex.
pub(super) fn secret() -> Result<String> {
    let mut bytes = [0; 24];
    let random = aws_lc_rs::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| anyhow!("this machine has no random numbers"))?;
    Ok(hex::encode(bytes))
}

/// A key as Keystone signs tokens with: 32 bytes in base64, whose 44 characters may be digits of hex as well.
pub(super) fn fernet_key() -> Result<String> {
    // Of the last character before the padding two bits are not used, and are none in this one.
    Ok(format!("{}0=", &secret()?[..42]))
}
