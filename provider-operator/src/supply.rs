//! Has the files of releases: brings what is asked for, in the background and for as long as somebody asks for it, and says what is here or what is in the
//! way. Whoever asks never waits. What is done with the files others decide.

mod bringing;
mod keeping;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::names::ReleaseTag;
use crds::release_files::NodeImages;
use crds::source::Source;
use planning::outage::Outage;
use release::store::{Store, StoreError, StoreOptions};
use release::{Admitted, Digest, Purpose};
use sourcing::{Connector, DownloadArgs, Place};
use storage::BlockingWork;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;

use self::bringing::bring;
use self::keeping::Keeping;
pub(crate) use self::keeping::Needed;
use crate::clock::Clock;

/// Releases are read for what is read of them here: whether their charts are good is the business of whoever renders them.
const PURPOSE: Purpose = Purpose::NodeImages;

/// A release that nobody has asked for for so long is not tried to be had any more, and what is known of it is forgotten.
const UNUSED: Duration = Duration::from_hours(1);

/// How long one file of a release may take to be read from a disk.
const READ_DEADLINE: Duration = Duration::from_secs(30);

/// Files that are read at the same time.
const READINGS: usize = 4;

/// Told of the tag of every release of which there is something new. Must not wait.
pub(crate) type Wake = Arc<dyn Fn(&str) + Send + Sync>;

/// A release as somebody asks for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wish {
    place: Place,
    tag: ReleaseTag,
    pinned: Option<Digest>,
}

/// The files of a release, as far as drivers need them.
pub(crate) struct Supplied {
    pub(crate) files: Arc<Admitted>,
    /// What the file with the images says; `None` when there is none.
    pub(crate) images: Option<NodeImages>,
    /// Where the files came from, for people.
    pub(crate) source: String,
}

/// What became of asking for a release.
#[derive(Clone)]
pub(crate) enum Opened {
    /// It is being brought.
    Coming,
    /// It is here.
    Ready(Arc<Supplied>),
    /// Something is in the way.
    Hindered(Hindrance),
}

/// What is in the way of a release.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hindrance {
    pub(crate) why: Why,
    /// In words for people.
    pub(crate) message: String,
    /// Since when, and when it is tried again.
    pub(crate) outage: Option<Outage>,
}

/// What sort of thing is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The source cannot be used as it is configured.
    Unusable,
    /// The source does not answer.
    Unavailable,
    /// The source does not have it.
    Missing,
    /// It cannot be used.
    Broken,
    /// It is not the one that is wanted, but has this digest.
    Differs(Digest),
}

struct Entry {
    opened: Opened,
    /// Those whose objects named the place: nobody else is given what came from there.
    namespaces: BTreeSet<String>,
    used: Instant,
    /// Somebody wants it tried now.
    asked: Arc<Notify>,
}

/// The files of releases. Clones share them.
#[derive(Clone)]
pub(crate) struct Supply(Arc<Shared>);

struct Shared {
    connector: Arc<Connector>,
    options: StoreOptions,
    store: OnceCell<Store>,
    keeping: Keeping,
    readings: Arc<BlockingWork>,
    clock: Clock,
    wake: Wake,
    entries: Mutex<HashMap<Wish, Entry>>,
}

impl Supply {
    /// Nothing is here yet, and nobody is asked.
    pub(crate) fn new(connector: Arc<Connector>, download: &DownloadArgs, clock: Clock, wake: Wake) -> Self {
        Self(Arc::new(Shared {
            connector,
            options: StoreOptions {
                purpose: PURPOSE,
                ..StoreOptions::new(download.cache_dir.clone(), download.cache_max_bytes)
            },
            store: OnceCell::new(),
            keeping: Keeping::default(),
            readings: BlockingWork::new(READINGS, READ_DEADLINE),
            clock,
            wake,
            entries: Mutex::default(),
        }))
    }

    /// A release of the source that an object of this namespace names. With a digest it is that one and no other.
    pub(crate) fn open(
        &self,
        source: Option<&Source>,
        namespace: &str,
        tag: &ReleaseTag,
        pinned: Option<Digest>,
    ) -> Opened {
        let place = match self.0.connector.place(source, namespace) {
            Ok(place) => place,
            Err(error) => {
                return Opened::Hindered(Hindrance {
                    why: Why::Unusable,
                    message: error.to_string(),
                    outage: None,
                });
            }
        };
        let tag = tag.clone();
        let wish = Wish { place, tag, pinned };
        let mut entries = self.0.entries();
        if let Some(entry) = entries.get_mut(&wish) {
            entry.used = Instant::now();
            entry.namespaces.insert(namespace.to_owned());
            return entry.opened.clone();
        }
        let asked = Arc::<Notify>::default();
        entries.insert(
            wish.clone(),
            Entry {
                opened: Opened::Coming,
                namespaces: BTreeSet::from([namespace.to_owned()]),
                used: Instant::now(),
                asked: Arc::clone(&asked),
            },
        );
        drop(entries);
        tokio::spawn(bring(Arc::clone(&self.0), wish, asked));
        Opened::Coming
    }

    /// A release of this digest, if it is here and came from a place that this namespace has opened it from. A digest is no secret: it stands in status and
    /// in events, and whoever has read it there has not been let in by the source.
    pub(crate) fn find(&self, namespace: &str, tag: &ReleaseTag, digest: Digest) -> Option<Arc<Supplied>> {
        let entries = self.0.entries();
        let mut here = entries.iter().filter_map(|(wish, entry)| match &entry.opened {
            Opened::Ready(supplied) if wish.tag == *tag && entry.namespaces.contains(namespace) => Some(supplied),
            _ => None,
        });
        here.find(|supplied| supplied.files.release().digest == digest).cloned()
    }

    /// Somebody asks for it now: what is in the way of it is tried at once.
    pub(crate) fn request(&self, tag: &ReleaseTag) {
        for (wish, entry) in self.0.entries().iter() {
            if wish.tag == *tag {
                entry.asked.notify_one();
            }
        }
    }
}

impl Shared {
    /// The store of what was downloaded, opened when it is needed for the first time: an operator of directories needs none.
    async fn store(&self) -> Result<&Store, StoreError> {
        let open = async || {
            let store = Store::open(self.options.clone()).await?;
            self.keeping.pass_on(&store).await;
            Ok(store)
        };
        self.store.get_or_try_init(open).await
    }

    /// Says what is known now; false when nobody wants to know.
    fn tell(&self, wish: &Wish, opened: Opened) -> bool {
        {
            let mut entries = self.entries();
            let Some(entry) = entries.get_mut(wish) else {
                return false;
            };
            if entry.used.elapsed() > UNUSED {
                entries.remove(wish);
                return false;
            }
            entry.opened = opened;
        }
        (self.wake)(&wish.tag.to_string());
        true
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Wish, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
