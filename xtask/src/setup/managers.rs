//! The managers of Cluster API in several minors, each with the CRDs and webhooks that its API server has to know of, and kwok. Built from the
//! Go modules below `e2e/managers`; one minor is built beside clusterctl, see [`super::clusterapi`].
//!
//! Minors share no package: what they are built on has other versions in each. So each costs minutes of its own.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Parts, cache::Cache, clusterapi, go::Go, manifests::Manifests, module::Module};
use crate::workspace::Workspace;

/// A manager and its configuration on this machine.
#[derive(Deserialize, Serialize)]
pub(super) struct Manager {
    /// The program itself.
    program: PathBuf,
    /// The folder with `crd/kustomization.yaml`, `crd/bases` and `webhook/manifests.yaml`.
    config: PathBuf,
}

/// kwok on this machine.
#[derive(Deserialize, Serialize)]
pub(super) struct Kwok {
    /// The program itself.
    program: PathBuf,
    /// The folder with what a node and a Pod do.
    stages: PathBuf,
}

/// What one manager is built from.
struct Source {
    module: &'static Module,
    /// The file name of the program.
    program: &'static str,
    /// Where its configuration is; the name is that of the manager: the provider, `@` and the minor.
    manifests: Manifests,
    /// The folder of the configuration, within the module.
    config: &'static str,
}

/// Without symbols: nobody debugs these here.
const LINKER_FLAGS: &str = "-s -w";

/// kwok is built on the Kubernetes of this minor.
const NEWEST: Module = Module {
    folder: "e2e/managers/1.14",
    title: "Cluster API 1.14 and kwok",
    kind: "cluster-api-1.14",
    programs: "tool",
};

const SECOND: Module = Module {
    folder: "e2e/managers/1.13",
    title: "Cluster API 1.13",
    kind: "cluster-api-1.13",
    programs: "tool",
};

const THIRD: Module = Module {
    folder: "e2e/managers/1.12",
    title: "Cluster API 1.12",
    kind: "cluster-api-1.12",
    programs: "sigs.k8s.io/cluster-api",
};

/// Of one name with the next, so that both cannot come from one build.
const BOOTSTRAP: Module = Module {
    folder: "e2e/managers/1.12",
    title: "kubeadm's bootstrap provider 1.12",
    kind: "kubeadm-bootstrap-1.12",
    programs: "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
};

const CONTROL_PLANE: Module = Module {
    folder: "e2e/managers/1.12",
    title: "kubeadm's control plane provider 1.12",
    kind: "kubeadm-control-plane-1.12",
    programs: "sigs.k8s.io/cluster-api/controlplane/kubeadm",
};

const DOCKER: Module = Module {
    folder: "e2e/managers/1.12",
    title: "the docker provider 1.12",
    kind: "docker-1.12",
    programs: "sigs.k8s.io/cluster-api/test/infrastructure/docker",
};

const SUM_1_12: &str = "h1:iFOz8b0LdrMJS5Df1Eb7wyvTkWqlTUM2LHFEHCeI6vA=";

