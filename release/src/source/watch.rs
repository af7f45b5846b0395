//! Tells which releases of a directory source may have changed, as soon as they do.
//!
//! The watch holds file system notifications for everything below `ROOT/cluster-stacks` and for the directories that lead there, so
//! that the root may come, go and be replaced. It says *may have changed* and nothing else: bursts become one answer, and whoever was busy
//! finds everything that happened meanwhile in the next. Notifications can be lost (network file systems have none, queues overflow, a rename far above the root), so
//! in a settable interval everything is reported as changed.

use std::{
    collections::BTreeSet,
    error::Error as _,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{self, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crds::names::ReleaseTag;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};
use thiserror::Error;
use tokio::{sync::Notify, task, time};

use super::RELEASES_DIRECTORY;

/// A release is copied as several files; reporting the first at once would only show it incomplete.
const QUIET: Duration = Duration::from_millis(100);
/// A directory that never becomes quiet is still reported this often.
const LONGEST_BURST: Duration = Duration::from_secs(1);
/// More tags than this at once are reported as everything.
const MAX_TAGS: usize = 1_000;

/// What may have changed since the last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Anything: which releases there are, and each of them.
    Everything,
    /// These names below the releases directory came, went or have other contents. At least one; also names whose directory is gone.
    Tags(BTreeSet<ReleaseTag>),
}

/// Why there are no notifications.
#[derive(Debug, Error)]
pub enum WatchError {
    /// The path is relative and the working directory is gone, or the path is empty.
    #[error("unable to make the path absolute; give the absolute path of the directory")]
    Locate {
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The system gives no notifications at all, or no more of them.
    #[error("unable to watch the file system; raise fs.inotify.max_user_instances and fs.inotify.max_user_watches")]
    Start {
        /// What the system said.
        #[source]
        source: notify::Error,
    },
}

/// Notifications about the releases of one directory source.
#[derive(Debug)]
pub struct DirectoryWatch {
    root: Arc<Path>,
    rescan: time::Interval,
    news: Arc<News>,
    armed: Armed,
}

impl DirectoryWatch {
    /// Watches `root/cluster-stacks`, which need not exist yet. Every `rescan` (at least a second), everything is reported as changed; that
    /// is all as long as the system has no notifications to give, which are asked for again each time.
    ///
    /// Must be called in a tokio runtime.
    pub fn new(root: &Path, rescan: Duration) -> Result<Self, WatchError> {
        let root: Arc<Path> = path::absolute(root)
            .map_err(|source| WatchError::Locate { source })?
            .into();
        let news = Arc::new(News::default());
        let rescan = rescan.max(Duration::from_secs(1));
        let mut rescan = time::interval_at(time::Instant::now() + rescan, rescan);
        rescan.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let armed = Armed::new(&root, &news).unwrap_or_else(|error| {
            warn_of(&error);
            Armed::default()
        });
        Ok(Self {
            root,
            rescan,
            news,
            armed,
        })
    }

    /// Waits for the next change. Cancel-safe: what was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Change {
        loop {
            if self.news.is_empty() {
                tokio::select! {
                    () = self.news.arrived.notified() => {}
                    _ = self.rescan.tick() => self.news.add(Change::Everything),
                }
            }
            let burst = async { while time::timeout(QUIET, self.news.arrived.notified()).await.is_ok() {} };
            // Quiet or not, what there is by now is told.
            let _ = time::timeout(LONGEST_BURST, burst).await;
            if self.news.is_everything() {
                self.follow_the_way().await;
            }
            if let Some(change) = self.news.take() {
                return change;
            }
        }
    }

    /// Watches the directories that stand at the paths now. On failure the old watch stays until the next change or rescan.
    async fn follow_the_way(&mut self) {
        let (root, news, way) = (Arc::clone(&self.root), Arc::clone(&self.news), self.armed.way.clone());
        let arming = task::spawn_blocking(move || (stations(&root) != way).then(|| Armed::new(&root, &news)));
        match arming.await {
            Ok(Some(Ok(armed))) => self.armed = armed,
            Ok(Some(Err(error))) => warn_of(&error),
            Ok(None) | Err(_) => {}
        }
    }
}

fn warn_of(error: &WatchError) {
    let cause = error.source().map(ToString::to_string);
    tracing::warn!(%error, cause, "releases are only looked at in intervals");
}

