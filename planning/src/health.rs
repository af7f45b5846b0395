//! Whether a live object has become what was asked for, by the rules that kubectl and other tools share under the name kstatus.
//!
//! Reads one object as the API server returns it and nothing else: no clock, no other objects. Two rules differ from the shared ones, both
//! because readiness of a release hangs on them: a Job is in progress until it has completed, and a Pod that cannot be scheduled is in
//! progress however long that lasts. Reasons are the object's own words where it has any.

mod builtin;
mod cluster_api;
mod conditions;

/// The words of kstatus, as they stand in `status.resources`.
pub use crds::resource::Health as HealthState;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use conditions::{condition, explained, is_true};

use crate::object_key::GroupKind;

/// What an object says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The summary.
    pub state: HealthState,
    /// Why, for people; empty when there is nothing to add.
    pub message: String,
}

impl Health {
    fn new(state: HealthState, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
        }
    }

    fn current() -> Self {
        Self::new(HealthState::Current, "")
    }

    fn in_progress(message: impl Into<String>) -> Self {
        Self::new(HealthState::InProgress, message)
    }

    fn failed(message: impl Into<String>) -> Self {
        Self::new(HealthState::Failed, message)
    }
}

/// The health of a full object. An object without an `apiVersion` and `kind` is Unknown.
pub fn health(object: &Value) -> Health {
    let Some(group_kind) = group_kind_of(object) else {
        return Health::new(HealthState::Unknown, "the object has no apiVersion or kind");
    };
    being_deleted(object)
        .or_else(|| not_observed_yet(object))
        .or_else(|| reconciling_or_stalled(object))
        .or_else(|| builtin::health(&group_kind, object))
        .or_else(|| cluster_api::health(&group_kind, object))
        .unwrap_or_else(|| by_ready_condition(object))
}

/// Whether the health of this kind can change while only the status does: if not, nobody needs to read its objects for their health.
pub fn matters(group_kind: &GroupKind) -> bool {
    let GroupKind { group, kind } = group_kind;
    let inert = match group.as_str() {
        "" => [
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "PodTemplate",
            "ResourceQuota",
            "Secret",
            // Whether it has a cluster IP is settled when it is written.
            "Service",
            "ServiceAccount",
        ]
        .contains(&kind.as_str()),
        "apps" => kind == "ControllerRevision",
        "batch" => kind == "CronJob",
        "networking.k8s.io" => ["Ingress", "IngressClass", "NetworkPolicy"].contains(&kind.as_str()),
        "storage.k8s.io" => kind != "VolumeAttachment",
        "admissionregistration.k8s.io"
        | "coordination.k8s.io"
        | "discovery.k8s.io"
        | "node.k8s.io"
        | "policy"
        | "rbac.authorization.k8s.io"
        | "scheduling.k8s.io" => true,
        // Templates are read by those who copy them; no controller works on them.
        group => cluster_api::is_group(group) && kind.ends_with("Template"),
    };
    !inert
}

fn group_kind_of(object: &Value) -> Option<GroupKind> {
    let api_version = object.get("apiVersion")?.as_str()?;
    let kind = object.get("kind")?.as_str()?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Some(GroupKind::new(group, kind))
}

fn being_deleted(object: &Value) -> Option<Health> {
    object.pointer("/metadata/deletionTimestamp")?.as_str()?;
    Some(Health::new(HealthState::Terminating, "the object is being deleted"))
}

fn not_observed_yet(object: &Value) -> Option<Health> {
    let generation = object.pointer("/metadata/generation")?.as_i64()?;
    let observed = object.pointer("/status/observedGeneration")?.as_i64()?;
    (generation != observed).then(|| {
        Health::in_progress(format!(
            "its controller has seen generation {observed}, the object is at {generation}"
        ))
    })
}

fn reconciling_or_stalled(object: &Value) -> Option<Health> {
    if let Some(stalled) = condition(object, "Stalled").filter(|found| is_true(found)) {
        return Some(Health::failed(explained(stalled)));
    }
    let reconciling = condition(object, "Reconciling").filter(|found| is_true(found))?;
    Some(Health::in_progress(explained(reconciling)))
}

/// The rule for kinds nobody knows: an object without a Ready condition has nothing to say, and is what was asked for.
fn by_ready_condition(object: &Value) -> Health {
    match condition(object, "Ready") {
        Some(ready) => conditions::must_be_true(ready),
        None => Health::current(),
    }
}

#[cfg(test)]
mod tests;
