//! Sources on this machine that a benchmark's operator reads releases from.

use std::{ffi::OsString, path::Path};

use anyhow::{Context, Result};
use e2e::{
    github::TOKEN,
    operator::sources_of_this_machine,
    registry::{PASSWORD, Registry, USER},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

/// The Secret with the token for GitHub.
pub(super) const GITHUB_SECRET: &str = "github";
/// The Secret with what the registry wants.
const REGISTRY_SECRET: &str = "registry";
/// The shortest time between polls that a stack may ask for.
pub(super) const OFTEN: &str = "10s";
/// Where the registry has the releases.
pub(super) const REPOSITORY: &str = "kaas/stacks";

/// What lets an operator read from this machine, and keep what it read in a folder of this benchmark.
pub(super) fn flags(folder: &Path) -> Vec<OsString> {
    sources_of_this_machine(&folder.join("cache"))
}

/// Makes the Secret that stacks name for GitHub.
pub(super) async fn add_github_secret(client: &Client, namespace: &str) -> Result<()> {
    add_secret(client, namespace, GITHUB_SECRET, &json!({ "token": TOKEN })).await
}

/// Makes the Secret that stacks name for the registry; what they say of it.
pub(super) async fn add_registry_secret(client: &Client, namespace: &str, registry: &Registry) -> Result<Value> {
    let values = json!({ "username": USER, "password": PASSWORD, "ca.crt": registry.authority()? });
    add_secret(client, namespace, REGISTRY_SECRET, &values).await?;
    let reference = json!({ "name": REGISTRY_SECRET });
    Ok(json!({ "oci": {
        "repository": registry.repository(REPOSITORY),
        "credentialsSecretRef": reference,
        "caSecretRef": reference,
    } }))
}

async fn add_secret(client: &Client, namespace: &str, name: &str, values: &Value) -> Result<()> {
    let secret: Secret = serde_json::from_value(json!({ "metadata": { "name": name }, "stringData": values }))
        .context("unable to read a Secret of our own")?;
    let created = Api::namespaced(client.clone(), namespace)
        .create(&PostParams::default(), &secret)
        .await;
    created
        .map(drop)
        .with_context(|| format!("failed to make the Secret {name}"))
}
