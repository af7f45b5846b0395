//! Watches one kind that may not be installed yet, and keeps of each object only what a closure makes of it.
//!
//! While the kind is not served nothing is asked: a change of CRDs wakes the watch. That a kind is not served is believed
//! only when discovery and the CRDs agree on it: whoever took a version that went, or an API server that just starts, for
//! "there are no objects" would delete what they use.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::client::Client;
use kube::runtime::watcher::{self, Event};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::crd_watch::{CrdWatch, Serving};
use crate::discovery::{Discovery, DiscoveryError, Resolved};
use crate::failure::{chain, is_unanswered, words_of_watch};
use crate::object::GroupKind;
use crate::pages::Unreadable;
use crate::shallow::Shallow;
use crate::watch_log::WatchLog;
use crate::watching::watching;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The kind.
    pub kind: GroupKind,
    /// Only objects with such labels, as a selector of the API server; all when empty.
    pub labels: String,
    /// Only objects of this namespace; those of all when empty.
    pub namespace: String,
}

impl From<GroupKind> for Watched {
    fn from(kind: GroupKind) -> Self {
        Self {
            kind,
            labels: String::new(),
            namespace: String::new(),
        }
    }
}

/// Namespace (empty for cluster-scoped kinds) and name.
pub type Place = (String, String);

/// What the watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice<T> {
    /// The projection of an object changed. `None`: there is none (any more), because the object went or no longer
    /// projects to anything.
    Changed {
        /// Of which object.
        place: Place,
        /// The projection before.
        before: Option<Arc<T>>,
        /// The projection now.
        after: Option<Arc<T>>,
    },
    /// Every object has been seen, or it is known that the kind is not served. Told whenever [`ProjectedWatch::synced`]
    /// becomes true.
    Synced,
}

/// Notices that may wait for the reader; more hold the watch back.
const NOTICES_WAITING: usize = 256;

/// Whole objects per page: a page of Clusters stays below a megabyte.
const PAGE_SIZE: u32 = 50;

/// Until the next look while it is not sure whether the kind is served, at first; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// What is said of it until then.
const UNSURE: &str = "the CRDs and discovery do not agree on whether the kind is served";

/// The longest time between two looks.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The projections of all objects of one kind. Clones share them.
pub struct ProjectedWatch<T> {
    state: Arc<RwLock<State<T>>>,
}

impl<T> Clone for ProjectedWatch<T> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
        }
    }
}

/// That not everything has been seen (yet, or again).
#[derive(Clone, Debug)]
pub struct Unlisted {
    /// Since when.
    pub since: Instant,
    /// What went wrong last, in the words of the API server.
    pub error: Option<String>,
}

struct State<T> {
    projections: BTreeMap<Place, Arc<T>>,
    /// `None`: everything has been seen.
    unlisted: Option<Unlisted>,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            projections: BTreeMap::new(),
            unlisted: Some(Unlisted::by_now()),
        }
    }
}

