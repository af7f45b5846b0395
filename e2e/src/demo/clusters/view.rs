//! What is known of the Cluster and its add-ons at one moment, and what it amounts to: rows, and answers to what an act waits for. Pure.

use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, StageProgress},
    conditions::{ConditionStatus, ConditionType, find},
    resource::{Resource, SyncStatus},
};
use kube::{ResourceExt, api::DynamicObject};
use serde_json::Value;

use super::super::picture::{Row, Tone, condition_words};

/// One look at the world. The default is one before there was anything.
#[derive(Default)]
pub(super) struct View {
    pub(super) cluster: Option<DynamicObject>,
    pub(super) addon: Option<ClusterAddon>,
    /// The version of Kubernetes that the control plane is to run.
    pub(super) control_plane: Option<String>,
}

impl View {
    /// The status of the ClusterAddon; empty when there is none yet.
    pub(super) fn status(&self) -> ClusterAddonStatus {
        let status = self.addon.as_ref().and_then(|addon| addon.status.clone());
        status.unwrap_or_default()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.cluster.is_none() && self.addon.is_none()
    }

    /// Whether the cluster has all add-ons of this class, and each object is as the release wants it.
    pub(super) fn is_complete(&self, class: &str) -> bool {
        let status = self.status();
        let is_applied = |applied: &crds::cluster_addon::AddonVersion| applied.cluster_stack == class;
        status.ready
            && status.applied == status.target
            && status.applied.as_ref().is_some_and(is_applied)
            && status.stages.iter().all(|stage| stage.phase == StagePhase::Done)
            && status.resources.iter().all(is_synced)
    }

    /// Why a stage waits, once it does.
    pub(super) fn waits(&self, stage: &str) -> Option<String> {
        let is_meant = |row: &&StageProgress| row.name == stage && row.phase == StagePhase::WaitingForPostCondition;
        let status = self.status();
        status.stages.iter().find(is_meant).and_then(|row| row.message.clone())
    }

    /// What Cluster API says of a hook that holds the Cluster up.
    pub(super) fn held_by(&self, hook: &str) -> Option<String> {
        let status = &self.cluster.as_ref()?.data["status"];
        let lists = ["/conditions", "/v1beta2/conditions"].map(|path| status.pointer(path).and_then(Value::as_array));
        let mut messages = lists
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|condition| condition["message"].as_str());
        messages.find(|message| message.contains(hook)).map(str::to_owned)
    }

    /// Why the add-ons stand still until somebody does something.
    pub(super) fn stalled(&self) -> Option<String> {
        let status = self.status();
        let stalled = find(&status.conditions, ConditionType::Stalled)?;
        let ready = find(&status.conditions, ConditionType::Ready)?;
        (stalled.status == ConditionStatus::True).then(|| ready.message.clone())?
    }

    /// The tree from top to bottom.
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.cluster.iter().map(|cluster| self.cluster_row(cluster)).collect();
        let Some(addon) = &self.addon else { return rows };
        let status = self.status();
        rows.push(addon_row(addon, &status));
        // Those that no stage of now is about belong to the add-ons as a whole; below the last stage they would count as its own.
        let has_no_stage = |row: &&Resource| !status.stages.iter().any(|stage| stage.name == row.stage);
        rows.extend(status.resources.iter().filter(has_no_stage).map(object_row));
        for stage in &status.stages {
            rows.push(stage_row(stage));
            let objects = status.resources.iter().filter(|row| row.stage == stage.name);
            rows.extend(objects.map(object_row));
        }
        rows
    }

    fn cluster_row(&self, cluster: &DynamicObject) -> Row {
        let text = |pointer: &str| {
            cluster
                .data
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let going = cluster.metadata.deletion_timestamp.is_some();
        let (wanted, phase) = (text("/spec/topology/version"), text("/status/phase"));
        let now = self.control_plane.as_deref().unwrap_or_default();
        let (tone, state) = match phase {
            _ if going => (Tone::Busy, "going"),
            "Provisioned" if now == wanted => (Tone::Good, "there"),
            "Provisioned" => (Tone::Busy, "changing"),
            "Failed" => (Tone::Bad, "failed"),
            _ => (Tone::Busy, "coming"),
        };
        let class = text("/spec/topology/class");
        let note = match now {
            "" => class.to_owned(),
            _ if now == wanted => format!("{class}, Kubernetes {now}"),
            _ => format!("{class}, Kubernetes {now}, to be {wanted}"),
        };
        row(0, ("Cluster", &cluster.name_any()), (tone, state), note)
    }
}

