//! Follows one directory of releases: lists it whenever it changes, and reads its releases where they lie.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::names::ReleaseTag;
use operator_kit::failure::chain;
use planning::stack::Listing;
use release::source::{Change, DirectorySource, DirectoryWatch, Notifications, ReleaseSource};
use release::{Digest, ErrorClass};
use sourcing::{Place, described_directory};
use tokio::sync::mpsc;

use super::opened::{Found, Opened, Signatures};
use super::{SourceChange, Wanted, is_without, known, lock};
use crate::errands::Errands;

/// Follows one directory.
pub(super) struct DirectoryFollower {
    path: PathBuf,
    source: DirectorySource,
    changes: mpsc::UnboundedSender<SourceChange>,
    listing: Mutex<Listing>,
    memory: Mutex<Memory>,
    readings: Arc<Errands<ReleaseTag, Opened<Found>>>,
}

/// How long a look waits for the storage. The largest release takes two seconds to read.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was opened and is not known to have changed since.
#[derive(Default)]
struct Memory {
    opened: HashMap<ReleaseTag, Opened<Found>>,
    /// How often something was forgotten. What was opened before is not put back afterwards.
    generation: u64,
}

/// What a follower knows of a release.
enum Known {
    Opened(Opened<Found>),
    Forgotten { generation: u64 },
}

impl DirectoryFollower {
    pub(super) fn new(path: &Path, changes: mpsc::UnboundedSender<SourceChange>) -> Self {
        let woken = changes.clone();
        // A closed channel means that the process is about to end.
        let wake = move |tag: &ReleaseTag| drop(woken.send(SourceChange::of_tag(tag)));
        Self {
            path: path.to_owned(),
            source: DirectorySource::new(path),
            changes,
            listing: Mutex::new(Listing::NotAsked),
            memory: Mutex::default(),
            readings: Errands::new(|_| true, wake),
        }
    }

    /// What the directory listed last.
    pub(super) fn listing(&self) -> Listing {
        lock(&self.listing).clone()
    }

    /// Whether the directory was there when it was listed last, without this release.
    pub(super) fn has_withdrawn(&self, tag: &ReleaseTag) -> bool {
        is_without(&lock(&self.listing), tag)
    }

    /// Forgets what was read of all other releases.
    pub(super) fn retain(&self, tags: &Wanted) {
        lock(&self.memory).opened.retain(|tag, _| tags.contains_key(tag));
    }

    /// One release. What was opened once is not read again until the watch tells of a change. A storage that hangs is waited for once, and not by
    /// everybody: its releases are told of when it answers.
    pub(super) async fn open(self: &Arc<Self>, tag: &ReleaseTag) -> Opened<Found> {
        let generation = match self.known(tag) {
            Known::Opened(opened) => return opened,
            Known::Forgotten { generation } => generation,
        };
        let patience = if self.readings.is_any_late() {
            Duration::ZERO
        } else {
            PATIENCE
        };
        let (follower, wanted) = (Arc::clone(self), tag.clone());
        let reading = |_| async move { follower.read_and_keep(generation, &wanted).await };
        // What was read of an earlier generation is no answer.
        let opened = self.readings.ask(tag, &generation.to_string(), patience, reading).await;
        opened.unwrap_or_else(|| Opened::Missing {
            message: format!(
                "{} is slow to answer, and is waited for",
                described_directory(&self.path)
            ),
            outage: None,
        })
    }

    async fn read_and_keep(&self, generation: u64, tag: &ReleaseTag) -> Opened<Found> {
        let (opened, keep) = self.read(tag).await;
        if keep && !self.keep(generation, tag, &opened) {
            // Its files may have changed while they were read.
            let _ = self.changes.send(SourceChange::of_tag(tag));
        }
        opened
    }

    #[cfg(test)]
    pub(super) fn remembers(&self, tag: &ReleaseTag) -> bool {
        matches!(self.known(tag), Known::Opened(_))
    }

    fn known(&self, tag: &ReleaseTag) -> Known {
        let memory = lock(&self.memory);
        match memory.opened.get(tag) {
            Some(opened) => Known::Opened(opened.clone()),
            None => Known::Forgotten {
                generation: memory.generation,
            },
        }
    }

