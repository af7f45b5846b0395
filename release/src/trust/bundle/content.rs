//! What a bundle says that it signs: the artifact itself, or a statement about it.

use serde::{Deserialize, de::IgnoredAny};
use sigstore_verify::types::{DsseEnvelope, HashAlgorithm, SignatureContent, bundle::MessageSignature};

use super::error::{BundleError, excerpt};
use crate::{Digest, description::bracket_too_many};

/// What is signed when `cosign sign` says that an artifact is good. Anything else (the way it was built, its known weaknesses) is a
/// statement about the artifact, and may be a bad one.
const SIGN: &str = "https://sigstore.dev/cosign/sign/v1";
/// What the payload of an envelope has to be.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Versions of the statement: cosign 3 writes the second.
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"];
/// Most artifacts in one statement.
const MAX_SUBJECTS: usize = 256;

/// The part of an in-toto statement that says what it is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digests,
}

#[derive(Deserialize)]
struct Digests {
    sha256: Option<String>,
}

/// Which of the things that exclude each other are in a bundle.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Alternatives {
    verification_material: Materials,
    message_signature: Option<IgnoredAny>,
    dsse_envelope: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Materials {
    certificate: Option<IgnoredAny>,
    public_key: Option<IgnoredAny>,
    x509_certificate_chain: Option<IgnoredAny>,
}

/// Refuses a bundle in which two readers can see two things: one takes the first alternative, another the last.
pub(super) fn is_unambiguous(bundle: &[u8]) -> Result<(), BundleError> {
    let Alternatives {
        verification_material:
            Materials {
                certificate,
                public_key,
                x509_certificate_chain,
            },
        message_signature,
        dsse_envelope,
    } = serde_json::from_slice(bundle).map_err(|error| BundleError::damaged(&error))?;
    let materials = [certificate, public_key, x509_certificate_chain];
    let contents = [message_signature, dsse_envelope];
    if materials.iter().flatten().count() == 1 && contents.iter().flatten().count() == 1 {
        Ok(())
    } else {
        Err(BundleError::damaged(
            &"it must have one signature, and one key or certificate",
        ))
    }
}

/// Bounds the work of reading the statement, which is not seen in the bundle itself.
pub(super) fn is_bounded(content: &SignatureContent) -> Result<(), BundleError> {
    match content {
        SignatureContent::DsseEnvelope(envelope) if bracket_too_many(envelope.payload.as_bytes()).is_some() => {
            Err(BundleError::damaged(&"too many brackets in the statement"))
        }
        _ => Ok(()),
    }
}

/// Refuses a bundle that, good signature or not, does not say that this artifact may be used.
pub(super) fn is_of(content: &SignatureContent, artifact: &[u8]) -> Result<(), BundleError> {
    match content {
        SignatureContent::MessageSignature(signature) => message_is_of(signature, artifact),
        SignatureContent::DsseEnvelope(envelope) => statement_is_of(envelope, artifact),
        _ => Err(BundleError::unsupported(&"neither a signature nor a statement")),
    }
}

/// The digest in a bundle is only a hint: the signature itself is over the artifact.
fn message_is_of(signature: &MessageSignature, artifact: &[u8]) -> Result<(), BundleError> {
    match &signature.message_digest {
        Some(digest) if digest.algorithm == HashAlgorithm::Sha2256 => {
            let artifact = Digest::of(artifact);
            let is_same = digest.digest.as_bytes() == artifact.as_ref();
            is_same.then_some(()).ok_or(BundleError::OtherDigest { artifact })
        }
        _ => Ok(()),
    }
}

fn statement_is_of(envelope: &DsseEnvelope, artifact: &[u8]) -> Result<(), BundleError> {
    if envelope.payload_type != IN_TOTO {
        return Err(BundleError::unsupported(&format!(
            "the payload is of the type {:?}",
            envelope.payload_type
        )));
    }
    let Statement {
        kind,
        predicate_type,
        subject: subjects,
    } = serde_json::from_slice(envelope.payload.as_bytes()).map_err(|error| BundleError::damaged(&error))?;
    if !STATEMENTS.contains(&kind.as_str()) {
        return Err(BundleError::unsupported(&format!(
            "the statement is of the form {kind:?}"
        )));
    }
    if predicate_type != SIGN {
        return Err(BundleError::OtherStatement {
            predicate_type: excerpt(&predicate_type),
        });
    }
    let artifact = Digest::of(artifact);
    let hex = artifact.hex();
    let is_subject = |subject: &Subject| subject.digest.sha256.as_ref() == Some(&hex);
    if subjects.iter().take(MAX_SUBJECTS).any(is_subject) {
        Ok(())
    } else {
        Err(BundleError::OtherDigest { artifact })
    }
}
