//! Releases of remote sources, kept on disk: each downloaded once, named by its digest, used by everybody who needs the same bytes.
//!
//! The store knows what is here and how it came; which release is wanted and whose is trusted is decided elsewhere. Nothing in it is
//! precious: all of it can be downloaded again, so that whatever is doubtful is removed. Whoever may write to its directory, or may make it
//! ask a source that promises digests, can use what lies there: one store belongs to one domain of trust.
//!
//! ```text
//! DIRECTORY/sha256/<digest>/<files>      releases, whole and synced; the time of a directory is that of its last use, to the minute
//! DIRECTORY/identities/<identity>        the digest of what a source without digests gave
//! DIRECTORY/evidence/<digest>-<origin>   what an origin had to show for a release: signatures, believed by nobody before they are verified
//! DIRECTORY/.partial-<random>/           what one process is writing or removing, with a lock that lives as long as the process
//! ```
//!
//! Several processes may use one directory. Each only removes the workspaces of the dead; releases are put in place and taken away by one
//! rename, and what was taken away by another process is downloaded again.

mod contents;
mod disk;
mod download;
mod error;
mod evidence;
mod identities;
mod incoming;
mod inspection;
mod reservation;
mod space;
#[cfg(test)]
mod tests;
mod usage;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crds::names::ReleaseTag;
use storage::BlockingWork;

use self::{contents::Contents, disk::Disk, download::Downloads};
pub use self::{
    error::StoreError,
    usage::{Download, Usage},
};
use crate::{
    Digest, Evidence, Purpose, Release,
    source::{ReleaseSource, Resolved},
};

/// Longest time for one look at the disk. The largest release takes two seconds to read; a network file system that hangs never answers.
const DEADLINE: Duration = Duration::from_mins(1);
/// Releases held against their digest at the same time: that is work for the processor, and more at once only needs more memory.
const CONCURRENT_READINGS: usize = 2;

/// What releases need, by digest, each with the [ids](Origin::id) of the origins whose evidence counts for somebody.
pub type Needs = BTreeMap<Digest, BTreeSet<Digest>>;

/// How a store is to be.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where it lies; created if it is not there. Nothing else may be kept in it.
    pub directory: PathBuf,
    /// Most bytes of releases and running downloads together. What is needed stays, also above it.
    pub max_bytes: u64,
    /// Downloads at once, besides a few that take long.
    pub downloads: usize,
    /// Downloads at once from one origin, fewer than all, so that one that hangs leaves places for others.
    pub downloads_per_origin: usize,
    /// What its releases are opened for. Stores of one directory may differ in it: each refuses what is not good for its own.
    pub purpose: Purpose,
}

impl StoreOptions {
    /// A store of this size in this directory, with sixteen downloads at once and two from one origin, of releases for clusters.
    pub fn new(directory: PathBuf, max_bytes: u64) -> Self {
        Self {
            directory,
            max_bytes,
            downloads: 16,
            downloads_per_origin: 2,
            purpose: Purpose::Clusters,
        }
    }
}

/// A source by name.
#[derive(Clone)]
pub struct Origin {
    /// What tells the source from every other one, the same after a restart: what is known of an [identity](Resolved::identity) holds for one
    /// id. Two sources of one id could answer for each other, so all that says where its bytes come from has to be in it.
    pub id: Digest,
    /// What the source is, for people, without secrets. Two sources may have one name.
    pub name: String,
    /// The source.
    pub source: Arc<dyn ReleaseSource>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Origin")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Downloaded releases. Cheap to clone; clones are one store.
#[derive(Clone, Debug)]
pub struct Store {
    contents: Arc<Contents>,
    downloads: Arc<Downloads>,
    work: Arc<BlockingWork>,
}

impl Store {
    /// Opens a store: looks at what is there, reads none of it, and removes what dead processes left. Fails only if the directory is not there
    /// and cannot be made, or cannot be read. In one that cannot be written to, what is there is served; [`Usage::unwritable`] says so.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let disk = Disk::new(options.directory.clone());
        let contents = Arc::new(Contents::new(disk, options.max_bytes, options.purpose));
        let work = BlockingWork::new(CONCURRENT_READINGS, DEADLINE);
        let store = Self {
            downloads: Arc::new(Downloads::new(Arc::clone(&contents), &options)),
            contents,
            work,
        };
        store.blocking(Contents::open).await??;
        Ok(store)
    }

