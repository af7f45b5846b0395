//! Public keys that are trusted, and whether one of them made a signature.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P521_SHA256_ASN1,
    ECDSA_P521_SHA512_ASN1, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
};
use rustls::pki_types::pem::{PemObject, SectionKind};
use thiserror::Error;

use super::Signer;
use crate::Digest;

/// Most keys at once: those of a rotation and some besides.
const MAX_KEYS: usize = 8;
/// Most bytes of a text with keys; eight of the longest have a tenth.
const MAX_PEM: usize = 64 << 10;

/// The kinds of keys that cosign makes or takes, each with the ways in which it signs: with SHA-256 in all versions, and those of the two
/// larger curves with their own hash since cosign chooses by key (3.0).
const KINDS: [&[&dyn VerificationAlgorithm]; 5] = [
    &[&ECDSA_P256_SHA256_ASN1],
    &[&ECDSA_P384_SHA256_ASN1, &ECDSA_P384_SHA384_ASN1],
    &[&ECDSA_P521_SHA256_ASN1, &ECDSA_P521_SHA512_ASN1],
    &[&ED25519],
    &[&RSA_PKCS1_2048_8192_SHA256],
];

/// Why a text gives no keys.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeysError {
    /// Not PEM, or damaged.
    #[error("it is no text in PEM form; give the .pub file that `cosign generate-key-pair` writes")]
    Pem,
    /// PEM without a public key.
    #[error("no `BEGIN PUBLIC KEY` is in it; give the .pub file that `cosign generate-key-pair` writes")]
    NoKey,
    /// The half that nobody but the signer may have.
    #[error("it holds a private key; take that out, make a new pair if anybody could read it, and give the public key")]
    Private,
    /// Something else than a key.
    #[error("it holds something else than public keys; give public keys in PEM form")]
    Foreign,
    /// A key of another kind.
    #[error(
        "its key {number} is of a kind that is not supported; ECDSA on P-256, P-384 and P-521, ED25519 and RSA from 2048 bits on are"
    )]
    Unsupported {
        /// Which, from 1.
        number: usize,
    },
    /// A great many keys.
    #[error("it holds more than {MAX_KEYS} keys, or more than 64 KiB; take out those that sign no release any more")]
    TooMany,
}

/// Public keys, of which any may have signed. Cheap to compare: by their fingerprints.
#[derive(Clone)]
pub struct Keys(Vec<Key>);

#[derive(Clone)]
struct Key {
    fingerprint: Digest,
    /// The same key for each way in which it signs.
    parsed: Vec<ParsedPublicKey>,
}

impl Keys {
    /// Reads one or more public keys in PEM form (`BEGIN PUBLIC KEY`). Any other key that is in the text makes it unusable, rather than to
    /// mean less than its writer thought.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeysError> {
        if pem.len() > MAX_PEM {
            return Err(KeysError::TooMany);
        }
        let mut keys = Vec::new();
        for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(pem) {
            match section.map_err(|_| KeysError::Pem)? {
                (SectionKind::PublicKey, der) if keys.len() < MAX_KEYS => {
                    let number = keys.len() + 1;
                    keys.push(Key::from_der(&der).ok_or(KeysError::Unsupported { number })?);
                }
                (SectionKind::PublicKey, _) => return Err(KeysError::TooMany),
                (SectionKind::PrivateKey | SectionKind::EcPrivateKey | SectionKind::RsaPrivateKey, _) => {
                    return Err(KeysError::Private);
                }
                _ => return Err(KeysError::Foreign),
            }
        }
        // Sections with labels of others are passed over by the parser, also cosign's own for private keys.
        let text = String::from_utf8_lossy(pem);
        if text.contains("PRIVATE KEY-----") {
            return Err(KeysError::Private);
        }
        if text.matches("-----BEGIN ").count() != keys.len() {
            return Err(KeysError::Foreign);
        }
        if keys.is_empty() {
            return Err(KeysError::NoKey);
        }
        Ok(Self(keys))
    }

    /// Who of them signed these bytes, if one did.
    pub(super) fn signer(&self, bytes: &[u8], signature: &[u8]) -> Option<Signer> {
        let signed = |key: &&Key| key.parsed.iter().any(|key| key.verify_sig(bytes, signature).is_ok());
        self.0.iter().find(signed).map(|key| Signer::Key(key.fingerprint))
    }
}

impl Key {
    /// Takes a key in the DER form of its PEM, by trying the kinds.
    fn from_der(der: &[u8]) -> Option<Self> {
        KINDS.into_iter().find_map(|ways| {
            let parsed = ways.iter().map(|way| ParsedPublicKey::new(*way, der));
            let parsed: Result<Vec<_>, _> = parsed.collect();
            Some(Self {
                fingerprint: Digest::of(der),
                parsed: parsed.ok()?,
            })
        })
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        let fingerprints = |keys: &Self| keys.0.iter().map(|key| key.fingerprint).collect::<Vec<_>>();
        fingerprints(self) == fingerprints(other)
    }
}

impl Eq for Keys {}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.0.iter().map(|key| key.fingerprint))
            .finish()
    }
}
