//! Follows one remote source: asks it from time to time, brings what releases need into the store, and notices when a tag was moved.
//!
//! Nobody waits in here: whoever opens a release that is not here is told that it is on its way, and again when it has come. What a source
//! gave stays usable however long it does not answer.

mod cache;
mod memory;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use jiff::Timestamp;
use operator_kit::failure::chain;
use planning::polling::next_poll;
use planning::stack::{Listing, Outage};
use release::source::Resolved;
use release::store::{Origin, StoreError};
use release::{Digest, ErrorClass, Release};
use tokio::sync::{Notify, mpsc};
use tokio::time;
use tokio_util::sync::CancellationToken;

pub(crate) use self::cache::{Cache, CacheOptions};
use self::memory::{Memory, Progress};
use super::connect::{Connect, ConnectError, Connection};
use super::opened::Opened;
use super::{SourceChange, known, lock};

/// How often a source is asked that no stack names: releases may still come from it.
const UNWISHED: Duration = Duration::from_mins(5);
/// Releases that are held against what the source has now at every poll, each in its turn: who has no token may ask GitHub 60 times an hour,
/// and 12 polls of one list and these are as many.
const COMPARED: usize = 4;
/// How often a download that runs is told.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// What one stack wants of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// How often it is asked.
    pub(crate) interval: Duration,
    /// The request for a reconcile that nobody has answered yet.
    pub(crate) requested: Option<String>,
}

/// Follows one source.
pub(crate) struct RemoteFollower {
    connect: Box<dyn Connect>,
    connection: tokio::sync::Mutex<Option<Connection>>,
    cache: Arc<Cache>,
    changes: mpsc::UnboundedSender<SourceChange>,
    end: CancellationToken,
    listing: Mutex<Listing>,
    memory: Mutex<Memory>,
    wishes: Mutex<HashMap<String, Wish>>,
    is_requested: AtomicBool,
    /// Somebody wants the source asked now.
    asked: Notify,
    /// The source has answered: what could not be had may be there by now.
    answered: Notify,
}

