//! The memory of watched objects: by key, and by the owner they are part of. Pure; who fills it is the watch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::seen::{Seen, What};
use crate::object::{GroupKind, ObjectKey};

#[derive(Debug, Default)]
pub(super) struct Store {
    objects: HashMap<Arc<ObjectKey>, Seen>,
    parts: HashMap<Arc<str>, HashSet<Arc<ObjectKey>>>,
}

/// A change and the owners it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The value of the watched label: whose part the object is (for a change of the label, whose it became).
    pub part_of: Arc<str>,
    /// Whose part it was before, where that differs.
    pub was_part_of: Option<Arc<str>>,
    /// Which object.
    pub key: Arc<ObjectKey>,
    /// What happened.
    pub what: What,
}

impl Store {
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Seen> {
        self.objects.get(key)
    }

    pub(super) fn by_part_of(&self, part_of: &str) -> Vec<(ObjectKey, Seen)> {
        let keys = self.parts.get(part_of).into_iter().flatten();
        let mut parts: Vec<_> = keys
            .filter_map(|key| Some((key.as_ref().clone(), self.objects.get(key)?.clone())))
            .collect();
        parts.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        parts
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Notes a sight of an object, unless a later one is known.
    pub(super) fn put(&mut self, key: ObjectKey, seen: Seen) -> Option<Changed> {
        self.put_after(key, seen, None)
    }

    /// Notes a sight in a list that began when no version above `before` was known of the kind. Whatever was known then is older than the list, even with
    /// a higher version: of an etcd that was restored versions are lower than before. What was noted since may be later.
    pub(super) fn put_listed(&mut self, key: ObjectKey, seen: Seen, before: u64) -> Option<Changed> {
        self.put_after(key, seen, Some(before))
    }

    /// The highest version that is known of a kind.
    pub(super) fn highest_version(&self, kind: &GroupKind) -> u64 {
        let of_kind = self.objects.iter().filter(|(key, _)| is_of(key, kind));
        of_kind.filter_map(|(_, seen)| seen.version()).max().unwrap_or_default()
    }

    /// Thousands of objects share few owners: the owner's name is stored once.
    fn put_after(&mut self, key: ObjectKey, mut seen: Seen, overruled: Option<u64>) -> Option<Changed> {
        if let Some((known, _)) = self.parts.get_key_value(&seen.part_of) {
            seen.part_of = Arc::clone(known);
        }
        let stands = |known: &Seen| seen.is_older(known) && known.version() > overruled;
        if self.objects.get(&key).is_some_and(stands) {
            return None;
        }
        let (key, before) = match self.objects.remove_entry(&key) {
            Some((key, before)) => (key, Some(before)),
            None => (Arc::new(key), None),
        };
        let what = seen.after(before.as_ref());
        let part_of = Arc::clone(&seen.part_of);
        let was_part_of = before.map(|before| before.part_of).filter(|before| *before != part_of);
        if let Some(former) = &was_part_of {
            self.leave(former, &key);
        }
        self.parts
            .entry(Arc::clone(&part_of))
            .or_default()
            .insert(Arc::clone(&key));
        self.objects.insert(Arc::clone(&key), seen);
        what.map(|what| Changed {
            part_of,
            was_part_of,
            key,
            what,
        })
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Changed> {
        let (key, seen) = self.objects.remove_entry(key)?;
        self.leave(&seen.part_of, &key);
        Some(Changed {
            part_of: seen.part_of,
            was_part_of: None,
            key,
            what: What::Vanished,
        })
    }

    /// Forgets a sight of an object that is not there any more, unless something else was seen of it since: an answer to a read may be noted after
    /// the watch has told of the end of what it shows, and then no event would ever take it away.
    pub(super) fn forget(&mut self, key: &ObjectKey, sight: &Seen) -> Option<Changed> {
        self.objects.get(key).filter(|seen| *seen == sight)?;
        self.remove(key)
    }

    /// The keys of one kind, for telling after a full listing what is gone.
    pub(super) fn keys_of(&self, kind: &GroupKind) -> Vec<Arc<ObjectKey>> {
        self.objects.keys().filter(|key| is_of(key, kind)).cloned().collect()
    }

    /// Forgets every object of a kind.
    pub(super) fn forget_kind(&mut self, kind: &GroupKind) {
        for key in self.keys_of(kind) {
            self.remove(&key);
        }
    }

    fn leave(&mut self, part_of: &Arc<str>, key: &Arc<ObjectKey>) {
        if let Some(keys) = self.parts.get_mut(part_of) {
            keys.remove(key);
            if keys.is_empty() {
                self.parts.remove(part_of);
            }
        }
    }
}

fn is_of(key: &ObjectKey, kind: &GroupKind) -> bool {
    key.group == kind.group && key.kind == kind.kind
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group: "g".to_owned(),
            kind: "K".to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    fn seen(part_of: &str, version: &str) -> Seen {
        Seen {
            uid: Box::from("u"),
            resource_version: Box::from(version),
            generation: None,
            part_of: Arc::from(part_of),
            labels_digest: 0,
            owners: Box::default(),
            deleting: false,
        }
    }

    #[test]
    fn an_owner_lists_exactly_its_parts() {
        let mut store = Store::default();
        store.put(key("b"), seen("x", "1"));
        store.put(key("a"), seen("x", "1"));
        store.put(key("c"), seen("y", "1"));
        let names: Vec<String> = store.by_part_of("x").into_iter().map(|(key, _)| key.name).collect();
        assert_eq!(names, ["a", "b"]);
        store.remove(&key("a"));
        assert_eq!(store.by_part_of("x").len(), 1);
        store.remove(&key("b"));
        assert!(store.parts.keys().all(|part| &**part == "y"));
    }

    #[test]
    fn a_part_that_changes_its_owner_is_told_to_both() {
        let mut store = Store::default();
        store.put(key("a"), seen("x", "1"));
        let changed = store.put(key("a"), seen("y", "2")).unwrap();
        assert_eq!((&*changed.part_of, changed.was_part_of.as_deref()), ("y", Some("x")));
        assert!(store.by_part_of("x").is_empty());
    }

    #[test]
    fn a_sight_that_a_read_denies_goes_unless_there_is_another_by_then() {
        let mut store = Store::default();
        store.put(key("a"), seen("x", "1"));
        let late = store.get(&key("a")).cloned().unwrap();
        store.put(key("a"), seen("x", "2"));
        store.forget(&key("a"), &late);
        assert_eq!(store.len(), 1);
        store.forget(&key("a"), &seen("x", "2"));
        assert_eq!(store.len(), 0);
        assert!(store.by_part_of("x").is_empty());
    }

    #[test]
    fn the_same_sight_twice_is_no_change() {
        let mut store = Store::default();
        assert!(store.put(key("a"), seen("x", "1")).is_some());
        assert_eq!(store.put(key("a"), seen("x", "1")), None);
        assert_eq!(store.len(), 1);
    }
}
