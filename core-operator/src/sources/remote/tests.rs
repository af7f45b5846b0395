//! The follower of a remote source, with a store on a real disk. What plays the remote source has real files and can fail.

mod lost;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::SignedDuration;
use release::source::{Content, DirectorySource, RELEASES_DIRECTORY, RemoteFile, Resolved, SourceError, SourceFuture};
use release::{Evidence, SUMS, SUMS_SIGNATURE};
use sourcing::{ConnectError, Place};
use tempfile::TempDir;
use tokio::sync::RwLock;

use super::memory::{Questions, Wants};
use super::*;
use crate::sources::tests::{pack_as, root, tag};

/// A directory that is asked as if it were far away.
struct Faraway {
    directory: DirectorySource,
    is_down: AtomicBool,
    lists: AtomicU64,
    resolves: AtomicU64,
    /// When it was asked for a release last.
    resolved_at: Mutex<Option<Instant>>,
    /// For how long it allows no more requests.
    limit: Mutex<Option<Duration>>,
    /// How often it was asked for signatures.
    looks: AtomicU64,
    /// What it shows in place of what lies beside the release.
    shown: Mutex<Option<Evidence>>,
    /// One permit for each time.
    begun: Semaphore,
    /// What holds up those who ask for signatures, while it is closed.
    gate: RwLock<()>,
    /// What its Secret holds.
    secret: AtomicU64,
    /// What it wants to be told before it gives more than its list.
    password: AtomicU64,
    /// The release that nobody may have.
    denied: Mutex<Option<ReleaseTag>>,
    /// How many of the next questions for a release get no answer.
    silence: AtomicU64,
    /// Whether its list says which files its releases have.
    tells: AtomicBool,
    /// Whether it refuses everything, and repeats what it was told in confidence.
    repeats: AtomicBool,
    /// How many of the next lists and of the next questions for a release end in a panic.
    panics: AtomicU64,
    /// Whether it gives no file of a release, though it says which there are.
    gives_nothing: AtomicBool,
}

impl Faraway {
    fn new(root: &Path) -> Arc<Self> {
        Arc::new(Self {
            directory: DirectorySource::new(root),
            is_down: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            resolves: AtomicU64::new(0),
            resolved_at: Mutex::default(),
            limit: Mutex::default(),
            looks: AtomicU64::new(0),
            shown: Mutex::default(),
            begun: Semaphore::new(0),
            gate: RwLock::default(),
            secret: AtomicU64::new(0),
            password: AtomicU64::new(0),
            denied: Mutex::default(),
            silence: AtomicU64::new(0),
            tells: AtomicBool::new(false),
            repeats: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            gives_nothing: AtomicBool::new(false),
        })
    }

    fn answer(&self) -> Result<(), SourceError> {
        let less = |count: u64| count.checked_sub(1);
        let panics = self.panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        assert!(panics.is_err(), "planned for this test");
        if self.is_down.load(Ordering::Relaxed) {
            return Err(SourceError::Stopped);
        }
        if let Some(wait) = *lock(&self.limit) {
            return Err(SourceError::RateLimited {
                place: "faraway".to_owned(),
                wait,
            });
        }
        if self.repeats.load(Ordering::Relaxed) {
            return Err(denied());
        }
        Ok(())
    }

    /// What becomes of a question for a release.
    fn answer_for(&self, tag: &ReleaseTag) -> Result<(), SourceError> {
        self.answer()?;
        let less = |count: u64| count.checked_sub(1);
        if self
            .silence
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
        {
            return Err(SourceError::Stopped);
        }
        if lock(&self.denied).as_ref() == Some(tag) {
            return Err(denied());
        }
        Ok(())
    }

    async fn resolved(&self, tag: &ReleaseTag) -> Result<Resolved, SourceError> {
        let resolved = self.directory.resolve(tag).await?;
        // As of a source that tells no digests: only another place shows that these are other bytes.
        let files = resolved.files().iter().map(|file| RemoteFile {
            location: format!(
                "{}#{}",
                file.location,
                file.sha256.map(|digest| digest.hex()).unwrap_or_default()
            ),
            sha256: None,
            ..file.clone()
        });
        Ok(Resolved::new(tag.clone(), files).unwrap())
    }

    async fn listed(&self) -> Result<Listed, SourceError> {
        let mut listed = self.directory.list().await?;
        for release in &mut listed.releases {
            if self.tells.load(Ordering::Relaxed) {
                release.identity = Some(self.resolved(&release.tag).await?.identity());
            }
        }
        Ok(listed)
    }
}

fn denied() -> SourceError {
    SourceError::Denied {
        place: "faraway".to_owned(),
        message: "no access for the canary".to_owned(),
    }
}

