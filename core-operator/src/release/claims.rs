//! By which objects releases are found, and about which objects the word of a release has changed. Decides nothing.
//!
//! Several releases may name one object, in several namespaces too. What becomes of it for one of them hangs on what the others say, and no watch of
//! objects tells of that: whoever has an object and names it no more leaves it as it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use crds::resource::Resource;
use crds::{ClusterStackRelease, labels};
use kube::ResourceExt;
use planning::object_key::ObjectKey;
use planning::objects::key_of;

/// By what a release is found that has to do with an object: the objects that its inventory names, and its mark. Two may give the same handle, so
/// whoever is found has to be asked.
pub(crate) fn handles(release: &ClusterStackRelease) -> Vec<String> {
    let named = numbers(release).into_keys().map(handle);
    named.chain([mark_handle(&mark(release))]).collect()
}

/// The handle of an object.
pub(crate) fn object_handle(key: &ObjectKey) -> String {
    handle(number(key))
}

/// The handle of the release that marks objects with this value.
pub(super) fn mark_handle(part_of: &str) -> String {
    format!("mark {part_of}")
}

/// The mark of a release.
pub(crate) fn mark(release: &ClusterStackRelease) -> String {
    let namespace = release.namespace().unwrap_or_default();
    labels::part_of("ClusterStackRelease", &namespace, &release.name_any())
}

/// The inventory of a release.
pub(super) fn rows(release: &ClusterStackRelease) -> impl Iterator<Item = &Resource> {
    release.status.iter().flat_map(|status| &status.resources)
}

/// Whether the inventory of a release names an object. A row without a namespace may mean one beside the release.
pub(crate) fn names(release: &ClusterStackRelease, key: &ObjectKey) -> bool {
    rows(release).any(|row| {
        let is_there = row.namespace == key.namespace || row.namespace.is_empty();
        row.name == key.name && row.kind == key.kind && row.group == key.group && is_there
    })
}

/// Whether a release has no status yet, so that nobody knows what it has applied.
pub(super) fn is_silent(release: &ClusterStackRelease) -> bool {
    let status = release.status.as_ref();
    status.is_none_or(|status| status.observed_generation.is_none())
}

