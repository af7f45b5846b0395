//! What lies in one place of the store, and whether it is what its digest says. Reads only.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::Path,
    sync::Arc,
};

use crds::names::ReleaseTag;

use crate::{
    Digest, FileRef, Purpose, Release, ReleaseError,
    digest::HashingReader,
    files::{Stamp, Stamps, stamps},
};

/// What the system says of a disk that cannot give back what it took: `EIO`.
const INPUT_OUTPUT_ERROR: i32 = 5;

/// What the files of one digest are under one tag.
pub(super) type Opened = Result<Arc<Release>, Arc<ReleaseError>>;

/// What lies in a place, by names and time stamps.
pub(super) enum Place {
    Files(Stamps),
    Nothing,
    /// The system does not let us see.
    Unreadable(io::Error),
    /// No flat directory of files, so nothing of ours.
    Foreign,
}

/// What the files in a place are.
pub(super) enum Inspected {
    Release(Arc<Release>),
    /// What the digest says, but no release of this tag.
    Refused(Arc<ReleaseError>),
    Nothing,
    /// The system does not let us see.
    Unreadable(io::Error),
    /// Not what the digest says.
    Rotten,
}

/// What an error of reading says of the place.
enum Meaning {
    Nothing,
    Unreadable(io::Error),
    Wrong(ReleaseError),
}

/// Looks at a place without reading contents.
pub(super) fn place(directory: &Path) -> Place {
    match stamps(directory).map_err(|error| meaning(directory, error)) {
        Ok(stamps) => Place::Files(stamps),
        Err(Meaning::Nothing) => Place::Nothing,
        Err(Meaning::Unreadable(error)) => Place::Unreadable(error),
        Err(Meaning::Wrong(_)) => Place::Foreign,
    }
}

/// Reads all files of a place, which had these time stamps, and holds them against the digest.
pub(super) fn inspect(
    purpose: Purpose,
    directory: &Path,
    before: &Stamps,
    tag: &ReleaseTag,
    digest: Digest,
) -> Inspected {
    match Release::open_for(purpose, directory, tag).map_err(|error| meaning(directory, error)) {
        Ok(release) if release.digest == digest && has_nothing_else(directory, release.files.len()) => {
            Inspected::Release(Arc::new(release))
        }
        Err(Meaning::Nothing) => Inspected::Nothing,
        Err(Meaning::Unreadable(error)) => Inspected::Unreadable(error),
        // The same bytes may be a release under another tag.
        Err(Meaning::Wrong(error)) if is_intact(directory, before, digest) => Inspected::Refused(Arc::new(error)),
        Ok(_) | Err(Meaning::Wrong(_)) => Inspected::Rotten,
    }
}

/// Bytes of these files.
pub(super) fn size(stamps: &Stamps) -> u64 {
    stamps.values().map(Stamp::size).sum()
}

fn meaning(directory: &Path, error: ReleaseError) -> Meaning {
    match error {
        ReleaseError::ReadDirectory { source } | ReleaseError::ReadFile { source, .. }
            if source.raw_os_error() != Some(INPUT_OUTPUT_ERROR) && source.kind() != ErrorKind::NotADirectory =>
        {
            match source.kind() {
                ErrorKind::NotFound => Meaning::Nothing,
                _ => Meaning::Unreadable(source),
            }
        }
        // Another process took it away while it was read.
        _ if fs::symlink_metadata(directory).is_err_and(|error| error.kind() == ErrorKind::NotFound) => {
            Meaning::Nothing
        }
        error => Meaning::Wrong(error),
    }
}

/// Whether the directory has no more than the files of its release: not even hidden ones, or what stands beside releases elsewhere.
fn has_nothing_else(directory: &Path, files: usize) -> bool {
    fs::read_dir(directory).is_ok_and(|entries| entries.count() == files)
}

/// Whether these are the files of this digest, whatever they mean.
fn is_intact(directory: &Path, stamps: &Stamps, digest: Digest) -> bool {
    let hashed = stamps.keys().map(|name| {
        let file = File::open(directory.join(name))?;
        let (sha256, size) = HashingReader::new(file).finish()?;
        Ok(FileRef {
            name: name.clone(),
            size,
            sha256,
        })
    });
    let files: io::Result<Vec<FileRef>> = hashed.collect();
    files.is_ok_and(|files| Digest::of_release(&files) == digest) && has_nothing_else(directory, stamps.len())
}
