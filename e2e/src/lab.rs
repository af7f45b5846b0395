//! What the set-up built and fetched, and where: reads the description that `cargo xtask setup` writes.
//!
//! Builds and fetches nothing itself.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Names another description than the one of this workspace.
const LAB_VARIABLE: &str = "STACKWRIGHT_LAB";

/// The programs and files from outside this repository that tests need.
#[derive(Clone, Debug, Deserialize)]
pub struct Lab {
    /// The program built from `e2e/controlplane`.
    pub controlplane: PathBuf,
    /// The program built from `e2e/outside`; only the whole set-up makes it.
    outside: Option<PathBuf>,
    /// The folder of the programs built from `e2e/clusterapi`; only the whole set-up makes it.
    clusterapi: Option<PathBuf>,
    /// The managers of Cluster API by provider and minor; only the whole set-up makes them.
    #[serde(default)]
    managers: BTreeMap<String, ManagerHere>,
    /// What plays nodes; only the whole set-up makes it.
    kwok: Option<KwokHere>,
    /// What runs Pods; only the whole set-up looks for it.
    node: Option<NodeHere>,
    /// Real Helm, by minor version (`v3.19`): the oracle of rendering.
    #[serde(default)]
    pub helm: BTreeMap<String, PathBuf>,
    /// Folders with the CRDs of other projects, by the project's name; see [`crate::definitions`].
    #[serde(default)]
    pub crds: BTreeMap<String, PathBuf>,
}

/// A manager of Cluster API.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ManagerHere {
    /// The program itself.
    pub(crate) program: PathBuf,
    /// The folder of its module with CRDs and webhooks; see [`crate::cluster_api`].
    pub(crate) config: PathBuf,
}

/// What plays nodes.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct KwokHere {
    /// The program itself.
    pub(crate) program: PathBuf,
    /// The folder with what a node and a Pod do.
    pub(crate) stages: PathBuf,
}

/// What set-up says of a node on this machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum NodeHere {
    Programs(NodePrograms),
    Missing(String),
}

/// The programs of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct NodePrograms {
    /// The folder with `kubelet` and `pause`.
    pub(crate) kubelet: PathBuf,
    /// The folder with `containerd`, its shim, `ctr`, and the plugins of the network.
    pub(crate) containerd: PathBuf,
    /// The program itself.
    pub(crate) runc: PathBuf,
}

/// The folder of this workspace, as it was when this room was built.
pub fn workspace() -> &'static Path {
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    room.parent().unwrap_or(room)
}

impl Lab {
    /// What runs any command for as long as somebody holds its standard input; built with the control plane.
    pub(crate) fn guard(&self) -> PathBuf {
        self.controlplane.with_file_name("guard")
    }

    /// Reads the description: the file that the environment variable `STACKWRIGHT_LAB` names, else `.lab/lab.json` of
    /// this workspace.
    pub fn load() -> Result<Self> {
        let path = env::var_os(LAB_VARIABLE).map_or_else(|| workspace().join(".lab/lab.json"), PathBuf::from);
        let text = fs::read(&path)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` first", path.display()))?;
        let lab: Self = serde_json::from_slice(&text)
            .with_context(|| format!("unable to read {}: run `cargo xtask setup` again", path.display()))?;
        anyhow::ensure!(
            lab.controlplane.is_file(),
            "{} names {}, which is not there: run `cargo xtask setup` again",
            path.display(),
            lab.controlplane.display()
        );
        Ok(lab)
    }

    /// The program built from `e2e/outside`: a real registry, and what fills it.
    pub fn outside(&self) -> Result<&Path> {
        let path = self.outside.as_deref().filter(|path| path.is_file());
        path.context("the lab has no programs of others: run `cargo xtask setup` first")
    }

    /// A program built from `e2e/clusterapi`: see [`crate::cluster_api`].
    pub fn cluster_api(&self, program: &str) -> Result<PathBuf> {
        let path = self.clusterapi.as_ref().map(|folder| folder.join(program));
        path.filter(|path| path.is_file())
            .context("the lab has no programs of Cluster API: run `cargo xtask setup` first")
    }

    /// A manager of Cluster API by its provider and minor: see [`crate::cluster_api`].
    pub(crate) fn manager(&self, name: &str) -> Result<&ManagerHere> {
        let manager = self.managers.get(name).filter(|manager| manager.program.is_file());
        manager.with_context(|| format!("the lab has no {name}: run `cargo xtask setup` first"))
    }

    /// What plays nodes: see [`crate::kwok`].
    pub(crate) fn kwok(&self) -> Result<&KwokHere> {
        let kwok = self.kwok.as_ref().filter(|kwok| kwok.program.is_file());
        kwok.context("the lab has no kwok: run `cargo xtask setup` first")
    }

    /// The programs of a node, or why this machine can have none: see [`crate::node`].
    pub(crate) fn node(&self) -> Result<&NodePrograms, &str> {
        match &self.node {
            Some(NodeHere::Programs(programs)) if programs.runc.is_file() => Ok(programs),
            Some(NodeHere::Missing(reason)) => Err(reason),
            _ => Err("the lab has no programs of a node: run `cargo xtask setup` first"),
        }
    }
}
