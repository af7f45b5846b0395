//! What became of opening a release, and whether its policy lets anybody read it.

use std::sync::Arc;

use crds::ClusterStackRelease;
use crds::policy::VerificationMode;
use release::{Admitted, Release, admit};

/// What became of opening a release, whose bytes nobody may read before its policy has admitted them.
#[derive(Clone)]
pub(crate) enum Opened<Files = Admitted> {
    /// It is usable.
    Ready {
        /// Where it came from, for people.
        source: String,
        /// What else the source has under the tag by now, as a digest.
        moved_to: Option<String>,
        /// Its files.
        files: Files,
    },
    /// It is not there (yet), or cannot be read at the moment.
    Missing {
        /// Why.
        message: String,
    },
    /// It is there and cannot be used.
    Broken {
        /// The file and the reason.
        message: String,
    },
}

impl Opened<Arc<Release>> {
    pub(super) fn admitted(self, mode: VerificationMode) -> Opened {
        match self {
            Self::Ready {
                source,
                moved_to,
                files,
            } => match admit(files, mode) {
                Ok(files) => Opened::Ready {
                    source,
                    moved_to,
                    files,
                },
                Err(refused) => Opened::Broken {
                    message: refused.to_string(),
                },
            },
            Self::Missing { message } => Opened::Missing { message },
            Self::Broken { message } => Opened::Broken { message },
        }
    }
}

pub(super) fn verification_mode(release: &ClusterStackRelease) -> VerificationMode {
    let policy = release.spec.policy.as_ref();
    let verification = policy.and_then(|policy| policy.verification.as_ref());
    verification.map(|verification| verification.mode).unwrap_or_default()
}
