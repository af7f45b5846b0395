//! Downloads while they run: each release once, so many at a time, each in bounded time, for as long as somebody waits for it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use crds::names::ReleaseTag;
use tokio::{
    io::AsyncReadExt,
    sync::{mpsc, watch},
    task::{self, AbortHandle},
    time::{self, Instant},
};

use super::{
    Origin, StoreError, StoreOptions,
    contents::Contents,
    incoming::{Piece, Sender, promised, receive},
    usage::{Download, Progress, count},
};
use crate::{
    Digest, Release,
    places::Places,
    source::{RemoteFile, Resolved},
};

/// Bytes that are read from a source before they are written, and how many times that may lie between the two.
const CHUNK: usize = 64 << 10;
const CHUNKS_BETWEEN: usize = 4;
/// What a download may take beside the time for its bytes: connections, redirects, a source that thinks.
const GRACE: Duration = Duration::from_mins(1);
/// Slowest download, in bytes a second: 100 MiB may take 28 minutes, nothing at all one.
const SLOWEST: u64 = 64 << 10;
/// A download that takes longer than this gives its place back and goes on as a slow one.
const QUICK: Duration = Duration::from_mins(1);
/// Downloads that take long, at once, and each from another origin. All of them together have half of the usual --cache-max-bytes at most.
const SLOW: usize = 4;
/// Longest time for taking in what is left of a release that was sent, and syncing it.
const LANDING: Duration = Duration::from_mins(2);
/// After this time a source that promised no digests may have thought better of a release that was refused.
const REFUSED_FOR: Duration = Duration::from_hours(1);
/// Refusals that are remembered; with more, some release is downloaded and refused once more.
const MAX_REFUSALS: usize = 10_000;

type Outcome = Result<Arc<Release>, StoreError>;

/// The downloads of a store.
#[derive(Debug)]
pub(super) struct Downloads {
    contents: Arc<Contents>,
    places: Places,
    flights: Mutex<HashMap<Digest, Weak<Flight>>>,
    refusals: Mutex<HashMap<Digest, Refusal>>,
    progress: Mutex<BTreeMap<u64, Arc<Progress>>>,
    next: AtomicU64,
}

/// A download that at least one caller waits for: with the last of them it ends.
#[derive(Debug)]
struct Flight {
    outcome: watch::Receiver<Option<Outcome>>,
    task: AbortHandle,
}

/// Why a release is not downloaded again.
#[derive(Debug)]
struct Refusal {
    error: StoreError,
    /// For ever where the source promised digests: what was refused is what it has.
    until: Option<Instant>,
}

