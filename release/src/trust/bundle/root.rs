//! What a keyless signature is checked against: authorities of certificates, logs and timestamps, as sigstore writes them in
//! `trusted_root.json`.

use std::fmt;

use sigstore_verify::{
    Verifier,
    trust_root::{TrustedRoot, TsaAuthority},
    types::LogKeyId,
};
use thiserror::Error;

use super::error::excerpt;
use crate::{Digest, ErrorClass, description::bracket_too_many};

/// Largest trust root, in bytes. The one of the public sigstore has 7,000.
pub const MAX_ROOT_BYTES: usize = 1 << 20;
/// What a trust root says that it is.
const MEDIA_TYPES: [&str; 2] = [
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
];

/// Authorities and logs that are trusted to say who signed what and when.
pub struct TrustRoot {
    /// Of the text that it was read from.
    digest: Digest,
    root: TrustedRoot,
    verifier: Verifier,
}

/// Why a text is no trust root.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrustRootError {
    /// More bytes than a trust root may have.
    #[error("the trust root has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// It is none.
    #[error(
        "the trust root is not the trusted_root.json of sigstore ({detail}); `cosign trusted-root create` makes one"
    )]
    Damaged {
        /// Where.
        detail: String,
    },
    /// A key or certificate in it is of no use.
    #[error("a key or certificate in the trust root cannot be used ({detail})")]
    Unusable {
        /// Which, and why.
        detail: String,
    },
    /// Nobody in it makes certificates.
    #[error(
        "the trust root has no certificate authority; put in the one that makes the certificates of those who sign"
    )]
    NoCertificateAuthority,
    /// Nobody in it says when something was signed.
    #[error(
        "the trust root has neither a transparency log nor a timestamp authority, and nobody else can say when something was signed; put in one"
    )]
    NoTime,
}

impl TrustRootError {
    /// What can end the problem: another trust root.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Terminal
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        "InvalidTrustRoot"
    }
}

impl TrustRoot {
    /// Reads a `trusted_root.json`.
    ///
    /// What the root has, a bundle must have: proof of a log if there are logs, of a certificate log if there are certificate logs. A root
    /// without logs of one kind does without, and then a timestamp authority must say when.
    pub fn from_json(json: &[u8]) -> Result<Self, TrustRootError> {
        if json.len() > MAX_ROOT_BYTES {
            return Err(TrustRootError::TooLarge { limit: MAX_ROOT_BYTES });
        }
        let damaged = |detail: String| TrustRootError::Damaged {
            detail: excerpt(&detail),
        };
        if let Some(line) = bracket_too_many(json) {
            return Err(damaged(format!("too many brackets in line {line}")));
        }
        // Only where, never what: it may be a Secret that somebody else keeps there.
        let place = |error: serde_json::Error| format!("line {} column {}", error.line(), error.column());
        let root: TrustedRoot = serde_json::from_slice(json).map_err(|error| damaged(place(error)))?;
        if !MEDIA_TYPES.contains(&root.media_type.as_str()) {
            return Err(damaged("another media type".to_owned()));
        }
        if root.certificate_authorities.is_empty() {
            return Err(TrustRootError::NoCertificateAuthority);
        }
        if root.tlogs.is_empty() && root.timestamp_authorities.is_empty() {
            return Err(TrustRootError::NoTime);
        }
        let verifier = Verifier::new(&root).map_err(|error| TrustRootError::Unusable {
            detail: excerpt(&error),
        })?;
        Ok(Self {
            digest: Digest::of(json),
            root,
            verifier,
        })
    }

    /// Of the text that it was read from.
    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    pub(super) fn has_logs(&self) -> bool {
        !self.root.tlogs.is_empty()
    }

    pub(super) fn has_certificate_logs(&self) -> bool {
        !self.root.ctlogs.is_empty()
    }

    pub(super) fn knows_log(&self, id: &LogKeyId) -> bool {
        self.root.tlogs.iter().any(|log| log.log_id.key_id == *id)
    }

    pub(super) fn timestamp_authorities(&self) -> Vec<TsaAuthority> {
        self.root.tsa_authorities()
    }
}

impl PartialEq for TrustRoot {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for TrustRoot {}

impl fmt::Debug for TrustRoot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "TrustRoot({} certificate authorities, {} logs, {} certificate logs, {} timestamp authorities)",
            self.root.certificate_authorities.len(),
            self.root.tlogs.len(),
            self.root.ctlogs.len(),
            self.root.timestamp_authorities.len()
        )
    }
}
