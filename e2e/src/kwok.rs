//! kwok: plays the nodes of an API server. A Pod on one of them is running and ready at once, and one of a Job is done at once; nothing is run.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, NodeCondition, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    ControlPlane, Lab, Process, control_plane::free_port, definitions::yaml_files, eventually,
    process::SELDOM_COLLECTED,
};

/// A second or two on an idle machine.
const READY_DEADLINE: Duration = Duration::from_mins(1);

/// A running kwok. Dropped, it is killed, and its nodes stay as they are.
pub struct Kwok {
    process: Process,
    client: Client,
}

impl Kwok {
    /// Starts one that plays every node of a control plane, also those that others make. Pods come to a node by the scheduler, which only
    /// runs with [`workloads`](crate::Options::workloads). One that played them before is dropped by now; Pods that came to nodes since then run when this
    /// returns.
    pub async fn start(control_plane: &ControlPlane) -> Result<Self> {
        let client = control_plane.client();
        free_nodes(&client).await?;
        let lab = Lab::load()?;
        let here = lab.kwok()?;
        let folder = control_plane.folder().join("kwok");
        fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        // It knows of nothing that a node does but by its configuration, which is one file.
        let mut stages = String::new();
        for file in yaml_files(&here.stages)? {
            if !file.ends_with("kustomization.yaml") {
                let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
                stages.push_str("---\n");
                stages.push_str(&text);
            }
        }
        let path = folder.join("stages.yaml");
        fs::write(&path, stages).with_context(|| format!("failed to write {}", path.display()))?;
        let mut command = Command::new(&here.program);
        command
            // Where it looks for the configuration of whoever runs the test.
            .env("HOME", &folder)
            .envs([SELDOM_COLLECTED])
            .arg("--kubeconfig")
            .arg(control_plane.kubeconfig_path())
            .arg("--config")
            .arg(&path)
            .args(["--manage-all-nodes", "--node-lease-duration-seconds", "40"])
            .args(["--server-address", &format!("127.0.0.1:{}", free_port()?)]);
        let log = control_plane.folder().join("kwok.log");
        let started = Self {
            process: Process::start(&lab, "kwok", &command, &log)?,
            client,
        };
        let played = pods_are_played(&started.client).await;
        played.with_context(|| started.process.tail())?;
        Ok(started)
    }

    /// Makes a node of this name and returns when it is ready.
    pub async fn node(&self, name: &str) -> Result<()> {
        let api: Api<Node> = Api::all(self.client.clone());
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
            "status": {
                "allocatable": { "cpu": "32", "memory": "256Gi", "pods": "110" },
                "capacity": { "cpu": "32", "memory": "256Gi", "pods": "110" },
            },
        });
        let created = api.create(&PostParams::default(), &serde_json::from_value(node)?).await;
        created.with_context(|| format!("failed to make the node {name}"))?;
        let waited = eventually(READY_DEADLINE, format!("the node {name} to be ready"), async || {
            let node = api.get(name).await?;
            let conditions = node.status.unwrap_or_default().conditions.unwrap_or_default();
            let is_ready = |condition: &NodeCondition| condition.type_ == "Ready" && condition.status == "True";
            if conditions.iter().any(is_ready) {
                Ok(())
            } else {
                Err(anyhow!("{conditions:?}"))
            }
        })
        .await;
        waited.with_context(|| self.process.tail())
    }
}

/// Each kwok has a name of its own and plays a node when nobody else has its Lease. One that was killed has it for another forty seconds.
async fn free_nodes(client: &Client) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let freed = leases
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await;
    freed.context("failed to delete the Leases of the nodes")?;
    Ok(())
}

/// Returns when no Pod waits for the kubelet of its node. A kwok that begins may look at the Pods of a node a moment before it knows that the node is its own:
/// it passes them over, and does not look again before they change.
async fn pods_are_played(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::all(client.clone());
    let on_nodes = ListParams::default().fields("spec.nodeName!=,status.phase=Pending");
    eventually(READY_DEADLINE, "the Pods that are on nodes to run", async || {
        let waiting = pods.list(&on_nodes).await?.items;
        for pod in &waiting {
            let touched = json!({ "metadata": { "annotations": { "e2e/touched": Timestamp::now().to_string() } } });
            let api = Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            let how = PatchParams::default();
            match api.patch(&pod.name_any(), &how, &Patch::Merge(touched)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                patched => patched.map(drop)?,
            }
        }
        let names: Vec<String> = waiting.iter().map(ResourceExt::name_any).collect();
        ensure!(names.is_empty(), "{names:?} wait");
        Ok(())
    })
    .await
}