/// What ended the sending of a release to the disk before its end.
enum Ended {
    /// The source did.
    Source(StoreError),
    /// The disk's side did; it says why.
    Disk,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Downloads {
    pub(super) fn new(contents: Arc<Contents>, options: &StoreOptions) -> Self {
        Self {
            contents,
            places: Places::new(options.downloads, options.downloads_per_origin, SLOW),
            flights: Mutex::default(),
            refusals: Mutex::default(),
            progress: Mutex::default(),
            next: AtomicU64::default(),
        }
    }

    /// Why these files of this origin were refused before, if they were.
    pub(super) fn refusal(&self, key: Digest) -> Option<StoreError> {
        let mut refusals = lock(&self.refusals);
        let refusal = refusals.get(&key)?;
        if refusal.until.is_some_and(|until| until <= Instant::now()) {
            refusals.remove(&key);
            return None;
        }
        Some(refusal.error.clone())
    }

    /// Downloads these files, together with everybody who asks for the same meanwhile. The origin is part of the key, so that nobody waits for
    /// the source of somebody else.
    pub(super) async fn download(self: &Arc<Self>, key: Digest, resolved: &Resolved, origin: &Origin) -> Outcome {
        let flight = self.flight(key, resolved, origin);
        let mut outcome = flight.outcome.clone();
        let landed = outcome.wait_for(Option::is_some).await;
        landed
            .ok()
            .and_then(|outcome| outcome.clone())
            .unwrap_or(Err(StoreError::Stopped))
    }

    /// Every download that runs or waits, the oldest first.
    pub(super) fn running(&self) -> Vec<Download> {
        lock(&self.progress).values().map(|progress| progress.now()).collect()
    }

    fn flight(self: &Arc<Self>, key: Digest, resolved: &Resolved, origin: &Origin) -> Arc<Flight> {
        let mut flights = lock(&self.flights);
        // One that has ended is an answer of the past.
        let running = |flight: &Arc<Flight>| flight.outcome.borrow().is_none() && !flight.task.is_finished();
        if let Some(flight) = flights.get(&key).and_then(Weak::upgrade).filter(running) {
            return flight;
        }
        let (sender, outcome) = watch::channel(None);
        let (downloads, resolved, origin) = (Arc::clone(self), resolved.clone(), origin.clone());
        let task = task::spawn(async move {
            let outcome = downloads.fly(key, &resolved, &origin).await;
            downloads.note(key, &resolved, &outcome);
            sender.send_replace(Some(outcome));
        });
        let task = task.abort_handle();
        let flight = Arc::new(Flight { outcome, task });
        flights.retain(|_, flight| flight.strong_count() > 0);
        flights.insert(key, Arc::downgrade(&flight));
        flight
    }

    fn note(&self, key: Digest, resolved: &Resolved, outcome: &Outcome) {
        let Some(error) = outcome.as_ref().err().filter(|error| error.is_final()) else {
            return;
        };
        let promised = resolved.digest().is_some();
        let mut refusals = lock(&self.refusals);
        if refusals.len() >= MAX_REFUSALS {
            refusals.clear();
        }
        refusals.insert(
            key,
            Refusal {
                error: error.clone(),
                until: (!promised).then(|| Instant::now() + REFUSED_FOR),
            },
        );
    }

    async fn fly(&self, key: Digest, resolved: &Resolved, origin: &Origin) -> Outcome {
        let shown = self.show(resolved, origin);
        let place = Arc::new(self.places.take(origin.id).await);
        shown.progress.running.store(true, Ordering::Relaxed);

        let (pieces, receiver) = mpsc::channel(CHUNKS_BETWEEN);
        let (wanted, files) = mpsc::channel(1);
        let sender = Sender {
            wanted,
            pieces: receiver,
        };
        let (contents, taken, kept) = (Arc::clone(&self.contents), resolved.clone(), Arc::clone(&place));
        let landing = task::spawn_blocking(move || {
            // A disk that hangs keeps its place, so that it never holds more threads than there are places.
            let _place = kept;
            let known = taken.digest().or_else(|| contents.identified(key));
            // Somebody may have brought it while this one waited.
            if let Some(release) = known
                .map(|digest| contents.find(taken.tag(), digest))
                .transpose()?
                .flatten()
            {
                return Ok(release);
            }
            let release = receive(&contents, &taken, sender)?;
            count(&contents.counters.downloaded);
            if taken.digest().is_none() {
                contents.identify(key, release.digest);
            }
            Ok(release)
        });
        let sent = tokio::select! {
            sent = send(resolved.tag(), origin, files, &pieces, &shown.progress) => sent,
            // Also while the source is silent.
            () = pieces.closed() => Err(Ended::Disk),
            () = is_too_slow(&shown.progress) => Err(Ended::Source(StoreError::TooSlow {
                tag: resolved.tag().clone().into(),
                rate: SLOWEST,
            })),
            () = place.outstays(QUICK) => Err(Ended::Source(StoreError::TooManySlow {
                tag: resolved.tag().clone().into(),
                after: QUICK,
            })),
        };
        drop(pieces);
        let landed = time::timeout(LANDING, landing).await;
        match sent {
            Err(Ended::Source(error)) => Err(error),
            Ok(()) | Err(Ended::Disk) => landed
                .map_err(|_| StoreError::TimedOut {
                    path: self.contents.disk.directory().to_owned(),
                    after: LANDING,
                })?
                .map_err(|_| StoreError::Stopped)?,
        }
    }

    fn show(&self, resolved: &Resolved, origin: &Origin) -> Shown<'_> {
        let progress = Arc::new(Progress {
            tag: resolved.tag().clone(),
            origin: origin.name.clone(),
            total: promised(resolved),
            running: AtomicBool::new(false),
            done: AtomicU64::new(0),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.progress).insert(number, Arc::clone(&progress));
        Shown {
            downloads: self,
            number,
            progress,
        }
    }
}

/// A download that people see for as long as this value lives.
struct Shown<'downloads> {
    downloads: &'downloads Downloads,
    number: u64,
    progress: Arc<Progress>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        lock(&self.downloads.progress).remove(&self.number);
        let bytes = self.progress.done.load(Ordering::Relaxed);
        let counters = &self.downloads.contents.counters;
        counters.downloaded_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Ends when a download has had more time than its bytes may take.
async fn is_too_slow(progress: &Progress) {
    let start = Instant::now();
    loop {
        let done = progress.done.load(Ordering::Relaxed);
        let allowed = start + GRACE + Duration::from_secs(done / SLOWEST);
        if Instant::now() >= allowed {
            return;
        }
        time::sleep_until(allowed).await;
    }
}

/// Brings one file after the other from the source to the disk, which says which and may end it at any time.
async fn send(
    tag: &ReleaseTag,
    origin: &Origin,
    mut wanted: mpsc::Receiver<RemoteFile>,
    pieces: &mpsc::Sender<Piece>,
    progress: &Progress,
) -> Result<(), Ended> {
    let send = async |piece| pieces.send(piece).await.map_err(|_| Ended::Disk);
    while let Some(file) = wanted.recv().await {
        let fetched = origin.source.fetch(&file).await.map_err(|source| {
            Ended::Source(StoreError::Fetch {
                tag: tag.clone().into(),
                file: file.name.clone(),
                source: Arc::new(source),
            })
        });
        let mut content = fetched?;
        let mut is_more = true;
        while is_more {
            let mut chunk = Vec::with_capacity(CHUNK);
            while is_more && chunk.len() < CHUNK {
                let count = content.read_buf(&mut chunk).await.map_err(|source| {
                    Ended::Source(StoreError::Interrupted {
                        tag: tag.clone().into(),
                        file: file.name.clone(),
                        source: Arc::new(source),
                    })
                })?;
                is_more = count > 0;
                progress.done.fetch_add(count as u64, Ordering::Relaxed);
            }
            send(Piece::Bytes(chunk)).await?;
        }
        send(Piece::End).await?;
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
