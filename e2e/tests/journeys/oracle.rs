//! What real Helm and the API server make of a class chart: the objects that a release has to become.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::labels;
use e2e::{Journey, helm::manifests};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde::Deserialize;
use serde_json::Value;

/// Field manager of the dry runs.
const ORACLE: &str = "oracle";

/// Compares what a release has become with what Helm renders from its class chart: the same objects, each the same field
/// by field after the API server's defaulting, and ours are exactly the fields that the chart states, besides our marks.
pub(crate) async fn agrees(journey: &Journey, tag: &str) -> Result<()> {
    agrees_but_for(journey, tag, &[]).await
}

/// The same where others have put labels on objects.
pub(crate) async fn agrees_but_for(journey: &Journey, tag: &str, labels_of_others: &[&str]) -> Result<()> {
    let mut applied = journey.inventory(tag).await?;
    for (name, wanted) in objects_of(journey, tag).await? {
        let live = applied.remove(&name).flatten();
        let live = live.with_context(|| format!("{tag} has not become {name}"))?;
        same(&name, &plain(&live, labels_of_others)?, &plain(&wanted, &[])?)?;
        let (ours, stated) = (fields_of(&live, labels::FIELD_MANAGER)?, fields_of(&wanted, ORACLE)?);
        same(&format!("ownership of {name}"), &ours, &stated)?;
    }
    ensure!(
        applied.is_empty(),
        "{tag} became more than its chart: {:?}",
        applied.keys()
    );
    Ok(())
}

fn same(what: &str, live: &Value, wanted: &Value) -> Result<()> {
    let text = |value: &Value| serde_json::to_string_pretty(value);
    ensure!(
        live == wanted,
        "{what} differs:\n{}",
        similar::TextDiff::from_lines(&text(wanted)?, &text(live)?).unified_diff()
    );
    Ok(())
}

/// The objects that Helm renders for the journey's namespace as the API server would store them, had nobody made them yet,
/// by kind and name.
async fn objects_of(journey: &Journey, tag: &str) -> Result<BTreeMap<String, DynamicObject>> {
    // Where nothing of these names exists: a dry run then shows the object alone.
    let empty = journey.another_namespace().await?;
    let mut objects = BTreeMap::new();
    for manifest in manifests(journey, tag, &empty)? {
        let object = dry_run(journey, &empty, &manifest).await?;
        let text = serde_json::to_string(&object)?.replace(&empty, &journey.namespace);
        let object: DynamicObject = serde_json::from_str(&text)?;
        let kind = object
            .types
            .as_ref()
            .map(|types| types.kind.as_str())
            .unwrap_or_default();
        objects.insert(format!("{kind} {}", object.name_any()), object);
    }
    ensure!(!objects.is_empty(), "helm renders nothing from {tag}");
    Ok(objects)
}

/// What the API server would store. The manifest is sent as it is: the reading of YAML is the API server's too.
async fn dry_run(journey: &Journey, namespace: &str, manifest: &str) -> Result<DynamicObject> {
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
    }
    let Head {
        api_version,
        kind,
        metadata,
    } = serde_yaml::from_str(manifest)?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api = Api::<DynamicObject>::namespaced_with(journey.client.clone(), namespace, &resource);
    let path = format!(
        "{}/{}?dryRun=All&fieldManager={ORACLE}",
        api.resource_url(),
        metadata.name
    );
    let request = http::Request::patch(path)
        .header("content-type", "application/apply-patch+yaml")
        .body(manifest.as_bytes().to_vec())?;
    let stored = journey.client.request(request).await;
    stored.with_context(|| format!("the API server refuses {kind} {}", metadata.name))
}

/// An object without what the API server adds to each single one, and without our marks and these labels.
fn plain(object: &DynamicObject, labels_of_others: &[&str]) -> Result<Value> {
    let mut object = object.clone();
    let marks = [&[labels::INSTANCE, labels::PART_OF], labels_of_others].concat();
    object
        .metadata
        .labels
        .get_or_insert_default()
        .retain(|label, _| !marks.contains(&label.as_str()));
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
pub(crate) fn fields_of(object: &DynamicObject, manager: &str) -> Result<Value> {
    let entry = object
        .managed_fields()
        .iter()
        .find(|entry| entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply"));
    let mut fields = serde_json::to_value(entry.and_then(|entry| entry.fields_v1.as_ref()))?;
    if let Some(metadata) = fields.pointer_mut("/f:metadata").and_then(Value::as_object_mut) {
        if let Some(labels) = metadata.get_mut("f:labels").and_then(Value::as_object_mut) {
            for mark in [labels::INSTANCE, labels::PART_OF] {
                labels.remove(&format!("f:{mark}"));
            }
        }
        metadata.retain(|_, below| below.as_object().is_some_and(|below| !below.is_empty()));
    }
    if fields
        .pointer("/f:metadata")
        .is_some_and(|metadata| metadata == &serde_json::json!({}))
    {
        fields.as_object_mut().map(|fields| fields.remove("f:metadata"));
    }
    Ok(fields)
}