impl RemoteFollower {
    pub(super) fn new(
        connect: Box<dyn Connect>,
        cache: Arc<Cache>,
        changes: mpsc::UnboundedSender<SourceChange>,
        end: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            connect,
            connection: tokio::sync::Mutex::default(),
            cache,
            changes,
            end,
            listing: Mutex::new(Listing::NotAsked),
            memory: Mutex::default(),
            wishes: Mutex::default(),
            is_requested: AtomicBool::new(false),
            asked: Notify::new(),
            answered: Notify::new(),
        })
    }

    /// What the source listed when it was asked last.
    pub(super) fn listing(&self) -> Listing {
        lock(&self.listing).clone()
    }

    /// Takes what a stack wants. A request is answered by asking once, and a shorter interval by asking at once too.
    pub(super) fn wish(&self, stack: &str, wish: Wish) {
        let mut wishes = lock(&self.wishes);
        let before = wishes.get(stack);
        let is_new_request =
            wish.requested.is_some() && before.map(|before| &before.requested) != Some(&wish.requested);
        let is_shorter = before.is_some_and(|before| wish.interval < before.interval);
        wishes.insert(stack.to_owned(), wish);
        if is_new_request {
            self.is_requested.store(true, Ordering::Relaxed);
        }
        if is_new_request || is_shorter {
            self.asked.notify_one();
        }
    }

    /// Forgets all other releases, ends their downloads, and forgets what other stacks wanted.
    pub(super) fn retain(&self, tags: &HashSet<ReleaseTag>, wishes: &HashMap<String, Wish>) {
        lock(&self.memory).retain(tags);
        lock(&self.wishes).retain(|stack, _| wishes.contains_key(stack));
    }

    /// Has a release read again that somebody could not read.
    pub(super) fn doubt(&self, tag: &ReleaseTag, digest: Digest) {
        if lock(&self.memory).forget(tag, digest) {
            self.cache.doubt(digest);
            self.tell(SourceChange::of_tag(tag));
        }
    }

    /// One release, as far as it is here: what it was pinned to where the store has that, else what the source has under the tag.
    pub(super) async fn open(self: &Arc<Self>, tag: &ReleaseTag, pinned: Option<Digest>) -> Opened<Arc<Release>> {
        if let Some(opened) = self.remembered(tag) {
            return opened;
        }
        if let Some(pinned) = pinned
            && let Some(files) = self.cache.find(tag, pinned).await
        {
            lock(&self.memory).keep(tag, files);
        } else {
            self.begin(tag);
        }
        self.remembered(tag).unwrap_or_else(|| Opened::Missing {
            message: "the download begins".to_owned(),
        })
    }

    fn remembered(&self, tag: &ReleaseTag) -> Option<Opened<Arc<Release>>> {
        let described = self.connect.described();
        match lock(&self.memory).progress(tag)? {
            Progress::Here { files, moved_to } => Some(Opened::Ready {
                source: described,
                moved_to: moved_to.map(|digest| digest.to_string()),
                files: Arc::clone(files),
            }),
            Progress::Coming { trouble: None } => Some(Opened::Missing {
                message: self.cache.progress(tag, &described),
            }),
            Progress::Coming {
                trouble: Some((class, message)),
            } => Some(match class {
                ErrorClass::Terminal => Opened::Broken {
                    message: message.clone(),
                },
                ErrorClass::Transient | ErrorClass::Waiting => Opened::Missing {
                    message: message.clone(),
                },
            }),
        }
    }

    /// Begins to bring a release, unless that is being done.
    fn begin(self: &Arc<Self>, tag: &ReleaseTag) {
        let mut memory = lock(&self.memory);
        if memory.progress(tag).is_none() {
            let end = self.end.child_token();
            tokio::spawn(
                end.clone()
                    .run_until_cancelled_owned(Arc::clone(self).bring(tag.clone())),
            );
            memory.begin(tag, end.drop_guard());
        }
    }

    /// Brings a release, however often it takes.
    async fn bring(self: Arc<Self>, tag: ReleaseTag) {
        for failures in 1_u32.. {
            let trouble = match self.bring_once(&tag).await {
                Ok(files) => {
                    lock(&self.memory).keep(&tag, files);
                    self.tell(SourceChange::of_tag(&tag));
                    return;
                }
                Err(trouble) => trouble,
            };
            let wait = next_poll(
                self.interval(),
                failures,
                trouble.retry_after,
                spread(&tag.to_string(), failures),
            );
            lock(&self.memory).trouble(&tag, trouble.class, trouble.message);
            self.tell(SourceChange::of_tag(&tag));
            tokio::select! {
                () = time::sleep(wait) => {}
                () = self.answered.notified() => {}
            }
        }
    }

    async fn bring_once(&self, tag: &ReleaseTag) -> Result<Arc<Release>, Trouble> {
        let origin = self.origin().await?;
        let resolved = origin.source.resolve(tag).await?;
        let store = self.cache.store().await?;
        let download = store.get(&resolved, &origin);
        tokio::pin!(download);
        loop {
            tokio::select! {
                files = &mut download => {
                    let files = files?;
                    lock(&self.memory).identify(tag, resolved.identity(), files.digest);
                    return Ok(files);
                }
                () = time::sleep(TOLD_EVERY) => {
                    lock(&self.memory).comes(tag);
                    self.tell(SourceChange::of_tag(tag));
                }
            }
        }
    }

    /// Asks at once, and then as often as the stacks want, slower and slower while there is no answer.
    pub(super) async fn follow(self: Arc<Self>) {
        let mut outage: Option<Outage> = None;
        for turn in 0_u32.. {
            let asked = self.ask().await;
            let failures = match &asked {
                Ok(_) => 0,
                Err(_) => outage.as_ref().map_or(0, |outage| outage.attempts) + 1,
            };
            let told = asked.as_ref().err().and_then(|trouble| trouble.retry_after);
            let wait = next_poll(self.interval(), failures, told, spread(&self.connect.described(), turn));
            let listing = match asked {
                Ok(listing) => {
                    outage = None;
                    listing
                }
                Err(trouble) => {
                    let now = Timestamp::now();
                    let current = Outage {
                        since: outage.map_or(now, |outage| outage.since),
                        attempts: failures,
                        next: now.checked_add(wait).unwrap_or(now),
                    };
                    outage = Some(current.clone());
                    trouble.listing(current)
                }
            };
            self.publish(listing).await;
            tokio::select! {
                () = time::sleep(wait) => {}
                () = self.asked.notified() => {}
            }
        }
    }

    async fn ask(&self) -> Result<Listing, Trouble> {
        let listed = match self.origin().await {
            Ok(origin) => origin.source.list().await.map_err(Trouble::from),
            Err(trouble) => Err(trouble),
        };
        if listed.is_err() {
            // Its Secrets may be others by now.
            self.renew().await;
        }
        listed.map(known)
    }

    async fn publish(&self, listing: Listing) {
        let answers = matches!(listing, Listing::Known { .. });
        let differs = std::mem::replace(&mut *lock(&self.listing), listing.clone()) != listing;
        let tags = if answers { self.moved().await } else { BTreeSet::new() };
        self.tell(SourceChange {
            tags,
            unready: false,
            listing: differs,
        });
        if answers {
            self.answered.notify_waiters();
        }
    }

    /// Which of the releases that are here now have something else under their tags, or no more.
    async fn moved(&self) -> BTreeSet<ReleaseTag> {
        let Ok(origin) = self.origin().await else {
            return BTreeSet::new();
        };
        let mut changed = BTreeSet::new();
        // Whoever asks for a look means all of it.
        let is_requested = self.is_requested.swap(false, Ordering::Relaxed);
        let here = lock(&self.memory).take_for_comparison(if is_requested { usize::MAX } else { COMPARED });
        for (tag, digest) in here {
            let Ok(resolved) = origin.source.resolve(&tag).await else {
                continue;
            };
            let Some(offered) = self.digest_of(&tag, &resolved, &origin).await else {
                continue;
            };
            if lock(&self.memory).offer(&tag, digest, offered) {
                changed.insert(tag);
            }
        }
        changed
    }

    /// The digest of what a tag was resolved to. Where the source does not tell, another identity has to be downloaded to know.
    async fn digest_of(&self, tag: &ReleaseTag, resolved: &Resolved, origin: &Origin) -> Option<Digest> {
        if let Some(digest) = resolved.digest() {
            return Some(digest);
        }
        let identity = resolved.identity();
        if let Some(digest) = lock(&self.memory).identified(tag, identity) {
            return Some(digest);
        }
        let store = self.cache.store().await.ok()?;
        let files = store.get(resolved, origin).await.ok()?;
        lock(&self.memory).identify(tag, identity, files.digest);
        Some(files.digest)
    }

    /// The source, connected to when it is needed for the first time.
    async fn origin(&self) -> Result<Origin, Trouble> {
        let mut connection = self.connection.lock().await;
        if connection.is_none() {
            *connection = Some(self.connect.connect().await?);
        }
        let source = connection.as_ref().map(|connection| Arc::clone(&connection.source));
        drop(connection);
        source.map_or(Err(Trouble::stopped()), |source| {
            Ok(Origin {
                name: self.connect.described(),
                source,
            })
        })
    }

    /// Connects anew if what it takes is not what it was.
    async fn renew(&self) {
        let mut connection = self.connection.lock().await;
        match self.connect.connect().await {
            Ok(renewed)
                if connection
                    .as_ref()
                    .is_some_and(|before| before.fingerprint == renewed.fingerprint) => {}
            Ok(renewed) => {
                *connection = Some(renewed);
                self.asked.notify_one();
            }
            Err(_) => *connection = None,
        }
    }

    fn interval(&self) -> Duration {
        let wishes = lock(&self.wishes);
        wishes.values().map(|wish| wish.interval).min().unwrap_or(UNWISHED)
    }

    /// A closed channel means that the process is about to end.
    fn tell(&self, change: SourceChange) {
        let _ = self.changes.send(change);
    }
}

