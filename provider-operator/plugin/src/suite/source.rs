//! A source whose faults are written beforehand. Holds its bytes in memory.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::sync::watch;

use crate::{ByteStream, ErrorClass, ImageSource, Opened, Probe, SourceError};

/// So many bytes come at once.
const PIECE: u64 = 64 * 1024;

/// A file in memory, with faults.
#[derive(Debug)]
pub struct ScriptedSource {
    bytes: Bytes,
    probe: Probe,
    /// Every opened stream breaks after so many bytes.
    break_every: Option<u64>,
    /// Nothing comes from this byte on, until it is let go.
    hang_at: Option<u64>,
    /// The file ends here, whatever was said of its size.
    end_at: u64,
    /// From the second opening on it is another file.
    changes: bool,
    /// What the breaks are, and how long they ask to wait.
    fault: (ErrorClass, Option<Duration>),
    opened: Mutex<Vec<u64>>,
    given: AtomicU64,
    hangs: watch::Sender<Hang>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hang {
    NotYet,
    Hangs,
    LetGo,
}

impl ScriptedSource {
    /// Without faults: says its size and a tag, and can be read from anywhere.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            probe: Probe {
                size: Some(bytes.len() as u64),
                tag: Some("\"1\"".to_owned()),
                ranges: true,
                content_type: Some("application/octet-stream".to_owned()),
            },
            break_every: None,
            hang_at: None,
            end_at: bytes.len() as u64,
            changes: false,
            fault: (ErrorClass::SourceBroken, None),
            opened: Mutex::default(),
            given: AtomicU64::new(0),
            hangs: watch::Sender::new(Hang::NotYet),
            bytes,
        }
    }

    /// Says something else of its file.
    #[must_use]
    pub fn saying(mut self, change: impl FnOnce(&mut Probe)) -> Self {
        change(&mut self.probe);
        self
    }

    /// Breaks after each `count` bytes.
    #[must_use]
    pub fn breaking_every(mut self, count: u64) -> Self {
        self.break_every = Some(count);
        self
    }

    /// Its breaks are of this class, and ask for this rest.
    #[must_use]
    pub fn with_fault(mut self, class: ErrorClass, retry_after: Option<Duration>) -> Self {
        self.fault = (class, retry_after);
        self
    }

    /// Gives `at` bytes and then nothing, without an end, until [`ScriptedSource::let_go`].
    #[must_use]
    pub fn hanging_at(mut self, at: u64) -> Self {
        self.hang_at = Some(at);
        self
    }

    /// Ends after `at` bytes without an error, whatever it said of its size.
    #[must_use]
    pub fn ending_at(mut self, at: u64) -> Self {
        self.end_at = at.min(self.bytes.len() as u64);
        self
    }

    /// Is another file when it is opened again.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.changes = true;
        self
    }

    /// What it says of its file.
    pub fn said(&self) -> Probe {
        self.probe.clone()
    }

    /// From which bytes on it was opened, in order.
    pub fn opened(&self) -> Vec<u64> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many bytes it gave in all.
    pub fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Returns when it hangs.
    pub async fn hangs(&self) {
        let mut hangs = self.hangs.subscribe();
        // The sender lives as long as this source.
        let _ = hangs.wait_for(|hang| *hang == Hang::Hangs).await;
    }

    /// What hangs goes on.
    pub fn let_go(&self) {
        self.hangs.send_replace(Hang::LetGo);
    }

    async fn piece(&self, at: u64, begun: u64) -> Option<Result<Bytes, SourceError>> {
        let broken = self.break_every.map(|every| begun + every);
        if broken.is_some_and(|broken| at >= broken) {
            let mut error = SourceError::new(self.fault.0, "the source broke as it was told");
            error.retry_after = self.fault.1;
            return Some(Err(error));
        }
        let hang = self.hang_at.filter(|_| *self.hangs.borrow() != Hang::LetGo);
        if hang.is_some_and(|hang| at >= hang) {
            self.hangs.send_replace(Hang::Hangs);
            let mut hangs = self.hangs.subscribe();
            let _ = hangs.wait_for(|hang| *hang == Hang::LetGo).await;
        }
        let hang = hang.filter(|hang| *hang > at);
        let until = [Some(at + PIECE), Some(self.end_at), broken, hang];
        let until = until.into_iter().flatten().min().unwrap_or(self.end_at);
        let piece = self.bytes.slice(index(at)..index(until.max(at)));
        self.given.fetch_add(piece.len() as u64, Ordering::Relaxed);
        (!piece.is_empty()).then_some(Ok(piece))
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// Shared, because a test looks at what the transfer reads.
#[derive(Clone, Debug)]
pub struct SharedSource(pub Arc<ScriptedSource>);

#[async_trait]
impl ImageSource for SharedSource {
    fn place(&self) -> &'static str {
        "https://images.example/node.img"
    }

    async fn probe(&self) -> Result<Probe, SourceError> {
        Ok(self.0.said())
    }

    async fn open(&self, at: u64, probe: &Probe) -> Result<Opened, SourceError> {
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push(at);
        if self.0.changes && opened.len() > 1 {
            return Ok(Opened::Changed);
        }
        let begun = if probe.ranges { at.min(self.0.end_at) } else { 0 };
        let source = Arc::clone(&self.0);
        let stream: ByteStream = stream::unfold(Some((source, begun)), move |state| async move {
            let (source, at) = state?;
            let piece = source.piece(at, begun).await?;
            let next = piece.as_ref().ok().map(|piece| at + piece.len() as u64);
            Some((piece, next.map(|next| (source, next))))
        })
        .boxed();
        Ok(if probe.ranges {
            Opened::At(stream)
        } else {
            Opened::FromStart(stream)
        })
    }
}
