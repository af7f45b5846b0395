//! What the process remembers of owners and their objects between reconciles. All of it can be lost: then it is read or checked again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use operator_kit::object::{GroupKind, ObjectKey};
use planning::objects::{ObjectMemory, Read};

/// What is remembered of one owner. Locks are held for moments only, never across a request, and one at a time.
#[derive(Default)]
pub(crate) struct Memory<M> {
    /// Of its objects.
    pub(crate) objects: Mutex<ObjectMemories>,
    /// Of the owner itself.
    pub(crate) own: Mutex<M>,
}

/// What is remembered of the objects of one owner.
#[derive(Default)]
pub(crate) struct ObjectMemories {
    /// A node of the tree has room for eleven, and most owners have fewer: what is large lies beside it.
    by_key: BTreeMap<ObjectKey, Box<ObjectMemory>>,
}

impl ObjectMemories {
    /// What is remembered of an object, if anything is.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&ObjectMemory> {
        self.by_key.get(key).map(AsRef::as_ref)
    }

    /// What is remembered of an object, to be changed.
    pub(crate) fn of(&mut self, key: &ObjectKey) -> &mut ObjectMemory {
        self.by_key.entry(key.clone()).or_default()
    }

    /// How often an object has changed, for a read of it that begins.
    pub(crate) fn changes(&mut self, key: &ObjectKey) -> u64 {
        self.of(key).changes
    }

    /// Remembers the answer to a read that began after so many changes; false after more of them, because it may be older than what was told.
    pub(crate) fn remember_read(&mut self, key: &ObjectKey, changes: u64, read: Read) -> bool {
        let object = self.of(key);
        let is_current = object.changes == changes;
        object.read = is_current.then_some(read);
        is_current
    }

    /// Ends waits after failures, and fights.
    pub(crate) fn try_again(&mut self) {
        for object in self.by_key.values_mut() {
            object.failure = None;
            object.reversals.clear();
        }
    }

    /// Forgets what was read of an object, because it has changed.
    pub(super) fn changed(&mut self, key: &ObjectKey) {
        if let Some(object) = self.by_key.get_mut(key) {
            object.read = None;
            object.changes += 1;
        }
    }
}

/// Memories of all owners of a kind, by the value of the label that marks their objects.
pub(crate) struct Memories<K: Resource<DynamicType = ()>, M> {
    by_part_of: Mutex<HashMap<String, Entry<K, M>>>,
}

struct Entry<K: Resource<DynamicType = ()>, M> {
    owner: ObjectRef<K>,
    /// Of the shard in which it is.
    term: u64,
    memory: Arc<Memory<M>>,
}

impl<K: Resource<DynamicType = ()>, M> Default for Memories<K, M> {
    fn default() -> Self {
        Self {
            by_part_of: Mutex::default(),
        }
    }
}

impl<K: Resource<DynamicType = ()>, M: Default> Memories<K, M> {
    /// The memory of an owner, empty at first and with every term of its shard.
    ///
    /// What is of an earlier term goes here, where it would be used, and not when the shard was given away: passes of that time had to end
    /// first and remembered to the last.
    pub(crate) fn of(&self, part_of: &str, owner: &ObjectRef<K>, term: u64) -> Arc<Memory<M>> {
        let mut entries = lock(&self.by_part_of);
        let new = || Entry {
            owner: owner.clone(),
            term,
            memory: Arc::default(),
        };
        let entry = entries.entry(part_of.to_owned()).or_insert_with(new);
        if entry.owner.extra.uid != owner.extra.uid {
            // Another owner of the same name, made before anybody saw that the first was gone: nothing of that one is true of it.
            *entry = new();
        }
        if entry.term != term {
            // Others worked on it in between.
            *entry = new();
        }
        Arc::clone(&entry.memory)
    }

    /// Whose objects are marked so, if it is remembered.
    pub(crate) fn owner(&self, part_of: &str) -> Option<ObjectRef<K>> {
        lock(&self.by_part_of).get(part_of).map(|entry| entry.owner.clone())
    }

    /// Forgets what was read of an object, because it has changed, and says whose it is.
    pub(crate) fn changed(&self, part_of: &str, key: &ObjectKey) -> Option<ObjectRef<K>> {
        let entries = lock(&self.by_part_of);
        let entry = entries.get(part_of)?;
        lock(&entry.memory.objects).changed(key);
        Some(entry.owner.clone())
    }

    /// The kinds of all objects that are remembered, and those that memories of owners name.
    pub(crate) fn kinds(&self, named: impl Fn(&M) -> HashSet<GroupKind>) -> HashSet<GroupKind> {
        let entries = lock(&self.by_part_of);
        let mut kinds = HashSet::new();
        for entry in entries.values() {
            kinds.extend(lock(&entry.memory.objects).by_key.keys().map(ObjectKey::group_kind));
            kinds.extend(named(&lock(&entry.memory.own)));
        }
        kinds
    }

    /// Forgets an owner that is gone; what was remembered of it goes to whoever forgets it.
    pub(crate) fn forget(&self, part_of: &str) -> Option<Arc<Memory<M>>> {
        Some(lock(&self.by_part_of).remove(part_of)?.memory)
    }
}

/// Poisoned or not, a memory is only a memory.
pub(crate) fn lock<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crds::ClusterStackRelease;

    use super::*;

    /// Whether something is remembered of the owner.
    type Known = bool;

    #[test]
    fn a_shard_that_was_another_process_s_is_begun_without_memory() {
        let memories: Memories<ClusterStackRelease, Known> = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        let of = |term| memories.of("release", &release, term);
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let first = of(1);
        *lock(&first.own) = true;
        lock(&first.objects).of(&key);
        assert!(*lock(&of(1).own), "the shard is the same");
        let again = of(2);
        assert!(!*lock(&again.own));
        assert!(lock(&again.objects).by_key.is_empty());
        // A pass of the first term that ends late remembers nothing for the second.
        *lock(&first.own) = true;
        assert!(!*lock(&of(2).own));
    }

    #[test]
    fn an_answer_to_a_read_that_began_before_a_change_is_not_remembered() {
        let memories: Memories<ClusterStackRelease, Known> = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        let memory = memories.of("release", &release, 1);
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let is_read = || lock(&memory.objects).of(&key).read.is_some();
        let read = |meanwhile: &dyn Fn()| {
            let changes = lock(&memory.objects).changes(&key);
            meanwhile();
            let is_current = lock(&memory.objects).remember_read(&key, changes, Read::Absent);
            assert_eq!(is_read(), is_current);
            is_current
        };
        let change = |name: &str| drop(memories.changed("release", &ObjectKey::new("", "Secret", "fleet", name)));
        assert!(!read(&|| change("a")));
        assert!(read(&|| change("b")), "another one changed");
        change("a");
        assert!(!is_read());
    }
}
