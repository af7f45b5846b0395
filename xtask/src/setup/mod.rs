//! Everything that tests and demo need beside Rust. Fetched or built once, kept under a hash of its content, described in
//! `.lab/lab.json`, which the crate `e2e` reads.

mod cache;
mod controlplane;
mod crds;
mod go;
mod helm;
mod pypi;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde::Serialize;

use self::{cache::Cache, go::Go};
use crate::workspace::Workspace;

/// The description of the lab: where the parts are on this machine.
#[derive(Serialize)]
struct Lab {
    /// One binary: etcd, kube-apiserver, kube-controller-manager, by its first argument.
    controlplane: PathBuf,
    /// The oracle of the renderer's tests, by profile; empty where no binary is offered for this machine.
    helm: BTreeMap<&'static str, PathBuf>,
    /// Folders of CRD files by the project they come from.
    crds: BTreeMap<&'static str, PathBuf>,
}

/// Makes the lab complete; two at once wait for each other. Says nothing when it is. Returns how long it took.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let cache = Cache::lock(&workspace.cache)?;
    let go = Go::find(workspace, &cache)?;
    // What takes seconds comes first: a machine that lacks something says so before ten minutes of building, not after.
    let crds = crds::fetch(workspace, &cache, &go)?;
    let helm = helm::fetch(workspace, &cache, &go)?;
    let controlplane = controlplane::build(workspace, &cache, &go)?;
    let lab = Lab {
        controlplane,
        helm,
        crds,
    };
    describe(workspace, &lab)?;
    Ok(begin.elapsed())
}

/// Written by rename, so that a test never reads half a file.
fn describe(workspace: &Workspace, lab: &Lab) -> anyhow::Result<()> {
    let folder = workspace.lab();
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let partial = folder.join(format!("lab.json.{}", std::process::id()));
    let target = folder.join("lab.json");
    let text = serde_json::to_string_pretty(lab).context("failed to write the description of the lab as JSON")? + "\n";
    fs::write(&partial, text).with_context(|| format!("failed to write {}", partial.display()))?;
    fs::rename(&partial, &target).with_context(|| format!("failed to put {} in place", target.display()))
}
