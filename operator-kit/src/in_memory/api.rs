//! What an API server stores, in memory: objects with versions, generations, finalizers, dependents, and everything that happened to them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::apply;

/// A kind that is served.
#[derive(Debug, PartialEq, Eq)]
pub struct Served {
    /// Its group; empty for the core group.
    pub group: &'static str,
    /// The only version that is served.
    pub version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// As addresses have it.
    pub plural: &'static str,
    /// Whether its objects have namespaces.
    pub namespaced: bool,
    /// Whether its objects are ready as soon as they are there, as if somebody looked after them.
    pub ready_at_once: bool,
}

impl Served {
    /// CRDs.
    pub const CRD: Self = Self::of_the_cluster(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    /// Namespaces.
    pub const NAMESPACE: Self = Self::of_the_cluster("", "v1", "Namespace", "namespaces");
    /// `ConfigMap`s.
    pub const CONFIG_MAP: Self = Self::namespaced("", "v1", "ConfigMap", "configmaps");
    /// Secrets.
    pub const SECRET: Self = Self::namespaced("", "v1", "Secret", "secrets");
    /// Service accounts.
    pub const SERVICE_ACCOUNT: Self = Self::namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    /// Events.
    pub const EVENT: Self = Self::namespaced("events.k8s.io", "v1", "Event", "events");

    /// A kind whose objects have namespaces.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            namespaced: true,
            ready_at_once: false,
        }
    }

    /// A kind whose objects have none.
    pub const fn of_the_cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            namespaced: false,
            ..Self::namespaced(group, version, kind, plural)
        }
    }
}

/// What a cluster serves that has add-ons, for tests to which it is all the same; lathes are what a CRD brings.
pub static WORKLOAD: [Served; 8] = [
    Served::CRD,
    Served::NAMESPACE,
    Served::CONFIG_MAP,
    Served::SECRET,
    Served::SERVICE_ACCOUNT,
    Served::EVENT,
    Served::namespaced("apps", "v1", "Deployment", "deployments"),
    Served::namespaced("example.org", "v1", "Lathe", "lathes"),
];

/// Kind, namespace, name.
pub type Key = (&'static str, String, String);

/// What happened to an object.
#[derive(Clone)]
pub(super) struct Happened {
    pub(super) version: u64,
    pub(super) key: Key,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// Why a request was not done.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// What it is about, where that is not the plural that was asked for.
    pub(super) about: Option<&'static str>,
    /// One for each field.
    pub(super) causes: Vec<Value>,
}

impl Refusal {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            about: None,
            causes: Vec::new(),
        }
    }
}

