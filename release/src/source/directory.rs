//! Releases in a directory tree: `ROOT/cluster-stacks/<tag>/`, as the Go operator keeps and, with `--local`, expects them.
//!
//! Somebody else writes these directories at any time. Nothing outside is read: a release that is or has a link is refused. A release
//! that changes while it is read is an error that passes, and one that was written to a moment ago is not read yet: some of its files may
//! be still to come, and it would be complete without them.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{self, ErrorKind, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crds::names::ReleaseTag;
use storage::{BlockingWork, Unanswered};
use tokio::time;

use super::{Content, ListedRelease, Listing, ReleaseSource, RemoteFile, Resolved, SourceError, SourceFuture, beside};
use crate::{
    Digest, Evidence, Purpose, Release, ReleaseError, SUMS, SUMS_BUNDLE, SUMS_SIGNATURE,
    files::{Stamps, stamps, tag_of_directory},
};

/// Name of the directory below the root that has one subdirectory per release.
pub const RELEASES_DIRECTORY: &str = "cluster-stacks";

/// Ten times the releases of the largest installation we have numbers for; names alone stay below ten megabytes.
const MAX_ENTRIES: usize = 10_000;
/// Longest time for one reading. The largest release takes two seconds to read; a network file system that hangs never answers.
const DEADLINE: Duration = Duration::from_mins(1);
/// Releases verified at the same time: unpacking is work for the processor, and more at once only needs more memory.
const CONCURRENT_READINGS: usize = 2;
/// A directory that was touched so recently may change again without its time stamps changing.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Between two files of a release that is copied file by file; whoever takes longer renames the whole into place.
const QUIET: Duration = Duration::from_millis(300);
/// Longest wait for the end of writing; who writes longer is told of when it goes on.
const LONGEST_WRITING: Duration = Duration::from_secs(2);

/// The releases below one directory. Cheap to clone; clones share what they remember.
///
/// What was verified is remembered with the time stamps of its files, so that opening an unchanged release again reads no contents.
#[derive(Clone, Debug)]
pub struct DirectorySource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    releases: PathBuf,
    purpose: Purpose,
    readings: Arc<BlockingWork>,
    verified: Mutex<HashMap<ReleaseTag, (Stamps, Release)>>,
}

impl DirectorySource {
    /// A source that reads `root/cluster-stacks`, which need not exist yet, for clusters.
    pub fn new(root: &Path) -> Self {
        Self::new_for(Purpose::Clusters, root)
    }

    /// The same for another purpose.
    pub fn new_for(purpose: Purpose, root: &Path) -> Self {
        Self {
            shared: Arc::new(Shared {
                releases: root.join(RELEASES_DIRECTORY),
                purpose,
                readings: BlockingWork::new(CONCURRENT_READINGS, DEADLINE),
                verified: Mutex::default(),
            }),
        }
    }

    /// The release of this tag, read where it lies. A tag that is opened twice can have two digests; comparing them is the caller's part.
    pub async fn open(&self, tag: &ReleaseTag) -> Result<Release, SourceError> {
        let patience = time::Instant::now() + LONGEST_WRITING;
        loop {
            let tag = tag.clone();
            let is_patient = time::Instant::now() < patience;
            let attempt = move |shared: &Shared| match shared.written_lately(&tag) {
                Some((_, wait)) if is_patient => Ok(Err(wait)),
                Some((file, _)) => Err(SourceError::UnusableRelease {
                    tag,
                    source: Box::new(ReleaseError::Changed { file }),
                }),
                None => shared.open(tag).map(Ok),
            };
            match self.read(attempt).await? {
                Ok(release) => return Ok(release),
                Err(wait) => time::sleep(wait).await,
            }
        }
    }

    /// What lies beside the files of a release and vouches for them, as it is now.
    pub async fn evidence_of(&self, tag: &ReleaseTag) -> Result<Evidence, SourceError> {
        let tag = tag.clone();
        self.read(move |shared| shared.evidence(&tag)).await
    }

    /// Which of these releases, opened here before, may be others now. Compares time stamps and reads no contents; a release that was opened
    /// within seconds of being written counts until it is opened again. An error says nothing about any of them.
    pub async fn changed(&self, opened: Vec<(ReleaseTag, Digest)>) -> Result<BTreeSet<ReleaseTag>, SourceError> {
        self.read(move |shared| shared.changed(opened)).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> Result<T, SourceError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let shared = Arc::clone(&self.shared);
        match self.shared.readings.run(move || work(&shared)).await {
            Ok(answer) => answer,
            Err(Unanswered::TimedOut { after }) => Err(SourceError::TimedOut { after }),
            Err(Unanswered::Stopped) => Err(SourceError::Stopped),
        }
    }
}

