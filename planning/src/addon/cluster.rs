//! What a Cluster tells, in either API version of Cluster API, with or without status, with or without `apiVersion`.

use std::collections::BTreeSet;

use crds::labels::{DELETE_FOR_MOVE, OK_TO_DELETE, PAUSED, PENDING_HOOKS};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::control_plane::ControlPlaneSeen;
use super::hook::Hook;
use crate::topology::Topology;

/// The facts of a Cluster and its control plane that decisions about its add-ons depend on. Read loosely: what is not there is absent, and nothing is an
/// error, since a hook's request has no status from Cluster API 1.11 on and no `apiVersion` in 1.11 and 1.12.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "facts that are independent of each other")]
pub struct ClusterSeen {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its generation: rises with every change of the spec, Cluster API's own ones included.
    pub generation: i64,
    /// Since when it is to go.
    pub deleting: Option<Timestamp>,
    /// Who stopped the work on it.
    pub paused: Option<PausedBy>,
    /// `clusterctl` has made it in another management cluster, and will delete it here.
    pub moving: bool,
    /// Its class and its Kubernetes version; `None` of a Cluster without class.
    pub topology: Option<Topology>,
    /// `spec.infrastructureRef` is set.
    pub has_infrastructure: bool,
    /// `spec.controlPlaneRef` is set.
    pub has_control_plane: bool,
    /// Its API server answered once. Never taken back.
    pub initialized: bool,
    /// The object that `spec.controlPlaneRef` names, where it was read.
    pub control_plane: Option<ControlPlaneSeen>,
    /// Nobody knows yet what that object says: not all of its kind have been listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control_plane_awaited: bool,
    /// Some of its workers are older than what their MachineDeployments want.
    pub workers_roll: bool,
    /// Whether Cluster API has given all objects of the cluster what its topology says: the condition `TopologyReconciled`, about the Cluster as it is now.
    pub reconciled: bool,
    /// Since when it has not, whatever generation Cluster API has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreconciled_since: Option<Timestamp>,
    /// The hooks that Cluster API owes a call.
    pub pending: BTreeSet<Hook>,
    /// Cluster API has been told that nothing holds the deletion up.
    pub ok_to_delete: bool,
}

/// How the work on a Cluster was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PausedBy {
    /// `spec.paused`.
    Spec,
    /// The annotation.
    Annotation,
}

impl ClusterSeen {
    /// Reads a Cluster, and the object that its `spec.controlPlaneRef` names.
    pub fn of(cluster: &Value, control_plane: Option<&Value>) -> Self {
        let text = |pointer: &str| cluster.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let annotation = |name: &str| cluster.pointer("/metadata/annotations").and_then(|all| all.get(name));
        let namespace = text("/metadata/namespace").to_owned();
        let control_plane = control_plane.map(ControlPlaneSeen::of);
        Self {
            name: text("/metadata/name").to_owned(),
            uid: text("/metadata/uid").to_owned(),
            generation: cluster
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            deleting: deletion(cluster),
            paused: match cluster.pointer("/spec/paused").and_then(Value::as_bool) {
                Some(true) => Some(PausedBy::Spec),
                _ => annotation(PAUSED).map(|_| PausedBy::Annotation),
            },
            moving: annotation(DELETE_FOR_MOVE).is_some(),
            topology: Topology::of(cluster, &namespace),
            has_infrastructure: !text("/spec/infrastructureRef/name").is_empty(),
            has_control_plane: !text("/spec/controlPlaneRef/name").is_empty(),
            initialized: is_initialized(cluster) || control_plane.as_ref().is_some_and(|seen| seen.initialized),
            control_plane,
            control_plane_awaited: false,
            workers_roll: workers_roll(cluster),
            reconciled: is_reconciled(cluster),
            unreconciled_since: unreconciled_since(cluster),
            pending: pending(annotation(PENDING_HOOKS)),
            ok_to_delete: annotation(OK_TO_DELETE).is_some(),
            namespace,
        }
    }

    /// Whether a call about a Cluster is about this one, which a watch shows: an earlier one of its name says nothing.
    pub(super) fn is_asked_about(&self, asked: &Self) -> bool {
        asked.uid.is_empty() || asked.uid == self.uid
    }

    /// Whether a watch shows of the Cluster of a call that its API server has never answered. What is not shown may have answered long ago.
    pub fn was_never_initialized(shown: Option<&Self>, asked: &Self) -> bool {
        shown.is_some_and(|shown| shown.is_asked_about(asked) && !shown.initialized)
    }

    /// The Kubernetes version that it shall have; empty where it does not say.
    pub fn version(&self) -> &str {
        self.topology.as_ref().map_or("", |topology| &topology.version)
    }

