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

/// Most bytes that are given at once.
const PIECE: usize = 256 * 1024;
/// How long a disk may take.
const DEADLINE: Duration = Duration::from_mins(1);
/// Files that are read at the same time, each of which is in memory as a whole: no file of a release is larger than 100 MiB.
const AT_ONCE: usize = 2;

/// Gives files of releases as images. Clones share their places.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseFiles {
    work: Arc<BlockingWork>,
}

impl ReleaseFiles {
    /// Reads nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            work: BlockingWork::new(AT_ONCE, DEADLINE),
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
        };
        Some((Arc::new(source), pinned))
    }
}

struct ReleaseFile {
    release: Arc<Admitted>,
    file: FileRef,
    place: String,
    work: Arc<BlockingWork>,
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
        let (release, file) = (Arc::clone(&self.release), self.file.clone());
        let read = self.work.run(move || release.read(&file)).await;
        let read = read.map_err(|why| self.unreadable(ErrorClass::Unavailable, &why))?;
        // What is not any more what was verified is downloaded again by whoever keeps the release.
        let mut bytes = Bytes::from(read.map_err(|why| self.unreadable(ErrorClass::SourceBroken, &why))?);
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let mut rest = bytes.split_off(from);
        let pieces = std::iter::from_fn(move || {
            let next = rest.split_to(rest.len().min(PIECE));
            (!next.is_empty()).then_some(Ok(next))
        });
        Ok(Opened::At(stream::iter(pieces).boxed()))
    }
}

impl ReleaseFile {
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
