//! What is done to a ClusterAddon itself, and to what belongs to it alone. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_addon::{AddonMemo, ClusterAddonStatus};
use serde::{Deserialize, Serialize};

use crate::object_key::GroupKind;
use crate::objects::{self, OwnAction};

/// One thing to do to the ClusterAddon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AddonAction {
    /// Make the Cluster its owner, in the place of any other Cluster.
    SetOwner {
        /// Name of the Cluster.
        name: String,
        /// Its identity.
        uid: String,
    },
    /// Put our finalizer and the list of kinds on it.
    Mark {
        /// The kinds that the annotation has to name.
        group_kinds: BTreeSet<GroupKind>,
    },
    /// Write these annotations: they say how far the cluster has come, whatever becomes of the status.
    SetMarks {
        /// Values by name.
        marks: BTreeMap<String, String>,
    },
    /// Write what the charts drew at random into its Secret. What follows is made of it, and nobody can draw it again.
    RecordMemo {
        /// What the Secret has to hold then.
        memo: AddonMemo,
        /// What was recorded before is gone, or is another than it was, and is not what is written: somebody is to be told.
        anew: bool,
    },
    /// Write this status now: it holds the inventory of what the next steps create, or says that what they delete was approved.
    RecordInventory {
        /// The status to write.
        status: Box<ClusterAddonStatus>,
    },
    /// Delete it: its Cluster is gone, or is another one by now.
    Delete {
        /// Its identity.
        uid: String,
    },
    /// Let it go.
    RemoveFinalizer,
}

/// What is done side by side to a ClusterAddon and its objects.
pub type Step = objects::Step<AddonAction>;

impl OwnAction for AddonAction {
    fn name(&self) -> &'static str {
        match self {
            Self::SetOwner { .. } => "set owner",
            Self::Mark { .. } => "mark",
            Self::SetMarks { .. } => "set marks",
            Self::RecordMemo { .. } => "record memo",
            Self::RecordInventory { .. } => "record inventory",
            Self::Delete { .. } => "delete add-on",
            Self::RemoveFinalizer => "remove finalizer",
        }
    }
}
