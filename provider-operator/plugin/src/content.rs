//! The bytes of an image on their way: read from a source that breaks, checked, unpacked, digested twice in one pass, and the last of them
//! held back until everything is known to be right and written down. Decides nothing about what comes after a failure.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::Stream;

use crate::{Attempt, Compression, ContentError, Format, ImageSource, Pinned, Probe, Report};

/// Bytes of an image as they are sent. After an error nothing more comes, and what came before is not an image.
pub type ContentStream = Pin<Box<dyn Stream<Item = Result<Bytes, ContentError>> + Send>>;

/// What has to hold for the bytes, and for whom they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentPlan {
    /// The record that they are for.
    pub attempt: Attempt,
    /// The digest that users demand of the bytes at the source, as they are there.
    pub pinned: Option<Pinned>,
    /// The digest that they had when somebody first looked.
    pub remembered: Option<Pinned>,
    /// How they are packed at the source. They are sent unpacked.
    pub compression: Compression,
    /// What they are promised to be, unpacked.
    pub format: Option<Format>,
}

/// What the bytes of one image turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Digest of the bytes at the source, in the algorithm of the pinned one, else of the remembered one, else sha256.
    pub source: Pinned,
    /// SHA-512 of what was sent: 128 lower-case hex digits.
    pub sha512: String,
    /// Bytes that were sent.
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

/// One image on its way. Made for one transfer, and read once.
pub struct Content {
    source: Arc<dyn ImageSource>,
    probe: Probe,
    plan: ContentPlan,
    report: Arc<dyn Report>,
}

impl Content {
    /// The file at this source, about which the source said `probe`.
    pub fn new(source: Arc<dyn ImageSource>, probe: Probe, plan: ContentPlan, report: Arc<dyn Report>) -> Self {
        Self {
            source,
            probe,
            plan,
            report,
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Content")
            .field("source", &self.source)
            .field("probe", &self.probe)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

/// A content that was opened: its first bytes are here, and what can be told by them is known.
pub struct Body {
    /// Bytes of all that is sent. `None` where it is unpacked on the way, because nobody knows before.
    pub length: Option<u64>,
    /// By which the same bytes are known another time, for who keeps a part and goes on with it ([`Content::origin`]). `None` where a part is
    /// of no use: what is sent is not what lies at the source, or nothing tells whether it is still the same there.
    pub origin: Option<String>,
    /// The bytes. Reading them is what makes them come: nothing is read ahead but a little, and dropping ends all of it.
    pub stream: ContentStream,
    /// What is known meanwhile.
    pub sums: SumsHandle,
}

/// What is known of a content while, and after, its stream is read by somebody else.
#[derive(Clone, Debug)]
pub struct SumsHandle(Arc<Mutex<Known>>);

#[derive(Debug)]
struct Known {
    turn: Turn,
    sent: u64,
    end: Option<Result<Sums, ContentError>>,
}

impl SumsHandle {
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

    /// Bytes of the image that were taken, with those that were there before.
    pub fn sent(&self) -> u64 {
        self.known(|known| known.sent)
    }

    fn known<T>(&self, read: impl FnOnce(&mut Known) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
