//! The CRDs that tests install: ours, and those of the projects that cluster stacks are made of.
//!
//! The latter are taken as their own modules publish them and made fit for an API server on which their managers do not
//! run. Fetches nothing: the set-up put the files where [`Lab`] says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crds::{
    manifests::{custom_resource_definitions, provider_definitions},
    providers::DEFINITIONS,
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Lab, eventually};

/// The folder of [`Lab::crds`] with the core of Cluster API and kubeadm's providers.
const CLUSTER_API: &str = "cluster-api";
/// The groups of the latter.
const OF_KUBEADM: [&str; 2] = ["bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"];
/// The folders that [`foreign`] reads: this one, two infrastructure providers, the resource controller that one of them leans on.
const PROJECTS: [&str; 4] = [
    CLUSTER_API,
    "cluster-api-docker",
    "cluster-api-openstack",
    "openstack-resource-controller",
];
/// The release of the resource controller that can be had is older than fields that stacks set: its schema says nothing
/// of them, and the API server would drop them.
const LOOSENED: &str = "images.openstack.k-orc.cloud";
/// Cluster API finds the served version of a provider's kind by a label named after its own version.
const CONTRACT: &str = "cluster.x-k8s.io/v1beta1";
const CONTRACT_VERSION: &str = "v1beta1";

const INSTALL_DEADLINE: Duration = Duration::from_mins(1);
/// More only queue up inside of the API server.
const CONCURRENT_INSTALLS: usize = 8;

/// Our own and all the others.
pub fn all(lab: &Lab) -> Result<Vec<Value>> {
    Ok([ours()?, foreign(lab)?].concat())
}

/// Our own, with those of our providers.
pub fn ours() -> Result<Vec<Value>> {
    let of_providers = DEFINITIONS.map(|definition| provider_definitions(definition.provider));
    let definitions = custom_resource_definitions().into_iter();
    definitions
        .chain(of_providers.into_iter().flatten())
        .map(|definition| serde_json::to_value(definition).context("failed to write a CRD"))
        .collect()
}

/// Those of all the other projects. Each keeps the one version in which objects are stored, so that none needs the conversion
/// webhook of its manager.
pub fn foreign(lab: &Lab) -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for project in PROJECTS {
        definitions.extend(of_project(lab, project)?);
    }
    Ok(definitions)
}

/// Our own and those of Cluster API's core: what there is where every provider of Cluster API is played.
pub fn without_providers(lab: &Lab) -> Result<Vec<Value>> {
    let mut definitions = of_project(lab, CLUSTER_API)?;
    definitions.retain(|definition| {
        let group = definition["spec"]["group"].as_str().unwrap_or_default();
        !OF_KUBEADM.contains(&group)
    });
    Ok([ours()?, definitions].concat())
}

/// Those of cert-manager, which nothing needs that runs here.
pub fn cert_manager(lab: &Lab) -> Result<Vec<Value>> {
    of_project(lab, "cert-manager")
}

fn of_project(lab: &Lab, project: &str) -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    let folder = lab.crds.get(project).with_context(|| {
        format!("the description of the lab names no CRDs of {project}: run `cargo xtask setup` again")
    })?;
    let files = yaml_files(folder)?;
    ensure!(
        !files.is_empty(),
        "{} holds no YAML: run `cargo xtask setup` again",
        folder.display()
    );
    for file in files {
        for definition in documents(&file)? {
            if definition["kind"] == "CustomResourceDefinition" {
                definitions.push(adapt(definition).with_context(|| format!("unable to use {}", file.display()))?);
            }
        }
    }
    Ok(definitions)
}

/// Every document of a YAML file that the set-up has made, which never changes: it is read once, not for each of the control planes of a process.
pub(crate) fn documents(file: &Path) -> Result<Vec<Value>> {
    static READ: Mutex<BTreeMap<PathBuf, Vec<Value>>> = Mutex::new(BTreeMap::new());
    let known = READ.lock().unwrap_or_else(PoisonError::into_inner).get(file).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let text = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
    let documents: Vec<Value> = serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).with_context(|| format!("unable to read {}", file.display())))
        .filter(|document| !document.as_ref().is_ok_and(Value::is_null))
        .collect::<Result<_>>()?;
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.insert(file.to_owned(), documents.clone());
    Ok(documents)
}

