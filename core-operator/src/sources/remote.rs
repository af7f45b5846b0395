//! Follows one remote source: asks it from time to time, brings what releases need into the store, and notices when a tag was moved.
//!
//! Nobody waits in here: whoever opens a release that is not here is told that it is on its way, and again when it has come. What a source
//! gave stays usable however long it does not answer.

mod cache;
mod comparison;
mod memory;
mod showing;
mod signatures;
mod trouble;

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use jiff::Timestamp;
use planning::outage::Outage;
use planning::polling::next_poll;
use planning::stack::Listing;
use release::source::{ListedRelease, Listing as Listed, ReleaseSource};
use release::store::Origin;
use release::{Digest, ErrorClass, Release};
use sourcing::{Connect, Connection};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

pub(crate) use self::cache::{Cache, CacheOptions};
pub(super) use self::memory::Wanted;
use self::memory::{Memory, Obstacle};
use self::trouble::Trouble;
use super::opened::{Found, Opened, Signatures};
use super::{SourceChange, is_recent, is_without, known, lock};
use crate::tasks::{Task, Tasks};

/// How often a source is asked that no stack names: releases may still come from it.
const UNWISHED: Duration = Duration::from_mins(5);
/// Of how many releases signatures are looked for at once; the others wait. Each search takes several requests, and all of them are wanted at
/// once when a policy is switched on.
const SEARCHES: usize = 4;
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
    connected: tokio::sync::Mutex<Connected>,
    /// Something was not had from the source since its Secrets were read: they may be wrong, or others by now.
    is_in_doubt: AtomicBool,
    cache: Arc<Cache>,
    changes: mpsc::UnboundedSender<SourceChange>,
    tasks: Tasks,
    end: CancellationToken,
    listing: Mutex<Listing>,
    answered_at: Mutex<Option<Timestamp>>,
    memory: Mutex<Memory>,
    wishes: Mutex<HashMap<String, (Wish, Instant)>>,
    /// The last list, until the tags in it are compared.
    to_compare: Mutex<Option<Vec<ListedRelease>>>,
    /// There is one.
    is_listed: Notify,
    /// The searches for signatures that may be under way.
    searches: Semaphore,
    /// What is shown is added to what was kept.
    showing: tokio::sync::Mutex<()>,
    /// Somebody wants the source asked now.
    asked: Notify,
    /// The source has answered: what could not be had may be there by now.
    answered: Notify,
}

/// The source as it is asked.
#[derive(Default)]
struct Connected {
    source: Option<Arc<dyn ReleaseSource>>,
    /// What it was made of last, also when that is gone.
    fingerprint: Option<Digest>,
}