/// Why something was not had from a source.
struct Trouble {
    class: ErrorClass,
    message: String,
    retry_after: Option<Duration>,
    /// Whether nothing was asked, because the source cannot be used as it is configured.
    is_configuration: bool,
}

impl Trouble {
    fn stopped() -> Self {
        Self {
            class: ErrorClass::Transient,
            message: "the operator ends".to_owned(),
            retry_after: None,
            is_configuration: false,
        }
    }

    fn listing(self, outage: Outage) -> Listing {
        let Self { message, .. } = self;
        if self.is_configuration {
            Listing::Unusable { message }
        } else {
            Listing::Unavailable {
                message,
                outage: Some(outage),
            }
        }
    }
}

impl From<release::source::SourceError> for Trouble {
    fn from(error: release::source::SourceError) -> Self {
        Self {
            class: error.class(),
            message: chain(&error),
            retry_after: error.retry_after(),
            is_configuration: false,
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self {
            class: error.class(),
            message: chain(&error),
            retry_after: None,
            is_configuration: false,
        }
    }
}

impl From<ConnectError> for Trouble {
    fn from(error: ConnectError) -> Self {
        Self {
            class: error.class(),
            message: chain(&error),
            retry_after: None,
            is_configuration: error.class() != ErrorClass::Transient,
        }
    }
}

/// A number that differs from source to source and from turn to turn, and is the same in every run.
fn spread(name: &str, turn: u32) -> u64 {
    let digest = Digest::of(format!("{name} {turn}").as_bytes());
    let bytes = digest.as_ref().iter().take(8);
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
