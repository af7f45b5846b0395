//! What an API server stores, in memory: objects with versions, generations, finalizers, dependents, and everything that happened to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::apply;

/// A kind that is served.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
}

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Served {
    Served {
        group,
        version,
        kind,
        plural,
        namespaced: true,
    }
}

const OURS: &str = "clusterstack.x-k8s.io";
const PROVIDERS: &str = "infrastructure.clusterstack.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// The provider's objects, which are ready as soon as they are there.
pub(super) const PROVIDER_KIND: &str = "DockerClusterStackRelease";

/// Everything that is served.
pub(super) static KINDS: [Served; 13] = [
    Served {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        namespaced: false,
    },
    Served {
        group: "",
        version: "v1",
        kind: "Namespace",
        plural: "namespaces",
        namespaced: false,
    },
    kind("events.k8s.io", "v1", "Event", "events"),
    kind(OURS, "v1alpha1", "ClusterStack", "clusterstacks"),
    kind(OURS, "v1alpha1", "ClusterStackRelease", "clusterstackreleases"),
    kind(PROVIDERS, "v1", PROVIDER_KIND, "dockerclusterstackreleases"),
    kind(
        PROVIDERS,
        "v1",
        "DockerClusterStackReleaseTemplate",
        "dockerclusterstackreleasetemplates",
    ),
    kind("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters"),
    kind("cluster.x-k8s.io", "v1beta1", "ClusterClass", "clusterclasses"),
    kind(
        INFRASTRUCTURE,
        "v1beta1",
        "DockerClusterTemplate",
        "dockerclustertemplates",
    ),
    kind(
        INFRASTRUCTURE,
        "v1beta1",
        "DockerMachineTemplate",
        "dockermachinetemplates",
    ),
    kind(
        "bootstrap.cluster.x-k8s.io",
        "v1beta1",
        "KubeadmConfigTemplate",
        "kubeadmconfigtemplates",
    ),
    kind(
        "controlplane.cluster.x-k8s.io",
        "v1beta1",
        "KubeadmControlPlaneTemplate",
        "kubeadmcontrolplanetemplates",
    ),
];

