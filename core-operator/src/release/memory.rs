//! What the process remembers of a release itself between reconciles. All of it can be lost: then it is read again.

use std::collections::HashSet;

use crds::ClusterStackRelease;
use jiff::{SignedDuration, Timestamp};
use operator_kit::object::{GroupKind, ObjectKey};
use planning::objects::RenderAttempts;
use planning::release::Controlled;

use crate::objects::{Memories, Memory, Remembered, lock};
use crate::wishes::Wishes;

/// Memory of one release, beside that of its objects.
#[derive(Default)]
pub(crate) struct ReleaseMemory {
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

    /// The kinds of what was rendered.
    pub(crate) fn kinds(&self) -> HashSet<GroupKind> {
        let rendered = self.rendering.iter().flat_map(|kept| kept.intents.keys());
        rendered.map(ObjectKey::group_kind).collect()
    }
}

impl Memory<ReleaseMemory> {
    /// Who asks for something wants to see what becomes of it now: waits after failures and fights end. Gives whether there is a wish that was not
    /// heard before.
    pub(crate) fn hear(&self, wishes: Wishes) -> bool {
        let mut own = lock(&self.own);
        let heard = own.wishes.hear(wishes);
        if heard {
            own.unrendered = None;
            drop(own);
            lock(&self.objects).try_again();
        }
        heard
    }
}

impl Memories<ClusterStackRelease, ReleaseMemory> {
    /// Whether an object may be the release's whose mark it carries. Nothing of a release is in another namespace: anybody may know the mark.
    pub(crate) fn may_have(&self, part_of: &str, key: &ObjectKey) -> bool {
        let is_beside = |namespace: Option<String>| namespace.as_deref() == Some(key.namespace.as_str());
        key.namespace.is_empty() || self.owner(part_of).is_some_and(|release| is_beside(release.namespace))
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::ObjectRef;

    use super::*;

    #[test]
    fn a_release_has_nothing_in_another_namespace() {
        let memories: Memories<ClusterStackRelease, ReleaseMemory> = Memories::default();
        let release = ObjectRef::new("docker-ferrol-1-34-v1").within("fleet");
        memories.of("release", &release, 1);
        for (namespace, expected) in [("fleet", true), ("", true), ("elsewhere", false)] {
            let key = ObjectKey::new("", "Secret", namespace, "a");
            assert_eq!(memories.may_have("release", &key), expected, "{namespace:?}");
        }
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
        let memory: Memory<ReleaseMemory> = Memory::default();
        for (wish, ends) in [
            (Wishes::test(None, None), false),
            (Wishes::test(Some("now"), None), true),
            (Wishes::test(Some("now"), None), false),
            (Wishes::test(Some("now"), Some("sha256:a")), true),
            (Wishes::test(Some("now"), Some("sha256:a")), false),
            (Wishes::test(None, Some("sha256:a")), false),
            (Wishes::test(Some("now"), Some("sha256:a")), true),
        ] {
            lock(&memory.objects).of(&key).reversals.push(Timestamp::UNIX_EPOCH);
            assert_eq!(memory.hear(wish.clone()), ends, "{wish:?}");
            assert_eq!(lock(&memory.objects).of(&key).reversals.is_empty(), ends, "{wish:?}");
        }
    }
}