impl ReleaseSource for Faraway {
    fn list(&self) -> SourceFuture<'_, Listed> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            self.answer()?;
            self.listed().await
        })
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        self.resolves.fetch_add(1, Ordering::Relaxed);
        *lock(&self.resolved_at) = Some(Instant::now());
        Box::pin(async {
            self.answer_for(tag)?;
            self.resolved(tag).await
        })
    }

    fn without_secrets(&self, words: &str) -> String {
        words.replace("canary", "(not shown)")
    }

    fn evidence<'a>(&'a self, resolved: &'a Resolved) -> SourceFuture<'a, Evidence> {
        Box::pin(async {
            self.answer()?;
            self.looks.fetch_add(1, Ordering::Relaxed);
            self.begun.add_permits(1);
            let _passed = self.gate.read().await;
            let shown = lock(&self.shown).clone();
            match shown {
                Some(shown) => Ok(shown),
                None => self.directory.evidence_of(resolved.tag()).await,
            }
        })
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        Box::pin(async {
            self.answer()?;
            if self.gives_nothing.load(Ordering::Relaxed) {
                return Err(SourceError::Stopped);
            }
            let location = file.location.split('#').next().unwrap().to_owned();
            let here = RemoteFile {
                location,
                ..file.clone()
            };
            self.directory.fetch(&here).await
        })
    }
}

/// It, as it is asked by somebody with a password.
struct Acquainted {
    faraway: Arc<Faraway>,
    password: u64,
}

impl Acquainted {
    fn is_let_in(&self) -> Result<(), SourceError> {
        let wanted = self.faraway.password.load(Ordering::Relaxed);
        (self.password == wanted).then_some(()).ok_or_else(denied)
    }
}

impl ReleaseSource for Acquainted {
    fn list(&self) -> SourceFuture<'_, Listed> {
        self.faraway.list()
    }

    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        Box::pin(async {
            let resolved = self.faraway.resolve(tag).await?;
            self.is_let_in().map(|()| resolved)
        })
    }

    fn without_secrets(&self, words: &str) -> String {
        self.faraway.without_secrets(words)
    }

    fn evidence<'a>(&'a self, resolved: &'a Resolved) -> SourceFuture<'a, Evidence> {
        self.faraway.evidence(resolved)
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        self.faraway.fetch(file)
    }
}

/// The way to it.
struct Way(Arc<Faraway>);

impl Connect for Way {
    fn id(&self) -> Digest {
        Digest::of(b"faraway")
    }

    fn place(&self) -> &Place {
        static SOMEWHERE: Place = Place::Usual;
        &SOMEWHERE
    }

    fn described(&self) -> String {
        "registry faraway.example.com".to_owned()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connection, ConnectError>> {
        let password = self.0.secret.load(Ordering::Relaxed);
        let acquainted = Acquainted {
            faraway: Arc::clone(&self.0),
            password,
        };
        let connection = Connection {
            fingerprint: Digest::of(&password.to_be_bytes()),
            source: Arc::new(acquainted),
        };
        async { Ok(connection) }.boxed()
    }
}

/// A process that follows it.
struct Process {
    follower: Arc<RemoteFollower>,
    changes: mpsc::UnboundedReceiver<SourceChange>,
    tasks: Tasks,
    end: CancellationToken,
    is_to_be_verified: bool,
}

impl Process {
    fn start(faraway: &Arc<Faraway>, cache: &Path) -> Self {
        Self::bounded(faraway, cache, 1 << 30)
    }

