//! Whether a bundle of sigstore (version 0.3, what cosign 3 writes) says that an artifact was signed by somebody we trust.
//!
//! Everything is in the arguments: no network, no file, no environment. A bundle brings what it needs, and a trust root is given, never
//! fetched. The time of signing is what the log or a timestamp authority has signed; the clock of the machine vouches for nothing, it only
//! refuses entries, logs and authorities that lie in its future.
//!
//! Two forms are understood: a signature over the bytes of the artifact (`cosign sign-blob`), and a signed in-toto statement whose subject is
//! the artifact (`cosign sign`). Certificates, logs, timestamps and what they sign are checked by `sigstore-verify`; what a policy makes of
//! it, the limits of hostile bundles, and signatures by keys, which need no log, are here.

mod content;
mod error;
mod key;
mod keyless;
mod root;

use sigstore_verify::types::{Bundle, MediaType};

pub use self::{
    error::BundleError,
    keyless::Keyless,
    root::{MAX_ROOT_BYTES, TrustRoot, TrustRootError},
};
use super::{Signer, Trust};
use crate::description::bracket_too_many;

/// Largest bundle, in bytes. Real ones have some ten thousand.
pub const MAX_BUNDLE_BYTES: usize = 256 << 10;

/// Says who signed these bytes, if it is somebody we trust. A key does not expire, so that neither log nor time is asked for where keys are
/// trusted, and what a bundle says of them is not looked at.
///
/// The answer depends on the arguments alone, except that what lies in the future of the machine's clock is refused.
pub fn verify_bundle(bundle: &[u8], artifact: &[u8], trust: &Trust) -> Result<Signer, BundleError> {
    let bundle = parse(bundle)?;
    match trust {
        Trust::Keys(keys) => key::verify(&bundle, artifact, keys),
        Trust::Keyless(keyless) => keyless::verify(&bundle, artifact, keyless),
    }
}

fn parse(bundle: &[u8]) -> Result<Bundle, BundleError> {
    if bundle.len() > MAX_BUNDLE_BYTES {
        return Err(BundleError::TooLarge {
            limit: MAX_BUNDLE_BYTES,
        });
    }
    if let Some(line) = bracket_too_many(bundle) {
        return Err(BundleError::damaged(&format!("too many brackets in line {line}")));
    }
    content::is_unambiguous(bundle)?;
    let bundle: Bundle = serde_json::from_slice(bundle).map_err(|error| BundleError::damaged(&error))?;
    if bundle.media_type() != MediaType::Bundle0_3 {
        return Err(BundleError::unsupported(&format!(
            "the bundle is of the form {}",
            bundle.media_type()
        )));
    }
    content::is_bounded(&bundle.content)?;
    Ok(bundle)
}
