//! What an API server has to know of a manager on this machine: its CRDs with their conversion, and its webhooks.
//!
//! A release of Cluster API makes this from the folder `config` of a module with kustomize and cert-manager, for a manager behind a Service. Here
//! it is made from the same folder for a manager on a port of loopback.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::{
    definitions::{documents, yaml_files},
    webhooks::Certificates,
};

/// By this label clusterctl finds what belongs to a provider.
const CLUSTERCTL: &str = "clusterctl.cluster.x-k8s.io";
const PROVIDER: &str = "cluster.x-k8s.io/provider";

/// Where the manager serves, and by which certificates.
pub(super) struct Serving<'a> {
    pub(super) certificates: &'a Certificates,
    pub(super) port: u16,
}

/// The objects of one provider.
#[derive(Debug)]
pub(super) struct Manifests {
    pub(super) definitions: Vec<Value>,
    /// Configurations of webhooks of both kinds.
    pub(super) webhooks: Vec<Value>,
}

impl Manifests {
    /// Reads the folder of a provider that calls itself so.
    pub(super) fn read(config: &Path, provider: &str, serving: &Serving<'_>) -> Result<Self> {
        let labels = labels(&config.join("crd/kustomization.yaml"), provider)?;
        let mut definitions = Vec::new();
        for file in yaml_files(&config.join("crd/bases"))? {
            for definition in documents(&file)? {
                definitions.push(
                    define(definition, &labels, serving)
                        .with_context(|| format!("unable to use {}", file.display()))?,
                );
            }
        }
        ensure!(!definitions.is_empty(), "{} has no CRDs", config.display());
        let file = config.join("webhook/manifests.yaml");
        let webhooks = documents(&file)?.into_iter().map(|configuration| {
            configure(configuration, provider, &labels, serving)
                .with_context(|| format!("unable to use {}", file.display()))
        });
        Ok(Self {
            webhooks: webhooks.collect::<Result<_>>()?,
            definitions,
        })
    }
}

/// What the kustomization sets on every CRD, among it the versions of the contract: without these, Cluster API finds no version of a provider's
/// kind.
fn labels(kustomization: &Path, provider: &str) -> Result<Map<String, Value>> {
    let kustomization = documents(kustomization)?.pop().unwrap_or_default();
    let mut labels = Map::from_iter([
        (PROVIDER.to_owned(), provider.into()),
        (CLUSTERCTL.to_owned(), "".into()),
    ]);
    let lists = kustomization["labels"].as_array().into_iter().flatten();
    let pairs = lists
        .map(|entry| &entry["pairs"])
        .chain([&kustomization["commonLabels"]]);
    for (name, value) in pairs.filter_map(Value::as_object).flatten() {
        labels.insert(name.clone(), value.clone());
    }
    Ok(labels)
}

/// Conversion is set where there is something to convert.
fn define(mut definition: Value, labels: &Map<String, Value>, serving: &Serving<'_>) -> Result<Value> {
    let metadata = definition["metadata"].as_object_mut().context("it has no metadata")?;
    label(metadata, labels);
    let versions = definition["spec"]["versions"].as_array().map_or(0, Vec::len);
    if versions > 1 {
        definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": serving.certificates.client_config(serving.port, "/convert"),
        } });
    }
    Ok(definition)
}

fn configure(
    mut configuration: Value,
    provider: &str,
    labels: &Map<String, Value>,
    serving: &Serving<'_>,
) -> Result<Value> {
    let metadata = configuration["metadata"]
        .as_object_mut()
        .context("it has no metadata")?;
    let name = metadata.get("name").and_then(Value::as_str).context("it has no name")?;
    // Each provider calls its own the same.
    let name = format!("{provider}-{name}");
    metadata.insert("name".to_owned(), name.into());
    label(metadata, labels);
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        let path = webhook.pointer("/clientConfig/service/path").and_then(Value::as_str);
        let path = path.context("a webhook has no path")?;
        webhook["clientConfig"] = serving.certificates.client_config(serving.port, path);
    }
    Ok(configuration)
}

fn label(metadata: &mut Map<String, Value>, labels: &Map<String, Value>) {
    let present = metadata.entry("labels").or_insert_with(|| Map::new().into());
    for (name, value) in labels {
        present[name] = value.clone();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DEFINITION: &str = "metadata: {name: NAME}\nspec: {versions: [VERSIONS]}\n";

    /// A provider with one CRD of one version and one of two, and a webhook.
    fn config(folder: &Path) -> Result<()> {
        fs::create_dir_all(folder.join("crd/bases"))?;
        fs::create_dir_all(folder.join("webhook"))?;
        let kustomization = "labels: [{pairs: {cluster.x-k8s.io/v1beta2: v1beta2}}]\n\
                             commonLabels: {cluster.x-k8s.io/v1beta1: v1beta1}\n";
        fs::write(folder.join("crd/kustomization.yaml"), kustomization)?;
        for (name, versions) in [("a", "{name: v1}"), ("b", "{name: v1}, {name: v2}")] {
            let text = DEFINITION.replace("NAME", name).replace("VERSIONS", versions);
            fs::write(folder.join(format!("crd/bases/{name}.yaml")), text)?;
        }
        let webhook = "---\nkind: MutatingWebhookConfiguration\nmetadata: {name: mutating}\n\
                       webhooks: [{clientConfig: {service: {path: /mutate}}}]\n";
        fs::write(folder.join("webhook/manifests.yaml"), webhook)?;
        Ok(())
    }

    #[test]
    fn what_a_release_makes_by_kustomize_is_made_for_a_port_of_loopback() -> Result<()> {
        let place = tempfile::tempdir()?;
        config(place.path())?;
        let certificates = Certificates::at(&place.path().join("certificates"))?;
        let serving = Serving {
            certificates: &certificates,
            port: 4711,
        };
        let made = Manifests::read(place.path(), "control-plane-toy", &serving)?;
        let [one, two] = made.definitions.as_slice() else {
            panic!("{made:#?}");
        };
        let labels = json!({
            "cluster.x-k8s.io/provider": "control-plane-toy", "clusterctl.cluster.x-k8s.io": "",
            "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2",
        });
        assert_eq!(
            (&one["metadata"]["labels"], &two["metadata"]["labels"]),
            (&labels, &labels)
        );
        assert_eq!(one["spec"].get("conversion"), None, "one version is not converted");
        let conversion = &two["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!(conversion, &certificates.client_config(4711, "/convert"));
        let webhook = &made.webhooks[0];
        assert_eq!(webhook["metadata"]["name"], "control-plane-toy-mutating");
        assert_eq!(
            webhook["webhooks"][0]["clientConfig"],
            certificates.client_config(4711, "/mutate")
        );
        Ok(())
    }
}
