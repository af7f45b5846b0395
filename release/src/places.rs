//! How much of one sort of work is done at once: so many quick pieces, few of one origin, and beside them a few that take long.
//!
//! Whatever others do, a piece of work has its place after a bounded time: nobody keeps one of the quick ones for long.

use std::{
    collections::{BTreeSet, HashMap},
    future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};

use crate::Digest;

/// The places for one sort of work.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    per_origin: usize,
    of_origins: Mutex<HashMap<Digest, Weak<Semaphore>>>,
    slow: Arc<Slow>,
}

/// What takes long: each of it from another origin.
#[derive(Debug)]
struct Slow {
    most: usize,
    origins: Mutex<BTreeSet<Digest>>,
}

/// The place of one piece of work, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Place {
    origin: Digest,
    /// None where it was given back. The semaphores are never closed.
    quick: Mutex<Option<[Option<OwnedSemaphorePermit>; 2]>>,
    slow: Arc<Slow>,
}

impl Places {
    /// So many quick ones, of those so many for one origin, and so many slow ones; at least one of each of the quick.
    pub(crate) fn new(quick: usize, per_origin: usize, slow: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(quick.max(1))),
            per_origin: per_origin.max(1),
            of_origins: Mutex::default(),
            slow: Arc::new(Slow {
                most: slow,
                origins: Mutex::default(),
            }),
        }
    }

    /// A place, when one is free.
    pub(crate) async fn take(&self, origin: Digest) -> Place {
        // First among those of its own origin: who waits there takes no place from others.
        let of_origin = self.of(origin).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        Place {
            origin,
            quick: Mutex::new(Some([of_origin, of_all])),
            slow: Arc::clone(&self.slow),
        }
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
    /// Ends when the work has run for so long and may not go on as one of the slow ones.
    pub(crate) async fn outstays(&self, quick: Duration) {
        time::sleep(quick).await;
        if self.give_back() {
            future::pending::<()>().await;
        }
    }

    /// Takes one of the slow places instead; tells whether one was free.
    fn give_back(&self) -> bool {
        let mut slow = lock(&self.slow.origins);
        if slow.len() >= self.slow.most || !slow.insert(self.origin) {
            return false;
        }
        *lock(&self.quick) = None;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if lock(&self.quick).is_none() {
            lock(&self.slow.origins).remove(&self.origin);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
