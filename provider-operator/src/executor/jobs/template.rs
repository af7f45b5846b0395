//! The Job of one deed, as a document: one fixed shape, into which users give what a container may use, on which nodes it may run, and for a build what
//! runs in it. Pure: asks nobody, and makes the same of the same.
//!
//! Two containers, one after the other. The first builds: it is the user's, and has neither token nor Secret nor anything of the operator's. The
//! second sends what is at the URL, or what the first has left: it is ours, and has the one Secret that the object names, and a token with which it
//! may patch the status of the one object.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use crds::labels;
use crds::providers::Provider;
use crds::providers::image_options::{Build, JobShape, Resources, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Map, Value, json};

use super::names;
use crate::objects::ObjectId;
use crate::worker::document::{Document, DocumentError, NetworkOfDocument};
use crate::worker::exit;

/// Of what all Jobs of an operator are made.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobOptions {
    /// The image of the second container.
    pub(crate) image: String,
    /// What is mounted for a store, by its name.
    pub(crate) volumes: BTreeMap<String, JobVolume>,
    /// What may be connected to.
    pub(crate) network: NetworkOfDocument,
}

/// A volume that whoever runs the operator has chosen for a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JobVolume {
    /// A claim in the namespace of the object.
    Claim(String),
    /// A directory of the node.
    Host(String),
}

impl FromStr for JobVolume {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once(':') {
            Some(("pvc", claim)) if !claim.is_empty() => Ok(Self::Claim(claim.to_owned())),
            Some(("host", path)) if path.starts_with('/') => Ok(Self::Host(path.to_owned())),
            _ => Err(()),
        }
    }
}

/// What one Job is for.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    /// Whose image.
    pub(crate) object: &'a ObjectId,
    /// What is to be done.
    pub(crate) document: &'a Document,
    /// The Secret that is mounted, and its keys.
    pub(crate) secret: Option<(&'a str, &'a [String])>,
    /// What the second container gets.
    pub(crate) shape: &'a JobShape,
    /// What the first one does, where something is built.
    pub(crate) build: Option<&'a Build>,
}

/// Where the second container finds what it is told.
const PLAN: &str = "/plan";
const IDENTITY: &str = "/identity";
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Where a build leaves its file, and where it is read.
const ARTIFACT: &str = "/artifact";
/// Where stores are.
const STORES: &str = "/stores";
/// Where a container leaves word of its end.
const RESULT: &str = "/dev/termination-log";
/// Nobody in particular.
const USER: i64 = 65532;
/// How long the token is good for, in seconds. The kubelet renews it.
const TOKEN_SECONDS: i64 = 3600;
/// How long the containers may take to end, in seconds.
const GRACE: i64 = 10;
/// How long a Job stays after its end, in seconds, for whoever reads its logs.
const KEPT: i64 = 86_400;
/// Longest time that sending takes, beyond that of a build: a backstop, where nobody watches.
const SENDS: Duration = Duration::from_hours(2);
const SENDS_ALONE: Duration = Duration::from_hours(24);

/// The name of the container that sends.
pub(crate) const WORKER: &str = "worker";
/// The name of the container that builds.
pub(crate) const BUILD: &str = "build";

/// The Job.
///
/// # Errors
/// What it is told does not fit into an annotation.
pub(crate) fn job(asked: &Asked<'_>, options: &JobOptions) -> Result<Value, DocumentError> {
    let Asked {
        object,
        document,
        secret: _,
        shape: _,
        build,
    } = asked;
    let labels = labels_of(object);
    let deadline = build.map_or(SENDS_ALONE, |build| build.deadline().saturating_add(SENDS));
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names::job(object, document.attempt()),
            "namespace": object.namespace,
            "labels": labels,
            "ownerReferences": [names::owner(object)],
        },
        "spec": {
            "completions": 1,
            "parallelism": 1,
            // Whether it is tried again, the operator says.
            "backoffLimit": 0,
            "activeDeadlineSeconds": deadline.as_secs(),
            "ttlSecondsAfterFinished": KEPT,
            // Two that send to one record would be in each other's way.
            "podReplacementPolicy": "Failed",
            "podFailurePolicy": { "rules": [
                { "action": "FailJob", "onExitCodes": { "containerName": WORKER, "operator": "In", "values": [exit::WRONG, exit::NO_SOURCE, exit::FORBIDDEN] } },
                { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
            ] },
            "template": {
                "metadata": { "labels": labels, "annotations": { labels::PLAN: document.text()? } },
                "spec": pod(asked, options),
            },
        },
    }))
}