    /// One with room for so many bytes.
    fn bounded(faraway: &Arc<Faraway>, cache: &Path, max_bytes: u64) -> Self {
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
    fn verifying(faraway: &Arc<Faraway>, cache: &Path) -> Self {
        let mut process = Self::start(faraway, cache);
        process.is_to_be_verified = true;
        process
    }

    /// Opens the release at every change until it is here with its signatures, or without any.
    async fn until_signatures(&mut self, pinned: Option<Digest>, is_signed: bool) -> Digest {
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
    async fn until(&mut self, pinned: Option<Digest>, is_right: impl Fn(&Opened<Found>) -> bool) -> Opened<Found> {
        loop {
            let opened = self.follower.open(&tag(), pinned, self.is_to_be_verified).await;
            if is_right(&opened) {
                return opened;
            }
            self.changes.recv().await.unwrap();
        }
    }

    async fn until_here(&mut self, pinned: Option<Digest>) -> Digest {
        let opened = self.until(pinned, |opened| digest(opened).is_some()).await;
        digest(&opened).unwrap()
    }

    /// Waits for so many polls.
    async fn polls(&mut self, faraway: &Faraway, count: u64) {
        let enough = faraway.lists.load(Ordering::Relaxed) + count;
        while faraway.lists.load(Ordering::Relaxed) < enough {
            self.changes.recv().await.unwrap();
        }
    }

    async fn until_listing(&mut self, is_right: impl Fn(&Listing) -> bool) -> Listing {
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

fn digest(opened: &Opened<Found>) -> Option<Digest> {
    match opened {
        Opened::Ready { files, .. } => Some(files.release.digest),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
    }
}

fn moved_to(opened: &Opened<Found>) -> Option<&str> {
    match opened {
        Opened::Ready { moved_to, .. } => moved_to.as_deref(),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
    }
}

/// Puts other bytes under the tag.
fn replace(root: &TempDir) {
    replace_as(root, &tag());
}

fn replace_as(root: &TempDir, tag: &ReleaseTag) {
    let other = TempDir::new().unwrap();
    pack_as(other.path(), tag);
    fs::write(other.path().join(tag.to_string()).join("notes.md"), "Other bytes").unwrap();
    let place = root.path().join(RELEASES_DIRECTORY).join(tag.to_string());
    fs::rename(&place, root.path().join("old")).unwrap();
    fs::rename(other.path().join(tag.to_string()), &place).unwrap();
}

fn wish(interval: Duration, requested: Option<&str>) -> Wish {
    Wish {
        interval,
        requested: requested.map(str::to_owned),
    }
}

#[tokio::test]
async fn release_is_on_its_way_until_it_is_here_with_its_own_digest() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let opened = process.follower.open(&tag(), None, false).await;
    assert!(matches!(opened, Opened::Missing { .. }), "nobody waits for a download");
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    let expected = Release::open(&directory, &tag()).unwrap().digest;
    assert_eq!(process.until_here(None).await, expected);
}

#[tokio::test]
async fn what_the_source_does_not_show_is_not_said_to_come_from_it() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let pinned = process.until_here(None).await;
    let came_from = |opened: Opened<Found>| match opened {
        Opened::Ready { source, .. } => source.is_some(),
        Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => panic!("it is here"),
    };
    assert!(came_from(process.follower.open(&tag(), Some(pinned), false).await));
    // A mirror that ends earlier, over the same store.
    let mirror = TempDir::new().unwrap();
    let process = Process::start(&Faraway::new(mirror.path()), cache.path());
    assert!(!came_from(process.follower.open(&tag(), Some(pinned), false).await));
}

#[tokio::test]
async fn what_was_pinned_is_there_after_a_restart_while_the_source_is_down() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    faraway.resolves.store(0, Ordering::Relaxed);
    let process = Process::start(&faraway, cache.path());
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0, "nobody was asked");
}

#[tokio::test(start_paused = true)]
async fn moved_tag_is_told_and_what_was_pinned_stays() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    replace(&root);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    let opened = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!(digest(&opened), Some(pinned));
    assert_ne!(moved_to(&opened), Some(pinned.to_string().as_str()));
    // Also of a process that has not seen the pinned bytes come.
    drop(process);
    let mut process = Process::start(&faraway, cache.path());
    let again = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!((digest(&again), moved_to(&again)), (Some(pinned), moved_to(&opened)));
    // Whoever has pinned nothing gets the new ones, and the other keeps what it has.
    let accepted = process.until_here(None).await;
    assert_eq!(Some(accepted.to_string().as_str()), moved_to(&opened));
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
}

#[tokio::test(start_paused = true)]
async fn outage_is_told_with_its_beginning_and_ends_by_itself() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let outage = |listing: &Listing| match listing {
        Listing::Unavailable { outage, .. } => outage.clone(),
        _ => None,
    };
    let first = process.until_listing(|listing| outage(listing).is_some()).await;
    let later = process
        .until_listing(|listing| outage(listing).is_some_and(|outage| outage.attempts > 8))
        .await;
    let (first, later) = (outage(&first).unwrap(), outage(&later).unwrap());
    assert_eq!((first.attempts, first.since), (1, later.since));
    assert_eq!(
        digest(&process.follower.open(&tag(), Some(pinned), false).await),
        Some(pinned)
    );
    faraway.is_down.store(false, Ordering::Relaxed);
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
}

#[tokio::test(start_paused = true)]
async fn download_that_does_not_come_is_told_with_its_beginning_and_ends_by_itself() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    let outage = |opened: &Opened<Found>| match opened {
        Opened::Missing { outage, .. } => outage.clone(),
        _ => None,
    };
    let first = process.until(None, |opened| outage(opened).is_some()).await;
    let is_late = |opened: &Opened<Found>| outage(opened).is_some_and(|outage| outage.attempts > 8);
    let later = process.until(None, is_late).await;
    let (first, later) = (outage(&first).unwrap(), outage(&later).unwrap());
    assert_eq!((first.attempts, first.since), (1, later.since));
    let wait = |outage: &Outage| outage.next.unwrap().duration_since(outage.since);
    assert!(wait(&first) >= SignedDuration::from_secs(10), "{first:?}");
    assert!(wait(&later) >= SignedDuration::from_mins(15), "{later:?}");
    faraway.is_down.store(false, Ordering::Relaxed);
    process.until_here(None).await;
}

/// When the source was asked for the release next.
async fn next_resolve(faraway: &Faraway) -> Instant {
    let asked = || faraway.resolves.load(Ordering::Relaxed);
    let before = asked();
    let is_asked = async {
        while asked() == before {
            // Less than this is no wait.
            time::sleep(Duration::from_millis(1)).await;
        }
    };
    let patience = 100 * UNWISHED;
    time::timeout(patience, is_asked).await.expect("it is asked again");
    lock(&faraway.resolved_at).expect("it was asked")
}

/// A process whose download of the release has failed so often that it waits for a quarter of an hour.
async fn waiting(faraway: &Arc<Faraway>, cache: &TempDir) -> Process {
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::start(faraway, cache.path());
    let has_long_wait =
        |opened: &Opened<Found>| matches!(opened, Opened::Missing { outage: Some(outage), .. } if outage.attempts > 8);
    process.until(None, has_long_wait).await;
    process
}

