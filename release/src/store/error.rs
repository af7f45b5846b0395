//! Why a release is not to be had from the store, and what can end that.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crds::names::ReleaseTag;
use storage::Unanswered;
use thiserror::Error;

use crate::{Digest, ErrorClass, ReleaseError, source::SourceError};

/// Why a release is not to be had. Everybody who waited for one download gets the same error.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// The directory of the store is not there and could not be made.
    #[error(
        "unable to create the directory {path:?} for downloaded releases; give --cache-dir a directory that the \
         operator may write to"
    )]
    CreateDirectory {
        /// The directory of the store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// What lies in the store could not be read.
    #[error("unable to read downloaded releases below {path:?}; the operator needs read and execute permission")]
    Read {
        /// The directory of the store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The store could not be written to.
    #[error("unable to write below {path:?}, the directory of --cache-dir")]
    Write {
        /// The directory of the store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The disk has no room left.
    #[error(
        "disk full: no room left below {path:?}; give the volume of --cache-dir more room, or lower \
         --cache-max-bytes below its size"
    )]
    DiskFull {
        /// The directory of the store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The store can only be read.
    #[error(
        "read-only: {path:?} cannot be written to; what was downloaded before is still used; mount the volume \
         of --cache-dir writable, or \
         make it writable for the operator's user (fsGroup)"
    )]
    ReadOnly {
        /// The directory of the store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// More bytes than the store may hold beside what is needed.
    #[error(
        "{tag}: {more} bytes more do not fit: {needed} of the {limit} that downloaded releases may take are \
         needed; raise --cache-max-bytes"
    )]
    NoRoom {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Bytes that it takes.
        more: u64,
        /// Bytes of what is needed.
        needed: u64,
        /// The bound.
        limit: u64,
    },
    /// More bytes than the store may hold beside other downloads.
    #[error(
        "{tag}: no room for now: other downloads have {others} of the {limit} bytes that downloaded releases may take; \
         it is tried again"
    )]
    Crowded {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Bytes of other downloads.
        others: u64,
        /// The bound.
        limit: u64,
    },
    /// Something would have to go, and nobody has said yet what is needed.
    #[error(
        "{tag}: what was downloaded fills {limit} bytes, and what of it is needed is not known yet; it is tried again"
    )]
    NeedsUnknown {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// The bound.
        limit: u64,
    },
    /// A file without an end.
    #[error(
        "{tag}: {file}: the source gives more than the {limit} bytes that this file may have; build the release again"
    )]
    TooLarge {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Name of the file.
        file: String,
        /// The bound.
        limit: u64,
    },
    /// A file of another size than the source said.
    #[error("{tag}: {file}: the source promised {promised} bytes and gives {more_or_less}; it is asked again")]
    OtherSize {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Name of the file.
        file: String,
        /// What the source said.
        promised: u64,
        /// In which direction.
        more_or_less: &'static str,
    },
    /// A file of another content than the source said.
    #[error(
        "{tag}: {file}: the source promised {promised} and gives {given}; it is asked again, and if it stays \
         so, the source or something on \
         the way changes files"
    )]
    OtherContent {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Name of the file.
        file: String,
        /// What the source said.
        promised: Digest,
        /// What came.
        given: Digest,
    },
    /// The source does not give a file.
    #[error("{tag}: {file}: unable to download the file")]
    Fetch {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Name of the file.
        file: String,
        /// What the source said.
        #[source]
        source: Arc<SourceError>,
    },
    /// The bytes of a file ended before their time.
    #[error("{tag}: {file}: the download broke off; it is tried again")]
    Interrupted {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// Name of the file.
        file: String,
        /// What the source said.
        #[source]
        source: Arc<io::Error>,
    },
    /// A download that would take for ever.
    #[error("{tag}: the download brings less than {rate} bytes a second; see what slows the source or the disk down")]
    TooSlow {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// The slowest rate allowed, after a minute for nothing.
        rate: u64,
    },
    /// A download that takes long, beside others that do.
    #[error(
        "{tag}: the download takes more than {} seconds, and there is no room for another slow one; see what slows \
         the source down; it is tried again", .after.as_secs()
    )]
    TooManySlow {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// The time after which a download is slow.
        after: Duration,
    },
    /// The disk did not keep what was written.
    #[error(
        "{tag}: {path:?} gives other bytes than were written there; see whether somebody writes there, or the \
         disk is broken"
    )]
    WrittenOtherwise {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// The directory of the store.
        path: PathBuf,
    },
    /// The files of a release are not there any more.
    #[error("{tag}: its files are not below {path:?} any more, the directory of --cache-dir; they are brought again")]
    Gone {
        /// The release.
        tag: Box<ReleaseTag>,
        /// The directory of the store.
        path: PathBuf,
    },
    /// Signatures that would not be there when somebody looks at them.
    #[error(
        "{tag}: its signatures could not be read again after they were written below {path:?}; see whether somebody \
         removes them there; it is tried again"
    )]
    NotKept {
        /// The release.
        tag: Box<ReleaseTag>,
        /// The directory of the store.
        path: PathBuf,
    },
    /// The release came whole and cannot be used. It is not downloaded again until the source has another one.
    #[error("unable to use the release {tag}")]
    Refused {
        /// The release asked for.
        tag: Box<ReleaseTag>,
        /// What is wrong with it.
        #[source]
        source: Arc<ReleaseError>,
    },
    /// The disk did not answer in time.
    #[error("{path:?}, the directory of --cache-dir, did not answer within {} seconds", .after.as_secs())]
    TimedOut {
        /// The directory of the store.
        path: PathBuf,
        /// The time allowed.
        after: Duration,
    },
    /// The task ended without an answer.
    #[error("the download was stopped")]
    Stopped,
}

