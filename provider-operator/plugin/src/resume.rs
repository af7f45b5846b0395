//! One stream of bytes over a source that breaks. Opens it again where it broke, a bounded number of times; whether the bytes are the right
//! ones, others check.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::{Buf, Bytes};
use futures::{StreamExt, stream};
use tokio::time;

use crate::{ByteStream, ErrorClass, ImageSource, Opened, Probe, SourceError};

/// A source that gives nothing for so long has broken.
const PATIENCE: Duration = Duration::from_secs(30);
/// Before it is opened again, by how often it broke; the last one from there on.
///
/// The first time at once: a source that gives much between two breaks is as good as one that does not break.
const PAUSES: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// So many bytes are progress: what broke before them is forgotten.
const PROGRESS: u64 = 1024 * 1024;
/// It may break so often without progress.
const BREAKS: usize = 10;

/// What is read, and what is known to hold it together.
pub(crate) struct Resuming {
    pub(crate) source: Arc<dyn ImageSource>,
    pub(crate) probe: Probe,
    /// The byte to begin with.
    pub(crate) from: u64,
    /// Whether somebody compares the digest of everything in the end. Without that, and without a tag, half of one file and half of another
    /// would look like a whole.
    pub(crate) is_checked: bool,
    /// Counts how often it was opened again.
    pub(crate) resumes: Arc<AtomicU32>,
}

impl Resuming {
    /// The bytes. Ends without an error only when the source gave exactly as many as it said.
    ///
    /// What fails before the first byte fails at once: until then nothing is lost by trying later.
    pub(crate) fn stream(self) -> ByteStream {
        let reading = Reading {
            at: self.from,
            what: self,
            open: None,
            skip: 0,
            breaks: 0,
            progress: 0,
        };
        stream::unfold(Some(reading), |reading| async {
            let mut reading = reading?;
            match reading.next().await {
                Ok(bytes) => Some((Ok(bytes?), Some(reading))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }
}

struct Reading {
    what: Resuming,
    /// The next byte to give.
    at: u64,
    open: Option<ByteStream>,
    /// Bytes of the open stream that come before the next one to give.
    skip: u64,
    /// How often it broke since there was progress.
    breaks: usize,
    /// Bytes since it broke for the first of these times.
    progress: u64,
}

/// What a look at an open source brought.
enum Step {
    Bytes(Bytes),
    End,
    Broke(SourceError),
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        loop {
            match self.step().await {
                Step::Bytes(bytes) => {
                    if let Some(bytes) = self.wanted(bytes)? {
                        return Ok(Some(bytes));
                    }
                }
                Step::End if self.is_whole() => return Ok(None),
                // All that was promised is there; that the source has nothing more to say, it did not say.
                Step::Broke(_) if self.what.probe.size == Some(self.at) => return Ok(None),
                Step::End => self.again(self.ended_early()).await?,
                Step::Broke(error) => self.again(error).await?,
            }
        }
    }

    /// Whether a source that ends here has given what it promised.
    fn is_whole(&self) -> bool {
        self.skip == 0 && self.what.probe.size.is_none_or(|size| size == self.at)
    }

    async fn step(&mut self) -> Step {
        if self.open.is_none()
            && let Err(error) = self.open().await
        {
            return Step::Broke(error);
        }
        let place = self.what.source.place();
        let Some(open) = &mut self.open else { return Step::End };
        match time::timeout(PATIENCE, open.next()).await {
            Ok(Some(Ok(bytes))) => Step::Bytes(bytes),
            Ok(Some(Err(error))) => Step::Broke(error),
            Ok(None) => Step::End,
            Err(_) => Step::Broke(silent(place)),
        }
    }

    async fn open(&mut self) -> Result<(), SourceError> {
        let opening = self.what.source.open(self.at, &self.what.probe);
        let opened = time::timeout(PATIENCE, opening).await;
        let (stream, skip) = match opened.map_err(|_| silent(self.what.source.place()))?? {
            Opened::At(stream) => (stream, 0),
            Opened::FromStart(stream) => (stream, self.at),
            Opened::Changed => return Err(self.changed()),
        };
        self.skip = skip;
        self.open = Some(stream);
        Ok(())
    }

    /// What of these bytes was not given yet.
    fn wanted(&mut self, mut bytes: Bytes) -> Result<Option<Bytes>, SourceError> {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        bytes.advance(skipped);
        self.skip -= skipped as u64;
        if bytes.is_empty() {
            return Ok(None);
        }
        let count = bytes.len() as u64;
        self.at += count;
        self.progress += count;
        if self.progress >= PROGRESS {
            self.breaks = 0;
        }
        match self.what.probe.size {
            Some(size) if self.at > size => Err(self.longer(size)),
            _ => Ok(Some(bytes)),
        }
    }

    /// Waits until the source may be opened again, or says why not.
    async fn again(&mut self, error: SourceError) -> Result<(), SourceError> {
        self.open = None;
        let may_recover = matches!(
            error.class,
            ErrorClass::SourceBroken | ErrorClass::Unavailable | ErrorClass::Throttled
        );
        if !may_recover || self.at == self.what.from {
            return Err(error);
        }
        if !self.what.is_checked && self.what.probe.tag.is_none() {
            return Err(self.unknown_again().because(error));
        }
        if self.breaks == 0 {
            self.progress = 0;
        }
        self.breaks += 1;
        if self.breaks >= BREAKS {
            return Err(self.broken().because(error));
        }
        let longest = PAUSES[PAUSES.len() - 1];
        let pause = PAUSES.get(self.breaks - 1).copied().unwrap_or(longest);
        match error.retry_after {
            // A longer rest is not slept through with a half sent image.
            Some(asked) if asked > longest => return Err(error),
            asked => time::sleep(asked.unwrap_or_default().max(pause)).await,
        }
        self.what.resumes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn ended_early(&self) -> SourceError {
        let place = self.what.source.place();
        let words = match self.what.probe.size {
            Some(size) => format!("{place} ended after {} of {size} bytes", self.at),
            None => format!("{place} ended before byte {}", self.at),
        };
        SourceError::new(ErrorClass::SourceBroken, words)
    }

    fn changed(&self) -> SourceError {
        let place = self.what.source.place();
        SourceError::new(
            ErrorClass::SourceChanged,
            format!("{place} has another file now than when the transfer began"),
        )
    }

    fn longer(&self, size: u64) -> SourceError {
        let place = self.what.source.place();
        SourceError::new(
            ErrorClass::SourceChanged,
            format!("{place} has more than the {size} bytes that it said"),
        )
    }

    fn unknown_again(&self) -> SourceError {
        let place = self.what.source.place();
        SourceError::new(
            ErrorClass::SourceBroken,
            format!(
                "{place} broke after {} bytes and gives neither an entity tag nor a time of change by which the same file would be known again; pin its digest",
                self.at
            ),
        )
    }

    fn broken(&self) -> SourceError {
        let place = self.what.source.place();
        SourceError::new(
            ErrorClass::SourceBroken,
            format!("{place} broke {BREAKS} times within {PROGRESS} bytes"),
        )
    }
}

fn silent(place: &str) -> SourceError {
    SourceError::new(
        ErrorClass::Unavailable,
        format!("{place} gave nothing for {} seconds", PATIENCE.as_secs()),
    )
}

#[cfg(test)]
mod tests;
