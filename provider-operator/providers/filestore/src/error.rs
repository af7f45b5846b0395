//! What can be wrong with a record in the directory, and which class of failure that is.

use std::io::{self, ErrorKind};

use provider_plugin::{CloudError, ErrorClass};
use storage::Unanswered;
use thiserror::Error;

/// Why something could not be done with a record.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// Nothing has this id.
    #[error("there is no record {id} in the directory; it is made anew")]
    Find {
        /// The id.
        id: String,
    },
    /// It carries another owner.
    #[error("the record {id} belongs to another installation, and is left alone")]
    Own {
        /// The id.
        id: String,
    },
    /// Its marks cannot be understood.
    #[error(
        "the marks of the record {id} cannot be understood; look at its .json in the folder .parts, and remove it when nobody needs it"
    )]
    Understand {
        /// The id.
        id: String,
    },
    /// It is not in the state for this.
    #[error("{why}")]
    Proceed {
        /// As a sentence.
        why: &'static str,
    },
    /// What was written is not what is read.
    #[error("the disk gives other bytes than were written to it; look at its health, the image is sent again")]
    Confirm,
    /// The directory or a file in it.
    #[error("{}", words(.source))]
    Touch {
        /// What the system said.
        #[from]
        source: io::Error,
    },
    /// The disk gave no answer.
    #[error("the disk gives no answer; look at the volume of the directory")]
    Wait {
        /// How long it was waited for.
        #[from]
        source: Unanswered,
    },
}

/// What to do about it, where the kind of failure says so.
fn words(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "no room is left in the directory of images; give its volume more room, or delete images"
        }
        ErrorKind::PermissionDenied => {
            "the directory of images may not be written to; give the user of the operator the right to"
        }
        ErrorKind::ReadOnlyFilesystem => "the directory of images is mounted for reading only; mount it for writing",
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            "the directory of images is not there; mount its volume where the operator was told that it is"
        }
        _ => "the directory of images failed; look at its volume",
    }
}

impl RecordError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Find { .. } => ErrorClass::Gone,
            Self::Own { .. } => ErrorClass::NotOurs,
            Self::Understand { .. } | Self::Proceed { .. } => ErrorClass::State,
            Self::Confirm | Self::Wait { .. } => ErrorClass::Unavailable,
            Self::Touch { source } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => ErrorClass::Quota,
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => ErrorClass::Permission,
                _ => ErrorClass::Unavailable,
            },
        }
    }

    /// The failure of a call that was to do this.
    pub(crate) fn of(self, operation: &'static str) -> CloudError {
        CloudError::new(self.class(), operation, self.to_string()).because(self)
    }
}
