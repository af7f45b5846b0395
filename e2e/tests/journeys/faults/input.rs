//! Whatever the API server lets in has to be lived with: no object of ours, however odd, ends or blinds the process.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, labels, manifests::custom_resource_definitions};
use e2e::{
    Journey,
    audit::AuditEvent,
    eventually,
    journey::{SOON, status},
};
use futures::{StreamExt, stream};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, PartialObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Map, Value, json};

use crate::journey;

/// How many requests a journey has under way.
const SIDE_BY_SIDE: usize = 16;

/// A value at a place of an object that is else as it should be.
struct Odd {
    /// In the spec or in the status.
    part: &'static str,
    /// A merge patch of that part.
    patch: Value,
}

/// Odd values for every field of a schema; `wrap` puts a field's value where the field is.
fn odd_values(part: &'static str, schema: &Value, wrap: &dyn Fn(Value) -> Value) -> Vec<Odd> {
    let mut found: Vec<Odd> = values_of(schema)
        .into_iter()
        .map(|value| Odd {
            part,
            patch: wrap(value),
        })
        .collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.extend(odd_values(part, property, &|value| wrap(json!({ name: value }))));
    }
    if !schema["items"].is_null() {
        // Beside what an item must have.
        let (item, whole) = (&schema["items"], smallest(&schema["items"]));
        found.extend(odd_values(part, item, &|value| {
            let mut item = whole.clone();
            match (item.as_object_mut(), value) {
                (Some(item), Value::Object(value)) => item.extend(value),
                (_, value) => item = value,
            }
            wrap(json!([item]))
        }));
    }
    found
}

fn values_of(schema: &Value) -> Vec<Value> {
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some("date-time")) => {
            let times = [
                "0000-01-01T00:00:00Z",
                "9999-12-31T23:59:59.999Z",
                "2026-11-21T10:45:08+99:99",
                "2026-11-21T10:45:08x5Z",
            ];
            times.map(Value::from).to_vec()
        }
        (Some("string"), _) => vec![json!("../../\u{0}\n\u{1f6a2}"), json!("x".repeat(20_000))],
        (Some("integer"), _) => vec![json!(i64::MAX), json!(1e30)],
        (Some("boolean"), _) => vec![json!(true)],
        (Some("object"), _) => vec![json!({})],
        (Some("array"), _) => vec![Value::Array(vec![smallest(&schema["items"]); 50])],
        _ => vec![json!(u32::MAX), json!(1e30), json!("0%")],
    }
}

/// The smallest value that a schema allows.
fn smallest(schema: &Value) -> Value {
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (_, Some("date-time")) => json!("2026-11-21T10:45:08Z"),
        (Some("integer"), _) => json!(0),
        (Some("boolean"), _) => json!(false),
        (Some("array"), _) => json!([]),
        (Some("object"), _) => {
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            required
                .map(|name| (name.to_owned(), smallest(&schema["properties"][name])))
                .collect::<Map<_, _>>()
                .into()
        }
        _ => json!(""),
    }
}

/// Odd values for every field of one of our kinds.
fn odd_objects(kind: &str) -> Result<Vec<Odd>> {
    let crds = custom_resource_definitions();
    let crds = crds.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    let crd = crds
        .iter()
        .find(|crd| crd["spec"]["names"]["kind"] == kind)
        .context("a kind of ours")?;
    let properties = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let parts = ["spec", "status"].map(|part| odd_values(part, &properties[part], &|value| value));
    Ok(parts.into_iter().flatten().collect())
}

/// Makes an object with the odd value, paused so that nobody mends it; false when the API server refuses that.
async fn put(api: &Api<DynamicObject>, kind: &str, name: &str, spec: &Value, odd: &Odd) -> Result<bool> {
    let mut object = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": kind,
        "metadata": { "name": name, "annotations": { labels::PAUSED: "" } }, "spec": spec,
    });
    if let ("spec", Some(patch)) = (odd.part, odd.patch.as_object()) {
        object["spec"]
            .as_object_mut()
            .context("a spec is an object")?
            .extend(patch.clone());
    }
    let made = api
        .create(&PostParams::default(), &serde_json::from_value(object)?)
        .await;
    if odd.part == "spec" || made.is_err() {
        return Ok(made.is_ok());
    }
    let patch = json!({ "status": odd.patch });
    let patched = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    if patched.is_err() {
        api.delete(name, &DeleteParams::default()).await?;
    }
    Ok(patched.is_ok())
}

