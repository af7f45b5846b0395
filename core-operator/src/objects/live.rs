//! What a live object says of itself: how it is, whose it is, and who else writes it.

use std::collections::BTreeSet;

use crds::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::apply::ForeignOwner;
use operator_kit::takeover::relieved;
use planning::health;
use planning::objects::{Belongs, HealthSeen};
use serde_json::Value;

/// Whether what an object holds is ours: we have applied it, and clusterctl, which may have made it here, does not own the same.
pub(super) fn is_owned(live: &DynamicObject) -> bool {
    let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
    has_written(entries, labels::FIELD_MANAGER, "Apply")
        && relieved(entries, labels::MOVER_FIELD_MANAGER, labels::FIELD_MANAGER).is_none()
}

/// Whether somebody who moved an object here still owns what we apply.
pub(super) fn is_mover(owner: &ForeignOwner) -> bool {
    owner.manager == labels::MOVER_FIELD_MANAGER
}

/// Whether an object with our mark was made here by clusterctl. That it is ours and no copy only its name in the rendering says.
pub(super) fn was_moved_here(live: &DynamicObject, part_of: &str) -> bool {
    let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
    live.labels().get(labels::PART_OF).map(String::as_str) == Some(part_of)
        && has_written(entries, labels::MOVER_FIELD_MANAGER, "Update")
}

fn has_written(entries: &[ManagedFieldsEntry], manager: &str, operation: &str) -> bool {
    entries
        .iter()
        .any(|entry| entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some(operation))
}

/// Its health now.
pub(super) fn judged(found: &Value, resource_version: String, now: jiff::Timestamp) -> HealthSeen {
    let health = health::health(found);
    HealthSeen {
        state: health.state,
        message: health.message,
        resource_version,
        at: now,
        reads: 0,
    }
}

/// Whose an object is: by our label, by our field manager, or by what the Go operator leaves behind.
pub(super) fn belongs(live: &DynamicObject, part_of: &str) -> Belongs {
    let entries = live.metadata.managed_fields.as_deref().unwrap_or_default();
    let applied_by = |manager: &str| has_written(entries, manager, "Apply");
    match live.labels().get(labels::PART_OF) {
        // A copy has the mark too: whoever makes one from `kubectl get -o yaml` takes the labels along, and so does Cluster API, which makes the
        // templates of a cluster from those of its class.
        Some(label) if label == part_of && !applied_by(labels::FIELD_MANAGER) => Belongs::Nobody,
        Some(label) if label == part_of => Belongs::Us,
        Some(label) if labels::is_part_of(label) => Belongs::OtherOwner,
        Some(_) => Belongs::Stranger,
        None if applied_by(labels::FIELD_MANAGER) => Belongs::Us,
        None if applied_by(labels::PREDECESSOR_FIELD_MANAGER)
            && live.labels().get(labels::INSTANCE).map(String::as_str) == Some(labels::INSTANCE_OWNED) =>
        {
            Belongs::Predecessor
        }
        None => Belongs::Nobody,
    }
}

/// Whether the Go operator applied an object that nobody has taken over.
pub(crate) fn is_predecessors(live: &DynamicObject) -> bool {
    // Nobody has this mark.
    belongs(live, "") == Belongs::Predecessor
}

/// The managers besides ours that have written to an object (its status apart), sorted. Whoever scales it has.
pub(super) fn other_managers(live: &DynamicObject) -> Vec<String> {
    let entries = live.metadata.managed_fields.iter().flatten();
    let others: BTreeSet<String> = entries
        .filter(|entry| entry.subresource.as_deref() != Some("status"))
        .filter_map(|entry| entry.manager.clone())
        .filter(|manager| manager != labels::FIELD_MANAGER)
        .collect();
    others.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_scales_an_object_is_named_and_whoever_reports_its_status_is_not() {
        let entry = |manager: &str, subresource: &str| json!({ "manager": manager, "operation": "Update", "subresource": subresource });
        let managed = [
            entry("kubectl", "scale"),
            entry("kube-controller-manager", "status"),
            json!({ "manager": "k9s", "operation": "Update" }),
            json!({ "manager": labels::FIELD_MANAGER, "operation": "Apply" }),
        ];
        let live = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent", "managedFields": managed },
        });
        let live: DynamicObject = serde_json::from_value(live).unwrap();
        assert_eq!(other_managers(&live), ["k9s", "kubectl"]);
    }
}
