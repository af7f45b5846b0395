//! How many downloads run at once: so many quick ones, few from one origin, and beside them a few that take long.
//!
//! Whatever others do, a download has its place after a bounded time: nobody keeps one of the quick ones for long.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{StoreError, StoreOptions, contents::lock};
use crate::Digest;

/// Downloads that take long, at once, and each from another origin. All of them together have half of the usual --cache-max-bytes at most.
const SLOW: usize = 4;

/// The places of a store.
#[derive(Debug)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    per_origin: usize,
    of_origins: Mutex<HashMap<Digest, Weak<Semaphore>>>,
    slow: Arc<Mutex<BTreeSet<Digest>>>,
}

/// The place of one download, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Place {
    origin: Digest,
    quick: Mutex<Option<[OwnedSemaphorePermit; 2]>>,
    slow: Arc<Mutex<BTreeSet<Digest>>>,
}

impl Places {
    pub(super) fn new(options: &StoreOptions) -> Self {
        Self {
            all: Arc::new(Semaphore::new(options.downloads.max(1))),
            per_origin: options.downloads_per_origin.max(1),
            of_origins: Mutex::default(),
            slow: Arc::default(),
        }
    }

    /// A place, when one is free.
    pub(super) async fn take(&self, origin: Digest) -> Result<Place, StoreError> {
        let acquire = async |places: Arc<Semaphore>| places.acquire_owned().await.map_err(|_| StoreError::Stopped);
        // First among those of its own origin: who waits there takes no place from others.
        let of_origin = acquire(self.of(origin)).await?;
        let of_all = acquire(Arc::clone(&self.all)).await?;
        Ok(Place {
            origin,
            quick: Mutex::new(Some([of_origin, of_all])),
            slow: Arc::clone(&self.slow),
        })
    }

    fn of(&self, origin: Digest) -> Arc<Semaphore> {
        let mut places = lock(&self.of_origins);
        if let Some(places) = places.get(&origin).and_then(Weak::upgrade) {
            return places;
        }
        places.retain(|_, places| places.strong_count() > 0);
        let created = Arc::new(Semaphore::new(self.per_origin));
        places.insert(origin, Arc::downgrade(&created));
        created
    }
}

impl Place {
    /// Takes one of the slow places instead; tells whether one was free.
    pub(super) fn give_back(&self) -> bool {
        let mut slow = lock(&self.slow);
        if slow.len() == SLOW || !slow.insert(self.origin) {
            return false;
        }
        *lock(&self.quick) = None;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if lock(&self.quick).is_none() {
            lock(&self.slow).remove(&self.origin);
        }
    }
}
