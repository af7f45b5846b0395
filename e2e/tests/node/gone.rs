//! A node is gone with the test that started it, however that ends, and Pods reach what the test serves.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    eventually,
    kubelet::{Kind, kinds, processes_with},
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::jobs::{Jobs, SOON, job, script, start};

#[tokio::test]
async fn a_node_that_is_dropped_leaves_no_process_mount_interface_or_cgroup() -> Result<()> {
    if !kinds()?.contains(&Kind::Real) {
        return Ok(());
    }
    let kubelet = start(Kind::Real).await?;
    let folder = kubelet
        .control_plane()
        .folder()
        .parent()
        .context("the folder of the node")?
        .to_owned();
    let interface = interface_with(kubelet.host())?;
    let cgroups = cgroups_of(&interface);
    ensure!(!cgroups.is_empty(), "there are cgroups while it lives");
    let jobs = Jobs::of(&kubelet);
    let work = script("work", "echo ready; while :; do sleep 0.1; done");
    jobs.create(&job("endless", &json!({ "containers": [work] }))?).await?;
    jobs.says("endless", "work", "ready").await?;
    let name = folder.file_name().context("a name")?.to_string_lossy().into_owned();
    ensure!(!processes_with(&name).is_empty(), "its programs are told its folder");

    // As a test that fails does it.
    drop(kubelet);
    eventually(SOON, "everything of it to be gone", async || {
        let processes = processes_with(&name);
        let mounts = fs::read_to_string("/proc/self/mountinfo")?.contains(&name);
        let wire = Path::new("/sys/class/net").join(&interface).exists();
        let cgroups: Vec<_> = cgroups.iter().filter(|cgroup| cgroup.exists()).collect();
        if processes.is_empty() && !mounts && !wire && cgroups.is_empty() && !folder.exists() {
            return Ok(());
        }
        bail!(
            "processes {processes:?}, mounts {mounts}, wire {wire}, cgroups {cgroups:?}, folder {}",
            folder.exists()
        )
    })
    .await
}

/// The interface of this machine that has the address.
fn interface_with(address: std::net::Ipv4Addr) -> Result<String> {
    let said = std::process::Command::new("ip")
        .args(["-oneline", "-4", "address"])
        .output()?;
    let text = String::from_utf8(said.stdout)?;
    let line = text.lines().find(|line| line.contains(&format!(" {address}/")));
    let name = line.and_then(|line| line.split_whitespace().nth(1));
    name.map(str::to_owned)
        .with_context(|| format!("no interface has {address}: {text}"))
}

/// The groups of its processes, by the number that they share with the wire.
fn cgroups_of(interface: &str) -> Vec<PathBuf> {
    let name = interface.replace("stackwright", "stackwright-node-");
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let groups = hierarchies
        .chain([root.to_owned()])
        .map(|hierarchy| hierarchy.join(&name));
    groups.filter(|group| group.is_dir()).collect()
}

#[tokio::test]
async fn a_pod_reaches_a_server_of_the_test() -> Result<()> {
    for kind in kinds()? {
        let kubelet = e2e::kubelet::Kubelet::start(kind).await?;
        // The program that tries is in every machine that has a bash.
        let image = e2e::kubelet::Image::new("lab.local/bash:1").program(Path::new("/bin/bash"), "/bin/bash");
        kubelet.import_image(&image)?;
        let server = TcpListener::bind(SocketAddr::from((kubelet.host(), 0))).await?;
        let address = server.local_addr()?;
        let visit = format!("exec 3<>/dev/tcp/{}/{}", address.ip(), address.port());
        let work = json!({
            "name": "work", "image": image.name(), "imagePullPolicy": "Never", "command": ["/bin/bash", "-c", visit],
        });
        let jobs = Jobs::of(&kubelet);
        assert_eq!(
            jobs.run(&job("visitor", &json!({ "containers": [work] }))?).await?,
            "Complete"
        );
        let (_, visitor) = tokio::time::timeout(SOON, server.accept()).await??;
        assert_eq!(
            visitor.ip() == address.ip(),
            kind == Kind::StandIn,
            "a Pod of a node has an address of its own"
        );
        kubelet.stop().await?;
    }
    Ok(())
}
