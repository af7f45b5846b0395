//! Cluster API itself: its managers, the command line clusterctl, and what stands in for the Go operator.

mod manifests;
mod process;
mod release;

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub use self::{
    process::{Manager, webhooks_are_asked},
    release::{Provider, Release},
};
use crate::{ControlPlane, Identity, Journey};

/// The real clusterctl, as a platform team calls it.
#[derive(Debug)]
pub struct Clusterctl {
    program: PathBuf,
    folder: PathBuf,
}

impl Clusterctl {
    /// One that keeps its files and what it moves in a folder of the journey.
    pub fn of(journey: &Journey) -> Result<Self> {
        let folder = journey.folder().join("clusterctl");
        let moved = folder.join("moved");
        fs::create_dir_all(&moved).with_context(|| format!("failed to make {}", moved.display()))?;
        Ok(Self {
            program: journey.lab().cluster_api("clusterctl")?,
            folder,
        })
    }

    /// Where moved objects are between two control planes.
    pub fn moved(&self) -> PathBuf {
        self.folder.join("moved")
    }

    /// Writes what is to be moved from the journey's namespace into files; it stays where it is, too.
    pub fn save(&self, journey: &Journey) -> Result<()> {
        let mut command = self.command(&["move", "--namespace", &journey.namespace]);
        command.arg("--to-directory").arg(self.moved());
        command
            .arg("--kubeconfig")
            .arg(journey.control_plane().kubeconfig_path());
        run("clusterctl move --to-directory", &mut command).map(drop)
    }

    /// Makes in the journey's control plane what was written into files.
    pub fn restore(&self, journey: &Journey) -> Result<()> {
        let mut command = self.command(&["move"]);
        command.arg("--from-directory").arg(self.moved());
        command
            .arg("--to-kubeconfig")
            .arg(journey.control_plane().kubeconfig_path());
        run("clusterctl move --from-directory", &mut command).map(drop)
    }

    /// Moves from one control plane into the other without files.
    pub fn transfer(&self, from: &Journey, to: &Journey) -> Result<()> {
        let mut command = self.command(&["move", "--namespace", &from.namespace]);
        command.arg("--kubeconfig").arg(from.control_plane().kubeconfig_path());
        command.arg("--to-kubeconfig").arg(to.control_plane().kubeconfig_path());
        run("clusterctl move", &mut command).map(drop)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // Whoever runs the test may have a configuration of his own; and the newest version is asked for on the internet.
        command
            .env("HOME", &self.folder)
            .env("XDG_CONFIG_HOME", &self.folder)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .args(arguments);
        command
    }
}

/// What the Go operator sees of an object of ours. It writes the condition `HelmChartApplied` into it, as that operator does.
pub async fn seen_by_the_predecessor(journey: &Journey, kind: &str, name: &str) -> Result<Value> {
    let mut command = Command::new(journey.lab().cluster_api("predecessor")?);
    command.arg(kubeconfig_for(journey.control_plane(), "predecessor").await?);
    command.args([&journey.namespace, kind, name]);
    let said = run("predecessor", &mut command)?;
    serde_json::from_str(&said).with_context(|| format!("not JSON: {said}"))
}

/// A kubeconfig for somebody who may do everything, under a name of his own.
async fn kubeconfig_for(control_plane: &ControlPlane, name: &str) -> Result<PathBuf> {
    let identity = Identity::User {
        name: name.to_owned(),
        groups: vec!["system:masters".to_owned()],
    };
    control_plane.kubeconfig_for(&identity).await
}

/// What it wrote to its output.
fn run(what: &str, command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("failed to start {what}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{what}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
