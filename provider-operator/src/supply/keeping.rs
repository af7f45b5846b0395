//! What is kept of the files of releases: those of release objects that there are. Others are forgotten here at once, and leave the disk when it is full.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use operator_kit::failure::chain;
use release::Digest;
use release::store::{Needs, Store};

use super::{Opened, Shared, Supply, Wish};

/// The tags of all release objects that there are, with the digests that they are pinned to so far.
pub(crate) type Needed = BTreeMap<String, BTreeSet<Digest>>;

/// What the store is told.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// `None` until it is known.
    needs: Mutex<Option<Needs>>,
    /// One at a time, so that what was said last is passed on last.
    passing_on: tokio::sync::Mutex<()>,
}

impl Keeping {
    /// Whether that is news.
    fn say(&self, needs: &Needs) -> bool {
        let mut said = self.needs.lock().unwrap_or_else(PoisonError::into_inner);
        said.replace(needs.clone()).as_ref() != Some(needs)
    }

    /// Tells the store what was said last.
    pub(super) async fn pass_on(&self, store: &Store) {
        let _one_at_a_time = self.passing_on.lock().await;
        let needs = self.needs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(needs) = needs
            && let Err(error) = store.keep(needs).await
        {
            // What is kept too long costs room, and the next change says it again.
            *self.needs.lock().unwrap_or_else(PoisonError::into_inner) = None;
            tracing::warn!(
                error = chain(&error),
                "the cache of releases does not know what is needed now"
            );
        }
    }
}

impl Supply {
    /// Says which releases there are objects of, all of them: the files of others are not needed any more. Returns at once; the disk is told later.
    pub(crate) fn keep(&self, needed: &Needed) {
        let needs = self.0.needs(needed);
        if self.0.keeping.say(&needs) {
            let shared = Arc::clone(&self.0);
            tokio::spawn(async move {
                if let Some(store) = shared.store.get() {
                    shared.keeping.pass_on(store).await;
                }
            });
        }
    }
}

impl Shared {
    fn needs(&self, needed: &Needed) -> Needs {
        let mut entries = self.entries();
        entries.retain(|Wish { tag, .. }, _| needed.contains_key(&tag.to_string()));
        let pinned = needed.values().flatten().copied();
        let mut needs: Needs = pinned.map(|digest| (digest, BTreeSet::new())).collect();
        // Also what came a moment ago, and no object is pinned to yet; and from where, which need not be asked again.
        for (wish, entry) in &*entries {
            if let Opened::Ready(supplied) = &entry.opened {
                let origins = needs.entry(supplied.files.release().digest).or_default();
                origins.insert(self.connector.connection(&wish.place).id());
            }
        }
        needs
    }
}

#[cfg(test)]
pub(super) mod tests;