/// What a write is about.
pub enum Write<'a> {
    /// The whole object but its status.
    Replace(&'a Value),
    /// Its status alone.
    Status(&'a Value),
    /// RFC 7396.
    Merge(&'a Value),
    /// Server-side apply by this manager; with force it takes fields from others.
    Apply {
        /// Who applies.
        manager: &'a str,
        /// What.
        intent: &'a Value,
        /// Whether it takes fields from others.
        force: bool,
    },
    /// Who owns its fields, if it is still of this version.
    Owners {
        /// The version.
        version: &'a Value,
        /// The owners.
        entries: &'a Value,
    },
}

/// An apply names the identity of what is not there: there is nothing of that name, or something else.
fn another(kind: &'static str, is_there: bool) -> Refusal {
    if !is_there {
        return Refusal::new(409, "Conflict", "uid mismatch");
    }
    // A real one finds it twice.
    let cause = json!({ "reason": "FieldValueInvalid", "field": "metadata.uid" });
    Refusal {
        about: Some(kind),
        causes: vec![cause.clone(), cause],
        ..Refusal::new(422, "Invalid", "metadata.uid: Invalid value: field is immutable")
    }
}

/// What came before this version nobody can be told any more.
pub(super) const OLDEST: u64 = 100;

pub(super) struct Api {
    kinds: &'static [Served],
    pub(super) version: u64,
    pub(super) objects: BTreeMap<Key, Value>,
    pub(super) history: Vec<Happened>,
    /// Objects that were made, or would have been.
    made: u64,
}

impl Api {
    pub(super) fn of(kinds: &'static [Served]) -> Self {
        Self {
            kinds,
            version: OLDEST,
            objects: BTreeMap::new(),
            history: Vec::new(),
            made: 0,
        }
    }
}

impl Api {
    pub(super) fn get(&self, key: &Key) -> Result<&Value, Refusal> {
        let missing = || Refusal::new(404, "NotFound", format!("{} {:?} not found", key.0, key.2));
        self.objects.get(key).ok_or_else(missing)
    }

    pub(super) fn create(&mut self, key: &Key, object: &Value) -> Result<Value, Refusal> {
        if self.objects.contains_key(key) {
            let message = format!("{:?} already exists", key.2);
            return Err(Refusal::new(409, "AlreadyExists", message));
        }
        let object = self.made(key, object)?;
        Ok(self.store(key, Some(object)).unwrap_or_default())
    }

    /// The object as it is when it has been created, without a version yet.
    fn made(&mut self, key: &Key, object: &Value) -> Result<Value, Refusal> {
        let namespace = ("Namespace", String::new(), key.1.clone());
        if !key.1.is_empty() && !self.objects.contains_key(&namespace) {
            return Err(Refusal {
                about: Some("namespaces"),
                ..Refusal::new(404, "NotFound", format!("namespaces {:?} not found", key.1))
            });
        }
        let mut object = object.clone();
        drop_empty(&mut object);
        self.made += 1;
        let metadata = metadata_of(&mut object);
        metadata.insert("name".to_owned(), json!(key.2));
        if !key.1.is_empty() {
            metadata.insert("namespace".to_owned(), json!(key.1));
        }
        metadata.insert(
            "uid".to_owned(),
            json!(format!("00000000-0000-4000-8000-{:012}", self.made)),
        );
        metadata.insert("generation".to_owned(), json!(1));
        metadata.insert("creationTimestamp".to_owned(), json!("2026-01-01T00:00:00Z"));
        if self
            .kinds
            .iter()
            .any(|served| served.kind == key.0 && served.ready_at_once)
        {
            object["status"] = json!({ "ready": true });
        }
        Ok(object)
    }

    /// The object afterwards, as it is stored or, in a `dry_run`, as it would be.
    pub(super) fn write(&mut self, key: &Key, write: &Write<'_>, dry_run: bool) -> Result<Value, Refusal> {
        if let Write::Apply { intent, .. } = write
            && let Some(uid) = intent.pointer("/metadata/uid")
            && self.objects.get(key).map(|object| &object["metadata"]["uid"]) != Some(uid)
        {
            return Err(another(key.0, self.objects.contains_key(key)));
        }
        let before = match (write, self.objects.get(key)) {
            (Write::Apply { manager, intent, .. }, None) => {
                let object = apply::applied(&Value::Null, intent, manager);
                return if dry_run {
                    self.made(key, &object)
                } else {
                    self.create(key, &object)
                };
            }
            _ => self.get(key)?.clone(),
        };
        refuse(write, &before)?;
        let mut after = before.clone();
        match write {
            Write::Replace(object) => {
                after = (*object).clone();
                set_or_remove(&mut after, "status", before.get("status"));
                for field in [
                    "namespace",
                    "uid",
                    "generation",
                    "creationTimestamp",
                    "deletionTimestamp",
                    "deletionGracePeriodSeconds",
                    "managedFields",
                ] {
                    set_or_remove(&mut after["metadata"], field, before["metadata"].get(field));
                }
            }
            Write::Status(object) => set_or_remove(&mut after, "status", object.get("status")),
            Write::Merge(patch) => {
                merge(&mut after, patch);
                set_or_remove(&mut after, "status", before.get("status"));
            }
            Write::Apply { manager, intent, .. } => after = apply::applied(&before, intent, manager),
            Write::Owners { entries, .. } => after["metadata"]["managedFields"] = (*entries).clone(),
        }
        if !matches!(write, Write::Apply { .. } | Write::Owners { .. }) {
            apply::written_over(&before, &mut after);
        }
        after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
        drop_empty(&mut after);
        if without_generation(&after) != without_generation(&before) {
            raise_generation(&mut after);
        }
        if after == before || dry_run {
            return Ok(after);
        }
        if is_released(&after) {
            self.store(key, None);
            return Ok(after);
        }
        Ok(self.store(key, Some(after)).unwrap_or_default())
    }

    /// The object where finalizers keep it. By its `DeleteOptions`, or none.
    pub(super) fn delete(&mut self, key: &Key, options: &Value) -> Result<Option<Value>, Refusal> {
        let mut object = self.get(key)?.clone();
        for field in ["uid", "resourceVersion"] {
            let expected = options["preconditions"]
                .get(field)
                .filter(|expected| !expected.is_null());
            if expected.is_some_and(|expected| *expected != object["metadata"][field]) {
                let message = format!("the {field} in the precondition differs");
                return Err(Refusal {
                    about: Some(key.0),
                    ..Refusal::new(409, "Conflict", message)
                });
            }
        }
        let is_freed = options["propagationPolicy"] == "Background" && wait_for_no_dependents(&mut object);
        if !has_finalizers(&object) {
            self.store(key, None);
            return Ok(None);
        }
        let is_deleted = object.pointer("/metadata/deletionTimestamp").is_some();
        if !is_deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
            object["metadata"]["deletionGracePeriodSeconds"] = json!(0);
            raise_generation(&mut object);
        }
        if is_deleted && !is_freed {
            return Ok(Some(object));
        }
        Ok(self.store(key, Some(object)))
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

/// Refuses what is about another version of the object than `before`, and what takes fields from others without force.
fn refuse(write: &Write<'_>, before: &Value) -> Result<(), Refusal> {
    let (sent, must_know) = match write {
        Write::Owners { version, .. } if **version == before["metadata"]["resourceVersion"] => return Ok(()),
        Write::Owners { .. } => return Err(Refusal::new(422, "Invalid", "the test of a patch failed")),
        Write::Replace(object) | Write::Status(object) => (object, true),
        Write::Merge(patch) => (patch, false),
        Write::Apply { intent, .. } => (intent, false),
    };
    let known = sent.pointer("/metadata/resourceVersion");
    if must_know && known.is_none() {
        let cause = json!({ "reason": "FieldValueInvalid", "field": "metadata.resourceVersion", "message": "must be specified" });
        return Err(Refusal {
            causes: vec![cause],
            ..Refusal::new(
                422,
                "Invalid",
                "metadata.resourceVersion must be specified for an update",
            )
        });
    }
    if let Write::Apply {
        manager,
        intent,
        force: false,
    } = write
    {
        let causes = apply::conflicts(before, intent, manager);
        if !causes.is_empty() {
            let message = format!("Apply failed with {} conflicts", causes.len());
            return Err(Refusal {
                about: Some(""),
                causes,
                ..Refusal::new(409, "Conflict", message)
            });
        }
    }
    if known.is_some_and(|known| known != &before["metadata"]["resourceVersion"]) {
        return Err(Refusal::new(409, "Conflict", "the object has been modified"));
    }
    Ok(())
}

/// Metadata that are empty are none.
fn drop_empty(object: &mut Value) {
    let metadata = metadata_of(object);
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_empty = |value: &Value| *value == json!({}) || *value == json!([]);
        if metadata.get(field).is_some_and(is_empty) {
            metadata.remove(field);
        }
    }
}

fn raise_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_u64().unwrap_or_default();
    object["metadata"]["generation"] = json!(generation + 1);
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

/// Whoever deletes in the background takes off what one before him has put there who deletes in the foreground. Says whether there was anything.
fn wait_for_no_dependents(object: &mut Value) -> bool {
    let finalizers = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut);
    finalizers.is_some_and(|finalizers| {
        let before = finalizers.len();
        finalizers.retain(|finalizer| finalizer != "foregroundDeletion");
        finalizers.len() < before
    })
}

/// Deleted, and nothing keeps it.
fn is_released(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some() && !has_finalizers(object)
}
