//! One file at a time, as a whole.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::work::{BlockingWork, Unanswered};

/// Why a file could not be read. Which one it was, the caller knows better.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is not there, may not be read, or the storage fails or gives no answer ([`io::ErrorKind::TimedOut`]).
    #[error("failed to read the file")]
    Read(#[source] io::Error),
    /// It is larger than what is wanted.
    #[error("the file has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
}

impl From<Unanswered> for ReadError {
    fn from(unanswered: Unanswered) -> Self {
        let kind = match unanswered {
            Unanswered::TimedOut { .. } => io::ErrorKind::TimedOut,
            Unanswered::Stopped => io::ErrorKind::Interrupted,
        };
        Self::Read(io::Error::new(kind, unanswered))
    }
}

impl BlockingWork {
    /// Reads a file of at most `limit` bytes; of a larger one no more than that and one is read.
    pub async fn read(self: &Arc<Self>, path: PathBuf, limit: usize) -> Result<Vec<u8>, ReadError> {
        let content = self.run(move || beginning(path, limit)).await?;
        match content.map_err(ReadError::Read)? {
            content if content.len() > limit => Err(ReadError::TooLarge { limit }),
            content => Ok(content),
        }
    }
}

/// One byte more than there may be, where there are so many.
fn beginning(path: PathBuf, limit: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(limit as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::Path;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;
    use tokio::time;

    use super::*;

    /// A pipe that nobody writes to: whoever opens it waits.
    fn hang(path: &Path) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Whoever waits for the pipe at this path goes on, and who comes later finds nothing.
    fn answer(path: &Path) {
        let _writer = OpenOptions::new().read(true).write(true).open(path).unwrap();
        fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let work = BlockingWork::new(1, Duration::from_mins(1));
        let absent = work.read(path.clone(), 4).await.unwrap_err();
        assert!(matches!(absent, ReadError::Read(error) if error.kind() == io::ErrorKind::NotFound));
        fs::write(&path, "four").unwrap();
        assert_eq!(work.read(path.clone(), 4).await.unwrap(), b"four");
        let large = work.read(path, 3).await.unwrap_err();
        assert!(matches!(large, ReadError::TooLarge { limit: 3 }));
        let folder = work.read(folder.path().to_owned(), 3).await.unwrap_err();
        assert!(matches!(folder, ReadError::Read(error) if error.kind() == io::ErrorKind::IsADirectory));
    }

    #[test]
    fn a_storage_that_hangs_takes_one_thread_however_often_it_is_asked_and_is_used_again_when_it_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        hang(&path);
        let runtime = Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(2)
            .build();
        runtime.unwrap().block_on(async {
            let work = BlockingWork::new(1, Duration::from_millis(50));
            for _ in 0..4 {
                let error = work.read(path.clone(), 4).await.unwrap_err();
                assert!(matches!(error, ReadError::Read(error) if error.kind() == io::ErrorKind::TimedOut));
            }
            let other = time::timeout(Duration::from_secs(30), spawn_blocking(|| "done")).await;
            answer(&path);
            assert_eq!(other.expect("there is a thread").unwrap(), "done");

            // Its place comes back, and so does the file.
            fs::write(&path, "four").unwrap();
            assert_eq!(work.read(path, 4).await.unwrap(), b"four");
        });
    }
}
