//! What this process remembers of one release object: what failed, and when its status was written. Nothing of it survives a restart, and nothing has to.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crds::providers::Provider;
use jiff::Timestamp;
use planning::stack::ActionFailure;

/// What is remembered of one object.
#[derive(Default)]
pub(super) struct ReleaseMemory {
    /// Actions that failed last, by their subject.
    pub(super) failures: BTreeMap<String, ActionFailure>,
    /// When the status was written last.
    pub(super) written_at: Option<Timestamp>,
    /// How often in a row it could not be written.
    refusals: u32,
    /// The last request for another look.
    requested: Option<String>,
}

impl ReleaseMemory {
    /// Somebody asks for another look; says whether that is new. What failed does not count any more then.
    pub(super) fn hear(&mut self, requested: Option<&String>) -> bool {
        let is_new = requested.is_some() && self.requested.as_ref() != requested;
        self.requested = requested.cloned();
        if is_new {
            self.failures.clear();
        }
        is_new
    }

    /// An action was done, or was not.
    pub(super) fn acted(&mut self, subject: &str, outcome: Result<(), String>, now: Timestamp) {
        let Err(message) = outcome else {
            self.failures.remove(subject);
            return;
        };
        let attempts = self.failures.get(subject).map_or(0, |failure| failure.attempts);
        let failure = ActionFailure {
            message,
            attempts: attempts.saturating_add(1),
            at: now,
        };
        self.failures.insert(subject.to_owned(), failure);
    }

    pub(super) fn written(&mut self, now: Timestamp) {
        self.written_at = Some(now);
        self.refusals = 0;
    }

    /// The status could not be written; how often in a row.
    pub(super) fn refused(&mut self) -> u32 {
        self.refusals = self.refusals.saturating_add(1);
        self.refusals
    }
}

type Place = (Provider, String, String);

/// The uid of an object, and what is remembered of it.
type Known = (String, Arc<Mutex<ReleaseMemory>>);

/// The memories of all release objects. A memory is one object's in one life of it.
#[derive(Default)]
pub(crate) struct Memories(Mutex<HashMap<Place, Known>>);

impl Memories {
    pub(super) fn of(&self, provider: Provider, namespace: &str, name: &str, uid: &str) -> Arc<Mutex<ReleaseMemory>> {
        let mut memories = self.entries();
        let entry = memories
            .entry((provider, namespace.to_owned(), name.to_owned()))
            .or_default();
        if entry.0 != uid {
            *entry = (uid.to_owned(), Arc::default());
        }
        Arc::clone(&entry.1)
    }

    pub(super) fn forget(&self, provider: Provider, namespace: &str, name: &str) {
        self.entries()
            .remove(&(provider, namespace.to_owned(), name.to_owned()));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A memory is never held across a wait.
pub(super) fn lock(memory: &Mutex<ReleaseMemory>) -> MutexGuard<'_, ReleaseMemory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_count_until_it_works_or_somebody_asks() {
        let now = Timestamp::UNIX_EPOCH;
        let mut memory = ReleaseMemory::default();
        let attempts = |memory: &ReleaseMemory| memory.failures.get("one").map(|failure| failure.attempts);
        memory.acted("one", Err("no".to_owned()), now);
        memory.acted("one", Err("no".to_owned()), now);
        assert_eq!(attempts(&memory), Some(2));
        memory.acted("one", Ok(()), now);
        assert_eq!(attempts(&memory), None);
        memory.acted("one", Err("no".to_owned()), now);
        let request = "now".to_owned();
        assert!(memory.hear(Some(&request)) && !memory.hear(Some(&request)));
        assert_eq!(attempts(&memory), None);
    }

    #[test]
    fn another_life_of_an_object_has_another_memory() {
        let memories = Memories::default();
        let of = |uid| memories.of(Provider::FileStore, "fleet", "one", uid);
        lock(&of("1")).refused();
        assert_eq!(lock(&of("1")).refused(), 2);
        assert_eq!(lock(&of("2")).refused(), 1);
    }
}