impl RemoteFollower {
    pub(super) fn new(
        connect: Box<dyn Connect>,
        cache: Arc<Cache>,
        changes: mpsc::UnboundedSender<SourceChange>,
        tasks: Tasks,
        end: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            connect,
            connected: tokio::sync::Mutex::default(),
            is_in_doubt: AtomicBool::new(false),
            cache,
            changes,
            tasks,
            end,
            listing: Mutex::new(Listing::NotAsked),
            answered_at: Mutex::default(),
            memory: Mutex::default(),
            wishes: Mutex::default(),
            to_compare: Mutex::default(),
            is_listed: Notify::new(),
            searches: Semaphore::new(SEARCHES),
            showing: tokio::sync::Mutex::default(),
            asked: Notify::new(),
            answered: Notify::new(),
        })
    }

    /// What the source listed when it was asked last.
    pub(super) fn listing(&self) -> Listing {
        lock(&self.listing).clone()
    }

    /// When it answered last.
    pub(super) fn answered_at(&self) -> Option<Timestamp> {
        *lock(&self.answered_at)
    }

    /// Whether it answered when it was asked last, without this release.
    pub(super) fn has_withdrawn(&self, tag: &ReleaseTag) -> bool {
        is_without(&lock(&self.listing), tag)
    }

    /// Takes what a stack wants. A request is answered by asking once, also for what did not come so far; a
    /// shorter interval by asking at once too.
    pub(super) fn wish(&self, stack: &str, wish: Wish) {
        let before = self.interval();
        let mut wishes = lock(&self.wishes);
        let is_new_request =
            wish.requested.is_some() && wishes.get(stack).map(|(before, _)| &before.requested) != Some(&wish.requested);
        let is_shorter = wish.interval < before;
        wishes.insert(stack.to_owned(), (wish, Instant::now()));
        drop(wishes);
        if is_new_request {
            lock(&self.memory).request_all();
        }
        if is_new_request || is_shorter {
            self.asked.notify_one();
        }
    }

    /// Has tried now what is in the way of a release.
    pub(super) fn request(&self, tag: &ReleaseTag) {
        lock(&self.memory).request(tag);
    }

    /// Forgets all other releases, ends their downloads, and forgets what other stacks wanted.
    pub(super) fn retain(&self, tags: &Wanted, wishes: &HashMap<String, Wish>) {
        lock(&self.memory).retain(tags);
        lock(&self.wishes).retain(|stack, (_, since)| wishes.contains_key(stack) || is_recent(*since));
    }

    /// What somebody who has pinned this, or nothing, is given in place of it.
    pub(super) fn awaited(&self, tag: &ReleaseTag, pinned: Option<Digest>) -> Option<Digest> {
        let memory = lock(&self.memory);
        let is_here = pinned.is_some_and(|pinned| memory.here(tag, pinned).is_some());
        memory.offered(tag).filter(|_| !is_here)
    }

    /// Has a release read again that somebody could not read.
    pub(super) fn doubt(&self, tag: &ReleaseTag, digest: Digest) {
        if lock(&self.memory).forget(tag, digest) {
            self.cache.doubt(digest);
            self.tell(SourceChange::of_tag(tag));
        }
    }

    /// One release, as far as it is here: what it was pinned to where the store has that, else what the source has under the tag.
    /// With its signatures, if they are wanted.
    pub(super) async fn open(
        self: &Arc<Self>,
        tag: &ReleaseTag,
        pinned: Option<Digest>,
        is_to_be_verified: bool,
    ) -> Opened<Found> {
        let offered = lock(&self.memory).want(tag);
        for digest in [pinned, offered].into_iter().flatten() {
            if let Some(release) = self.found(tag, digest).await {
                let signatures = if is_to_be_verified {
                    self.signatures(tag, digest).await
                } else {
                    Signatures::Unwanted
                };
                let files = Found { release, signatures };
                return Opened::Ready {
                    source: (offered == Some(digest)).then(|| self.connect.described()),
                    moved_to: offered
                        .filter(|offered| *offered != digest)
                        .map(|digest| digest.to_string()),
                    files,
                };
            }
        }
        match self.begun(tag, pinned) {
            None => {
                let progress = self.cache.progress(tag, &self.connect.described());
                Opened::Missing {
                    message: progress.unwrap_or_else(|| "the source is being asked for the files".to_owned()),
                    outage: None,
                }
            }
            Some(obstacle) => self.hindered(tag, obstacle),
        }
    }

    /// A release that did not come so far: how far the next download of it is, if it runs already, and what was in the way.
    fn hindered(&self, tag: &ReleaseTag, obstacle: Obstacle) -> Opened<Found> {
        let Obstacle {
            class,
            message,
            mut outage,
        } = obstacle;
        if class == ErrorClass::Terminal {
            return Opened::Broken { message };
        }
        let message = match self.cache.progress(tag, &self.connect.described()) {
            None => message,
            Some(progress) => {
                outage.next = None;
                format!("{progress}; before that: {message}")
            }
        };
        Opened::Missing {
            message,
            outage: Some(outage),
        }
    }

    /// What is in the store. Trouble with the disk is told by the download that comes next.
    async fn found(&self, tag: &ReleaseTag, digest: Digest) -> Option<Arc<Release>> {
        let known = lock(&self.memory).here(tag, digest);
        if known.is_some() {
            return known;
        }
        let files = self.cache.find(tag, digest).await?;
        lock(&self.memory).keep(tag, Arc::clone(&files));
        Some(files)
    }

    /// Begins to bring a release, unless that is being done; gives what is in its way.
    fn begun(self: &Arc<Self>, tag: &ReleaseTag, pinned: Option<Digest>) -> Option<Obstacle> {
        let mut memory = lock(&self.memory);
        if memory.is_coming(tag) {
            return memory.obstacle(tag);
        }
        let end = self.end.child_token();
        let requested = Arc::<Notify>::default();
        let (follower, wanted, heard) = (Arc::clone(self), tag.clone(), Arc::clone(&requested));
        self.tasks.start(Task::Download, end.clone(), move || {
            Arc::clone(&follower).bring(wanted.clone(), pinned, Arc::clone(&heard))
        });
        memory.begin(tag, requested, end.drop_guard());
        None
    }

    /// Brings a release, however often it takes.
    async fn bring(self: Arc<Self>, tag: ReleaseTag, pinned: Option<Digest>, requested: Arc<Notify>) {
        let (mut since, mut failures) = (None, 0_u32);
        loop {
            let span = tracing::info_span!("download", source = %self.connect.described(), release = %tag);
            let trouble = match self.bring_once(&tag, pinned).instrument(span).await {
                Ok(files) => {
                    lock(&self.memory).arrive(&tag, files);
                    self.tell(SourceChange::of_tag(&tag));
                    return;
                }
                Err(trouble) => trouble,
            };
            self.doubt_secrets();
            let spread = spread(&tag.to_string(), failures);
            failures = failures.saturating_add(1);
            let wait = next_poll(self.interval(), failures, trouble.retry_after, spread);
            let now = Timestamp::now();
            let outage = Outage {
                since: *since.get_or_insert(now),
                attempts: failures,
                next: now.checked_add(wait).ok(),
            };
            let obstacle = Obstacle {
                class: trouble.class,
                message: trouble.message.clone(),
                outage,
            };
            lock(&self.memory).meet(&tag, obstacle);
            self.tell(SourceChange::of_tag(&tag));
            self.pause(wait, &trouble, &requested).await;
        }
    }

    /// Waits until it is time to try again what failed, or somebody asks for that. The time that the source named is waited for all the same.
    async fn pause(&self, wait: Duration, trouble: &Trouble, requested: &Notify) {
        let told = Instant::now() + trouble.retry_after.unwrap_or_default();
        let is_requested = async {
            requested.notified().await;
            time::sleep_until(told).await;
        };
        // What the source did not have it may have by now; what went wrong with what it has takes its time.
        let has_answered = async {
            self.answered.notified().await;
            if trouble.class != ErrorClass::Waiting {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = time::sleep(wait) => {}
            () = is_requested => {}
            () = has_answered => {}
        }
    }

    async fn bring_once(&self, tag: &ReleaseTag, pinned: Option<Digest>) -> Result<Arc<Release>, Trouble> {
        // The disk may have been what was in the way.
        if let Some(pinned) = pinned
            && let Some(files) = self.cache.find(tag, pinned).await
        {
            return Ok(files);
        }
        let origin = self.origin().await?;
        let source = origin.source.as_ref();
        let resolved = source.resolve(tag).await;
        let resolved = resolved.map_err(|error| Trouble::of_source(&error, source))?;
        let store = self.cache.store().await?;
        let download = store.get(&resolved, &origin);
        tokio::pin!(download);
        loop {
            tokio::select! {
                files = &mut download => {
                    let files = files.map_err(|error| Trouble::of_download(error, source))?;
                    let mut memory = lock(&self.memory);
                    memory.identify(tag, resolved.identity(), files.digest);
                    memory.offer(tag, files.digest);
                    return Ok(files);
                }
                () = time::sleep(TOLD_EVERY) => self.tell(SourceChange::of_tag(tag)),
            }
        }
    }

    /// Asks for the list and compares the tags in it: beside each other, so that no list waits for a tag.
    pub(super) async fn follow(self: Arc<Self>) {
        tokio::join!(self.poll(), self.compare_listed());
    }

    /// Asks at once, and then as often as the stacks want, slower and slower while there is no answer.
    async fn poll(&self) {
        let mut outage: Option<Outage> = None;
        for turn in 0_u32.. {
            let span = tracing::info_span!("poll", source = %self.connect.described());
            let asked = self.ask().instrument(span).await;
            let before = outage.as_ref().map_or(0, |outage| outage.attempts);
            let (interval, failures) = match &asked {
                Ok(_) => (self.interval(), 0),
                Err(_) => (self.interval(), before + 1),
            };
            let told = asked.as_ref().err().and_then(|trouble| trouble.retry_after);
            let wait = next_poll(interval, failures, told, spread(&self.connect.described(), turn));
            match asked {
                Ok(listed) => {
                    outage = None;
                    *lock(&self.answered_at) = Some(Timestamp::now());
                    let releases = listed.releases.clone();
                    self.publish(known(listed));
                    self.answered.notify_waiters();
                    *lock(&self.to_compare) = Some(releases);
                    self.is_listed.notify_one();
                }
                Err(trouble) => {
                    self.doubt_secrets();
                    let now = Timestamp::now();
                    let current = Outage {
                        since: outage.map_or(now, |outage| outage.since),
                        attempts: failures,
                        next: now.checked_add(wait).ok(),
                    };
                    outage = Some(current.clone());
                    self.publish(trouble.listing(current));
                }
            }
            tokio::select! {
                () = time::sleep(wait) => {}
                () = self.asked.notified() => {}
            }
        }
    }

    async fn ask(&self) -> Result<Listed, Trouble> {
        if self.is_in_doubt.swap(false, Ordering::Relaxed) {
            self.renew().await?;
        }
        let source = self.origin().await?.source;
        let listed = source.list().await;
        listed.map_err(|error| Trouble::of_source(&error, source.as_ref()))
    }

    fn publish(&self, listing: Listing) {
        let mut current = lock(&self.listing);
        let differs = *current != listing;
        *current = listing;
        drop(current);
        let mut change = SourceChange::of_tags(BTreeSet::new());
        change.listings.extend(differs.then(|| self.connect.place().clone()));
        self.tell(change);
    }

    /// The source, connected to when it is needed for the first time.
    async fn origin(&self) -> Result<Origin, Trouble> {
        let mut connected = self.connected.lock().await;
        let source = match &connected.source {
            Some(source) => Arc::clone(source),
            None => self.connect_to(&mut connected, self.connect.connect().await?),
        };
        drop(connected);
        Ok(self.connect.origin(source))
    }

    /// Has the next poll read the Secrets again. Whatever failed: a list may be open to everybody and a release in it not, and who may not see
    /// something is told by some servers that it is not there.
    fn doubt_secrets(&self) {
        self.is_in_doubt.store(true, Ordering::Relaxed);
    }

    /// Looks at the Secrets as they are now.
    async fn renew(&self) -> Result<(), Trouble> {
        let renewed = self.connect.connect().await;
        let mut connected = self.connected.lock().await;
        match renewed {
            Ok(renewed) if connected.source.is_some() && connected.fingerprint == Some(renewed.fingerprint) => {}
            Ok(renewed) => drop(self.connect_to(&mut connected, renewed)),
            // What cannot be read now says nothing of what was read before.
            Err(error) if error.class() == ErrorClass::Transient && connected.source.is_some() => {}
            Err(error) => {
                connected.source = None;
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Takes a connection. Whoever corrects a Secret wants to see what becomes of it: that is a request for all releases.
    fn connect_to(&self, connected: &mut Connected, connection: Connection) -> Arc<dyn ReleaseSource> {
        let Connection { fingerprint, source } = connection;
        let before = connected.fingerprint.replace(fingerprint);
        connected.source = Some(Arc::clone(&source));
        if before.is_some_and(|before| before != fingerprint) {
            lock(&self.memory).request_all();
        }
        source
    }

    fn interval(&self) -> Duration {
        let wishes = lock(&self.wishes);
        wishes.values().map(|(wish, _)| wish.interval).min().unwrap_or(UNWISHED)
    }

    /// A closed channel means that the process is about to end.
    fn tell(&self, change: SourceChange) {
        let _ = self.changes.send(change);
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
