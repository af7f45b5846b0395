//! A file of a release that was verified, as an image: read from the store of releases, and pinned by what it was verified with.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use operator_kit::failure::chain;
use provider_plugin::{Algorithm, ErrorClass, ImageSource, Opened, Pinned, Probe, SourceError};
use release::{Admitted, FileRef};
use storage::BlockingWork;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time;

/// Most bytes that are given at once.
const PIECE: usize = 256 * 1024;
/// How long a disk may take.
const DEADLINE: Duration = Duration::from_mins(1);
/// Files that are read at the same time.
const AT_ONCE: usize = 2;
/// MiB of the files that are in memory, each as a whole and for as long as it is sent: no file of a release is larger than 100 MiB.
const IN_MEMORY: u32 = 200;
/// How long others are waited for: less than whoever opens a source waits for an answer, so that it is us who say why there is none.
const PATIENCE: Duration = Duration::from_secs(20);

const MIB: u64 = 1024 * 1024;

/// Gives files of releases as images. Clones share their places.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseFiles {
    work: Arc<BlockingWork>,
    memory: Arc<Semaphore>,
}

impl ReleaseFiles {
    /// Reads nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            work: BlockingWork::new(AT_ONCE, DEADLINE),
            memory: Arc::new(Semaphore::new(IN_MEMORY as usize)),
        }
    }

    /// The file of this name, and the digest that it was verified with; `None` when the release has no such file.
    pub(crate) fn file(&self, release: &Arc<Admitted>, name: &str) -> Option<(Arc<dyn ImageSource>, Pinned)> {
        let file = release.release().files.iter().find(|file| file.name == name)?;
        let pinned = Pinned::new(Algorithm::Sha256, &file.sha256.hex())?;
        let source = ReleaseFile {
            place: format!("the file {name} of the release {}", release.release().tag),
            release: Arc::clone(release),
            file: file.clone(),
            work: Arc::clone(&self.work),
            memory: Arc::clone(&self.memory),
        };
        Some((Arc::new(source), pinned))
    }
}

struct ReleaseFile {
    release: Arc<Admitted>,
    file: FileRef,
    place: String,
    work: Arc<BlockingWork>,
    memory: Arc<Semaphore>,
}

#[async_trait]
impl ImageSource for ReleaseFile {
    fn place(&self) -> &str {
        &self.place
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(Probe {
            size: Some(self.file.size),
            tag: Some(self.file.sha256.to_string()),
            ranges: true,
            content_type: None,
        })
    }

    async fn open(&self, at: u64, _probe: &Probe) -> Result<Opened, SourceError> {
        let held = self.room().await?;
        let (release, file) = (Arc::clone(&self.release), self.file.clone());
        let read = self.work.run(move || release.read(&file)).await;
        let read = read.map_err(|why| self.unreadable(ErrorClass::Unavailable, &why))?;
        // What is not any more what was verified is downloaded again by whoever keeps the release.
        let mut bytes = Bytes::from(read.map_err(|why| self.unreadable(ErrorClass::SourceBroken, &why))?);
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let mut rest = bytes.split_off(from);
        let pieces = std::iter::from_fn(move || {
            // The memory is that of the bytes, until nobody reads them any more.
            let _held = &held;
            let next = rest.split_to(rest.len().min(PIECE));
            (!next.is_empty()).then_some(Ok(next))
        });
        Ok(Opened::At(stream::iter(pieces).boxed()))
    }
}

impl ReleaseFile {
    async fn room(&self) -> Result<OwnedSemaphorePermit, SourceError> {
        let size = u32::try_from(self.file.size.div_ceil(MIB)).unwrap_or(u32::MAX);
        let waiting = Arc::clone(&self.memory).acquire_many_owned(size.clamp(1, IN_MEMORY));
        let held = time::timeout(PATIENCE, waiting).await.ok().and_then(Result::ok);
        held.ok_or_else(|| {
            let words = format!(
                "{} waits for others: the files of releases that are being sent take all memory that there is for them",
                self.place
            );
            SourceError::new(ErrorClass::Unavailable, words)
        })
    }

    fn unreadable(&self, class: ErrorClass, why: &(dyn Error + 'static)) -> SourceError {
        SourceError::new(class, format!("{} cannot be read: {}", self.place, chain(why)))
    }
}

impl fmt::Debug for ReleaseFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReleaseFile({})", self.place)
    }
}

#[cfg(test)]
mod tests;
