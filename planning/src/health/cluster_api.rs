//! Health of the kinds that cluster stacks are made of: Cluster API's and those of its providers.

use serde_json::Value;

use super::conditions::{condition, explained, is_false, is_true, must_be_true, text};
use super::{Health, HealthState};
use crate::object_key::GroupKind;

/// Whether a group belongs to Cluster API, its providers or to cluster stacks.
pub(super) fn is_group(group: &str) -> bool {
    ["cluster.x-k8s.io", "clusterstack.x-k8s.io"].iter().any(|suffix| {
        group
            .strip_suffix(suffix)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// `None` for kinds without a rule of their own.
pub(super) fn health(group_kind: &GroupKind, object: &Value) -> Option<Health> {
    match (group_kind.group.as_str(), group_kind.kind.as_str()) {
        ("cluster.x-k8s.io", "ClusterClass") => Some(cluster_class(object)),
        ("openstack.k-orc.cloud", _) => Some(openstack_resource(object)),
        (group, kind) if is_group(group) && kind.ends_with("Template") => Some(Health::current()),
        _ => None,
    }
}

/// A class has no Ready condition in Cluster API's v1beta1: it is usable unless its variables could not be worked out.
fn cluster_class(object: &Value) -> Health {
    ["Ready", "VariablesReconciled", "VariablesReady"]
        .iter()
        .filter_map(|kind| condition(object, kind))
        .map(must_be_true)
        .find(|health| health.state != HealthState::Current)
        .unwrap_or_else(Health::current)
}

/// Objects of the `OpenStack` resource controller say Available, and whether they are still at work by Progressing.
/// <https://k-orc.cloud/development/godoc/generic-controller/>
fn openstack_resource(object: &Value) -> Health {
    let Some(available) = condition(object, "Available") else {
        return Health::current();
    };
    if is_true(available) {
        return Health::current();
    }
    match condition(object, "Progressing") {
        Some(progressing)
            if is_false(progressing)
                && ["InvalidConfiguration", "UnrecoverableError"].contains(&text(progressing, "reason")) =>
        {
            Health::failed(explained(progressing))
        }
        _ => Health::in_progress(explained(available)),
    }
}