    /// Remembers what was opened, unless something was forgotten meanwhile.
    fn keep(&self, generation: u64, tag: &ReleaseTag, opened: &Opened<Found>) -> bool {
        let mut memory = lock(&self.memory);
        let current = memory.generation == generation;
        if current {
            memory.opened.insert(tag.clone(), opened.clone());
        }
        current
    }

    async fn read(&self, tag: &ReleaseTag) -> (Opened<Found>, bool) {
        match self.source.open(tag).await {
            Ok(files) => {
                let (signatures, keep) = self.signatures(tag).await;
                let files = Found {
                    release: Arc::new(files),
                    signatures,
                };
                let opened = Opened::Ready {
                    source: Some(described_directory(&self.path)),
                    moved_to: None,
                    files,
                };
                (opened, keep)
            }
            Err(error) => {
                let (message, outage) = (chain(&error), None);
                match error.class() {
                    ErrorClass::Terminal => (Opened::Broken { message }, true),
                    ErrorClass::Waiting => (Opened::Missing { message, outage }, true),
                    ErrorClass::Transient => (Opened::Missing { message, outage }, false),
                }
            }
        }
    }

    /// What lies beside a release and vouches for it; and whether that is all, until something changes.
    async fn signatures(&self, tag: &ReleaseTag) -> (Signatures, bool) {
        match self.source.evidence_of(tag).await {
            Ok(evidence) => (Signatures::Shown(Arc::new(evidence)), true),
            Err(error) => {
                let message = chain(&error);
                (Signatures::Awaited { message }, false)
            }
        }
    }

    /// Lists at once, and again whenever something changed.
    pub(super) async fn follow(self: Arc<Self>, rescan: Duration, notifications: Notifications) {
        let mut watch = match DirectoryWatch::new(&self.path, rescan, &notifications).await {
            Ok(watch) => watch,
            Err(error) => {
                *lock(&self.listing) = unavailable(&error);
                let _ = self.changes.send(self.change(BTreeSet::new(), true, true));
                return;
            }
        };
        let mut change = Change::Everything;
        loop {
            let listing = self.list().await;
            let differs = std::mem::replace(&mut *lock(&self.listing), listing.clone()) != listing;
            let unready = change == Change::Everything;
            let tags = self.forget(change).await;
            if self.changes.send(self.change(tags, unready, differs)).is_err() {
                return;
            }
            change = watch.changed().await;
        }
    }

    fn change(&self, tags: BTreeSet<ReleaseTag>, unready: bool, listing: bool) -> SourceChange {
        let mut change = SourceChange::of_tags(tags);
        let place = Place::Directory(self.path.clone());
        change.unready.extend(unready.then(|| place.clone()));
        change.listings.extend(listing.then_some(place));
        change
    }

    async fn list(&self) -> Listing {
        match self.source.list().await {
            Ok(listing) => known(listing),
            Err(error) => unavailable(&error),
        }
    }

    /// Forgets what is not provably the same as before: it is opened again when it is needed. Gives the releases that may have other files.
    async fn forget(&self, change: Change) -> BTreeSet<ReleaseTag> {
        let (tags, everything) = match change {
            Change::Tags(tags) => (tags, false),
            // A storage that does not answer says nothing about what was read from it.
            Change::Everything => (self.source.changed(self.usable()).await.unwrap_or_default(), true),
        };
        let mut memory = lock(&self.memory);
        memory.generation += 1;
        memory.opened.retain(|tag, opened| {
            let usable = matches!(opened, Opened::Ready { .. });
            !tags.contains(tag) && (usable || !everything)
        });
        tags
    }

    fn usable(&self) -> Vec<(ReleaseTag, Digest)> {
        let memory = lock(&self.memory);
        let usable = memory.opened.iter().filter_map(|(tag, opened)| match opened {
            Opened::Ready { files, .. } => Some((tag.clone(), files.release.digest)),
            Opened::Missing { .. } | Opened::Broken { .. } | Opened::Refused { .. } => None,
        });
        usable.collect()
    }
}

/// A directory is watched: nobody can say when it will be asked again.
fn unavailable(error: &(dyn std::error::Error + 'static)) -> Listing {
    Listing::Unavailable {
        message: chain(error),
        outage: None,
    }
}

#[cfg(test)]
mod tests;
