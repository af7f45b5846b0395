//! A ClusterAddon as decisions about its presence see it.

use crds::cluster_addon::ClusterAddon;
use crds::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use planning::addon::{AddonSeen, is_begun};

/// What is seen of a ClusterAddon.
pub(super) fn addon_seen(addon: &ClusterAddon) -> AddonSeen {
    let has = |annotation: &str| addon.annotations().contains_key(annotation);
    AddonSeen {
        owner: owner_uid(addon).map(str::to_owned),
        reference: addon.spec.cluster_ref.uid.clone(),
        deleting: addon.metadata.deletion_timestamp.is_some(),
        paused: has(labels::PAUSED),
        moving: has(labels::DELETE_FOR_MOVE),
        begun: is_begun(addon),
    }
}

/// The uid of the Cluster that owns it.
pub(super) fn owner_uid(addon: &ClusterAddon) -> Option<&str> {
    let mut clusters = addon.owner_references().iter().filter(|owner| is_cluster(owner));
    clusters.next().map(|owner| owner.uid.as_str())
}

/// Whether an owner is a Cluster.
pub(super) fn is_cluster(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.kind == "Cluster" && group == Some(crate::clusters::CLUSTER_API_GROUP)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_owner_is_the_cluster_and_nobody_else() {
        let addon = |owners: serde_json::Value| -> ClusterAddon {
            serde_json::from_value(json!({
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterAddon",
                "metadata": { "name": "cluster-addon-wharf", "namespace": "fleet", "ownerReferences": owners },
                "spec": { "clusterRef": { "kind": "Cluster", "name": "wharf", "uid": "uid-0" } },
            }))
            .expect("a ClusterAddon")
        };
        let owner = |api_version: &str, kind: &str, uid: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "wharf", "uid": uid });
        let others = [
            owner("v1", "Namespace", "uid-2"),
            owner("example.org/v1", "Cluster", "uid-3"),
        ];
        let seen = addon_seen(&addon(json!([others[0], others[1]])));
        assert_eq!((seen.owner, seen.reference.as_deref()), (None, Some("uid-0")));
        for version in ["v1beta1", "v1beta2"] {
            let cluster = owner(&format!("cluster.x-k8s.io/{version}"), "Cluster", "uid-1");
            let seen = addon_seen(&addon(json!([others[0], others[1], cluster])));
            assert_eq!(seen.owner.as_deref(), Some("uid-1"));
        }
    }
}