#[tokio::test(start_paused = true)]
async fn download_that_failed_is_tried_again_at_once_by_request_of_its_release_or_of_a_stack() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = waiting(&faraway, &cache).await;
    let other = "docker-harbor-1-34-v2".parse().unwrap();
    let ask_for = |tag: &ReleaseTag| process.follower.request(tag);
    let ask_as = |stack| process.follower.wish(stack, wish(UNWISHED, Some("now")));
    let asks: [(&dyn Fn(), bool); 6] = [
        (&|| ask_for(&tag()), true),
        (&|| ask_for(&other), false),
        (&|| ask_as("fleet/harbor"), true),
        // It was answered.
        (&|| ask_as("fleet/harbor"), false),
        (&|| ask_as("fleet/ferry"), true),
        (&|| ask_for(&tag()), true),
    ];
    for (number, (ask, is_heard)) in asks.into_iter().enumerate() {
        let asked = Instant::now();
        ask();
        let waited = next_resolve(&faraway).await - asked;
        assert_eq!(waited < Duration::from_secs(1), is_heard, "ask {number}: {waited:?}");
    }
    faraway.is_down.store(false, Ordering::Relaxed);
    process.follower.request(&tag());
    let asked = Instant::now();
    process.until_here(None).await;
    let waited = lock(&faraway.resolved_at).unwrap() - asked;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn time_that_the_source_named_is_waited_for_whoever_asks() {
    const NAMED: Duration = Duration::from_mins(40);
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let process = waiting(&faraway, &cache).await;
    *lock(&faraway.limit) = Some(NAMED);
    faraway.is_down.store(false, Ordering::Relaxed);
    process.follower.request(&tag());
    let told = next_resolve(&faraway).await;
    for minute in 0..30 {
        process.follower.request(&tag());
        process
            .follower
            .wish(&format!("fleet/{minute}"), wish(UNWISHED, Some("now")));
        time::sleep(Duration::from_mins(1)).await;
    }
    let waited = next_resolve(&faraway).await - told;
    // Without a request it is a little more, so that not all come together.
    assert!((NAMED..NAMED + Duration::from_secs(1)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn search_for_signatures_that_failed_is_tried_again_at_once_by_request() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let process = Process::verifying(&faraway, cache.path());
    process.follower.open(&tag(), Some(pinned), true).await;
    // By now it is tried every quarter of an hour.
    time::sleep(12 * UNWISHED).await;
    next_resolve(&faraway).await;
    let asked = Instant::now();
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    let waited = next_resolve(&faraway).await - asked;
    assert!(waited < Duration::from_secs(1), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_source_repeats_of_its_credentials_is_nowhere_told() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.repeats.store(true, Ordering::Relaxed);
    let assert_hidden = |told: &str| {
        assert!(told.contains("no access for the (not shown)"), "{told}");
        assert!(!told.contains("canary"), "{told}");
    };
    let mut process = Process::start(&faraway, cache.path());
    let listing = process
        .until_listing(|listing| matches!(listing, Listing::Unavailable { .. }))
        .await;
    assert_hidden(&format!("{listing:?}"));
    // Its signatures are not there either.
    process.is_to_be_verified = true;
    let awaited = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.clone(),
            Signatures::Unwanted | Signatures::Shown(_) => String::new(),
        },
        _ => String::new(),
    };
    let opened = process
        .until(Some(pinned), |opened| awaited(opened).contains("could not"))
        .await;
    assert_hidden(&awaited(&opened));
    let nowhere = TempDir::new().unwrap();
    let mut process = Process::start(&faraway, nowhere.path());
    let hindered = |opened: &Opened<Found>| match opened {
        Opened::Missing {
            message,
            outage: Some(_),
        } => message.clone(),
        _ => String::new(),
    };
    let opened = process.until(None, |opened| !hindered(opened).is_empty()).await;
    assert_hidden(&hindered(&opened));
}

#[tokio::test(start_paused = true)]
async fn source_is_asked_as_often_as_the_most_impatient_stack_wants() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let process = Process::start(&faraway, cache.path());
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let wishes = HashMap::from([
        ("fleet/slow".to_owned(), wish(hour, None)),
        ("fleet/quick".to_owned(), wish(minute, None)),
    ]);
    for (stack, wish) in wishes.clone() {
        process.follower.wish(&stack, wish);
    }
    let asked_in = async |time: Duration| {
        let before = faraway.lists.load(Ordering::Relaxed);
        time::sleep(time).await;
        faraway.lists.load(Ordering::Relaxed) - before
    };
    asked_in(10 * minute).await;
    let often = asked_in(hour).await;
    assert!((54..=60).contains(&often), "{often}");
    let slow = HashMap::from([("fleet/slow".to_owned(), wish(hour, None))]);
    process.follower.retain(&Wanted::new(), &slow);
    asked_in(2 * minute).await;
    let rarely = asked_in(10 * hour).await;
    assert!((9..=10).contains(&rarely), "{rarely}");
}

