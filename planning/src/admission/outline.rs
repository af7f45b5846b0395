//! What the rules want to know of a review.

use crds::cluster_stack::VERSIONS_LENGTH;
use serde_json::Value;

use crate::outline::{Fields, Kept, Scalar, Scalars, TOPOLOGY};

const KIND: Kept = Fields(&[
    ("group", Scalar),
    ("version", Scalar),
    ("kind", Scalar),
    ("resource", Scalar),
]);

/// Of Clusters, stacks, releases and add-ons: they have no field in common that means something else.
const OBJECT: Kept = Fields(&[
    ("metadata", Fields(&[("deletionTimestamp", Scalar)])),
    (
        "spec",
        Fields(&[
            ("topology", TOPOLOGY),
            ("provider", Scalar),
            ("name", Scalar),
            ("kubernetesVersion", Scalar),
            ("channel", Scalar),
            ("versions", Scalars(VERSIONS_LENGTH as usize)),
            ("clusterRef", Fields(&[("namespace", Scalar)])),
        ]),
    ),
]);

const REVIEW: Kept = Fields(&[
    ("apiVersion", Scalar),
    ("kind", Scalar),
    (
        "request",
        Fields(&[
            ("uid", Scalar),
            ("kind", KIND),
            ("resource", KIND),
            ("name", Scalar),
            ("namespace", Scalar),
            ("operation", Scalar),
            ("userInfo", Fields(&[])),
            ("object", OBJECT),
            ("oldObject", OBJECT),
        ]),
    ),
]);

/// What the rules read of a review, in its place; `None` when the bytes are no JSON. Of what is twice in it, the last counts.
pub fn outline(bytes: &[u8]) -> Option<Value> {
    REVIEW.of(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn review(object: &Value) -> Value {
        json!({ "kind": "AdmissionReview", "request": { "uid": "42", "object": object, "options": { "a": 1 } } })
    }

    #[test]
    fn of_what_is_larger_than_it_needs_to_be_next_to_nothing_is_kept() {
        let many = |element: &str| format!("[{}{element}]", format!("{element},").repeat(100_000));
        for weight in [
            many("0"),
            many("{\"\":[]}"),
            many("[]"),
            "{".to_owned() + &"\"x\":{},".repeat(100_000) + "\"y\":0}",
        ] {
            let text = review(
                &json!({ "metadata": "WEIGHT", "spec": { "topology": { "class": "WEIGHT" }, "versions": "WEIGHT", "x": "WEIGHT" } }),
            );
            let text = text.to_string().replace("\"WEIGHT\"", &weight);
            let outline = outline(text.as_bytes()).expect("JSON").to_string();
            assert!(text.len() > 100_000 && outline.len() < 10_000, "{outline}");
        }
    }
}
