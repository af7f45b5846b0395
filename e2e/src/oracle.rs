//! What the real Helm and the API server make of a chart, and what is compared of it with what an operator made.

use anyhow::{Context, Result, ensure};
use crds::labels;
use kube::{
    Api, Client, ResourceExt,
    api::DynamicObject,
    core::GroupVersionKind,
    discovery::{Scope, pinned_kind},
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Field manager of what is applied here.
pub const ORACLE: &str = "oracle";
/// What the operator writes into objects besides what their chart states.
const MARKS: [&str; 3] = [labels::INSTANCE, labels::PART_OF, labels::STAGE];

/// Whether an object is to be there afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It is.
    Real,
    /// The API server only says what it would store.
    Dry,
}

/// What the API server stores of a manifest, whose namespace is this one where it states none. The manifest is sent as it is: the reading of YAML is
/// the API server's too.
pub async fn apply(client: &Client, namespace: &str, manifest: &str, course: Course) -> Result<DynamicObject> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        api_version: String,
        kind: String,
        metadata: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
        namespace: Option<String>,
    }
    let Head {
        api_version,
        kind,
        metadata: Named { name, namespace: own },
    } = serde_yaml::from_str(manifest)?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let (resource, capabilities) = pinned_kind(client, &GroupVersionKind::gvk(group, version, &kind))
        .await
        .with_context(|| format!("the API server does not know {kind}"))?;
    let api = match capabilities.scope {
        Scope::Cluster => Api::<DynamicObject>::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = own.as_deref().unwrap_or(namespace);
            Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    let dry = if course == Course::Dry { "dryRun=All&" } else { "" };
    let path = format!("{}/{name}?{dry}fieldManager={ORACLE}", api.resource_url());
    let request = http::Request::patch(path)
        .header("content-type", "application/apply-patch+yaml")
        .body(manifest.as_bytes().to_vec())?;
    let stored = client.request(request).await;
    stored.with_context(|| format!("the API server refuses {kind} {name}"))
}

/// Says where two differ, line by line.
pub fn same(what: &str, live: &Value, wanted: &Value) -> Result<()> {
    let text = |value: &Value| serde_json::to_string_pretty(value);
    ensure!(
        live == wanted,
        "{what} differs:\n{}",
        similar::TextDiff::from_lines(&text(wanted)?, &text(live)?).unified_diff()
    );
    Ok(())
}

/// An object without what the API server adds to each single one, and without our marks and these labels.
pub fn plain(object: &DynamicObject, labels_of_others: &[&str]) -> Result<Value> {
    let mut object = object.clone();
    let marks = [&MARKS, labels_of_others].concat();
    let is_stated = |name: &String| !marks.contains(&name.as_str());
    object.labels_mut().retain(|label, _| is_stated(label));
    object.annotations_mut().retain(|annotation, _| is_stated(annotation));
    let of_pods = object.data.pointer_mut("/spec/template/metadata/labels");
    if let Some(of_pods) = of_pods.and_then(Value::as_object_mut) {
        of_pods.retain(|label, _| is_stated(label));
    }
    let metadata = &mut object.metadata;
    metadata.managed_fields = None;
    metadata.uid = None;
    metadata.resource_version = None;
    // How often it was written, not what it is.
    metadata.generation = None;
    metadata.creation_timestamp = None;
    Ok(serde_json::to_value(object)?)
}

/// The fields that a manager owns by apply, our marks left out.
pub fn fields_of(object: &DynamicObject, manager: &str) -> Result<Value> {
    let entry = object
        .managed_fields()
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply"));
    let mut fields = serde_json::to_value(entry.and_then(|entry| entry.fields_v1.as_ref()))?;
    if let Some(fields) = fields.as_object_mut() {
        leave_out_marks(fields);
    }
    Ok(fields)
}

/// With what holds nothing else. A field that holds nothing to begin with is one, but where marks are: an empty map of annotations states none.
fn leave_out_marks(fields: &mut Map<String, Value>) {
    fields.retain(|name, below| {
        let is_mark = name.strip_prefix("f:").is_some_and(|name| MARKS.contains(&name));
        let Some(below) = below.as_object_mut().filter(|below| !below.is_empty()) else {
            return !is_mark && !["f:annotations", "f:labels"].contains(&name.as_str());
        };
        leave_out_marks(below);
        !is_mark && !below.is_empty()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_no_fields_of_a_chart_and_fields_without_parts_are() -> Result<()> {
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "agent", "managedFields": [{
                "manager": labels::FIELD_MANAGER, "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:annotations": { format!("f:{}", labels::STAGE): {} },
                        "f:labels": { format!("f:{}", labels::INSTANCE): {}, format!("f:{}", labels::PART_OF): {}, "f:app": {} },
                    },
                    "f:spec": { "f:replicas": {}, "f:template": { "f:metadata": { "f:labels": { format!("f:{}", labels::INSTANCE): {} } } } },
                },
            }] },
        }))?;
        let stated = json!({ "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { "f:replicas": {} } });
        assert_eq!(fields_of(&object, labels::FIELD_MANAGER)?, stated);
        assert_eq!(fields_of(&object, ORACLE)?, Value::Null);
        Ok(())
    }
}
