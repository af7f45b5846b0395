//! Where releases come from: one follower per source, shared by all stacks that name it.
//!
//! Today a source is a directory below the one that the operator was started with.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::ClusterStackRelease;
use crds::names::ReleaseTag;
use crds::policy::VerificationMode;
use crds::source::Source;
use kube::ResourceExt;
use operator_kit::failure::chain;
use planning::stack::{ListedRelease, Listing};
use release::source::{Change, DirectorySource, DirectoryWatch, Notifications, RELEASES_DIRECTORY, ReleaseSource};
use release::{Admitted, Digest, ErrorClass, Release, admit};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What became of opening a release, whose bytes nobody may read before its policy has admitted them.
#[derive(Clone)]
pub(crate) enum Opened<Files = Admitted> {
    /// It is usable.
    Ready {
        /// Where it came from, for people.
        source: String,
        /// Its files.
        files: Files,
    },
    /// It is not there (yet), or cannot be read at the moment.
    Missing {
        /// Why.
        message: String,
    },
    /// It is there and cannot be used.
    Broken {
        /// The file and the reason.
        message: String,
    },
}

/// What changed at a source.
#[derive(Clone, Debug)]
pub(crate) struct SourceChange {
    /// The releases that may have other files than before.
    pub(crate) tags: BTreeSet<ReleaseTag>,
    /// Whether all releases that are not ready have to be looked at too.
    pub(crate) unready: bool,
    /// Whether the list of releases is another one.
    pub(crate) listing: bool,
}

/// All sources that stacks and releases name, and some that they named lately.
pub(crate) struct Sources {
    root: PathBuf,
    rescan: Duration,
    cancel: CancellationToken,
    changes: mpsc::UnboundedSender<SourceChange>,
    notifications: Notifications,
    followers: Mutex<HashMap<PathBuf, Following>>,
}

/// A follower, and what ends its watch together with this value.
struct Following {
    follower: Arc<Follower>,
    _end: DropGuard,
}

struct Follower {
    path: PathBuf,
    source: DirectorySource,
    listing: Mutex<Listing>,
    memory: Mutex<Memory>,
}

/// What was opened and is not known to have changed since.
#[derive(Default)]
struct Memory {
    opened: HashMap<ReleaseTag, Opened<Arc<Release>>>,
    /// How often something was forgotten. What was opened before is not put back afterwards.
    generation: u64,
}

impl Sources {
    /// `root` is the directory that all directory sources lie in or are.
    pub(crate) fn new(
        root: PathBuf,
        rescan: Duration,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<SourceChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (
            Self {
                root,
                rescan,
                cancel,
                changes,
                notifications: Notifications::default(),
                followers: Mutex::default(),
            },
            receiver,
        )
    }

    /// What a source lists; the default source when none is named.
    pub(crate) fn listing(&self, source: Option<&Source>) -> Listing {
        match self.follower(source) {
            Ok(follower) => lock(&follower.listing).clone(),
            Err(message) => Listing::Unusable { message },
        }
    }

    /// What a source is and where, for people.
    pub(crate) fn described(&self, source: Option<&Source>) -> String {
        match (source, self.path(source)) {
            (Some(source), Err(_)) => source.to_string(),
            (_, path) => {
                let releases = path.as_ref().unwrap_or(&self.root).join(RELEASES_DIRECTORY);
                format!("directory {}", releases.display())
            }
        }
    }

    /// The files of a release, if its policy admits them.
    pub(crate) async fn of(&self, release: &ClusterStackRelease) -> Opened {
        let opened = match release.name_any().parse() {
            Ok(tag) => self.open(release.spec.source.as_ref(), &tag).await,
            Err(error) => Opened::Broken {
                message: format!("the name is no release tag: {error}"),
            },
        };
        opened.admitted(verification_mode(release))
    }

    /// One release of a source, verified. What was opened once is not read again until the source reports a change.
    async fn open(&self, source: Option<&Source>, tag: &ReleaseTag) -> Opened<Arc<Release>> {
        let follower = match self.follower(source) {
            Ok(follower) => follower,
            Err(message) => return Opened::Missing { message },
        };
        let generation = match follower.known(tag) {
            Known::Opened(opened) => return opened,
            Known::Forgotten { generation } => generation,
        };
        let (opened, keep) = follower.open(tag).await;
        if keep && !follower.keep(generation, tag, &opened) {
            // Its files may have changed while they were read.
            let _ = self.changes.send(SourceChange {
                tags: BTreeSet::from([tag.clone()]),
                unready: false,
                listing: false,
            });
        }
        opened
    }

    /// Ends the followers of all other sources: each holds watches of the system, which has not many. The root stays.
    pub(crate) fn follow_only<'named>(&self, named: impl Iterator<Item = Option<&'named Source>>) {
        let named: HashSet<PathBuf> = named.filter_map(|source| self.path(source).ok()).collect();
        lock(&self.followers).retain(|path, _| *path == self.root || named.contains(path));
    }

    fn follower(&self, source: Option<&Source>) -> Result<Arc<Follower>, String> {
        let path = self.path(source)?;
        let mut followers = lock(&self.followers);
        if let Some(Following { follower, .. }) = followers.get(&path) {
            return Ok(Arc::clone(follower));
        }
        let follower = Arc::new(Follower::new(&path));
        let task = Arc::clone(&follower).follow(self.rescan, self.notifications.clone(), self.changes.clone());
        let end = self.cancel.child_token();
        tokio::spawn(end.clone().run_until_cancelled_owned(task));
        let following = Following {
            follower: Arc::clone(&follower),
            _end: end.drop_guard(),
        };
        followers.insert(path, following);
        Ok(follower)
    }

    fn path(&self, source: Option<&Source>) -> Result<PathBuf, String> {
        match source {
            None => Ok(self.root.clone()),
            Some(Source::Directory(directory)) => below(&self.root, Path::new(&directory.path)),
            Some(Source::Github(_) | Source::Oci(_) | Source::Http(_)) => Err(
                "this version of the operator reads releases from directories only; use spec.source.directory"
                    .to_owned(),
            ),
        }
    }
}

