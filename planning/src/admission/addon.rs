//! Add-ons stay in the namespace of their Cluster.

use serde_json::Value;

use super::verdict::{Fault, Refusal, Verdict};

const CLUSTER_NAMESPACE: &str = "/spec/clusterRef/namespace";

/// Whether an update of a ClusterAddon may pass. Only an update that brings another namespace in is refused: what is there already, and a
/// reference without namespace, must not be in the way of labels and finalizers.
pub fn addon_update(name: &str, namespace: &str, before: &Value, after: &Value) -> Verdict {
    let of = |addon: &'_ Value| {
        let text = addon.pointer(CLUSTER_NAMESPACE).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let wanted = of(after);
    if wanted.is_empty() || wanted == namespace || wanted == of(before) {
        return Verdict::allow();
    }
    let fault = Fault {
        field: "spec.clusterRef.namespace",
        value: &wanted,
        detail: "cluster and clusterAddon need to be in same namespace".to_owned(),
    };
    let kind = format!("ClusterAddon.{}", crds::GROUP);
    Verdict::allow().refused(Refusal::invalid(&kind, name, &[fault]))
}
