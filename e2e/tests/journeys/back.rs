//! Ours goes, and the Go operator comes back: its types read our objects, its CRDs take them, and later we go on with what it left.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    Journey,
    cluster_api::seen_by_the_predecessor,
    definitions, eventually,
    journey::{SOON, journey, status},
    predecessor::applied_by_the_predecessor,
};
use kube::{
    ResourceExt,
    api::{DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::replay;

const API: &str = "clusterstack.x-k8s.io/v1alpha1";
const STACK: &str = "harbor";

/// An object with these fields.
fn fields(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Fields of text.
fn texts(names: &[&str]) -> Value {
    let text = |name: &&str| ((*name).to_owned(), json!({ "type": "string" }));
    Value::Object(names.iter().map(text).collect())
}

/// What the Go operator has in both of its kinds: a reference and conditions.
fn shared_fields() -> (Value, Value) {
    let of_reference = [
        "apiVersion",
        "fieldPath",
        "kind",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    let mut reference = fields(&texts(&of_reference), &[]);
    reference["x-kubernetes-map-type"] = json!("atomic");
    let mut condition = texts(&["type", "status", "severity", "reason", "message"]);
    condition["lastTransitionTime"] = json!({ "type": "string", "format": "date-time" });
    let conditions = list(&fields(&condition, &["lastTransitionTime", "status", "type"]));
    (reference, conditions)
}

/// The CRDs of the Go operator: its fields, its rules for them, and no others.
pub(crate) fn definitions_of_the_predecessor() -> Vec<Value> {
    let (text, yes) = (|| json!({ "type": "string" }), || json!({ "type": "boolean" }));
    let (reference, conditions) = shared_fields();
    let or = |schema: Value, default: Value| {
        let mut schema = schema;
        schema["default"] = default;
        schema
    };
    let stack = json!({
        "provider": { "type": "string", "minLength": 1 }, "name": { "type": "string", "minLength": 1 },
        "kubernetesVersion": { "type": "string", "pattern": r"^\d\.\d+$" },
        "channel": { "type": "string", "default": "stable", "enum": ["stable", "custom"] },
        "versions": list(&text()), "autoSubscribe": or(yes(), json!(true)), "noProvider": or(yes(), json!(false)),
        "providerRef": reference,
    });
    let summary = json!({ "name": text(), "ready": yes(), "phase": text(), "message": text() });
    let stack_status = json!({
        "latestRelease": text(), "usableVersions": text(), "conditions": conditions,
        "summary": list(&fields(&summary, &["name", "phase", "ready"])),
    });
    let row = texts(&["group", "version", "kind", "namespace", "name", "status", "error"]);
    let release_status = json!({
        "resources": list(&fields(&row, &[])), "kubernetesVersion": text(), "ready": or(yes(), json!(false)),
        "conditions": conditions,
    });
    let stack = fields(&stack, &["kubernetesVersion", "name", "provider"]);
    let release = fields(&json!({ "providerRef": reference }), &[]);
    vec![
        definition("ClusterStack", "csk", &stack, &fields(&stack_status, &[])),
        definition("ClusterStackRelease", "cskr", &release, &fields(&release_status, &[])),
    ]
}

fn definition(kind: &str, short: &str, spec: &Value, status: &Value) -> Value {
    let singular = kind.to_lowercase();
    let text = json!({ "type": "string" });
    let schema =
        json!({ "apiVersion": text, "kind": text, "metadata": { "type": "object" }, "spec": spec, "status": status });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{singular}s.clusterstack.x-k8s.io") },
        "spec": {
            "group": "clusterstack.x-k8s.io", "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": format!("{singular}s"), "singular": singular,
                "shortNames": [short],
            },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": fields(&schema, &[]) },
            }],
        },
    })
}

