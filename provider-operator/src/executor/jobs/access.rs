//! Who the program of a Job is before the API server, and what it may: patch the status of the one object that its image is of. Pure.

use crds::PROVIDER_GROUP;
use serde_json::{Value, json};

use super::names;
use crate::objects::ObjectId;

/// Service account, role and binding of all Jobs of an object. They go with it at the latest.
pub(super) fn access(object: &ObjectId) -> [Value; 3] {
    let name = names::access(object);
    let metadata = json!({
        "name": name,
        "namespace": object.namespace,
        "labels": { crds::labels::JOB_OF: names::label(object), crds::labels::INSTANCE: crds::labels::INSTANCE_OWNED },
        "ownerReferences": [names::owner(object)],
    });
    let status = format!("{}/status", object.provider.definition().image_plural);
    let group = "rbac.authorization.k8s.io";
    [
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata,
            // Nobody gets its token who does not ask for it.
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata,
            "rules": [{ "apiGroups": [PROVIDER_GROUP], "resources": [status], "resourceNames": [object.name], "verbs": ["patch"] }],
        }),
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": object.namespace }],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::object;

    #[test]
    fn the_program_of_a_job_may_patch_the_status_of_its_object_and_nothing_else() {
        let object = object("fleet", "ubuntu");
        let [account, role, binding] = access(&object);
        let rules = role["rules"].as_array().expect("rules");
        let expected = json!([{
            "apiGroups": ["infrastructure.clusterstack.x-k8s.io"], "resources": ["filestorenodeimagereleases/status"],
            "resourceNames": ["ubuntu"], "verbs": ["patch"],
        }]);
        assert_eq!(json!(rules), expected);
        for made in [&account, &role, &binding] {
            assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], object.uid);
            assert_eq!(made["metadata"]["namespace"], "fleet");
        }
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        assert_eq!(binding["subjects"][0]["name"], account["metadata"]["name"]);
        assert_eq!(account["automountServiceAccountToken"], false);
    }
}
