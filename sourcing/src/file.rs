//! Files that whoever runs the operator names, and no object: read within bounds of time and memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use release::ErrorClass;
use storage::{BlockingWork, ReadError};
use thiserror::Error;

/// For a storage that hangs.
const READ_DEADLINE: Duration = Duration::from_secs(5);

/// Why a file cannot be used. Nothing of its content is in the words.
#[derive(Debug, Error)]
pub enum FileError {
    /// It is not there, or may not be read.
    #[error("failed to read {path}, which {flag} names", path = path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// The flag of the operator.
        flag: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is larger than what is wanted.
    #[error("{path}, which {flag} names, has more than {limit} bytes", path = path.display())]
    TooLarge {
        /// Where.
        path: PathBuf,
        /// The flag of the operator.
        flag: &'static str,
        /// The bound.
        limit: usize,
    },
}

impl FileError {
    /// What can end the problem. A storage that does not answer takes nothing away; a file that is gone does.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => {
                    ErrorClass::Waiting
                }
                _ => ErrorClass::Transient,
            },
            Self::TooLarge { .. } => ErrorClass::Waiting,
        }
    }
}

/// A file that a flag names. However often it is asked for, one thread at most waits for it.
#[derive(Debug)]
pub struct NamedFile {
    flag: &'static str,
    path: PathBuf,
    limit: usize,
    work: Arc<BlockingWork>,
}

impl NamedFile {
    /// The file at `path`, which `flag` names, with at most `limit` bytes.
    pub fn new(flag: &'static str, path: PathBuf, limit: usize) -> Self {
        let work = BlockingWork::new(1, READ_DEADLINE);
        Self {
            flag,
            path,
            limit,
            work,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it now. Ends within five seconds, also where the storage hangs.
    pub async fn read(&self) -> Result<Vec<u8>, FileError> {
        let (path, flag) = (self.path.clone(), self.flag);
        let read = self.work.read(self.path.clone(), self.limit).await;
        read.map_err(|error| match error {
            ReadError::Read(source) => FileError::Read { path, flag, source },
            ReadError::TooLarge { limit } => FileError::TooLarge { path, flag, limit },
        })
    }
}
