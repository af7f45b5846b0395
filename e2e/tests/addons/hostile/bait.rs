//! Files that nobody has a reason to open, and who watches over them.

use std::{
    fs,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use rustix::{
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

/// A folder of such files. One of them is a program.
pub(super) struct Bait {
    folder: PathBuf,
    watch: OwnedFd,
}

impl Bait {
    /// Lays it out: each file has the canary in it.
    pub(super) fn lay(folder: &Path, canary: &str) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
        for name in ["canary.txt", "token", "ca.crt", "client.crt", "client.key"] {
            fs::write(folder.join(name), canary).with_context(|| format!("failed to write {name}"))?;
        }
        let program = folder.join("run.sh");
        fs::write(&program, format!("#!/bin/sh\necho {canary}\n")).context("failed to write a program")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).context("failed to make a program of it")?;
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).context("failed to watch a folder")?;
        // Whoever executes a file opens it.
        inotify::add_watch(&watch, folder, WatchFlags::OPEN | WatchFlags::ACCESS)
            .with_context(|| format!("failed to watch {}", folder.display()))?;
        let folder = folder.to_owned();
        let bait = Self { folder, watch };
        fs::read(bait.file("canary.txt")).context("failed to read what was written")?;
        ensure!(!bait.opened()?.is_empty(), "nobody would see it when a file is opened");
        Ok(bait)
    }

    /// The path of one of its files.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// What was opened since it was asked last.
    pub(super) fn opened(&self) -> Result<Vec<String>> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.watch, &mut room);
        let mut opened = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                    opened.push(name.unwrap_or_default());
                }
                Err(Errno::WOULDBLOCK) => return Ok(opened),
                Err(error) => return Err(error).context("failed to read what was opened"),
            }
        }
    }
}
