//! File system notifications for any number of directories from one source of the system, which has few: a common limit is 128.
//!
//! Says at which path something happened, and to whom; what that means is the business of whoever asked.

use std::{
    collections::BTreeMap,
    io, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::runtime::Handle;

use super::WatchError;

/// Whoever is told what happened at directories that are held for it.
pub(super) trait Listener: Send + Sync {
    /// Something happened, or may have happened anywhere. Called by the thread that delivers to all: must not wait.
    fn hear(&self, event: &notify::Result<Event>);
}

/// Notifications for all that share this value; clones do. The system is asked for them when somebody needs them.
#[derive(Clone, Default)]
pub struct Notifications {
    listeners: Arc<RwLock<Vec<Weak<dyn Listener>>>>,
    /// The thread that delivers is waited for under this lock, and never takes it.
    directories: Arc<Mutex<Directories>>,
    refused: Arc<AtomicBool>,
}

impl std::fmt::Debug for Notifications {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Notifications").finish_non_exhaustive()
    }
}

/// A directory to be held. A notification belongs to the directory, not to its path: another one at the same path needs another watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// Without links, so that one directory has one path.
    pub(super) path: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Whether everything below it belongs to it.
    pub(super) recursive: bool,
}

/// Directories that are watched until the value is dropped.
#[derive(Debug)]
pub(super) struct Held {
    notifications: Notifications,
    paths: Vec<PathBuf>,
}

impl Notifications {
    /// From now on the listener hears of everything that happens at the directories that anybody holds.
    pub(super) fn tell(&self, listener: &Arc<dyn Listener>) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// Watches directories; those that went meanwhile are left out. Waits for the file system.
    pub(super) fn hold(&self, directories: &[Directory]) -> Result<Held, WatchError> {
        let mut held = Held {
            notifications: self.clone(),
            paths: Vec::new(),
        };
        let mut known = self.directories();
        for directory in directories {
            match known.hold(directory, || self.deliverer()) {
                Ok(()) => held.paths.push(directory.path.clone()),
                Err(error) if went(&error) => {}
                Err(source) => return Err(WatchError::Start { source }),
            }
        }
        Ok(held)
    }

    /// Whether the system refused notifications at the last attempt of anybody; notes how this one ended.
    pub(super) fn refused_before(&self, now: bool) -> bool {
        self.refused.swap(now, Ordering::Relaxed)
    }

    fn deliverer(&self) -> notify::Result<RecommendedWatcher> {
        let listeners = Arc::downgrade(&self.listeners);
        let deliver = move |event: notify::Result<Event>| {
            let Some(listeners) = listeners.upgrade() else { return };
            let listeners = listeners.read().unwrap_or_else(PoisonError::into_inner);
            for listener in listeners.iter().filter_map(Weak::upgrade) {
                listener.hear(&event);
            }
        };
        RecommendedWatcher::new(deliver, notify::Config::default().with_follow_symlinks(false))
    }

    fn directories(&self) -> MutexGuard<'_, Directories> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (notifications, paths) = (self.notifications.clone(), mem::take(&mut self.paths));
        let release = move || {
            let mut directories = notifications.directories();
            for path in paths {
                directories.release(&path);
            }
        };
        // It may wait for somebody who waits for the file system.
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(release)),
            Err(_) => release(),
        }
    }
}

/// What is watched, and how often it was asked for.
#[derive(Default)]
struct Directories {
    watcher: Option<RecommendedWatcher>,
    held: BTreeMap<PathBuf, Watched>,
}

struct Watched {
    directory: Directory,
    holders: usize,
}

impl Directories {
    fn hold(
        &mut self,
        directory: &Directory,
        start: impl FnOnce() -> notify::Result<RecommendedWatcher>,
    ) -> notify::Result<()> {
        if self.watcher.is_none() {
            self.watcher = Some(start()?);
        }
        let path = directory.path.as_path();
        let known = self.held.get(path);
        let wanted = Directory {
            recursive: directory.recursive || known.is_some_and(|known| known.directory.recursive),
            ..directory.clone()
        };
        let holders = known.map_or(0, |known| known.holders) + 1;
        if known.is_none_or(|known| known.directory != wanted) {
            if known.is_some() {
                self.unwatch(path);
            }
            self.watch(&wanted)?;
        }
        let watched = Watched {
            directory: wanted,
            holders,
        };
        self.held.insert(path.to_owned(), watched);
        Ok(())
    }

    fn release(&mut self, path: &Path) {
        let Some(watched) = self.held.get_mut(path) else { return };
        watched.holders -= 1;
        if watched.holders == 0 {
            self.held.remove(path);
            if !self.is_below_recursive(path) {
                self.unwatch(path);
            }
        }
    }

    fn watch(&mut self, directory: &Directory) -> notify::Result<()> {
        // A directory that is watched by itself is no longer watched with what is above it.
        let mode = if directory.recursive || self.is_below_recursive(&directory.path) {
            RecursiveMode::Recursive
        } else {
            RecursiveMode::NonRecursive
        };
        match &mut self.watcher {
            Some(watcher) => watcher.watch(&directory.path, mode),
            None => Ok(()),
        }
    }

    /// Ends the watch at a path. What is held below it may have gone with it, and is watched again.
    fn unwatch(&mut self, path: &Path) {
        if let Some(watcher) = &mut self.watcher {
            // It ended by itself when the directory went.
            let _ = watcher.unwatch(path);
        }
        let below = |other: &&Watched| other.directory.path != path && other.directory.path.starts_with(path);
        let below: Vec<Directory> = self
            .held
            .values()
            .filter(below)
            .map(|held| held.directory.clone())
            .collect();
        for directory in below {
            // Gone: then whoever holds it finds another way.
            let _ = self.watch(&directory);
        }
    }

    fn is_below_recursive(&self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.any(|above| self.held.get(above).is_some_and(|held| held.directory.recursive))
    }
}

/// Whether a watch failed because there is nothing any more; the directory above tells.
fn went(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(source) => source.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}
