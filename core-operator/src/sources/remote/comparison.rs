//! Finds tags that were moved: what the list says of a release is held against what is known of it, and the source is asked only where they
//! differ, where its list says nothing of files, or where its signatures are not good enough.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::names::ReleaseTag;
use release::source::{ListedRelease, Resolved};
use release::store::Origin;
use release::{Digest, ErrorClass};

use super::memory::Questions;
use super::{RemoteFollower, SourceChange, lock};

/// Most releases that are asked for at one poll. Who has no token may ask GitHub 60 times an hour, and 12 polls of one list and those of which
/// it tells nothing are more than half of that; those that differ from the list are few, unless somebody moves all of them.
const AT_ONE_POLL: Questions = Questions {
    differing: 16,
    untold: 2,
    refused: 2,
};

impl RemoteFollower {
    /// Finds releases that are here and have something else under their tags by now. Beside the polls, which do not wait for it.
    pub(super) fn begin_comparison(self: &Arc<Self>, listed: Vec<ListedRelease>) {
        let comparison = Arc::clone(self).compare(listed);
        tokio::spawn(self.end.clone().run_until_cancelled_owned(comparison));
    }

    async fn compare(self: Arc<Self>, listed: Vec<ListedRelease>) {
        let Ok(_one_at_a_time) = self.comparing.try_lock() else {
            return;
        };
        // Whoever asks for a look means all of it.
        let is_requested = self.is_requested.swap(false, Ordering::Relaxed);
        let questions = if is_requested {
            lock(&self.memory).questions_of_all(&listed)
        } else {
            lock(&self.memory).questions(&listed, AT_ONE_POLL)
        };
        if questions.is_empty() {
            return;
        }
        let Ok(origin) = self.origin().await else { return };
        for tag in questions {
            let resolved = match origin.source.resolve(&tag).await {
                Ok(resolved) => resolved,
                // A source that does not answer is told by the next poll.
                Err(error) if error.class() == ErrorClass::Transient => return,
                Err(_) => continue,
            };
            let Some(offered) = self.digest_of(&tag, &resolved, &origin).await else {
                continue;
            };
            let is_news = lock(&self.memory).offer(&tag, offered);
            if self.has_other_signatures(&tag, offered, &resolved, &origin).await || is_news {
                self.tell(SourceChange::of_tag(&tag));
            }
        }
    }

    /// The digest of what a tag was resolved to. Where the source does not tell, another identity has to be downloaded to know.
    pub(super) async fn digest_of(&self, tag: &ReleaseTag, resolved: &Resolved, origin: &Origin) -> Option<Digest> {
        if let Some(digest) = resolved.digest() {
            return Some(digest);
        }
        let identity = resolved.identity();
        if let Some(digest) = lock(&self.memory).identified(tag, identity) {
            return Some(digest);
        }
        let store = self.cache.store().await.ok()?;
        let files = store.get(resolved, origin).await.ok()?;
        lock(&self.memory).identify(tag, identity, files.digest);
        Some(files.digest)
    }
}
