//! The words of a plan: what an executor can be told to do, in which order. Decides nothing.

use std::collections::BTreeSet;

use crds::cluster_stack_release::ClusterStackReleaseStatus;
use serde::{Deserialize, Serialize};

use crate::object_key::{GroupKind, ObjectKey};

/// Actions that may run side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What to do, sorted by object. All are tried, whatever becomes of the others.
    pub actions: Vec<ReleaseAction>,
    /// Whether the pass ends after this step when one of its actions failed, because what follows builds on it.
    pub gate: bool,
}

/// One thing to do. An executor has no choices: every operand is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ReleaseAction {
    /// Put our finalizer and the list of kinds on the release object.
    Mark {
        /// The kinds that the annotation has to name.
        group_kinds: BTreeSet<GroupKind>,
    },
    /// Make the release the controlling owner of the provider's object, provided that it still has this identity.
    ControlProvider {
        /// The identity.
        uid: String,
    },
    /// Write this status now: it holds the inventory of what the next steps create, or says that what they delete was approved.
    RecordInventory {
        /// The status to write.
        status: Box<ClusterStackReleaseStatus>,
    },
    /// Server-side apply of an object of the rendering.
    Apply {
        /// Which.
        key: ObjectKey,
        /// Why, for events and for the count of reversals.
        why: ApplyReason,
        /// Whether fields of other managers are taken.
        force: bool,
    },
    /// Server-side apply of an object of the rendering as a dry run, to learn whether the live object differs.
    Check {
        /// Which.
        key: ObjectKey,
    },
    /// Read an object by name.
    Read {
        /// Which.
        key: ObjectKey,
    },
    /// Rename what the Go operator owns in an object to our field manager.
    TakeOver {
        /// Which.
        key: ObjectKey,
    },
    /// Delete an object, provided that it is still as it was read: what somebody wants by now has been written since.
    Delete {
        /// Which.
        key: ObjectKey,
        /// Its identity.
        uid: String,
        /// The version that was read.
        resource_version: String,
    },
    /// Let the release object go.
    RemoveFinalizer,
}

/// Why an object is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyReason {
    /// It is not there, or not ours yet. One that was there before is marked to stay when the release goes.
    Create,
    /// The release wants something else than was applied.
    Update,
    /// Somebody changed it.
    Correct,
    /// It is as the release wants it, and was put here by somebody who moved or restored it.
    Restore,
    /// It carries the mark of nobody: the release that held it is gone, or somebody changed the mark.
    Adopt,
}

impl Step {
    pub(super) fn gate(actions: Vec<ReleaseAction>) -> Self {
        Self { actions, gate: true }
    }
}

impl ReleaseAction {
    /// What it does, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mark { .. } => "mark",
            Self::ControlProvider { .. } => "control provider",
            Self::RecordInventory { .. } => "record inventory",
            Self::Apply { .. } => "apply",
            Self::Check { .. } => "check",
            Self::Read { .. } => "read",
            Self::TakeOver { .. } => "take over",
            Self::Delete { .. } => "delete",
            Self::RemoveFinalizer => "remove finalizer",
        }
    }

    /// The object of the release that it is about, if it is not about the release itself or the provider's object.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Apply { key, .. }
            | Self::Check { key }
            | Self::Read { key }
            | Self::TakeOver { key }
            | Self::Delete { key, .. } => Some(key),
            Self::Mark { .. } | Self::ControlProvider { .. } | Self::RecordInventory { .. } | Self::RemoveFinalizer => {
                None
            }
        }
    }

    pub(super) fn apply(key: &ObjectKey, why: ApplyReason, force: bool) -> Self {
        Self::Apply {
            key: key.clone(),
            why,
            force,
        }
    }
}
