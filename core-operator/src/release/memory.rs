//! What the process remembers of releases between reconciles. All of it can be lost: then it is read or checked again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use planning::object_key::{GroupKind, ObjectKey};
use planning::release::{Controlled, Intent, KindScope, ObjectMemory, Read, RenderAttempts};

use crds::{ClusterStackRelease, labels};

use super::scopes::Scopes;

/// What people ask for in annotations of a release, and what has to be tried again because of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    requested_at: Option<String>,
    approved_loss: Option<String>,
}

impl Wishes {
    /// Those of a release.
    pub(crate) fn of(release: &ClusterStackRelease) -> Self {
        let annotation = |name| release.annotations().get(name).cloned();
        Self {
            requested_at: annotation(labels::REQUESTED_AT),
            approved_loss: annotation(labels::APPROVE_DATA_LOSS),
        }
    }
}

/// What a rendering asks for. The bodies are rendered again when they are needed.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    /// What it was made from.
    pub(crate) made_from: String,
    pub(crate) intents: Arc<BTreeMap<ObjectKey, Intent>>,
    /// Whether the objects of kinds that the release brings have namespaces.
    pub(crate) brought: Scopes,
    /// The kinds of which discovery did not say whether their objects have namespaces. When it does, objects may turn out to have other keys.
    pub(crate) unknown: BTreeSet<GroupKind>,
}

impl Remembered {
    /// Whether it is of these bytes, and discovery, which says this now, does not tell more of its kinds than it did.
    pub(crate) fn holds(&self, made_from: &str, scope_of: impl Fn(&GroupKind) -> KindScope) -> bool {
        self.made_from == made_from && self.unknown.iter().all(|kind| scope_of(kind) == KindScope::Unknown)
    }
}

/// Memory of one release. The lock is held for moments only, never across a request.
#[derive(Default)]
pub(crate) struct ReleaseMemory {
    /// By object. A node of the tree has room for eleven, and most releases have fewer: what is large lies beside it.
    pub(crate) objects: BTreeMap<ObjectKey, Box<ObjectMemory>>,
    /// The last rendering.
    pub(crate) rendering: Option<Remembered>,
    /// The last rendering that failed: what it was made from, what was said, and how often it was tried, if the reason may pass.
    pub(crate) unrendered: Option<(String, String, Option<RenderAttempts>)>,
    /// When the API server itself was asked last whether a Cluster uses the release, which is to go, and said that none does.
    pub(crate) unused: Option<Timestamp>,
    /// The provider's object that the release became the owner of last.
    pub(crate) controlled: Option<Controlled>,
    /// When its status was last written.
    pub(crate) status_written_at: Option<Timestamp>,
    /// How often in a row the release object itself could not be written.
    pub(crate) refusals: u32,
    /// The last wishes that were heard.
    wishes: Wishes,
}

/// How long an answer that nobody uses a release is believed: for the passes that it usually takes to delete one, and no longer, because
/// a deletion may hang.
const BELIEVED: SignedDuration = SignedDuration::from_secs(10);

impl ReleaseMemory {
    /// Whether the API server said a moment ago that no Cluster uses the release.
    pub(crate) fn is_unused(&self, now: Timestamp) -> bool {
        // An answer from the future is one from before the clock was set.
        let age = self.unused.map(|asked| now.duration_since(asked));
        age.is_some_and(|age| !age.is_negative() && age < BELIEVED)
    }

    /// When the status was last written, and of which object of the provider the release became the owner last.
    pub(crate) fn last_writes(&self) -> (Option<Timestamp>, Option<Controlled>) {
        (self.status_written_at, self.controlled.clone())
    }

    /// How often an object has changed, for a read of it that begins.
    pub(crate) fn changes(&mut self, key: &ObjectKey) -> u64 {
        self.objects.entry(key.clone()).or_default().changes
    }

    /// Remembers the answer to a read that began after so many changes; false after more of them, because it may be older than what was told.
    pub(crate) fn remember_read(&mut self, key: &ObjectKey, changes: u64, read: Read) -> bool {
        let object = self.objects.entry(key.clone()).or_default();
        let is_current = object.changes == changes;
        object.read = is_current.then_some(read);
        is_current
    }