/// By which Jobs and their Pods are found.
fn labels_of(object: &ObjectId) -> Value {
    json!({ labels::JOB_OF: names::label(object), labels::INSTANCE: labels::INSTANCE_OWNED })
}

fn pod(asked: &Asked<'_>, options: &JobOptions) -> Value {
    let Asked {
        object,
        document: _,
        secret: _,
        shape,
        build,
    } = asked;
    let mut pod = json!({
        "restartPolicy": "Never",
        "serviceAccountName": names::access(object),
        // The token is mounted by hand, into the one container that needs it.
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [worker(asked, options)],
        "volumes": volumes(asked, options),
    });
    if let Some(build) = build {
        pod["initContainers"] = json!([builder(build)]);
    }
    let nothing = (&BTreeMap::new(), &Vec::new());
    let (labels, taints) = build.map_or(nothing, |build| (&build.node_selector, &build.tolerations));
    let mut selector = shape.node_selector.clone();
    selector.extend(labels.clone());
    let tolerations: Vec<Value> = shape.tolerations.iter().chain(taints).map(toleration).collect();
    if !selector.is_empty() {
        pod["nodeSelector"] = json!(selector);
    }
    if !tolerations.is_empty() {
        pod["tolerations"] = json!(tolerations);
    }
    pod
}

fn worker(asked: &Asked<'_>, options: &JobOptions) -> Value {
    let mut args = vec![
        "worker".to_owned(),
        format!("--plan={PLAN}/plan.json"),
        format!("--result={RESULT}"),
    ];
    let mut mounts = vec![
        json!({ "name": "plan", "mountPath": PLAN, "readOnly": true }),
        json!({ "name": "token", "mountPath": TOKEN, "readOnly": true }),
    ];
    if asked.secret.is_some() {
        args.push(format!("--identity={IDENTITY}"));
        mounts.push(json!({ "name": "identity", "mountPath": IDENTITY, "readOnly": true }));
    }
    if let Some(build) = asked.build {
        args.push(format!("--artifact={ARTIFACT}/{}", build.artifact));
        mounts.push(json!({ "name": "artifact", "mountPath": ARTIFACT, "readOnly": true }));
    }
    if let Some((name, _)) = store(asked, options) {
        let path = format!("{STORES}/{name}");
        args.push(format!("--filestore={name}={path}"));
        mounts.push(json!({ "name": "store", "mountPath": path }));
    }
    let usual = Resources {
        requests: quantities(&[("cpu", "100m"), ("memory", "64Mi")]),
        limits: quantities(&[("memory", "256Mi")]),
    };
    json!({
        "name": WORKER,
        "image": options.image,
        "command": ["/provider-operator"],
        "args": args,
        "securityContext": confined(true),
        "resources": resources(asked.shape.resources.as_ref().unwrap_or(&usual)),
        "terminationMessagePath": RESULT,
        "volumeMounts": mounts,
    })
}

