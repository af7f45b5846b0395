//! One object of any kind as the modelled API server keeps it: fields with the managers that own them, as far as server-side apply needs it.

use std::collections::{BTreeMap, BTreeSet};

use crds::labels;
use planning::health::HealthState;

/// The fields of an object by path, such as `spec/image`, `label/clusterstack.x-k8s.io/instance` or `annotation/note`.
pub(crate) type Body = BTreeMap<String, String>;

/// The name of a label among the fields.
pub(crate) fn label(name: &str) -> String {
    format!("label/{name}")
}

/// The name of an annotation among the fields.
pub(crate) fn annotation(name: &str) -> String {
    format!("annotation/{name}")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) value: String,
    pub(crate) managers: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) uid: String,
    pub(crate) resource_version: u64,
    pub(crate) generation: u64,
    pub(crate) fields: BTreeMap<String, Field>,
    /// Somebody's finalizer keeps it when it is deleted.
    pub(crate) finalizer: bool,
    pub(crate) deleting: bool,
    pub(crate) health: (HealthState, String),
}

/// Fields that an apply without force may not take, with their managers.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) fields: BTreeSet<String>,
    pub(crate) managers: BTreeSet<String>,
}

impl Live {
    pub(crate) fn new(uid: String, resource_version: u64) -> Self {
        Self {
            uid,
            resource_version,
            generation: 1,
            fields: BTreeMap::new(),
            finalizer: false,
            deleting: false,
            health: (HealthState::Current, String::new()),
        }
    }

    /// The value of a field, whoever owns it.
    pub(crate) fn value(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(|field| field.value.as_str())
    }

    /// Whether the watch of marked objects shows it.
    pub(crate) fn is_marked(&self) -> bool {
        self.value(&label(labels::PART_OF)).is_some()
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.value(&annotation(labels::RESOURCE_POLICY)) == Some(labels::RESOURCE_POLICY_KEEP)
    }

    /// Whether anything is owned by this manager.
    pub(crate) fn is_managed_by(&self, manager: &str) -> bool {
        self.fields.values().any(|field| field.managers.contains(manager))
    }

    /// What a drift would change: generation, labels, annotations, identity; the resource version where a kind has no generation.
    pub(crate) fn trigger(&self, has_generation: bool) -> String {
        let version = if has_generation {
            self.generation
        } else {
            self.resource_version
        };
        let metadata: BTreeMap<&String, &String> = self
            .fields
            .iter()
            .filter(|(name, _)| name.starts_with("label/") || name.starts_with("annotation/"))
            .map(|(name, field)| (name, &field.value))
            .collect();
        format!("{} {version} {} {metadata:?}", self.uid, self.deleting)
    }

    /// Server-side apply: our fields get our values, fields that we owned and no longer want go unless somebody else owns them too.
    /// Without force a field of another manager with another value is a conflict, and nothing changes.
    pub(crate) fn apply(&mut self, body: &Body, manager: &str, force: bool) -> Result<(), Conflict> {
        let contested: Vec<(&String, &Field)> = body
            .iter()
            .filter_map(|(name, value)| {
                self.fields
                    .get_key_value(name)
                    .filter(|(_, field)| field.value != *value)
            })
            .filter(|(_, field)| field.managers.iter().any(|owner| owner != manager))
            .collect();
        if !force && !contested.is_empty() {
            return Err(Conflict {
                fields: contested.iter().map(|(name, _)| (*name).clone()).collect(),
                managers: contested.iter().flat_map(|(_, field)| field.managers.clone()).collect(),
            });
        }
        for (name, value) in body {
            let field = self.fields.entry(name.clone()).or_insert_with(|| Field {
                value: value.clone(),
                managers: BTreeSet::new(),
            });
            if field.value != *value {
                field.value.clone_from(value);
                field.managers.clear();
            }
            field.managers.insert(manager.to_owned());
        }
        self.fields.retain(|name, field| {
            if !body.contains_key(name) {
                field.managers.remove(manager);
            }
            !field.managers.is_empty()
        });
        Ok(())
    }

    /// Makes all fields this manager's.
    pub(crate) fn hand_over_to(&mut self, manager: &str) {
        for field in self.fields.values_mut() {
            field.managers = BTreeSet::from([manager.to_owned()]);
        }
    }

    /// Takes these fields from a manager.
    pub(crate) fn relieve(&mut self, body: &Body, manager: &str) {
        let shared = self.fields.iter_mut().filter(|(name, _)| body.contains_key(*name));
        for (_, field) in shared {
            field.managers.remove(manager);
        }
    }

    /// An edit by somebody: sets one field and owns it.
    pub(crate) fn edit(&mut self, name: &str, value: Option<&str>, manager: &str) {
        match value {
            Some(value) => {
                let managers = BTreeSet::from([manager.to_owned()]);
                self.fields.insert(
                    name.to_owned(),
                    Field {
                        value: value.to_owned(),
                        managers,
                    },
                );
            }
            None => drop(self.fields.remove(name)),
        }
    }

    /// Where the two differ in values, sorted.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let names: BTreeSet<&String> = self.fields.keys().chain(other.fields.keys()).collect();
        names
            .into_iter()
            .filter(|name| self.value(name) != other.value(name))
            .cloned()
            .collect()
    }

    /// Whether something that counts for the generation differs.
    pub(crate) fn differs_in_spec(&self, other: &Self) -> bool {
        self.differences(other)
            .iter()
            .any(|name| !name.starts_with("label/") && !name.starts_with("annotation/"))
    }
}
