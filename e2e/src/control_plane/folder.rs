//! The folder of one control plane: made for it, locked while it runs, removed with it.
//!
//! A lock of the kernel on a file in the folder says whether its owner lives, however that owner may have ended. So the
//! folders that a killed test leaves behind are found, and removed by the next start.

use std::{
    env,
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

const LOCK: &str = "lock";
const PREFIX: &str = "stackwright-control-plane-";
/// Not yet locked: nobody may judge it abandoned.
const UNFINISHED_PREFIX: &str = "stackwright-unfinished-";

/// A folder that this process owns. Dropped, it is removed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    lock: Option<File>,
}

impl Folder {
    /// A new folder under the system's temporary one; abandoned ones are removed on the way.
    pub(crate) fn temporary() -> Result<Self> {
        let parent = env::temp_dir();
        remove_abandoned(&parent);
        let unfinished = tempfile::Builder::new()
            .prefix(UNFINISHED_PREFIX)
            .tempdir_in(&parent)
            .with_context(|| format!("failed to make a folder in {}", parent.display()))?;
        let lock = try_lock(unfinished.path())?.context("a folder just made is locked by somebody else")?;
        let name = unfinished
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace(UNFINISHED_PREFIX, PREFIX);
        let path = parent.join(name);
        let unfinished = unfinished.keep();
        fs::rename(&unfinished, &path).with_context(|| format!("failed to rename {}", unfinished.display()))?;
        Ok(Self { path, lock: Some(lock) })
    }

    /// The folder at `path`, emptied. Refused when it is in use, or holds files and was never a control plane's.
    pub(super) fn at(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("failed to make {}", path.display()))?;
        // The programs run in this folder and are given paths in it.
        let path = path
            .canonicalize()
            .with_context(|| format!("unable to find {}", path.display()))?;
        let entries = list(&path)?;
        if !entries.is_empty() && !path.join(LOCK).exists() {
            bail!(
                "{} holds files that are not a control plane's: choose another folder",
                path.display()
            );
        }
        let Some(lock) = try_lock(&path)? else {
            bail!("a control plane runs in {}", path.display());
        };
        empty(&path)?;
        Ok(Self { path, lock: Some(lock) })
    }

    /// Whether a control plane runs in the folder at `path`.
    pub fn is_in_use(path: &Path) -> Result<bool> {
        Ok(path.join(LOCK).exists() && try_lock(path)?.is_none())
    }

    /// Where it is: an absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, once: afterwards the path may be somebody else's.
    pub(crate) fn remove(&mut self) -> Result<()> {
        let Some(_lock) = self.lock.take() else { return Ok(()) };
        // The file of the lock goes last: until then the folder is known to be ours and in use.
        empty(&self.path)?;
        fs::remove_dir_all(&self.path).with_context(|| format!("failed to remove {}", self.path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is removed by the next start.
        let _ = self.remove();
    }
}

/// Removes everything but the lock.
fn empty(folder: &Path) -> Result<()> {
    for entry in list(folder)?.iter().filter(|entry| !entry.ends_with(LOCK)) {
        let removed = if entry.is_dir() {
            fs::remove_dir_all(entry)
        } else {
            fs::remove_file(entry)
        };
        removed.with_context(|| format!("failed to remove {}", entry.display()))?;
    }
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.with_context(|| format!("failed to list {}", folder.display()))
}

/// `None` when somebody else holds the lock.
fn try_lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("failed to lock {}", path.display())),
    }
}

/// Best effort: folders of other users stay theirs.
fn remove_abandoned(parent: &Path) {
    let Ok(folders) = list(parent) else { return };
    for folder in folders {
        let ours = folder
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if ours && let Ok(Some(_lock)) = try_lock(&folder) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}