impl ReleaseSource for DirectorySource {
    /// A directory does not tell when a release was published: copying changes every time stamp that it has.
    fn list(&self) -> SourceFuture<'_, Listing> {
        Box::pin(self.read(Shared::list))
    }

    /// Reads all of it: a directory has no digests to tell.
    fn resolve<'a>(&'a self, tag: &'a ReleaseTag) -> SourceFuture<'a, Resolved> {
        Box::pin(async move {
            let release = self.open(tag).await?;
            let files = release.files.into_iter().map(|file| RemoteFile {
                location: format!("{tag}/{}", file.name),
                name: file.name,
                size: Some(file.size),
                sha256: Some(file.sha256),
            });
            Resolved::new(tag.clone(), files).map_err(|source| SourceError::UnusableRelease {
                tag: tag.clone(),
                source: Box::new(source),
            })
        })
    }

    fn fetch<'a>(&'a self, file: &'a RemoteFile) -> SourceFuture<'a, Content> {
        let path = self.shared.releases.join(&file.location);
        Box::pin(async move {
            let opened =
                self.read(move |_| fs::File::open(&path).map_err(|source| SourceError::ReadFile { path, source }));
            Ok(Box::pin(tokio::fs::File::from_std(opened.await?)) as Content)
        })
    }

    fn evidence<'a>(&'a self, resolved: &'a Resolved) -> SourceFuture<'a, Evidence> {
        Box::pin(self.evidence_of(resolved.tag()))
    }
}

impl Shared {
    fn evidence(&self, tag: &ReleaseTag) -> Result<Evidence, SourceError> {
        let directory = self.releases.join(tag.to_string());
        let mut found = Vec::new();
        for name in [SUMS, SUMS_SIGNATURE, SUMS_BUNDLE] {
            let path = directory.join(name);
            let limit = beside::limit(name);
            let mut bytes = Vec::new();
            let read = match open_file(&path) {
                Ok(Some(file)) => file.take(limit as u64 + 1).read_to_end(&mut bytes),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            found.push((name, beside::finished(name, read, bytes, limit)?));
        }
        Ok(beside::of_files(found))
    }

    fn list(&self) -> Result<Listing, SourceError> {
        let unreadable = |source| self.unreadable_root(source);
        let mut listing = Listing::default();
        for (index, entry) in fs::read_dir(&self.releases).map_err(unreadable)?.enumerate() {
            if index == MAX_ENTRIES {
                return Err(SourceError::TooManyEntries {
                    path: self.releases.clone(),
                    limit: MAX_ENTRIES,
                });
            }
            let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
            // What is being written or was left by a file system, such as `.snapshot`.
            if name.starts_with('.') {
                continue;
            }
            match tag_of_directory(&name) {
                // Also what is no directory: opening it says so, passing it over would not.
                Some(tag) => listing.releases.push(ListedRelease::of(tag, None)),
                None => listing.foreign.push(name),
            }
        }
        listing.releases.sort_by(|left, right| left.tag.cmp(&right.tag));
        listing.foreign.sort();
        let listed = |tag: &ReleaseTag| {
            listing
                .releases
                .binary_search_by(|release| release.tag.cmp(tag))
                .is_ok()
        };
        self.verified
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|tag, _| listed(tag));
        Ok(listing)
    }

    fn changed(&self, opened: Vec<(ReleaseTag, Digest)>) -> Result<BTreeSet<ReleaseTag>, SourceError> {
        // A root that is not mounted must not look like releases that changed.
        fs::metadata(&self.releases).map_err(|source| self.unreadable_root(source))?;
        let unchanged = |tag: &ReleaseTag, digest: &Digest| {
            let now = stamps(&self.releases.join(tag.to_string())).ok();
            let verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
            verified
                .get(tag)
                .is_some_and(|(before, release)| release.digest == *digest && now.as_ref() == Some(before))
        };
        let changed = opened.into_iter().filter(|(tag, digest)| !unchanged(tag, digest));
        Ok(changed.map(|(tag, _)| tag).collect())
    }

    /// The last file of a release that was written or renamed, if that is not long ago, and how long until it is. What the storage's clock
    /// puts into the future says nothing.
    fn written_lately(&self, tag: &ReleaseTag) -> Option<(String, Duration)> {
        let now = unix_time();
        let stamps = stamps(&self.releases.join(tag.to_string())).ok()?;
        let ages = stamps
            .into_iter()
            .filter_map(|(file, stamp)| Some((file, now.checked_sub(stamp.changed_at())?)));
        let (file, age) = ages.min_by_key(|(_, age)| *age)?;
        let wait = QUIET.checked_sub(age).filter(|wait| !wait.is_zero())?;
        Some((file, wait))
    }

