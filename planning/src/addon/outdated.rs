//! A status that is older than its object.

use serde_json::Value;

/// Why the status of an object tells nothing yet, which conditions know as `key`: it is about the object as it was before the last change, which may be ours.
/// What was ready then would end a stage at once that has only just changed it. A status that does not say what it is about is believed.
pub fn outdated(key: &str, object: &Value) -> Option<String> {
    let wanted = object["metadata"]["generation"].as_i64()?;
    let seen = object["status"]["observedGeneration"].as_i64()?;
    (seen < wanted).then(|| {
        format!("{key}.status is not of now yet: its controller has seen generation {seen}, the object is at {wanted}")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_of_before_the_last_change_tells_nothing() {
        let said = |generation: i64, status: Value| {
            outdated(
                "harbor",
                &json!({ "metadata": { "generation": generation }, "status": status }),
            )
        };
        assert_eq!(
            said(2, json!({ "observedGeneration": 1, "readyReplicas": 1 })).as_deref(),
            Some("harbor.status is not of now yet: its controller has seen generation 1, the object is at 2")
        );
        assert_eq!(said(2, json!({ "observedGeneration": 2 })), None);
        assert_eq!(said(2, json!({ "readyReplicas": 1 })), None, "nobody tells");
        assert_eq!(
            outdated("harbor", &json!({ "status": { "observedGeneration": 1 } })),
            None
        );
        assert_eq!(outdated("harbor", &json!("no object")), None);
    }
}
