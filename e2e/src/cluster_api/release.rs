//! Which Cluster API: the minors whose managers the lab has, and in what they differ for those who talk to them.

use std::{env, fmt};

use crate::hooks::Hook;
use crate::summary;

/// Set by `cargo xtask test --matrix`.
const MATRIX_VARIABLE: &str = "STACKWRIGHT_MATRIX";

/// A minor of Cluster API. The order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// 1.10.5, of the last minor with the API version v1beta1 alone.
    V1_10,
    /// 1.12.0, the first with hooks around the upgrade of control plane and workers.
    V1_12,
    /// 1.13.6
    V1_13,
    /// 1.14.2
    V1_14,
}

impl Release {
    /// All of them, the oldest first.
    pub const ALL: [Self; 4] = [Self::V1_10, Self::V1_12, Self::V1_13, Self::V1_14];

    /// Those that tests of whole journeys run on: the oldest and the newest, or all of them when the run is one on everything.
    pub fn for_journeys() -> Vec<Self> {
        if Self::is_run_on_everything() {
            return Self::ALL.to_vec();
        }
        vec![Self::V1_10, Self::V1_14]
    }

    /// Those that tests of what is the same everywhere run on: the newest, or all of them when the run is one on everything.
    pub fn newest_of_run() -> Vec<Self> {
        if Self::is_run_on_everything() {
            return Self::ALL.to_vec();
        }
        vec![Self::V1_14]
    }

    /// Whether the run is one on everything. Whoever shows nothing otherwise says so for the summary of the run.
    pub fn is_run_on_everything_or_told() -> bool {
        let is_so = Self::is_run_on_everything();
        if !is_so {
            summary::test_is_reduced("runs with --matrix alone");
        }
        is_so
    }

    fn is_run_on_everything() -> bool {
        env::var_os(MATRIX_VARIABLE).is_some()
    }

    /// The minor as people write it: `1.10`.
    pub fn minor(self) -> &'static str {
        match self {
            Self::V1_10 => "1.10",
            Self::V1_12 => "1.12",
            Self::V1_13 => "1.13",
            Self::V1_14 => "1.14",
        }
    }

    /// The newest API version of Clusters that it serves; each serves v1beta1.
    pub fn newest_version(self) -> &'static str {
        match self {
            Self::V1_10 => "cluster.x-k8s.io/v1beta1",
            Self::V1_12 | Self::V1_13 | Self::V1_14 => "cluster.x-k8s.io/v1beta2",
        }
    }

    /// Whether its manager knows a hook. A list of handlers with one that it does not know is refused as a whole.
    pub fn knows(self, hook: Hook) -> bool {
        self >= Self::V1_12 || !hook.is_of_1_12()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Cluster API {}", self.minor())
    }
}

/// A part of Cluster API with a manager of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Clusters, classes, machines. The lab has it in every minor.
    Core,
    /// kubeadm's configurations of machines. In 1.12 alone, and only when the set-up was asked for the matrix; so are the next two.
    KubeadmBootstrap,
    /// `KubeadmControlPlane`.
    KubeadmControlPlane,
    /// The docker provider, whose backend in memory needs no docker.
    Docker,
}

impl Provider {
    /// As the description of the lab calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::KubeadmBootstrap => "kubeadm-bootstrap",
            Self::KubeadmControlPlane => "kubeadm-control-plane",
            Self::Docker => "docker",
        }
    }

    /// As it calls itself in a label of all that it installs.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Core => "cluster-api",
            Self::KubeadmBootstrap => "bootstrap-kubeadm",
            Self::KubeadmControlPlane => "control-plane-kubeadm",
            Self::Docker => "infrastructure-docker",
        }
    }

    /// What is switched on beside its defaults.
    pub(super) fn feature_gates(self) -> &'static str {
        match self {
            Self::Core => "ClusterTopology=true,RuntimeSDK=true",
            // It has no gate of its own; this is its default.
            Self::KubeadmBootstrap => "MachinePool=true",
            Self::KubeadmControlPlane | Self::Docker => "ClusterTopology=true",
        }
    }

    /// For the summary of a run: something was run on this minor of it, because here it is.
    pub(super) fn announce(self, release: Release) {
        summary::ran_on(&match self {
            Self::Core => release.to_string(),
            Self::KubeadmBootstrap | Self::KubeadmControlPlane | Self::Docker => {
                format!("{} {}", self.name(), release.minor())
            }
        });
    }
}