/// Every YAML file below `folder`, sorted by path.
pub(crate) fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))? {
            let path = entry
                .with_context(|| format!("failed to list {}", folder.display()))?
                .path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn adapt(mut definition: Value) -> Result<Value> {
    let name = definition["metadata"]["name"]
        .as_str()
        .context("it has no name")?
        .to_owned();
    let versions = definition["spec"]["versions"]
        .as_array_mut()
        .context("it has no versions")?;
    versions.retain(|version| version["storage"] == true);
    let [version] = versions.as_mut_slice() else {
        bail!("it has {} versions to store", versions.len())
    };
    if name == LOOSENED {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] =
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    }
    let fulfils_contract = version["name"] == CONTRACT_VERSION && name.ends_with("cluster.x-k8s.io");
    let spec = definition["spec"].as_object_mut().context("its spec is no object")?;
    spec.remove("conversion");
    let metadata = definition["metadata"]
        .as_object_mut()
        .context("its metadata is no object")?;
    let labels = metadata.entry("labels").or_insert_with(|| Map::new().into());
    labels["clusterctl.cluster.x-k8s.io"] = "".into();
    if fulfils_contract {
        labels[CONTRACT] = CONTRACT_VERSION.into();
    }
    Ok(definition)
}

/// Applies CRDs and returns when the API server serves every one of them, and says so to whoever asks which kinds there are.
pub async fn install(client: &Client, definitions: &[Value]) -> Result<()> {
    let installs = definitions.iter().map(|definition| install_one(client, definition));
    stream::iter(installs)
        .buffer_unordered(CONCURRENT_INSTALLS)
        .try_collect::<()>()
        .await?;
    are_told(client, definitions).await
}

/// Returns when the API server serves what these CRDs define, which it has, and says so.
pub(crate) async fn are_served(client: &Client, definitions: &[Value]) -> Result<()> {
    let looks = definitions.iter().map(|definition| is_served(client, definition));
    stream::iter(looks)
        .buffer_unordered(CONCURRENT_INSTALLS)
        .try_collect::<()>()
        .await?;
    are_told(client, definitions).await
}

async fn are_told(client: &Client, definitions: &[Value]) -> Result<()> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for definition in definitions {
        let kind = kind_of(definition)?;
        versions.entry(kind.api_version).or_default().insert(kind.plural);
    }
    for (version, plurals) in versions {
        // It is told later than it is served, and a manager that does not find a kind when it starts ends.
        eventually(INSTALL_DEADLINE, format!("{version} to be told"), async || {
            let told = client.list_api_group_resources(&version).await?.resources;
            let is_missing = |plural: &&String| !told.iter().any(|resource| resource.name == **plural);
            match plurals.iter().find(is_missing) {
                None => Ok(()),
                Some(plural) => Err(anyhow!("nobody is told of {plural}")),
            }
        })
        .await?;
    }
    Ok(())
}

async fn install_one(client: &Client, definition: &Value) -> Result<()> {
    let object = DynamicObject::deserialize(definition).context("a CRD is no object")?;
    let name = object.name_any();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()));
    api.patch(&name, &PatchParams::apply("e2e").force(), &Patch::Apply(&object))
        .await
        .with_context(|| format!("failed to install the CRD {name}"))?;
    is_served(client, definition).await
}

async fn is_served(client: &Client, definition: &Value) -> Result<()> {
    let kind = kind_of(definition)?;
    let objects = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let what = format!("objects of the CRD {}.{} to be served", kind.plural, kind.group);
    eventually(INSTALL_DEADLINE, &what, async || {
        // "Established" comes a moment too early: until its cache is filled, lists are still turned away.
        match objects.list(&ListParams::default()).await {
            // It is served, and whoever converts what was stored before is still to come.
            Err(kube::Error::Api(status)) if status.message.contains("conversion webhook") => Ok(()),
            listed => listed.map(drop),
        }
    })
    .await
}

/// The kind that a CRD defines, in the version in which objects are stored: no conversion comes between.
fn kind_of(definition: &Value) -> Result<ApiResource> {
    let name = &definition["metadata"]["name"];
    let text = |path: &str| {
        let value = definition.pointer(path).and_then(Value::as_str);
        value
            .map(str::to_owned)
            .with_context(|| format!("the CRD {name} has no {path}"))
    };
    let versions = definition["spec"]["versions"].as_array();
    let stored = versions
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true);
    let version = stored.and_then(|version| version["name"].as_str());
    let version = version
        .with_context(|| format!("the CRD {name} stores no version"))?
        .to_owned();
    let group = text("/spec/group")?;
    Ok(ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        kind: text("/spec/names/kind")?,
        plural: text("/spec/names/plural")?,
    })
}
