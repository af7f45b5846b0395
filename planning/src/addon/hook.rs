//! The lifecycle hooks of Cluster API, in the order in which a cluster meets them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A lifecycle hook. Ordered as in the life of a cluster.
///
/// Names and order are those of Cluster API 1.10.5 to 1.14.2 (`lifecyclehooks_types.go`); `BeforeControlPlaneUpgrade` and the two of the workers are
/// there since 1.12. Under these names releases list their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Hook {
    /// Before anything of the cluster is made.
    BeforeClusterCreate,
    /// The API server of the cluster answers for the first time.
    AfterControlPlaneInitialized,
    /// Before an upgrade of Kubernetes begins.
    BeforeClusterUpgrade,
    /// Before the control plane takes the next version.
    BeforeControlPlaneUpgrade,
    /// The control plane has the version.
    AfterControlPlaneUpgrade,
    /// Before the workers take the version.
    BeforeWorkersUpgrade,
    /// The workers have the version.
    AfterWorkersUpgrade,
    /// The upgrade is over.
    AfterClusterUpgrade,
    /// Before anything of the cluster is deleted.
    BeforeClusterDelete,
}

impl Hook {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::BeforeClusterCreate,
        Self::AfterControlPlaneInitialized,
        Self::BeforeClusterUpgrade,
        Self::BeforeControlPlaneUpgrade,
        Self::AfterControlPlaneUpgrade,
        Self::BeforeWorkersUpgrade,
        Self::AfterWorkersUpgrade,
        Self::AfterClusterUpgrade,
        Self::BeforeClusterDelete,
    ];

    /// The hooks of a cluster that comes into being.
    pub(super) const OF_CREATION: [Self; 2] = [Self::BeforeClusterCreate, Self::AfterControlPlaneInitialized];

    /// The hooks of an upgrade.
    pub(super) const OF_UPGRADE: [Self; 6] = [
        Self::BeforeClusterUpgrade,
        Self::BeforeControlPlaneUpgrade,
        Self::AfterControlPlaneUpgrade,
        Self::BeforeWorkersUpgrade,
        Self::AfterWorkersUpgrade,
        Self::AfterClusterUpgrade,
    ];

    /// The name that Cluster API and the files of releases use.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforeClusterCreate => "BeforeClusterCreate",
            Self::AfterControlPlaneInitialized => "AfterControlPlaneInitialized",
            Self::BeforeClusterUpgrade => "BeforeClusterUpgrade",
            Self::BeforeControlPlaneUpgrade => "BeforeControlPlaneUpgrade",
            Self::AfterControlPlaneUpgrade => "AfterControlPlaneUpgrade",
            Self::BeforeWorkersUpgrade => "BeforeWorkersUpgrade",
            Self::AfterWorkersUpgrade => "AfterWorkersUpgrade",
            Self::AfterClusterUpgrade => "AfterClusterUpgrade",
            Self::BeforeClusterDelete => "BeforeClusterDelete",
        }
    }

    /// The hook of this name, exactly.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// The last hook whose stages have to be over before a call of this one is answered with yes.
    ///
    /// Two hooks that nothing that can be seen lies between are one moment, so that the stages of the second run in time also where a minor of
    /// Cluster API does not know it: only `AfterControlPlaneUpgrade` holds the workers back before 1.12.
    pub(super) fn last_of_moment(self) -> Self {
        match self {
            Self::BeforeClusterCreate => Self::BeforeClusterCreate,
            Self::AfterControlPlaneInitialized => Self::AfterControlPlaneInitialized,
            Self::BeforeClusterUpgrade | Self::BeforeControlPlaneUpgrade => Self::BeforeControlPlaneUpgrade,
            Self::AfterControlPlaneUpgrade | Self::BeforeWorkersUpgrade => Self::BeforeWorkersUpgrade,
            Self::AfterWorkersUpgrade | Self::AfterClusterUpgrade => Self::AfterClusterUpgrade,
            Self::BeforeClusterDelete => Self::BeforeClusterDelete,
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