impl StoreError {
    /// What can end the problem.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::CreateDirectory { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::DiskFull { .. }
            | Self::ReadOnly { .. }
            | Self::NoRoom { .. }
            | Self::Crowded { .. }
            | Self::NeedsUnknown { .. }
            | Self::OtherSize { .. }
            | Self::OtherContent { .. }
            | Self::Interrupted { .. }
            | Self::TooSlow { .. }
            | Self::TooManySlow { .. }
            | Self::WrittenOtherwise { .. }
            | Self::NotKept { .. }
            | Self::TimedOut { .. }
            | Self::Stopped => ErrorClass::Transient,
            Self::Gone { .. } => ErrorClass::Waiting,
            Self::TooLarge { .. } => ErrorClass::Terminal,
            Self::Fetch { source, .. } => source.class(),
            Self::Refused { source, .. } => source.class(),
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::CreateDirectory { .. } | Self::Read { .. } => "StoreUnreadable",
            Self::Write { .. } => "StoreUnwritable",
            Self::ReadOnly { .. } => "StoreReadOnly",
            Self::DiskFull { .. } => "StoreDiskFull",
            Self::NoRoom { .. } | Self::Crowded { .. } | Self::NeedsUnknown { .. } => "StoreFull",
            Self::TooLarge { .. } => "ReleaseTooLarge",
            Self::OtherSize { .. } | Self::OtherContent { .. } => "SourceGaveOtherBytes",
            Self::Fetch { source, .. } => source.reason(),
            Self::Interrupted { .. } => "DownloadInterrupted",
            Self::TooSlow { .. } | Self::TooManySlow { .. } => "DownloadTooSlow",
            Self::WrittenOtherwise { .. } | Self::NotKept { .. } => "StoreBroken",
            Self::Gone { .. } => "ReleaseGone",
            Self::Refused { source, .. } => source.reason(),
            Self::TimedOut { .. } => "StoreTimedOut",
            Self::Stopped => "DownloadStopped",
        }
    }

    /// Whether asking the same source for the same files again would end in the same way.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused { source, .. } => source.class() == ErrorClass::Terminal,
            Self::TooLarge { .. } => true,
            _ => false,
        }
    }

    /// What a write below `directory` met.
    pub(super) fn write(directory: &Path, source: io::Error) -> Self {
        let (path, kind, source) = (directory.to_owned(), source.kind(), Arc::new(source));
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path, source },
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::ReadOnly { path, source },
            _ => Self::Write { path, source },
        }
    }

    pub(super) fn read(directory: &Path, source: io::Error) -> Self {
        Self::Read {
            path: directory.to_owned(),
            source: Arc::new(source),
        }
    }

    pub(super) fn unanswered(directory: &Path, why: Unanswered) -> Self {
        match why {
            Unanswered::TimedOut { after } => Self::TimedOut {
                path: directory.to_owned(),
                after,
            },
            Unanswered::Stopped => Self::Stopped,
        }
    }
}
