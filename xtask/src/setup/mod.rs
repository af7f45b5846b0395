//! Everything that tests and demo need beside Rust. Fetched or built once, kept under a hash of its content, described in
//! `.lab/lab.json`, which tests read.

mod cache;
mod cel;
mod clusterapi;
mod controlplane;
mod go;
mod helm;
mod managers;
mod manifests;
mod module;
mod node;
mod openstack;
mod outside;
mod pypi;
mod recorder;

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use self::{
    cache::Cache,
    go::Go,
    managers::{Kwok, Manager},
    node::Node,
    openstack::OpenStack,
};
use crate::workspace::Workspace;

/// What of the lab a chore needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// A control plane and the CRDs of other projects.
    ControlPlane,
    /// The same, the newest Cluster API and what plays nodes.
    Clusters,
    /// The same, and Keystone and Glance.
    OpenStack,
    /// The real Helms.
    Helm,
}

/// The description of the lab: where the parts are on this machine. A part that was never needed is not there.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Lab {
    /// One binary: etcd, kube-apiserver, kube-controller-manager, kubectl and more, by its first argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    controlplane: Option<PathBuf>,
    /// One binary: programs of other projects that tests need, by its first argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<PathBuf>,
    /// What evaluates expressions as the Go operator does: the oracle of `expressions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cel: Option<PathBuf>,
    /// The folder with the programs of Cluster API and with the stand-in for the Go operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    clusterapi: Option<PathBuf>,
    /// The program that records what Go makes of templates of values.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorder: Option<PathBuf>,
    /// The managers of Cluster API by provider and minor: `core@1.14`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    managers: BTreeMap<String, Manager>,
    /// What plays nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    kwok: Option<Kwok>,
    /// Keystone and Glance.
    #[serde(skip_serializing_if = "Option::is_none")]
    openstack: Option<OpenStack>,
    /// What runs Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Node>,
    /// The oracle of the renderer's tests, by profile.
    helm: BTreeMap<String, PathBuf>,
    /// Folders of CRD files by the project they come from.
    crds: BTreeMap<String, PathBuf>,
}

/// Makes these parts of the lab complete; two at once wait for each other. Says nothing when they are. Returns how long it took.
pub(crate) fn run(workspace: &Workspace, parts: Parts) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let cache = Cache::lock(&workspace.cache)?;
    let go = Go::find(workspace, &cache)?;
    let mut lab = described(workspace);
    let is_whole = parts == Parts::All;
    // What takes seconds comes first: a machine that lacks something says so before ten minutes of building, not after.
    if parts != Parts::Helm {
        lab.crds = manifests::fetch_crds(workspace, &cache, &go)?;
    }
    if is_whole || parts == Parts::Helm {
        lab.helm = helm::fetch(workspace, &cache, &go)?;
    }
    if is_whole || parts == Parts::OpenStack {
        lab.openstack = Some(openstack::install(workspace, &cache)?);
    }
    if parts != Parts::Helm {
        lab.controlplane = Some(controlplane::build(workspace, &cache, &go)?);
    }
    // No chore but the tests and some benchmarks has a use for these.
    if is_whole {
        lab.recorder = Some(recorder::build(workspace, &cache, &go)?);
        lab.cel = Some(cel::build(workspace, &cache, &go)?);
        lab.outside = Some(outside::build(workspace, &cache, &go)?);
        lab.clusterapi = Some(clusterapi::build(workspace, &cache, &go)?);
        // What an earlier run has built for more parts stays described.
        lab.managers.extend(managers::build(workspace, &cache, &go, parts)?);
        lab.kwok = Some(managers::build_kwok(workspace, &cache, &go)?);
        lab.node = Some(node::build(workspace, &cache, &go)?);
    }
    if parts == Parts::Clusters {
        lab.managers.extend(managers::build(workspace, &cache, &go, parts)?);
        lab.kwok = Some(managers::build_kwok(workspace, &cache, &go)?);
    }
    describe(workspace, &lab)?;
    Ok(begin.elapsed())
}

/// What an earlier run has made. A description that cannot be read is written anew.
fn described(workspace: &Workspace) -> Lab {
    let text = fs::read(description(workspace)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn description(workspace: &Workspace) -> PathBuf {
    workspace.lab().join("lab.json")
}

/// Written by rename, so that a test never reads half a file.
fn describe(workspace: &Workspace, lab: &Lab) -> anyhow::Result<()> {
    let folder = workspace.lab();
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let partial = folder.join(format!("lab.json.{}", std::process::id()));
    let target = description(workspace);
    let text = serde_json::to_string_pretty(lab).context("failed to write the description of the lab as JSON")? + "\n";
    fs::write(&partial, text).with_context(|| format!("failed to write {}", partial.display()))?;
    fs::rename(&partial, &target).with_context(|| format!("failed to put {} in place", target.display()))
}
