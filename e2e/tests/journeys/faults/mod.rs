//! Faults that users of cluster stacks met before, each with a test that fails when it comes back. Their numbers are those of
//! the list that they were collected in.
//!
//! Where a fault belongs to a journey of its own (releases selected, objects drifting), its test is there and has its number too.

mod deletion;
mod files;
mod input;
mod objects;
mod provider;
mod waiting;

use anyhow::Result;
use e2e::Journey;
use serde_json::json;

/// An admission policy of the namespace of a journey: what it refuses is refused to everybody.
struct Policy<'a> {
    journey: &'a Journey,
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
}

impl Policy<'_> {
    /// Refuses the objects for which the expression (CEL) is false. The API server heeds a policy a moment after it took it.
    async fn allows(&self, expression: &str) -> Result<()> {
        let name = &self.journey.namespace;
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": name },
            "spec": {
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": [self.group], "apiVersions": ["*"], "operations": [self.verb], "resources": [self.resource],
                }] },
                "validations": [{ "expression": expression, "message": "the house does not allow this" }],
            },
        });
        self.journey.apply_for_all(policy).await?;
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": name },
            "spec": {
                "policyName": name, "validationActions": ["Deny"],
                "matchResources": { "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } } },
            },
        });
        self.journey.apply_for_all(binding).await.map(drop)
    }
}
