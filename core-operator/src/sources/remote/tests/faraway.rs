//! A source that is asked as if it were far away: a directory with real files, that can fail.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use futures::FutureExt;
use futures::future::BoxFuture;
use release::source::{
    Content, DirectorySource, Listing as Listed, RELEASES_DIRECTORY, ReleaseSource, RemoteFile, Resolved, SourceError,
    SourceFuture,
};
use release::{Digest, Evidence, SUMS, SUMS_SIGNATURE};
use sourcing::{Connect, ConnectError, Connection, Place};
use tempfile::TempDir;
use tokio::sync::{RwLock, Semaphore};
use tokio::time::{self, Instant};

use super::super::UNWISHED;
use crate::sources::lock;
use crate::sources::tests::{pack_as, root, tag};

/// A directory with a release, an empty one for a cache, and the first as it is asked from afar.
pub(super) fn ground() -> (TempDir, TempDir, Arc<Faraway>) {
    let root = root();
    let faraway = Faraway::new(root.path());
    (root, TempDir::new().unwrap(), faraway)
}

/// The same, with a release that is signed.
pub(super) fn signed_ground() -> (TempDir, TempDir, Arc<Faraway>) {
    let ground = ground();
    sign(&ground.0);
    ground
}

/// A directory that is asked as if it were far away.
pub(super) struct Faraway {
    pub(super) directory: DirectorySource,
    pub(super) is_down: AtomicBool,
    pub(super) lists: AtomicU64,
    pub(super) resolves: AtomicU64,
    /// When it was asked for a release last.
    pub(super) resolved_at: Mutex<Option<Instant>>,
    /// For how long it allows no more requests.
    pub(super) limit: Mutex<Option<Duration>>,
    /// How often it was asked for signatures.
    pub(super) looks: AtomicU64,
    /// What it shows in place of what lies beside the release.
    pub(super) shown: Mutex<Option<Evidence>>,
    /// One permit for each time.
    pub(super) begun: Semaphore,
    /// What holds up those who ask for signatures, while it is closed.
    pub(super) gate: RwLock<()>,
    /// What its Secret holds.
    pub(super) secret: AtomicU64,
    /// What it wants to be told before it gives more than its list.
    pub(super) password: AtomicU64,
    /// The release that nobody may have.
    pub(super) denied: Mutex<Option<ReleaseTag>>,
    /// How many of the next questions for a release get no answer.
    pub(super) silence: AtomicU64,
    /// Whether its list says which files its releases have.
    pub(super) tells: AtomicBool,
    /// Whether it refuses everything, and repeats what it was told in confidence.
    pub(super) repeats: AtomicBool,
    /// How many of the next lists and of the next questions for a release end in a panic.
    pub(super) panics: AtomicU64,
    /// Whether it gives no file of a release, though it says which there are.
    pub(super) gives_nothing: AtomicBool,
}

impl Faraway {
    pub(super) fn new(root: &Path) -> Arc<Self> {
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

    pub(super) fn answer(&self) -> Result<(), SourceError> {
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
    pub(super) fn answer_for(&self, tag: &ReleaseTag) -> Result<(), SourceError> {
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

    pub(super) async fn resolved(&self, tag: &ReleaseTag) -> Result<Resolved, SourceError> {
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

    pub(super) async fn listed(&self) -> Result<Listed, SourceError> {
        let mut listed = self.directory.list().await?;
        for release in &mut listed.releases {
            if self.tells.load(Ordering::Relaxed) {
                release.identity = Some(self.resolved(&release.tag).await?.identity());
            }
        }
        Ok(listed)
    }
}

pub(super) fn denied() -> SourceError {
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
pub(super) struct Acquainted {
    pub(super) faraway: Arc<Faraway>,
    pub(super) password: u64,
}

impl Acquainted {
    pub(super) fn is_let_in(&self) -> Result<(), SourceError> {
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
pub(super) struct Way(pub(super) Arc<Faraway>);

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

/// Puts other bytes under the tag.
pub(super) fn replace(root: &TempDir) {
    replace_as(root, &tag());
}

pub(super) fn replace_as(root: &TempDir, tag: &ReleaseTag) {
    let other = TempDir::new().unwrap();
    pack_as(other.path(), tag);
    fs::write(other.path().join(tag.to_string()).join("notes.md"), "Other bytes").unwrap();
    let place = root.path().join(RELEASES_DIRECTORY).join(tag.to_string());
    fs::rename(&place, root.path().join("old")).unwrap();
    fs::rename(other.path().join(tag.to_string()), &place).unwrap();
}

/// When the source was asked for the release next.
pub(super) async fn next_resolve(faraway: &Faraway) -> Instant {
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

/// The tag behind the usual one.
pub(super) fn neighbour() -> ReleaseTag {
    "docker-harbor-1-34-v2".parse().unwrap()
}

/// Puts a signature beside the release; it need not be good here.
pub(super) fn sign(root: &TempDir) {
    let directory = root.path().join(RELEASES_DIRECTORY).join(tag().to_string());
    fs::write(directory.join(SUMS), "sums").unwrap();
    fs::write(directory.join(SUMS_SIGNATURE), "AAAA").unwrap();
}
