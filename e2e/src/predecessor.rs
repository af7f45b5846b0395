//! What the Go operator leaves behind: objects that `kubectl` applied and that `manager` looked after, with its words in the status.

use std::collections::BTreeMap;

use anyhow::Result;
use crds::{ClusterStack, labels};
use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{Journey, helm::manifests};

/// Field manager of the objects that the Go operator applied.
pub const APPLIER: &str = "kubectl";
/// Field manager of the objects that it looked after itself.
pub const MANAGER: &str = "manager";

/// Who writes under this name.
pub fn manager(name: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(name.to_owned()),
        ..PatchParams::default()
    }
}

/// The managers of an object who wrote more than its status.
pub fn owners(object: &DynamicObject) -> Vec<(&str, &str)> {
    let entries = object
        .managed_fields()
        .iter()
        .filter(|entry| entry.subresource.is_none());
    entries
        .filter_map(|entry| Some((entry.manager.as_deref()?, entry.operation.as_deref()?)))
        .collect()
}

/// Our own stack's first version as the Go operator would have left it, with a field that the release does not have (any more)
/// and one of somebody else.
pub async fn left_by_the_predecessor(journey: &Journey, tag: &str) -> Result<()> {
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    let stack = journey.api::<ClusterStack>().get("harbor").await?;
    let release = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
        "metadata": {
            "name": tag, "finalizers": [labels::RELEASE_FINALIZER],
            "ownerReferences": [{
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "name": "harbor", "uid": stack.uid(),
            }],
        },
        "spec": {},
    });
    let releases = journey.objects("clusterstack.x-k8s.io/v1alpha1", "ClusterStackRelease");
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    releases.create(&params, &serde_json::from_value(release)?).await?;
    let rows = applied_by_the_predecessor(journey, tag).await?.1;
    let status = json!({ "status": { "ready": true, "kubernetesVersion": "v1.34.0", "resources": rows } });
    releases
        .patch_status(tag, &manager(MANAGER), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// The objects of a release as the Go operator applies them, with fields more; by kind and name, and as it lists them.
pub async fn applied_by_the_predecessor(
    journey: &Journey,
    tag: &str,
) -> Result<(BTreeMap<String, DynamicObject>, Vec<Value>)> {
    let (mut left, mut rows) = (BTreeMap::new(), Vec::new());
    for manifest in manifests(journey, tag, &journey.namespace)? {
        let mut object: Value = serde_yaml::from_str(&manifest)?;
        object["metadata"]["labels"][labels::INSTANCE] = json!(labels::INSTANCE_OWNED);
        object["metadata"]["annotations"]["example.com/dropped"] = json!("by a later release");
        if object["kind"] == "KubeadmConfigTemplate" {
            object["spec"]["template"]["spec"]["verbosity"] = json!(5);
        }
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
        let params = PatchParams::apply(APPLIER).force();
        let applied = journey
            .objects(&api_version, &kind)
            .patch(&name, &params, &Patch::Apply(&object))
            .await?;
        left.insert(format!("{kind} {name}"), applied);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        rows.push(json!({
            "group": group, "version": version, "kind": kind, "namespace": journey.namespace, "name": name, "status": "synced",
        }));
    }
    Ok((left, rows))
}
