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
    Event, EventKind,
    event::{AccessKind, AccessMode},
};
use thiserror::Error;
use tokio::{
    sync::Notify,
    task::{self, JoinHandle},
    time,
};

use super::{
    RELEASES_DIRECTORY,
    notifications::{Directory, Held, Listener, Notifications},
};

/// A release is copied as several files; reporting the first at once would only show it incomplete.
const QUIET: Duration = Duration::from_millis(100);
/// A directory that never becomes quiet is still reported this often.
const LONGEST_BURST: Duration = Duration::from_secs(1);
/// Longest wait for a storage that does not answer; then it is watched at the next rescan, if it answers by then.
const ARMING: Duration = Duration::from_secs(10);
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
    rescan: time::Interval,
    notifications: Notifications,
    route: Arc<Route>,
    held: Option<Held>,
    /// Still waits for a storage that does not answer.
    arming: Option<JoinHandle<Arming>>,
}

/// Nothing where the way is held already.
type Arming = Option<Result<Held, WatchError>>;

impl DirectoryWatch {
    /// Watches `root/cluster-stacks`, which need not exist yet. Every `rescan` (at least a second), everything is reported as changed; that
    /// is all as long as the system has no notifications to give, which are asked for again each time.
    pub async fn new(root: &Path, rescan: Duration, notifications: &Notifications) -> Result<Self, WatchError> {
        let root = path::absolute(root).map_err(|source| WatchError::Locate { source })?;
        let route = Arc::new(Route {
            root,
            way: Mutex::default(),
            news: News::default(),
        });
        let listener: Arc<dyn Listener> = route.clone();
        notifications.tell(&listener);
        let rescan = rescan.max(Duration::from_secs(1));
        let mut rescan = time::interval_at(time::Instant::now() + rescan, rescan);
        rescan.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut watch = Self {
            rescan,
            notifications: notifications.clone(),
            route,
            held: None,
            arming: None,
        };
        watch.follow_the_way().await;
        Ok(watch)
    }

    /// Waits for the next change. Cancel-safe: what was not returned is returned by the next call.
    pub async fn changed(&mut self) -> Change {
        loop {
            let news = &self.route.news;
            if news.is_empty() {
                tokio::select! {
                    () = news.arrived.notified() => {}
                    _ = self.rescan.tick() => news.add(Change::Everything),
                }
            }
            let burst = async { while time::timeout(QUIET, news.arrived.notified()).await.is_ok() {} };
            // Quiet or not, what there is by now is told.
            let _ = time::timeout(LONGEST_BURST, burst).await;
            if news.is_everything() {
                self.follow_the_way().await;
            }
            if let Some(change) = self.route.news.take() {
                return change;
            }
        }
    }

    /// Watches the directories that stand at the paths now. On failure the old watch stays until the next change or rescan.
    async fn follow_the_way(&mut self) {
        let mut arming = self.arming.take().unwrap_or_else(|| self.begin_arming());
        match time::timeout(ARMING, &mut arming).await {
            Ok(Ok(Some(Ok(held)))) => {
                if self.notifications.refused_before(false) {
                    tracing::info!("the system notifies of changes of releases again");
                }
                self.held = Some(held);
            }
            Ok(Ok(Some(Err(error)))) => self.not_notified(&error),
            Ok(Ok(None) | Err(_)) => {}
            Err(_) => {
                tracing::debug!(root = %self.route.root.display(), "the storage does not answer; it is watched when it does");
                self.arming = Some(arming);
            }
        }
    }

    fn begin_arming(&self) -> JoinHandle<Arming> {
        let (route, notifications) = (Arc::clone(&self.route), self.notifications.clone());
        let is_held = self.held.is_some();
        task::spawn_blocking(move || {
            let is_current = is_held && stations(&route.root) == *route.way();
            (!is_current).then(|| arm(&route, &notifications))
        })
    }

    /// Says once that there are no notifications, however many watches want them.
    fn not_notified(&self, error: &WatchError) {
        let cause = error.source().map(ToString::to_string).unwrap_or_default();
        let root = self.route.root.display();
        if self.notifications.refused_before(true) {
            tracing::debug!(%root, error = format!("{error}: {cause}"), "releases are still only looked at in intervals");
        } else {
            tracing::warn!(%root, error = format!("{error}: {cause}"), "releases are only looked at in intervals");
        }
    }
}

/// Where a source is, and where its news go.
#[derive(Debug)]
struct Route {
    root: PathBuf,
    /// The directories that lead to the releases, as far as they are watched.
    way: Mutex<Vec<Station>>,
    news: News,
}

impl Route {
    fn way(&self) -> MutexGuard<'_, Vec<Station>> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Route {
    fn hear(&self, event: &notify::Result<Event>) {
        let change = match event {
            Ok(event) => meaning(event, &self.root, &self.way()),
            Err(_) => Some(Change::Everything),
        };
        if let Some(change) = change {
            self.news.add(change);
        }
    }
}

/// A directory on the way to the releases, under the path that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Station {
    path: PathBuf,
    directory: Directory,
}

/// Watches what is there. A directory that appears between looking and watching would be missed, so it looks again.
fn arm(route: &Route, notifications: &Notifications) -> Result<Held, WatchError> {
    let before = route.way().clone();
    let mut way = stations(&route.root);
    loop {
        let directories: Vec<Directory> = way.iter().map(|station| station.directory.clone()).collect();
        // Before the first event.
        route.way().clone_from(&way);
        let held = notifications
            .hold(&directories)
            .inspect_err(|_| route.way().clone_from(&before))?;
        let now = stations(&route.root);
        if now == way {
            return Ok(held);
        }
        way = now;
    }
}

/// The nearest directory above the root that exists, the root and the releases directory, as far as they exist.
fn stations(root: &Path) -> Vec<Station> {
    let station = |path: &Path| {
        let status = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
        let directory = Directory {
            path: path.canonicalize().ok()?,
            device: status.dev(),
            inode: status.ino(),
            recursive: false,
        };
        Some(Station {
            path: path.to_owned(),
            directory,
        })
    };
    let releases = station(&root.join(RELEASES_DIRECTORY)).map(|mut releases| {
        releases.directory.recursive = true;
        releases
    });
    let above = root.ancestors().skip(1).find_map(station);
    above.into_iter().chain(station(root)).chain(releases).collect()
}

/// What an event says about the releases below a root, if anything. Reading is no change: our own would wake us for ever.
fn meaning(event: &Event, root: &Path, way: &[Station]) -> Option<Change> {
    if event.need_rescan() {
        return Some(Change::Everything);
    }
    if matches!(event.kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write)) {
        return None;
    }
    let releases = root.join(RELEASES_DIRECTORY);
    let mut tags = BTreeSet::new();
    for path in &event.paths {
        for Station { path: known, directory } in way {
            let Ok(rest) = path.strip_prefix(&directory.path) else {
                continue;
            };
            let path = known.join(rest);
            match path.strip_prefix(&releases).map(|below| below.components().next()) {
                // Names that are no tags, and the temporary names of those who write, are nobody's business.
                Ok(Some(name)) => tags.extend(
                    name.as_os_str()
                        .to_str()
                        .and_then(|name| name.parse::<ReleaseTag>().ok()),
                ),
                Ok(None) => return Some(Change::Everything),
                Err(_) if root.starts_with(&path) => return Some(Change::Everything),
                Err(_) => {}
            }
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
