//! What can be wrong with the files of a release, in words for the person who made it.

use std::io;

use crds::{
    names::KubernetesMinor,
    release_files::{CLUSTER_ADDON_VALUES, CLUSTER_ADDON_VALUES_TERA, ReleaseFileError},
};
use thiserror::Error;

use super::{MAX_FILES, MAX_NAME_BYTES, MAX_RELEASE_BYTES};
use crate::{ErrorClass, archive::ArchiveError, description::MAX_BRACKETS};

/// Why the files of a release cannot be used. Every message begins with the file it speaks of.
#[derive(Debug, Error)]
pub enum ReleaseError {
    /// The directory of the release could not be read.
    #[error("unable to read the release directory")]
    ReadDirectory {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the release could not be read.
    #[error("{file}: unable to read the file")]
    ReadFile {
        /// Name of the file.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file appeared, vanished or changed during the reading, or is not any more what was verified.
    #[error("{file}: changed while the release was read; it is read again")]
    Changed {
        /// Name of the file.
        file: String,
    },
    /// A file that every release must have.
    #[error("{file}: missing; {advice}")]
    MissingFile {
        /// Name of the file.
        file: String,
        /// What to do.
        advice: &'static str,
    },
    /// Nobody can tell which of two templates counts.
    #[error("{CLUSTER_ADDON_VALUES} and {CLUSTER_ADDON_VALUES_TERA}: a release has one of them; take the other out")]
    TwoValues,
    /// A link, a directory or a device where only files may be, or the other way round for the release itself.
    #[error("{file}: is {kind}; a release is a flat directory of regular files, without links")]
    NotAFile {
        /// Name of the file.
        file: String,
        /// What it is instead.
        kind: &'static str,
    },
    /// A file name that cannot be part of a manifest.
    #[error(
        "{file:?}: file names must be printable ASCII of at most {MAX_NAME_BYTES} bytes, without spaces and slashes"
    )]
    FileName {
        /// Name of the file.
        file: String,
    },
    /// Two files of one name: readers would disagree about which counts.
    #[error("{file}: is there twice; a release has each file once")]
    DuplicateFile {
        /// Name of the file.
        file: String,
    },
    /// A release of a great many files.
    #[error("{file}: is one file too many; a release has at most {MAX_FILES}")]
    TooManyFiles {
        /// Name of the first file too many.
        file: String,
    },
    /// A file that is larger than files of its kind may be.
    #[error(
        "{file}: has {size} bytes, more than the {limit} that this file may have; correct it and build the release again"
    )]
    FileTooLarge {
        /// Name of the file.
        file: String,
        /// Its size.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// Files that are too large together.
    #[error(
        "release: its files have {size} bytes or more, and may have {MAX_RELEASE_BYTES} together; keep images out of it"
    )]
    TooLarge {
        /// Bytes of the files, as far as they are known.
        size: u64,
    },
    /// A description that would keep the parser busy.
    #[error(
        "{file}: line {line} opens one bracket more than the {MAX_BRACKETS} that this file may have; correct it and build the release again"
    )]
    TooManyBrackets {
        /// Name of the file.
        file: String,
        /// The line with the first bracket too many, from 1.
        line: usize,
    },
    /// A YAML file that does not have its form.
    #[error("{file}: is not what this file must be; correct it and build the release again")]
    Parse {
        /// Name of the file.
        file: String,
        /// What the parser met, and where.
        #[source]
        source: ReleaseFileError,
    },
    /// The metadata speak of another release.
    #[error(
        "{file}: clusterStack is {found}, but the release tag says {expected}; rename the directory or correct the file"
    )]
    VersionContradictsTag {
        /// Name of the file.
        file: String,
        /// The version in the file, in dot form.
        found: String,
        /// The version of the tag, in dot form.
        expected: String,
    },
    /// The metadata speak of another Kubernetes minor.
    #[error(
        "{file}: kubernetes is {found}, but the release tag says {expected}; rename the directory or correct the file"
    )]
    KubernetesContradictsTag {
        /// Name of the file.
        file: String,
        /// The version in the file.
        found: String,
        /// The minor of the tag.
        expected: KubernetesMinor,
    },
    /// An archive that cannot be used.
    #[error("{file}: unable to use the archive")]
    Archive {
        /// Name of the file.
        file: String,
        /// What is wrong with it.
        #[source]
        source: ArchiveError,
    },
    /// An archive that holds no chart in Helm's layout.
    #[error("{file}: must hold one top directory with a Chart.yaml, as `helm package` makes it")]
    NotOneChart {
        /// Name of the file.
        file: String,
    },
    /// A stage without its chart.
    #[error("{file}: the stage {stage:?} of clusteraddon.yaml needs a directory of this name with a Chart.yaml")]
    MissingStageChart {
        /// Name of the archive.
        file: String,
        /// Name of the stage.
        stage: String,
    },
    /// Conditions that cannot hold, or that do not say what is meant.
    #[error("{first}{}; correct it and build the release again", and_more(*.more))]
    Conditions {
        /// The first of them in the file: the file and the place, the stage, and what is wrong.
        first: String,
        /// How many more there are.
        more: usize,
    },
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

impl ReleaseError {
    /// What can end the problem. Everything that is wrong with the content takes somebody who changes it, and a changed directory wakes the watch.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::ReadDirectory { .. } | Self::ReadFile { .. } | Self::Changed { .. } => ErrorClass::Transient,
            _ => ErrorClass::Terminal,
        }
    }

    /// The kind of the problem as one word, for metrics and logs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::ReadDirectory { .. } | Self::ReadFile { .. } => "ReleaseUnreadable",
            Self::Changed { .. } => "ReleaseChanged",
            Self::MissingFile { .. } => "ReleaseIncomplete",
            Self::TooManyFiles { .. }
            | Self::FileTooLarge { .. }
            | Self::TooLarge { .. }
            | Self::TooManyBrackets { .. } => "ReleaseTooLarge",
            Self::VersionContradictsTag { .. } | Self::KubernetesContradictsTag { .. } => "MetadataContradictsTag",
            Self::NotAFile { .. }
            | Self::FileName { .. }
            | Self::DuplicateFile { .. }
            | Self::TwoValues
            | Self::Parse { .. } => "ReleaseFileInvalid",
            Self::Conditions { .. } => "ReleaseConditionInvalid",
            Self::Archive { .. } | Self::NotOneChart { .. } | Self::MissingStageChart { .. } => "ReleaseArchiveInvalid",
        }
    }
}
