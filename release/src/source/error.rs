//! Why a source gave no answer, and what can end that.

use std::{io, path::PathBuf, time::Duration};

use crds::names::ReleaseTag;
use thiserror::Error;

use super::oci::OciError;
use crate::{ErrorClass, ReleaseError, http::HttpError};

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
    /// A registry gave no answer that can be used.
    #[error(transparent)]
    Oci(Box<OciError>),
    /// The storage did not answer in time.
    #[error("the storage did not answer within {} seconds", .after.as_secs())]
    TimedOut {
        /// The time allowed.
        after: Duration,
    },
    /// The options of the source cannot be right.
    #[error("the {what} {problem}")]
    Misconfigured {
        /// The option.
        what: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There was no answer of a server.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server wants us to ask later.
    #[error(
        "{place} allows no more requests for now; they go on when it does. A token of its own, or a longer interval, would help"
    )]
    RateLimited {
        /// The server.
        place: String,
        /// For how long.
        wait: Duration,
    },
    /// The server does not let us in.
    #[error(
        "{place} denies access ({message}); look whether the token or password is right, still valid, and may read there"
    )]
    Denied {
        /// The server.
        place: String,
        /// Its own words.
        message: String,
    },
    /// What was asked for is not there.
    #[error("{place} does not have what was asked for")]
    NotThere {
        /// The server.
        place: String,
    },
    /// There is no such repository.
    #[error(
        "there is no repository {repository} at {place}, or it is private; look for a mistake in its name, or give a token that may read it"
    )]
    MissingRepository {
        /// The repository.
        repository: String,
        /// The server.
        place: String,
    },
    /// The server failed.
    #[error("{place} answers {what}")]
    Failed {
        /// The server.
        place: String,
        /// How.
        what: String,
    },
    /// The server answers with something else than it should.
    #[error(
        "{place} does not answer as an API of its kind does; look whether the URL is right and nothing stands between"
    )]
    Unintelligible {
        /// The server.
        place: String,
        /// Where the answer is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// There is no index.
    #[error("there is no index at {place}; put one there, or give the URL of the directory that contains it")]
    MissingIndex {
        /// Where it should be.
        place: String,
    },
    /// The index has a format that is not known.
    #[error(
        "{place} has the apiVersion {version:?}, which this version of the operator does not know; it knows {known:?}"
    )]
    UnknownFormat {
        /// The index.
        place: String,
        /// Its version.
        version: String,
        /// The version that is known.
        known: &'static str,
    },
    /// The index says something wrong of a release.
    #[error("the release {tag} of the index {problem}")]
    Misindexed {
        /// The release.
        tag: Box<ReleaseTag>,
        /// What is wrong.
        problem: &'static str,
    },
    /// The list was another one each time.
    #[error("the list of releases at {place} changes while it is read")]
    Moving {
        /// The server.
        place: String,
    },
    /// A list without end.
    #[error("{place} has more than {limit} releases; delete old ones, or use a repository of their own")]
    TooManyReleases {
        /// The server.
        place: String,
        /// The bound.
        limit: usize,
    },
    /// The lists of all sources together are large enough.
    #[error(
        "the list of releases at {place} is not kept: beyond the first {always} of each, the sources of its namespace would have {wanted} bytes of \
         lists with it, and may have {limit}, half of what those of other namespaces leave; name fewer sources, or smaller ones"
    )]
    NoRoom {
        /// The server.
        place: String,
        /// What would be kept of the lists of the namespace.
        wanted: usize,
        /// The bound now.
        limit: usize,
        /// Bytes of each list that count for nothing.
        always: usize,
    },
    /// A release without a file.
    #[error("the release {tag} has no files (yet); attach the files of the release to it")]
    NoFiles {
        /// The release asked for.
        tag: ReleaseTag,
    },
    /// A file that is still on its way to the source.
    #[error(
        "the file {file:?} of the release {tag} is not uploaded completely; if that has ended, delete it and upload it again"
    )]
    Unfinished {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// The file.
        file: String,
    },
    /// The signatures of a release took too long.
    #[error("the signatures of the release did not come within {} seconds", .after.as_secs())]
    SlowSignatures {
        /// The time allowed.
        after: Duration,
    },
    /// A file with a signature broke off.
    #[error("unable to read the file {file} beside the release")]
    ReadSignature {
        /// The file.
        file: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// A file that is too large for what it must be.
    #[error("the file {file} beside the release has more than {limit} bytes; put a list of sums or a signature there")]
    LargeSignature {
        /// The file.
        file: String,
        /// The bound.
        limit: usize,
    },
    /// A file of other bytes than the source said.
    #[error("the file {file} beside the release is not what the source said it was; it is asked again")]
    OtherSignature {
        /// The file.
        file: String,
    },
    /// A file that a tag was resolved to is gone.
    #[error("the file {file:?} is not in the source any more")]
    MissingFile {
        /// The file.
        file: String,
    },
    /// The reading task ended without an answer.
    #[error("the reading of the source was stopped")]
    Stopped,
}

