//! Where releases come from: one trait, so that callers do not know and need not care.
//!
//! A source says which releases there are and gives one, verified and resolved to its digest. It does not choose, and it keeps nothing
//! that it could not read again.

mod directory;
mod notifications;
mod watch;

use std::{future::Future, io, path::PathBuf, pin::Pin, time::Duration};

use crds::names::ReleaseTag;
use jiff::Timestamp;
use thiserror::Error;

pub use self::{
    directory::{DirectorySource, RELEASES_DIRECTORY},
    notifications::Notifications,
    watch::{Change, DirectoryWatch, WatchError},
};
use crate::{ErrorClass, Release, ReleaseError};

/// A future that owns nothing but what it borrows: what an object-safe async trait returns.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + Send + 'a>>;

/// A place with releases.
///
/// Both calls end in bounded time. An error of [`ReleaseSource::list`] says nothing about which releases exist: nobody may conclude from
/// it that one is gone.
pub trait ReleaseSource: Send + Sync {
    /// Everything that is offered now.
    fn list(&self) -> SourceFuture<'_, Listing>;

    /// The release of this tag: its files are here, readable and verified, and its digest says which bytes they are. A tag that is
    /// opened twice can have two digests; comparing them is the caller's part.
    fn open<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Release>;
}

/// What a source offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The releases, sorted by tag, each once. Listed does not mean usable.
    pub releases: Vec<ListedRelease>,
    /// Names that are no release tags, sorted. Normal in a source that others use too.
    pub foreign: Vec<String>,
}

/// One release of a [`Listing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRelease {
    /// Its tag.
    pub tag: ReleaseTag,
    /// When it was published, if the source knows. Releases named by a hash have no other order.
    pub published_at: Option<Timestamp>,
}

/// Why a source gave no answer.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The directory below which releases lie is not there.
    #[error("there is no directory {path:?}; create it, or mount the volume with the releases")]
    MissingRoot {
        /// The directory with one subdirectory per release.
        path: PathBuf,
    },
    /// The directory below which releases lie could not be read.
    #[error("unable to read the directory {path:?}; the operator needs read and execute permission")]
    ReadRoot {
        /// The directory with one subdirectory per release.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// More names than a listing may have.
    #[error("the directory {path:?} has more than {limit} entries; move old releases elsewhere")]
    TooManyEntries {
        /// The directory with one subdirectory per release.
        path: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// The source does not have this release, or not yet.
    #[error("the release {tag} is not in the source (yet)")]
    MissingRelease {
        /// The release asked for.
        tag: ReleaseTag,
    },
    /// The source has the release, but it cannot be used.
    #[error("unable to use the release {tag}")]
    UnusableRelease {
        /// The release asked for.
        tag: ReleaseTag,
        /// What is wrong with it.
        #[source]
        source: Box<ReleaseError>,
    },
    /// The storage did not answer in time.
    #[error("the storage did not answer within {} seconds", .after.as_secs())]
    TimedOut {
        /// The time allowed.
        after: Duration,
    },
    /// The reading task ended without an answer.
    #[error("the reading of the source was stopped")]
    Stopped,
}

impl SourceError {
    /// What can end the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::MissingRoot { .. } | Self::MissingRelease { .. } => ErrorClass::Waiting,
            Self::ReadRoot { .. } | Self::TooManyEntries { .. } | Self::TimedOut { .. } | Self::Stopped => {
                ErrorClass::Transient
            }
            Self::UnusableRelease { source, .. } => source.class(),
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingRoot { .. } => "SourceMissing",
            Self::ReadRoot { .. } => "SourceUnreadable",
            Self::TooManyEntries { .. } => "SourceTooLarge",
            Self::MissingRelease { .. } => "ReleaseNotFound",
            Self::UnusableRelease { source, .. } => source.reason(),
            Self::TimedOut { .. } => "SourceTimedOut",
            Self::Stopped => "SourceStopped",
        }
    }
}
