//! What a store says of itself, for metrics and status. Cheap to read at any time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crds::names::ReleaseTag;

use super::StoreError;

/// What a store holds and does.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Bytes of the releases that are there, with what there is to show for them.
    pub bytes: u64,
    /// Most bytes that releases and downloads may take together.
    pub limit: u64,
    /// Releases that are there.
    pub releases: usize,
    /// Downloads that run or wait for their turn, the oldest first.
    pub downloads: Vec<Download>,
    /// Releases downloaded since the start.
    pub downloaded: u64,
    /// Bytes of the files of downloads that have ended since the start, well or not.
    pub downloaded_bytes: u64,
    /// Releases removed to make room since the start.
    pub evictions: u64,
    /// Releases read again and held against their digest since the start.
    pub rehashes: u64,
    /// Releases found since the start that were not any more what was downloaded.
    pub corrupt: u64,
    /// Why nothing can be downloaded, as far as was seen when it was tried last.
    pub unwritable: Option<StoreError>,
}

/// One download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// The release.
    pub tag: ReleaseTag,
    /// The name of its [`Origin`](super::Origin).
    pub origin: String,
    /// Whether it still waits for others to end.
    pub queued: bool,
    /// Bytes that came.
    pub done: u64,
    /// Bytes of all files, if the source tells.
    pub total: Option<u64>,
}

/// The same, while it changes.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) tag: ReleaseTag,
    pub(super) origin: String,
    pub(super) total: Option<u64>,
    pub(super) running: AtomicBool,
    pub(super) done: AtomicU64,
}

impl Progress {
    pub(super) fn now(&self) -> Download {
        Download {
            tag: self.tag.clone(),
            origin: self.origin.clone(),
            queued: !self.running.load(Ordering::Relaxed),
            done: self.done.load(Ordering::Relaxed),
            total: self.total,
        }
    }
}

/// What only grows.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) downloaded: AtomicU64,
    pub(super) downloaded_bytes: AtomicU64,
    pub(super) evictions: AtomicU64,
    pub(super) rehashes: AtomicU64,
    pub(super) corrupt: AtomicU64,
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
