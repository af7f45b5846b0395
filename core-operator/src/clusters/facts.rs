//! What is kept of a Cluster to decide about its add-ons: a change of anything else in it wakes nobody.

use std::collections::BTreeSet;

use crds::labels::VALUES_FROM;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::object::GroupKind;
use planning::addon::{ClusterSeen, Holder};
use serde_json::{Value, json};

use super::is_of_cluster_api;
use super::mark::Mark;

/// The facts of a Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterFacts {
    /// What it says itself. Nothing of its control plane, which is another object.
    pub(crate) seen: ClusterSeen,
    /// Its control plane.
    pub(crate) control_plane: Option<Part>,
    /// What its provider makes of it.
    pub(crate) infrastructure: Option<Part>,
    /// What tells that values made of it may be others.
    pub(crate) mark: Mark,
    /// What it says that it takes values from besides.
    pub(crate) values_from: Option<String>,
    /// The Secrets and ConfigMaps that it names there, as far as that can be read; once each.
    pub(crate) values_of: BTreeSet<Holder>,
}

/// An object that belongs to a Cluster, in the namespace of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) kind: GroupKind,
    pub(crate) name: String,
}

impl ClusterFacts {
    pub(crate) fn of(cluster: &DynamicObject) -> Self {
        let whole = with_metadata(cluster);
        let values_from = cluster.annotations().get(VALUES_FROM).cloned();
        // Whoever makes the values says what cannot be read.
        let given = values_from.as_deref().map(planning::addon::values_from);
        let given = given.and_then(Result::ok).into_iter().flatten();
        let values_of = given.map(|given| given.holder).collect();
        Self {
            seen: ClusterSeen::of(&whole, None),
            control_plane: part(&whole, "/spec/controlPlaneRef"),
            infrastructure: part(&whole, "/spec/infrastructureRef"),
            mark: Mark::of(&cluster.metadata),
            values_of,
            values_from,
        }
    }
}

/// The object as it is on the wire, as far as facts are read from it.
fn with_metadata(cluster: &DynamicObject) -> Value {
    let metadata = &cluster.metadata;
    let mut whole = cluster.data.clone();
    if let Some(fields) = whole.as_object_mut() {
        let metadata = json!({
            "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid, "generation": metadata.generation,
            "deletionTimestamp": metadata.deletion_timestamp, "annotations": metadata.annotations,
        });
        fields.insert("metadata".to_owned(), metadata);
    }
    whole
}

/// A reference has the group in `apiGroup` (v1beta2) or with the version in `apiVersion` (v1beta1). What is no part of a cluster is not followed.
fn part(cluster: &Value, pointer: &str) -> Option<Part> {
    let reference = cluster.pointer(pointer)?;
    let text = |field: &str| {
        reference
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let group = text("apiGroup").or_else(|| Some(text("apiVersion")?.split_once('/')?.0));
    let group = group.filter(|group| is_of_cluster_api(group))?;
    Some(Part {
        kind: GroupKind::new(group, text("kind")?),
        name: text("name")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_cluster_are_found_in_both_spellings() {
        let part = |reference: Value| {
            let cluster = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web", "namespace": "team", "uid": "1" },
                "spec": { "controlPlaneRef": reference },
            });
            let cluster: DynamicObject = serde_json::from_value(cluster).expect("an object");
            ClusterFacts::of(&cluster).control_plane
        };
        let found = Some(Part {
            kind: GroupKind::new("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
            name: "web-abc".to_owned(),
        });
        let (group, kind, name) = ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "web-abc");
        let v1beta1 =
            json!({ "apiVersion": format!("{group}/v1beta1"), "kind": kind, "name": name, "namespace": "team" });
        assert_eq!(part(v1beta1), found);
        assert_eq!(part(json!({ "apiGroup": group, "kind": kind, "name": name })), found);
        for wrong in [
            json!(null),
            json!({}),
            json!({ "apiVersion": "v1", "kind": kind, "name": name }),
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name }),
            json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name }),
            json!({ "apiGroup": "evilcluster.x-k8s.io", "kind": kind, "name": name }),
            json!({ "apiGroup": group, "kind": "", "name": name }),
            json!({ "apiGroup": group, "kind": kind }),
        ] {
            assert_eq!(part(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn facts_are_those_of_the_whole_object() {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {
                "name": "web", "namespace": "team", "uid": "1", "generation": 7, "deletionTimestamp": "2026-01-02T00:00:00Z",
                "annotations": { crds::labels::PAUSED: "" }, "labels": { "a": "b" },
            },
            "spec": { "topology": { "classRef": { "name": "docker-harbor-1-34-v1" }, "version": "v1.34.0" } },
            "status": { "initialization": { "controlPlaneInitialized": true } },
        });
        let object: DynamicObject = serde_json::from_value(cluster.clone()).expect("an object");
        let facts = ClusterFacts::of(&object);
        assert_eq!(facts.seen, ClusterSeen::of(&cluster, None));
        assert!(facts.seen.initialized && facts.seen.paused.is_some() && facts.seen.deleting.is_some());
        // What changes all the time changes nothing.
        let mut busy = cluster;
        busy["metadata"]["resourceVersion"] = json!("9");
        busy["status"]["observedGeneration"] = json!(6);
        let busy: DynamicObject = serde_json::from_value(busy).expect("an object");
        assert_eq!(ClusterFacts::of(&busy), facts);
    }
}