/// To know what is under a tag by now it has to be downloaded. The clock runs ahead of the disk by less than that.
const DOWNLOADED: Duration = UNWISHED.saturating_mul(20_000);
/// Not yet half of the longest wait after a failure. The clock runs ahead of the disk by less than that.
const SOON: Duration = UNWISHED.saturating_mul(2);

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_by_the_next_poll_for_a_download_that_was_denied_although_the_list_is_open() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    faraway.password.store(1, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    let has_long_wait =
        |opened: &Opened<Found>| matches!(opened, Opened::Missing { outage: Some(outage), .. } if outage.attempts > 8);
    process.until(None, has_long_wait).await;
    assert!(matches!(process.follower.listing(), Listing::Known { .. }));
    faraway.secret.store(1, Ordering::Relaxed);
    let asked = time::timeout(SOON, next_resolve(&faraway)).await;
    asked.expect("it is asked again by the next poll");
    process.until_here(None).await;
}

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_where_only_the_comparison_was_denied() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    faraway.password.store(1, Ordering::Relaxed);
    replace(&root);
    process.polls(&faraway, 3).await;
    let opened = process.follower.open(&tag(), Some(pinned), false).await;
    assert_eq!(moved_to(&opened), None, "nobody may know");
    faraway.secret.store(1, Ordering::Relaxed);
    let is_moved = |opened: &Opened<Found>| moved_to(opened).is_some();
    let moved = time::timeout(DOWNLOADED, process.until(Some(pinned), is_moved)).await;
    moved.expect("the new Secret is used");
}

#[tokio::test(start_paused = true)]
async fn corrected_secret_is_used_by_the_next_poll_for_signatures_that_were_denied() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.password.store(1, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    process.follower.open(&tag(), Some(pinned), true).await;
    // By now it is tried every quarter of an hour.
    time::sleep(12 * UNWISHED).await;
    next_resolve(&faraway).await;
    faraway.secret.store(1, Ordering::Relaxed);
    let asked = time::timeout(SOON, next_resolve(&faraway)).await;
    asked.expect("it is asked again by the next poll");
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn secret_that_is_as_it_was_has_nothing_asked_for_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    process.polls(&faraway, 2).await;
    faraway.resolves.store(0, Ordering::Relaxed);
    process.follower.doubt_secrets();
    process.polls(&faraway, 5).await;
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0);
}

/// The tag behind the usual one.
fn neighbour() -> ReleaseTag {
    "docker-harbor-1-34-v2".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn tag_that_its_source_refuses_hides_none_of_its_neighbours() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    pack_as(&root.path().join(RELEASES_DIRECTORY), &neighbour());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    let pinned = loop {
        if let Some(digest) = digest(&process.follower.open(&neighbour(), None, false).await) {
            break digest;
        }
        process.changes.recv().await.unwrap();
    };
    *lock(&faraway.denied) = Some(tag());
    replace_as(&root, &neighbour());
    let is_told = async {
        while moved_to(&process.follower.open(&neighbour(), Some(pinned), false).await).is_none() {
            process.changes.recv().await.unwrap();
        }
    };
    time::timeout(DOWNLOADED, is_told).await.expect("it is compared");
}

#[tokio::test(start_paused = true)]
async fn request_that_a_silent_source_did_not_answer_is_asked_by_the_next_poll_and_then_answered() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    // So that no poll has a reason of its own.
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    process.polls(&faraway, 2).await;
    faraway.silence.store(1, Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    next_resolve(&faraway).await;
    next_resolve(&faraway).await;
    assert_eq!(faraway.silence.load(Ordering::Relaxed), 0);
    faraway.resolves.store(0, Ordering::Relaxed);
    process.polls(&faraway, 5).await;
    assert_eq!(faraway.resolves.load(Ordering::Relaxed), 0, "it was answered");
}

#[tokio::test(start_paused = true)]
async fn request_that_comes_while_tags_are_compared_is_answered_when_that_ends() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), pinned, "fleet");
    let closed = faraway.gate.write().await;
    while faraway.begun.try_acquire().is_ok_and(|begun| {
        begun.forget();
        true
    }) {}
    faraway.begun.acquire().await.unwrap().forget();
    // The comparison waits for signatures.
    let polls = faraway.lists.load(Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    process.polls(&faraway, 1).await;
    assert!(faraway.lists.load(Ordering::Relaxed) > polls, "no list waits for it");
    let resolves = faraway.resolves.load(Ordering::Relaxed);
    drop(closed);
    let opened = Instant::now();
    while faraway.resolves.load(Ordering::Relaxed) == resolves {
        time::sleep(Duration::from_millis(1)).await;
    }
    assert!(opened.elapsed() < UNWISHED / 2, "{:?}", opened.elapsed());
}

#[tokio::test]
async fn release_that_could_not_be_read_is_brought_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let mut process = Process::start(&Faraway::new(root.path()), cache.path());
    let pinned = process.until_here(None).await;
    let kept = cache.path().join("sha256").join(pinned.hex());
    fs::write(kept.join("metadata.yaml"), "rotten").unwrap();
    process.follower.doubt(&tag(), pinned);
    assert_eq!(process.until_here(Some(pinned)).await, pinned);
    assert_ne!(fs::read(kept.join("metadata.yaml")).unwrap(), b"rotten");
}

