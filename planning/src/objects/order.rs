//! In which order the actions on objects are performed, and where the status has to be written in between.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::action::{Action, ObjectAction, Step};
use super::decisions::Decisions;
use super::inventory::Inventoried;
use super::observed::Intent;
use super::prune::Fate;
use super::set::ObjectSet;
use super::sync::Sync;
use crate::object_key::{GroupKind, ObjectKey};
use crate::waves::{Wave, wave_of};

impl Decisions {
    /// The actions in order: looks, then applications wave by wave, then deletions.
    pub fn steps<Own>(&self, set: &ObjectSet<'_>) -> Vec<Step<Own>> {
        let mut steps: Vec<Step<Own>> = Vec::new();
        steps.extend(looks(self));
        if let Some(intents) = set.intents {
            steps.extend(applications(intents, self));
        }
        steps.extend(deletions(self));
        steps
    }
}

/// Puts a write of the owner's status before the first write of an object that the inventory does not name, and before the first deletion of those that it
/// does not call approved. With `unrecorded` the status says something else yet that has to be in it before any object is written: from which files they
/// are made, for example.
pub fn record_before_writes<Own>(
    set: &ObjectSet<'_>,
    decisions: &Decisions,
    steps: &mut Vec<Step<Own>>,
    unrecorded: bool,
    record: impl FnOnce() -> Own,
) {
    let mut applied = decisions.wanted.iter().filter(|(_, sync)| sync.is_apply());
    let is_new = applied.any(|(key, _)| unrecorded || set.inventoried(key) == Inventoried::No);
    let first = |is_write: fn(&ObjectAction) -> bool| steps.iter().position(|step| step.on_objects().any(is_write));
    let first_write = if is_new {
        first(ObjectAction::is_apply).or(Some(steps.len()))
    } else {
        first(ObjectAction::is_deletion).filter(|_| !decisions.approved.is_empty())
    };
    if let Some(first_write) = first_write {
        steps.insert(first_write, Step::own(record()));
    }
}

/// Reads, checks and takeovers: they precede every write, because they may change what is to be written.
fn looks<Own>(decisions: &Decisions) -> Option<Step<Own>> {
    let wanted = decisions.wanted.values().filter_map(|sync| sync.action.as_ref());
    let leftovers = decisions.leftovers.values().filter_map(Fate::action);
    let actions: Vec<Action<Own>> = wanted
        .chain(leftovers)
        .filter(|action| !action.is_apply() && !action.is_deletion())
        .cloned()
        .map(Action::Object)
        .collect();
    (!actions.is_empty()).then_some(Step { actions, gate: false })
}

/// The applies, wave by wave. A wave with an object that cannot be brought in line holds the later waves back.
fn applications<Own>(intents: &BTreeMap<ObjectKey, Intent>, decisions: &Decisions) -> Vec<Step<Own>> {
    let mut waves: BTreeMap<Wave, Vec<&Sync>> = BTreeMap::new();
    for (key, sync) in &decisions.wanted {
        if let Some(intent) = intents.get(key) {
            waves.entry(intent.wave).or_default().push(sync);
        }
    }
    let mut steps = Vec::new();
    for wave in waves.values() {
        let applies = wave.iter().filter_map(|sync| sync.action.clone());
        let actions: Vec<Action<Own>> = applies.filter(ObjectAction::is_apply).map(Action::Object).collect();
        if !actions.is_empty() {
            steps.push(Step::gate(actions));
        }
        if wave.iter().any(|sync| sync.holds_later_waves()) {
            break;
        }
    }
    steps
}

/// The deletions: ClusterClasses, then the rest in the reverse order of application. What is left of a wave holds the later ones back: Cluster API does
/// not let a class go that a Cluster uses, whatever we believe, and then nothing goes that the class needs.
fn deletions<Own>(decisions: &Decisions) -> Option<Step<Own>> {
    let order = |key: &ObjectKey| {
        let kind = key.group_kind();
        (!is_class(&kind), Reverse(wave_of(&kind)))
    };
    let left = || decisions.leftovers.iter().filter(|(_, fate)| !fate.is_over());
    let first = left().map(|(key, _)| order(key)).min()?;
    let actions: Vec<Action<Own>> = left()
        .filter(|(key, _)| order(key) == first)
        .filter_map(|(_, fate)| fate.action())
        .filter(|action| action.is_deletion())
        .cloned()
        .map(Action::Object)
        .collect();
    (!actions.is_empty()).then(|| Step::gate(actions))
}

/// Whether the kind is the one that Clusters use, and whose objects Cluster API does not let go while they do.
pub(crate) fn is_class(kind: &GroupKind) -> bool {
    (kind.group.as_str(), kind.kind.as_str()) == ("cluster.x-k8s.io", "ClusterClass")
}