/// A running watch and the directories that it holds; by default none.
#[derive(Debug, Default)]
struct Armed {
    way: Vec<Station>,
    /// Stops with the value.
    _watcher: Option<RecommendedWatcher>,
}

/// A directory on the way to the releases. A notification belongs to the directory, not to its path, so another directory needs another watch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Station {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Armed {
    /// Watches what is there. A directory that appears between looking and watching would be missed, so it looks again.
    fn new(root: &Arc<Path>, news: &Arc<News>) -> Result<Self, WatchError> {
        let mut way = stations(root);
        loop {
            let armed = Self {
                _watcher: Some(watcher(root, &way, news)?),
                way: way.clone(),
            };
            way = stations(root);
            if way == armed.way {
                return Ok(armed);
            }
        }
    }
}

/// The nearest directory above the root that exists, the root and the releases directory, as far as they exist.
fn stations(root: &Path) -> Vec<Station> {
    let station = |path: &Path| {
        let status = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        Some(Station {
            path: path.to_owned(),
            device: status.dev(),
            inode: status.ino(),
        })
    };
    let above = root.ancestors().skip(1).find_map(station);
    above
        .into_iter()
        .chain(station(root))
        .chain(station(&root.join(RELEASES_DIRECTORY)))
        .collect()
}

fn watcher(root: &Arc<Path>, way: &[Station], news: &Arc<News>) -> Result<RecommendedWatcher, WatchError> {
    let handler = {
        let (root, releases, news) = (Arc::clone(root), root.join(RELEASES_DIRECTORY), Arc::clone(news));
        move |event: notify::Result<Event>| match event {
            Ok(event) => {
                if let Some(change) = meaning(&event, &root, &releases) {
                    news.add(change);
                }
            }
            Err(_) => news.add(Change::Everything),
        }
    };
    let config = notify::Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(handler, config).map_err(|source| WatchError::Start { source })?;
    for Station { path, .. } in way {
        let releases = path.ends_with(RELEASES_DIRECTORY) && path.parent() == Some(root);
        let mode = if releases {
            RecursiveMode::Recursive
        } else {
            RecursiveMode::NonRecursive
        };
        match watcher.watch(path, mode) {
            Ok(()) => {}
            // It went since it was seen; the directory above tells.
            Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
            Err(error) if matches!(&error.kind, notify::ErrorKind::Io(source) if source.kind() == io::ErrorKind::NotFound) =>
                {}
            Err(source) => return Err(WatchError::Start { source }),
        }
    }
    Ok(watcher)
}

/// What an event says about releases, if anything. Reading is no change: our own would wake us for ever.
fn meaning(event: &Event, root: &Path, releases: &Path) -> Option<Change> {
    if event.need_rescan() {
        return Some(Change::Everything);
    }
    if matches!(event.kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write)) {
        return None;
    }
    let mut tags = BTreeSet::new();
    for path in &event.paths {
        match path.strip_prefix(releases).map(|below| below.components().next()) {
            // Names that are no tags, and the temporary names of those who write, are nobody's business.
            Ok(Some(name)) => tags.extend(
                name.as_os_str()
                    .to_str()
                    .and_then(|name| name.parse::<ReleaseTag>().ok()),
            ),
            Ok(None) => return Some(Change::Everything),
            Err(_) if root.starts_with(path) => return Some(Change::Everything),
            Err(_) => {}
        }
    }
    (!tags.is_empty()).then_some(Change::Tags(tags))
}

/// What was not told yet.
#[derive(Debug, Default)]
struct News {
    pending: Mutex<Option<Change>>,
    arrived: Notify,
}

impl News {
    fn add(&self, change: Change) {
        let mut pending = self.lock();
        *pending = Some(match (pending.take(), change) {
            (Some(Change::Tags(mut tags)), Change::Tags(more)) if tags.len() < MAX_TAGS => {
                tags.extend(more);
                Change::Tags(tags)
            }
            (None, change) => change,
            _ => Change::Everything,
        });
        drop(pending);
        self.arrived.notify_one();
    }

    fn take(&self) -> Option<Change> {
        self.lock().take()
    }

    fn is_empty(&self) -> bool {
        self.lock().is_none()
    }

    fn is_everything(&self) -> bool {
        *self.lock() == Some(Change::Everything)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Change>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
