//! What people install, as a real API server takes it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::{Journey, built::Program, definitions, journey::journey};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, TypeMeta, ValidationDirective},
    core::GroupVersionKind,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// What the command prints for a namespace, in its order.
fn printed(namespace: &str, parts: &[&str]) -> Result<Vec<DynamicObject>> {
    let mut command = Command::new(Program::KubectlStacks.path()?);
    let command = command.arg("manifests").args(parts).args(["--namespace", namespace]);
    let output = command.output().context("failed to start the command")?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let documents = serde_yaml::Deserializer::from_str(&text).map(DynamicObject::deserialize);
    Ok(documents.collect::<Result<_, _>>()?)
}

/// Applies an object, which the API server refuses where it has a field that its kind does not.
async fn apply(journey: &Journey, object: &DynamicObject) -> Result<DynamicObject> {
    let TypeMeta { api_version, kind } = object.types.clone().context("an object has a kind")?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(journey.client.clone(), &namespace, &resource),
        None => Api::all_with(journey.client.clone(), &resource),
    };
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("e2e").force()
    };
    let name = object.name_any();
    let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
    applied.with_context(|| format!("failed to apply {kind} {name}"))
}

#[test]
fn f40_everything_that_is_installed_is_taken_by_an_api_server_in_any_namespace() -> Result<()> {
    // The webhooks of this one would be asked about the Clusters of others.
    journey(async |here| {
        here.elsewhere(async |journey| {
            definitions::install(&journey.client, &definitions::cert_manager(journey.lab())?).await?;
            let manifests = printed(&journey.namespace, &["crds", "roles", "certificates", "webhooks"])?;
            let mut kinds: Vec<_> = Vec::new();
            for manifest in &manifests {
                let taken = apply(journey, manifest).await?;
                let namespace = taken.namespace();
                ensure!(
                    namespace.is_none_or(|namespace| namespace == journey.namespace),
                    "{taken:#?}"
                );
                kinds.extend(manifest.types.as_ref().map(|types| types.kind.as_str()));
                // The API server adds what is usual, and keeps what was written.
                if let (Value::Object(sent), Value::Object(kept)) = (&manifest.data["spec"], &taken.data["spec"]) {
                    let lost: Vec<_> = sent.keys().filter(|key| !kept.contains_key(*key)).collect();
                    ensure!(lost.is_empty(), "{lost:?} of {taken:#?}");
                }
            }
            for kind in [
                "CustomResourceDefinition",
                "ClusterRole",
                "Issuer",
                "Certificate",
                "Service",
            ] {
                ensure!(kinds.contains(&kind), "no {kind} in {kinds:?}");
            }
            let certificate = manifests.iter().find(|manifest| {
                let kind = manifest.types.as_ref().map(|types| types.kind.as_str());
                kind == Some("Certificate")
            });
            let mut mistaken = certificate.context("a certificate")?.clone();
            mistaken.data["spec"]["dnsName"] = json!("fleet.svc");
            let refused = apply(journey, &mistaken).await;
            ensure!(
                refused.is_err(),
                "cert-manager's own definition does not decide: {refused:?}"
            );
            Ok(())
        })
        .await
    })
}
