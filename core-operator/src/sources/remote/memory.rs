//! What a follower remembers of the releases of its source.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crds::names::ReleaseTag;
use release::{Digest, ErrorClass, Release};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use super::super::is_recent;

/// What is in the way of a release.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    pub(super) class: ErrorClass,
    pub(super) message: String,
}

/// A release that is being brought.
struct Coming {
    /// What was in the way when it was tried last, if something was.
    obstacle: Option<Obstacle>,
    /// What ends the download with this value.
    _download: DropGuard,
}

/// One tag. Several ClusterStackReleases can be pinned to several digests of it.
struct Entry {
    /// Since when it is remembered.
    since: Instant,
    /// What is in the store.
    here: BTreeMap<Digest, Arc<Release>>,
    /// What the source had under the tag when it was asked last.
    offered: Option<Digest>,
    coming: Option<Coming>,
    /// The turn in which it was last held against what the source has.
    compared: u64,
}

impl Entry {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            here: BTreeMap::new(),
            offered: None,
            coming: None,
            compared: 0,
        }
    }
}

/// The releases that somebody asked for.
#[derive(Default)]
pub(super) struct Memory {
    entries: HashMap<ReleaseTag, Entry>,
    turn: u64,
    /// What an identity turned out to be.
    identified: HashMap<(ReleaseTag, Digest), Digest>,
}

impl Memory {
    /// The release of this digest, if it is known to be here.
    pub(super) fn here(&self, tag: &ReleaseTag, digest: Digest) -> Option<Arc<Release>> {
        self.entries.get(tag)?.here.get(&digest).cloned()
    }

    /// What the source had under the tag when it was asked last.
    pub(super) fn offered(&self, tag: &ReleaseTag) -> Option<Digest> {
        self.entries.get(tag)?.offered
    }

    /// Whether a release is being brought.
    pub(super) fn is_coming(&self, tag: &ReleaseTag) -> bool {
        self.entries.get(tag).is_some_and(|entry| entry.coming.is_some())
    }

    /// What is in the way of a release that is being brought, if something is.
    pub(super) fn obstacle(&self, tag: &ReleaseTag) -> Option<Obstacle> {
        self.entries.get(tag)?.coming.as_ref()?.obstacle.clone()
    }

    /// A download begins.
    pub(super) fn begin(&mut self, tag: &ReleaseTag, download: DropGuard) {
        self.entries.entry(tag.clone()).or_insert_with(Entry::new).coming = Some(Coming {
            obstacle: None,
            _download: download,
        });
    }

    /// A release is here.
    pub(super) fn keep(&mut self, tag: &ReleaseTag, files: Arc<Release>) {
        let entry = self.entries.entry(tag.clone()).or_insert_with(Entry::new);
        entry.here.insert(files.digest, files);
    }

    /// A download has ended.
    pub(super) fn arrive(&mut self, tag: &ReleaseTag, files: Arc<Release>) {
        let entry = self.entries.entry(tag.clone()).or_insert_with(Entry::new);
        entry.coming = None;
        entry.here.insert(files.digest, files);
    }

    /// Something is in the way of a download.
    pub(super) fn meet(&mut self, tag: &ReleaseTag, obstacle: Obstacle) {
        if let Some(coming) = self.entries.get_mut(tag).and_then(|entry| entry.coming.as_mut()) {
            coming.obstacle = Some(obstacle);
        }
    }

    /// So many of the tags of which something is here: those that were not compared for longest. They count as compared now.
    pub(super) fn take_for_comparison(&mut self, most: usize) -> Vec<ReleaseTag> {
        let mut here: Vec<_> = self
            .entries
            .iter_mut()
            .filter(|(_, entry)| !entry.here.is_empty())
            .collect();
        here.sort_by(|(tag, entry), (other_tag, other)| (entry.compared, *tag).cmp(&(other.compared, *other_tag)));
        self.turn += 1;
        let chosen = here.into_iter().take(most).map(|(tag, entry)| {
            entry.compared = self.turn;
            tag.clone()
        });
        chosen.collect()
    }

    /// Notes what the source has under a tag; whether that is news.
    pub(super) fn offer(&mut self, tag: &ReleaseTag, offered: Digest) -> bool {
        match self.entries.get_mut(tag) {
            Some(entry) => entry.offered.replace(offered) != Some(offered),
            None => false,
        }
    }

    /// Forgets a release of this digest; whether it was here.
    pub(super) fn forget(&mut self, tag: &ReleaseTag, digest: Digest) -> bool {
        let entry = self.entries.get_mut(tag);
        entry.is_some_and(|entry| entry.here.remove(&digest).is_some())
    }

    /// Forgets all other releases; their downloads end.
    pub(super) fn retain(&mut self, tags: &HashSet<ReleaseTag>) {
        self.entries
            .retain(|tag, entry| tags.contains(tag) || is_recent(entry.since));
        let entries = &self.entries;
        self.identified.retain(|(tag, _), _| entries.contains_key(tag));
    }

    pub(super) fn identify(&mut self, tag: &ReleaseTag, identity: Digest, digest: Digest) {
        self.identified.insert((tag.clone(), identity), digest);
    }

    pub(super) fn identified(&self, tag: &ReleaseTag, identity: Digest) -> Option<Digest> {
        self.identified.get(&(tag.clone(), identity)).copied()
    }
}
