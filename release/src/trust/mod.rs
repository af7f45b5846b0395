//! Whose releases are used: no byte of a release reaches anybody before its policy has admitted it.
//!
//! [`Admitted`] is the only value that gives bytes, and [`admit`] is the only way to one: what is not admitted cannot be rendered or
//! applied, because there is nothing to render. What a policy that looks at signatures admits was [verified](verify) before: a trusted
//! signature covers a statement that names every file of the release by its digest, and the bytes that are read later are those files.
//!
//! ```compile_fail,E0624
//! fn bytes(release: &release::Release) -> Vec<u8> {
//!     release.read(&release.files[0]).unwrap()
//! }
//! ```

pub mod bundle;
mod error;
mod evidence;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod keys;
mod simple_signing;
pub(crate) mod sums;
mod verify;

use std::{collections::BTreeMap, fmt, sync::Arc};

pub(crate) use self::evidence::{
    Bytes, MAX_PAYLOAD, MAX_SIGNATURE, MAX_SIGNATURES, MAX_STATEMENT, MAX_WRITTEN, Proof, Statement,
};
pub use self::{
    error::Unverified,
    evidence::Evidence,
    keys::{Keys, KeysError},
    sums::{SUMS, SUMS_BUNDLE, SUMS_SIGNATURE, SumsError},
    verify::verify,
};
use crate::{
    Charts, Digest, FileRef, FolderFiles, Release, ReleaseError,
    archive::split,
    files::{addon_chart_name, class_chart_name},
};

/// What the policy of a release says of signatures.
#[derive(Clone, Debug)]
pub enum Verification {
    /// They are not looked at.
    Off,
    /// The release is used whatever they say, with a warning.
    Warn(Verdict),
    /// The release is used if it is verified.
    Require(Verdict),
}

/// What came of looking at the signatures of a release.
pub type Verdict = Result<Verified, Unverified>;

/// That somebody who is trusted signed a release. Only [`verify`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    release: Digest,
    signer: Signer,
}

impl Verified {
    /// Who signed it.
    pub fn signer(&self) -> &Signer {
        &self.signer
    }
}

/// Whose signatures of releases are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those made with the private half of one of these.
    Keys(Keys),
    /// Those of an identity that an issuer vouched for. They come in bundles only.
    Keyless(bundle::Keyless),
}

impl Trust {
    /// Changes with whom it trusts.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Keys(keys) => Digest::of(format!("keys {keys:?}").as_bytes()),
            Self::Keyless(bundle::Keyless { issuer, identity, root }) => {
                Digest::of(format!("identity {issuer:?} {identity:?} {}", root.digest()).as_bytes())
            }
        }
    }
}

/// Who signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Who has the private half of this public key, by the digest of its DER form.
    Key(Digest),
    /// An identity, by a certificate that was good for some minutes.
    Identity {
        /// Who vouched for it.
        issuer: String,
        /// A mail address, or the URL of a workflow.
        identity: String,
        /// When, by the earliest of the log and the timestamp authorities.
        signed_at: jiff::Timestamp,
    },
}

impl fmt::Display for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(fingerprint) => write!(formatter, "key {fingerprint}"),
            Self::Identity { issuer, identity, .. } => write!(formatter, "{identity} by {issuer}"),
        }
    }
}

/// A release that its policy allows to use.
#[derive(Clone, Debug)]
pub struct Admitted {
    release: Arc<Release>,
    verdict: Option<Verdict>,
}

/// Admits a release under a policy. What was verified counts for the release that it was, and for no other.
pub fn admit(release: Arc<Release>, verification: Verification) -> Result<Admitted, Unverified> {
    let of_this = |verdict: Verdict| {
        verdict.and_then(|verified| {
            (verified.release == release.digest)
                .then_some(verified)
                .ok_or(Unverified::OtherRelease)
        })
    };
    let verdict = match verification {
        Verification::Off => None,
        Verification::Warn(verdict) => Some(of_this(verdict)),
        Verification::Require(verdict) => Some(Ok(of_this(verdict)?)),
    };
    Ok(Admitted { release, verdict })
}

impl Admitted {
    /// What it is.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Who signed it, if somebody looked and it was somebody who is trusted.
    pub fn signer(&self) -> Option<&Signer> {
        match &self.verdict {
            Some(Ok(verified)) => Some(&verified.signer),
            Some(Err(_)) | None => None,
        }
    }

    /// Why it is used with a warning.
    pub fn warning(&self) -> Option<&Unverified> {
        self.verdict.as_ref()?.as_ref().err()
    }

    /// The bytes of the class chart, exactly as they were hashed. Blocks.
    pub fn read_class_chart(&self) -> Result<Vec<u8>, ReleaseError> {
        let charts = self.charts(|| class_chart_name(&self.release.tag))?;
        self.read(&charts.class_chart)
    }

    /// The bytes of the archive of the add-ons, exactly as they were hashed: that of their chart where they come without stages. Blocks.
    pub fn read_addon_archive(&self) -> Result<Vec<u8>, ReleaseError> {
        let Release { tag, metadata, .. } = &*self.release;
        let charts = self.charts(|| addon_chart_name(tag, &metadata.cluster_addon))?;
        self.read(&charts.addon_chart)
    }

    /// The files of the chart of one stage, by their paths in its folder of the archive of the add-ons. Blocks.
    pub fn read_stage_chart(&self, folder: &str) -> Result<FolderFiles, ReleaseError> {
        let mut charts = self.read_stage_files(|of, _| of == folder)?;
        charts.remove(folder).ok_or_else(|| ReleaseError::MissingStageChart {
            file: addon_chart_name(&self.release.tag, &self.release.metadata.cluster_addon),
            stage: folder.to_owned(),
        })
    }

    /// Files out of the charts of all stages, by folder: those that `wanted` says yes to, given the folder and the path in it. What was
    /// inspected when the release was opened bounds them. Blocks.
    pub fn read_stage_files(
        &self,
        wanted: impl FnMut(&str, &str) -> bool,
    ) -> Result<BTreeMap<String, FolderFiles>, ReleaseError> {
        let archive = self.read_addon_archive()?;
        split(archive.as_slice(), wanted).map_err(|source| ReleaseError::Archive {
            file: addon_chart_name(&self.release.tag, &self.release.metadata.cluster_addon),
            source,
        })
    }

    fn charts(&self, file: impl FnOnce() -> String) -> Result<&Charts, ReleaseError> {
        self.release.charts.as_ref().ok_or_else(|| ReleaseError::MissingFile {
            file: file(),
            advice: "the release was opened for its node images alone",
        })
    }

    /// The bytes of one of [`Release::files`], exactly as they were hashed: [`ReleaseError::Changed`] if the file is another one by now. Blocks.
    pub fn read(&self, file: &FileRef) -> Result<Vec<u8>, ReleaseError> {
        self.release.read(file)
    }
}