const SOURCES: [Source; 7] = [
    Source {
        module: &clusterapi::MODULE,
        program: "cluster-api",
        manifests: Manifests {
            name: "core@1.10",
            source: "sigs.k8s.io/cluster-api@v1.10.5",
            sum: "h1:yCTEWpbw5SaXMupG0U9GTOs13/q36dGcc9+cFdPuMdE=",
            folders: &["config/crd", "config/crd/bases", "config/webhook"],
        },
        config: "config",
    },
    Source {
        module: &THIRD,
        program: "cluster-api",
        manifests: Manifests {
            name: "core@1.12",
            source: "sigs.k8s.io/cluster-api@v1.12.0",
            sum: SUM_1_12,
            folders: &["config/crd", "config/crd/bases", "config/webhook"],
        },
        config: "config",
    },
    Source {
        module: &SECOND,
        program: "cluster-api",
        manifests: Manifests {
            name: "core@1.13",
            source: "sigs.k8s.io/cluster-api@v1.13.6",
            sum: "h1:imZVIstbRIq2DoKftQv0wPm+vyhWXrE3Zft8E43maqo=",
            folders: &["config/crd", "config/crd/bases", "config/webhook"],
        },
        config: "config",
    },
    Source {
        module: &NEWEST,
        program: "core",
        manifests: Manifests {
            name: "core@1.14",
            source: "sigs.k8s.io/cluster-api@v1.14.2",
            sum: "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
            folders: &["core/config/crd", "core/config/crd/bases", "core/config/webhook"],
        },
        config: "core/config",
    },
    Source {
        module: &BOOTSTRAP,
        program: "kubeadm",
        manifests: Manifests {
            name: "kubeadm-bootstrap@1.12",
            source: "sigs.k8s.io/cluster-api@v1.12.0",
            sum: SUM_1_12,
            folders: &[
                "bootstrap/kubeadm/config/crd",
                "bootstrap/kubeadm/config/crd/bases",
                "bootstrap/kubeadm/config/webhook",
            ],
        },
        config: "bootstrap/kubeadm/config",
    },
    Source {
        module: &CONTROL_PLANE,
        program: "kubeadm",
        manifests: Manifests {
            name: "kubeadm-control-plane@1.12",
            source: "sigs.k8s.io/cluster-api@v1.12.0",
            sum: SUM_1_12,
            folders: &[
                "controlplane/kubeadm/config/crd",
                "controlplane/kubeadm/config/crd/bases",
                "controlplane/kubeadm/config/webhook",
            ],
        },
        config: "controlplane/kubeadm/config",
    },
    Source {
        module: &DOCKER,
        program: "docker",
        manifests: Manifests {
            name: "docker@1.12",
            source: "sigs.k8s.io/cluster-api/test@v1.12.0",
            sum: "h1:OpxFwNSu9j9jY2v4dl90rSi5W9is8/vBXxGCTci5gyE=",
            folders: &[
                "infrastructure/docker/config/crd",
                "infrastructure/docker/config/crd/bases",
                "infrastructure/docker/config/webhook",
            ],
        },
        config: "infrastructure/docker/config",
    },
];

/// What a node and a Pod do at once, and the Lease by which a node lives.
const STAGES: Manifests = Manifests {
    name: "kwok",
    source: "sigs.k8s.io/kwok@v0.8.0",
    sum: "h1:OTIOTwgROqPMovcTwxICx2eYQ4AwLpSx5EpjbDKF4SQ=",
    folders: &[
        "kustomize/stage/node/fast",
        "kustomize/stage/node/heartbeat-with-lease",
        "kustomize/stage/pod/fast",
    ],
};

impl Source {
    /// Whether these parts have it.
    fn is_of(&self, parts: Parts) -> bool {
        match parts {
            Parts::Clusters => self.module.folder == NEWEST.folder,
            _ => true,
        }
    }
}

/// Builds the managers that these parts have, by their names.
pub(super) fn build(
    workspace: &Workspace,
    cache: &Cache,
    go: &Go,
    parts: Parts,
) -> anyhow::Result<BTreeMap<String, Manager>> {
    SOURCES
        .iter()
        .filter(|source| source.is_of(parts))
        .map(|source| {
            let config = source.manifests.fetch(workspace, cache, go)?.join(source.config);
            let program = source
                .module
                .build(workspace, cache, go, LINKER_FLAGS)?
                .join(source.program);
            Ok((source.manifests.name.to_owned(), Manager { program, config }))
        })
        .collect()
}

/// Builds kwok.
pub(super) fn build_kwok(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<Kwok> {
    let stages = STAGES.fetch(workspace, cache, go)?.join("kustomize/stage");
    let program = NEWEST.build(workspace, cache, go, LINKER_FLAGS)?.join("kwok");
    Ok(Kwok { program, stages })
}
