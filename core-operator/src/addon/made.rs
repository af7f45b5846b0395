//! A ClusterAddon as it is made for a Cluster: in the form in which the Go operator makes it.

use crds::cluster_addon::{ClusterAddon, ClusterAddonSpec, name_for};
use crds::labels;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use planning::addon::ClusterSeen;

const CLUSTER: &str = "Cluster";

/// The ClusterAddon of a Cluster whose kind is served in this version. Without `watch_filter` it has no label for that.
pub(super) fn made_for(cluster: &ClusterSeen, api_version: &str, watch_filter: &str) -> ClusterAddon {
    let reference = ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(CLUSTER.to_owned()),
        name: Some(cluster.name.clone()),
        namespace: Some(cluster.namespace.clone()),
        uid: Some(cluster.uid.clone()),
        ..ObjectReference::default()
    };
    let spec = ClusterAddonSpec {
        cluster_ref: reference,
        cluster_stack: None,
        version: None,
        hook: None,
    };
    let mut addon = ClusterAddon::new(&name_for(&cluster.name), spec);
    addon.metadata.namespace = Some(cluster.namespace.clone());
    // With the first write, so that no moment exists in which it could vanish without what it brought.
    addon.metadata.finalizers = Some(vec![labels::ADDON_FINALIZER.to_owned()]);
    addon.metadata.owner_references = Some(vec![owner(&cluster.name, &cluster.uid, api_version)]);
    let own = addon.labels_mut();
    own.insert(labels::CLUSTER_NAME.to_owned(), cluster.name.clone());
    if !watch_filter.is_empty() {
        own.insert(labels::WATCH_FILTER.to_owned(), watch_filter.to_owned());
    }
    addon
}

/// A plain owner, which neither controls nor keeps the Cluster from going.
pub(super) fn owner(name: &str, uid: &str, api_version: &str) -> OwnerReference {
    OwnerReference {
        api_version: api_version.to_owned(),
        kind: CLUSTER.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}
