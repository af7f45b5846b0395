//! A real node for tests: the kubelet, containerd and runc in namespaces of their own, under a control plane of this room.
//!
//! Needs root on Linux and what `cargo xtask setup` builds for it; where that is not to be had, [`crate::stand_in`] runs Pods. The node lives in
//! namespaces of processes, mounts and network that end with their first process, and that process ends with us, however we end. A wire joins its
//! network to the machine's: Pods reach servers of the test, and the API server, which runs outside.

mod configuration;
pub mod inside;
mod slot;

use std::{fs, net::Ipv4Addr, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::{Node as NodeObject, ServiceAccount};
use kube::Api;

use self::{
    configuration::{KUBECONFIG, NAME, PAUSE, SOCKET},
    inside::{ORDER, Order, call},
    slot::Slot,
};
use crate::{
    ControlPlane, Identity, Lab, Options, Process,
    built::Program,
    control_plane::{CA_CERTIFICATE, Folder},
    eventually,
    image::Image,
    process::children_of,
};

/// Four to seven seconds on an idle machine.
const READY_DEADLINE: Duration = Duration::from_mins(2);
/// The name of the wire's inner end.
const INNER: &str = "wire";

/// A running node and its control plane. Dropped, it is gone: processes, mounts, cgroups, interfaces and files.
pub struct Node {
    // In the order in which they have to go.
    process: Process,
    control_plane: ControlPlane,
    lab: Lab,
    slot: Slot,
    folder: Folder,
}

impl Node {
    /// Starts one and returns when Pods can run on it.
    ///
    /// When a program dies or is not ready in time, the error carries the end of its log.
    pub async fn start() -> Result<Self> {
        let lab = Lab::load()?;
        let programs = lab.node().map_err(|reason| anyhow!("{reason}"))?.clone();
        let (slot, folder) = (Slot::take()?, Folder::temporary()?);
        let own = folder.path().join("node");
        fs::create_dir_all(own.join("cni")).with_context(|| format!("failed to make {}", own.display()))?;
        let order = Order {
            programs,
            address: slot.node().to_string(),
        };
        keep(
            &own.join(ORDER),
            &serde_json::to_string(&order).context("failed to write JSON")?,
        )?;
        keep(
            &own.join("cni/pods.conflist"),
            &configuration::network(&slot, &own).to_string(),
        )?;
        let process = Process::start(&lab, "the node", &namespaces(&own)?, &own.join("node.log"))?;
        lay_wire(&slot, first_process(&process).await?).with_context(|| process.tail())?;
        let options = Options {
            folder: Some(folder.path().join("control-plane")),
            workloads: true,
            serving: Some(slot.serving()),
            ..Options::default()
        };
        let control_plane = ControlPlane::start(options).await?;
        let mut started = Self {
            process,
            control_plane,
            lab,
            slot,
            folder,
        };
        started.ready(&own).await?;
        Ok(started)
    }

    /// Starts the kubelet as soon as containerd has what it needs for Pods.
    async fn ready(&mut self, own: &Path) -> Result<()> {
        let socket = own.join(SOCKET);
        let present = || async { if socket.exists() { Ok(()) } else { Err("no socket") } };
        self.while_it_lives("containerd to be ready", present).await?;
        let pause = self
            .lab
            .node()
            .map_err(|reason| anyhow!("{reason}"))?
            .kubelet
            .join("pause");
        let image = Image::new(PAUSE).program(&pause, "/pause").entrypoint(&["/pause"]);
        self.import_image(&image)?;
        // Otherwise the kubelet may remove it as an image that no container has.
        self.containerd(&["images", "label", PAUSE, "io.cri-containerd.pinned=pinned"])?;

        let authority = self.control_plane.folder().join(CA_CERTIFICATE);
        let configuration = configuration::kubelet(&self.slot, own, &authority);
        keep(&own.join("kubelet.yaml"), &configuration.to_string())?;
        let identity = Identity::User {
            name: format!("system:node:{NAME}"),
            groups: vec!["system:nodes".to_owned()],
        };
        let kubeconfig = self.control_plane.kubeconfig_for(&identity).await?;
        // It appears whole: the kubelet starts with it.
        fs::rename(&kubeconfig, own.join(KUBECONFIG)).context("failed to hand over the kubeconfig of the kubelet")?;

        let nodes: Api<NodeObject> = Api::all(self.control_plane.client());
        let ready = || async {
            let node = nodes.get(NAME).await?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            if conditions
                .iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            {
                return Ok(());
            }
            bail!("{conditions:?}")
        };
        self.while_it_lives("the node to be ready", ready).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.control_plane.client(), "default");
        let account = || async { accounts.get("default").await.map(drop) };
        self.while_it_lives("the first service account", account).await
    }

    /// A dead node is the outcome, not something to wait for.
    async fn while_it_lives<E: std::fmt::Display, Look: Future<Output = Result<(), E>>>(
        &mut self,
        what: &str,
        mut probe: impl FnMut() -> Look,
    ) -> Result<()> {
        let process = &mut self.process;
        let waited = eventually(READY_DEADLINE, what, || {
            let ended = process.ended();
            let look = probe();
            async move {
                match ended? {
                    Some(ended) => Ok(Err(anyhow!("the node {ended}"))),
                    None => look.await.map(Ok).map_err(|error| anyhow!("{error}")),
                }
            }
        })
        .await;
        let logs = ["containerd.log", "kubelet.log"].map(|name| self.folder.path().join("node").join(name));
        let tails = logs.map(|log| format!("last lines of {}:\n{}", log.display(), crate::process::tail_of(&log)));
        waited
            .and_then(|outcome| outcome)
            .with_context(|| format!("{}\n{}", self.process.tail(), tails.join("\n")))
    }

    /// The control plane that the node belongs to; it runs the controllers of Deployments, Jobs and their like.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// The address of this machine by which Pods reach servers of the test that listen there.
    pub fn host(&self) -> Ipv4Addr {
        self.slot.host()
    }

    /// Makes an image known to the node under its name; no registry is asked for it.
    pub fn import_image(&self, image: &Image) -> Result<()> {
        let place = tempfile::tempdir_in(self.folder.path()).context("failed to make a folder for an image")?;
        let archive = place.path().join("image.tar");
        image.write(&archive)?;
        let archive = archive.to_str().context("the folder of the node is not text")?;
        // Unpacked when it is used first, by whatever keeps the files of containers.
        self.containerd(&["images", "import", "--no-unpack", archive])
            .with_context(|| format!("failed to import {}", image.name()))
    }

    fn containerd(&self, arguments: &[&str]) -> Result<()> {
        let programs = self.lab.node().map_err(|reason| anyhow!("{reason}"))?;
        let program = programs.containerd.join("ctr");
        let socket = self.folder.path().join("node").join(SOCKET);
        let words = [
            "--address",
            socket.to_str().context("the folder of the node is not text")?,
        ];
        let words: Vec<&str> = words
            .into_iter()
            .chain(["--namespace", "k8s.io"])
            .chain(arguments.iter().copied())
            .collect();
        call(program.to_str().context("the folder of ctr is not text")?, &words)
    }

    /// Stops everything, and says what of it stayed; dropping does the same in silence.
    pub async fn stop(mut self) -> Result<()> {
        self.process.kill9().await?;
        self.control_plane.stop().await?;
        self.slot.sweep()?;
        self.folder.remove()
    }
}

