//! Files that whoever runs the operator names, and no stack: read within bounds of time and memory.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use release::ErrorClass;
use thiserror::Error;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

/// For a storage that hangs.
const READ_DEADLINE: Duration = Duration::from_secs(5);

/// Why a file cannot be used. Nothing of its content is in the words.
#[derive(Debug, Error)]
pub(crate) enum FileError {
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
    pub(super) fn class(&self) -> ErrorClass {
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

/// Reads the file that a flag names.
pub(super) async fn read(flag: &'static str, path: &Path, limit: usize) -> Result<Vec<u8>, FileError> {
    let content = timeout(READ_DEADLINE, beginning(path, limit));
    let content = content.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let path = path.to_owned();
    match content {
        Ok(content) if content.len() > limit => Err(FileError::TooLarge { path, flag, limit }),
        Ok(content) => Ok(content),
        Err(source) => Err(FileError::Read { path, flag, source }),
    }
}

/// One byte more than there may be, where there are so many.
async fn beginning(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = File::open(path).await?;
    file.take(limit as u64 + 1).read_to_end(&mut content).await?;
    Ok(content)
}
