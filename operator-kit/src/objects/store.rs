//! The memory of watched objects: by key, and by the owner they are part of. Pure; it is filled by the watches, and by answers that come before them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::seen::{Seen, What};
use crate::object::{GroupKind, ObjectKey};

#[derive(Debug, Default)]
pub(super) struct Store {
    objects: HashMap<Arc<ObjectKey>, Seen>,
    parts: HashMap<Place, HashSet<Arc<ObjectKey>>>,
    /// The version up to which the watch of a kind has told everything.
    told: HashMap<GroupKind, u64>,
}

/// Whose part an object is, and its namespace: anybody may give objects of his own the label of others.
type Place = (Arc<str>, Box<str>);

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

    /// The parts of an owner in this namespace, and those that have no namespace; those in all without one.
    pub(super) fn by_part_of(&self, part_of: &str, namespace: Option<&str>) -> Vec<(ObjectKey, Seen)> {
        let keys: Vec<_> = if let Some(namespace) = namespace {
            let places = BTreeSet::from([namespace, ""]).into_iter();
            let places = places.map(|namespace| -> Place { (Arc::from(part_of), Box::from(namespace)) });
            places.filter_map(|place| self.parts.get(&place)).collect()
        } else {
            let places = self.parts.iter().filter(|((owner, _), _)| **owner == *part_of);
            places.map(|(_, keys)| keys).collect()
        };
        let mut parts: Vec<_> = keys
            .into_iter()
            .flatten()
            .filter_map(|key| Some((key.as_ref().clone(), self.objects.get(key)?.clone())))
            .collect();
        parts.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        parts
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Takes a sight of an object that its watch tells of, unless a later one is known.
    pub(super) fn put(&mut self, key: ObjectKey, seen: Seen) -> Option<Changed> {
        self.tell(&key, seen.version());
        self.put_after(key, seen, None)
    }

    /// Takes the end of an object that its watch tells of, at this version.
    pub(super) fn end(&mut self, key: &ObjectKey, version: Option<u64>) -> Option<Changed> {
        self.tell(key, version);
        self.remove(key)
    }

    fn tell(&mut self, key: &ObjectKey, version: Option<u64>) {
        if let (Some(told), Some(version)) = (self.told.get_mut(&key.group_kind()), version) {
            *told = version.max(*told);
        }
    }

    /// Takes a sight in the answer to a request, unless something later is known of its name, or the watch has told of what came after it: what has gone
    /// since would be brought back, and no event would ever take it away.
    pub(super) fn note(&mut self, key: ObjectKey, seen: Seen) -> Option<Changed> {
        let told = self.told.get(&key.group_kind()).copied();
        let later = told.max(self.get(&key).and_then(Seen::version));
        let is_late = seen
            .version()
            .zip(later)
            .is_some_and(|(version, later)| version <= later);
        if is_late {
            return None;
        }
        self.put_after(key, seen, None)
    }

    /// A list begins; gives the highest version that is known of the kind. Until it ends nothing counts as told, since of an etcd that was restored the
    /// versions are lower than before; what is noted too late meanwhile is forgotten then.
    pub(super) fn begin_list(&mut self, kind: &GroupKind) -> u64 {
        self.told.remove(kind);
        let of_kind = self.objects.iter().filter(|(key, _)| is_of(key, kind));
        of_kind.filter_map(|(_, seen)| seen.version()).max().unwrap_or_default()
    }

    /// A list of this version ends. The highest number stands for what is none, and nothing is compared with that.
    pub(super) fn end_list(&mut self, kind: &GroupKind, version: u64) {
        if version < u64::MAX {
            self.told.insert(kind.clone(), version);
        }
    }

    /// Notes a sight in a list that began when no version above `before` was known of the kind. Whatever was known then is older than the list, even with
    /// a higher version: of an etcd that was restored versions are lower than before. What was noted since may be later.
    pub(super) fn put_listed(&mut self, key: ObjectKey, seen: Seen, before: u64) -> Option<Changed> {
        self.put_after(key, seen, Some(before))
    }

    /// Thousands of objects share few owners: the owner's name is stored once for each namespace.
    fn put_after(&mut self, key: ObjectKey, mut seen: Seen, overruled: Option<u64>) -> Option<Changed> {
        if let Some(((known, _), _)) = self.parts.get_key_value(&place(&seen.part_of, &key)) {
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
            .entry(place(&part_of, &key))
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

    /// Forgets an object.
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

    /// Forgets every object of a kind, and what was told of it.
    pub(super) fn forget_kind(&mut self, kind: &GroupKind) {
        self.told.remove(kind);
        for key in self.keys_of(kind) {
            self.remove(&key);
        }
    }

    fn leave(&mut self, part_of: &Arc<str>, key: &Arc<ObjectKey>) {
        let place = place(part_of, key);
        if let Some(keys) = self.parts.get_mut(&place) {
            keys.remove(key);
            if keys.is_empty() {
                self.parts.remove(&place);
            }
        }
    }
}

fn place(part_of: &Arc<str>, key: &ObjectKey) -> Place {
    (Arc::clone(part_of), Box::from(key.namespace.as_str()))
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
            annotation: None,
            owners: Box::default(),
            deleting: false,
        }
    }

    /// The names of an owner's parts.
    fn parts(store: &Store, part_of: &str, namespace: &str) -> Vec<String> {
        let parts = store.by_part_of(part_of, Some(namespace)).into_iter();
        parts.map(|(key, _)| key.name).collect()
    }

    #[test]
    fn an_owner_lists_exactly_its_parts() {
        let mut store = Store::default();
        store.put(key("b"), seen("x", "1"));
        store.put(key("a"), seen("x", "1"));
        store.put(key("c"), seen("y", "1"));
        assert_eq!(parts(&store, "x", "n"), ["a", "b"]);
        store.remove(&key("a"));
        assert_eq!(parts(&store, "x", "n"), ["b"]);
        store.remove(&key("b"));
        assert!(store.parts.keys().all(|(part, _)| &**part == "y"));
    }

    #[test]
    fn the_parts_of_an_owner_are_those_of_one_namespace_or_of_all() {
        let mut store = Store::default();
        let within = |namespace: &str| ObjectKey {
            namespace: namespace.to_owned(),
            ..key("a")
        };
        for (namespace, part_of) in [("n", "x"), ("", "x"), ("m", "x"), ("o", "y")] {
            store.put(within(namespace), seen(part_of, "1"));
        }
        let namespaces = |namespace: Option<&str>| -> Vec<String> {
            let parts = store.by_part_of("x", namespace).into_iter();
            parts.map(|(key, _)| key.namespace).collect()
        };
        assert_eq!(namespaces(Some("n")), ["", "n"]);
        assert_eq!(namespaces(None), ["", "m", "n"]);
    }

    #[test]
    fn a_part_that_changes_its_owner_is_told_to_both() {
        let mut store = Store::default();
        store.put(key("a"), seen("x", "1"));
        let changed = store.put(key("a"), seen("y", "2")).unwrap();
        assert_eq!((&*changed.part_of, changed.was_part_of.as_deref()), ("y", Some("x")));
        assert!(parts(&store, "x", "n").is_empty());
    }

    #[test]
    fn an_owner_s_parts_are_in_its_namespace_or_in_none() {
        let mut store = Store::default();
        for namespace in ["n", "other", ""] {
            let key = ObjectKey {
                namespace: namespace.to_owned(),
                ..key(&format!("in-{namespace}"))
            };
            store.put(key, seen("x", "1"));
        }
        assert_eq!(parts(&store, "x", "n"), ["in-", "in-n"]);
        assert_eq!(parts(&store, "x", ""), ["in-"]);
    }

    #[test]
    fn an_answer_that_its_watch_has_gone_past_is_left_out() {
        let kind = GroupKind::new("g", "K");
        let mut store = Store::default();
        assert!(
            store.note(key("early"), seen("x", "4")).is_some(),
            "nothing was listed yet"
        );
        store.begin_list(&kind);
        store.end_list(&kind, 5);
        assert_eq!(store.note(key("a"), seen("x", "5")), None, "the list is without it");
        store.put(key("a"), seen("x", "10"));
        store.end(&key("a"), Some(11));
        for late in ["10", "11"] {
            assert_eq!(store.note(key("a"), seen("x", late)), None, "{late}");
        }
        assert!(store.note(key("b"), seen("x", "opaque")).is_some());
        let another = Seen {
            uid: Box::from("v"),
            ..seen("x", "13")
        };
        assert!(store.note(key("a"), another.clone()).is_some());
        assert_eq!(
            store.note(key("a"), seen("x", "12")),
            None,
            "one of its name came after it"
        );
        assert_eq!(store.get(&key("a")), Some(&another));
    }

    #[test]
    fn what_was_told_counts_until_the_next_list_and_no_longer_than_its_kind_is_watched() {
        let kind = GroupKind::new("g", "K");
        let mut store = Store::default();
        store.end_list(&kind, 50);
        assert_eq!(store.note(key("a"), seen("x", "24")), None);
        store.begin_list(&kind);
        assert!(
            store.note(key("a"), seen("x", "24")).is_some(),
            "etcd may have been restored"
        );
        store.end_list(&kind, 23);
        assert!(store.note(key("b"), seen("x", "24")).is_some());
        store.end_list(&kind, 50);
        store.forget_kind(&kind);
        assert!(store.note(key("c"), seen("x", "24")).is_some());
        store.begin_list(&kind);
        store.end_list(&kind, u64::MAX);
        assert!(
            store.note(key("d"), seen("x", "24")).is_some(),
            "the list has no number"
        );
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
        assert!(store.parts.is_empty());
    }

    #[test]
    fn the_same_sight_twice_is_no_change() {
        let mut store = Store::default();
        assert!(store.put(key("a"), seen("x", "1")).is_some());
        assert_eq!(store.put(key("a"), seen("x", "1")), None);
        assert_eq!(store.len(), 1);
    }
}
