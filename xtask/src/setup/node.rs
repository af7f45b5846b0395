//! What a node for tests is made of: the kubelet and the Pods' first process from `e2e/kubelet`, containerd and the plugins of its network from
//! `e2e/containerd`, and runc of this machine. A machine that cannot hold a node is told why, and builds nothing of it.
//!
//! Starts no node and changes nothing outside of the cache: what runs the node is `e2e/src/node.rs`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::{
    cache::{Cache, Key},
    controlplane::linker_flags,
    go::Go,
    module::Module,
};
use crate::{screen, step::Step, workspace::Workspace};

const KUBELET: Module = Module {
    folder: "e2e/kubelet",
    title: "the kubelet",
    kind: "kubelet",
    programs: "./...",
};

const CONTAINERD: Module = Module {
    folder: "e2e/containerd",
    title: "containerd",
    kind: "containerd",
    programs: "tool",
};

/// Without symbols: nobody debugs these here.
const LINKER_FLAGS: &str = "-s -w";

/// What containerd 2.2 still works with.
const OLDEST_RUNC: (u32, u32) = (1, 1);

/// Does what a node does to this machine, in namespaces that are gone with it: mounts, a network, a group of processes.
const REHEARSAL: &str = r#"mount -t tmpfs tmpfs /mnt &&
ip link add rehearsal0 type veth peer name rehearsal1 && ip link add rehearsal2 type bridge &&
for folder in /sys/fs/cgroup /sys/fs/cgroup/memory; do
    if [ -e "$folder/cgroup.procs" ] && mkdir "$folder/stackwright-rehearsal-$$"; then
        rmdir "$folder/stackwright-rehearsal-$$"; exit
    fi
done; exit 1"#;

/// Where the programs of a node are, or why this machine has none.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Node {
    Programs(Programs),
    /// What is missing, and what to do.
    Missing(String),
}

#[derive(Deserialize, Serialize)]
pub(super) struct Programs {
    /// The folder with `kubelet` and `pause`.
    kubelet: PathBuf,
    /// The folder with `containerd`, its shim, `ctr`, and the plugins of the network.
    containerd: PathBuf,
    /// The program itself.
    runc: PathBuf,
}

/// Builds the programs: beside a control plane that is built already, seven minutes of one processor the first time.
pub(super) fn build(workspace: &Workspace, cache: &Cache, go: &Go) -> anyhow::Result<Node> {
    let missing = |reason: String| {
        screen::warn(&reason);
        Ok(Node::Missing(reason))
    };
    if let Some(obstacle) = obstacle() {
        return missing(format!("no node for tests here: {obstacle}"));
    }
    let runc = match runc(workspace, cache) {
        Ok(runc) => runc,
        Err(error) => {
            let (major, minor) = OLDEST_RUNC;
            let reason = format!(
                "no node for tests here: install runc {major}.{minor} or newer, on Debian and Ubuntu with `apt-get install runc` ({error:#})"
            );
            return missing(reason);
        }
    };
    let stamped = linker_flags(&KUBELET.sources(workspace)?, KUBELET.folder)?;
    Ok(Node::Programs(Programs {
        kubelet: KUBELET.build(workspace, cache, go, &stamped)?,
        containerd: CONTAINERD.build(workspace, cache, go, LINKER_FLAGS)?,
        runc,
    }))
}

/// Why this machine cannot hold a node.
fn obstacle() -> Option<&'static str> {
    if !cfg!(target_os = "linux") {
        return Some("it needs Linux");
    }
    if !is_root() {
        return Some("it needs root");
    }
    let mut rehearsal = Command::new("unshare");
    rehearsal
        .args(["--mount", "--pid", "--ipc", "--net", "--fork", "--mount-proc"])
        .args(["--kill-child=KILL", "--propagation", "private", "sh", "-c", REHEARSAL]);
    let ended = silent(&mut rehearsal).status();
    (!ended.is_ok_and(|ended| ended.success())).then_some(
        "it needs unshare of util-linux, ip of iproute2, and the right to make namespaces, mounts, networks and cgroups \
         (in a container: a privileged one)",
    )
}

/// Whether the effective user of this process is root.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    users.and_then(|users| users.split_whitespace().nth(1)) == Some("0")
}

/// The one on PATH, else the one of the distribution, unpacked and not installed.
fn runc(workspace: &Workspace, cache: &Cache) -> anyhow::Result<PathBuf> {
    if let Some(installed) = installed_runc().filter(|path| is_usable(path)) {
        return Ok(installed);
    }
    let version = offered_runc()?;
    let folder = cache.entry("runc", &Key::of(["runc", &version]), |partial| {
        let mut download = Command::new("apt-get");
        // The signature of the distribution's list covers what is downloaded.
        download.args(["--quiet", "download", "runc"]).current_dir(partial);
        Step::new(workspace, "fetch runc", download).run()?;
        let package = fs::read_dir(partial)
            .with_context(|| format!("failed to list {}", partial.display()))?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .context("apt-get left no package of runc")?;
        let mut unpack = Command::new("dpkg");
        unpack.arg("--extract").arg(&package).arg(partial);
        Step::new(workspace, "unpack runc", unpack).run()?;
        fs::remove_file(&package).with_context(|| format!("failed to remove {}", package.display()))?;
        anyhow::ensure!(
            is_usable(&unpacked(partial)),
            "the runc of this distribution does not run, or is too old"
        );
        Ok(())
    })?;
    Ok(unpacked(&folder))
}

fn unpacked(folder: &Path) -> PathBuf {
    folder.join("usr/sbin/runc")
}

fn installed_runc() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join("runc"))
        .find(|path| path.is_file())
}

fn is_usable(runc: &Path) -> bool {
    let said = silent(Command::new(runc).arg("--version"))
        .stdout(Stdio::piped())
        .output();
    said.is_ok_and(|said| {
        let version = String::from_utf8_lossy(&said.stdout).lines().next().and_then(version);
        said.status.success() && version.is_some_and(|version| version >= OLDEST_RUNC)
    })
}

/// `runc version 1.1.5+ds1` is 1 and 1.
fn version(line: &str) -> Option<(u32, u32)> {
    let mut numbers = line.strip_prefix("runc version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The version that `apt-get` would download.
fn offered_runc() -> anyhow::Result<String> {
    let said = silent(Command::new("apt-cache").args(["show", "--no-all-versions", "runc"]))
        .stdout(Stdio::piped())
        .output()
        .context("apt-cache does not run")?;
    let text = String::from_utf8_lossy(&said.stdout);
    let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
    version
        .map(str::to_owned)
        .context("apt knows no package of runc; `apt-get update` may help")
}

fn silent(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runc_of_a_distribution_says_its_version() {
        assert_eq!(version("runc version 1.1.5+ds1"), Some((1, 1)));
        assert_eq!(version("runc version 1.0.0~rc93"), Some((1, 0)));
        assert_eq!(version("crun version 1.8.1"), None);
    }
}
