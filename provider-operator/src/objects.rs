//! The objects of one kind as last seen: by the watch, or in the answer to a write of our own, whichever is newer. A watch tells of our own write a
//! moment after the answer did, and who decides in between would decide on a past that it made itself. Decides nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::labels::DELETE_FOR_MOVE;
use crds::providers::Provider;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use tokio::sync::SetOnce;
use tokio::time::Instant;

/// How long it is remembered that an object went to another management cluster: longer than `clusterctl` takes to move what it belongs to.
const MOVED: Duration = Duration::from_mins(15);

/// One image object of the cluster, in this life of it: another one of the same name has another uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectId {
    /// Whose kind it is of.
    pub(crate) provider: Provider,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// `metadata.uid`.
    pub(crate) uid: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            provider,
            namespace,
            name,
            uid: _,
        } = self;
        write!(formatter, "{} {namespace}/{name}", provider.definition().image_kind)
    }
}

/// Namespace and name.
type Place = (String, String);

/// The objects of one kind.
pub(crate) struct Objects {
    resource: ApiResource,
    store: Store<DynamicObject>,
    answers: Mutex<HashMap<Place, Arc<DynamicObject>>>,
    /// Those that `clusterctl` deleted here when it had made them elsewhere, and when that was.
    moved: Mutex<HashMap<Place, Instant>>,
    listed: SetOnce<()>,
}

impl Objects {
    pub(crate) fn new(store: Store<DynamicObject>, resource: ApiResource) -> Self {
        Self {
            resource,
            store,
            answers: Mutex::default(),
            moved: Mutex::default(),
            listed: SetOnce::new(),
        }
    }

    /// Waits until the watch has listed everything: before that, absence means nothing.
    pub(crate) async fn listed(&self) {
        self.listed.wait().await;
    }

    /// Whether [`Self::listed`] would return at once.
    pub(crate) fn is_listed(&self) -> bool {
        self.listed.initialized()
    }

    /// Takes what the watch tells, after the store has.
    pub(crate) fn take(&self, event: &Event<DynamicObject>) {
        match event {
            Event::Delete(object) => {
                drop(self.answers().remove(&place(object)));
                if object.annotations().contains_key(DELETE_FOR_MOVE) {
                    self.moved().insert(place(object), Instant::now());
                }
            }
            Event::InitDone => {
                // What went while the watch was interrupted, no event tells of.
                self.answers().retain(|place, _| self.watched(place).is_some());
                // Later lists say nothing new.
                let _ = self.listed.set(());
            }
            Event::Init => {}
            // Whoever brings it back wants it here.
            Event::InitApply(object) | Event::Apply(object) => drop(self.moved().remove(&place(object))),
        }
    }

    /// The names of objects of this namespace that went to another management cluster, and how long that is still remembered.
    pub(crate) fn moved_from(&self, namespace: &str) -> Vec<(String, Duration)> {
        let mut moved = self.moved();
        moved.retain(|_, at| at.elapsed() < MOVED);
        let here = moved.iter().filter(|((of, _), _)| of == namespace);
        here.map(|((_, name), at)| (name.clone(), MOVED.saturating_sub(at.elapsed())))
            .collect()
    }

    /// What the API server answered to a write. An answer that comes late, behind a newer one, is none.
    pub(crate) fn note(&self, object: DynamicObject) {
        let (mut answers, place) = (self.answers(), place(&object));
        if answers
            .get(&place)
            .is_none_or(|known| version(known) <= version(&object))
        {
            answers.insert(place, Arc::new(object));
        }
    }

    /// It is gone, or about to go by our own write.
    pub(crate) fn forget(&self, object: &DynamicObject) {
        self.answers().remove(&place(object));
    }

