//! Watches one kind that may not be installed yet, and keeps of each object only what a closure makes of it.
//!
//! While the kind is not served nothing is asked: a change of CRDs wakes the watch.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::client::Client;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::crd_watch::{CrdChange, CrdWatch};
use crate::discovery::{Discovery, Resolved};
use crate::failure::chain;
use crate::object::GroupKind;

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
    /// Every object has been seen, or it is known that the kind is not served. Told once.
    Synced,
}

/// Notices that may wait for the reader; more hold the watch back.
const NOTICES_WAITING: usize = 256;

/// Whole objects per page: a page of Clusters stays below a megabyte.
const PAGE_SIZE: u32 = 50;

/// Between attempts to read discovery when it cannot be read.
const DISCOVERY_RETRY: Duration = Duration::from_secs(5);

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

struct State<T> {
    projections: BTreeMap<Place, Arc<T>>,
    synced: bool,
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self {
            projections: BTreeMap::new(),
            synced: false,
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> ProjectedWatch<T> {
    /// Watches `kind` in the version that the API server prefers, in all namespaces. Only changes of the projection are
    /// told; the receiver must be read, the watch waits for it.
    pub fn start(
        client: Client,
        discovery: Discovery,
        crds: &CrdWatch,
        kind: GroupKind,
        project: impl Fn(&DynamicObject) -> Option<T> + Send + Sync + 'static,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice<T>>) {
        let (notices, receiver) = mpsc::channel(NOTICES_WAITING);
        let state = Arc::new(RwLock::default());
        let follower = Follower {
            client,
            discovery,
            kind,
            project,
            notices,
            state: Arc::clone(&state),
        };
        let changes = crds.subscribe();
        tokio::spawn(async move { cancel.run_until_cancelled_owned(follower.run(changes)).await });
        (Self { state }, receiver)
    }

    /// Everything known, sorted by namespace and name.
    pub fn snapshot(&self) -> Vec<(Place, Arc<T>)> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state
            .projections
            .iter()
            .map(|(place, projection)| (place.clone(), Arc::clone(projection)))
            .collect()
    }

    /// What is known of one object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.projections.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    /// Whether an empty [`Self::snapshot`] means that there is nothing: all objects have been seen, or the kind is not
    /// served.
    pub fn synced(&self) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).synced
    }
}

struct Follower<T, F> {
    client: Client,
    discovery: Discovery,
    kind: GroupKind,
    project: F,
    notices: mpsc::Sender<Notice<T>>,
    state: Arc<RwLock<State<T>>>,
}

/// Nobody reads the notices any more.
struct ReaderGone;

impl<T, F> Follower<T, F>
where
    T: PartialEq + Send + Sync + 'static,
    F: Fn(&DynamicObject) -> Option<T> + Send + Sync,
{
    async fn run(self, mut changes: broadcast::Receiver<CrdChange>) {
        loop {
            let round = match self.resolve().await {
                Some(resolved) => self.follow(&resolved).await,
                None => self.synced().await,
            };
            // Here the kind is not served: either it never was, or its watch ended.
            if round.is_err() || matches!(changes.recv().await, Err(RecvError::Closed)) {
                return;
            }
        }
    }

    async fn resolve(&self) -> Option<Resolved> {
        loop {
            match self.discovery.resolve_kind(&self.kind).await {
                Ok(resolved) => return resolved,
                Err(error) => {
                    tracing::warn!(object.kind = %self.kind, error = %chain(&error), "failed to look up a kind to watch");
                    tokio::time::sleep(DISCOVERY_RETRY).await;
                }
            }
        }
    }

    /// Follows the kind until it is no longer served; then nothing is left of it.
    async fn follow(&self, resolved: &Resolved) -> Result<(), ReaderGone> {
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resolved.resource);
        let mut events = pin!(watcher(api, watcher::Config::default().page_size(PAGE_SIZE)).default_backoff());
        let mut listed = HashSet::new();
        while let Some(event) = events.next().await {
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
                Err(error) if is_not_served(&error) => {
                    self.discovery.invalidate();
                    self.keep_only(&HashSet::new()).await?;
                    return self.synced().await;
                }
                Err(error) => {
                    tracing::warn!(object.kind = %self.kind, error = %chain(&error), "watch interrupted; it starts again by itself");
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

    /// Says so the first time only: later listings are told as changes.
    async fn synced(&self) -> Result<(), ReaderGone> {
        let before = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut state.synced, true)
        };
        if before {
            Ok(())
        } else {
            self.tell(Notice::Synced).await
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