impl Opened<Arc<Release>> {
    fn admitted(self, mode: VerificationMode) -> Opened {
        match self {
            Self::Ready { source, files } => match admit(files, mode) {
                Ok(files) => Opened::Ready { source, files },
                Err(refused) => Opened::Broken {
                    message: refused.to_string(),
                },
            },
            Self::Missing { message } => Opened::Missing { message },
            Self::Broken { message } => Opened::Broken { message },
        }
    }
}

fn verification_mode(release: &ClusterStackRelease) -> VerificationMode {
    let policy = release.spec.policy.as_ref();
    let verification = policy.and_then(|policy| policy.verification.as_ref());
    verification.map(|verification| verification.mode).unwrap_or_default()
}

/// A relative path without `..`, below the root. The CRD has the same rule; a status may be older than a rule.
fn below(root: &Path, relative: &Path) -> Result<PathBuf, String> {
    let plain = relative
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    if plain {
        Ok(root.join(relative))
    } else {
        Err("spec.source.directory.path must be a relative path without ..".to_owned())
    }
}

/// What a follower knows of a release.
enum Known {
    Opened(Opened<Arc<Release>>),
    Forgotten { generation: u64 },
}

impl Follower {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            source: DirectorySource::new(path),
            listing: Mutex::new(Listing::NotAsked),
            memory: Mutex::default(),
        }
    }

    fn known(&self, tag: &ReleaseTag) -> Known {
        let memory = lock(&self.memory);
        match memory.opened.get(tag) {
            Some(opened) => Known::Opened(opened.clone()),
            None => Known::Forgotten {
                generation: memory.generation,
            },
        }
    }

    /// Remembers what was opened, unless something was forgotten meanwhile.
    fn keep(&self, generation: u64, tag: &ReleaseTag, opened: &Opened<Arc<Release>>) -> bool {
        let mut memory = lock(&self.memory);
        let current = memory.generation == generation;
        if current {
            memory.opened.insert(tag.clone(), opened.clone());
        }
        current
    }

    async fn open(&self, tag: &ReleaseTag) -> (Opened<Arc<Release>>, bool) {
        match self.source.open(tag).await {
            Ok(files) => (
                Opened::Ready {
                    source: format!("directory {}", self.path.display()),
                    files: Arc::new(files),
                },
                true,
            ),
            Err(error) => {
                let message = chain(&error);
                match error.class() {
                    ErrorClass::Terminal => (Opened::Broken { message }, true),
                    ErrorClass::Waiting => (Opened::Missing { message }, true),
                    ErrorClass::Transient => (Opened::Missing { message }, false),
                }
            }
        }
    }

    /// Lists at once, and again whenever something changed.
    async fn follow(
        self: Arc<Self>,
        rescan: Duration,
        notifications: Notifications,
        changes: mpsc::UnboundedSender<SourceChange>,
    ) {
        let mut watch = match DirectoryWatch::new(&self.path, rescan, &notifications).await {
            Ok(watch) => watch,
            Err(error) => {
                *lock(&self.listing) = Listing::Unavailable { message: chain(&error) };
                let _ = changes.send(SourceChange {
                    tags: BTreeSet::new(),
                    unready: true,
                    listing: true,
                });
                return;
            }
        };
        let mut change = Change::Everything;
        loop {
            let listing = self.list().await;
            let differs = std::mem::replace(&mut *lock(&self.listing), listing.clone()) != listing;
            let unready = change == Change::Everything;
            let tags = self.forget(change).await;
            let told = SourceChange {
                tags,
                unready,
                listing: differs,
            };
            if changes.send(told).is_err() {
                return;
            }
            change = watch.changed().await;
        }
    }

    async fn list(&self) -> Listing {
        match self.source.list().await {
            Ok(listing) => Listing::Known {
                releases: listing
                    .releases
                    .into_iter()
                    .map(|listed| ListedRelease {
                        tag: listed.tag,
                        published_at: listed.published_at,
                        digest: None,
                        kubernetes_version: None,
                    })
                    .collect(),
                foreign: listing.foreign.len(),
            },
            Err(error) => Listing::Unavailable { message: chain(&error) },
        }
    }

    /// Forgets what is not provably the same as before: it is opened again when it is needed. Gives the releases that may have other files.
    async fn forget(&self, change: Change) -> BTreeSet<ReleaseTag> {
        let (tags, everything) = match change {
            Change::Tags(tags) => (tags, false),
            // A storage that does not answer says nothing about what was read from it.
            Change::Everything => (self.source.changed(self.usable()).await.unwrap_or_default(), true),
        };
        let mut memory = lock(&self.memory);
        memory.generation += 1;
        memory.opened.retain(|tag, opened| {
            let usable = matches!(opened, Opened::Ready { .. });
            !tags.contains(tag) && (usable || !everything)
        });
        tags
    }

    fn usable(&self) -> Vec<(ReleaseTag, Digest)> {
        let memory = lock(&self.memory);
        let usable = memory.opened.iter().filter_map(|(tag, opened)| match opened {
            Opened::Ready { files, .. } => Some((tag.clone(), files.digest)),
            Opened::Missing { .. } | Opened::Broken { .. } => None,
        });
        usable.collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