impl Unlisted {
    fn by_now() -> Self {
        Self {
            since: Instant::now(),
            error: None,
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> ProjectedWatch<T> {
    /// Watches a kind in the version that the API server prefers. Only changes of the projection are
    /// told; the receiver must be read, the watch waits for it.
    pub fn start(
        client: Client,
        discovery: Discovery,
        crds: &CrdWatch,
        watched: impl Into<Watched>,
        project: impl Fn(&Shallow<DynamicObject>) -> Option<T> + Send + Sync + 'static,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice<T>>) {
        let (notices, receiver) = mpsc::channel(NOTICES_WAITING);
        let state = Arc::new(RwLock::default());
        let watched = watched.into();
        let follower = Follower {
            client,
            discovery,
            watched,
            crds: crds.clone(),
            project,
            notices,
            state: Arc::clone(&state),
        };
        tokio::spawn(async move { cancel.run_until_cancelled_owned(follower.run()).await });
        (Self { state }, receiver)
    }

    /// Everything known, sorted by namespace and name.
    pub fn snapshot(&self) -> Vec<(Place, Arc<T>)> {
        self.select(|_, _| true)
    }

    /// What is known of the objects that the test accepts, sorted by namespace and name.
    pub fn select(&self, accept: impl Fn(&Place, &T) -> bool) -> Vec<(Place, Arc<T>)> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state
            .projections
            .iter()
            .filter(|(place, projection)| accept(place, projection))
            .map(|(place, projection)| (place.clone(), Arc::clone(projection)))
            .collect()
    }

    /// What is known of one object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.projections.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Whether an empty [`Self::snapshot`] means that there is nothing: all objects have been seen, or the kind is not
    /// served. False again from the moment in which the version that is watched is no longer served, until that is known
    /// of what follows it.
    pub fn synced(&self) -> bool {
        self.unlisted().is_none()
    }

    /// Why [`Self::synced`] is false, if it is.
    pub fn unlisted(&self) -> Option<Unlisted> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.unlisted.clone()
    }
}

struct Follower<T, F> {
    client: Client,
    discovery: Discovery,
    crds: CrdWatch,
    watched: Watched,
    project: F,
    notices: mpsc::Sender<Notice<T>>,
    state: Arc<RwLock<State<T>>>,
}

/// Nobody reads the notices any more.
struct ReaderGone;

impl<T, F> Follower<T, F>
where
    T: PartialEq + Send + Sync + 'static,
    F: Fn(&Shallow<DynamicObject>) -> Option<T> + Send + Sync,
{
    async fn run(self) -> Result<(), ReaderGone> {
        let mut log = WatchLog::new(&self.watched.kind);
        let mut refused: Option<Resolved> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            // A change during the look is waited for below; older ones are in what the look shows.
            let mut changes = self.crds.subscribe();
            match self.look(refused.as_ref()).await {
                Ok(Serving::Served(resolved)) if refused.as_ref() != Some(&resolved) => {
                    self.mark_synced(false);
                    self.follow(&resolved, &mut log).await?;
                    if self.mark_synced(false) {
                        pause = FIRST_PAUSE;
                    }
                    refused = Some(resolved);
                    continue;
                }
                Ok(Serving::NotServed) => {
                    log.not_served();
                    self.keep_only(&HashSet::new()).await?;
                    self.synced().await?;
                    pause = FIRST_PAUSE;
                    // Never closed: we hold the sender. Behind is as good as a change.
                    let _ = changes.recv().await;
                }
                unsure => {
                    let words = unsure.as_ref().err().map(|error| chain(error));
                    if let Err(error) = unsure
                        && !is_unanswered(&error)
                    {
                        tracing::warn!(kind = %self.watched.kind, error = %chain(&error), "failed to look up a kind to watch");
                    }
                    self.mark_troubled(words.unwrap_or_else(|| UNSURE.to_owned()));
                    let _ = timeout(pause, changes.recv()).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            refused = None;
        }
    }

    /// Looks the kind up. What discovery has in memory is believed, unless a watch in just that version was refused.
    async fn look(&self, refused: Option<&Resolved>) -> Result<Serving, DiscoveryError> {
        if refused.is_some() {
            self.discovery.refresh().await?;
        }
        self.crds.serving(&self.discovery, &self.watched.kind).await
    }

    /// Follows the kind until it is no longer served in this version. What was seen of it stays: it may be served in
    /// another one.
    async fn follow(&self, resolved: &Resolved, log: &mut WatchLog) -> Result<(), ReaderGone> {
        let api: Api<Shallow<DynamicObject>> = resolved.api_within(&self.client, &self.watched.namespace);
        let mut events = pin!(watching(api, &self.watched.labels, PAGE_SIZE));
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
            if event.as_ref().is_err_and(is_not_served) {
                return Ok(());
            }
            log.heard(&event);
            if let Err(error) = &event {
                self.mark_troubled(words_of_watch(error));
            }
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(object)) => {
                    listed.insert(place_of(&object));
                    self.set(place_of(&object), (self.project)(&object)).await?;
                }
                Ok(Event::InitDone) => {
                    self.keep_only(&std::mem::take(&mut listed)).await?;
                    self.synced().await?;
                }
                Ok(Event::Apply(object)) => self.set(place_of(&object), (self.project)(&object)).await?,
                Ok(Event::Delete(object)) => self.set(place_of(&object), None).await?,
                Err(error) => {
                    // It is there, and what was seen of it before is all that is known of it.
                    if let Some(Unreadable { namespace, name, .. }) = Unreadable::of(&error) {
                        listed.insert((namespace.clone(), name.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    async fn set(&self, place: Place, projection: Option<T>) -> Result<(), ReaderGone> {
        let after = projection.map(Arc::new);
        let before = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            match &after {
                Some(after) => state.projections.insert(place.clone(), Arc::clone(after)),
                None => state.projections.remove(&place),
            }
        };
        if before == after {
            return Ok(());
        }
        self.tell(Notice::Changed { place, before, after }).await
    }

    async fn keep_only(&self, listed: &HashSet<Place>) -> Result<(), ReaderGone> {
        let gone: Vec<Place> = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            state
                .projections
                .keys()
                .filter(|place| !listed.contains(*place))
                .cloned()
                .collect()
        };
        for place in gone {
            self.set(place, None).await?;
        }
        Ok(())
    }

    async fn synced(&self) -> Result<(), ReaderGone> {
        if self.mark_synced(true) {
            Ok(())
        } else {
            self.tell(Notice::Synced).await
        }
    }

    /// Returns what it was before.
    fn mark_synced(&self, synced: bool) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let before = state.unlisted.is_none();
        if before != synced {
            state.unlisted = (!synced).then(Unlisted::by_now);
        }
        before
    }

    /// Takes why a list did not come; one that came stands.
    fn mark_troubled(&self, words: String) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(unlisted) = &mut state.unlisted {
            unlisted.error = Some(words);
        }
    }

    async fn tell(&self, notice: Notice<T>) -> Result<(), ReaderGone> {
        self.notices.send(notice).await.map_err(|_| ReaderGone)
    }
}

fn place_of(object: &DynamicObject) -> Place {
    (
        object.metadata.namespace.clone().unwrap_or_default(),
        object.metadata.name.clone().unwrap_or_default(),
    )
}

fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
