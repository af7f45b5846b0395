//! Why nothing more happens to objects, as data for reports; the conditions say the same in words.

use std::collections::BTreeSet;

use crds::resource::Health;
use serde::{Deserialize, Serialize};

use super::decisions::Decisions;
use super::prune::Fate;
use super::set::ObjectSet;
use super::sync::{SyncState, is_unreadable};
use crate::object_key::{GroupKind, ObjectKey};

/// What is waited for before more happens to objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Wait {
    /// Objects of a kind that has not been listed may be left of an owner that goes.
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

impl ObjectSet<'_> {
    /// Why nothing more happens, sorted and without repetition.
    pub fn waits(&self, decisions: &Decisions) -> BTreeSet<Wait> {
        let mut waits = BTreeSet::new();
        if self.deleting {
            let unseen = self.unseen().into_iter();
            waits.extend(unseen.map(|group_kind| Wait::List { group_kind }));
        }
        if let Some(asked) = &decisions.asked
            && !self.is_open(decisions)
        {
            waits.insert(Wait::PruneApproval {
                digest: asked.digest.clone(),
                objects: asked.objects,
            });
        }
        let wanted = decisions.wanted.iter();
        waits.extend(wanted.filter_map(|(key, sync)| self.wait(key, &sync.state)));
        waits.extend(decisions.leftovers.iter().filter_map(|(key, fate)| match fate {
            Fate::Failed { message, .. } => Some(Wait::Object {
                key: key.clone(),
                message: message.clone(),
            }),
            Fate::Gone | Fate::LeftAlone | Fate::Going { .. } => None,
        }));
        waits
    }

    fn wait(&self, key: &ObjectKey, state: &SyncState) -> Option<Wait> {
        match state {
            SyncState::KindMissing => Some(Wait::Kind {
                group_kind: key.group_kind(),
            }),
            SyncState::Failed { message } | SyncState::Missing { message } | SyncState::Contested { message } => {
                Some(Wait::Object {
                    key: key.clone(),
                    message: message.clone(),
                })
            }
            SyncState::Held { release } => Some(Wait::Holder {
                release: release.clone(),
            }),
            SyncState::Synced | SyncState::Drifted { .. } => self.wait_for_health(key),
            SyncState::Unverified | SyncState::Pending | SyncState::Superseded { .. } | SyncState::Outgrown { .. } => {
                None
            }
        }
    }

    fn wait_for_health(&self, key: &ObjectKey) -> Option<Wait> {
        let seen = self.objects.get(key)?.memory.health.as_ref()?;
        let ill = !matches!(seen.state, Health::Current | Health::Unknown);
        ill.then(|| Wait::Health {
            key: key.clone(),
            state: seen.state,
            message: seen.message.clone(),
        })
    }

    /// Whether how many would be deleted may still change soon. An object that nobody can read again and again holds no approval of the others up: an
    /// approval is of those that it names.
    fn is_open(&self, decisions: &Decisions) -> bool {
        let is_unreadable = |key| self.objects.get(key).is_some_and(is_unreadable);
        let mut leftovers = decisions.leftovers.iter();
        leftovers.any(|(key, fate)| fate.is_open() && !is_unreadable(key))
    }
}
