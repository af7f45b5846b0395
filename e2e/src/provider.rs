//! A provider of releases for journeys that are compared: its kinds, its template, and what its controller would report.

pub mod stand_in;

use anyhow::{Context, Result, ensure};
use crds::PROVIDER_GROUP;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Journey, eventually, journey::SOON};

/// The kind of the objects that it has for each release. It is there for the whole control plane, and the same in all journeys.
pub const KIND: &str = "StormClusterStackRelease";
/// Group and version of its kinds.
pub const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1";
const TEMPLATE: &str = "images";

/// Installs the kinds.
pub async fn install(journey: &Journey) -> Result<()> {
    for kind in [KIND.to_owned(), format!("{KIND}Template")] {
        let plural = format!("{}s", kind.to_lowercase());
        let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{plural}.{PROVIDER_GROUP}") },
            "spec": {
                "group": PROVIDER_GROUP, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": {
                        "type": "object", "properties": { "spec": anything, "status": anything },
                    } },
                }],
            },
        });
        journey.apply_for_all(definition).await?;
    }
    Ok(())
}

/// What a ClusterStack refers to.
pub fn reference() -> Value {
    json!({ "apiVersion": API_VERSION, "kind": format!("{KIND}Template"), "name": TEMPLATE })
}

/// Applies the template; right after the kind, the API server may not serve it yet.
pub async fn template(journey: &Journey, size: &str) -> Result<()> {
    let template = json!({
        "apiVersion": API_VERSION, "kind": format!("{KIND}Template"), "metadata": { "name": TEMPLATE },
        "spec": { "template": { "spec": { "size": size } } },
    });
    let applied = eventually(SOON, "the template's kind to be served", async || {
        let applied = journey.apply(template.clone()).await;
        applied.map_err(|error| format!("{error:#}"))
    });
    applied.await.map(drop)
}

/// Reports, as its controller would, once it is told to make something of this size.
pub async fn reports(journey: &Journey, tag: &str, (size, ready): (&str, bool)) -> Result<()> {
    let objects = journey.objects(API_VERSION, KIND);
    eventually(SOON, format!("the provider to be told of {size}"), async || {
        let object = objects.get(tag).await?;
        ensure!(
            object.data["spec"]["size"] == size,
            "it is told {}",
            object.data["spec"]
        );
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    let report = Patch::Merge(json!({ "status": { "ready": ready } }));
    let reported = objects.patch_status(tag, &PatchParams::default(), &report).await;
    reported.map(drop).context("failed to report")
}
