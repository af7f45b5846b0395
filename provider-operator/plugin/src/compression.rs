//! How files at a source are packed, and how they are unpacked while they come: in Rust alone, in a thread of its own, within bounds.
//! Whether the packed bytes are the right ones, others check.

mod thread;
mod windows;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString};
use tokio::{
    sync::mpsc::{self, Permit, Receiver, Sender},
    task::{self, JoinHandle},
};

pub(crate) use self::windows::{Room, room};
use crate::{ContentError, ContentStream, ErrorClass};

/// How a file is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, Serialize, Deserialize)]
pub enum Compression {
    /// As its first bytes say. Never by its name.
    #[default]
    Auto,
    /// Not at all: what looks packed is sent as it is.
    None,
    /// RFC 1952.
    Gzip,
    /// The container of LZMA2.
    Xz,
    /// Burrows and Wheeler's.
    Bzip2,
    /// RFC 8878.
    Zstd,
}

/// What unpacking may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes that a file may ask to be remembered while it is unpacked.
    pub(crate) window: u32,
    /// So many times as many bytes may come out as went in.
    pub(crate) ratio: u64,
    /// Below so many bytes the ratio does not matter.
    pub(crate) ratio_from: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: 128 * 1024 * 1024,
            ratio: 1000,
            ratio_from: 1024 * 1024 * 1024,
        }
    }
}

/// So many pieces wait on each side of the thread.
const WAITING: usize = 2;

/// The bytes that are packed in `input`, which may be several files one after another. What comes after them is an error.
///
/// Nothing is unpacked ahead but what fits between, and when the stream is dropped, the thread ends with what it is at.
pub(crate) fn unpack(kind: Compression, input: ContentStream, room: impl Into<Room>) -> ContentStream {
    let Room { limits, held } = room.into();
    let (to_thread, from_source) = mpsc::channel(WAITING);
    let (to_reader, unpacked) = mpsc::channel(WAITING);
    let thread = task::spawn_blocking(move || {
        // The memory is the thread's, also when nobody reads any more.
        let _held = held;
        thread::work(kind, from_source, &to_reader, limits);
    });
    let unpacking = Unpacking {
        input,
        is_read: false,
        waiting: None,
        to_thread: Some(to_thread),
        unpacked,
        thread,
    };
    stream::unfold(Some(unpacking), |unpacking| async {
        let mut unpacking = unpacking?;
        let item = unpacking.next().await?;
        let is_over = item.is_err();
        Some((item, (!is_over).then_some(unpacking)))
    })
    .boxed()
}

struct Unpacking {
    input: ContentStream,
    /// Whether all of the input was read.
    is_read: bool,
    /// What was read and is not with the thread yet.
    waiting: Option<Bytes>,
    /// Gone when everything was given.
    to_thread: Option<Sender<Bytes>>,
    unpacked: Receiver<Result<Bytes, ContentError>>,
    thread: JoinHandle<()>,
}

/// What happened first.
enum Next {
    Unpacked(Option<Result<Bytes, ContentError>>),
    /// The thread has what waited, or reads no more; what it has to say about that is waiting.
    Given(bool),
    Read(Option<Result<Bytes, ContentError>>),
}

impl Unpacking {
    async fn next(&mut self) -> Option<Result<Bytes, ContentError>> {
        loop {
            match self.first().await {
                Next::Unpacked(Some(item)) => return Some(item),
                Next::Unpacked(None) => return self.ended().await,
                Next::Read(Some(Ok(bytes))) => self.waiting = Some(bytes),
                Next::Read(Some(Err(error))) => return Some(Err(error)),
                Next::Given(true) => {}
                Next::Given(false) => self.to_thread = None,
                Next::Read(None) => {
                    self.is_read = true;
                    self.to_thread = None;
                }
            }
        }
    }

    async fn first(&mut self) -> Next {
        let Self { waiting, to_thread, .. } = self;
        tokio::select! {
            biased;
            item = self.unpacked.recv() => Next::Unpacked(item),
            place = place(to_thread.as_ref()), if waiting.is_some() => {
                let given = place.zip(waiting.take()).map(|(place, bytes)| place.send(bytes));
                Next::Given(given.is_some())
            }
            item = self.input.next(), if waiting.is_none() && !self.is_read => Next::Read(item),
        }
    }

    /// The thread gives no more: because all is done, or because it was stopped by what it met.
    async fn ended(&mut self) -> Option<Result<Bytes, ContentError>> {
        let is_done = (&mut self.thread).await.is_ok() && self.is_read;
        let stopped = || {
            ContentError::new(
                ErrorClass::SourceNotAnImage,
                "the file stops what unpacks it; pack it anew",
            )
        };
        (!is_done).then(|| Err(stopped()))
    }
}

async fn place(to_thread: Option<&Sender<Bytes>>) -> Option<Permit<'_, Bytes>> {
    to_thread?.reserve().await.ok()
}

#[cfg(test)]
mod tests;
