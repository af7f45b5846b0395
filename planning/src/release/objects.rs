//! What becomes of all objects of a release: whether they may be installed, changed or removed at all, and then each of them.

use std::collections::{BTreeMap, BTreeSet};

use crds::policy::{DriftPolicy, PruneLimit};
use jiff::Timestamp;

use super::inventory::inventoried;
use super::object::{Sync, decide};
use super::observed::{ObjectObserved, Provider, ReleaseObserved, Rendering};
use super::prune::{Fate, fate, within_limit};
use super::reach::is_out_of_reach;
use super::watching::{Unrepaired, watched};
use super::without_files::is_without_files;
use crate::object_key::ObjectKey;

/// What was decided about the objects, before it becomes steps and a status.
#[derive(Default)]
pub(super) struct Objects {
    /// Objects that the rendering wants.
    pub(super) wanted: BTreeMap<ObjectKey, Sync>,
    /// Objects that have to go or are let go.
    pub(super) leftovers: BTreeMap<ObjectKey, Fate>,
    /// Leftovers that stay until somebody approves.
    pub(super) held: BTreeSet<ObjectKey>,
    /// What `approve-prune` has to say to let them go, where that is all they wait for.
    pub(super) asked: Option<String>,
    /// Leftovers that somebody has approved to delete, of which the status does not say so yet.
    pub(super) approved: BTreeSet<ObjectKey>,
}

/// Whether the objects may be created: the provider has done its part, or had when they were (told by the inventory, or by their marks). Marks can be
/// copied: only those count of objects that the release asks for.
pub(super) fn may_install(observed: &ReleaseObserved) -> bool {
    match (&observed.provider, &observed.rendering) {
        (Provider::NotWanted | Provider::Found { ready: true, .. }, _) => true,
        _ if !observed.status.resources.is_empty() => true,
        (_, Rendering::Rendered { intents }) => observed.objects.iter().any(|(key, object)| {
            let marked = object.seen.as_ref().is_some_and(|seen| seen.ours);
            marked && intents.contains_key(key)
        }),
        _ => false,
    }
}

/// Whether anything of the release may have been written. What the inventory only names was not, once a watch would show it and does not.
pub(super) fn may_be_applied(observed: &ReleaseObserved) -> bool {
    let written = |object: &ObjectObserved| {
        let ours = object.seen.as_ref().is_some_and(|seen| seen.ours);
        ours || object.served && !object.watched
    };
    let rows = &observed.status.resources;
    rows.iter().any(|row| !row.digest.is_empty()) || observed.objects.values().any(written)
}

/// The digest that the status pins, when something was applied and the source now holds another one.
pub(super) fn moved_from(observed: &ReleaseObserved) -> Option<&str> {
    if !may_be_applied(observed) {
        return None;
    }
    observed.assets.moved_from(&observed.status)
}

/// What becomes of fields that somebody else changes.
pub(super) fn drift_policy(observed: &ReleaseObserved) -> DriftPolicy {
    let policy = observed.spec.policy.as_ref();
    policy.map_or(DriftPolicy::default(), |policy| policy.drift)
}

/// What becomes of the objects of a release that is wanted.
pub(super) fn installation(observed: &ReleaseObserved, now: Timestamp) -> Objects {
    if is_without_files(observed) {
        return Objects {
            wanted: watched(observed, Unrepaired::WithoutFiles, now).collect(),
            ..Objects::default()
        };
    }
    let Rendering::Rendered { intents } = &observed.rendering else {
        return Objects::default();
    };
    if !may_install(observed) || moved_from(observed).is_some() {
        return Objects::default();
    }
    let policy = drift_policy(observed);
    let nothing = ObjectObserved::default();
    let wanted: BTreeMap<ObjectKey, Sync> = intents
        .iter()
        .map(|(key, intent)| {
            let object = observed.objects.get(key).unwrap_or(&nothing);
            let sync = decide(key, intent, object, inventoried(observed, key), policy, now);
            (key.clone(), sync)
        })
        .collect();
    let settled = wanted.values().all(|sync| sync.state.is_settled());
    let stale: BTreeSet<ObjectKey> = observed
        .objects
        .keys()
        .filter(|key| !intents.contains_key(*key))
        .cloned()
        .collect();
    let limit = observed
        .spec
        .policy
        .as_ref()
        .map_or(PruneLimit::default(), |policy| policy.prune_limit);
    if !settled {
        // What replaces a leftover has to stand before the leftover goes.
        return Objects {
            wanted,
            held: stale,
            ..Objects::default()
        };
    }
    Objects {
        wanted,
        ..within_limit(observed, fates(observed, &stale, now), limit)
    }
}

/// What becomes of the objects of a release that is being deleted: nothing before it is known that no Cluster uses the class. While Clusters do,
/// people want to know how the objects are.
pub(super) fn removal(observed: &ReleaseObserved, now: Timestamp) -> Objects {
    match &observed.used_by {
        None => Objects {
            held: observed.objects.keys().cloned().collect(),
            ..Objects::default()
        },
        Some(clusters) if !clusters.is_empty() => kept(observed, now),
        Some(_) => {
            let keys = observed.objects.keys().cloned().collect();
            Objects {
                leftovers: fates(observed, &keys, now),
                ..Objects::default()
            }
        }
    }
}

/// What the rendering asks for and nobody made is nothing that could stay.
fn kept(observed: &ReleaseObserved, now: Timestamp) -> Objects {
    let wanted: BTreeMap<ObjectKey, Sync> = watched(observed, Unrepaired::Deleting, now).collect();
    let ours = |object: &ObjectObserved| object.seen.as_ref().is_some_and(|seen| seen.ours);
    let unnamed = observed.objects.iter();
    let unnamed = unnamed.filter(|(key, object)| ours(object) && !wanted.contains_key(*key));
    Objects {
        held: unnamed.map(|(key, _)| key.clone()).collect(),
        wanted,
        ..Objects::default()
    }
}

fn fates(observed: &ReleaseObserved, keys: &BTreeSet<ObjectKey>, now: Timestamp) -> BTreeMap<ObjectKey, Fate> {
    let nothing = ObjectObserved::default();
    keys.iter()
        .map(|key| {
            let object = observed.objects.get(key).unwrap_or(&nothing);
            let fate = if is_out_of_reach(observed, key) {
                Fate::LeftAlone
            } else {
                fate(key, object, inventoried(observed, key), now)
            };
            (key.clone(), fate)
        })
        .collect()
}
