//! The one pass over the directory of a release: hash every file while others look into it, and notice if anything moved meanwhile.

use std::{
    collections::BTreeMap,
    fs::{self, File, Metadata as Status},
    io::{self, Read},
    mem,
    os::unix::fs::MetadataExt,
    path::Path,
    time::Duration,
};

use crds::names::ReleaseTag;

use super::{
    FileRef, MAX_FILES, Purpose, Release, ReleaseError, bounded_together, is_file_name, limit,
    understanding::{Files, understand},
};
use crate::{digest::HashingReader, trust::sums::is_beside};

/// What identifies the content of a file without reading it: no write leaves all of this as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(status: &Status) -> Self {
        Self {
            device: status.dev(),
            inode: status.ino(),
            size: status.size(),
            modified: (status.mtime(), status.mtime_nsec()),
            changed: (status.ctime(), status.ctime_nsec()),
        }
    }

    /// Bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// When the file was written or renamed last, in Unix time.
    pub(crate) fn changed_at(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanoseconds).unwrap_or_default(),
        )
    }
}

/// The files of a release with what identifies their content, by name.
pub(crate) type Stamps = BTreeMap<String, Stamp>;

/// Which files there are. Names that begin with a dot are not part of a release: editors and copying tools write beside the file they replace.
pub(crate) fn stamps(directory: &Path) -> Result<Stamps, ReleaseError> {
    let unreadable = |source| ReleaseError::ReadDirectory { source };
    let (mut stamps, mut count) = (Stamps::new(), 0);
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with('.') {
            continue;
        }
        if !is_file_name(&file) {
            return Err(ReleaseError::FileName { file });
        }
        // What vouches for a release is no part of it: who signs it makes it no larger.
        if !is_beside(&file) {
            if count == MAX_FILES {
                return Err(ReleaseError::TooManyFiles { file });
            }
            count += 1;
        }
        let status = match entry.metadata() {
            Ok(status) => status,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Err(ReleaseError::Changed { file }),
            Err(source) => return Err(ReleaseError::ReadFile { file, source }),
        };
        if !status.is_file() {
            return Err(ReleaseError::NotAFile {
                file,
                kind: kind_of(&status),
            });
        }
        stamps.insert(file, Stamp::of(&status));
    }
    Ok(stamps)
}

fn kind_of(status: &Status) -> &'static str {
    if status.is_symlink() {
        "a symbolic link"
    } else if status.is_dir() {
        "a directory"
    } else {
        "a device, pipe or socket"
    }
}

pub(super) fn open(purpose: Purpose, directory: &Path, tag: &ReleaseTag) -> Result<Release, ReleaseError> {
    let stamps = stamps(directory)?;
    let parts = stamps.iter().filter(|(name, _)| !is_beside(name));
    // One that is too large by itself is told by its name.
    bounded_together(parts.map(|(name, stamp)| stamp.size.min(limit(name))).sum())?;
    let mut reading = Reading {
        directory,
        stamps,
        files: BTreeMap::new(),
    };
    understand(&mut reading, purpose, tag, directory)
}

/// The files read so far, and what there was to read when it began.
struct Reading<'directory> {
    directory: &'directory Path,
    stamps: Stamps,
    files: BTreeMap<String, FileRef>,
}

impl Files for Reading<'_> {
    type Error = ReleaseError;

    fn has(&self, name: &str) -> bool {
        self.stamps.contains_key(name)
    }

    /// Proves that it stayed the same file of the same size.
    fn read<T>(
        &mut self,
        name: &str,
        advice: &'static str,
        look: impl FnOnce(&mut dyn Read) -> Result<T, ReleaseError>,
    ) -> Result<(FileRef, T), ReleaseError> {
        let stamp = self.stamps.get(name).ok_or_else(|| ReleaseError::MissingFile {
            file: name.to_owned(),
            advice,
        })?;
        let limit = limit(name);
        if stamp.size > limit {
            return Err(ReleaseError::FileTooLarge {
                file: name.to_owned(),
                size: stamp.size,
                limit,
            });
        }
        let unreadable = |source| ReleaseError::ReadFile {
            file: name.to_owned(),
            source,
        };
        let changed = || ReleaseError::Changed { file: name.to_owned() };
        let opened = File::open(self.directory.join(name)).map_err(unreadable)?;
        // Also the proof that no link took the file's place since the directory was listed: opening follows it, to another inode.
        let same = |opened: &File| {
            opened
                .metadata()
                .map(|status| Stamp::of(&status) == *stamp)
                .map_err(unreadable)
        };
        if !same(&opened)? {
            return Err(changed());
        }
        let handle = opened.try_clone().map_err(unreadable)?;
        let mut reader = HashingReader::new(opened.take(limit + 1));
        let looked = look(&mut reader);
        if !same(&handle)? {
            return Err(changed());
        }
        let found = looked?;
        let (sha256, size) = reader.finish().map_err(unreadable)?;
        if size != stamp.size || !same(&handle)? {
            return Err(changed());
        }
        let file = FileRef {
            name: name.to_owned(),
            size,
            sha256,
        };
        self.files.insert(file.name.clone(), file.clone());
        Ok((file, found))
    }

    /// Gives them only if the directory is still what it was in the beginning.
    fn finish(&mut self) -> Result<Vec<FileRef>, ReleaseError> {
        let names: Vec<String> = self
            .stamps
            .keys()
            .filter(|name| !self.files.contains_key(*name) && !is_beside(name))
            .cloned()
            .collect();
        for name in names {
            self.read(&name, "", |_| Ok(()))?;
        }
        let now = stamps(self.directory)?;
        match self
            .stamps
            .iter()
            .find(|(name, stamp)| now.get(*name) != Some(stamp))
            .or_else(|| now.iter().find(|(name, _)| !self.stamps.contains_key(*name)))
        {
            Some((name, _)) => Err(ReleaseError::Changed { file: name.clone() }),
            None => Ok(mem::take(&mut self.files).into_values().collect()),
        }
    }
}
