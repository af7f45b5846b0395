//! Why a release is not known to be from whom it has to be, in words for the one who signs it or says whom to trust.

use thiserror::Error;

use super::{MAX_SIGNATURES, SUMS, SumsError, bundle::BundleError};
use crate::{Digest, ErrorClass};

/// Why a release is not verified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unverified {
    /// Nobody signed it, as far as the source shows.
    #[error("the release is not signed (yet); sign it with cosign")]
    NotSigned,
    /// Only signatures that no identity can have made.
    #[error(
        "the release has no signature as a bundle, which it takes where an identity is trusted; sign it with cosign 3 and without a key, \
         or trust the key"
    )]
    NoBundle,
    /// A bundle that is not good.
    #[error(transparent)]
    Bundle(BundleError),
    /// Signed by somebody else.
    #[error(
        "none of the {looked} signatures{more} of the release is by a trusted key; sign it with that key, or add the key that signed it to \
         the Secret",
        more = if *.is_cut { " that were looked at" } else { "" }
    )]
    OtherKey {
        /// How many signatures were looked at, at most 32.
        looked: usize,
        /// Whether there are more than were looked at.
        is_cut: bool,
    },
    /// What claims to be a signature is none.
    #[error("the signature of the release is damaged: {what}; sign it again")]
    Damaged {
        /// What is wrong with it.
        what: &'static str,
    },
    /// A good signature of something else.
    #[error("the signature is good, but it is of {signed}, and the release is {found}; sign the release that is there")]
    OtherDigest {
        /// What was signed.
        signed: String,
        /// The manifest of the release.
        found: Digest,
    },
    /// A good signature of a manifest with other files.
    #[error("the manifest that is signed has other files than those that are here; they are asked for again")]
    OtherFiles,
    /// A good signature of a list that does not fit the files.
    #[error("{SUMS} is signed, but cannot be followed")]
    Sums(#[source] SumsError),
    /// Nobody could look.
    #[error("{why}")]
    NotChecked {
        /// What was in the way, with what to do.
        why: String,
    },
    /// Another release was verified.
    #[error("another release was verified than the one that is to be used; it is looked at again")]
    OtherRelease,
}

impl Unverified {
    /// What can end the problem: somebody who signs or says whom to trust, which is looked for again; or somebody who mends the release.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotSigned
            | Self::NoBundle
            | Self::OtherKey { .. }
            | Self::OtherFiles
            | Self::NotChecked { .. }
            | Self::OtherRelease => ErrorClass::Waiting,
            Self::Bundle(error) => error.class(),
            Self::Damaged { .. } | Self::OtherDigest { .. } | Self::Sums(_) => ErrorClass::Terminal,
        }
    }

    /// When the same signatures may be good, where that is only a matter of time.
    pub fn good_from(&self) -> Option<jiff::Timestamp> {
        match self {
            Self::Bundle(BundleError::InTheFuture { at }) => Some(*at),
            _ => None,
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotSigned => "SignatureMissing",
            Self::NoBundle => "SignatureNotABundle",
            Self::Bundle(error) => error.reason(),
            Self::OtherKey { .. } => "SignatureOfOtherKey",
            Self::Damaged { .. } => "SignatureDamaged",
            Self::OtherDigest { .. } | Self::OtherFiles => "SignatureOfOtherDigest",
            Self::Sums(_) => "SumsMismatch",
            Self::NotChecked { .. } | Self::OtherRelease => "SignatureNotChecked",
        }
    }

    /// Of several reasons the one that says most is told: a trusted signature that fits badly before one that is damaged, that before one of
    /// a stranger.
    pub(super) fn weight(&self) -> u8 {
        match self {
            Self::OtherDigest { .. } | Self::OtherFiles | Self::Sums(_) => 4,
            Self::Damaged { .. } => 3,
            Self::OtherKey { .. } => 2,
            Self::Bundle(error) => error.weight(),
            Self::NoBundle => 1,
            _ => 0,
        }
    }
}

/// The message above speaks of this many.
const _: () = assert!(MAX_SIGNATURES == 32);
