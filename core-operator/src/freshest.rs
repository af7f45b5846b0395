//! Our own kinds as last seen, by the watch or in the answer to our own last write, whichever is newer.
//!
//! A watch tells of our own write a moment after the answer did. Without this, a reconcile in that moment would decide on a past
//! that it made itself, and write again.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use kube::Resource;
use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;
use tokio::sync::SetOnce;

/// How many deleted objects are remembered, so that a late answer does not bring one back.
const GRAVES: usize = 4096;

/// A watch's store with our own newer answers laid over it.
pub(crate) struct Freshest<K>
where
    K: 'static + Lookup,
    K::DynamicType: Hash + Eq + Clone,
{
    store: Store<K>,
    answers: Mutex<Answers<K>>,
    listed: SetOnce<()>,
}

struct Answers<K> {
    newer: HashMap<(String, String), Arc<K>>,
    graves: VecDeque<String>,
    /// By uid the version up to which an object is dead. Only the watch brings a newer one back to life: it may have lost an
    /// object because its selector no longer matched.
    dead: HashMap<String, u64>,
    /// By uid what was known when the list that is under way began.
    doubted: HashMap<Option<String>, Arc<K>>,
}

impl<K> Freshest<K>
where
    K: 'static + Resource<DynamicType = ()> + Clone,
{
    pub(crate) fn new(store: Store<K>) -> Self {
        let answers = Answers {
            newer: HashMap::new(),
            graves: VecDeque::new(),
            dead: HashMap::new(),
            doubted: HashMap::new(),
        };
        Self {
            store,
            answers: Mutex::new(answers),
            listed: SetOnce::new(),
        }
    }

    /// Waits until the watch has listed everything: before that, absence means nothing.
    ///
    /// The store's own `wait_until_ready` wakes only one of several waiting tasks (kube-runtime 5.0).
    pub(crate) async fn listed(&self) {
        self.listed.wait().await;
    }

    /// Whether [`Self::listed`] would return at once.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed.initialized()
    }

    /// Takes what the watch tells, after the store has. Returns the objects that are gone.
    ///
    /// Of an object that went while the watch was interrupted no event tells: it is known, and the next list is without it.
    pub(crate) fn take(&self, event: &Event<K>) -> Vec<Arc<K>> {
        let gone = match event {
            Event::Init => {
                self.doubt();
                Vec::new()
            }
            Event::InitDone => {
                // Later lists say nothing new.
                let _ = self.listed.set(());
                self.unlisted()
            }
            Event::Delete(object) => vec![Arc::new(object.clone())],
            Event::Apply(object) | Event::InitApply(object) => {
                self.exhume(object);
                Vec::new()
            }
        };
        for object in &gone {
            self.bury(object);
        }
        gone
    }

    /// A list begins. What is known now, the answers to our writes too, is older than it.
    fn doubt(&self) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = &mut *answers;
        answers.doubted.clear();
        for object in self.store.state().iter().chain(answers.newer.values()) {
            let known = answers
                .doubted
                .entry(object.meta().uid.clone())
                .or_insert_with(|| Arc::clone(object));
            if version(object.as_ref()) > version(known.as_ref()) {
                *known = Arc::clone(object);
            }
        }
    }

    /// A list is done: what was known when it began and is not in it.
    fn unlisted(&self) -> Vec<Arc<K>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut doubted = std::mem::take(&mut answers.doubted);
        for object in self.store.state() {
            doubted.remove(&object.meta().uid);
        }
        doubted.into_values().collect()
    }

    /// The newest sight of one object.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = self
            .store
            .get(&ObjectRef::new(name).within(namespace))
            .filter(|watched| !answers.buried(watched));
        let slot = (namespace.to_owned(), name.to_owned());
        match (watched, answers.newer.get(&slot)) {
            (Some(watched), Some(answer)) if version(answer.as_ref()) > version(watched.as_ref()) => {
                Some(Arc::clone(answer))
            }
            (Some(watched), Some(_)) => {
                answers.newer.remove(&slot);
                Some(watched)
            }
            (None, answer) => answer.cloned(),
            (watched, None) => watched,
        }
    }

    /// The newest sight of every object in a namespace that the test accepts.
    pub(crate) fn select(&self, namespace: &str, accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.select_everywhere(|object| object.meta().namespace.as_deref() == Some(namespace) && accept(object))
    }

    /// The newest sight of every object that the test accepts.
    pub(crate) fn select_everywhere(&self, accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let mut found: HashMap<(String, String), Arc<K>> = HashMap::new();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for object in self.store.state() {
            if !answers.buried(&object) && accept(&object) {
                found.insert(place(object.as_ref()), object);
            }
        }
        for (slot, answer) in &answers.newer {
            let newer = found
                .get(slot)
                .is_none_or(|watched| version(answer.as_ref()) > version(watched.as_ref()));
            if newer && accept(answer) {
                found.insert(slot.clone(), Arc::clone(answer));
            }
        }
        found.into_values().collect()
    }

    /// Every object that the watch has shown.
    pub(crate) fn watched(&self) -> Vec<Arc<K>> {
        self.store.state()
    }

    /// Takes the answer to a write of ours.
    pub(crate) fn note(&self, object: K) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.buried(&object) {
            return;
        }
        let slot = place(&object);
        answers.newer.insert(slot, Arc::new(object));
    }

    /// Forgets an object that is gone.
    pub(crate) fn bury(&self, object: &K) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = place(object);
        let mut until = version(object);
        if let Some(answer) = answers.newer.get(&slot)
            && answer.meta().uid == object.meta().uid
        {
            until = until.max(version(answer.as_ref()));
            answers.newer.remove(&slot);
        }
        let Some(uid) = object.meta().uid.clone() else { return };
        let before = answers.dead.get(&uid).copied();
        answers.dead.insert(uid.clone(), until.max(before.unwrap_or(0)));
        if before.is_none() {
            answers.graves.push_back(uid);
        }
        if answers.graves.len() > GRAVES
            && let Some(oldest) = answers.graves.pop_front()
        {
            answers.dead.remove(&oldest);
        }
    }

    /// The watch shows an object; it lives if this is later than its burial.
    fn exhume(&self, object: &K) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(uid) = object.meta().uid.as_ref() else { return };
        if answers.dead.get(uid).is_some_and(|until| version(object) > *until) {
            answers.dead.remove(uid);
            answers.graves.retain(|grave| grave != uid);
        }
    }
}

impl<K: Resource> Answers<K> {
    fn buried(&self, object: &K) -> bool {
        object
            .meta()
            .uid
            .as_ref()
            .is_some_and(|uid| self.dead.contains_key(uid))
    }
}

/// Namespace and name.
fn place<K: Resource>(object: &K) -> (String, String) {
    let meta = object.meta();
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// Resource versions of one kind count up; what is no number is older than everything.
fn version<K: Resource>(object: &K) -> u64 {
    object
        .meta()
        .resource_version
        .as_deref()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
