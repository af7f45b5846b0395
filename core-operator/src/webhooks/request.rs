//! The request of a review, read from bytes that anybody can send: of its objects there is what the rules read, and nothing else.

use kube::api::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionReview};
use planning::admission::outline;

/// The request of a review, as far as a rule is about it; `None` when the bytes are no review with a request.
pub(super) fn read(bytes: &[u8]) -> Option<AdmissionRequest<DynamicObject>> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_value(outline(bytes)?).ok()?;
    review.try_into().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn review(object: &Value) -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "42", "kind": { "group": "g", "version": "v", "kind": "K" }, "resource": { "group": "g", "version": "v", "resource": "ks" },
                "operation": "UPDATE", "userInfo": { "username": "somebody", "extra": { "a": ["b"] } }, "name": "one", "namespace": "fleet",
                "object": object, "oldObject": null, "options": { "a": 1 }, "dryRun": false,
            },
        })
    }

    #[test]
    fn of_a_review_everything_is_kept_that_a_rule_reads() {
        let kept = json!({
            "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": {
                "topology": { "class": "a", "classNamespace": "b", "classRef": { "name": "c", "namespace": "d" }, "version": "e" },
                "provider": "f", "name": "g", "kubernetesVersion": "h", "channel": "i", "versions": ["j", "k"],
                "clusterRef": { "namespace": "l" },
            },
        });
        let mut whole = kept.clone();
        whole["metadata"]["labels"] = json!({ "a": "b" });
        whole["spec"]["topology"]["variables"] = json!([{ "name": "a", "value": { "b": [1.5, -1, null, true] } }]);
        whole["status"] = json!({ "ready": true });
        let request = read(review(&whole).to_string().as_bytes()).expect("a request");
        assert_eq!((request.uid.as_str(), request.name.as_str()), ("42", "one"));
        assert_eq!(request.namespace.as_deref(), Some("fleet"));
        assert!(request.old_object.is_none());
        assert_eq!(serde_json::to_value(&request.object).expect("an object"), kept);
    }

    #[test]
    fn what_is_no_json_to_its_end_is_no_review() {
        let whole = review(&json!({ "metadata": {} })).to_string();
        assert!(read(whole.as_bytes()).is_some());
        for broken in [&whole[..whole.len() - 1], &format!("{whole}x"), "null", "[]", "7"] {
            assert!(read(broken.as_bytes()).is_none(), "{broken}");
        }
    }
}
