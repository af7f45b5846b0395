//! The file that a build has left, as an image: opened once, by a way that no link leads away from, and read from then on. Trusts nothing of what
//! the build made: the program that reads it may read more than the build could.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_plugin::{ErrorClass, ImageSource, Opened, Probe, SourceError};
use rustix::fs::{Mode, OFlags, open, openat};
use storage::BlockingWork;
use thiserror::Error;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// How long a disk may take for them.
const DEADLINE: Duration = Duration::from_mins(1);

/// The file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ArtifactError {
    /// Not of the form.
    #[error("{} is not a path to a file", path.display())]
    Parse {
        /// The path.
        path: PathBuf,
    },
    /// It is not there, or something on the way is a link.
    #[error("the build left no file {}; links are not followed", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A directory, a device or a pipe.
    #[error("the build left something at {} that is no file", path.display())]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// It is empty.
    #[error("the build left an empty file at {}", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
    },
    /// It is larger than the object allows.
    #[error("the build left {found} bytes at {}, and its sizeLimit is {limit}", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// How many.
        found: u64,
        /// And how many there may be.
        limit: u64,
    },
}

/// A file that is open.
#[derive(Debug)]
pub(crate) struct Artifact {
    place: String,
    file: Arc<File>,
    size: u64,
    work: Arc<BlockingWork>,
}

impl Artifact {
    /// Opens the file at this path: the first part of it is where the build could write, and whatever is below it may be anything.
    ///
    /// # Errors
    /// There is no such file, or it has more than `limit` bytes.
    pub(crate) fn open(path: &Path, limit: Option<u64>) -> Result<Self, ArtifactError> {
        let file = File::from(open_below(path)?);
        let kind = || ArtifactError::Kind { path: path.to_owned() };
        let metadata = file.metadata().map_err(|_| kind())?;
        if !metadata.is_file() {
            return Err(kind());
        }
        let size = metadata.len();
        if size == 0 {
            return Err(ArtifactError::Empty { path: path.to_owned() });
        }
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            let path = path.to_owned();
            return Err(ArtifactError::TooLarge {
                path,
                found: size,
                limit,
            });
        }
        Ok(Self {
            place: format!("the artefact {}", path.display()),
            file: Arc::new(file),
            size,
            work: BlockingWork::new(1, DEADLINE),
        })
    }

    fn unreadable(&self, why: &dyn std::fmt::Display) -> SourceError {
        SourceError::new(
            ErrorClass::SourceBroken,
            format!("{} cannot be read: {why}", self.place),
        )
    }
}

/// One step after the other, none of which may be a link.
fn open_below(path: &Path) -> Result<OwnedFd, ArtifactError> {
    let parse = || ArtifactError::Parse { path: path.to_owned() };
    let failed = |error: rustix::io::Errno| ArtifactError::Open {
        path: path.to_owned(),
        source: error.into(),
    };
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err(parse());
    }
    let names: Option<Vec<&OsStr>> = parts
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let names = names.ok_or_else(parse)?;
    let (name, folders) = names.split_last().ok_or_else(parse)?;
    let always = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = always | OFlags::DIRECTORY | OFlags::RDONLY;
    let mut at = open("/", folder, Mode::empty()).map_err(failed)?;
    for name in folders {
        at = openat(&at, *name, folder, Mode::empty()).map_err(failed)?;
    }
    // A pipe that nobody writes to would be waited for.
    openat(&at, *name, always | OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).map_err(failed)
}

#[async_trait]
impl ImageSource for Artifact {
    fn place(&self) -> &str {
        &self.place
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some(self.size),
            // It is the file that is open, whatever has its name by now.
            tag: Some("open".to_owned()),
            ranges: true,
            content_type: None,
        })
    }

    async fn open(&self, at: u64, _probe: &Probe) -> Result<Opened, SourceError> {
        let reading = Self {
            place: self.place.clone(),
            file: Arc::clone(&self.file),
            size: self.size,
            work: Arc::clone(&self.work),
        };
        let pieces = stream::unfold(Some((reading, at)), |state| async move {
            let (reading, at) = state?;
            let file = Arc::clone(&reading.file);
            let left = reading.size.saturating_sub(at);
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE);
            if wanted == 0 {
                return None;
            }
            let read = reading.work.run(move || piece(&file, at, wanted)).await;
            let read = match read {
                Ok(Ok(bytes)) => Ok(bytes),
                Ok(Err(error)) => Err(reading.unreadable(&error)),
                Err(error) => Err(reading.unreadable(&error)),
            };
            match read {
                Ok(bytes) => {
                    let next = at + bytes.len() as u64;
                    Some((Ok(bytes), Some((reading, next))))
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(Opened::At(pieces.boxed()))
    }
}

fn piece(file: &File, at: u64, wanted: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; wanted];
    file.read_exact_at(&mut bytes, at)?;
    Ok(Bytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// The real path: a folder for temporary files may be below a link itself.
    fn folder() -> (TempDir, PathBuf) {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().canonicalize().expect("a path");
        (folder, path)
    }

    #[tokio::test]
    async fn a_file_is_read_from_any_byte_on() {
        let (_kept, folder) = folder();
        let path = folder.join("disk.raw");
        let bytes: Vec<u8> = (0..600_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        fs::write(&path, &bytes).expect("a file");
        let artifact = Artifact::open(&path, Some(600_000)).expect("an artefact");
        let probe = artifact.probe().await.expect("a probe");
        assert_eq!(probe.size, Some(600_000));
        // Whatever is done to the name is too late.
        fs::remove_file(&path).expect("it was there");
        for at in [0, 1, 262_144, 599_999, 600_000] {
            let Ok(Opened::At(mut pieces)) = artifact.open(at, &probe).await else {
                panic!("it can be read from {at} on")
            };
            let mut read = Vec::new();
            while let Some(piece) = pieces.next().await {
                read.extend_from_slice(&piece.expect("a piece"));
            }
            assert!(read == bytes[usize::try_from(at).expect("small")..], "from {at}");
        }
    }

    #[test]
    fn an_artifact_that_is_a_link_or_behind_one_is_refused() {
        let (_kept, folder) = folder();
        let secret = folder.join("token");
        fs::write(&secret, "hunter2").expect("a file");
        let left = folder.join("artifact");
        fs::create_dir(&left).expect("a folder");
        symlink(&secret, left.join("image")).expect("a link");
        symlink(&folder, left.join("folder")).expect("a link");
        for name in ["image", "folder/token"] {
            let refused = Artifact::open(&left.join(name), None).expect_err("refused");
            assert!(matches!(refused, ArtifactError::Open { .. }), "{refused}");
        }
    }

    #[test]
    fn what_is_no_file_of_the_right_size_is_refused_with_what_it_is() {
        let (_kept, folder) = folder();
        let path = folder.join("image");
        let refused = |path: &Path| Artifact::open(path, Some(4)).expect_err("refused").to_string();
        assert!(refused(&path).contains("left no file"), "{}", refused(&path));
        fs::write(&path, "").expect("a file");
        assert!(refused(&path).contains("empty"));
        fs::write(&path, "12345").expect("a file");
        assert!(refused(&path).contains("its sizeLimit is 4"));
        fs::remove_file(&path).expect("it was there");
        fs::create_dir(&path).expect("a folder");
        assert!(refused(&path).contains("no file"));
        assert!(refused(Path::new("image")).contains("is not a path"));
        assert!(refused(&folder.join("../image")).contains("is not a path"));
    }
}
