//! What became of opening a release, and what is known of its signatures.

use std::sync::Arc;

use planning::outage::Outage;
use release::{Admitted, Evidence, Release};

/// What became of opening a release, whose bytes nobody may read before its policy has admitted them.
#[derive(Clone)]
pub(crate) enum Opened<Files = Admitted> {
    /// It is usable.
    Ready {
        /// Where it came from, for people; `None` where the source has not shown these files, which were kept since they were pinned.
        source: Option<String>,
        /// What else the source has under the tag by now, as a digest.
        moved_to: Option<String>,
        /// Its files.
        files: Files,
    },
    /// It is not there (yet), or cannot be read at the moment.
    Missing {
        /// Why.
        message: String,
        /// How long it was tried to get it, where that is tried again and again.
        outage: Option<Outage>,
    },
    /// It is there and cannot be used.
    Broken {
        /// The file and the reason.
        message: String,
    },
    /// It is there, and its policy does not admit it.
    Refused {
        /// What is wrong with its signature.
        message: String,
        /// Whether a signature or a key that may come would be enough.
        awaited: bool,
    },
}

/// A release that is here and that nobody has admitted.
#[derive(Clone)]
pub(crate) struct Found {
    pub(super) release: Arc<Release>,
    pub(super) signatures: Signatures,
}

/// What is known of the signatures of a release.
#[derive(Clone)]
pub(super) enum Signatures {
    /// Nobody asked for them.
    Unwanted,
    /// The source has shown these, or none.
    Shown(Arc<Evidence>),
    /// They are being looked for.
    Awaited {
        /// What is in the way.
        message: String,
    },
}
