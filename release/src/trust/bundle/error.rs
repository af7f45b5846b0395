//! Why a bundle does not show that somebody we trust has signed.

use sigstore_verify::{CertificateError, Error, TimestampError, TransparencyLogError, bundle};
use thiserror::Error;

use crate::{Digest, ErrorClass};

/// Most characters of a bundle's own words in a message.
const EXCERPT: usize = 200;

/// Why a bundle does not show that somebody we trust has signed. What a bundle says of itself is quoted, and short.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BundleError {
    /// More bytes than a bundle may have.
    #[error("the signature bundle has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// It is no bundle, or not a whole one.
    #[error("the signature bundle is damaged ({detail}); sign the release again with cosign 3 or later")]
    Damaged {
        /// Where.
        detail: String,
    },
    /// It is a bundle of a form or with a method that is not checked here.
    #[error(
        "the signature bundle cannot be checked ({detail}); sign with cosign 3 or later and an ECDSA key, which is what cosign makes"
    )]
    Unsupported {
        /// What it would take.
        detail: String,
    },
    /// A good signature, perhaps, but of something else.
    #[error("the signature is not of {artifact}, but of something else; sign what is in the release")]
    OtherDigest {
        /// What should be signed.
        artifact: Digest,
    },
    /// A statement about the artifact that does not say that it may be used.
    #[error("what is signed is a statement of the type {predicate_type:?}, not a signature; use `cosign sign`")]
    OtherStatement {
        /// What it states.
        predicate_type: String,
    },
    /// No key that we trust has made the signature.
    #[error("the signature is not by any of the trusted keys, or it is damaged")]
    OtherKey,
    /// The bundle is by an identity, and we trust keys.
    #[error(
        "the release is signed by an identity, but only keys are trusted; sign with `cosign sign --key`, or trust the identity"
    )]
    NotByKey,
    /// The bundle is by a key, and we trust an identity.
    #[error("the release is signed with a key, but only an identity is trusted; sign without a key, or trust the key")]
    NotByIdentity,
    /// The signature is not by the key in the certificate.
    #[error("the signature is not by the key of its certificate: bundle or release is damaged or forged")]
    BadSignature,
    /// The certificate is not by an authority of the trust root.
    #[error("the certificate of the signature is not by an authority of the trust root ({detail})")]
    UntrustedCertificate {
        /// What is wrong with it.
        detail: String,
    },
    /// The certificate has no good entry in a certificate log of the trust root.
    #[error("the certificate of the signature is not shown to be in a certificate log of the trust root ({detail})")]
    UnloggedCertificate {
        /// What is missing.
        detail: String,
    },
    /// The certificate was not valid when the signature was made.
    #[error(
        "the signature was made at {signed_at}, but its certificate was valid from {not_before} to {not_after} only; sign again"
    )]
    OutsideValidity {
        /// When the log or a timestamp authority saw the signature.
        signed_at: jiff::Timestamp,
        /// From when the certificate was valid.
        not_before: jiff::Timestamp,
        /// Until when.
        not_after: jiff::Timestamp,
    },
    /// A log saw the signature later than it is now.
    #[error(
        "the log saw the signature at {at}, and the clock of this machine says that this is still to come; it is looked at again then. Set the \
         clock right if it is behind"
    )]
    InTheFuture {
        /// When.
        at: jiff::Timestamp,
    },
    /// Somebody else vouches for the identity.
    #[error("the issuer of the identity that signed is {actual:?}, but {expected:?} is trusted")]
    OtherIssuer {
        /// Whom we trust.
        expected: String,
        /// What the certificate says.
        actual: String,
    },
    /// Somebody else has signed.
    #[error("the identity that signed is {actual:?}, but {expected:?} is trusted")]
    OtherIdentity {
        /// Whom we trust.
        expected: String,
        /// What the certificate says.
        actual: String,
    },
    /// Nothing shows that the signature is in a log.
    #[error(
        "nothing in the bundle shows that the signature is in a log of the trust root; sign with an upload to the log"
    )]
    NoProofOfLog,
    /// The signature is in a log that we do not trust.
    #[error("the signature is in the log {log}, which is not in the trust root")]
    OtherLog {
        /// SHA-256 of the log's key, in base64.
        log: String,
    },
    /// What should show that the signature is in the log does not.
    #[error("the proof that the signature is in the log is wrong ({detail})")]
    InvalidProof {
        /// What is wrong with it.
        detail: String,
    },
    /// Nothing that we trust says when the signature was made.
    #[error(
        "neither a log nor a timestamp authority of the trust root says when the signature was made; sign with one of them"
    )]
    NoTime,
    /// A timestamp is not by an authority of the trust root, or of something else.
    #[error("the timestamp of the signature is not by an authority of the trust root ({detail})")]
    InvalidTimestamp {
        /// What is wrong with it.
        detail: String,
    },
}