/// The program that becomes the first process of the node.
fn namespaces(folder: &Path) -> Result<Command> {
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--pid", "--ipc", "--net", "--fork", "--mount-proc"])
        .args(["--kill-child=KILL", "--propagation", "private"])
        .arg(Program::Lab.path()?)
        .arg("node-inside")
        .arg(folder);
    Ok(command)
}

/// Its id on this machine: the guard has started unshare, and that the first process.
async fn first_process(process: &Process) -> Result<u32> {
    eventually(READY_DEADLINE, "the namespaces of the node", async || {
        let unshare = process.command_id().context("nothing started")?;
        children_of(unshare).first().copied().context("no first process")
    })
    .await
    .with_context(|| process.tail())
}

/// One end here, one in the network of the node; it is gone with that network.
fn lay_wire(slot: &Slot, first: u32) -> Result<()> {
    let (interface, first) = (slot.interface(), first.to_string());
    let inner = slot.node().to_string();
    let here = |words: &str| call("ip", &words.split(' ').collect::<Vec<_>>());
    let there = |words: &str| {
        let words: Vec<_> = ["--target", &first, "--net", "ip"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        call("nsenter", &words)
    };
    here(&format!(
        "link add {interface} type veth peer name {INNER} netns {first}"
    ))?;
    here(&format!("address add {}/30 dev {interface}", slot.host()))?;
    here(&format!("address add {}/32 dev {interface}", slot.serving().address))?;
    here(&format!("link set {interface} up"))?;
    there(&format!("address add {inner}/30 dev {INNER}"))?;
    there(&format!("link set {INNER} up"))?;
    there(&format!("route add default via {}", slot.host()))?;
    here(&format!("route add {} via {inner}", slot.pods()))
}

fn keep(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
