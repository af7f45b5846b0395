//! Whether the objects of a release may be installed, changed or removed at all.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::observed::{Provider, ReleaseObserved};
use super::without_files::is_without_files;
use crate::objects::{Decisions, Unrepaired};

/// Whether the objects may be created: the provider has done its part, or had when they were (told by the inventory, or by their marks). Marks can be
/// copied: only those count of objects that the release asks for.
pub(super) fn may_install(observed: &ReleaseObserved) -> bool {
    match (&observed.provider, observed.rendering.intents()) {
        (Provider::NotWanted | Provider::Found { ready: true, .. }, _) => true,
        _ if !observed.status.resources.is_empty() => true,
        (_, Some(intents)) => {
            let mut objects = observed.objects.iter();
            objects.any(|(key, object)| object.is_ours() && intents.contains_key(key))
        }
        (_, None) => false,
    }
}

/// The digest that the status pins, when something was applied and the source now holds another one.
pub(super) fn moved_from(observed: &ReleaseObserved) -> Option<&str> {
    if !observed.set().may_be_applied() {
        return None;
    }
    observed.assets.moved_from(&observed.status)
}

/// What becomes of the objects of a release that is wanted.
pub(super) fn installation(observed: &ReleaseObserved, now: Timestamp) -> Decisions {
    let set = observed.set();
    if is_without_files(observed) {
        set.watched(Unrepaired::WithoutFiles, now)
    } else if may_install(observed) && moved_from(observed).is_none() {
        set.installation(now)
    } else {
        Decisions::default()
    }
}

/// What becomes of the objects of a release that is being deleted: nothing before it is known that no Cluster uses the class. While Clusters do,
/// people want to know how the objects are.
pub(super) fn removal(observed: &ReleaseObserved, now: Timestamp) -> Decisions {
    let set = observed.set();
    match observed.used_by.as_ref().map(BTreeSet::is_empty) {
        None => set.untouched(),
        Some(false) => set.watched(Unrepaired::Deleting, now),
        Some(true) => set.removal(now),
    }
}
