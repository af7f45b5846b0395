//! A process that follows the source, with a store on a real disk, and what it sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use planning::stack::Listing;
use release::{Digest, Evidence};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::{Cache, CacheOptions, RemoteFollower, UNWISHED, Wish};
use super::faraway::{Faraway, Way};
use crate::sources::SourceChange;
use crate::sources::opened::{Found, Opened, Signatures};
use crate::sources::tests::tag;
use crate::tasks::{Task, Tasks};

/// A process that follows it.
pub(super) struct Process {
    pub(super) follower: Arc<RemoteFollower>,
    pub(super) changes: mpsc::UnboundedReceiver<SourceChange>,
    pub(super) tasks: Tasks,
    pub(super) end: CancellationToken,
    pub(super) is_to_be_verified: bool,
}

impl Process {
    pub(super) fn start(faraway: &Arc<Faraway>, cache: &Path) -> Self {
        Self::bounded(faraway, cache, 1 << 30)
    }

    /// One with room for so many bytes.
    pub(super) fn bounded(faraway: &Arc<Faraway>, cache: &Path, max_bytes: u64) -> Self {
        let cache = Arc::new(Cache::new(CacheOptions {
            directory: cache.to_owned(),
            max_bytes,
        }));
        let (sender, changes) = mpsc::unbounded_channel();
        let end = CancellationToken::new();
        let tasks = Tasks::default();
        let way = Box::new(Way(Arc::clone(faraway)));
        let follower = RemoteFollower::new(way, cache, sender, tasks.clone(), end.clone());
        let begin = Arc::clone(&follower);
        tasks.start(Task::Source, end.clone(), move || Arc::clone(&begin).follow());
        Self {
            follower,
            changes,
            tasks,
            end,
            is_to_be_verified: false,
        }
    }

    /// One whose releases are to be verified.
    pub(super) fn verifying(faraway: &Arc<Faraway>, cache: &Path) -> Self {
        let mut process = Self::start(faraway, cache);
        process.is_to_be_verified = true;
        process
    }

    /// Opens the release at every change until it is here with its signatures, or without any.
    pub(super) async fn until_signatures(&mut self, pinned: Option<Digest>, is_signed: bool) -> Digest {
        let opened = self
            .until(pinned, |opened| match opened {
                Opened::Ready { files, .. } => match &files.signatures {
                    Signatures::Shown(evidence) => evidence.is_empty() != is_signed,
                    Signatures::Unwanted | Signatures::Awaited { .. } => false,
                },
                _ => false,
            })
            .await;
        digest(&opened).unwrap()
    }

    /// Opens the release at every change until it is as it should be.
    pub(super) async fn until(
        &mut self,
        pinned: Option<Digest>,
        is_right: impl Fn(&Opened<Found>) -> bool,
    ) -> Opened<Found> {
        loop {
            let opened = self.follower.open(&tag(), pinned, self.is_to_be_verified).await;
            if is_right(&opened) {
                return opened;
            }
            self.changes.recv().await.unwrap();
        }
    }

    pub(super) async fn until_here(&mut self, pinned: Option<Digest>) -> Digest {
        let opened = self.until(pinned, |opened| digest(opened).is_some()).await;
        digest(&opened).unwrap()
    }

    /// Waits for so many polls.
    pub(super) async fn polls(&mut self, faraway: &Faraway, count: u64) {
        let enough = faraway.lists.load(Ordering::Relaxed) + count;
        while faraway.lists.load(Ordering::Relaxed) < enough {
            self.changes.recv().await.unwrap();
        }
    }

    pub(super) async fn until_listing(&mut self, is_right: impl Fn(&Listing) -> bool) -> Listing {
        loop {
            self.changes.recv().await.unwrap();
            let listing = self.follower.listing();
            if is_right(&listing) {
                return listing;
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

pub(super) fn digest(opened: &Opened<Found>) -> Option<Digest> {
    match opened {
        Opened::Ready { files, .. } => Some(files.release.digest),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
    }
}

pub(super) fn moved_to(opened: &Opened<Found>) -> Option<&str> {
    match opened {
        Opened::Ready { moved_to, .. } => moved_to.as_deref(),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
    }
}

pub(super) fn wish(interval: Duration, requested: Option<&str>) -> Wish {
    Wish {
        interval,
        requested: requested.map(str::to_owned),
    }
}

/// A process whose download of the release has failed so often that it waits for a quarter of an hour.
pub(super) async fn waiting(faraway: &Arc<Faraway>, cache: &TempDir) -> Process {
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::start(faraway, cache.path());
    let has_long_wait =
        |opened: &Opened<Found>| matches!(opened, Opened::Missing { outage: Some(outage), .. } if outage.attempts > 8);
    process.until(None, has_long_wait).await;
    process
}

/// To know what is under a tag by now it has to be downloaded. The clock runs ahead of the disk by less than that.
pub(super) const DOWNLOADED: Duration = UNWISHED.saturating_mul(20_000);

/// Not yet half of the longest wait after a failure. The clock runs ahead of the disk by less than that.
pub(super) const SOON: Duration = UNWISHED.saturating_mul(2);

/// The folder in which the store keeps signatures.
pub(super) fn evidence_folder(cache: &TempDir) -> PathBuf {
    cache.path().join("evidence")
}

pub(super) fn evidence(opened: &Opened<Found>) -> Option<Arc<Evidence>> {
    match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Shown(evidence) => Some(Arc::clone(evidence)),
            Signatures::Unwanted | Signatures::Awaited { .. } => None,
        },
        _ => None,
    }
}
