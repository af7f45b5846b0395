//! What of this machine one node has to itself while it lives: a number, and from that its addresses, the name of its interface and of its cgroups.
//!
//! An address of the kernel says which numbers are taken, however their owners may have ended: it is no file, and belongs to the same network as the
//! interface. The kernel takes that away with the node; empty cgroups stay, and are removed by the owner or by the next start.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    net::Ipv4Addr,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use crate::control_plane::Serving;

const CGROUPS: &str = "/sys/fs/cgroup";
/// As many nodes as have addresses.
const NUMBERS: u8 = 100;
/// The last process of a node is gone this long after its first.
const SWEEP_DEADLINE: Duration = Duration::from_secs(10);
const SWEEP_INTERVAL: Duration = Duration::from_millis(20);

/// One number, taken until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    number: u8,
    _hold: UnixListener,
}

impl Slot {
    /// Takes a free number, and removes what dead nodes have left.
    pub(super) fn take() -> Result<Self> {
        // Random, so that those who start at the same time do not walk the same way.
        let first = RandomState::new().hash_one(()).to_le_bytes()[0];
        let mut taken = None;
        for offset in 0..NUMBERS {
            let number = (first % NUMBERS + offset) % NUMBERS;
            let cgroup = cgroup_of(number);
            // Most numbers were never used: nothing is to be looked at.
            if taken.is_some() && folders(&cgroup).is_empty() {
                continue;
            }
            let Some(hold) = hold(&cgroup)? else { continue };
            let slot = Self { number, _hold: hold };
            slot.sweep()?;
            if taken.is_none() {
                slot.make_cgroups()?;
                taken = Some(slot);
            }
        }
        taken.with_context(|| format!("{NUMBERS} nodes run on this machine"))
    }

    /// The outer end of the wire between this machine and the node.
    pub(super) fn host(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 229, self.number, 1)
    }

    /// Its inner end, where the kubelet serves.
    pub(super) fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 229, self.number, 2)
    }

    /// The addresses of Pods.
    pub(super) fn pods(&self) -> String {
        format!("10.227.{}.0/24", self.number)
    }

    /// Where the API server is to be found.
    pub(super) fn serving(&self) -> Serving {
        Serving {
            address: Ipv4Addr::new(10, 228, self.number, 1),
            services: format!("10.228.{}.0/24", self.number),
        }
    }

    /// The name of the wire's outer end.
    pub(super) fn interface(&self) -> String {
        format!("stackwright{}", self.number)
    }

    /// The name of the group of all processes of Pods, in each hierarchy.
    pub(super) fn cgroup(&self) -> String {
        cgroup_of(self.number)
    }

    /// In each hierarchy of version 1, or in the one of version 2.
    fn make_cgroups(&self) -> Result<()> {
        for hierarchy in hierarchies() {
            let folder = hierarchy.join(self.cgroup());
            match fs::create_dir(&folder) {
                // A hierarchy without controllers is mounted beside the others, and may be read-only.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => continue,
                _ => {}
            }
            // In version 1 a new group of processors has none, and takes no process.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let inherited = fs::read_to_string(hierarchy.join(file)).unwrap_or_default();
                if hierarchy.ends_with("cpuset") && !inherited.is_empty() {
                    fs::write(folder.join(file), inherited)
                        .with_context(|| format!("failed to fill {file} of {}", folder.display()))?;
                }
            }
        }
        if folders(&self.cgroup()).is_empty() {
            bail!("no group of processes can be made in {CGROUPS}");
        }
        Ok(())
    }

    /// Removes the wire and the cgroups. Those of processes that are about to be gone are waited for.
    pub(super) fn sweep(&self) -> Result<()> {
        let mut link = Command::new("ip");
        link.args(["link", "delete", &self.interface()]);
        // Usually it is gone with the node.
        let _ = link.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let end = Instant::now() + SWEEP_DEADLINE;
        loop {
            let left = folders(&self.cgroup());
            if left.is_empty() {
                return Ok(());
            }
            for folder in &left {
                remove(folder);
            }
            if Instant::now() > end {
                bail!("processes of a node that has ended are still in {}", left[0].display());
            }
            thread::sleep(SWEEP_INTERVAL);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What stays is removed by the next start.
        let _ = self.sweep();
    }
}

fn cgroup_of(number: u8) -> String {
    format!("stackwright-node-{number}")
}

/// `None` when somebody else holds this name.
fn hold(name: &str) -> Result<Option<UnixListener>> {
    let address = SocketAddr::from_abstract_name(name).with_context(|| format!("{name} is no address"))?;
    match UnixListener::bind_addr(&address) {
        Ok(hold) => Ok(Some(hold)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to take the address {name}")),
    }
}

fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(CGROUPS);
    if root.join("cgroup.controllers").exists() {
        return vec![root.to_owned()];
    }
    folders_in(root)
}

/// Where there is a group of this name.
fn folders(cgroup: &str) -> Vec<PathBuf> {
    let folders = hierarchies().into_iter().map(|hierarchy| hierarchy.join(cgroup));
    folders.filter(|folder| folder.is_dir()).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// Children first; a group with processes stays.
fn remove(cgroup: &Path) {
    for child in &folders_in(cgroup) {
        remove(child);
    }
    let _ = fs::remove_dir(cgroup);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_by_one_until_he_lets_it_go() -> Result<()> {
        let name = format!("stackwright-node-of-test-{}", std::process::id());
        let first = hold(&name)?;
        assert!(first.is_some());
        assert!(hold(&name)?.is_none());
        drop(first);
        assert!(hold(&name)?.is_some());
        Ok(())
    }
}
