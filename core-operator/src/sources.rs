//! Where releases come from: one follower per source, shared by all stacks that name it.
//!
//! Today a source is a directory below the one that the operator was started with.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::names::ReleaseTag;
use crds::source::Source;
use operator_kit::failure::chain;
use planning::stack::{ListedRelease, Listing};
use release::source::{Change, DirectorySource, DirectoryWatch, ReleaseSource};
use release::{ErrorClass, Release};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What became of opening a release.
#[derive(Clone)]
pub(crate) enum Opened {
    /// It is usable.
    Ready {
        /// Where it came from, for people.
        source: String,
        /// Its files.
        files: Arc<Release>,
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
    /// The releases that have to be looked at again; `None` for all that are not usable.
    pub(crate) tags: Option<BTreeSet<ReleaseTag>>,
    /// Whether the list of releases is another one.
    pub(crate) listing: bool,
}

/// All sources that stacks and releases have named so far.
pub(crate) struct Sources {
    root: PathBuf,
    rescan: Duration,
    cancel: CancellationToken,
    changes: mpsc::UnboundedSender<SourceChange>,
    followers: Mutex<HashMap<PathBuf, Arc<Follower>>>,
}

struct Follower {
    path: PathBuf,
    source: DirectorySource,
    listing: Mutex<Listing>,
    opened: Mutex<HashMap<ReleaseTag, Opened>>,
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

    /// One release of a source, verified. What was opened once is not read again until the source reports a change.
    pub(crate) async fn open(&self, source: Option<&Source>, tag: &ReleaseTag) -> Opened {
        let follower = match self.follower(source) {
            Ok(follower) => follower,
            Err(message) => return Opened::Missing { message },
        };
        if let Some(opened) = lock(&follower.opened).get(tag) {
            return opened.clone();
        }
        let (opened, keep) = follower.open(tag).await;
        if keep {
            lock(&follower.opened).insert(tag.clone(), opened.clone());
        }
        opened
    }

    fn follower(&self, source: Option<&Source>) -> Result<Arc<Follower>, String> {
        let path = self.path(source)?;
        let mut followers = lock(&self.followers);
        if let Some(follower) = followers.get(&path) {
            return Ok(Arc::clone(follower));
        }
        let follower = Arc::new(Follower::new(&path));
        let task = Arc::clone(&follower).follow(self.rescan, self.changes.clone());
        let cancel = self.cancel.clone();
        tokio::spawn(async move { cancel.run_until_cancelled_owned(task).await });
        followers.insert(path, Arc::clone(&follower));
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

impl Follower {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            source: DirectorySource::new(path),
            listing: Mutex::new(Listing::NotAsked),
            opened: Mutex::default(),
        }
    }

    async fn open(&self, tag: &ReleaseTag) -> (Opened, bool) {
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
    async fn follow(self: Arc<Self>, rescan: Duration, changes: mpsc::UnboundedSender<SourceChange>) {
        let mut watch = match DirectoryWatch::new(&self.path, rescan) {
            Ok(watch) => watch,
            Err(error) => {
                *lock(&self.listing) = Listing::Unavailable { message: chain(&error) };
                let _ = changes.send(SourceChange {
                    tags: None,
                    listing: true,
                });
                return;
            }
        };
        let mut change = Change::Everything;
        loop {
            let listing = self.list().await;
            let differs = std::mem::replace(&mut *lock(&self.listing), listing.clone()) != listing;
            let tags = match change {
                Change::Tags(tags) => Some(tags),
                Change::Everything => None,
            };
            self.forget(tags.as_ref());
            if changes.send(SourceChange { tags, listing: differs }).is_err() {
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

    /// What changed is opened again when it is needed. A look at everything opens again only what was not usable: a mended release must be
    /// seen, and a usable one is re-hashed when its own files change.
    fn forget(&self, tags: Option<&BTreeSet<ReleaseTag>>) {
        let mut opened = lock(&self.opened);
        match tags {
            Some(tags) => opened.retain(|tag, _| !tags.contains(tag)),
            None => opened.retain(|_, opened| matches!(opened, Opened::Ready { .. })),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