    /// The newest sight of one object.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let place = (namespace.to_owned(), name.to_owned());
        let mut answers = self.answers();
        match (self.watched(&place), answers.get(&place)) {
            (Some(watched), Some(answer)) if version(answer) > version(&watched) => Some(Arc::clone(answer)),
            (Some(watched), Some(_)) => {
                answers.remove(&place);
                Some(watched)
            }
            (None, answer) => answer.cloned(),
            (watched, None) => watched,
        }
    }

    /// The newest sight of all objects of a namespace, sorted by name.
    pub(crate) fn all_in(&self, namespace: &str) -> Vec<Arc<DynamicObject>> {
        let watched = self.store.state();
        let mut places: Vec<Place> = watched.iter().map(|object| place(object)).collect();
        places.extend(self.answers().keys().cloned());
        places.retain(|place| place.0 == namespace);
        places.sort();
        places.dedup();
        let found = places.iter().filter_map(|(namespace, name)| self.get(namespace, name));
        found.collect()
    }

    /// What the watch has, for who counts.
    pub(crate) fn watched_now(&self) -> Vec<Arc<DynamicObject>> {
        self.store.state()
    }

    /// By what drivers are woken.
    pub(crate) fn reference(&self, namespace: &str, name: &str) -> ObjectRef<DynamicObject> {
        ObjectRef::new_with(name, self.resource.clone()).within(namespace)
    }

    pub(crate) fn resource(&self) -> &ApiResource {
        &self.resource
    }

    fn watched(&self, place: &Place) -> Option<Arc<DynamicObject>> {
        self.store.get(&self.reference(&place.0, &place.1))
    }

    fn moved(&self) -> MutexGuard<'_, HashMap<Place, Instant>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<Place, Arc<DynamicObject>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(object: &DynamicObject) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn version(object: &DynamicObject) -> u64 {
    let version = object.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use kube::runtime::reflector::store::Writer;

    use super::*;

    fn object(name: &str, version: &str) -> DynamicObject {
        let mut object = DynamicObject::new(name, &resource()).within("fleet");
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    fn resource() -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Lathe"))
    }

    #[test]
    fn the_newer_of_watch_and_answer_is_seen_and_what_went_is_not() {
        let mut writer = Writer::new(resource());
        let objects = Objects::new(writer.as_reader(), resource());
        let mut tell = |event: Event<DynamicObject>| {
            writer.apply_watcher_event(&event);
            objects.take(&event);
        };
        let seen = || {
            let seen = objects.all_in("fleet").into_iter();
            seen.map(|object| object.metadata.resource_version.clone().unwrap_or_default())
                .collect::<Vec<_>>()
        };
        assert!(!objects.is_listed());
        tell(Event::Init);
        tell(Event::InitApply(object("one", "9")));
        tell(Event::InitDone);
        assert!(objects.is_listed());
        objects.note(object("one", "11"));
        objects.note(object("two", "12"));
        objects.note(object("one", "10"));
        assert_eq!(seen(), ["11", "12"], "an answer that comes late is an old one");
        tell(Event::Apply(object("one", "13")));
        tell(Event::Apply(object("two", "12")));
        assert_eq!(seen(), ["13", "12"]);
        tell(Event::Delete(object("two", "14")));
        assert_eq!(seen(), ["13"]);
        objects.note(object("three", "15"));
        tell(Event::Init);
        tell(Event::InitApply(object("one", "13")));
        tell(Event::InitDone);
        assert_eq!(seen(), ["13"], "what is in no list is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn what_went_to_another_management_cluster_is_remembered_until_it_is_back_or_nobody_need_know() {
        let mut writer = Writer::new(resource());
        let objects = Objects::new(writer.as_reader(), resource());
        let mut tell = |event: Event<DynamicObject>| {
            writer.apply_watcher_event(&event);
            objects.take(&event);
        };
        let moved = || {
            let names = objects.moved_from("fleet").into_iter().map(|(name, _)| name);
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        let leaving = |name: &str| {
            let mut object = object(name, "5");
            object
                .annotations_mut()
                .insert(DELETE_FOR_MOVE.to_owned(), String::new());
            object
        };
        tell(Event::Delete(object("deleted", "5")));
        tell(Event::Delete(leaving("one")));
        tell(Event::Delete(leaving("two")));
        assert_eq!(moved(), ["one", "two"]);
        assert_eq!(objects.moved_from("other"), []);
        tell(Event::Apply(object("two", "6")));
        assert_eq!(moved(), ["one"]);
        tokio::time::advance(MOVED).await;
        assert_eq!(moved(), Vec::<String>::new());
    }
}