/// Inventories are long and there are many: a number stands for a key here.
fn number(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn handle(number: u64) -> String {
    format!("object {number:x}")
}

/// By the number of an object, that of what is said of it. A row without a namespace may mean an object that has none, or one beside the release.
fn numbers(release: &ClusterStackRelease) -> BTreeMap<u64, u64> {
    let namespace = release.namespace().unwrap_or_default();
    let mut numbers = BTreeMap::new();
    for row in rows(release) {
        let key = key_of(row);
        let beside = key.namespace.is_empty().then(|| ObjectKey {
            namespace: namespace.clone(),
            ..key.clone()
        });
        for key in beside.iter().chain([&key]) {
            numbers.insert(number(key), number(&row.digest));
        }
    }
    numbers
}

/// What a release said.
struct Said {
    /// What is true of its word about every object: whether it is to go, whether it is silent, and of which stacks it is.
    manner: (bool, bool, Vec<String>),
    objects: BTreeMap<u64, u64>,
}

impl Said {
    fn by(release: &ClusterStackRelease) -> Self {
        let stacks = release.stacks().map(|stack| stack.name.clone()).collect();
        Self {
            manner: (
                release.metadata.deletion_timestamp.is_some(),
                is_silent(release),
                stacks,
            ),
            objects: numbers(release),
        }
    }

    /// The objects of which one says something else than the other.
    fn differences(&self, other: &Self) -> BTreeSet<u64> {
        let objects = self.objects.keys().chain(other.objects.keys());
        let differs =
            |object: &&u64| self.manner != other.manner || self.objects.get(object) != other.objects.get(object);
        objects.filter(differs).copied().collect()
    }
}

/// What is new in the word of a release.
pub(crate) struct Heard {
    /// The handles of the objects of which it said something else before.
    pub(crate) handles: Vec<String>,
    /// The stacks that it was of before, where they were others.
    pub(crate) former_stacks: Option<Vec<String>>,
}

/// What all releases said when they were heard last, by their marks.
#[derive(Default)]
pub(crate) struct Claims {
    said: Mutex<HashMap<String, Said>>,
}

impl Claims {
    /// Takes what a release says now.
    pub(crate) fn hear(&self, release: &ClusterStackRelease) -> Heard {
        let now = Said::by(release);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let before = said.get(&mark(release));
        let changed = match before {
            Some(before) => before.differences(&now),
            None => now.objects.keys().copied().collect(),
        };
        let former = before.map(|before| &before.manner.2);
        let heard = Heard {
            handles: changed.into_iter().map(handle).collect(),
            former_stacks: former.filter(|stacks| **stacks != now.manner.2).cloned(),
        };
        said.insert(mark(release), now);
        heard
    }

    /// Forgets a release that is gone, and gives the handles of the objects of which it said something.
    pub(crate) fn forget(&self, release: &ClusterStackRelease) -> Vec<String> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let mut objects = numbers(release);
        if let Some(before) = said.remove(&mark(release)) {
            objects.extend(before.objects);
        }
        objects.into_keys().map(handle).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A release whose inventory names these `ConfigMaps` with these digests.
    fn release(rows: &[(&str, &str)], more: &Value) -> ClusterStackRelease {
        let row = |(name, digest): &(&str, &str)| json!({ "kind": "ConfigMap", "namespace": "fleet", "name": name, "digest": digest });
        let rows: Vec<Value> = rows.iter().map(row).collect();
        let mut release = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": "docker-harbor-1-34-v1", "namespace": "fleet", "uid": "a" },
            "spec": {}, "status": { "observedGeneration": 1, "resources": rows },
        });
        for (pointer, value) in more.as_object().expect("fields") {
            release["metadata"][pointer] = value.clone();
        }
        serde_json::from_value(release).expect("a release")
    }

    fn of(names: &[&str]) -> BTreeSet<String> {
        let key = |name: &&str| object_handle(&ObjectKey::new("", "ConfigMap", "fleet", *name));
        names.iter().map(key).collect()
    }

    #[test]
    fn only_objects_of_which_something_else_is_said_are_told_of() {
        let (claims, nothing) = (Claims::default(), json!({}));
        let hear =
            |release: &ClusterStackRelease| -> BTreeSet<String> { claims.hear(release).handles.into_iter().collect() };
        assert_eq!(hear(&release(&[("a", "1"), ("b", "1")], &nothing)), of(&["a", "b"]));
        assert_eq!(hear(&release(&[("a", "1"), ("b", "1")], &nothing)), of(&[]));
        assert_eq!(
            hear(&release(&[("a", "1"), ("b", "2")], &nothing)),
            of(&["b"]),
            "in another form"
        );
        assert_eq!(hear(&release(&[("b", "2")], &nothing)), of(&["a"]), "no longer named");
        let deleting = json!({ "deletionTimestamp": "2026-11-23T08:00:00Z" });
        assert_eq!(hear(&release(&[("b", "2")], &deleting)), of(&["b"]), "to go");
        let gone: BTreeSet<String> = claims.forget(&release(&[], &deleting)).into_iter().collect();
        assert_eq!(gone, of(&["b"]), "the last that was heard counts too");
    }

    #[test]
    fn a_release_that_is_of_other_stacks_than_before_says_of_which_it_was() {
        let claims = Claims::default();
        let of = |stacks: &[&str]| {
            let owner = |name: &&str| json!({ "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "name": name, "uid": name });
            let owners: Vec<Value> = stacks.iter().map(owner).collect();
            claims
                .hear(&release(&[], &json!({ "ownerReferences": owners })))
                .former_stacks
        };
        assert_eq!(of(&["first"]), None);
        assert_eq!(of(&["first"]), None);
        assert_eq!(of(&[]), Some(vec!["first".to_owned()]));
        assert_eq!(of(&["second"]), Some(Vec::new()));
    }

    #[test]
    fn a_release_is_found_by_its_mark_and_by_rows_that_name_no_namespace() {
        let mut release = release(&[("a", "1")], &json!({}));
        let status = release.status.as_mut().expect("a status");
        status.resources[0].namespace = String::new();
        let handles = handles(&release);
        assert!(of(&["a"]).iter().all(|handle| handles.contains(handle)));
        assert!(handles.contains(&object_handle(&ObjectKey::new("", "ConfigMap", "", "a"))));
        assert!(handles.contains(&mark_handle(&mark(&release))));
    }
}
