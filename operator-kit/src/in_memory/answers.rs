//! What the API server in memory says where it tells of no object: refusals, and what is served.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::api::{Refusal, Served};

/// Without a reason no object: of what is not served an API server speaks in plain text.
pub(super) fn refused(refusal: &Refusal) -> Value {
    let Refusal {
        code,
        reason,
        message,
        about,
        causes,
    } = refusal;
    if reason.is_empty() {
        return Value::Null;
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
        "details": { "kind": about.unwrap_or_default(), "causes": causes },
    })
}

/// What an API server says of itself at this path.
pub(super) fn about_itself(kinds: &'static [Served], path: &str, hidden: Option<&str>) -> Value {
    match path {
        "/version" => json!({ "major": "1", "minor": "34", "gitVersion": "v1.34.0" }),
        path => discovery(kinds, path == "/api", hidden),
    }
}

/// What is served, of the core group or of all others but one.
fn discovery(kinds: &'static [Served], core: bool, hidden: Option<&str>) -> Value {
    let shown = kinds.iter().filter(|kind| Some(kind.group) != hidden);
    let mut groups: Vec<&Served> = shown.filter(|kind| kind.group.is_empty() == core).collect();
    groups.sort_by_key(|kind| kind.group);
    let groups = groups.chunk_by(|one, other| one.group == other.group).map(|kinds| {
        let resources = kinds.iter().map(|kind| {
            json!({
                "resource": kind.plural, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": ["get"],
                "subresources": [{ "subresource": "status", "verbs": ["get"] }],
                "responseKind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
            })
        });
        let resources: Vec<Value> = resources.collect();
        json!({ "metadata": { "name": kinds[0].group }, "versions": [{ "version": kinds[0].version, "resources": resources }] })
    });
    let items: Vec<Value> = groups.collect();
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items })
}

/// Refuses as a policy does that repeats what it was shown, with the values of Secrets in both forms.
pub(super) fn repeated(objects: &[&Value]) -> Refusal {
    let values = objects.iter().filter_map(|object| object["data"].as_object()).flatten();
    let decoded = values.filter_map(|(_, value)| serde_json::from_value(value.clone()).ok());
    let decoded = decoded.filter_map(|ByteString(value)| String::from_utf8(value).ok());
    let decoded: Vec<String> = decoded.collect();
    let message = format!(
        "admission webhook \"strict.example.org\" denied the request: {} is too weak in {}",
        decoded.join(" and "),
        json!(objects)
    );
    Refusal::new(403, "Forbidden", message)
}
