//! What real Helm and the API server make of a class chart: the objects that a release has to become.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::labels;
use e2e::{
    Journey,
    helm::manifests,
    oracle::{Course, ORACLE, apply, fields_of, plain, same},
};
use kube::{ResourceExt, api::DynamicObject};

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

/// The objects that Helm renders for the journey's namespace as the API server would store them, had nobody made them yet,
/// by kind and name.
async fn objects_of(journey: &Journey, tag: &str) -> Result<BTreeMap<String, DynamicObject>> {
    // Where nothing of these names exists: a dry run then shows the object alone.
    let empty = journey.another_namespace().await?;
    let mut objects = BTreeMap::new();
    for manifest in manifests(journey, tag, &empty)? {
        let object = apply(&journey.client, &empty, &manifest, Course::Dry).await?;
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
