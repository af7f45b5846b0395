//! Why a source gave no answer, and what can end that.

use std::{io, path::PathBuf, time::Duration};

use crds::names::ReleaseTag;
use thiserror::Error;

use crate::{ErrorClass, ReleaseError};

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
    /// A file of a release could not be read.
    #[error("unable to read the file {path:?}")]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
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
            Self::ReadRoot { .. }
            | Self::ReadFile { .. }
            | Self::TooManyEntries { .. }
            | Self::TimedOut { .. }
            | Self::Stopped => ErrorClass::Transient,
            Self::UnusableRelease { source, .. } => source.class(),
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingRoot { .. } => "SourceMissing",
            Self::ReadRoot { .. } | Self::ReadFile { .. } => "SourceUnreadable",
            Self::TooManyEntries { .. } => "SourceTooLarge",
            Self::MissingRelease { .. } => "ReleaseNotFound",
            Self::UnusableRelease { source, .. } => source.reason(),
            Self::TimedOut { .. } => "SourceTimedOut",
            Self::Stopped => "SourceStopped",
        }
    }
}
