//! Finds in managedFields who else owns fields that we send. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Most fields that are listed for one owner.
pub const LISTED_FIELDS: usize = 20;

/// Another field manager that owns fields of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct ForeignOwner {
    /// Its name.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// JSON pointers into the intent, sorted, at most [`LISTED_FIELDS`].
    pub fields: Vec<String>,
}

/// Whoever writes it reports of an object and decides nothing about it. Other subresources are ways to the object itself: by `scale` somebody sets replicas.
const STATUS: &str = "status";

/// Everybody but `field_manager` who owns at least one field that `intent` sets; sorted by name.
///
/// Owners of a map or list as such (and not of what is in it) do not count: that says only who created it.
pub(super) fn foreign_owners(managed: &[ManagedFieldsEntry], intent: &Value, field_manager: &str) -> Vec<ForeignOwner> {
    let mut owners: Vec<ForeignOwner> = managed
        .iter()
        .filter(|entry| entry.manager.as_deref() != Some(field_manager) && entry.subresource.as_deref() != Some(STATUS))
        .filter_map(|entry| {
            let mut fields = Vec::new();
            collect(entry.fields_v1.as_ref()?.0.as_object()?, intent, "", &mut fields);
            fields.sort_unstable();
            fields.truncate(LISTED_FIELDS);
            (!fields.is_empty()).then(|| ForeignOwner {
                manager: entry.manager.clone().unwrap_or_default(),
                operation: entry.operation.clone().unwrap_or_default(),
                fields,
            })
        })
        .collect();
    owners.sort_unstable();
    owners
}

/// Walks the set of owned fields and the intent side by side. The notation of the keys is that of
/// `sigs.k8s.io/structured-merge-diff`: `f:` a field, `k:` a list item by its keys, `v:` a set member, `i:` an index.
fn collect(owned: &Map<String, Value>, intent: &Value, pointer: &str, fields: &mut Vec<String>) {
    for (element, below) in owned {
        let Some((step, value)) = descend(element, intent) else {
            continue;
        };
        let pointer = format!("{pointer}/{step}");
        match below.as_object() {
            Some(below) if !below.is_empty() => collect(below, value, &pointer, fields),
            _ => fields.push(pointer),
        }
    }
}

/// The part of the intent that an element of the owned set speaks of, and its step of a JSON pointer.
fn descend<'a>(element: &str, intent: &'a Value) -> Option<(String, &'a Value)> {
    let (notation, rest) = element.split_once(':')?;
    if notation == "f" {
        return Some((rest.replace('~', "~0").replace('/', "~1"), intent.get(rest)?));
    }
    let items = intent.as_array()?;
    let index = match notation {
        "i" => rest.parse().ok()?,
        "v" => {
            let member: Value = serde_json::from_str(rest).ok()?;
            items.iter().position(|item| *item == member)?
        }
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            items
                .iter()
                .position(|item| keys.iter().all(|(key, value)| item.get(key) == Some(value)))?
        }
        _ => return None,
    };
    Some((index.to_string(), items.get(index)?))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some("Update".to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn whoever_writes_the_status_owns_nothing_of_what_we_send() {
        // As some generators of CRDs leave it in what they write.
        let intent = json!({ "status": { "acceptedNames": { "kind": "", "plural": "" }, "conditions": [] } });
        let written = entry(
            "kube-apiserver",
            json!({ "f:status": { "f:acceptedNames": { "f:kind": {} } } }),
        );
        assert_eq!(foreign_owners(std::slice::from_ref(&written), &intent, "us").len(), 1);
        let written = ManagedFieldsEntry {
            subresource: Some("status".to_owned()),
            ..written
        };
        assert_eq!(foreign_owners(&[written], &intent, "us"), []);
    }

    #[test]
    fn whoever_scales_owns_the_replicas() {
        let intent = json!({ "spec": { "replicas": 2 } });
        let scaled = ManagedFieldsEntry {
            subresource: Some("scale".to_owned()),
            ..entry("kubectl", json!({ "f:spec": { "f:replicas": {} } }))
        };
        let owners = foreign_owners(&[scaled], &intent, "us");
        let told: Vec<_> = owners
            .iter()
            .map(|owner| (owner.manager.as_str(), &owner.fields))
            .collect();
        assert_eq!(told, [("kubectl", &vec!["/spec/replicas".to_owned()])]);
    }

    #[test]
    fn only_fields_that_we_send_count() {
        let intent = json!({
            "metadata": { "labels": { "a/b": "1" } },
            "spec": { "replicas": 2, "ports": [{ "port": 80, "name": "web" }], "finalizers": ["x"] }
        });
        let managed = [
            entry("us", json!({ "f:spec": { "f:replicas": {} } })),
            entry(
                "someone",
                json!({
                    "f:metadata": { "f:labels": { ".": {}, "f:a/b": {}, "f:other": {} } },
                    "f:spec": {
                        "f:replicas": {},
                        "f:paused": {},
                        "f:ports": { "k:{\"port\":80}": { ".": {}, "f:name": {} }, "k:{\"port\":81}": { "f:name": {} } },
                        "f:finalizers": { "v:\"x\"": {}, "v:\"y\"": {} }
                    }
                }),
            ),
            entry("passer-by", json!({ "f:spec": { ".": {}, "f:paused": {} } })),
        ];
        let owners = foreign_owners(&managed, &intent, "us");
        assert_eq!(
            owners,
            [ForeignOwner {
                manager: "someone".to_owned(),
                operation: "Update".to_owned(),
                fields: [
                    "/metadata/labels/a~1b",
                    "/spec/finalizers/0",
                    "/spec/ports/0/name",
                    "/spec/replicas"
                ]
                .map(str::to_owned)
                .to_vec(),
            }]
        );
    }
}
