//! The store as files, and every effect on them. Blocks; knows names and order of writes, and decides nothing.
//!
//! What counts as there is put in place by one rename, after everything in it was synced: whoever is killed at any point leaves a release whole
//! or not at all, and otherwise only something in a workspace.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use super::space::Shown;
#[cfg(test)]
use super::tests::step;
use crate::{Digest, digest::HashingWriter, files::Stamp};

/// One directory per release, named by its digest, with exactly its files.
const CONTENTS: &str = "sha256";
/// One file per answer of a source that told no digests: the digest that its files turned out to have.
const IDENTITIES: &str = "identities";
/// One file per release and origin: what the origin had to show for it.
const EVIDENCE: &str = "evidence";
/// One directory per process, for everything that is not whole yet or not any more.
const WORKSPACE: &str = ".partial-";
/// Locked in its workspace for as long as a process lives.
const LOCK: &str = "lock";
/// A workspace is taken away from its owner only between two system calls of its creation.
const ATTEMPTS: usize = 16;

/// Stands before every effect on the disk; tests end the process here.
#[cfg(not(test))]
fn step() {}

/// The files of a store.
#[derive(Debug)]
pub(super) struct Disk {
    directory: PathBuf,
    workspace: Mutex<Option<Workspace>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Workspace {
    path: PathBuf,
    /// Holds the lock until the process ends, however it ends.
    _lock: File,
}

/// What one origin had to show for a release, as it is written down.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) origin: Digest,
    pub(super) bytes: u64,
    pub(super) since: SystemTime,
}

/// A release that is being written. What is dropped is removed.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) path: PathBuf,
}

