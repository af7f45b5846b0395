//! Whose releases are used: no byte of a release reaches anybody before its policy has admitted it.
//!
//! [`Admitted`] is the only value that gives bytes, and [`admit`] is the only way to one: what is not admitted cannot be rendered or
//! applied, because there is nothing to render.
//!
//! ```compile_fail,E0624
//! fn bytes(release: &release::Release) -> Vec<u8> {
//!     release.read(&release.class_chart).unwrap()
//! }
//! ```

use std::sync::Arc;

use crds::policy::VerificationMode;
use thiserror::Error;

use crate::{ErrorClass, FileRef, Release, ReleaseError};

/// A release that its policy allows to use.
#[derive(Clone, Debug)]
pub struct Admitted {
    release: Arc<Release>,
}

/// Why a release is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The policy wants a signature, and nothing is known of one.
    #[error(
        "the mode of verification is Require, and this version of the operator does not look at signatures; set it to \"Off\" if the \
         source can be trusted"
    )]
    Unverified,
}

impl Refused {
    /// What can end the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unverified => ErrorClass::Terminal,
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unverified => "ReleaseUnverified",
        }
    }
}

/// Admits a release under a policy. Nobody looks at signatures yet, so that what requires one is never admitted.
pub fn admit(release: Arc<Release>, mode: VerificationMode) -> Result<Admitted, Refused> {
    match mode {
        VerificationMode::Off | VerificationMode::Warn => Ok(Admitted { release }),
        VerificationMode::Require => Err(Refused::Unverified),
    }
}

impl Admitted {
    /// What it is.
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// The bytes of the class chart, exactly as they were hashed. Blocks.
    pub fn read_class_chart(&self) -> Result<Vec<u8>, ReleaseError> {
        self.read(&self.release.class_chart)
    }

    /// The bytes of one of [`Release::files`], exactly as they were hashed: [`ReleaseError::Changed`] if the file is another one by now. Blocks.
    pub fn read(&self, file: &FileRef) -> Result<Vec<u8>, ReleaseError> {
        self.release.read(file)
    }
}
