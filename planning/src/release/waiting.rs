//! Why nothing more happens to a release, as data for reports; the conditions say the same in words.

use std::collections::BTreeSet;

use crds::resource::Health;
use serde::{Deserialize, Serialize};

use super::object::{SyncState, is_unreadable};
use super::objects::{Objects, moved_from};
use super::observed::{Assets, Provider, ReleaseObserved, Rendering};
use super::prune::Fate;
use super::reach::unseen;
use super::without_files::is_without_files;
use crate::object_key::{GroupKind, ObjectKey};

/// Why nothing more happens, as data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Waiting {
    /// The object is paused.
    Paused,
    /// A watch has not listed yet what the status was made from: what it says still stands.
    Watches,
    /// The spec cannot be used.
    InvalidSpec,
    /// The source does not have the release.
    Assets,
    /// No signature of the release is good, and one may come.
    Signature,
    /// The release is signed wrongly.
    Unverified,
    /// The release has to be mended.
    BrokenRelease,
    /// The source holds other bytes than those that were pinned.
    DigestChanged,
    /// The chart does not render.
    Rendering,
    /// The chart did not render, for a reason that may pass.
    NextRendering,
    /// The chart takes long to render, or has many before it.
    SlowRendering,
    /// The provider is not ready.
    Provider,
    /// Clusters are not known yet.
    ClusterList,
    /// Clusters use the class.
    InUse {
        /// Which (`namespace/name`).
        clusters: BTreeSet<String>,
    },
    /// Objects of a kind that has not been listed may be left of a release that goes.
    List {
        /// Which.
        group_kind: GroupKind,
    },
    /// A kind is not served.
    Kind {
        /// Which.
        group_kind: GroupKind,
    },
    /// Another release holds an object and has not said yet what it applied.
    Holder {
        /// Which.
        release: String,
    },
    /// An object is in line and not healthy.
    Health {
        /// Which.
        key: ObjectKey,
        /// How it is.
        state: Health,
        /// What is wrong or awaited.
        message: String,
    },
    /// An object could not be brought in line.
    Object {
        /// Which.
        key: ObjectKey,
        /// Why.
        message: String,
    },
    /// A prune is larger than the limit.
    PruneApproval {
        /// What `approve-prune` has to say.
        digest: String,
        /// How many objects would go.
        objects: usize,
    },
}

/// Why nothing more happens, sorted and without repetition.
pub(super) fn waiting(observed: &ReleaseObserved, objects: &Objects) -> Vec<Waiting> {
    let mut waiting = BTreeSet::new();
    if observed.deleting {
        match &observed.used_by {
            None => waiting.insert(Waiting::ClusterList),
            Some(clusters) if !clusters.is_empty() => waiting.insert(Waiting::InUse {
                clusters: clusters.clone(),
            }),
            Some(_) => false,
        };
        waiting.extend(
            unseen(observed)
                .into_iter()
                .map(|group_kind| Waiting::List { group_kind }),
        );
    } else {
        waiting.extend(waiting_for_inputs(observed));
        if let Some(digest) = &objects.asked
            && !is_open(observed, objects)
        {
            waiting.insert(Waiting::PruneApproval {
                digest: digest.clone(),
                objects: objects.held.len(),
            });
        }
    }
    for (key, sync) in &objects.wanted {
        match &sync.state {
            SyncState::KindMissing => waiting.insert(Waiting::Kind {
                group_kind: GroupKind::new(&*key.group, &*key.kind),
            }),
            SyncState::Failed { message } | SyncState::Missing { message } | SyncState::Contested { message } => {
                waiting.insert(Waiting::Object {
                    key: key.clone(),
                    message: message.clone(),
                })
            }
            SyncState::Held { release } => waiting.insert(Waiting::Holder {
                release: release.clone(),
            }),
            SyncState::Synced | SyncState::Drifted { .. } => {
                waiting_for_health(observed, key).is_some_and(|item| waiting.insert(item))
            }
            SyncState::Unverified | SyncState::Pending | SyncState::Superseded { .. } | SyncState::Outgrown { .. } => {
                false
            }
        };
    }
    for (key, fate) in &objects.leftovers {
        if let Fate::Failed { message, .. } = fate {
            waiting.insert(Waiting::Object {
                key: key.clone(),
                message: message.clone(),
            });
        }
    }
    waiting.into_iter().collect()
}

fn waiting_for_health(observed: &ReleaseObserved, key: &ObjectKey) -> Option<Waiting> {
    let seen = observed.objects.get(key)?.memory.health.as_ref()?;
    let ill = !matches!(seen.state, Health::Current | Health::Unknown);
    ill.then(|| Waiting::Health {
        key: key.clone(),
        state: seen.state,
        message: seen.message.clone(),
    })
}

/// Whether how many would be deleted may still change soon. An object that nobody can read again and again holds no approval of the others up: an approval
/// is of those that it names.
fn is_open(observed: &ReleaseObserved, objects: &Objects) -> bool {
    let is_unreadable = |key| observed.objects.get(key).is_some_and(is_unreadable);
    let mut leftovers = objects.leftovers.iter();
    leftovers.any(|(key, fate)| fate.is_open() && !is_unreadable(key))
}

fn waiting_for_inputs(observed: &ReleaseObserved) -> Vec<Waiting> {
    let assets = match &observed.assets {
        _ if moved_from(observed).is_some() => Some(Waiting::DigestChanged),
        Assets::Missing { .. } if is_without_files(observed) => None,
        Assets::Missing { .. } => Some(Waiting::Assets),
        Assets::Broken { .. } => Some(Waiting::BrokenRelease),
        Assets::Refused { awaited: true, .. } => Some(Waiting::Signature),
        Assets::Refused { awaited: false, .. } => Some(Waiting::Unverified),
        Assets::Ready { .. } | Assets::NotRead => None,
    };
    let provider = match &observed.provider {
        Provider::NotWanted | Provider::Found { ready: true, .. } => None,
        Provider::Foreign => Some(Waiting::InvalidSpec),
        _ => Some(Waiting::Provider),
    };
    let rendering = match &observed.rendering {
        Rendering::Failed { transient: None, .. } => Some(Waiting::Rendering),
        Rendering::Failed { transient: Some(_), .. } => Some(Waiting::NextRendering),
        Rendering::Awaited { .. } => Some(Waiting::SlowRendering),
        Rendering::NotRendered | Rendering::Rendered { .. } => None,
    };
    assets.into_iter().chain(provider).chain(rendering).collect()
}