    /// The name of its class; empty where it has none.
    pub fn class(&self) -> &str {
        self.topology.as_ref().map_or("", |topology| &topology.class)
    }
}

/// A time that is none has been so since ever.
fn deletion(cluster: &Value) -> Option<Timestamp> {
    let text = cluster.pointer("/metadata/deletionTimestamp")?.as_str()?;
    Some(text.parse().unwrap_or(Timestamp::UNIX_EPOCH))
}

/// Both API versions have the condition, v1beta2 the field besides (`api/core/v1beta2/cluster_types.go` 1.13.6, `ClusterInitializationStatus`).
fn is_initialized(cluster: &Value) -> bool {
    let field = cluster.pointer("/status/initialization/controlPlaneInitialized");
    field.and_then(Value::as_bool) == Some(true)
        || conditions(cluster, "ControlPlaneInitialized").any(|condition| condition["status"] == "True")
}

/// All conditions of a type. A Cluster of v1beta1 has those of v1beta2 in `status.v1beta2.conditions` since 1.9, and they come first; one of v1beta2 has the old
/// ones in `status.deprecated`, which nobody needs.
fn conditions<'cluster>(cluster: &'cluster Value, type_: &'cluster str) -> impl Iterator<Item = &'cluster Value> {
    ["/status/v1beta2/conditions", "/status/conditions"]
        .into_iter()
        .filter_map(|pointer| cluster.pointer(pointer)?.as_array())
        .flatten()
        .filter(move |condition| condition["type"] == type_)
}

/// Cluster API says so of the Machines of MachineDeployments, while one of them is older than its MachineDeployment wants it, for whatever reason:
/// `setWorkerMachinesUpToDateCondition` (`internal/controllers/cluster/cluster_controller_status.go` 1.10.5:651 and 1.13.6:747, `core/reconcilers/cluster` 1.14.2:762).
/// Machines of MachinePools are left out there (1.10.5:55, 1.13.6:68, 1.14.2:68): nobody sets that condition on them as it is meant. Where Machines could not be listed, it
/// may be so. Of Machines that nobody says it of, such as those of MachineSets without a MachineDeployment, it is not known, and never will be: they do not roll.
///
/// `status.workers` would not do: `setWorkersReplicas` counts all replicas of a MachinePool from 1.14 on (1.14.2:74; none before, 1.10.5:61 and 1.13.6:74), and as up to date
/// those that it reports so, or as many as it shall have, so that the two need never become equal, or hide Machines that are older. Nor would the condition
/// `RollingOut` of the Cluster: it is true for the control plane as well, which rolls for other reasons too. This one is true for workers that roll to something
/// else than a version, where Cluster API would go on: then its call says so, see [`super::due`].
fn workers_roll(cluster: &Value) -> bool {
    let condition = conditions(cluster, "WorkerMachinesUpToDate").next();
    condition.is_some_and(|condition| condition["status"] == "False" || condition["reason"] == "InternalError")
}

/// It is not true during an upgrade since 1.12 (`internal/controllers/topology/cluster/conditions.go` 1.13.6:181), until `AfterClusterUpgrade` was answered; before, it is true
/// as soon as the last set of workers has been told the version (1.10.5:165). After a change of the Cluster it says what was before until Cluster API has
/// looked; in the form of v1beta2 it tells of which generation it is.
fn is_reconciled(cluster: &Value) -> bool {
    let generation = cluster.pointer("/metadata/generation").and_then(Value::as_i64);
    conditions(cluster, "TopologyReconciled")
        .next()
        .is_some_and(|condition| {
            let is_of_now = condition["observedGeneration"]
                .as_i64()
                .is_none_or(|observed| Some(observed) >= generation);
            condition["status"] == "True" && is_of_now
        })
}

/// While a hook holds a Cluster up the condition is false (`internal/controllers/topology/cluster/conditions.go` 1.10.5:133). In the form of v1beta2 its time stays the same until its
/// status is another, whatever its message becomes (`util/conditions/v1beta2/setter.go` 1.10.5:65), so that an answer that names the time does not change it.
fn unreconciled_since(cluster: &Value) -> Option<Timestamp> {
    let condition = conditions(cluster, "TopologyReconciled").next()?;
    if condition["status"] == "True" {
        return None;
    }
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

/// A list separated by commas (`internal/hooks/tracking.go`); hooks that nobody knows are passed over.
fn pending(annotation: Option<&Value>) -> BTreeSet<Hook> {
    let names = annotation.and_then(Value::as_str).unwrap_or_default().split(',');
    names.filter_map(|name| Hook::named(name.trim())).collect()
}