impl SourceError {
    /// What can end the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::MissingRoot { .. }
            | Self::MissingRelease { .. }
            | Self::MissingRepository { .. }
            | Self::MissingIndex { .. }
            | Self::NoFiles { .. }
            | Self::Unfinished { .. }
            | Self::RateLimited { .. } => ErrorClass::Waiting,
            Self::ReadRoot { .. }
            | Self::ReadFile { .. }
            | Self::TooManyEntries { .. }
            | Self::TimedOut { .. }
            | Self::Misconfigured { .. }
            | Self::Denied { .. }
            | Self::NotThere { .. }
            | Self::Failed { .. }
            | Self::Unintelligible { .. }
            | Self::UnknownFormat { .. }
            | Self::Moving { .. }
            | Self::TooManyReleases { .. }
            | Self::NoRoom { .. }
            | Self::MissingFile { .. }
            | Self::SlowSignatures { .. }
            | Self::ReadSignature { .. }
            | Self::LargeSignature { .. }
            | Self::OtherSignature { .. }
            | Self::Stopped => ErrorClass::Transient,
            Self::Misindexed { .. } => ErrorClass::Terminal,
            Self::Http(source) => source.class(),
            Self::UnusableRelease { source, .. } => source.class(),
            Self::Oci(source) => source.class(),
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::MissingRoot { .. } | Self::MissingRepository { .. } | Self::MissingIndex { .. } => "SourceMissing",
            Self::ReadRoot { .. }
            | Self::ReadFile { .. }
            | Self::Unintelligible { .. }
            | Self::UnknownFormat { .. }
            | Self::ReadSignature { .. }
            | Self::Moving { .. } => "SourceUnreadable",
            Self::LargeSignature { .. } => "SignatureTooLarge",
            Self::OtherSignature { .. } => "SourceGaveOtherBytes",
            Self::TooManyEntries { .. } | Self::TooManyReleases { .. } | Self::NoRoom { .. } => "SourceTooLarge",
            Self::Misconfigured { .. } => "SourceMisconfigured",
            Self::Http(source) => source.reason(),
            Self::RateLimited { .. } => "SourceRateLimited",
            Self::Denied { .. } => "SourceDenied",
            Self::NotThere { .. } | Self::MissingFile { .. } => "SourceIncomplete",
            Self::Failed { .. } => "SourceFailed",
            Self::Misindexed { .. } => "ReleaseMisindexed",
            Self::NoFiles { .. } => "ReleaseWithoutFiles",
            Self::Unfinished { .. } => "ReleaseIncomplete",
            Self::MissingRelease { .. } => "ReleaseNotFound",
            Self::UnusableRelease { source, .. } => source.reason(),
            Self::Oci(source) => source.reason(),
            Self::TimedOut { .. } | Self::SlowSignatures { .. } => "SourceTimedOut",
            Self::Stopped => "SourceStopped",
        }
    }

    /// Whether nobody answered, or will for now: this says nothing of what was asked for, and would be said of anything else too.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::TimedOut { .. } | Self::Stopped => true,
            Self::Http(source) => source.is_silence(),
            Self::Oci(source) => source.is_silence(),
            _ => false,
        }
    }

    /// How long it is of no use to ask again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } => Some(*wait),
            Self::Http(source) => source.retry_after(),
            Self::Oci(source) => source.retry_after(),
            _ => None,
        }
    }
}

impl From<OciError> for SourceError {
    fn from(source: OciError) -> Self {
        Self::Oci(Box::new(source))
    }
}
