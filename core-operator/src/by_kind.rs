//! Watches of kinds that others name, of which nobody knows beforehand: each kind is followed by one watch from the first question about it, as long as
//! somebody names it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Client;
use kube::api::DynamicObject;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::object::GroupKind;
use operator_kit::projection::{Notice, ProjectedWatch, Watched};
use operator_kit::shallow::Shallow;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::sources::is_recent;

/// Where an object of such a kind changed.
#[derive(Clone, Debug)]
pub(crate) struct KindChange {
    pub(crate) kind: GroupKind,
    pub(crate) namespace: String,
    /// `None`: anything may have changed.
    pub(crate) name: Option<String>,
}

/// What is kept of an object.
type Project<T> = dyn Fn(&GroupKind, &Shallow<DynamicObject>) -> T + Send + Sync;

/// A watch of one kind.
struct Following<T> {
    watch: ProjectedWatch<T>,
    since: Instant,
    /// What ends it with this value.
    _end: DropGuard,
}

/// All watches for one purpose, and what they keep of each object.
pub(crate) struct WatchesByKind<T> {
    client: Client,
    discovery: Discovery,
    crds: CrdWatch,
    /// The only one that is looked at, or empty.
    namespace: String,
    project: Arc<Project<T>>,
    cancel: CancellationToken,
    changes: mpsc::UnboundedSender<KindChange>,
    kinds: Mutex<HashMap<GroupKind, Following<T>>>,
}

impl<T: PartialEq + Send + Sync + 'static> WatchesByKind<T> {
    pub(crate) fn new(
        client: Client,
        discovery: Discovery,
        crds: CrdWatch,
        namespace: &str,
        project: impl Fn(&GroupKind, &Shallow<DynamicObject>) -> T + Send + Sync + 'static,
        cancel: CancellationToken,
    ) -> (Self, mpsc::UnboundedReceiver<KindChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let watches = Self {
            client,
            discovery,
            crds,
            namespace: namespace.to_owned(),
            project: Arc::new(project),
            cancel,
            changes,
            kinds: Mutex::default(),
        };
        (watches, receiver)
    }

    /// Where changes of objects of other kinds may be told too.
    pub(crate) fn changes(&self) -> mpsc::UnboundedSender<KindChange> {
        self.changes.clone()
    }

    /// Follows a kind from now on, also when it is not served yet.
    pub(crate) fn follow(&self, kind: &GroupKind) -> ProjectedWatch<T> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(following) = kinds.get_mut(kind) {
            following.since = Instant::now();
            return following.watch.clone();
        }
        let (project, of_kind) = (Arc::clone(&self.project), kind.clone());
        let end = self.cancel.child_token();
        let (watch, notices) = ProjectedWatch::start(
            self.client.clone(),
            self.discovery.clone(),
            &self.crds,
            Watched {
                namespace: self.namespace.clone(),
                ..kind.clone().into()
            },
            move |object| Some(project(&of_kind, object)),
            end.clone(),
        );
        tokio::spawn(forward(kind.clone(), notices, self.changes.clone()));
        let following = Following {
            watch: watch.clone(),
            since: Instant::now(),
            _end: end.drop_guard(),
        };
        kinds.insert(kind.clone(), following);
        watch
    }

    /// Ends the watches of kinds that nobody names, unless somebody asked for them a moment ago.
    pub(crate) fn keep(&self, is_named: impl Fn(&GroupKind) -> bool) {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.retain(|kind, following| is_named(kind) || is_recent(following.since));
    }

    /// The kinds that are followed.
    #[cfg(test)]
    pub(crate) fn followed(&self) -> Vec<GroupKind> {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        kinds.keys().cloned().collect()
    }
}

async fn forward<T>(
    kind: GroupKind,
    mut notices: mpsc::Receiver<Notice<T>>,
    changes: mpsc::UnboundedSender<KindChange>,
) {
    while let Some(notice) = notices.recv().await {
        let (namespace, name) = match notice {
            Notice::Changed {
                place: (namespace, name),
                ..
            } => (namespace, Some(name)),
            Notice::Synced => (String::new(), None),
        };
        let kind = kind.clone();
        if changes.send(KindChange { kind, namespace, name }).is_err() {
            return;
        }
    }
}