fn builder(build: &Build) -> Value {
    let Build {
        image,
        command,
        args,
        env,
        artifact: _,
        size_limit: _,
        deadline: _,
        resources: wanted,
        node_selector: _,
        tolerations: _,
    } = build;
    let env: Vec<Value> = env
        .iter()
        .map(|variable| json!({ "name": variable.name, "value": variable.value }))
        .collect();
    let mut container = json!({
        "name": BUILD,
        "image": image,
        // Its file system is its own; nothing of it stays.
        "securityContext": confined(false),
        // The end of its log is what people need.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            { "name": "artifact", "mountPath": ARTIFACT },
            { "name": "scratch", "mountPath": "/tmp" },
        ],
    });
    let mut set = |field: &str, value: Value| {
        if value.as_array().is_some_and(|items| !items.is_empty()) || value.is_object() {
            container[field] = value;
        }
    };
    set("command", json!(command));
    set("args", json!(args));
    set("env", json!(env));
    if let Some(wanted) = wanted {
        set("resources", resources(wanted));
    }
    container
}

fn confined(read_only: bool) -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "readOnlyRootFilesystem": read_only,
    })
}

/// What is mounted as the store that the image is for. A name from a Secret is none of a store.
fn store<'a>(asked: &Asked<'_>, options: &'a JobOptions) -> Option<(&'a String, &'a JobVolume)> {
    let is_store = asked.object.provider == Provider::FileStore;
    options
        .volumes
        .get_key_value(&asked.document.cloud)
        .filter(|_| is_store)
}

fn volumes(asked: &Asked<'_>, options: &JobOptions) -> Vec<Value> {
    let plan = format!("metadata.annotations['{}']", labels::PLAN);
    let mut volumes = vec![
        json!({ "name": "plan", "downwardAPI": { "items": [{ "path": "plan.json", "fieldRef": { "fieldPath": plan } }] } }),
        json!({ "name": "token", "projected": { "sources": [
            { "serviceAccountToken": { "path": "token", "expirationSeconds": TOKEN_SECONDS } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": { "fieldPath": "metadata.namespace" } }] } },
        ] } }),
    ];
    if let Some((name, keys)) = asked.secret {
        let items: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "path": key })).collect();
        // Where it is gone by now, the program says so; a Pod that never begins would not.
        let secret = json!({ "secretName": name, "items": items, "defaultMode": 0o400, "optional": true });
        volumes.push(json!({ "name": "identity", "secret": secret }));
    }
    if let Some(build) = asked.build {
        let limit = &build.size_limit.0;
        volumes.push(json!({ "name": "artifact", "emptyDir": { "sizeLimit": limit } }));
        volumes.push(json!({ "name": "scratch", "emptyDir": { "sizeLimit": limit } }));
    }
    match store(asked, options).map(|(_, volume)| volume) {
        Some(JobVolume::Claim(claim)) => {
            volumes.push(json!({ "name": "store", "persistentVolumeClaim": { "claimName": claim } }));
        }
        Some(JobVolume::Host(path)) => {
            volumes.push(json!({ "name": "store", "hostPath": { "path": path, "type": "Directory" } }));
        }
        None => {}
    }
    volumes
}

fn resources(wanted: &Resources) -> Value {
    let Resources { requests, limits } = wanted;
    let mut resources = Map::new();
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        if !amounts.is_empty() {
            resources.insert(field.to_owned(), json!(amounts));
        }
    }
    Value::Object(resources)
}

fn toleration(toleration: &Toleration) -> Value {
    let Toleration {
        key,
        operator,
        value,
        effect,
        toleration_seconds,
    } = toleration;
    let mut written = Map::new();
    for (field, value) in [
        ("key", key.as_ref().map(|text| json!(text))),
        ("operator", operator.as_ref().map(|text| json!(text))),
        ("value", value.as_ref().map(|text| json!(text))),
        ("effect", effect.as_ref().map(|text| json!(text))),
        ("tolerationSeconds", toleration_seconds.map(|seconds| json!(seconds))),
    ] {
        if let Some(value) = value {
            written.insert(field.to_owned(), value);
        }
    }
    Value::Object(written)
}

fn quantities(amounts: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    let amount = |(name, amount): &(&str, &str)| ((*name).to_owned(), Quantity((*amount).to_owned()));
    amounts.iter().map(amount).collect()
}

#[cfg(test)]
mod tests;
