//! What is done to a release itself, and to the provider's object that belongs to it. Decides nothing.

use std::collections::BTreeSet;

use crds::cluster_stack_release::ClusterStackReleaseStatus;
use serde::{Deserialize, Serialize};

use crate::object_key::GroupKind;
use crate::objects::{self, OwnAction};

/// One thing to do to the release.
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
    /// Let the release object go.
    RemoveFinalizer,
}

/// What is done side by side to a release and its objects.
pub type Step = objects::Step<ReleaseAction>;

impl OwnAction for ReleaseAction {
    fn name(&self) -> &'static str {
        match self {
            Self::Mark { .. } => "mark",
            Self::ControlProvider { .. } => "control provider",
            Self::RecordInventory { .. } => "record inventory",
            Self::RemoveFinalizer => "remove finalizer",
        }
    }
}
