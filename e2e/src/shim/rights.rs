//! Who the shim is, and what it may: what a provider needs and nothing of what an operator of add-ons writes.

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Client, Resource,
    api::{Api, ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::kinds::Kind;
use crate::Identity;

/// Its user name and its field manager.
pub(super) const NAME: &str = "shim";
/// Its roles. One API server may be both clusters.
const OF_MANAGEMENT: &str = "shim";
const OF_WORKLOAD: &str = "shim-nodes";

/// In whose name it asks both API servers.
pub fn identity() -> Identity {
    Identity::User {
        name: NAME.to_owned(),
        groups: Vec::new(),
    }
}

/// In the management cluster: its kinds and their statuses, what they belong to for reading, and Secrets, which it cannot read.
pub(super) async fn grant_in_management(admin: &Client) -> Result<()> {
    let definitions = Kind::ALL.map(Kind::definition);
    let mut rules = vec![
        json!({
            "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "resourceNames": definitions, "verbs": ["get"],
        }),
        json!({
            "apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters", "machines"], "verbs": ["get", "list", "watch"],
        }),
        json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "patch", "delete"] }),
    ];
    for kind in Kind::ALL {
        let (group, plural) = (kind.group(), kind.plural());
        rules.push(json!({
            "apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch", "patch"],
        }));
        rules.push(json!({ "apiGroups": [group], "resources": [format!("{plural}/status")], "verbs": ["patch"] }));
    }
    grant(admin, OF_MANAGEMENT, &rules)
        .await
        .context("failed to give the shim its rights in the management cluster")
}

/// In a workload cluster: it brings Nodes and takes them away.
pub(super) async fn grant_in_workload(admin: &Client) -> Result<()> {
    let rule = json!({ "apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "delete"] });
    grant(admin, OF_WORKLOAD, &[rule])
        .await
        .context("failed to give the shim its rights in a workload cluster")
}

async fn grant(admin: &Client, name: &str, rules: &[Value]) -> Result<()> {
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    apply::<ClusterRole>(admin, name, role).await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": name },
        "subjects": [{ "kind": "User", "apiGroup": group, "name": NAME }],
        "roleRef": { "kind": "ClusterRole", "apiGroup": group, "name": name },
    });
    apply::<ClusterRoleBinding>(admin, name, binding).await
}

async fn apply<K: Resource<DynamicType = ()>>(admin: &Client, name: &str, mut object: Value) -> Result<()> {
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    let api = Api::<DynamicObject>::all_with(admin.clone(), &ApiResource::erase::<K>(&()));
    api.patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(object))
        .await?;
    Ok(())
}