/// Makes an object for every odd value that the API server lets in, and says how many those are.
async fn put_all(journey: &Journey, kind: &str, spec: &Value) -> Result<usize> {
    let api = journey.objects("clusterstack.x-k8s.io/v1alpha1", kind);
    let odd = odd_objects(kind)?;
    let putting = odd.iter().enumerate().map(|(number, odd)| {
        let (api, name) = (&api, format!("docker-odd-1-34-v{number}"));
        async move { put(api, kind, &name, spec, odd).await }
    });
    let put: Vec<Result<bool>> = stream::iter(putting).buffer_unordered(SIDE_BY_SIDE).collect().await;
    let put = put.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(put.into_iter().filter(|put| *put).count())
}

/// Lets the operator do something with every object of a kind.
async fn unpause_all(journey: &Journey, kind: &str) -> Result<()> {
    let api = journey.objects("clusterstack.x-k8s.io/v1alpha1", kind);
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { labels::PAUSED: null } } }));
    let params = PatchParams::default();
    let objects = api.list_metadata(&ListParams::default()).await?;
    let names = objects
        .items
        .iter()
        .filter_map(|object| object.metadata.name.as_deref());
    let patching = names.map(|name| api.patch_metadata(name, &params, &patch));
    let patched: Vec<_> = stream::iter(patching).buffer_unordered(SIDE_BY_SIDE).collect().await;
    patched.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(())
}

/// The operator is the process that was started, and does its work.
async fn works(journey: &mut Journey, version: &str) -> Result<()> {
    let tag = journey.releases.publish_harbor("v1", version)?;
    journey
        .stack(
            &format!("works-{}", version.replace('.', "-")),
            json!({ "channel": "custom", "versions": [version] }),
        )
        .await?;
    journey.release_ready(&tag).await?;
    journey.operator()?.check()
}

#[test]
fn f21_no_value_of_any_field_ends_or_blinds_the_process_and_every_release_can_be_deleted() -> Result<()> {
    journey(async |journey| {
        let stack = json!({
            "provider": "docker", "name": "odd", "kubernetesVersion": "1.34", "autoSubscribe": false, "noProvider": true,
        });
        let stacks = put_all(journey, "ClusterStack", &stack).await?;
        let releases = put_all(journey, "ClusterStackRelease", &json!({})).await?;
        assert!(
            stacks > 40 && releases > 40,
            "only {stacks} stacks and {releases} releases are odd"
        );
        let start = journey.mark().await?;
        journey.operate().await?;
        works(journey, "v0-sha.paused").await?;
        let on_paused = |event: &AuditEvent| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.name.starts_with("docker-odd-"))
        };
        let writes = journey.requests_since(start).await?.writes().filter(on_paused);
        // Each says once that it is paused.
        let mut told = BTreeSet::new();
        for event in writes.iter() {
            let object = event.object.as_ref().context("a write of an object")?;
            assert_eq!((object.subresource.as_str(), event.code), ("status", 200), "{event:#?}");
            assert!(told.insert((&object.resource, &object.name)), "twice: {event:#?}");
        }
        unpause_all(journey, "ClusterStackRelease").await?;
        unpause_all(journey, "ClusterStack").await?;
        works(journey, "v0-sha.unpaused").await?;
        let api = journey.objects("clusterstack.x-k8s.io/v1alpha1", "ClusterStackRelease");
        let odd = |object: &PartialObjectMeta<DynamicObject>| object.name_any().starts_with("docker-odd-");
        let left = async || {
            Ok::<_, kube::Error>(
                api.list_metadata(&ListParams::default())
                    .await?
                    .items
                    .into_iter()
                    .filter(odd),
            )
        };
        for object in left().await? {
            api.delete(&object.name_any(), &DeleteParams::default()).await?;
        }
        eventually(SOON, "the odd releases to be gone", async || {
            let left: Vec<String> = left().await?.map(|object| object.name_any()).collect();
            anyhow::ensure!(left.is_empty(), "{left:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        works(journey, "v0-sha.after").await
    })
}

/// What somebody with rights on our kinds may do to them while they work, one after the other.
fn patches_of_a_stack() -> Vec<Value> {
    vec![
        json!({ "spec": { "noProvider": false } }),
        json!({ "spec": { "noProvider": false, "providerRef": {} } }),
        json!({ "spec": { "noProvider": false, "providerRef": { "kind": "Nothing" } } }),
        json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "a/b/c", "kind": "XTemplate", "name": "x" } } }),
        json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "/", "kind": "Template", "name": "../x" } } }),
        json!({ "spec": { "noProvider": false, "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/b/c", "kind": "X/../YTemplate", "name": "../x",
        } } }),
        json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "v1", "kind": "Secret", "name": "" } } }),
        json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "v1", "kind": "PodTemplate", "name": "none" } } }),
        json!({ "spec": { "noProvider": false, "providerRef": {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "x",
        } } }),
        json!({ "spec": { "noProvider": true, "providerRef": null } }),
        json!({ "spec": { "source": { "directory": { "path": "nowhere" } } } }),
        json!({ "spec": { "source": { "directory": { "path": "" } } } }),
        json!({ "spec": { "source": { "directory": null, "oci": { "repository": "\u{0}" } } } }),
        json!({ "spec": { "source": null } }),
        json!({ "spec": { "versions": ["v1", "v999999999999999999999999999999"] } }),
        json!({ "metadata": { "annotations": { labels::REQUESTED_AT: "x".repeat(100_000) } } }),
        json!({ "metadata": { "finalizers": ["example.com/somebody"] } }),
        json!({ "metadata": { "finalizers": null, "annotations": { labels::REQUESTED_AT: "" } } }),
        json!({ "spec": { "versions": ["v1"] } }),
    ]
}