impl BundleError {
    /// What can end the problem: the same bundle is not good later, unless its time is to come, but beside that of a stranger there may be a good
    /// one.
    pub fn class(&self) -> ErrorClass {
        if self.is_by_a_stranger() || matches!(self, Self::InTheFuture { .. }) {
            ErrorClass::Waiting
        } else {
            ErrorClass::Terminal
        }
    }

    /// How much it says, held against the other reasons why a release is [not verified](crate::Unverified).
    pub(in crate::trust) fn weight(&self) -> u8 {
        match self {
            // It is the only one that may be good later.
            Self::InTheFuture { .. } => 5,
            Self::OtherStatement { .. } => 4,
            stranger if stranger.is_by_a_stranger() => 2,
            _ => 3,
        }
    }

    fn is_by_a_stranger(&self) -> bool {
        matches!(
            self,
            Self::OtherKey
                // What a signature is meant to be of, nobody vouches for.
                | Self::OtherDigest { .. }
                | Self::NotByKey
                | Self::NotByIdentity
                | Self::OtherIssuer { .. }
                | Self::OtherIdentity { .. }
                | Self::UntrustedCertificate { .. }
                | Self::OtherLog { .. }
        )
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "BundleTooLarge",
            Self::Damaged { .. } => "BundleDamaged",
            Self::Unsupported { .. } => "BundleUnsupported",
            Self::OtherDigest { .. } => "SignatureOfOtherDigest",
            Self::OtherStatement { .. } => "OtherStatement",
            Self::OtherKey => "OtherKey",
            Self::NotByKey => "NotByKey",
            Self::NotByIdentity => "NotByIdentity",
            Self::BadSignature => "BadSignature",
            Self::UntrustedCertificate { .. } => "UntrustedCertificate",
            Self::UnloggedCertificate { .. } => "UnloggedCertificate",
            Self::OutsideValidity { .. } => "CertificateOutsideValidity",
            Self::InTheFuture { .. } => "SignatureInTheFuture",
            Self::OtherIssuer { .. } => "OtherIssuer",
            Self::OtherIdentity { .. } => "OtherIdentity",
            Self::NoProofOfLog => "NoProofOfLog",
            Self::OtherLog { .. } => "OtherLog",
            Self::InvalidProof { .. } => "InvalidProofOfLog",
            Self::NoTime => "NoTimeOfSigning",
            Self::InvalidTimestamp { .. } => "InvalidTimestamp",
        }
    }

    pub(super) fn damaged(detail: &impl ToString) -> Self {
        Self::Damaged {
            detail: excerpt(detail),
        }
    }

    pub(super) fn unsupported(detail: &impl ToString) -> Self {
        Self::Unsupported {
            detail: excerpt(detail),
        }
    }
}

impl From<Error> for BundleError {
    /// What a verdict of the library means. Its words may be those of the bundle.
    fn from(error: Error) -> Self {
        match error {
            Error::IdentityMismatch { expected, actual } => Self::OtherIdentity {
                expected: expected.to_string(),
                actual: excerpt(&actual.map_or_else(String::new, |name| name.to_string())),
            },
            Error::IssuerMismatch { expected, actual } => Self::OtherIssuer {
                expected,
                actual: excerpt(&actual.unwrap_or_default()),
            },
            Error::SignatureInvalid(_) => Self::BadSignature,
            Error::UnsupportedArtifact(detail) | Error::UnsupportedBundle(detail) => Self::unsupported(&detail),
            Error::Certificate(CertificateError::Sct(detail)) => Self::UnloggedCertificate {
                detail: excerpt(&detail),
            },
            Error::Certificate(other) => Self::UntrustedCertificate {
                detail: excerpt(&other),
            },
            Error::TransparencyLog(TransparencyLogError::UnknownLog { log_id }) => {
                Self::OtherLog { log: excerpt(&log_id) }
            }
            Error::TransparencyLog(other) => Self::InvalidProof {
                detail: excerpt(&other),
            },
            Error::Timestamp(TimestampError::NoVerifiedTimestamp(_))
            | Error::Bundle(bundle::Error::MissingSigningTimeEvidence) => Self::NoTime,
            Error::Timestamp(other) => Self::InvalidTimestamp {
                detail: excerpt(&other),
            },
            Error::Bundle(
                wrong @ (bundle::Error::MissingCheckpoint
                | bundle::Error::LogIndexOutOfRange { .. }
                | bundle::Error::CheckpointRootMismatch),
            ) => Self::InvalidProof {
                detail: excerpt(&wrong),
            },
            other => Self::damaged(&other),
        }
    }
}

/// The beginning of what may come from a bundle.
pub(super) fn excerpt(words: &impl ToString) -> String {
    words
        .to_string()
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(EXCERPT)
        .collect()
}