/// Kind, namespace, name.
pub(super) type Key = (&'static str, String, String);

/// What happened to an object.
#[derive(Clone)]
pub(super) struct Happened {
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// Why a request was not done: code, reason, message.
#[derive(Clone, Debug)]
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str, pub(super) String);

/// What a write is about.
pub(super) enum Write<'a> {
    /// The whole object but its status.
    Replace(&'a Value),
    /// Its status alone.
    Status(&'a Value),
    /// RFC 7396.
    Merge(&'a Value),
    /// Server-side apply by this manager.
    Apply { manager: &'a str, intent: &'a Value },
}

#[derive(Default)]
pub(super) struct Api {
    pub(super) version: u64,
    pub(super) objects: BTreeMap<Key, Value>,
    pub(super) history: Vec<Happened>,
}

impl Api {
    pub(super) fn get(&self, key: &Key) -> Result<&Value, Refusal> {
        let missing = || Refusal(404, "NotFound", format!("{} {:?} not found", key.0, key.2));
        self.objects.get(key).ok_or_else(missing)
    }

    pub(super) fn create(&mut self, key: &Key, object: &Value) -> Result<Value, Refusal> {
        if self.objects.contains_key(key) {
            return Err(Refusal(409, "AlreadyExists", format!("{:?} already exists", key.2)));
        }
        let mut object = object.clone();
        let version = self.version + 1;
        let metadata = metadata_of(&mut object);
        metadata.insert("name".to_owned(), json!(key.2));
        if !key.1.is_empty() {
            metadata.insert("namespace".to_owned(), json!(key.1));
        }
        metadata.insert("uid".to_owned(), json!(format!("uid-{version}")));
        metadata.insert("generation".to_owned(), json!(1));
        metadata.insert("creationTimestamp".to_owned(), json!("2026-01-01T00:00:00Z"));
        if key.0 == PROVIDER_KIND {
            object["status"] = json!({ "ready": true });
        }
        Ok(self.store(key, Some(object)).unwrap_or_default())
    }

    /// The object afterwards, as it is stored or, in a `dry_run`, as it would be.
    pub(super) fn write(&mut self, key: &Key, write: &Write<'_>, dry_run: bool) -> Result<Value, Refusal> {
        if let Write::Apply { intent, .. } = write
            && let Some(uid) = intent.pointer("/metadata/uid")
            && self.objects.get(key).map(|object| &object["metadata"]["uid"]) != Some(uid)
        {
            return Err(Refusal(409, "Conflict", "the uid in the intent differs".to_owned()));
        }
        let before = match (write, self.objects.get(key)) {
            (Write::Apply { manager, intent }, None) => {
                let object = apply::applied(&Value::Null, intent, manager);
                return if dry_run { Ok(object) } else { self.create(key, &object) };
            }
            _ => self.get(key)?.clone(),
        };
        let sent = match write {
            Write::Replace(object) | Write::Status(object) | Write::Merge(object) => object,
            Write::Apply { intent, .. } => intent,
        };
        let expected = sent.pointer("/metadata/resourceVersion");
        if expected.is_some_and(|expected| expected != &before["metadata"]["resourceVersion"]) {
            return Err(Refusal(409, "Conflict", "the object has been modified".to_owned()));
        }
        let mut after = before.clone();
        match write {
            Write::Replace(object) => {
                after = (*object).clone();
                set_or_remove(&mut after, "status", before.get("status"));
                for field in [
                    "uid",
                    "generation",
                    "creationTimestamp",
                    "deletionTimestamp",
                    "managedFields",
                ] {
                    set_or_remove(&mut after["metadata"], field, before["metadata"].get(field));
                }
            }
            Write::Status(object) => set_or_remove(&mut after, "status", object.get("status")),
            Write::Merge(patch) => merge(&mut after, patch),
            Write::Apply { manager, intent } => after = apply::applied(&before, intent, manager),
        }
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        if after == before || dry_run {
            return Ok(after);
        }
        let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
        if without_generation(&after) != without_generation(&before) {
            after["metadata"]["generation"] = json!(generation + 1);
        }
        if is_released(&after) {
            self.store(key, None);
            return Ok(after);
        }
        Ok(self.store(key, Some(after)).unwrap_or_default())
    }

    /// The object where finalizers keep it.
    pub(super) fn delete(&mut self, key: &Key, preconditions: &Value) -> Result<Option<Value>, Refusal> {
        let mut object = self.get(key)?.clone();
        for field in ["uid", "resourceVersion"] {
            let expected = preconditions.get(field).filter(|expected| !expected.is_null());
            if expected.is_some_and(|expected| *expected != object["metadata"][field]) {
                return Err(Refusal(
                    409,
                    "Conflict",
                    format!("the {field} in the precondition differs"),
                ));
            }
        }
        if !has_finalizers(&object) {
            self.store(key, None);
            return Ok(None);
        }
        if object.pointer("/metadata/deletionTimestamp").is_none() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
            return Ok(self.store(key, Some(object)));
        }
        Ok(Some(object))
    }

    /// Stores the object, or removes it and what depends on it.
    fn store(&mut self, key: &Key, after: Option<Value>) -> Option<Value> {
        self.version += 1;
        let mut after = after;
        if let Some(object) = &mut after {
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        let before = match &after {
            Some(object) => self.objects.insert(key.clone(), object.clone()),
            None => self.objects.remove(key),
        };
        let gone = before.as_ref().filter(|_| after.is_none());
        let uid = gone.map(|object| object["metadata"]["uid"].clone());
        self.history.push(Happened {
            version: self.version,
            key: key.clone(),
            before,
            after: after.clone(),
        });
        if let Some(uid) = uid {
            self.collect(&uid);
        }
        after
    }

    /// The garbage collector.
    fn collect(&mut self, uid: &Value) {
        let depends = |object: &Value| {
            let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == *uid))
        };
        let dependents = self.objects.iter().filter(|(_, object)| depends(object));
        let dependents: Vec<Key> = dependents.map(|(key, _)| key.clone()).collect();
        for key in dependents {
            // It is there.
            let _ = self.delete(&key, &Value::Null);
        }
    }
}

fn metadata_of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"].as_object_mut().expect("it is an object")
}

fn set_or_remove(object: &mut Value, field: &str, value: Option<&Value>) {
    match (value, object.as_object_mut()) {
        (Some(value), _) => object[field] = value.clone(),
        (None, Some(object)) => drop(object.remove(field)),
        (None, None) => {}
    }
}

fn merge(target: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            set_or_remove(target, name, None);
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

/// What counts for the generation.
fn without_generation(object: &Value) -> Value {
    let mut object = object.clone();
    set_or_remove(&mut object, "metadata", None);
    set_or_remove(&mut object, "status", None);
    object
}

fn has_finalizers(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Deleted, and nothing keeps it.
fn is_released(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some() && !has_finalizers(object)
}
