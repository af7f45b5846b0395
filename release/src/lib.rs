//! A release as bytes: its files, where they come from, and how they are made.
//!
//! * [`Release`]: a directory of files, read under limits, understood and pinned by digest.
//! * [`Admitted`]: a release that its policy allows to use; the only one whose bytes can be read.
//! * [`Evidence`]: what a source has to show for a release; [`verify`] looks at it.
//! * [`bundle`]: whether a bundle of sigstore says that somebody we trust has signed.
//! * [`source`]: where releases are found; [`source::DirectorySource`] reads a directory tree and [`source::DirectoryWatch`] watches it.
//! * [`http`]: the guarded client through which everything remote is asked.
//! * [`store`]: keeps what came from remote sources.
//! * [`pack`]: makes a release from the directory of a stack, reproducibly.
//!
//! This room says what is there. Which release is wanted, what a broken one means for its stack, and every Kubernetes object are decided elsewhere.

mod archive;
mod description;
mod digest;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
mod marked;
pub mod pack;
mod places;
pub mod source;
pub mod store;
mod trust;

pub use self::{
    archive::{ArchiveError, FolderFiles},
    digest::{Digest, InvalidDigest},
    files::{AddonConfiguration, Charts, FileRef, Purpose, Release, ReleaseError},
    trust::{
        Admitted, Evidence, Keys, KeysError, SUMS, SUMS_BUNDLE, SUMS_SIGNATURE, Signer, SumsError, Trust, Unverified,
        Verdict, Verification, Verified, admit, bundle, verify,
    },
};

/// What can end a problem, for the one who decides when to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Time can: try again, ever later.
    Transient,
    /// Something that is expected to come can, and a watch or listing tells when.
    Waiting,
    /// Only somebody who changes the release can.
    Terminal,
}
