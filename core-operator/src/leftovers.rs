//! What the Go operator left behind: ClusterClasses that it applied and nobody has taken over. Says what there is; judges nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use crds::labels;
use crds::names::{ClassName, ReleaseStem};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::projection::{Notice, ProjectedWatch, Watched};
use planning::stack::templates_of;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clusters::CLUSTER_API_GROUP;
use crate::objects::is_predecessors;

/// One such class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftBehind {
    /// The release that it was made for, in the spelling of classes.
    class: ClassName,
    pub(crate) uid: String,
    pub(crate) deleting: bool,
    pub(crate) templates: BTreeSet<ObjectKey>,
}

impl LeftBehind {
    /// The stack that it was made for.
    pub(crate) fn stem(&self) -> ReleaseStem {
        self.class.release_tag().stem().clone()
    }
}

/// The watch of them. Classes that are ours have a mark by which the API server leaves them out: once all are taken over, it shows nothing.
pub(crate) struct Leftovers {
    watch: ProjectedWatch<LeftBehind>,
    /// Identities of what was deleted, until the watch has shown it.
    deleted: Mutex<HashSet<String>>,
}

impl Leftovers {
    pub(crate) fn start(
        client: Client,
        discovery: Discovery,
        crds: &CrdWatch,
        namespace: &str,
        cancel: CancellationToken,
    ) -> (Self, mpsc::Receiver<Notice<LeftBehind>>) {
        let watched = Watched {
            kind: kind(),
            labels: format!("{}={},!{}", labels::INSTANCE, labels::INSTANCE_OWNED, labels::PART_OF),
            namespace: namespace.to_owned(),
        };
        let (watch, notices) =
            ProjectedWatch::start(client, discovery, crds, watched, |class| left_behind(class), cancel);
        let deleted = Mutex::default();
        (Self { watch, deleted }, notices)
    }

    /// The classes of this stack in a namespace, by name; `None` until all are known.
    pub(crate) fn of(&self, namespace: &str, stem: &ReleaseStem) -> Option<BTreeMap<String, LeftBehind>> {
        if !self.watch.synced() {
            return None;
        }
        let deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut classes = BTreeMap::new();
        for ((place, name), class) in self.watch.snapshot() {
            if place == namespace && class.stem() == *stem {
                let deleting = class.deleting || deleted.contains(&class.uid);
                let class = LeftBehind {
                    deleting,
                    ..class.as_ref().clone()
                };
                classes.insert(name, class);
            }
        }
        Some(classes)
    }

    /// Remembers a deletion, which the watch may show later.
    pub(crate) fn note_deleted(&self, uid: &str) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.insert(uid.to_owned());
    }

    /// Forgets a class that the watch no longer shows.
    pub(crate) fn forget(&self, uid: &str) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        deleted.remove(uid);
    }
}

/// The kind of classes.
pub(crate) fn kind() -> GroupKind {
    GroupKind::new(CLUSTER_API_GROUP, "ClusterClass")
}

fn left_behind(class: &DynamicObject) -> Option<LeftBehind> {
    let name = class.metadata.name.as_deref()?;
    // The Go operator writes no zeros before a number.
    let made = name.parse().ok().filter(|made: &ClassName| made.to_string() == name)?;
    is_predecessors(class).then(|| LeftBehind {
        class: made,
        uid: class.uid().unwrap_or_default(),
        deleting: class.metadata.deletion_timestamp.is_some(),
        templates: templates_of(&class.data, &class.namespace().unwrap_or_default()),
    })
}
