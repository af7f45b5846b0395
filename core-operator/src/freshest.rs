//! Our own kinds as last seen, by the watch or in the answer to our own last write, whichever is newer.
//!
//! A watch tells of our own write a moment after the answer did. Without this, a reconcile in that moment would decide on a past
//! that it made itself, and write again.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::runtime::reflector::{Lookup, ObjectRef, Store};
use kube::runtime::watcher::Event;
use tokio::sync::SetOnce;

/// How many deleted objects are remembered, so that a late answer does not bring one back: far more than writes are under way at any time.
const GRAVES: usize = 1024;

/// A watch's store with our own newer answers laid over it.
pub(crate) struct Freshest<K>
where
    K: 'static + Lookup,
    K::DynamicType: Hash + Eq + Clone,
{
    store: Store<K>,
    answers: Mutex<Answers<K>>,
    listed: SetOnce<()>,
    /// By what an object is looked for.
    handles: fn(&K) -> Vec<String>,
    index: Mutex<Index>,
}

struct Answers<K> {
    newer: HashMap<Place, Answer<K>>,
    graves: VecDeque<String>,
    /// By uid the version up to which an object is dead. Only the watch brings one back to life: a newer one, which its selector may have lost for a
    /// while, and any that is in a list that began after the burial.
    dead: HashMap<String, u64>,
    /// By uid what was known when the list that is under way began.
    doubted: HashMap<Option<String>, Arc<K>>,
    /// The uids that were dead when it began, and have not been buried since.
    risen: HashSet<String>,
}

/// What the API server answered to a write.
struct Answer<K> {
    object: Arc<K>,
    /// Whether the watch is wrong about this very version.
    corrects: bool,
}

impl<K: Resource> Answer<K> {
    fn outranks(&self, watched: &K) -> bool {
        let (answered, watched) = (version(self.object.as_ref()), version(watched));
        answered > watched || (self.corrects && answered == watched)
    }
}

