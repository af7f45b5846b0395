//! Everything that happens to the files below a folder, as the kernel tells it, so that a test can end a program right behind the n-th change.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::{
    fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

/// Some dozens of events.
const BUFFER: usize = 8 * 1024;

/// What happened below a folder since it was given here.
#[derive(Debug)]
pub(crate) struct Effects {
    inotify: AsyncFd<OwnedFd>,
    root: PathBuf,
    folders: BTreeMap<i32, PathBuf>,
    /// What came into being, also what came into a new folder before that was watched.
    known: BTreeSet<PathBuf>,
    seen: Vec<String>,
}

/// One event as it is read.
struct Event {
    folder: i32,
    what: ReadFlags,
    name: String,
}

impl Effects {
    /// Watches a folder, which is made if it is not there.
    pub(crate) fn below(root: &Path) -> Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("failed to make {}", root.display()))?;
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).context("failed to watch files")?;
        #[expect(
            deprecated,
            reason = "the other one is unsafe to call, and nobody closes what is owned here"
        )]
        let inotify = AsyncFd::new(inotify)?;
        let mut effects = Self {
            inotify,
            root: root.to_owned(),
            folders: BTreeMap::new(),
            known: BTreeSet::new(),
            seen: Vec::new(),
        };
        effects.watch(root)?;
        Ok(effects)
    }

    /// The effects so far, in order.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Returns when there were so many.
    pub(crate) async fn reach(&mut self, n: usize) -> Result<()> {
        while self.seen.len() < n {
            let events = {
                let mut ready = self.inotify.readable().await?;
                let events = read(ready.get_inner())?;
                ready.clear_ready();
                events
            };
            for event in events {
                self.note(&event)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) -> Result<()> {
        let Some(folder) = self.folders.get(&event.folder).filter(|_| !event.name.is_empty()) else {
            return Ok(());
        };
        let path = folder.join(&event.name);
        let is = |flag| event.what.contains(flag);
        if is(ReadFlags::CREATE) && !self.known.insert(path.clone()) {
            return Ok(());
        }
        if is(ReadFlags::DELETE) {
            self.known.remove(&path);
        }
        self.see(event.what, &path);
        if !is(ReadFlags::ISDIR) {
            return Ok(());
        }
        if is(ReadFlags::CREATE) {
            self.enter(&path)?;
        } else if is(ReadFlags::MOVED_TO) {
            // What is in it was seen before.
            self.watch(&path)?;
        }
        Ok(())
    }

    /// Watches a new folder, and sees what is in it already.
    fn enter(&mut self, folder: &Path) -> Result<()> {
        self.watch(folder)?;
        // It may be gone again.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if self.known.insert(path.clone()) {
                self.see(ReadFlags::CREATE, &path);
                if path.is_dir() {
                    self.enter(&path)?;
                }
            }
        }
        Ok(())
    }

    fn watch(&mut self, folder: &Path) -> Result<()> {
        let effects = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE;
        match add_watch(self.inotify.get_ref(), folder, effects) {
            Ok(number) => {
                self.folders.insert(number, folder.to_owned());
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("failed to watch {}", folder.display())),
        }
    }

    fn see(&mut self, what: ReadFlags, path: &Path) {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        self.seen.push(format!("{what:?} {}", path.display()));
    }
}

/// All that is there now.
fn read(inotify: &OwnedFd) -> Result<Vec<Event>> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER];
    let mut reader = Reader::new(inotify, &mut buffer);
    let mut events = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => events.push(Event {
                folder: event.wd(),
                what: event.events(),
                name: event
                    .file_name()
                    .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            }),
            Err(Errno::WOULDBLOCK) => return Ok(events),
            Err(error) => return Err(error).context("failed to read what happened to files"),
        }
    }
}
