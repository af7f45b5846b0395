//! Watches the metadata of the objects we applied, of whatever kinds, by a label. Tells what changed; keeps a little.
//!
//! One watch per kind, for the whole cluster or one namespace; what has no namespace is looked for everywhere. Where watches are dear, kinds beyond a
//! [`Budget`] are listed now and then instead. Single objects of others are followed by their names while somebody waits for them
//! ([`ObjectWatches::follow_named`]). What an object contains is not known here: who needs it reads it.

mod budget;
mod named;
mod seen;
mod store;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use kube::client::Client;
use kube::core::{GroupVersionKind, ObjectMeta};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::budget::{Budget, Counted};
pub use self::named::READS_PAUSE;
pub use self::seen::{LONGEST_ANNOTATION, Seen, Trigger, What};
pub use self::store::Changed;

use self::named::Names;
use self::store::Store;
use crate::discovery::{Discovery, DiscoveryError, Resolved};
use crate::failure::Lasting;
use crate::object::{GroupKind, ObjectKey, group_kind};

/// What the watches tell, in order per kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An object changed.
    Object(Changed),
    /// A change was noted before its watch showed it: the one whose objects carry the mark `by` knows, all others have to be told.
    Noted {
        /// What changed.
        changed: Changed,
        /// The value of the watched label.
        by: String,
    },
    /// Every object of the kind has been seen: absence now means something.
    Synced(GroupKind),
    /// The kind is no longer served; its objects were told as vanished. [`ObjectWatches::ensure`] starts it again.
    Stopped(GroupKind),
    /// An object that is followed by its name was looked at for the first time, or is another than it was.
    Named(ObjectKey),
}

/// Notices that may wait for the reader. More hold the watches back, which costs nothing but time.
const NOTICES_WAITING: usize = 1024;

/// Which objects are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The key of the label that marks our objects; its value says whose part one is.
    label: String,
    /// The only value that is looked for, if it is one.
    part_of: Option<String>,
    /// The only namespace that is looked into, beside what has none; empty for all.
    namespace: String,
    /// The key of the annotation that is kept.
    annotation: Option<String>,
}

impl Marked {
    /// Those with the label, whatever its value is. With a `namespace` nothing is asked of others.
    pub fn by_anybody(label: &str, namespace: &str) -> Self {
        Self {
            label: label.to_owned(),
            part_of: None,
            namespace: namespace.to_owned(),
            annotation: None,
        }
    }

    /// Those that are part of one owner, wherever they are. In an API server that many owners use, each of whom has watches of its own, nobody then
    /// hears of what the others do.
    pub fn by(label: &str, part_of: &str) -> Self {
        Self {
            label: label.to_owned(),
            part_of: Some(part_of.to_owned()),
            namespace: String::new(),
            annotation: None,
        }
    }

    /// The same, of each of which the value of this annotation is kept ([`Seen::annotation`]).
    #[must_use]
    pub fn keeping(self, annotation: &str) -> Self {
        Self {
            annotation: Some(annotation.to_owned()),
            ..self
        }
    }

    /// What is seen of an object with this metadata; `None` when it lacks the label, or is shown although it is another owner's.
    fn seen(&self, metadata: &ObjectMeta) -> Option<Seen> {
        let is_shown = |seen: &Seen| self.part_of.as_ref().is_none_or(|part_of| *part_of == *seen.part_of);
        let seen = Seen::of(metadata, &self.label).filter(is_shown)?;
        Some(match &self.annotation {
            Some(annotation) => seen.keeping(annotation, metadata),
            None => seen,
        })
    }

    /// As the API server selects them.
    fn selector(&self) -> String {
        match &self.part_of {
            Some(part_of) => format!("{}={part_of}", self.label),
            None => self.label.clone(),
        }
    }
}

/// The watches of one API server. Clones share them.
#[derive(Clone)]
pub struct ObjectWatches {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    discovery: Discovery,
    marked: Marked,
    budget: Option<Budget>,
    store: RwLock<Store>,
    running: Mutex<HashMap<GroupKind, Running>>,
    /// Locked after `running`, where both are.
    names: Mutex<Names>,
    notices: mpsc::Sender<Notice>,
    cancel: CancellationToken,
}

#[derive(Debug)]
struct Running {
    resolved: Resolved,
    /// Watched, or listed now and then.
    is_watched: bool,
    synced: bool,
    /// What went wrong last before it was.
    trouble: Option<Trouble>,
    /// When it was asked for last.
    asked: Instant,
    end: CancellationToken,
}

/// Why a watch has not listed its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    lasting: Lasting,
    /// Whether the right is missing.
    pub forbidden: bool,
}

impl Trouble {
    /// In the words of the API server.
    pub fn words(&self) -> &str {
        &self.lasting.words
    }
}

impl ObjectWatches {
    /// Watches nothing yet. The receiver must be read: the watches wait for it.
    pub fn new(
        client: Client,
        discovery: Discovery,
        marked: Marked,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice>) {
        Self::bounded(None, client, discovery, marked, cancel)
    }

    /// The same, with no more watches than these; the other kinds are listed now and then, and nothing is told of them in between.
    pub fn within(
        budget: Budget,
        client: Client,
        discovery: Discovery,
        marked: Marked,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice>) {
        Self::bounded(Some(budget), client, discovery, marked, cancel)
    }