impl<K> Freshest<K>
where
    K: 'static + Resource<DynamicType = ()> + Clone,
{
    /// By name alone.
    pub(crate) fn new(store: Store<K>) -> Self {
        Self::by(store, |_| Vec::new())
    }

    /// By handles, too.
    pub(crate) fn by(store: Store<K>, handles: fn(&K) -> Vec<String>) -> Self {
        let answers = Answers {
            newer: HashMap::new(),
            graves: VecDeque::new(),
            dead: HashMap::new(),
            doubted: HashMap::new(),
            risen: HashSet::new(),
        };
        Self {
            store,
            answers: Mutex::new(answers),
            listed: SetOnce::new(),
            handles,
            index: Mutex::default(),
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
                self.exhume(object, matches!(event, Event::InitApply(_)));
                self.file(object);
                Vec::new()
            }
        };
        for object in &gone {
            self.bury(object);
        }
        gone
    }

    /// Makes an object be found by its handles.
    fn file(&self, object: &K) {
        let handles = (self.handles)(object);
        if !handles.is_empty() {
            self.index().add(&place(object), handles);
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A list begins. What is known now, the answers to our writes and the burials too, is older than it.
    fn doubt(&self) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = &mut *answers;
        answers.risen = answers.dead.keys().cloned().collect();
        answers.doubted.clear();
        let answered = answers.newer.values().map(|answer| &answer.object);
        for object in self.store.state().iter().chain(answered) {
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
        answers.risen.clear();
        let mut doubted = std::mem::take(&mut answers.doubted);
        // Of an etcd that was restored the versions are lower than what we were answered before.
        answers.newer.retain(|_, answer| {
            let known = doubted.get(&answer.object.meta().uid);
            known.is_none_or(|known| version(answer.object.as_ref()) > version(known.as_ref()))
        });
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
            (Some(watched), Some(answer)) if answer.outranks(&watched) => Some(Arc::clone(&answer.object)),
            (Some(watched), Some(_)) => {
                answers.newer.remove(&slot);
                Some(watched)
            }
            (None, answer) => answer.map(|answer| Arc::clone(&answer.object)),
            (watched, None) => watched,
        }
    }

    /// The newest sight of every object in a namespace that the test accepts.
    pub(crate) fn select(&self, namespace: &str, accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let accept = |object: &K| object.meta().namespace.as_deref() == Some(namespace) && accept(object);
        let mut found: HashMap<Place, Arc<K>> = HashMap::new();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for object in self.store.state() {
            if !answers.buried(&object) && accept(&object) {
                found.insert(place(object.as_ref()), object);
            }
        }
        for (slot, answer) in &answers.newer {
            let newer = found.get(slot).is_none_or(|watched| answer.outranks(watched));
            if newer && accept(&answer.object) {
                found.insert(slot.clone(), Arc::clone(&answer.object));
            }
        }
        found.into_values().collect()
    }

    /// The newest sight of every object in a namespace that has one of these handles, or had, and that the test accepts. Others are not looked at.
    pub(crate) fn find(&self, namespace: &str, handles: &[String], accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.at(Some(namespace), handles, accept)
    }

    /// The same in all namespaces.
    pub(crate) fn find_everywhere(&self, handles: &[String], accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.at(None, handles, accept)
    }

    fn at(&self, within: Option<&str>, handles: &[String], accept: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        // A statement of its own: whoever notes an answer holds the answers and wants the index, so nobody may hold the index and want the answers.
        let places = self.index().places(within, handles);
        let objects = places.iter().filter_map(|(namespace, name)| self.get(namespace, name));
        objects.filter(|object| accept(object)).collect()
    }

    /// Every object that the watch has shown.
    pub(crate) fn watched(&self) -> Vec<Arc<K>> {
        self.store.state()
    }

    /// Takes the answer to a write of ours.
    pub(crate) fn note(&self, object: K) {
        self.take_answer(object, false);
    }

    /// Takes the answer to a write of ours that was due by what the watch shows, and changed nothing. So the watch is wrong about this version, until it
    /// shows a newer one: while a CRD changes, a watch that runs leaves out what the old one did not have, and it does not come back to it.
    pub(crate) fn correct(&self, object: K) {
        self.take_answer(object, true);
    }

    fn take_answer(&self, object: K, corrects: bool) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.buried(&object) {
            return;
        }
        self.file(&object);
        let slot = place(&object);
        let object = Arc::new(object);
        answers.newer.insert(slot, Answer { object, corrects });
    }

    /// Forgets an object that is gone.
    pub(crate) fn bury(&self, object: &K) {
        self.lay_down(object);
        let slot = place(object);
        // Not while the answer to a write is noted.
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = self.store.get(&ObjectRef::new(&slot.1).within(&slot.0));
        let is_there = watched.is_some_and(|watched| !answers.buried(&watched)) || answers.newer.contains_key(&slot);
        if !is_there {
            self.index().remove(&slot);
        }
    }

    fn lay_down(&self, object: &K) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = place(object);
        let mut until = version(object);
        if let Some(answer) = answers.newer.get(&slot)
            && answer.object.meta().uid == object.meta().uid
        {
            until = until.max(version(answer.object.as_ref()));
            answers.newer.remove(&slot);
        }
        let Some(uid) = object.meta().uid.clone() else { return };
        answers.risen.remove(&uid);
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

    /// The watch shows an object; it lives if this is later than its burial. Of an etcd that was restored the versions are lower than before: what a
    /// list shows lives if it began after the burial.
    fn exhume(&self, object: &K, listed: bool) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(uid) = object.meta().uid.as_ref() else { return };
        let Some(until) = answers.dead.get(uid) else { return };
        if version(object) > *until || (listed && answers.risen.contains(uid)) {
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

/// Places by handle. Says too much rather than too little: an object that has changed keeps the handles that it had, because what is told last need not be
/// the newest.
///
/// Nearly every handle is of one object, so that a map in a map would be nearly empty: each pair is one element, and each text is kept once.
#[derive(Default)]
struct Index {
    by_handle: BTreeSet<(Arc<str>, Arc<Place>)>,
    by_place: HashMap<Arc<Place>, Vec<Arc<str>>>,
}

/// Namespace and name.
type Place = (String, String);

impl Index {
    fn add(&mut self, place: &Place, handles: Vec<String>) {
        let known = self.by_place.get_key_value(place);
        let place = known.map_or_else(|| Arc::new(place.clone()), |(place, _)| Arc::clone(place));
        for handle in handles {
            let same = self.after(&handle, "").next();
            let handle = same.map_or_else(|| Arc::from(handle.as_str()), |(same, _)| Arc::clone(same));
            if self.by_handle.insert((Arc::clone(&handle), Arc::clone(&place))) {
                let handles = self.by_place.entry(Arc::clone(&place)).or_default();
                handles.reserve_exact(1);
                handles.push(handle);
            }
        }
    }

    fn remove(&mut self, place: &Place) {
        let Some((place, handles)) = self.by_place.remove_entry(place) else {
            return;
        };
        for handle in handles {
            self.by_handle.remove(&(handle, Arc::clone(&place)));
        }
    }

    /// Those in one namespace, or in all.
    fn places(&self, within: Option<&str>, handles: &[String]) -> BTreeSet<Place> {
        let from = within.unwrap_or_default();
        let is_within = move |place: &&Arc<Place>| within.is_none_or(|namespace| place.0 == namespace);
        let found = handles.iter().flat_map(|handle| {
            let places = self.after(handle, from).map(|(_, place)| place);
            places.take_while(is_within)
        });
        found.map(|place| place.as_ref().clone()).collect()
    }

    /// The elements of a handle, from this namespace on.
    fn after(&self, handle: &str, namespace: &str) -> impl Iterator<Item = &(Arc<str>, Arc<Place>)> {
        let first = (Arc::from(handle), Arc::new((namespace.to_owned(), String::new())));
        let of_handle = Arc::clone(&first.0);
        self.by_handle
            .range(first..)
            .take_while(move |(handle, _)| *handle == of_handle)
    }
}

fn place<K: Resource>(object: &K) -> Place {
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
