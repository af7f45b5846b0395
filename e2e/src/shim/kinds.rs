//! The kinds that the shim plays, each with the kind of its templates: small CRDs of our own.
//!
//! They are in the groups in which Cluster API expects providers, and fulfil the versions of the contract that a test asks for.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, api::ApiResource};
use serde_json::{Map, Value, json};

use super::contract::{Contract, fulfilled};
use crate::definitions;

/// A kind of which every cluster has objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Cluster,
    ControlPlane,
    Config,
    Machine,
}

impl Kind {
    pub(super) const ALL: [Self; 4] = [Self::Cluster, Self::ControlPlane, Self::Config, Self::Machine];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "ShimCluster",
            Self::ControlPlane => "ShimControlPlane",
            Self::Config => "ShimConfig",
            Self::Machine => "ShimMachine",
        }
    }

    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Cluster | Self::Machine => "infrastructure.cluster.x-k8s.io",
            Self::ControlPlane => "controlplane.cluster.x-k8s.io",
            Self::Config => "bootstrap.cluster.x-k8s.io",
        }
    }

    pub(super) fn plural(self) -> String {
        plural(self.name())
    }

    /// The name of its CRD.
    pub(super) fn definition(self) -> String {
        format!("{}.{}", self.plural(), self.group())
    }

    /// The schema of its spec: what the contract wants there, and a field of its own that classes set.
    fn spec(self) -> Value {
        let string = json!({ "type": "string" });
        let properties = match self {
            Self::Cluster => {
                let port = json!({ "type": "integer", "format": "int32" });
                let endpoint = json!({ "type": "object", "properties": { "host": string, "port": port } });
                json!({ "region": string, "controlPlaneEndpoint": endpoint })
            }
            Self::ControlPlane => {
                let replicas = json!({ "type": "integer", "format": "int32" });
                json!({ "version": string, "replicas": replicas, "flavor": string })
            }
            Self::Config => json!({ "commands": { "type": "array", "items": string } }),
            Self::Machine => json!({ "flavor": string, "providerID": string, "failureDomain": string }),
        };
        json!({ "type": "object", "properties": properties })
    }

    fn definitions(self, contracts: &[Contract]) -> [Value; 2] {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let object = json!({ "spec": self.spec(), "status": any });
        let template = json!({ "type": "object", "properties": { "metadata": any, "spec": self.spec() } });
        let template = json!({ "spec": { "type": "object", "properties": { "template": template } }, "status": any });
        [
            definition(self.group(), self.name(), &object, contracts),
            definition(self.group(), &format!("{}Template", self.name()), &template, contracts),
        ]
    }
}

/// The CRDs. There is no conversion: in each API version an object has the fields of all.
pub fn definitions(contracts: &[Contract]) -> Vec<Value> {
    let of_all = Kind::ALL.iter().flat_map(|kind| kind.definitions(contracts));
    of_all.collect()
}

fn definition(group: &str, kind: &str, properties: &Value, contracts: &[Contract]) -> Value {
    let newest = contracts.iter().max();
    let versions: Vec<Value> = contracts
        .iter()
        .map(|contract| {
            json!({
                "name": contract.name(), "served": true, "storage": Some(contract) == newest,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
                "subresources": { "status": {} },
            })
        })
        .collect();
    let labels = contracts
        .iter()
        .map(|contract| (contract.label(), contract.name().into()));
    let mut labels: Map<String, Value> = labels.collect();
    // Without it `clusterctl move` leaves the objects where they are.
    labels.insert("clusterctl.cluster.x-k8s.io".to_owned(), "".into());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{group}", plural(kind)), "labels": labels },
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural(kind), "singular": kind.to_lowercase() },
        },
    })
}

/// As Cluster API makes the name of a CRD from that of a kind.
fn plural(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// Installs the CRDs, so that they fulfil these versions of the contract, and returns when the API server serves them.
pub async fn install(client: &Client, contracts: &[Contract]) -> Result<()> {
    definitions::install(client, &definitions(contracts)).await
}

/// How an API server serves a kind, and by which versions of the contract its objects are read.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) resource: ApiResource,
    pub(super) contracts: Vec<Contract>,
}

/// Asks for the labels of the CRDs.
pub(super) async fn served(client: &Client) -> Result<BTreeMap<Kind, Served>> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut served = BTreeMap::new();
    for kind in Kind::ALL {
        let name = kind.definition();
        let definition = definitions.get(&name).await;
        let definition = definition.with_context(|| format!("no CRD {name}: install the kinds of the shim first"))?;
        let fulfilled = fulfilled(&definition.metadata.labels.unwrap_or_default());
        ensure!(!fulfilled.is_empty(), "the CRD {name} has no label of a contract");
        let version = fulfilled.values().next_back().cloned().unwrap_or_default();
        let resource = ApiResource {
            group: kind.group().to_owned(),
            api_version: format!("{}/{version}", kind.group()),
            version,
            kind: kind.name().to_owned(),
            plural: kind.plural(),
        };
        let contracts = fulfilled.into_keys().collect();
        served.insert(kind, Served { resource, contracts });
    }
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_templates_and_says_what_it_fulfils() {
        let all = definitions(&Contract::ALL);
        let names: Vec<_> = all
            .iter()
            .map(|definition| definition["metadata"]["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(
            names,
            [
                "shimclusters.infrastructure.cluster.x-k8s.io",
                "shimclustertemplates.infrastructure.cluster.x-k8s.io",
                "shimcontrolplanes.controlplane.cluster.x-k8s.io",
                "shimcontrolplanetemplates.controlplane.cluster.x-k8s.io",
                "shimconfigs.bootstrap.cluster.x-k8s.io",
                "shimconfigtemplates.bootstrap.cluster.x-k8s.io",
                "shimmachines.infrastructure.cluster.x-k8s.io",
                "shimmachinetemplates.infrastructure.cluster.x-k8s.io",
            ]
        );
        for definition in &all {
            let labels = &definition["metadata"]["labels"];
            assert_eq!(labels["cluster.x-k8s.io/v1beta1"], "v1beta1", "{definition}");
            assert_eq!(labels["cluster.x-k8s.io/v1beta2"], "v1beta2", "{definition}");
            let stored = |version: &&Value| version["storage"] == true;
            let stored: Vec<_> = definition["spec"]["versions"]
                .as_array()
                .expect("versions")
                .iter()
                .filter(stored)
                .collect();
            assert_eq!(stored.len(), 1, "{definition}");
            assert_eq!(stored[0]["name"], "v1beta2", "{definition}");
        }
    }

    #[test]
    fn a_kind_that_fulfils_one_version_serves_that_alone() {
        for definition in definitions(&[Contract::V1Beta1]) {
            assert_eq!(
                definition["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"],
                Value::Null
            );
            let versions = definition["spec"]["versions"].as_array().expect("versions");
            assert_eq!(versions.len(), 1);
            assert_eq!(
                (&versions[0]["name"], &versions[0]["storage"]),
                (&json!("v1beta1"), &json!(true))
            );
        }
    }
}