fn patches_of_a_release() -> Vec<Value> {
    vec![
        json!({ "spec": { "providerRef": { "kind": "Nothing" } } }),
        json!({ "spec": { "providerRef": {} } }),
        json!({ "spec": { "providerRef": {
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/", "kind": "", "name": "../x",
        } } }),
        json!({ "spec": { "providerRef": null, "policy": null, "source": { "directory": { "path": "nowhere" } } } }),
        json!({ "metadata": { "annotations": { labels::CONTAINS_GROUP_KINDS: ",,.,Secret,a.b.c,\n" } } }),
        json!({ "metadata": { "finalizers": ["example.com/somebody"] } }),
        json!({ "metadata": { "finalizers": null } }),
        json!({ "metadata": { "ownerReferences": null } }),
    ]
}

fn statuses_of_a_release() -> Vec<Value> {
    vec![
        json!({ "resources": [{ "kind": "", "name": "" }, { "group": "a", "kind": "B" }] }),
        json!({ "resources": [
            { "version": "v1", "kind": "ConfigMap", "name": "" },
            { "version": "v1", "kind": "ConfigMap", "name": "a/b" },
            { "version": "v1", "kind": "ConfigMap", "name": "../secrets/x" },
            { "version": "v1", "kind": "ConfigMap", "name": "x?watch=true" },
            { "version": "v1", "kind": "ConfigMap", "namespace": "../..", "name": "x" },
            { "version": "v1", "kind": "ConfigMap", "namespace": "kube-system", "name": "extension-apiserver-authentication" },
            { "version": "v1", "kind": "Namespace", "name": "kube-system" },
            { "version": "v9", "kind": "ConfigMap", "name": "x" },
        ] }),
        json!({ "assets": { "digest": "", "source": "" } }),
        json!({ "assets": null, "conditions": null, "resources": null, "observedGeneration": i64::MAX }),
        json!({ "conditions": [{ "type": "", "status": "", "lastTransitionTime": "0000-01-01T00:00:00Z" }] }),
    ]
}

#[test]
fn f21_no_patch_of_a_living_object_ends_the_process() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let first = journey.release_ready(&tag).await?;
        let (stacks, releases) = (journey.api::<ClusterStack>(), journey.api::<ClusterStackRelease>());
        let params = PatchParams::default();
        // Refused by the API server or not: the process has to live.
        for patch in patches_of_a_stack() {
            let _ = stacks.patch("harbor", &params, &Patch::Merge(patch)).await;
        }
        for patch in patches_of_a_release() {
            let _ = releases.patch(&tag, &params, &Patch::Merge(patch)).await;
        }
        for (number, odd) in statuses_of_a_release().into_iter().enumerate() {
            let _ = releases
                .patch_status(&tag, &params, &Patch::Merge(json!({ "status": odd })))
                .await;
            // Looked at before the next one comes.
            let word = format!("after {number}");
            journey.ask_release(&tag, &word).await?;
        }
        works(journey, "v0-sha.works").await?;
        let release = journey.release_ready(&tag).await?;
        assert!(
            release.spec.policy.is_some(),
            "the stack's word came back: {release:#?}"
        );
        assert_eq!(release.metadata.uid, first.metadata.uid);
        assert_eq!(status(&release).resources.len(), 7, "{release:#?}");
        Ok(())
    })
}