/// What of an object a schema has fields for, without what is as good as absent.
fn known(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let properties = schema.get("properties");
            let kept = object.iter().filter_map(|(name, below)| {
                let schema = match properties {
                    Some(properties) => properties.get(name)?,
                    None => &Value::Null,
                };
                let below = known(below, schema);
                let empty = [json!(null), json!(""), json!(false), json!([]), json!({})].contains(&below);
                (!empty).then(|| (name.clone(), below))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(|item| known(item, &schema["items"])).collect(),
        other => other.clone(),
    }
}

/// Spec and status of an object as the Go operator has to see them: its fields with our values.
fn contract(kind: &str, object: &Value) -> Result<Value> {
    let definitions = definitions_of_the_predecessor();
    let of_kind = definitions
        .iter()
        .find(|definition| definition["spec"]["names"]["kind"] == kind);
    let schema = &of_kind.context("another kind")?["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut known = known(object, schema);
    if let Some(known) = known.as_object_mut() {
        known.retain(|part, _| part == "spec" || part == "status");
    }
    Ok(known)
}

/// The stack and its releases as they are stored.
async fn stored(journey: &Journey, tags: &[String]) -> Result<BTreeMap<String, DynamicObject>> {
    let mut stored = BTreeMap::from([(
        "ClusterStack".to_owned(),
        journey.objects(API, "ClusterStack").get(STACK).await?,
    )]);
    for tag in tags {
        let release = journey.objects(API, "ClusterStackRelease").get(tag).await?;
        stored.insert(format!("ClusterStackRelease {tag}"), release);
    }
    Ok(stored)
}

/// The Go operator looks at every object and writes a condition into it: it sees what is stored, and changes nothing else.
async fn the_predecessor_comes(journey: &Journey, tags: &[String]) -> Result<()> {
    for (name, object) in stored(journey, tags).await? {
        let kind = name.split(' ').next().unwrap_or_default();
        let seen = seen_by_the_predecessor(journey, kind, &object.name_any()).await;
        let seen = seen.with_context(|| format!("the Go operator cannot read or write {name}"))?;
        assert_eq!(
            contract(kind, &seen)?,
            contract(kind, &serde_json::to_value(&object)?)?,
            "{name}"
        );
        let after = journey.objects(API, kind).get(&object.name_any()).await?;
        let applied = after.data.pointer("/status/conditions").and_then(Value::as_array);
        let applied = applied
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "HelmChartApplied");
        ensure!(
            applied.is_some_and(|condition| condition["status"] == "True"),
            "{after:#?}"
        );
        assert_eq!(after.finalizers(), object.finalizers());
        let (mut before, mut after) = (object.data.clone(), after.data.clone());
        for object in [&mut before, &mut after] {
            object["status"]
                .as_object_mut()
                .map(|status| status.remove("conditions"));
        }
        assert_eq!(after, before, "{name} lost something");
    }
    Ok(())
}

#[test]
fn the_go_operator_reads_and_writes_our_objects_with_either_crds_and_we_go_on_afterwards() -> Result<()> {
    journey(async |here| {
        here.elsewhere(async |journey| {
            let tags = [
                journey.releases.publish_harbor("v1", "v1")?,
                journey.releases.publish_harbor("v2", "v2")?,
            ];
            let leaked = journey.releases.publish_harbor("v3", "v3")?;
            applied_by_the_predecessor(journey, &leaked).await?;
            journey.operate().await?;
            let spec =
                json!({ "versions": ["v1", "v2", "v9"], "drift": "Warn", "interval": "10m", "pruneLimit": "10%" });
            journey.stack(STACK, spec).await?;
            journey.usable(STACK, "v1, v2").await?;
            let whole = |stack: &ClusterStack| stack.status.as_ref().is_some_and(|status| status.orphans.is_some());
            journey.until_stack(STACK, "tells of what is left", whole).await?;
            let mut inventory = BTreeMap::new();
            for tag in &tags {
                journey.release_ready(tag).await?;
                inventory.extend(journey.inventory(tag).await?);
            }
            journey.kill_operator().await?;
            // What it does not know must be there, or nothing is shown here.
            for (name, object) in stored(journey, &tags).await? {
                let object = serde_json::to_value(&object)?;
                ensure!(
                    object.pointer("/status/observedGeneration").is_some(),
                    "{name}: {object:#}"
                );
                let finalizers = object.pointer("/metadata/finalizers");
                ensure!(
                    finalizers.is_none_or(|names| names == &json!([labels::RELEASE_FINALIZER])),
                    "{name}: nobody would remove {finalizers:?}"
                );
            }
            the_predecessor_comes(journey, &tags).await?;

            definitions::install(&journey.client, &definitions_of_the_predecessor()).await?;
            for (name, object) in pruned(journey, &tags).await? {
                let api = journey.objects(API, name.split(' ').next().unwrap_or_default());
                let params = PostParams::default();
                let object = api.replace(&object.name_any(), &params, &object).await;
                let object = object.with_context(|| format!("the CRDs of the Go operator refuse {name}"))?;
                let stored = api.replace_status(&object.name_any(), &params, &object).await;
                stored.with_context(|| format!("the CRDs of the Go operator refuse the status of {name}"))?;
            }
            the_predecessor_comes(journey, &tags).await?;

            definitions::install(&journey.client, &definitions::ours()?).await?;
            let again = journey.mark().await?;
            journey.operate().await?;
            journey.usable(STACK, "v1, v2").await?;
            for tag in &tags {
                let ours = |release: &ClusterStackRelease| {
                    let rows = status(release).resources;
                    status(release).ready && !rows.is_empty() && rows.iter().all(|row| !row.digest.is_empty())
                };
                journey.until_release(tag, "ours again", ours).await?;
                for (name, now) in journey.inventory(tag).await? {
                    let (before, now) = (
                        inventory[&name].as_ref(),
                        now.with_context(|| format!("{name} is gone"))?,
                    );
                    assert_eq!(now.uid(), before.and_then(ResourceExt::uid), "{name}");
                }
            }
            let deleted = journey
                .requests_since(again)
                .await?
                .filter(|event| event.verb == "delete");
            ensure!(deleted.is_empty(), "{deleted:#?}");
            replay::every_decision_again(&journey.decisions())
        })
        .await
    })
}

/// The objects once the API server has heard of the other CRDs: it takes a moment until what they lack is dropped.
async fn pruned(journey: &Journey, tags: &[String]) -> Result<BTreeMap<String, DynamicObject>> {
    eventually(SOON, "our additional fields to be gone", async || {
        let stored = stored(journey, tags).await?;
        for (name, object) in &stored {
            let status = &object.data["status"];
            ensure!(status.get("observedGeneration").is_none(), "{name}: {status:#}");
        }
        Ok(stored)
    })
    .await
}
