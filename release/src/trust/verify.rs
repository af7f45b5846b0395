//! Whether somebody who is trusted signed a release: looks at evidence and nothing else, so that it says the same wherever the evidence was.
//!
//! A signature counts if a trusted key made it, if it is of a statement that is here, and if that statement names exactly the files of the
//! release, each by the digest under which it is read later. One that counts is enough.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    Evidence, Keys, Signer, Trust, Unverified, Verdict, Verified,
    bundle::verify_bundle,
    evidence::{Bytes, MAX_SIGNATURE, Proof, Signature, Statement},
    simple_signing::signed_digest,
    sums,
};
use crate::{Digest, Release, source::oci::digest_of_release};

/// Longest digest of a stranger that is passed on.
const MAX_DIGEST: usize = 80;

/// Looks for a signature of the release by somebody who is trusted. Every key is tried with every signature, at most 32; nothing is asked for.
pub fn verify(release: &Release, trust: &Trust, evidence: &Evidence) -> Verdict {
    let mut reason = Unverified::NotSigned;
    for signature in evidence.signatures() {
        match check(release, trust, evidence, signature) {
            Ok(signer) => {
                return Ok(Verified {
                    release: release.digest,
                    signer,
                });
            }
            Err(other) if other.weight() > reason.weight() => reason = other,
            Err(_) => {}
        }
    }
    Err(reason)
}

fn check(release: &Release, trust: &Trust, evidence: &Evidence, signature: &Signature) -> Result<Signer, Unverified> {
    let damaged = |what| Unverified::Damaged { what };
    let statement = evidence
        .statement(signature.of)
        .ok_or_else(|| damaged("what it is of is not there"))?;
    let other_key = || Unverified::OtherKey {
        looked: evidence.count(),
        is_cut: evidence.is_cut(),
    };
    let signer = match &signature.proof {
        Proof::Detached(text) => keys(trust)?.signer(statement, &bits(text)?).ok_or_else(other_key)?,
        Proof::SimpleSigning {
            payload: Bytes(payload),
            signature,
        } => {
            let signer = keys(trust)?.signer(payload, &bits(signature)?).ok_or_else(other_key)?;
            let found = Digest::of(statement);
            let named = signed_digest(payload).ok_or_else(|| damaged("it is of a text that is not cosign's"))?;
            if named != found.to_string() {
                return Err(Unverified::OtherDigest {
                    signed: named.escape_debug().take(MAX_DIGEST).collect(),
                    found,
                });
            }
            signer
        }
        Proof::Bundle(Bytes(bundle)) => verify_bundle(bundle, statement, trust).map_err(Unverified::Bundle)?,
    };
    covers(signature.of, statement, release)?;
    Ok(signer)
}

/// The keys that may have made a signature without a bundle.
fn keys(trust: &Trust) -> Result<&Keys, Unverified> {
    match trust {
        Trust::Keys(keys) => Ok(keys),
        Trust::Keyless(_) => Err(Unverified::NoBundle),
    }
}

/// Whether a statement names exactly the files of a release.
fn covers(kind: Statement, statement: &[u8], release: &Release) -> Result<(), Unverified> {
    match kind {
        Statement::Manifest => (digest_of_release(&release.tag, statement) == Some(release.digest))
            .then_some(())
            .ok_or(Unverified::OtherFiles),
        Statement::Sums => sums::check(statement, &release.files).map_err(Unverified::Sums),
    }
}

fn bits(text: &str) -> Result<Vec<u8>, Unverified> {
    let text = text.trim_end_matches('\n');
    let bits = (text.len() <= MAX_SIGNATURE)
        .then(|| STANDARD.decode(text).ok())
        .flatten();
    bits.filter(|bits| !bits.is_empty()).ok_or(Unverified::Damaged {
        what: "it is not in base64",
    })
}