fn addon_row(addon: &ClusterAddon, status: &ClusterAddonStatus) -> Row {
    let going = addon.metadata.deletion_timestamp.is_some();
    let (tone, state, message) = condition_words(&status.conditions, going);
    let applied = status.applied.as_ref().filter(|_| !going);
    let applied = applied.map(|applied| format!("add-ons {}", applied.version));
    let note = if message.is_empty() {
        applied.unwrap_or_default()
    } else {
        message
    };
    row(1, ("ClusterAddon", &addon.name_any()), (tone, &state), note)
}

fn stage_row(progress: &StageProgress) -> Row {
    let (tone, state) = match progress.phase {
        StagePhase::Done => (Tone::Good, "done"),
        StagePhase::Pending | StagePhase::Unknown => (Tone::Busy, "next"),
        StagePhase::ApplyingOrDeleting => (Tone::Busy, "at work"),
        StagePhase::WaitingForPreCondition | StagePhase::WaitingForPostCondition => (Tone::Busy, "waiting"),
    };
    let note = match progress.phase {
        StagePhase::Done => None,
        _ => progress.message.clone(),
    };
    row(1, ("Stage", &progress.name), (tone, state), note.unwrap_or_default())
}

fn object_row(object: &Resource) -> Row {
    let (tone, state) = if is_synced(object) {
        (Tone::Good, "synced")
    } else {
        (Tone::Busy, "waiting")
    };
    row(2, (&object.kind, &object.name), (tone, state), object.error.clone())
}

fn is_synced(object: &Resource) -> bool {
    object.status == Some(SyncStatus::Synced)
}

fn row(depth: usize, (kind, name): (&str, &str), (tone, state): (Tone, &str), note: String) -> Row {
    Row {
        depth,
        id: (kind.to_owned(), name.to_owned()),
        tone,
        state: state.to_owned(),
        note,
        is_image: false,
        percent: None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, Result};
    use serde_json::json;

    use super::*;

    fn view(status: &Value) -> Result<View> {
        let addon = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon", "metadata": { "name": "cluster-addon-web" },
            "spec": { "clusterRef": { "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "web" } },
            "status": status,
        });
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web" },
            "spec": { "topology": { "class": "shim-quay-1-35-v2", "version": "v1.35.0" } },
            "status": { "phase": "Provisioned", "conditions": [
                { "type": "TopologyReconciled", "message": "BeforeClusterUpgrade: not yet" },
            ] },
        });
        Ok(View {
            cluster: Some(serde_json::from_value(cluster)?),
            addon: Some(serde_json::from_value(addon)?),
            control_plane: Some("v1.34.0".to_owned()),
        })
    }

    #[test]
    fn objects_stand_below_the_stage_whose_chart_they_are_of_and_others_below_their_clusteraddon() -> Result<()> {
        let object = |name: &str, stage: &str, status: &str| json!({ "kind": "ConfigMap", "name": name, "stage": stage, "status": status });
        let view = view(&json!({
            "stages": [
                { "name": "network", "action": "apply", "phase": "waitingForPostCondition", "message": "no replica" },
                { "name": "lighthouse", "action": "apply", "phase": "Pending" },
            ],
            "resources": [
                object("routes", "network", "synced"), object("note", "lighthouse", "not-synced"), object("old", "", "synced"),
            ],
        }))?;
        let rows = view.rows();
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.depth, row.id.1.as_str(), row.state.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (0, "web", "changing"),
                (1, "cluster-addon-web", "new"),
                (2, "old", "synced"),
                (1, "network", "waiting"),
                (2, "routes", "synced"),
                (1, "lighthouse", "next"),
                (2, "note", "waiting"),
            ]
        );
        assert_eq!(view.waits("network").as_deref(), Some("no replica"));
        assert_eq!(view.waits("lighthouse"), None);
        let held = view.held_by("BeforeClusterUpgrade").context("it says so")?;
        assert_eq!(held, "BeforeClusterUpgrade: not yet");
        assert!(!view.is_complete("shim-quay-1-35-v2"));
        Ok(())
    }

    #[test]
    fn a_cluster_is_complete_with_all_stages_and_objects_of_this_class() -> Result<()> {
        let version = json!({ "clusterStack": "shim-quay-1-35-v2", "version": "v2" });
        let mut status = json!({
            "ready": true, "target": version, "applied": version,
            "stages": [{ "name": "network", "action": "apply", "phase": "done" }],
            "resources": [{ "kind": "ConfigMap", "name": "routes", "stage": "network", "status": "synced" }],
        });
        assert!(view(&status)?.is_complete("shim-quay-1-35-v2"));
        assert!(!view(&status)?.is_complete("shim-quay-1-35-v4"));
        status["stages"][0]["phase"] = "applyingOrDeleting".into();
        assert!(!view(&status)?.is_complete("shim-quay-1-35-v2"));
        Ok(())
    }
}
