//! A temporary folder for two services, removed with its owner. The owner of a program's tests may never be dropped: what a process left
//! behind is removed by the next one, which knows by a lock of the kernel whether the owner lives.

use std::{
    env,
    fs::{self, File, TryLockError},
    path::Path,
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

const PREFIX: &str = "stackwright-openstack-";
const LOCK: &str = "lock";

/// A folder that this process owns.
#[derive(Debug)]
pub(super) struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    pub(super) fn new() -> Result<Self> {
        let parent = env::temp_dir();
        remove_abandoned(&parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent);
        let folder = folder.with_context(|| format!("failed to make a folder in {}", parent.display()))?;
        let path = folder.path().join(LOCK);
        let lock = File::create(&path).with_context(|| format!("failed to make {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder, _lock: lock }),
            Err(TryLockError::WouldBlock) => bail!("{} is locked by somebody else", path.display()),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("failed to lock {}", path.display())),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Best effort: folders of other users stay theirs, and one that has no lock yet is just being made.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
    for folder in folders.filter(|folder| is_ours(folder.as_path())) {
        let lock = File::open(folder.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(PREFIX)
}