    /// The release of this digest, if it is here, without asking anybody. It is read and held against the digest when it is asked for for the
    /// first time after a start, and whenever its files were touched since; what is not any more what was downloaded is removed, and is not here.
    pub async fn find(&self, tag: &ReleaseTag, digest: Digest) -> Result<Option<Arc<Release>>, StoreError> {
        let tag = tag.clone();
        self.blocking(move |contents| contents.find(&tag, digest)).await?
    }

    /// The release that a tag of an origin was resolved to, downloaded if it is not here. Everybody who asks for the same at the same time gets
    /// the outcome of one download, which goes on for as long as one of them waits: whoever does not want it any more drops the future.
    ///
    /// What came whole and is no usable release is not downloaded again, until the source has something else under the tag.
    pub async fn get(&self, resolved: &Resolved, origin: &Origin) -> Result<Arc<Release>, StoreError> {
        let key = key(resolved, origin);
        if let Some(refusal) = self.downloads.refusal(key) {
            return Err(refusal);
        }
        if let Some(digest) = resolved.digest().or_else(|| self.contents.identified(key))
            && let Some(release) = self.find(resolved.tag(), digest).await?
        {
            return Ok(release);
        }
        self.downloads.download(key, resolved, origin).await
    }

    /// What this origin had to show for a release when it was asked last, if that was noted and the release is here. It has been on a disk
    /// that others may write to: it is as good as what a source says.
    pub async fn evidence(&self, release: Digest, origin: Digest) -> Result<Option<Evidence>, StoreError> {
        self.blocking(move |contents| contents.evidence(release, origin)).await
    }

    /// Keeps what an origin has to show for a release, so that it can be verified, also when the origin is away. What comes back without an
    /// error is what [`Self::evidence`] gives. Of origins that nobody [needs](Self::keep) the last few are kept for each release. The error is
    /// [`StoreError::Gone`] where the release is not here any more.
    pub async fn vouch(
        &self,
        tag: &ReleaseTag,
        release: Digest,
        origin: Digest,
        evidence: Arc<Evidence>,
    ) -> Result<(), StoreError> {
        let tag = tag.clone();
        self.blocking(move |contents| contents.vouch(&tag, release, origin, &evidence))
            .await?
    }

    /// Says what releases need from now on: it is never evicted. Until this was called once, nothing is. Call it when all needs are known, and
    /// whenever they change.
    pub async fn keep(&self, needs: Needs) -> Result<(), StoreError> {
        self.blocking(move |contents| contents.keep(needs)).await?
    }

    /// Has a release read again and held against its digest before it is handed out again: for whoever could not read what was handed out.
    pub fn doubt(&self, digest: Digest) {
        self.contents.doubt(digest);
    }

    /// What the store holds and does. Touches no disk.
    pub fn usage(&self) -> Usage {
        let (bytes, limit, releases, unwritable) = self.contents.totals();
        let counters = &self.contents.counters;
        Usage {
            bytes,
            limit,
            releases,
            downloads: self.downloads.running(),
            downloaded: counters.downloaded.load(Ordering::Relaxed),
            downloaded_bytes: counters.downloaded_bytes.load(Ordering::Relaxed),
            evictions: counters.evictions.load(Ordering::Relaxed),
            rehashes: counters.rehashes.load(Ordering::Relaxed),
            corrupt: counters.corrupt.load(Ordering::Relaxed),
            unwritable,
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Contents) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let contents = Arc::clone(&self.contents);
        let answer = self.work.run(move || work(&contents)).await;
        answer.map_err(|why| StoreError::unanswered(self.contents.disk.directory(), why))
    }
}

/// What one origin calls one state of one tag.
fn key(resolved: &Resolved, origin: &Origin) -> Digest {
    // None of the three has a line break, so that no two triples have one text.
    Digest::of(format!("{}\n{}\n{}", origin.id, resolved.tag(), resolved.identity()).as_bytes())
}
