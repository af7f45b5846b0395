//! The cache folder: entries named by a hash of what they are made from, complete or absent, never changed. Knows nothing of what they hold.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use anyhow::Context;
use sha2::{Digest, Sha256};

use crate::screen;

/// Holds the lock of the cache folder until it is dropped; a killed process loses it too.
pub(super) struct Cache {
    folder: PathBuf,
    _lock: File,
}

impl Cache {
    /// Waits for another set-up of this user, and says so.
    pub(super) fn lock(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
        let path = folder.join("lock");
        let lock = File::create(&path).with_context(|| format!("failed to open {}", path.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                screen::say(&format!("another set-up is at work: waiting for {}", path.display()));
                lock.lock()
                    .with_context(|| format!("failed to lock {}", path.display()))?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(source).with_context(|| format!("failed to lock {}", path.display()));
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// The folder `kind/key`; when it is not there yet, `fill` makes its content.
    ///
    /// `fill` works in a folder of another name, which takes its place at the end: what an interrupted run leaves is never taken for whole.
    pub(super) fn entry(
        &self,
        kind: &str,
        key: &Key,
        fill: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(kind);
        let entry = folder.join(&key.0);
        if entry.is_dir() {
            return Ok(entry);
        }
        let partial = folder.join(format!("{}.partial", key.0));
        if partial.exists() {
            fs::remove_dir_all(&partial).with_context(|| format!("failed to remove {}", partial.display()))?;
        }
        fs::create_dir_all(&partial).with_context(|| format!("failed to create {}", partial.display()))?;
        fill(&partial)?;
        fs::rename(&partial, &entry).with_context(|| format!("failed to put {} in place", entry.display()))?;
        Ok(entry)
    }
}

/// The name of an entry: a hash of all that its content depends on.
pub(super) struct Key(String);

impl Key {
    /// The order of `parts` counts, and where one ends and the next begins.
    pub(super) fn of<Part: AsRef<[u8]>>(parts: impl IntoIterator<Item = Part>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update(part.len().to_string());
            hash.update(":");
            hash.update(part);
        }
        // Half of the digest keeps paths readable and collisions out of reach.
        Self(hex::encode(&hash.finalize()[..16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_tells_apart_where_a_part_ends() {
        assert_ne!(Key::of(["ab", "c"]).0, Key::of(["a", "bc"]).0);
    }
}