    fn bounded(
        budget: Option<Budget>,
        client: Client,
        discovery: Discovery,
        marked: Marked,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice>) {
        let (notices, receiver) = mpsc::channel(NOTICES_WAITING);
        let inner = Inner {
            client,
            discovery,
            marked,
            budget,
            store: RwLock::default(),
            running: Mutex::default(),
            names: Mutex::default(),
            notices,
            cancel,
        };
        (Self { inner: Arc::new(inner) }, receiver)
    }

    /// Starts following a kind, unless it is followed already (in whatever version). False when it is not served. One that is listed now and then
    /// is watched as soon as that may be.
    pub async fn ensure(&self, gvk: &GroupVersionKind) -> Result<bool, DiscoveryError> {
        let kind = group_kind(gvk);
        if self.inner.follow(&kind, None) {
            return Ok(true);
        }
        let resolved = self.inner.discovery.resolve(gvk).await?;
        Ok(resolved.is_some_and(|resolved| self.inner.follow(&kind, Some(resolved))))
    }

    /// Ends the watches of kinds that are not needed, which is asked with the time at which they were ensured last. What was seen of them is
    /// forgotten, and told to nobody.
    pub fn keep(&self, is_needed: impl Fn(&GroupKind, Instant) -> bool) {
        let mut running = self.inner.running();
        running.retain(|kind, watch| {
            let is_kept = is_needed(kind, watch.asked);
            if !is_kept {
                // In this order: what the watch has in hand must not come after.
                watch.end.cancel();
                self.inner.store().forget_kind(kind);
            }
            is_kept
        });
    }

    /// Whether every object of the kind has been seen since its watch was started.
    pub fn synced(&self, kind: &GroupKind) -> bool {
        let running = self.inner.running();
        running.get(kind).is_some_and(|running| running.synced)
    }

    /// Whether the kind is followed and there is no watch for it now: it is listed now and then, and nothing tells of its objects in between.
    pub fn only_lists(&self, kind: &GroupKind) -> bool {
        let running = self.inner.running();
        running.get(kind).is_some_and(|running| !running.is_watched)
    }

    /// Why not every object of the kind has been seen, where the API server has said why.
    pub fn trouble(&self, kind: &GroupKind) -> Option<Trouble> {
        let running = self.inner.running();
        running.get(kind)?.trouble.clone()
    }

    /// Whether objects of all owners are shown, and not those of one only.
    pub fn shows_others(&self) -> bool {
        self.inner.marked.part_of.is_none()
    }

    /// An object with this metadata, in the answer to a read or write of it, as the watch of its kind will show it; `None` when it will not. What is noted
    /// and never shown would stay for ever.
    ///
    /// Of a version that the watch has shown, it is what the watch has shown: an answer may say more. What a version of a kind has for annotations alone is
    /// in no metadata, because these are not converted.
    pub fn sight(&self, key: &ObjectKey, metadata: &ObjectMeta) -> Option<Seen> {
        let answered = self.inner.marked.seen(metadata)?;
        let shown = self.get(key);
        let is_same = |shown: &Seen| shown.uid == answered.uid && shown.resource_version == answered.resource_version;
        Some(shown.filter(is_same).unwrap_or(answered))
    }

    /// What was last seen of an object; `None` also when it lacks the label or its kind is not watched.
    pub fn get(&self, key: &ObjectKey) -> Option<Seen> {
        self.inner
            .store
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Takes the [`sight`](Self::sight) of an object that `by` has read or written, so that a decision made before the watch tells of it does not rest on the past. What the watch
    /// has shown already, and what is newer, stays, and what has gone since does not come back. The watch will not tell of it any more, so it is told
    /// here.
    pub async fn note(&self, by: &str, key: &ObjectKey, seen: Seen) {
        self.inner.note(by, |store| store.note(key.clone(), seen)).await;
    }

    /// Takes that an object is not there, though `before` had been seen of it when `by` asked for it. Told as by [`ObjectWatches::note`].
    pub async fn note_absent(&self, by: &str, key: &ObjectKey, before: &Seen) {
        self.inner.note(by, |store| store.forget(key, before)).await;
    }

    /// Everything that is part of one owner and in this namespace or in none, among the kinds that are watched; in whatever namespace without one. Sorted
    /// by key.
    pub fn by_part_of(&self, part_of: &str, namespace: Option<&str>) -> Vec<(ObjectKey, Seen)> {
        self.inner
            .store
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .by_part_of(part_of, namespace)
    }

    /// Objects remembered.
    pub fn len(&self) -> usize {
        self.inner.store.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// No object is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, HashMap<GroupKind, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> std::sync::RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something of a watch, unless it was ended: another one of the kind may have begun.
    fn mark(&self, kind: &GroupKind, end: &CancellationToken, mark: impl FnOnce(&mut Running)) {
        let mut running = self.running();
        if let Some(running) = running.get_mut(kind).filter(|_| !end.is_cancelled()) {
            mark(running);
        }
    }

    fn mark_stopped(&self, kind: &GroupKind, end: &CancellationToken) {
        let mut running = self.running();
        if !end.is_cancelled() {
            running.remove(kind);
        }
    }

    /// Changes what is known once it can be told: whoever gives up before has changed nothing, and the watch will tell.
    async fn note(&self, by: &str, change: impl FnOnce(&mut Store) -> Option<Changed>) {
        let place = self.notices.reserve().await;
        let changed = change(&mut self.store());
        if let (Ok(place), Some(changed)) = (place, changed) {
            let by = by.to_owned();
            place.send(Notice::Noted { changed, by });
        }
    }

    /// False when the reader has gone.
    async fn tell(&self, notice: Notice) -> bool {
        self.notices.send(notice).await.is_ok()
    }
}

#[cfg(test)]
mod tests;
