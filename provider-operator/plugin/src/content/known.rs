//! What is known of a content while somebody else, perhaps a library for HTTP, reads its stream.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::Stream;

use super::ContentStream;
use crate::{ContentError, Pinned};

/// What the bytes of one image turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Digest of the bytes at the source, in the algorithm of the pinned one, else of the remembered one, else sha256.
    pub source: Pinned,
    /// SHA-512 of the image as it was sent: 128 lower-case hex digits.
    pub sha512: String,
    /// Bytes of the image, with those that were there before.
    pub bytes: u64,
}

/// Whose turn it is, when nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// More was asked for, and the source (or the seal) has not answered yet.
    Source,
    /// What was given has not been taken yet.
    Cloud,
}

/// What is known of a content while, and after, its stream is read by somebody else.
#[derive(Clone, Debug)]
pub struct SumsHandle(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    turn: Turn,
    sent: u64,
    read: u64,
    end: Option<Result<Sums, ContentError>>,
}

impl SumsHandle {
    /// Nothing was given yet but the first `sent` bytes, before this transfer.
    pub(super) fn new(sent: u64) -> Self {
        Self(Arc::new(Mutex::new(Known {
            turn: Turn::Cloud,
            sent,
            read: 0,
            end: None,
        })))
    }

    /// The digests, once the last byte was given.
    pub fn sums(&self) -> Option<Sums> {
        self.known(|known| known.end.as_ref()?.as_ref().ok().cloned())
    }

    /// Why the stream ended with an error, if it did.
    pub fn failure(&self) -> Option<ContentError> {
        self.known(|known| known.end.as_ref()?.as_ref().err().cloned())
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        self.known(|known| known.turn)
    }

    /// Bytes of the image that were given, with those that were there before.
    pub fn sent(&self) -> u64 {
        self.known(|known| known.sent)
    }

    /// Bytes of the image that came from the source, unpacked: more than were given, as some are held back. While they grow, the source is not silent.
    pub fn read(&self) -> u64 {
        self.known(|known| known.read)
    }

    /// So many more came.
    pub(super) fn take(&self, count: usize) {
        self.known(|known| known.read += count as u64);
    }

    /// So many more are given now.
    pub(super) fn give(&self, count: usize) -> u64 {
        self.known(|known| {
            known.sent += count as u64;
            known.sent
        })
    }

    pub(super) fn end(&self, end: Result<Sums, ContentError>) {
        self.known(|known| known.end = Some(end));
    }

    fn known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A stream that lets be known whose turn it is.
pub(super) struct Watched {
    pub(super) stream: ContentStream,
    pub(super) handle: SumsHandle,
}

impl Stream for Watched {
    type Item = Result<Bytes, ContentError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.stream.as_mut().poll_next(context);
        let turn = if polled.is_pending() { Turn::Source } else { Turn::Cloud };
        self.handle.known(|known| known.turn = turn);
        polled
    }
}
