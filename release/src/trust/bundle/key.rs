//! Signatures by keys: who has the public half needs no authority, log or time.

use sigstore_verify::types::{Bundle, SignatureContent, bundle::VerificationMaterialContent};

use super::{Signer, content, error::BundleError};
use crate::Keys;

/// Who of the keys has signed the artifact.
pub(super) fn verify(bundle: &Bundle, artifact: &[u8], keys: &Keys) -> Result<Signer, BundleError> {
    let VerificationMaterialContent::PublicKey(_) = &bundle.verification_material.content else {
        return Err(BundleError::NotByKey);
    };
    let signer = match &bundle.content {
        SignatureContent::MessageSignature(message) => {
            // Asked first, because the digest that was meant tells more than a signature that does not fit.
            content::is_of(&bundle.content, artifact)?;
            keys.signer(artifact, message.signature.as_bytes())
        }
        SignatureContent::DsseEnvelope(envelope) => keys.signer(&envelope.pae(), envelope.signature.sig.as_bytes()),
        _ => None,
    };
    let signer = signer.ok_or(BundleError::OtherKey)?;
    content::is_of(&bundle.content, artifact)?;
    Ok(signer)
}
