//! The store of releases, opened when it is needed for the first time: an operator of directories needs none.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crds::names::ReleaseTag;
use operator_kit::failure::chain;
use release::store::{Needs, Store, StoreError, StoreOptions, Usage};
use release::{Digest, Evidence, Release};
use tokio::sync::OnceCell;

use super::super::lock;

/// Where releases of remote sources are kept.
#[derive(Clone, Debug)]
pub(crate) struct CacheOptions {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// Most bytes in it.
    pub(crate) max_bytes: u64,
}

/// The store of the process.
pub(crate) struct Cache {
    options: CacheOptions,
    store: OnceCell<Store>,
    /// What was needed last, once that was known.
    needed: Mutex<Option<Needs>>,
    passing_on: tokio::sync::Mutex<()>,
}

impl Cache {
    pub(crate) fn new(options: CacheOptions) -> Self {
        Self {
            options,
            store: OnceCell::new(),
            needed: Mutex::default(),
            passing_on: tokio::sync::Mutex::default(),
        }
    }

    /// The store. What makes it impossible to open may pass, so the next one tries again.
    pub(super) async fn store(self: &Arc<Self>) -> Result<&Store, StoreError> {
        let CacheOptions { directory, max_bytes } = &self.options;
        let options = StoreOptions::new(directory.clone(), *max_bytes);
        let is_new = !self.store.initialized();
        let store = self.store.get_or_try_init(|| Store::open(options)).await?;
        if is_new {
            // Also what was said while it opened. Until it has heard that, it evicts nothing.
            Arc::clone(self).pass_on().await;
        }
        Ok(store)
    }

    /// The release of this digest, if it is here. Trouble with the disk is told by the download that comes next.
    pub(super) async fn find(self: &Arc<Self>, tag: &ReleaseTag, digest: Digest) -> Option<Arc<Release>> {
        let store = self.store().await.ok()?;
        store.find(tag, digest).await.ok().flatten()
    }

    /// What the store holds and does, once it is open.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.store.get().map(Store::usage)
    }

    /// What an origin had to show for a release, if that was kept and can be read.
    pub(super) async fn evidence(
        self: &Arc<Self>,
        digest: Digest,
        origin: Digest,
    ) -> Result<Option<Evidence>, StoreError> {
        self.store().await?.evidence(digest, origin).await
    }

    /// Keeps what an origin has to show for a release.
    pub(super) async fn vouch(
        self: &Arc<Self>,
        tag: &ReleaseTag,
        digest: Digest,
        origin: Digest,
        evidence: Evidence,
    ) -> Result<(), StoreError> {
        let store = self.store().await?;
        store.vouch(tag, digest, origin, Arc::new(evidence)).await
    }

    pub(super) fn doubt(&self, digest: Digest) {
        if let Some(store) = self.store.get() {
            store.doubt(digest);
        }
    }

    /// Says what releases need from now on. The store hears of it later: a disk that hangs keeps nobody.
    pub(crate) fn keep(self: &Arc<Self>, needs: Needs) {
        let differs = lock(&self.needed).replace(needs.clone()) != Some(needs);
        if differs {
            tokio::spawn(Arc::clone(self).pass_on());
        }
    }

    /// One at a time, so that what was said last is passed on last.
    async fn pass_on(self: Arc<Self>) {
        let _one_at_a_time = self.passing_on.lock().await;
        let needed = lock(&self.needed).clone();
        if let (Some(store), Some(needed)) = (self.store.get(), needed)
            && let Err(error) = store.keep(needed).await
        {
            // What is kept too long costs room, and the next change says it again.
            *lock(&self.needed) = None;
            tracing::warn!(error = chain(&error), "the store does not know what is needed now");
        }
    }

    /// How far a download is, for people; `None` while there is none.
    pub(super) fn progress(&self, tag: &ReleaseTag, origin: &str) -> Option<String> {
        let downloads = self.usage().map(|usage| usage.downloads).unwrap_or_default();
        let mut downloads = downloads.into_iter();
        let download = downloads.find(|download| download.tag == *tag && download.origin == origin)?;
        if download.queued {
            return Some("waits until other downloads have ended".to_owned());
        }
        let done = mebibytes(download.done);
        Some(match download.total {
            Some(total) => format!("downloading: {done} of {} MiB", mebibytes(total)),
            None => format!("downloading: {done} MiB so far"),
        })
    }
}

/// With one digit behind the point.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 20) / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}
