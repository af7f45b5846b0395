//! What real Helm and the API server make of a class chart: the objects that a release has to become.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use crds::labels;
use e2e::Journey;
use flate2::read::GzDecoder;
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

/// The documents that Helm renders for this namespace.
pub(crate) fn manifests(journey: &Journey, tag: &str, namespace: &str) -> Result<Vec<String>> {
    let rendered = helm_template(journey, tag, namespace)?;
    // A separator begins its line; files within objects have indented ones.
    let documents = rendered
        .split("\n---\n")
        .map(|document| document.trim_start_matches("---\n"));
    let documents = documents.filter(|document| !document.trim().is_empty());
    Ok(documents.map(|document| format!("{document}\n")).collect())
}

fn helm_template(journey: &Journey, tag: &str, namespace: &str) -> Result<String> {
    let helm = journey
        .lab()
        .helm
        .get("v3.19")
        .context("no helm v3.19 in the lab: run `cargo xtask setup`")?;
    let release_name: Vec<&str> = tag.splitn(5, '-').take(4).collect();
    let unpacked = tempfile::tempdir().context("failed to make a folder")?;
    let chart = in_go(&class_chart(&journey.releases.folder_of(tag))?, unpacked.path())?;
    let mut command = Command::new(helm);
    command.args(["template", &release_name.join("-")]).arg(chart);
    command.args(["--namespace", namespace]);
    let answer = command.output().context("failed to start helm")?;
    ensure!(
        answer.status.success(),
        "helm: {}",
        String::from_utf8_lossy(&answer.stderr)
    );
    Ok(String::from_utf8(answer.stdout)?)
}

fn class_chart(release: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(release)?.collect::<Result<Vec<_>, _>>()?;
    let chart = files
        .iter()
        .map(fs::DirEntry::path)
        .find(|path| path.to_string_lossy().contains("-cluster-class-"));
    chart.with_context(|| format!("no class chart in {}", release.display()))
}

/// The chart unpacked, with the Go forms of its Tera templates in their place, which Helm would take for its own.
fn in_go(chart: &Path, place: &Path) -> Result<PathBuf> {
    let packed = fs::File::open(chart).with_context(|| format!("failed to open {}", chart.display()))?;
    tar::Archive::new(GzDecoder::new(packed)).unpack(place)?;
    let folder = fs::read_dir(place)?.next().context("an empty chart")??.path();
    for template in fs::read_dir(folder.join("templates"))? {
        let template = template?.path();
        if template.extension().is_some_and(|end| end == "tera") {
            let in_go = template.with_extension("yaml");
            let name = in_go.file_name().context("a template has a name")?;
            let form = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/journeys/go_forms")
                .join(name);
            fs::copy(&form, &in_go).with_context(|| format!("{} has no Go form", template.display()))?;
            fs::remove_file(&template)?;
        }
    }
    Ok(folder)
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
