//! Signatures by keys: who has the public half needs no authority, log or time.

use std::{fmt, str};

use sigstore_verify::{
    crypto::{KeyAlgorithm, VerificationKey, validate_raw_public_key, verify_signature},
    types::{
        Bundle, DerPublicKey, HashAlgorithm, SignatureBytes, SignatureContent, bundle::VerificationMaterialContent,
    },
};
use thiserror::Error;

use super::{Signer, content, error::BundleError};
use crate::Digest;

/// Largest public key in its PEM form, in bytes. One of 8192 bits of RSA has 1,500.
const MAX_PEM_BYTES: usize = 16 << 10;

/// A public key: ECDSA over P-256 (what cosign makes) or P-384, RSA of 2048 to 8192 bits, or Ed25519.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    der: DerPublicKey,
    algorithm: KeyAlgorithm,
}

/// A text that is no public key of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "this is no public key in PEM form (`-----BEGIN PUBLIC KEY-----`) of ECDSA over P-256 or P-384, RSA of 2048 to 8192 bits, or Ed25519; \
     `cosign public-key` prints one"
)]
pub struct InvalidPublicKey;

impl PublicKey {
    /// Reads one key in PEM form, as `cosign.pub` has it. What is wrong with another text is not told: it may be a private key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, InvalidPublicKey> {
        let text = str::from_utf8(pem).map_err(|_| InvalidPublicKey)?;
        if text.len() > MAX_PEM_BYTES {
            return Err(InvalidPublicKey);
        }
        let der = DerPublicKey::from_pem(text).map_err(|_| InvalidPublicKey)?;
        let key = VerificationKey::from_spki(&der).map_err(|_| InvalidPublicKey)?;
        validate_raw_public_key(key.scheme(), key.as_bytes()).map_err(|_| InvalidPublicKey)?;
        match key.scheme().key_algorithm() {
            algorithm @ (KeyAlgorithm::EcdsaP256
            | KeyAlgorithm::EcdsaP384
            | KeyAlgorithm::Rsa
            | KeyAlgorithm::Ed25519) => Ok(Self { der, algorithm }),
            _ => Err(InvalidPublicKey),
        }
    }

    /// SHA-256 of the key in its DER form.
    pub fn fingerprint(&self) -> Digest {
        Digest::of(self.der.as_bytes())
    }

    /// Whether the signature is by this key over the message.
    fn has_signed(&self, message: &[u8], signature: &SignatureBytes) -> bool {
        // Since version 3 cosign takes SHA-384 with keys of P-384, and SHA-256 before and with all others.
        let with_sha256 = self.algorithm.resolve_signing_scheme(HashAlgorithm::Sha2256).ok();
        [Some(self.algorithm.default_signing_scheme()), with_sha256]
            .into_iter()
            .flatten()
            .any(|scheme| verify_signature(&self.der, message, signature, scheme).is_ok())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({})", self.fingerprint())
    }
}

/// Who of the keys has signed the artifact.
pub(super) fn verify(bundle: &Bundle, artifact: &[u8], keys: &[PublicKey]) -> Result<Signer, BundleError> {
    let VerificationMaterialContent::PublicKey(_) = &bundle.verification_material.content else {
        return Err(BundleError::NotByKey);
    };
    let signer = |message: &[u8], signature| keys.iter().find(|key| key.has_signed(message, signature));
    let signer = match &bundle.content {
        SignatureContent::MessageSignature(message) => {
            // Asked first, because the digest that was meant tells more than a signature that does not fit.
            content::is_of(&bundle.content, artifact)?;
            signer(artifact, &message.signature)
        }
        SignatureContent::DsseEnvelope(envelope) => signer(&envelope.pae(), &envelope.signature.sig),
        _ => None,
    };
    let signer = signer.ok_or(BundleError::OtherKey)?;
    content::is_of(&bundle.content, artifact)?;
    Ok(Signer::Key(signer.fingerprint()))
}
