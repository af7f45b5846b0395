//! The words of events. Scripts read them, so a word is never renamed.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, IntoStaticStr};

use crate::conditions::Reason;

/// What an event tells that no condition says: something took place.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display, EnumIter, IntoStaticStr,
)]
pub enum Happening {
    /// A stack created releases.
    ClusterStackReleaseCreated,
    /// A stack deleted releases.
    ClusterStackReleaseDeleted,
    /// `ClusterClasses` without a release were found.
    OrphansFound,
    /// `ClusterClasses` without a release were deleted.
    OrphansDeleted,
    /// Objects of a release were put back.
    DriftCorrected,
    /// An object was there before the release that wants it.
    ObjectShared,
    /// A release went without a look at kinds that the operator may not list.
    ObjectsLeftAlone,
    /// The provider's object could not be taken under control.
    ProviderNotControlled,
    /// A Cluster got its ClusterAddon.
    ClusterAddonCreated,
    /// The ClusterAddon of a Cluster that is gone was deleted.
    ClusterAddonDeleted,
    /// Somebody made a ClusterAddon that is for no Cluster.
    ClusterAddonUnused,
    /// Stages of the add-ons of a cluster became done.
    StageDone,
    /// A cluster begins to get other add-ons than it has.
    UpgradeBegun,
    /// A cluster has the add-ons of its upgrade.
    UpgradeDone,
    /// A cluster gets other add-ons before those that it was to get were complete.
    UpgradePreempted,
    /// Somebody lets a cluster go on without what a hook waits for.
    HookOverridden,
    /// A record of an image was made in a cloud.
    ImageCreated,
    /// An image was found to be what it must be.
    ImageVerified,
    /// An image, or the record of a failed attempt, was deleted from a cloud.
    ImageDiscarded,
    /// An image of somebody else is used.
    ImageAdopted,
    /// An object went without its image.
    ImageLeftBehind,
    /// A cloud has an image of ours that no object is for.
    OrphanFound,
    /// Such an image was deleted.
    OrphanDeleted,
}

/// The reason of an event: what took place, or why a condition is as it is. There are no others, so that the reference explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventReason(&'static str);

impl EventReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<Happening> for EventReason {
    fn from(happening: Happening) -> Self {
        Self(happening.into())
    }
}

impl From<Reason> for EventReason {
    fn from(reason: Reason) -> Self {
        Self(reason.as_str())
    }
}
