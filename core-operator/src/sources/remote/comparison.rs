//! Finds tags that were moved: what the list says of a release is held against what is known of it, and the source is asked only where they
//! differ, where its list says nothing of files, or where its signatures are not good enough.

use crds::names::ReleaseTag;
use release::Digest;
use release::source::{Resolved, SourceError};
use release::store::{Origin, StoreError};

use super::memory::Questions;
use super::{RemoteFollower, SourceChange, Trouble, lock};

/// Most releases that are asked for at one poll. Who has no token may ask GitHub 60 times an hour, and 12 polls of one list and those of which
/// it tells nothing are more than half of that; those that differ from the list are few, unless somebody moves all of them.
const AT_ONE_POLL: Questions = Questions {
    differing: 16,
    untold: 2,
    refused: 2,
};

impl RemoteFollower {
    /// Finds releases that are here and have something else under their tags by now, in the last list that came. Beside the polls, which do not
    /// wait for it.
    pub(super) async fn compare_listed(&self) {
        loop {
            self.is_listed.notified().await;
            let listed = lock(&self.to_compare).take();
            let questions = lock(&self.memory).questions(&listed.unwrap_or_default(), AT_ONE_POLL);
            self.compare(questions).await;
        }
    }

    /// Each tag stands for itself: what the source says of one is no reason not to ask for the next.
    async fn compare(&self, tags: Vec<ReleaseTag>) {
        for tag in tags {
            let is_requested = lock(&self.memory).begin_comparison(&tag);
            let is_silent = match self.origin().await {
                Ok(origin) => {
                    let compared = self.compare_one(&tag, &origin).await;
                    if compared.is_err() {
                        self.doubt_secrets();
                    }
                    compared.is_err_and(|error| error.is_silence())
                }
                Err(_) => true,
            };
            // A source that is silent is told by the next poll, after which the others have their turns before this one.
            if is_silent {
                if is_requested {
                    lock(&self.memory).request_comparison(&tag);
                }
                return;
            }
        }
    }

    async fn compare_one(&self, tag: &ReleaseTag, origin: &Origin) -> Result<(), SourceError> {
        let resolved = origin.source.resolve(tag).await?;
        let offered = match self.digest_of(tag, &resolved, origin).await {
            Ok(offered) => offered,
            Err(error) => {
                self.doubt_secrets();
                let trouble = Trouble::of_download(error, origin.source.as_ref());
                tracing::warn!(
                    release = %tag,
                    error = trouble.message,
                    "nobody knows whether the tag was moved: what the source has under it could not be downloaded"
                );
                return Ok(());
            }
        };
        let is_news = lock(&self.memory).offer(tag, offered);
        let has_other_signatures = self.has_other_signatures(tag, offered, &resolved, origin).await;
        if is_news || matches!(has_other_signatures, Ok(true)) {
            self.tell(SourceChange::of_tag(tag));
        }
        has_other_signatures.map(drop)
    }

    /// The digest of what a tag was resolved to. Where the source does not tell, another identity has to be downloaded to know.
    pub(super) async fn digest_of(
        &self,
        tag: &ReleaseTag,
        resolved: &Resolved,
        origin: &Origin,
    ) -> Result<Digest, StoreError> {
        if let Some(digest) = resolved.digest() {
            return Ok(digest);
        }
        let identity = resolved.identity();
        if let Some(digest) = lock(&self.memory).identified(tag, identity) {
            return Ok(digest);
        }
        let files = self.cache.store().await?.get(resolved, origin).await?;
        lock(&self.memory).identify(tag, identity, files.digest);
        Ok(files.digest)
    }
}