#[tokio::test]
async fn source_whose_list_tells_of_files_is_asked_for_a_release_only_when_the_list_says_that_it_is_another() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    faraway.tells.store(true, Ordering::Relaxed);
    let often = wish(Duration::from_millis(10), None);
    let mut process = Process::start(&faraway, cache.path());
    process.follower.wish("fleet/harbor", often.clone());
    let pinned = process.until_here(None).await;
    let asked = || faraway.resolves.swap(0, Ordering::Relaxed);
    asked();
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 0);
    replace(&root);
    let opened = process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    assert_eq!(digest(&opened), Some(pinned));
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 1);
    // A process that has seen nothing come asks once for what it has opened.
    drop(process);
    let mut process = Process::start(&faraway, cache.path());
    process.follower.wish("fleet/harbor", often);
    process.until(Some(pinned), |opened| moved_to(opened).is_some()).await;
    process.polls(&faraway, 10).await;
    assert_eq!(asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn list_that_is_older_than_what_was_downloaded_does_not_make_that_a_moved_tag() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    let resolved = faraway.resolved(&tag()).await.unwrap().identity();
    let old = ListedRelease {
        tag: tag(),
        published_at: None,
        identity: Some(Digest::of(b"what was there before")),
        digest: Some(Digest::of(b"its digest")),
    };
    let asked = lock(&process.follower.memory).questions(&[old], ONE_OF_EACH);
    assert_eq!(asked, [tag()], "the source knows better than its list");
    let opened = process.follower.open(&tag(), Some(pinned), false).await;
    assert_eq!((digest(&opened), moved_to(&opened)), (Some(pinned), None));
    let current = ListedRelease {
        tag: tag(),
        published_at: None,
        identity: Some(resolved),
        digest: None,
    };
    assert_eq!(lock(&process.follower.memory).questions(&[current], ONE_OF_EACH), []);
}

const ONE_OF_EACH: Questions = Questions {
    differing: 1,
    untold: 1,
    refused: 1,
};

#[tokio::test(start_paused = true)]
async fn follower_that_panics_is_told_and_goes_on() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    process.until_here(None).await;
    let polls = faraway.lists.load(Ordering::Relaxed);
    faraway.panics.store(1, Ordering::Relaxed);
    process.follower.wish("fleet/harbor", wish(UNWISHED, Some("now")));
    time::sleep(Duration::from_mins(1)).await;
    assert_eq!(process.tasks.panics(Task::Source), 1);
    assert_eq!(
        faraway.lists.load(Ordering::Relaxed),
        polls + 2,
        "the one that panicked, and another"
    );
    fs::remove_dir_all(root.path().join(RELEASES_DIRECTORY)).unwrap();
    process
        .until_listing(|listing| !matches!(listing, Listing::Known { releases, .. } if !releases.is_empty()))
        .await;
}

#[tokio::test(start_paused = true)]
async fn download_that_panics_is_told_and_begun_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
    faraway.panics.store(1, Ordering::Relaxed);
    process.until_here(None).await;
    assert_eq!(
        (process.tasks.panics(Task::Download), process.tasks.panics(Task::Source)),
        (1, 0)
    );
}

/// Puts a signature beside the release; it need not be good here.
fn sign(root: &TempDir) {
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS), "sums").unwrap();
    fs::write(directory.join(SUMS_SIGNATURE), "AAAA").unwrap();
}

#[tokio::test]
async fn signatures_are_there_after_a_restart_while_the_source_is_down() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::verifying(&faraway, cache.path())
        .until_signatures(None, true)
        .await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    assert_eq!(process.until_signatures(Some(pinned), true).await, pinned);
    // Not good enough for whom it is now: what is in the way is told, and nothing is taken away.
    process.follower.refused(&tag(), pinned, "fleet");
    process.until_signatures(Some(pinned), true).await;
}

/// The folder in which the store keeps signatures.
fn evidence_folder(cache: &TempDir) -> PathBuf {
    cache.path().join("evidence")
}

#[tokio::test]
async fn signatures_are_held_by_nobody_who_does_not_look_at_them() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let shown = Arc::downgrade(&evidence(&opened).unwrap());
    assert!(shown.upgrade().is_some_and(|shown| !shown.is_empty()));
    drop(opened);
    assert!(shown.upgrade().is_none(), "it is held besides in the store");
}

#[tokio::test]
async fn evidence_that_could_not_be_read_is_asked_for_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, true).await;
    for kept in fs::read_dir(evidence_folder(&cache)).unwrap() {
        fs::write(kept.unwrap().path(), "rot").unwrap();
    }
    let looks = faraway.looks.load(Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
    assert_eq!(faraway.looks.load(Ordering::Relaxed), looks + 1);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_cannot_be_kept_are_looked_for_ever_more_seldom_and_that_is_told() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    fs::remove_dir_all(evidence_folder(&cache)).unwrap();
    fs::write(evidence_folder(&cache), "").unwrap();
    let mut process = Process::verifying(&faraway, cache.path());
    let told = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("unable to write below"),
            _ => false,
        },
        _ => false,
    };
    process.until(Some(pinned), told).await;
    let looks = faraway.looks.load(Ordering::Relaxed);
    for _ in 0..100 {
        time::sleep(UNWISHED).await;
        process.follower.open(&tag(), Some(pinned), true).await;
    }
    let looks = faraway.looks.load(Ordering::Relaxed) - looks;
    assert!((10..=100).contains(&looks), "{looks} times in 500 minutes");
    fs::remove_file(evidence_folder(&cache)).unwrap();
    fs::create_dir(evidence_folder(&cache)).unwrap();
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn signature_that_comes_later_is_found_by_the_polls_if_the_release_was_refused() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let pinned = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), pinned, "fleet");
    // However often there was nothing new.
    time::sleep(5 * UNWISHED).await;
    sign(&root);
    assert_eq!(process.until_signatures(Some(pinned), true).await, pinned);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_cannot_be_looked_for_are_told_and_found_when_the_source_is_back() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let told = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("could not be looked for: "),
            _ => false,
        },
        _ => false,
    };
    process.until(Some(pinned), told).await;
    faraway.is_down.store(false, Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test]
