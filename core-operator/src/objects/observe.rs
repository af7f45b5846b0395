//! Reads how objects are from watches and memory. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crds::resource::Resource;
use kube::core::GroupVersionKind;
use operator_kit::object::{GroupKind, ObjectKey};
use operator_kit::objects;
use planning::objects::{Intent, ObjectObserved, Seen, key_of};

use super::memory::{ObjectMemories, lock};
use super::place::{KindFacts, Place};
use super::scopes::Scopes;

/// Whose objects are asked for, and what tells of them.
pub(crate) struct Asked<'a> {
    /// The mark of the owner.
    pub(crate) part_of: &'a str,
    /// The only namespace in which an object may be the owner's, whatever mark it carries: anybody may know the mark. `None` for any.
    pub(crate) namespace: Option<&'a str>,
    /// The inventory of the owner.
    pub(crate) rows: &'a [Resource],
    /// The kinds that it says it has.
    pub(crate) kinds: &'a BTreeSet<GroupKind>,
    /// What it wants, if that is known.
    pub(crate) intents: Option<&'a BTreeMap<ObjectKey, Intent>>,
    /// Whether the objects of kinds that it brings have namespaces.
    pub(crate) brought: &'a Scopes,
    /// What is remembered of its objects.
    pub(crate) memory: &'a Mutex<ObjectMemories>,
}

impl Place {
    /// Every object that is wanted, inventoried or marked, with what the watches and the memory know of it.
    pub(crate) async fn observe(&self, asked: &Asked<'_>) -> BTreeMap<ObjectKey, ObjectObserved> {
        let rows = asked.rows.iter().map(|row| (key_of(row), row.version.clone()));
        let mut versions: BTreeMap<ObjectKey, String> = rows.collect();
        let intents = asked.intents.into_iter().flatten();
        versions.extend(intents.map(|(key, Intent { object, .. })| (key.clone(), object.version.clone())));
        let mut kinds: BTreeSet<GroupKind> = asked.kinds.clone();
        kinds.extend(versions.keys().map(ObjectKey::group_kind));
        let mut facts: BTreeMap<GroupKind, KindFacts> = BTreeMap::new();
        for kind in kinds {
            let known = self.kind(&kind).await;
            facts.insert(kind, known);
        }
        let unserved = self.unserved(asked.intents).await;
        for (key, _) in self.objects.by_part_of(asked.part_of, asked.namespace) {
            versions.entry(key).or_default();
        }
        let memory = lock(asked.memory);
        versions
            .into_iter()
            .map(|(key, version)| {
                let kind = key.group_kind();
                let facts = facts.get(&kind).copied().unwrap_or(KindFacts::Unsure);
                let brought = || asked.brought.get(&kind).copied().unwrap_or_default();
                let object = ObjectObserved {
                    version,
                    served: facts.maybe_served() && !unserved.contains(&key),
                    watched: self.objects.synced(&kind),
                    only_listed: self.objects.only_lists(&kind),
                    scope: facts.scope().or_else(brought),
                    seen: self.objects.get(&key).map(|seen| sight(&seen, asked.part_of)),
                    holder: None,
                    shared: false,
                    memory: memory.get(&key).cloned().unwrap_or_default(),
                };
                (key, object)
            })
            .collect()
    }

    /// The wanted objects whose kind is served, but not in the version that their intent names.
    async fn unserved(&self, intents: Option<&BTreeMap<ObjectKey, Intent>>) -> BTreeSet<ObjectKey> {
        let mut unserved = BTreeSet::new();
        for (key, intent) in intents.into_iter().flatten() {
            let gvk = GroupVersionKind::gvk(&key.group, &intent.object.version, &key.kind);
            if !self.serves(&gvk).await {
                unserved.insert(key.clone());
            }
        }
        unserved
    }
}

/// One object as planning sees it.
pub(super) fn sight(seen: &objects::Seen, part_of: &str) -> Seen {
    let revision = seen.generation.map_or_else(
        || format!("v{}", seen.resource_version),
        |generation| format!("g{generation}"),
    );
    Seen {
        uid: seen.uid.to_string(),
        trigger: format!("{} {revision} {:016x} {}", seen.uid, seen.labels_digest, seen.deleting),
        resource_version: seen.resource_version.to_string(),
        ours: *seen.part_of == *part_of,
        deleting: seen.deleting,
    }
}