    /// Who asks for something wants to see what becomes of it now: waits after failures and fights end. A wish that is taken back asks for
    /// nothing. Gives whether there is a wish that was not heard before.
    pub(crate) fn hear(&mut self, wishes: Wishes) -> bool {
        let new = |now: &Option<String>, before: &Option<String>| now.is_some() && now != before;
        let heard = new(&wishes.requested_at, &self.wishes.requested_at)
            || new(&wishes.approved_loss, &self.wishes.approved_loss);
        self.wishes = wishes;
        if heard {
            self.unrendered = None;
            for object in self.objects.values_mut() {
                object.failure = None;
                object.reversals.clear();
            }
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(requested_at: Option<&str>, approved_loss: Option<&str>) -> Wishes {
        Wishes {
            requested_at: requested_at.map(str::to_owned),
            approved_loss: approved_loss.map(str::to_owned),
        }
    }

    #[test]
    fn rendering_with_kinds_that_are_not_served_is_remembered_until_one_of_them_is() {
        let group = "harbor.example.org";
        let (one, other) = (GroupKind::new(group, "Quay"), GroupKind::new(group, "Crane"));
        let rendering = Remembered {
            made_from: "a".to_owned(),
            intents: Arc::default(),
            brought: Scopes::new(),
            unknown: BTreeSet::from([one, other.clone()]),
        };
        assert!(rendering.holds("a", |_| KindScope::Unknown));
        assert!(!rendering.holds("b", |_| KindScope::Unknown));
        for scope in [KindScope::ClusterWide, KindScope::Namespaced] {
            let one_is_served = |kind: &GroupKind| if *kind == other { scope } else { KindScope::Unknown };
            assert!(!rendering.holds("a", one_is_served), "{scope:?}");
        }
    }

    #[test]
    fn a_shard_that_was_another_process_s_is_begun_without_memory() {
        let memories = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        let of = |term| memories.of("release", &release, term);
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let first = of(1);
        first.lock().unwrap().unused = Some(Timestamp::UNIX_EPOCH);
        first.lock().unwrap().objects.entry(key).or_default();
        assert!(of(1).lock().unwrap().unused.is_some(), "the shard is the same");
        let again = of(2);
        assert!(again.lock().unwrap().unused.is_none());
        assert!(again.lock().unwrap().objects.is_empty());
        // A pass of the first term that ends late remembers nothing for the second.
        first.lock().unwrap().unused = Some(Timestamp::UNIX_EPOCH);
        assert!(of(2).lock().unwrap().unused.is_none());
    }

    #[test]
    fn a_release_has_nothing_in_another_namespace() {
        let memories = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        memories.of("release", &release, 1);
        for (namespace, expected) in [("fleet", true), ("", true), ("elsewhere", false)] {
            let key = ObjectKey::new("", "Secret", namespace, "a");
            assert_eq!(memories.may_have("release", &key), expected, "{namespace:?}");
        }
    }

    #[test]
    fn an_answer_to_a_read_that_began_before_a_change_is_not_remembered() {
        let memories = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        let memory = memories.of("release", &release, 1);
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let read = |meanwhile: &dyn Fn()| {
            let changes = memory.lock().unwrap().changes(&key);
            meanwhile();
            let is_current = memory.lock().unwrap().remember_read(&key, changes, Read::Absent);
            assert_eq!(memory.lock().unwrap().objects[&key].read.is_some(), is_current);
            is_current
        };
        let change = |name: &str| drop(memories.changed("release", &ObjectKey::new("", "Secret", "fleet", name)));
        assert!(!read(&|| change("a")));
        assert!(read(&|| change("b")), "another one changed");
        change("a");
        assert_eq!(memory.lock().unwrap().objects[&key].read, None);
    }

    #[test]
    fn that_nobody_uses_a_release_is_believed_for_a_moment() {
        let asked = Timestamp::UNIX_EPOCH;
        let memory = ReleaseMemory {
            unused: Some(asked),
            ..ReleaseMemory::default()
        };
        for (seconds, believed) in [(0, true), (9, true), (10, false), (3600, false), (-1, false)] {
            let now = asked + SignedDuration::from_secs(seconds);
            assert_eq!(memory.is_unused(now), believed, "after {seconds} s");
        }
        assert!(!ReleaseMemory::default().is_unused(asked));
    }

    #[test]
    fn a_wish_ends_waits_once() {
        let key = ObjectKey::new("", "Secret", "fleet", "a");
        let mut memory = ReleaseMemory::default();
        for (wish, ends) in [
            (wishes(None, None), false),
            (wishes(Some("now"), None), true),
            (wishes(Some("now"), None), false),
            (wishes(Some("now"), Some("sha256:a")), true),
            (wishes(Some("now"), Some("sha256:a")), false),
            (wishes(None, Some("sha256:a")), false),
            (wishes(Some("now"), Some("sha256:a")), true),
        ] {
            let reversals = &mut memory.objects.entry(key.clone()).or_default().reversals;
            reversals.push(Timestamp::UNIX_EPOCH);
            assert_eq!(memory.hear(wish.clone()), ends, "{wish:?}");
            assert_eq!(memory.objects[&key].reversals.is_empty(), ends, "{wish:?}");
        }
    }
}

/// Memories of all releases, by the value of the label that marks their objects.
#[derive(Default)]
pub(crate) struct Memories {
    by_part_of: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    release: ObjectRef<ClusterStackRelease>,
    /// Of the shard in which it is.
    term: u64,
    memory: Arc<Mutex<ReleaseMemory>>,
}

impl Memories {
    /// The memory of a release, empty at first and with every term of its shard.
    ///
    /// What is of an earlier term goes here, where it would be used, and not when the shard was given away: passes of that time had to end
    /// first and remembered to the last.
    pub(crate) fn of(
        &self,
        part_of: &str,
        release: &ObjectRef<ClusterStackRelease>,
        term: u64,
    ) -> Arc<Mutex<ReleaseMemory>> {
        let mut entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Entry {
            release: release.clone(),
            term,
            memory: Arc::default(),
        };
        let entry = entries.entry(part_of.to_owned()).or_insert_with(new);
        if entry.release.extra.uid != release.extra.uid {
            // Another release of the same name, made before anybody saw that the first was gone: nothing of that one is true of it.
            *entry = new();
        }
        if entry.term != term {
            // Others worked on it in between.
            *entry = new();
        }
        Arc::clone(&entry.memory)
    }

    /// Whether an object may be the release's whose mark it carries. Nothing of a release is in another namespace: anybody may know the mark.
    pub(crate) fn may_have(&self, part_of: &str, key: &ObjectKey) -> bool {
        let entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let namespace = entries.get(part_of).map(|entry| entry.release.namespace.as_deref());
        key.namespace.is_empty() || namespace == Some(Some(key.namespace.as_str()))
    }

    /// Forgets what was read of an object, because it has changed, and says whose it is.
    pub(crate) fn changed(&self, part_of: &str, key: &ObjectKey) -> Option<ObjectRef<ClusterStackRelease>> {
        let entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(part_of)?;
        let mut memory = entry.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = memory.objects.get_mut(key) {
            object.read = None;
            object.changes += 1;
        }
        Some(entry.release.clone())
    }

    /// The kinds of all objects that are remembered.
    pub(crate) fn kinds(&self) -> HashSet<GroupKind> {
        let entries = self.by_part_of.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds = HashSet::new();
        for entry in entries.values() {
            let memory = entry.memory.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.extend(memory.objects.keys().map(ObjectKey::group_kind));
            let rendered = memory.rendering.iter().flat_map(|kept| kept.intents.keys());
            kinds.extend(rendered.map(ObjectKey::group_kind));
        }
        kinds
    }

    /// Forgets a release that is gone.
    pub(crate) fn forget(&self, part_of: &str) {
        self.by_part_of
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(part_of);
    }
}
