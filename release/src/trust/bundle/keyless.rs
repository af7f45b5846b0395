//! Signatures by identities: a certificate authority vouches for some minutes that a key is theirs, a log or timestamp authority that the
//! signature was made in these minutes.

use std::sync::Arc;

use sigstore_verify::{
    CertificateError, Error, TransparencyLogError, VerificationPolicy,
    crypto::parse_certificate_info,
    tsa::verify_timestamp_for_authority,
    types::{Bundle, SignatureContent, TransparencyLogEntry, bundle::VerificationMaterialContent},
};

use super::{
    Signer, TrustRoot, content,
    error::{BundleError, excerpt},
};

/// Most entries in logs that a bundle may have; cosign writes one.
const MAX_ENTRIES: usize = 8;
/// Most timestamps that a bundle may have; cosign writes one.
const MAX_TIMESTAMPS: usize = 8;
/// Largest signed head of a log, in bytes; every witness adds a hundred.
const MAX_CHECKPOINT_BYTES: usize = 16 << 10;

/// An identity that is trusted. Issuer and identity must be exactly these: no pattern, no part, no difference of case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyless {
    /// URL of the one who must have vouched for the identity.
    pub issuer: String,
    /// A mail address, or the URL of a workflow.
    pub identity: String,
    /// Who is trusted to say so; many identities may be trusted by one.
    pub root: Arc<TrustRoot>,
}

/// Whether the trusted identity has signed the artifact.
pub(super) fn verify(bundle: &Bundle, artifact: &[u8], keyless: &Keyless) -> Result<Signer, BundleError> {
    let Keyless { issuer, identity, root } = keyless;
    check_shape(bundle, root)?;
    let mut policy = VerificationPolicy::new(identity.as_str(), issuer.as_str());
    if !root.has_logs() {
        policy = policy.skip_tlog_unsafe();
    }
    if !root.has_certificate_logs() {
        policy = policy.skip_sct();
    }
    let begun = jiff::Timestamp::now();
    let verdict = root.verifier().verify(artifact, bundle, &policy);
    let result = verdict.map_err(|error| refusal(error, bundle, artifact, root, begun))?;
    content::is_of(&bundle.content, artifact)?;
    // The library's word for each part that the policy wants, so that a part that it leaves out one day is missed here.
    let complete = result.certificate_verified()
        && result.identity_policy_checked()
        && result.tlog_verified() == root.has_logs()
        && result.sct_verified() == root.has_certificate_logs();
    if !complete {
        return Err(BundleError::unsupported(&"not all of it was checked"));
    }
    let signed_at = result.verified_timestamps().iter().min().ok_or(BundleError::NoTime)?;
    Ok(Signer::Identity {
        issuer: issuer.clone(),
        identity: identity.clone(),
        signed_at: *signed_at,
    })
}

/// What the library does not ask of a bundle: bounds for the work, and of every entry, not of one of them, that it is by a trusted log, with
/// proof, and there once.
fn check_shape(bundle: &Bundle, root: &TrustRoot) -> Result<(), BundleError> {
    let material = &bundle.verification_material;
    match &material.content {
        VerificationMaterialContent::Certificate(_) => {}
        VerificationMaterialContent::PublicKey(_) => return Err(BundleError::NotByIdentity),
        _ => return Err(BundleError::unsupported(&"a chain of certificates instead of one")),
    }
    if material.timestamp_verification_data.rfc3161_timestamps.len() > MAX_TIMESTAMPS {
        return Err(BundleError::damaged(&"too many timestamps"));
    }
    if material.tlog_entries.len() > MAX_ENTRIES {
        return Err(BundleError::damaged(&"too many entries in logs"));
    }
    if root.has_logs() && material.tlog_entries.is_empty() {
        return Err(BundleError::NoProofOfLog);
    }
    for (place, entry) in material.tlog_entries.iter().enumerate() {
        let is_same = |other: &TransparencyLogEntry| {
            (&other.log_id, other.log_index.get()) == (&entry.log_id, entry.log_index.get())
        };
        if material.tlog_entries.iter().take(place).any(is_same) {
            return Err(BundleError::damaged(&"the same log entry twice"));
        }
        if !root.knows_log(&entry.log_id.key_id) {
            return Err(BundleError::OtherLog {
                log: excerpt(&entry.log_id.key_id),
            });
        }
        let proof = entry.inclusion_proof.as_ref().ok_or(BundleError::NoProofOfLog)?;
        if proof.checkpoint.envelope().len() > MAX_CHECKPOINT_BYTES {
            return Err(BundleError::damaged(&"the signed head of the log is too long"));
        }
    }
    Ok(())
}

/// Why the library refuses, where it says less than it knows.
fn refusal(error: Error, bundle: &Bundle, artifact: &[u8], root: &TrustRoot, begun: jiff::Timestamp) -> BundleError {
    match error {
        // The same word for the artifact of the signature and that of the log's entry.
        Error::ArtifactMismatch(detail) => content::is_of(&bundle.content, artifact)
            .err()
            .unwrap_or(BundleError::InvalidProof { detail }),
        Error::Certificate(error) => {
            outside_validity(&error, bundle, root).unwrap_or_else(|| BundleError::from(Error::Certificate(error)))
        }
        Error::TransparencyLog(TransparencyLogError::IntegratedTime(detail)) => match promised(bundle).max() {
            // The promise of the log was checked before; the clock of this machine may be behind that of the log.
            Some(at) if at > begun => BundleError::InTheFuture { at },
            _ => BundleError::InvalidProof {
                detail: excerpt(&detail),
            },
        },
        error => BundleError::from(error),
    }
}

/// When logs say that they had the signature, where they have signed that.
fn promised(bundle: &Bundle) -> impl Iterator<Item = jiff::Timestamp> {
    let entries = bundle.verification_material.tlog_entries.iter();
    let promised = entries.filter(|entry| entry.inclusion_promise.is_some());
    promised.filter_map(|entry| entry.integrated_time)
}

/// The library does not tell a certificate that was not valid when something was signed from one by somebody else. At this point it has
/// checked every time that is read here.
fn outside_validity(error: &CertificateError, bundle: &Bundle, root: &TrustRoot) -> Option<BundleError> {
    if !matches!(
        error,
        CertificateError::ChainInvalid(_) | CertificateError::NotYetValid { .. } | CertificateError::Expired { .. }
    ) {
        return None;
    }
    let certificate = parse_certificate_info(bundle.signing_certificate()?).ok()?;
    let (not_before, not_after) = (certificate.not_before, certificate.not_after);
    let signed_at = times(bundle, root)
        .into_iter()
        .find(|time| !(not_before..=not_after).contains(time))?;
    Some(BundleError::OutsideValidity {
        signed_at,
        not_before,
        not_after,
    })
}

/// When logs and timestamp authorities saw the signature.
fn times(bundle: &Bundle, root: &TrustRoot) -> Vec<jiff::Timestamp> {
    let material = &bundle.verification_material;
    let signature = match &bundle.content {
        SignatureContent::MessageSignature(message) => &message.signature,
        SignatureContent::DsseEnvelope(envelope) => &envelope.signature.sig,
        _ => return Vec::new(),
    };
    let authorities = root.timestamp_authorities();
    let stamped = material
        .timestamp_verification_data
        .rfc3161_timestamps
        .iter()
        .filter_map(|stamp| {
            let by = |authority| verify_timestamp_for_authority(&stamp.signed_timestamp, signature, authority).ok();
            authorities.iter().find_map(by)
        });
    promised(bundle).chain(stamped).collect()
}