impl Disk {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            workspace: Mutex::default(),
            next: AtomicU64::default(),
        }
    }

    /// The directory of the store.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the release of this digest lies, if it is there.
    pub(super) fn content(&self, digest: Digest) -> PathBuf {
        self.directory.join(CONTENTS).join(digest.hex())
    }

    /// Makes sure that there is somewhere to write, also when somebody tidied up meanwhile.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.workspace().map(drop)
    }

    /// Removes what processes left behind that do not live any more. Several processes may do this at once.
    pub(super) fn clean(&self) -> io::Result<()> {
        let mut cleaned = Ok(());
        for name in names(&self.directory)? {
            if !name.starts_with(WORKSPACE) {
                continue;
            }
            match clean_workspace(&self.directory, &name) {
                Ok(()) => {}
                // Somebody else is at it.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                Err(error) => cleaned = Err(error),
            }
        }
        cleaned
    }

    /// The releases that are there, with the time of their last use.
    pub(super) fn contents(&self) -> io::Result<BTreeMap<Digest, SystemTime>> {
        let mut contents = BTreeMap::new();
        for name in names(&self.directory.join(CONTENTS))? {
            let Some(digest) = digest_of_name(&name) else { continue };
            match fs::symlink_metadata(self.content(digest)) {
                Ok(status) => {
                    contents.insert(digest, status.modified()?);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(contents)
    }

    /// Notes in the file system that a release is used now.
    pub(super) fn touch(&self, digest: Digest) -> io::Result<()> {
        step();
        File::open(self.content(digest))?.set_modified(SystemTime::now())
    }

    /// Begins a release.
    pub(super) fn partial(&self) -> io::Result<Partial> {
        let path = self.fresh()?;
        step();
        fs::create_dir(&path)?;
        Ok(Partial { path })
    }

    /// Puts a release, synced, where its digest says. An error of kind `AlreadyExists` or `DirectoryNotEmpty` when something is there.
    pub(super) fn publish(&self, partial: &Partial, digest: Digest) -> io::Result<()> {
        step();
        sync(&partial.path)?;
        step();
        fs::rename(&partial.path, self.content(digest))?;
        step();
        sync(&self.directory.join(CONTENTS))
    }

    /// Takes a release away, whatever lies there.
    pub(super) fn discard(&self, digest: Digest) -> io::Result<()> {
        let path = self.fresh()?;
        step();
        match fs::rename(self.content(digest), &path) {
            Ok(()) => remove(&path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Every identity that is written down with what it stands for. What cannot be read as one is not one.
    pub(super) fn identities(&self) -> io::Result<BTreeMap<Digest, Digest>> {
        let directory = self.directory.join(IDENTITIES);
        let named = names(&directory)?;
        let read = named.iter().filter_map(|name| {
            let digest = fs::read_to_string(directory.join(name)).ok()?;
            Some((digest_of_name(name)?, digest.trim_end().parse().ok()?))
        });
        Ok(read.collect())
    }

    /// Writes down what an identity stands for.
    pub(super) fn remember(&self, identity: Digest, digest: Digest) -> io::Result<()> {
        self.put(&self.identity(identity), format!("{digest}\n").as_bytes())
    }

    /// Writes down what an origin had to show for a release, in place of what it had before.
    pub(super) fn vouch(&self, release: Digest, origin: Digest, evidence: &[u8]) -> io::Result<()> {
        self.put(&self.evidence_path(release, origin), evidence)
    }

    /// What an origin had to show for a release, if that is written down in so many bytes. An error of kind `NotFound` where it is not.
    pub(super) fn evidence(&self, release: Digest, origin: Digest, limit: u64) -> io::Result<Vec<u8>> {
        let mut written = Vec::new();
        let file = File::open(self.evidence_path(release, origin))?;
        file.take(limit).read_to_end(&mut written)?;
        Ok(written)
    }

    /// What there is to show, by release.
    pub(super) fn all_evidence(&self) -> BTreeMap<Digest, Vec<Written>> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for (release, origin) in self.evidence_names() {
            let status = fs::symlink_metadata(self.evidence_path(release, origin));
            // What is gone meanwhile is not there.
            let written = status.and_then(|status| Ok((status.len(), status.modified()?)));
            if let Ok((bytes, since)) = written {
                all.entry(release).or_default().push(Written { origin, bytes, since });
            }
        }
        all
    }

    /// Bytes of what an origin had to show for a release.
    pub(super) fn evidence_bytes(&self, release: Digest, origin: Digest) -> u64 {
        let status = fs::symlink_metadata(self.evidence_path(release, origin));
        status.map_or(0, |status| status.len())
    }

    /// Removes what an origin had to show for a release.
    pub(super) fn withdraw(&self, shown: Shown) -> io::Result<()> {
        step();
        fs::remove_file(self.evidence_path(shown.release, shown.origin))
    }

    /// Removes what there was to show that is of no use any more. What is asked about each is asked after it was seen.
    pub(super) fn forget_evidence(&self, is_useless: impl Fn(Shown) -> bool) {
        for (release, origin) in self.evidence_names() {
            let shown = Shown { release, origin };
            if is_useless(shown) {
                // What stays is found again by the next start.
                let _ = self.withdraw(shown);
            }
        }
    }

    fn evidence_names(&self) -> Vec<(Digest, Digest)> {
        // Of a folder that cannot be listed nothing can be removed either.
        let names = names(&self.directory.join(EVIDENCE)).unwrap_or_default();
        let digests = names.iter().filter_map(|name| {
            let (release, origin) = name.split_once('-')?;
            Some((digest_of_name(release)?, digest_of_name(origin)?))
        });
        digests.collect()
    }

    fn evidence_path(&self, release: Digest, origin: Digest) -> PathBuf {
        let name = format!("{}-{}", release.hex(), origin.hex());
        self.directory.join(EVIDENCE).join(name)
    }

    /// Puts a small file, whole and synced, in the place of what was there.
    fn put(&self, place: &Path, content: &[u8]) -> io::Result<()> {
        let path = self.fresh()?;
        let put = write_whole(&path, content).and_then(|()| {
            step();
            fs::rename(&path, place)
        });
        if put.is_err() {
            // A disk that is full has no room for halves that nobody misses.
            let _ = fs::remove_file(&path);
        }
        put?;
        step();
        place.parent().map_or(Ok(()), sync)
    }

    /// Forgets an identity.
    pub(super) fn forget(&self, identity: Digest) -> io::Result<()> {
        step();
        fs::remove_file(self.identity(identity))
    }

    fn identity(&self, identity: Digest) -> PathBuf {
        self.directory.join(IDENTITIES).join(identity.hex())
    }

    /// A path in the workspace of this process that nothing has had.
    fn fresh(&self) -> io::Result<PathBuf> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok(self.workspace()?.join(number.to_string()))
    }

    fn workspace(&self) -> io::Result<PathBuf> {
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever tidies up may take one of them and leave the others.
        for part in [CONTENTS, IDENTITIES, EVIDENCE].map(|part| self.directory.join(part)) {
            if !part.is_dir() {
                step();
                fs::create_dir_all(part)?;
            }
        }
        if let Some(workspace) = workspace.as_ref().filter(|workspace| workspace.path.is_dir()) {
            return Ok(workspace.path.clone());
        }
        let created = workspace.insert(self.create_workspace()?);
        Ok(created.path.clone())
    }

    fn create_workspace(&self) -> io::Result<Workspace> {
        for _ in 0..ATTEMPTS {
            step();
            let path = tempfile::Builder::new()
                .prefix(WORKSPACE)
                .tempdir_in(&self.directory)?
                .keep();
            match claim(&path) {
                Ok(Some(lock)) => return Ok(Workspace { path, _lock: lock }),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("others take away every workspace that is made"))
    }
}

impl Partial {
    /// Begins one of its files.
    pub(super) fn create(&self, name: &str) -> io::Result<HashingWriter<File>> {
        step();
        File::create_new(self.path.join(name)).map(HashingWriter::new)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be removed is removed with the workspace, when this process is gone. After publishing there is nothing.
        let _ = remove(&self.path);
    }
}

/// Removes a workspace, unless its owner lives.
fn clean_workspace(directory: &Path, name: &str) -> io::Result<()> {
    let path = directory.join(name);
    let Some(_lock) = claim(&path)? else {
        return Ok(());
    };
    // Whoever made it a moment ago and has no lock yet sees that it is gone, and makes another.
    let dead = directory.join(format!("{name}-dead"));
    step();
    fs::rename(&path, &dead)?;
    remove(&dead)
}

/// Writes a small file, synced.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    step();
    let mut file = File::create_new(path)?;
    step();
    file.write_all(content)?;
    step();
    file.sync_all()
}

/// Adds to a file.
pub(super) fn write(file: &mut HashingWriter<File>, bytes: &[u8]) -> io::Result<()> {
    step();
    file.write_all(bytes)
}

/// Ends a file: after this it survives the loss of power. Gives digest and size of what was written, and what shows that nobody has written
/// to it since.
pub(super) fn finish(file: HashingWriter<File>) -> io::Result<(Digest, u64, Stamp)> {
    let (file, digest, size) = file.finish();
    step();
    file.sync_all()?;
    Ok((digest, size, Stamp::of(&file.metadata()?)))
}

/// The lock of a workspace, unless somebody else has it. An error of kind `NotFound` when somebody takes the workspace away.
fn claim(workspace: &Path) -> io::Result<Option<File>> {
    let path = workspace.join(LOCK);
    step();
    let lock = OpenOptions::new().create(true).append(true).open(&path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // It may have been renamed before it was locked; from now on nobody does that.
    fs::metadata(&path)?;
    Ok(Some(lock))
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Removes a file, or a directory with everything in it, one after the other.
fn remove(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        step();
        return fs::remove_file(path);
    }
    for entry in fs::read_dir(path)? {
        remove(&entry?.path())?;
    }
    step();
    fs::remove_dir(path)
}

/// The names in a directory; none if it is not there.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn digest_of_name(name: &str) -> Option<Digest> {
    format!("sha256:{name}").parse().ok()
}
