//! The signatures of what a follower has: as they were kept, as the source shows them, and anew as long as they are not good enough.
//!
//! What was good is not asked for again: a source that is away, or has lost a signature, takes nothing away from what was verified.

use std::sync::Arc;

use crds::names::ReleaseTag;
use operator_kit::failure::chain;
use planning::polling::next_poll;
use release::source::{Resolved, SourceError};
use release::store::{Origin, StoreError};
use release::{Digest, ErrorClass, Evidence};
use tokio::sync::Notify;
use tracing::Instrument;

use super::super::opened::Signatures;
use super::super::{SourceChange, lock};
use super::{RemoteFollower, Trouble, spread};
use crate::tasks::Task;

impl RemoteFollower {
    /// The signatures of a release that is here. Those that are not known are looked for, and the release is told of again when they are.
    pub(super) async fn signatures(self: &Arc<Self>, tag: &ReleaseTag, digest: Digest) -> Signatures {
        if lock(&self.memory).is_shown_nothing(tag, digest) {
            return Signatures::Shown(Arc::default());
        }
        // Trouble with the disk is told by the search that comes next.
        if let Ok(Some(kept)) = self.cache.evidence(digest, self.connect.id()).await {
            lock(&self.memory).show(tag, digest, kept.is_empty(), false);
            return Signatures::Shown(Arc::new(kept));
        }
        let message = match self.searched(tag, digest) {
            None => "its signatures are being looked for".to_owned(),
            Some(trouble) => format!("its signatures could not be looked for: {trouble}"),
        };
        Signatures::Awaited { message }
    }

    /// Takes that the signatures of a release are not good enough for a namespace. The source may have better: now if it was not asked yet, else
    /// by the next polls.
    pub(in crate::sources) fn refused(self: &Arc<Self>, tag: &ReleaseTag, digest: Digest, namespace: &str) {
        if lock(&self.memory).judge(tag, digest, namespace, true) {
            self.searched(tag, digest);
        }
    }

    /// Takes that the signatures of a release are good enough for a namespace, which has nobody look for others.
    pub(in crate::sources) fn accepted(&self, tag: &ReleaseTag, digest: Digest, namespace: &str) {
        lock(&self.memory).judge(tag, digest, namespace, false);
    }

    /// Whether the source shows other signatures than those that were not good enough.
    pub(super) async fn has_other_signatures(
        &self,
        tag: &ReleaseTag,
        digest: Digest,
        resolved: &Resolved,
        origin: &Origin,
    ) -> Result<bool, SourceError> {
        if !lock(&self.memory).is_refused(tag, digest) {
            return Ok(false);
        }
        let evidence = origin.source.evidence(resolved).await?;
        let shown = self.show(tag, digest, evidence, origin).await;
        Ok(shown.unwrap_or_else(|error| {
            tracing::warn!(release = %tag, error = chain(&error), "signatures that came could not be kept");
            // What is in the way is news too.
            true
        }))
    }

    /// Begins to look for signatures, unless that is being done; gives what is in the way.
    fn searched(self: &Arc<Self>, tag: &ReleaseTag, digest: Digest) -> Option<String> {
        let mut memory = lock(&self.memory);
        if memory.is_searching(tag) {
            return memory.search_trouble(tag);
        }
        let end = self.end.child_token();
        let requested = Arc::<Notify>::default();
        let (follower, wanted, heard) = (Arc::clone(self), tag.clone(), Arc::clone(&requested));
        self.tasks.start(Task::Search, end.clone(), move || {
            Arc::clone(&follower).search(wanted.clone(), digest, Arc::clone(&heard))
        });
        memory.begin_search(tag, requested, end.drop_guard());
        None
    }

    /// Looks for signatures, however often it takes.
    async fn search(self: Arc<Self>, tag: ReleaseTag, digest: Digest, requested: Arc<Notify>) {
        for failures in 1_u32.. {
            let span = tracing::info_span!("search signatures", source = %self.connect.described(), release = %tag);
            let trouble = match self.search_once(&tag, digest).instrument(span).await {
                Ok(()) => {
                    lock(&self.memory).end_search(&tag);
                    self.tell(SourceChange::of_tag(&tag));
                    return;
                }
                Err(trouble) => trouble,
            };
            self.doubt_secrets();
            let spread = spread(&format!("{tag} signatures"), failures);
            let wait = next_poll(self.interval(), failures, trouble.retry_after, spread);
            lock(&self.memory).trouble_search(&tag, trouble.message.clone());
            self.tell(SourceChange::of_tag(&tag));
            self.pause(wait, &trouble, &requested).await;
        }
    }

    pub(super) async fn search_once(&self, tag: &ReleaseTag, digest: Digest) -> Result<(), Trouble> {
        // Never closed.
        let _turn = self.searches.acquire().await;
        let origin = self.origin().await?;
        let trouble = |error| Trouble::of_source(&error, origin.source.as_ref());
        let resolved = origin.source.resolve(tag).await.map_err(trouble)?;
        let is_offered = match self.digest_of(tag, &resolved, &origin).await {
            Ok(offered) => offered == digest,
            // It came whole and is no release: so it is another.
            Err(error @ (StoreError::Refused { .. } | StoreError::TooLarge { .. }))
                if error.class() == ErrorClass::Terminal =>
            {
                false
            }
            Err(error) => return Err(Trouble::of_download(error, origin.source.as_ref())),
        };
        let evidence = if is_offered {
            origin.source.evidence(&resolved).await.map_err(trouble)?
        } else {
            // What is under the tag now says nothing of what was there when this release was pinned.
            Evidence::default()
        };
        self.show(tag, digest, evidence, &origin).await?;
        Ok(())
    }

    /// Keeps what the source shows; whether that is news. That it shows nothing (any more), or not all, is no reason to forget what it showed.
    /// Whoever is told of an error tells the release.
    async fn show(
        &self,
        tag: &ReleaseTag,
        digest: Digest,
        shown: Evidence,
        origin: &Origin,
    ) -> Result<bool, StoreError> {
        let _one_at_a_time = self.showing.lock().await;
        let kept = self.cache.evidence(digest, origin.id).await?.unwrap_or_default();
        let news = lock(&self.memory).united(tag, digest, &kept, &shown);
        let (is_news, is_nothing) = (news.is_some(), kept.is_empty() && shown.is_empty());
        if let Some(news) = news {
            let vouched = self.cache.vouch(tag, digest, origin.id, news).await;
            vouched.inspect_err(|error| self.miss(tag, digest, error))?;
        }
        lock(&self.memory).show(tag, digest, is_nothing, true);
        Ok(is_news)
    }

    /// Takes that signatures of a release could not be kept. Nobody says any more that it has none; and if its files are what is missing, nobody
    /// says that they are here, so that they are brought again.
    fn miss(&self, tag: &ReleaseTag, digest: Digest, error: &StoreError) {
        let mut memory = lock(&self.memory);
        memory.doubt_nothing(tag, digest);
        if matches!(error, StoreError::Gone { .. }) {
            memory.forget(tag, digest);
            self.cache.doubt(digest);
        }
    }
}
