//! What the process remembers of releases between reconciles. All of it can be lost: then it is read or checked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::ObjectRef;
use planning::object_key::ObjectKey;
use planning::release::{Intent, ObjectMemory, RenderAttempts};

use crds::ClusterStackRelease;

/// Memory of one release. The lock is held for moments only, never across a request.
#[derive(Default)]
pub(crate) struct ReleaseMemory {
    /// By object.
    pub(crate) objects: BTreeMap<ObjectKey, ObjectMemory>,
    /// The last rendering: what it was made from, and what it asks for. The bodies are rendered again when they are needed.
    pub(crate) rendering: Option<(String, Arc<BTreeMap<ObjectKey, Intent>>)>,
    /// The last rendering that failed for a reason that may pass: what it was made from, what was said, and how often it was tried.
    pub(crate) unrendered: Option<(String, String, RenderAttempts)>,
    /// How often in a row the release object itself could not be written.
    pub(crate) refusals: u32,
    /// The last wish for a reconcile that was heard.
    requested_at: Option<String>,
}

impl ReleaseMemory {
    /// Who asks for a reconcile wants to see what becomes of it now: waits after failures and fights end.
    pub(crate) fn hear(&mut self, requested_at: Option<&str>) {
        if requested_at.is_none() || self.requested_at.as_deref() == requested_at {
            return;
        }
        self.requested_at = requested_at.map(str::to_owned);
        self.unrendered = None;
        for object in self.objects.values_mut() {
            object.failure = None;
            object.reversals.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_for_a_reconcile_ends_waits_once() {
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let mut memory = ReleaseMemory::default();
        let fight = |memory: &mut ReleaseMemory| {
            let reversals = &mut memory.objects.entry(key.clone()).or_default().reversals;
            reversals.push(jiff::Timestamp::UNIX_EPOCH);
        };
        fight(&mut memory);
        memory.hear(None);
        assert_eq!(memory.objects[&key].reversals.len(), 1);
        memory.hear(Some("now"));
        assert!(memory.objects[&key].reversals.is_empty());
        fight(&mut memory);
        memory.hear(Some("now"));
        assert_eq!(memory.objects[&key].reversals.len(), 1);
    }
}

/// Memories of all releases, by the value of the label that marks their objects.
#[derive(Default)]
pub(crate) struct Memories {
    by_part_of: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    release: ObjectRef<ClusterStackRelease>,
    memory: Arc<Mutex<ReleaseMemory>>,
}

impl Memories {
    /// The memory of a release, empty at first.
    pub(crate) fn of(&self, part_of: &str, release: &ObjectRef<ClusterStackRelease>) -> Arc<Mutex<ReleaseMemory>> {
        let mut entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(part_of.to_owned()).or_insert_with(|| Entry {
            release: release.clone(),
            memory: Arc::default(),
        });
        Arc::clone(&entry.memory)
    }

    /// Forgets what was read of an object, because it has changed, and says whose it is.
    pub(crate) fn changed(&self, part_of: &str, key: &ObjectKey) -> Option<ObjectRef<ClusterStackRelease>> {
        let entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(part_of)?;
        let mut memory = entry.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = memory.objects.get_mut(key) {
            object.read = None;
        }
        Some(entry.release.clone())
    }

    /// Forgets a release that is gone.
    pub(crate) fn forget(&self, part_of: &str) {
        self.by_part_of
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(part_of);
    }
}