async fn signatures_of_few_releases_are_looked_for_at_once_however_many_are_wanted() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::start(&faraway, cache.path());
    let pinned = process.until_here(None).await;
    let before = faraway.resolves.load(Ordering::Relaxed);
    let asked = || faraway.resolves.load(Ordering::Relaxed) - before;
    let few = u32::try_from(SEARCHES).unwrap();
    let closed = faraway.gate.write().await;
    let searches: Vec<_> = (0..3 * few)
        .map(|_| {
            let follower = Arc::clone(&process.follower);
            tokio::spawn(async move { follower.search_once(&tag(), pinned).await.is_ok() })
        })
        .collect();
    faraway.begun.acquire_many(few).await.unwrap().forget();
    // The others have not even begun.
    assert_eq!(asked(), u64::from(few));
    assert_eq!(faraway.begun.available_permits(), 0);
    drop(closed);
    for search in searches {
        assert!(search.await.unwrap());
    }
    assert_eq!(asked(), 3 * u64::from(few));
}

#[tokio::test(start_paused = true)]
async fn tag_that_moved_has_nothing_to_show_for_what_was_pinned() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    replace(&root);
    sign(&root);
    let mut process = Process::verifying(&faraway, cache.path());
    assert_eq!(process.until_signatures(Some(pinned), false).await, pinned);
}

#[tokio::test(start_paused = true)]
async fn signatures_that_the_source_no_longer_shows_still_count() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::verifying(&faraway, cache.path())
        .until_signatures(None, true)
        .await;
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::remove_file(directory.join(SUMS)).unwrap();
    fs::remove_file(directory.join(SUMS_SIGNATURE)).unwrap();
    // For somebody else they are not good enough, so that others are looked for.
    let mut process = Process::verifying(&faraway, cache.path());
    process.until_signatures(Some(pinned), true).await;
    process.follower.refused(&tag(), pinned, "fleet");
    let looks = faraway.looks.load(Ordering::Relaxed);
    for _ in 0..100 {
        time::sleep(UNWISHED).await;
    }
    assert!(
        faraway.looks.load(Ordering::Relaxed) >= looks + 2,
        "it was looked for others"
    );
    process.until_signatures(Some(pinned), true).await;
    // And whoever trusts them again has nothing looked for.
    process.follower.accepted(&tag(), pinned, "fleet");
    assert!(!lock(&process.follower.memory).is_refused(&tag(), pinned));
}

fn evidence(opened: &Opened<Found>) -> Option<Arc<Evidence>> {
    match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Shown(evidence) => Some(Arc::clone(evidence)),
            Signatures::Unwanted | Signatures::Awaited { .. } => None,
        },
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn signature_that_one_namespace_waits_for_is_found_although_another_is_content_and_takes_nothing_from_that() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let (pinned, first) = (digest(&opened).unwrap(), evidence(&opened).unwrap());
    process.follower.refused(&tag(), pinned, "waits");
    process.follower.accepted(&tag(), pinned, "content");
    // It takes the place of the other one.
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS_SIGNATURE), "BBBB").unwrap();
    let is_other = |opened: &Opened<Found>| evidence(opened).is_some_and(|evidence| evidence != first);
    // The clock runs ahead of the disk.
    let found = time::timeout(10_000 * UNWISHED, process.until(Some(pinned), is_other));
    let both = evidence(&found.await.expect("it is found by a poll")).unwrap();
    assert!(both.has_all_of(&first), "{both:?}");
    // Also on the disk.
    drop(process);
    faraway.is_down.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let kept = process.until(Some(pinned), |opened| evidence(opened).is_some()).await;
    assert_eq!(evidence(&kept), Some(both));
}

