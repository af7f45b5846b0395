//! The object that a user writes: a Cluster of a class whose kinds the shim plays.

use serde_json::{Value, json};

/// A Cluster of this class in this Kubernetes version (`v1.34.0`), with so many workers of the class `worker`.
///
/// It is in the API version that every minor of Cluster API serves.
pub fn cluster(name: &str, class: &str, version: &str, workers: u32) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": name },
        "spec": {
            "clusterNetwork": {
                "pods": { "cidrBlocks": ["10.244.0.0/16"] }, "services": { "cidrBlocks": ["10.96.0.0/16"] },
            },
            "topology": {
                "class": class, "version": version, "controlPlane": { "replicas": 1 },
                "workers": { "machineDeployments": [{ "class": "worker", "name": "md-0", "replicas": workers }] },
            },
        },
    })
}
