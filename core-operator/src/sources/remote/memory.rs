//! What a follower remembers of the releases of its source.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crds::names::ReleaseTag;
use release::{Digest, ErrorClass, Release};
use tokio_util::sync::DropGuard;

/// Where a release stands.
pub(super) enum Progress {
    /// Its files are in the store.
    Here {
        files: Arc<Release>,
        /// What the source has under the tag, where that is something else.
        moved_to: Option<Digest>,
    },
    /// It is being brought; what was in the way when it was tried last, if it was.
    Coming { trouble: Option<(ErrorClass, String)> },
}

impl Progress {
    fn digest(&self) -> Option<Digest> {
        match self {
            Self::Here { files, .. } => Some(files.digest),
            Self::Coming { .. } => None,
        }
    }
}

struct Entry {
    progress: Progress,
    /// The turn in which it was last held against what the source has.
    compared: u64,
    /// What ends the download with this value.
    _download: Option<DropGuard>,
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
    pub(super) fn progress(&self, tag: &ReleaseTag) -> Option<&Progress> {
        self.entries.get(tag).map(|entry| &entry.progress)
    }

    /// A download begins.
    pub(super) fn begin(&mut self, tag: &ReleaseTag, download: DropGuard) {
        let entry = Entry {
            progress: Progress::Coming { trouble: None },
            compared: 0,
            _download: Some(download),
        };
        self.entries.insert(tag.clone(), entry);
    }

    /// A release is here. Keeps the guard of the download that brought it: that is about to end by itself.
    pub(super) fn keep(&mut self, tag: &ReleaseTag, files: Arc<Release>) {
        let entry = self.entries.entry(tag.clone()).or_insert(Entry {
            progress: Progress::Coming { trouble: None },
            compared: 0,
            _download: None,
        });
        entry.progress = Progress::Here { files, moved_to: None };
    }

    /// Something is in the way of a download.
    pub(super) fn trouble(&mut self, tag: &ReleaseTag, class: ErrorClass, message: String) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.progress = Progress::Coming {
                trouble: Some((class, message)),
            };
        }
    }

    /// A download is on its way (again).
    pub(super) fn comes(&mut self, tag: &ReleaseTag) {
        if let Some(entry) = self.entries.get_mut(tag) {
            entry.progress = Progress::Coming { trouble: None };
        }
    }

    /// So many of the releases that are here, with their digests: those that were not compared for longest. They count as compared now.
    pub(super) fn take_for_comparison(&mut self, most: usize) -> Vec<(ReleaseTag, Digest)> {
        let mut here: Vec<_> = self
            .entries
            .iter_mut()
            .filter(|(_, entry)| matches!(entry.progress, Progress::Here { .. }))
            .collect();
        here.sort_by(|(tag, entry), (other_tag, other)| (entry.compared, *tag).cmp(&(other.compared, *other_tag)));
        self.turn += 1;
        let turn = self.turn;
        let chosen = here.into_iter().take(most).filter_map(|(tag, entry)| {
            entry.compared = turn;
            Some((tag.clone(), entry.progress.digest()?))
        });
        chosen.collect()
    }

    /// Notes what the source has under a tag while `digest` is here; whether that is news.
    pub(super) fn offer(&mut self, tag: &ReleaseTag, digest: Digest, offered: Digest) -> bool {
        let offered = Some(offered).filter(|offered| *offered != digest);
        match self.entries.get_mut(tag).map(|entry| &mut entry.progress) {
            Some(Progress::Here { files, moved_to }) if files.digest == digest && *moved_to != offered => {
                *moved_to = offered;
                true
            }
            _ => false,
        }
    }

    /// Forgets a release of this digest; whether it was here.
    pub(super) fn forget(&mut self, tag: &ReleaseTag, digest: Digest) -> bool {
        let is_here = self.progress(tag).and_then(Progress::digest) == Some(digest);
        if is_here {
            self.entries.remove(tag);
        }
        is_here
    }

    /// Forgets all other releases; their downloads end.
    pub(super) fn retain(&mut self, tags: &HashSet<ReleaseTag>) {
        self.entries.retain(|tag, _| tags.contains(tag));
        self.identified.retain(|(tag, _), _| tags.contains(tag));
    }

    pub(super) fn identify(&mut self, tag: &ReleaseTag, identity: Digest, digest: Digest) {
        self.identified.insert((tag.clone(), identity), digest);
    }

    pub(super) fn identified(&self, tag: &ReleaseTag, identity: Digest) -> Option<Digest> {
        self.identified.get(&(tag.clone(), identity)).copied()
    }
}