#[test]
fn sources_of_one_interval_are_asked_at_different_instants_and_each_at_changing_distances() {
    const INTERVAL: Duration = Duration::from_mins(5);
    let wait = |name: &str, turn| next_poll(INTERVAL, 0, None, spread(name, turn));
    let names: Vec<String> = (0..1000)
        .map(|number| format!("repository team-{number}/stacks"))
        .collect();
    for name in &names[..10] {
        let waits: HashSet<Duration> = (0..100).map(|turn| wait(name, turn)).collect();
        assert!(waits.len() > 80, "{name} is asked at {} distances", waits.len());
        assert!(waits.iter().all(|wait| (INTERVAL..INTERVAL * 11 / 10).contains(wait)));
    }
    // All begin together. From the first turn on they are spread over a tenth of the interval, whatever the turn.
    let mut instants = vec![Duration::ZERO; names.len()];
    for turn in 0..20 {
        for (instant, name) in instants.iter_mut().zip(&names) {
            *instant += wait(name, turn);
        }
        let first = instants.iter().min().copied().unwrap();
        let mut each_second = HashMap::<u64, usize>::new();
        for instant in &instants {
            *each_second.entry(instant.saturating_sub(first).as_secs()).or_default() += 1;
        }
        let most = each_second.values().max().copied().unwrap();
        assert!(most < 80, "{most} of a thousand in one second of turn {turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn search_for_signatures_that_panics_is_begun_again() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    faraway.tells.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    process
        .until_listing(|listing| matches!(listing, Listing::Known { .. }))
        .await;
    time::sleep(Duration::from_secs(1)).await;
    faraway.panics.store(1, Ordering::Relaxed);
    process.follower.open(&tag(), Some(pinned), true).await;
    while faraway.panics.load(Ordering::Relaxed) > 0 {
        time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(process.tasks.panics(Task::Source), 0, "it is the search that panicked");
    let found = time::timeout(DOWNLOADED, process.until_signatures(Some(pinned), true)).await;
    assert_eq!(found.expect("it is looked for again"), pinned);
}

#[tokio::test(start_paused = true)]
async fn signed_release_is_not_called_unsigned_because_what_is_under_its_tag_could_not_be_downloaded() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let pinned = Process::start(&faraway, cache.path()).until_here(None).await;
    // Nobody knows any more what the source, which tells no digests, has under the tag.
    for identity in fs::read_dir(cache.path().join("identities")).unwrap() {
        fs::remove_file(identity.unwrap().path()).unwrap();
    }
    faraway.gives_nothing.store(true, Ordering::Relaxed);
    let mut process = Process::verifying(&faraway, cache.path());
    let is_decided = |opened: &Opened<Found>| match opened {
        Opened::Ready { files, .. } => match &files.signatures {
            Signatures::Awaited { message } => message.contains("could not be looked for"),
            Signatures::Shown(_) => true,
            Signatures::Unwanted => false,
        },
        _ => false,
    };
    let opened = process.until(Some(pinned), is_decided).await;
    assert_eq!(
        evidence(&opened),
        None,
        "nobody has looked: it is said to have no signature"
    );
    faraway.gives_nothing.store(false, Ordering::Relaxed);
    process.until_signatures(Some(pinned), true).await;
}

#[tokio::test(start_paused = true)]
async fn source_that_moves_a_tag_again_and_again_while_its_signature_is_awaited_fills_no_memory() {
    const MOVES: usize = 12;
    let (root, cache) = (root(), TempDir::new().unwrap());
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let mut last = process.until_signatures(None, false).await;
    process.follower.refused(&tag(), last, "fleet");
    let mut all = vec![last];
    let notes = root
        .path()
        .join(RELEASES_DIRECTORY)
        .join(tag().to_string())
        .join("notes.md");
    for number in 0..MOVES {
        fs::write(&notes, format!("Other bytes {number}")).unwrap();
        let is_other = |opened: &Opened<Found>| digest(opened).is_some_and(|digest| digest != last);
        process.until(None, is_other).await;
        last = process.until_signatures(None, false).await;
        process.follower.refused(&tag(), last, "fleet");
        all.push(last);
        let wants = Wants {
            pinned: HashSet::new(),
            verifying: HashSet::from(["fleet".to_owned()]),
        };
        let wanted = Wanted::from([(tag(), wants)]);
        process.follower.retain(&wanted, &HashMap::new());
    }
    let memory = lock(&process.follower.memory);
    let kept = all
        .iter()
        .filter(|digest| memory.here(&tag(), **digest).is_some())
        .count();
    assert!(
        kept <= 4,
        "{kept} of {} releases under one tag are remembered",
        all.len()
    );
}

#[tokio::test(start_paused = true)]
async fn signature_by_a_new_key_is_looked_for_at_once_when_the_old_key_does_not_count_any_more() {
    let (root, cache) = (root(), TempDir::new().unwrap());
    sign(&root);
    let faraway = Faraway::new(root.path());
    let mut process = Process::verifying(&faraway, cache.path());
    let opened = process.until(None, |opened| evidence(opened).is_some()).await;
    let (pinned, first) = (digest(&opened).unwrap(), evidence(&opened).unwrap());
    process.follower.accepted(&tag(), pinned, "fleet");
    // As the documentation says: sign what is in use with the new key, wait, and take the old one out.
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS_SIGNATURE), "BBBB").unwrap();
    process.polls(&faraway, 3).await;
    let is_searching = || lock(&process.follower.memory).is_searching(&tag());
    assert!(!is_searching(), "what is good is not looked for");
    process.follower.refused(&tag(), pinned, "fleet");
    assert!(is_searching(), "it waits for a poll, and each looks at two releases");
    loop {
        let opened = process.follower.open(&tag(), Some(pinned), true).await;
        if evidence(&opened).is_some_and(|evidence| evidence != first) {
            break;
        }
        process.changes.recv().await.unwrap();
    }
}