    fn open(&self, tag: ReleaseTag) -> Result<Release, SourceError> {
        let directory = self.releases.join(tag.to_string());
        match fs::symlink_metadata(&directory) {
            Ok(status) if status.is_dir() => {}
            Ok(_) => {
                let source = ReleaseError::NotAFile {
                    file: tag.to_string(),
                    kind: "not a directory",
                };
                return Err(SourceError::UnusableRelease {
                    tag,
                    source: Box::new(source),
                });
            }
            Err(source) if source.kind() == ErrorKind::NotFound => {
                // A root that is not mounted must not look like a release that was deleted.
                fs::metadata(&self.releases).map_err(|source| self.unreadable_root(source))?;
                return Err(SourceError::MissingRelease { tag });
            }
            Err(source) => {
                return Err(SourceError::UnusableRelease {
                    tag,
                    source: Box::new(ReleaseError::ReadDirectory { source }),
                });
            }
        }
        self.open_directory(&directory, &tag)
            .map_err(|source| SourceError::UnusableRelease {
                tag,
                source: Box::new(source),
            })
    }

    fn open_directory(&self, directory: &Path, tag: &ReleaseTag) -> Result<Release, ReleaseError> {
        let began = unix_time();
        let before = stamps(directory)?;
        if let Some((verified, release)) = self.verified.lock().unwrap_or_else(PoisonError::into_inner).get(tag)
            && *verified == before
        {
            return Ok(release.clone());
        }
        let release = Release::open_for(self.purpose, directory, tag)?;
        let settled = before.values().all(|stamp| stamp.changed_at() + SETTLED_AFTER < began);
        if settled && stamps(directory)? == before {
            self.verified
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(tag.clone(), (before, release.clone()));
        }
        Ok(release)
    }

    fn unreadable_root(&self, source: io::Error) -> SourceError {
        let path = self.releases.clone();
        match source.kind() {
            ErrorKind::NotFound => SourceError::MissingRoot { path },
            _ => SourceError::ReadRoot { path, source },
        }
    }
}

/// Opens a file that is there, and is no link.
fn open_file(path: &Path) -> io::Result<Option<fs::File>> {
    let before = match fs::symlink_metadata(path) {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let opened = fs::File::open(path)?;
    let status = opened.metadata()?;
    // Opening follows a link, to another inode.
    let is_same = before.is_file() && (before.dev(), before.ino()) == (status.dev(), status.ino());
    if is_same {
        Ok(Some(opened))
    } else {
        Err(io::Error::other(
            "it is no regular file, or was replaced while it was opened",
        ))
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{
        Digest,
        pack::{self, Versioning},
    };

    #[tokio::test]
    async fn release_that_is_being_written_is_opened_when_it_has_been_quiet() {
        let root = TempDir::new().unwrap();
        let tag: ReleaseTag = "docker-harbor-1-34-v1".parse().unwrap();
        let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
        let source = DirectorySource::new(root.path());
        let releases = &source.shared.releases;
        pack::create(&stack, releases, &Versioning::Given(tag.version().clone())).unwrap();
        source.open(&tag).await.unwrap();
        let written = stamps(&releases.join(tag.to_string())).unwrap();
        let now = unix_time();
        for stamp in written.values() {
            assert!(stamp.changed_at() + QUIET <= now);
        }
    }

    #[test]
    fn verified_release_is_not_read_again_until_its_directory_changes() {
        let root = TempDir::new().unwrap();
        let tag: ReleaseTag = "docker-harbor-1-34-v1".parse().unwrap();
        let stack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/stacks/docker-harbor/v1");
        let source = DirectorySource::new(root.path());
        let shared = &source.shared;
        pack::create(&stack, &shared.releases, &Versioning::Given(tag.version().clone())).unwrap();

        // Remembered under a digest that reading could not give.
        let directory = shared.releases.join(tag.to_string());
        let mut remembered = Release::open(&directory, &tag).unwrap();
        let read = remembered.digest;
        remembered.digest = Digest::of(b"remembered");
        let entry = (stamps(&directory).unwrap(), remembered.clone());
        shared.verified.lock().unwrap().insert(tag.clone(), entry);
        assert_eq!(shared.open(tag.clone()).unwrap().digest, remembered.digest);
        let opened = vec![(tag.clone(), remembered.digest)];
        assert_eq!(shared.changed(opened.clone()).unwrap(), BTreeSet::new());
        let of_other_bytes = vec![(tag.clone(), read)];
        assert_eq!(shared.changed(of_other_bytes).unwrap(), BTreeSet::from([tag.clone()]));

        // Replaced, because a clock that is read every few milliseconds may not see a change in place.
        fs::copy(directory.join("metadata.yaml"), directory.join(".new")).unwrap();
        fs::rename(directory.join(".new"), directory.join("metadata.yaml")).unwrap();
        assert_eq!(shared.changed(opened).unwrap(), BTreeSet::from([tag.clone()]));
        assert_eq!(shared.open(tag).unwrap().digest, read);
    }
}
