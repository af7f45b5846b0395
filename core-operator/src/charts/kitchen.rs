//! What it takes to render a chart: the renderer, and storages that are read one at a time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use release::{Admitted, ReleaseError};
use rendering::{Lane, Renderer};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::metrics::Metrics;

/// How long an archive may take to be read while others wait for their turn. Archives of charts have some kilobytes.
const QUICK: Duration = Duration::from_millis(500);

/// How long where nobody waits.
const SLOW: Duration = Duration::from_secs(10);

/// What it takes to render a chart.
pub(super) struct Kitchen {
    pub(super) renderer: Arc<Renderer>,
    pub(super) metrics: Metrics,
    /// One reads from each storage at a time: one that hangs keeps one thread, and none from those who read elsewhere.
    storages: Mutex<HashMap<PathBuf, Weak<Semaphore>>>,
}

/// Why files of a release could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// They would not come in time.
    #[error("the storage {storage:?} gives no answer within {limit:?}")]
    Late {
        /// Where they are.
        storage: PathBuf,
        /// How long they had.
        limit: Duration,
    },
    /// They are not what they were.
    #[error(transparent)]
    Read(ReleaseError),
    /// The operator ends.
    #[error("the operator ends")]
    Stopped,
}

impl ReadError {
    /// Whether the files are not what they were when they were verified.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self, Self::Read(_))
    }
}

impl Kitchen {
    pub(super) fn new(renderer: Renderer, metrics: Metrics) -> Self {
        Self {
            renderer: Arc::new(renderer),
            metrics,
            storages: Mutex::default(),
        }
    }

    /// Reads something of a release. In the quick lane nobody waits for others who read from the same storage: one of them may hang.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        files: &Admitted,
        lane: Lane,
        read: impl FnOnce(&Admitted) -> Result<T, ReleaseError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let storage = files.release().storage().to_owned();
        let place = self.place(storage.clone());
        let limit = match lane {
            Lane::Quick => QUICK,
            Lane::Slow => SLOW,
        };
        let too_late = || ReadError::Late { storage, limit };
        let reading = async {
            let turn = match lane {
                Lane::Quick => place.try_acquire_owned().ok(),
                // Never closed.
                Lane::Slow => place.acquire_owned().await.ok(),
            };
            let turn = turn?;
            let files = files.clone();
            let read = spawn_blocking(move || {
                // Kept for as long as the storage takes.
                let _turn = turn;
                read(&files)
            });
            Some(read.await)
        };
        match timeout(limit, reading).await {
            Ok(Some(Ok(read))) => read.map_err(ReadError::Read),
            Ok(Some(Err(_))) => Err(ReadError::Stopped),
            Ok(None) | Err(_) => Err(too_late()),
        }
    }

    fn place(&self, storage: PathBuf) -> Arc<Semaphore> {
        let mut storages = self.storages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = storages.get(&storage).and_then(Weak::upgrade) {
            return place;
        }
        storages.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(Semaphore::new(1));
        storages.insert(storage, Arc::downgrade(&place));
        place
    }
}
