//! What the programs of a node are told, in their own files. Pure.

use std::path::Path;

use serde_json::{Value, json};

use super::slot::Slot;
use crate::lab::NodePrograms;

/// The image of a Pod's first process.
pub(super) const PAUSE: &str = "lab.local/pause:1";
/// What the node is called.
pub(super) const NAME: &str = "node";
/// Beside the others in the folder of the node.
pub(super) const SOCKET: &str = "containerd.sock";
/// In the folder of the node; the kubelet starts when it is there.
pub(super) const KUBECONFIG: &str = "kubelet.kubeconfig";
/// The port of the kubelet, as everywhere.
const KUBELET_PORT: u16 = 10_250;

/// How containerd keeps the files of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Snapshotter {
    /// Layers over layers.
    Overlay,
    /// Copies; where this kernel or file system knows no layers.
    Native,
}

/// The network of Pods: a bridge that the plugin makes for the first of them.
pub(super) fn network(slot: &Slot, folder: &Path) -> Value {
    json!({ "cniVersion": "0.4.0", "name": "pods", "plugins": [{
        "type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false, "hairpinMode": true,
        "ipam": {
            "type": "host-local", "dataDir": folder.join("cni-addresses"),
            "ranges": [[{ "subnet": slot.pods() }]], "routes": [{ "dst": "0.0.0.0/0" }],
        },
    }] })
}

/// Everything that containerd writes is in the folder; the sockets of its shims excepted, which are in `/run`.
pub(super) fn containerd(folder: &Path, programs: &NodePrograms, snapshotter: Snapshotter) -> String {
    let snapshotter = match snapshotter {
        Snapshotter::Overlay => "overlayfs",
        Snapshotter::Native => "native",
    };
    let (folder, plugins, runc) = (folder.display(), programs.containerd.display(), programs.runc.display());
    // Without the capability SYS_RESOURCE nobody can lower the score by which the kernel chooses whom to kill: the runtime must not try.
    format!(
        r#"version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-run"
[grpc]
  address = "{folder}/{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        Root = "{folder}/runc"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"#
    )
}

/// A kubelet that the full disk and the swap of a developer's machine do not concern.
pub(super) fn kubelet(slot: &Slot, folder: &Path, authority: &Path) -> Value {
    let tiny = "1Mi";
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": slot.node(),
        "port": KUBELET_PORT,
        "healthzPort": 0,
        "readOnlyPort": 0,
        "containerRuntimeEndpoint": format!("unix://{}", folder.join(SOCKET).display()),
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", slot.cgroup()),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": ["pods"],
        "failSwapOn": false,
        // The API server gets in by its certificate, and nobody else.
        "authentication": {
            "anonymous": { "enabled": false }, "webhook": { "enabled": false }, "x509": { "clientCAFile": authority },
        },
        "authorization": { "mode": "AlwaysAllow" },
        "podLogsDir": folder.join("pod-logs"),
        "volumePluginDir": folder.join("volume-plugins"),
        "resolvConf": "",
        "clusterDomain": "",
        "nodeStatusUpdateFrequency": "4s",
        // How much volumes hold is looked at once a minute otherwise, and only then who holds too much.
        "volumeStatsAggPeriod": "2s",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {
            "memory.available": tiny, "nodefs.available": tiny, "nodefs.inodesFree": "1",
            "imagefs.available": tiny, "imagefs.inodesFree": "1",
        },
        "oomScoreAdj": 0,
        "shutdownGracePeriod": "0s",
        // Images are imported: nobody has credentials for them.
        "imagePullCredentialsVerificationPolicy": "NeverVerify",
    })
}
