//! The plan for one ClusterStackRelease: steps in order, the status that follows from what was seen, and why nothing more happens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_stack_release::ClusterStackReleaseStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::{ReleaseAction, Step};
use super::bounds::too_large;
use super::class::{is_class, misnamed};
use super::confinement::outside;
use super::inventory::{Inventoried, inventoried};
use super::object::{Sync, SyncState};
use super::objects::{Objects, installation, removal};
use super::observed::{Assets, Intent, Provider, ReleaseObserved, Rendering};
use super::pacing::paced;
use super::prune::Fate;
use super::reach::unseen;
use super::status;
use super::waiting::{self, Waiting};
use crate::next::{ECHO, Next, rests_until};
use crate::object_key::{GroupKind, ObjectKey};
use crate::pause::Pause;
use crate::unlisted::next_words;
use crate::waves::{Wave, wave_of};

/// What a driver performs, and what it then knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleasePlan {
    /// Steps in order. The actions of one step are independent of each other.
    pub steps: Vec<Step>,
    /// The status that follows from what was observed, to be written when the steps have led to nothing new.
    pub status: ClusterStackReleaseStatus,
    /// Why nothing (more) happens, sorted.
    pub waiting: Vec<Waiting>,
    /// When to look again.
    pub next: Next,
}

/// Decides about a release.
pub fn plan(observed: &ReleaseObserved, now: Timestamp) -> ReleasePlan {
    let unusable = |assets: Assets, rendering: Rendering| ReleaseObserved {
        assets,
        rendering,
        ..observed.clone()
    };
    if let Some(message) = misnamed(observed).or_else(|| outside(observed)) {
        return decided(&unusable(Assets::Broken { message }, Rendering::NotRendered), now);
    }
    match too_large(observed) {
        None => decided(observed, now),
        Some(message) => {
            let transient = None;
            let failed = Rendering::Failed { message, transient };
            decided(&unusable(observed.assets.clone(), failed), now)
        }
    }
}

fn decided(observed: &ReleaseObserved, now: Timestamp) -> ReleasePlan {
    if observed.paused {
        let mut plan = untouched(observed, Waiting::Paused, Next::Await);
        plan.status.conditions = Pause::Release.conditions(&observed.status.conditions, now);
        return plan;
    }
    let up_to_date = observed.status.observed_generation == Some(observed.generation);
    if let Provider::NotListed(unlisted) = &observed.provider
        && let Some(until) = unlisted.patience_until(now)
        && up_to_date
        && !observed.deleting
    {
        return untouched(observed, Waiting::Watches, Next::At(until));
    }
    if is_rendered_again(observed) {
        return untouched(observed, Waiting::SlowRendering, Next::Await);
    }
    let objects = if observed.deleting {
        removal(observed, now)
    } else {
        installation(observed, now)
    };
    let mut steps = preparation(observed, &objects, now);
    steps.extend(looks(&objects));
    steps.extend(applications(observed, &objects));
    steps.extend(deletions(&objects));
    if observed.deleting && released(observed, &objects) && observed.finalizer {
        steps.push(Step::gate(vec![ReleaseAction::RemoveFinalizer]));
    }
    let waiting = waiting::waiting(observed, &objects);
    let status = status::status(observed, &objects, &waiting, now);
    insert_inventory(observed, &objects, &mut steps, &status);
    let (status, in_full) = paced(observed, status, now);
    let next = next(&objects)
        .sooner(next_rendering(&observed.rendering, now))
        .sooner(next_of_watches(observed, now))
        .sooner(control_shown_by(observed, now).map_or(Next::Await, Next::At))
        .sooner(in_full);
    ReleasePlan {
        steps,
        status,
        waiting,
        next,
    }
}

/// Whether what made the release ready is being rendered once more, because nobody remembers it: nothing is wrong with it so far.
fn is_rendered_again(observed: &ReleaseObserved) -> bool {
    matches!(observed.rendering, Rendering::Awaited { failed: None })
        && observed.status.ready
        && observed.status.observed_generation == Some(observed.generation)
        && !observed.deleting
}

/// Nothing to do, and nothing new to say.
fn untouched(observed: &ReleaseObserved, waiting: Waiting, next: Next) -> ReleasePlan {
    ReleasePlan {
        steps: Vec::new(),
        status: observed.status.clone(),
        waiting: vec![waiting],
        next,
    }
}

/// When to look what is said by then of watches that have not listed.
fn next_of_watches(observed: &ReleaseObserved, now: Timestamp) -> Next {
    let unwatched = observed.objects.values().any(|object| object.served && !object.watched);
    let unseen = observed.deleting && !unseen(observed).is_empty();
    if unwatched || unseen || matches!(observed.provider, Provider::NotListed(_)) {
        next_words(now)
    } else {
        Next::Await
    }
}

/// Whether a release that is being deleted has nothing left to clean up.
fn released(observed: &ReleaseObserved, objects: &Objects) -> bool {
    unseen(observed).is_empty()
        && observed.used_by.as_ref().is_some_and(BTreeSet::is_empty)
        && objects.leftovers.values().all(Fate::is_over)
}

/// What has to be on the release object and on the provider's before anything else is written.
fn preparation(observed: &ReleaseObserved, objects: &Objects, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    if observed.deleting {
        return steps;
    }
    if let Some(uid) = uncontrolled(observed)
        && control_shown_by(observed, now).is_none()
    {
        steps.push(Step::gate(vec![ReleaseAction::ControlProvider { uid: uid.clone() }]));
    }
    let kinds: BTreeSet<GroupKind> = objects.wanted.keys().map(ObjectKey::group_kind).collect();
    if !observed.finalizer || !kinds.is_subset(&observed.group_kinds) {
        let group_kinds = observed.group_kinds.union(&kinds).cloned().collect();
        steps.push(Step::gate(vec![ReleaseAction::Mark { group_kinds }]));
    }
    steps
}

/// The identity of the provider's object, if the release has yet to become its controlling owner.
fn uncontrolled(observed: &ReleaseObserved) -> Option<&String> {
    match &observed.provider {
        Provider::Found {
            uid,
            controlled: false,
            foreign_controller: None,
            ..
        } if !observed.deleting && refers_to_its_own(observed) => Some(uid),
        _ => None,
    }
}

/// Until when the watch may be behind the moment in which the release became its owner.
fn control_shown_by(observed: &ReleaseObserved, now: Timestamp) -> Option<Timestamp> {
    let taken = observed.controlled.as_ref()?;
    let is_this = uncontrolled(observed) == Some(&taken.uid);
    rests_until(taken.at, ECHO, now).filter(|_| is_this)
}

/// Whether the provider's object has the release's own name. Anybody may write a release that refers to another object, and would become its
/// owner: it would go with the release.
fn refers_to_its_own(observed: &ReleaseObserved) -> bool {
    let reference = observed.spec.provider_ref.as_ref();
    reference.is_some_and(|reference| reference.name.as_deref() == Some(observed.tag.as_str()))
}

/// Puts the write of the inventory before the first write of an object that the inventory does not name, or of files that it does not name, and before
/// the first deletion of those that it does not call approved.
fn insert_inventory(
    observed: &ReleaseObserved,
    objects: &Objects,
    steps: &mut Vec<Step>,
    status: &ClusterStackReleaseStatus,
) {
    let pins = |status: &ClusterStackReleaseStatus| status.assets.as_ref().map(|assets| assets.digest.clone());
    let unpinned = pins(status) != pins(&observed.status);
    let mut applied = objects.wanted.iter().filter(|(_, sync)| sync.is_apply());
    let is_new = applied.any(|(key, _)| unpinned || inventoried(observed, key) == Inventoried::No);
    let first = |is_write: fn(&ReleaseAction) -> bool| steps.iter().position(|step| step.actions.iter().any(is_write));
    let first_write = if is_new {
        first(|action| matches!(action, ReleaseAction::Apply { .. })).or(Some(steps.len()))
    } else {
        first(|action| matches!(action, ReleaseAction::Delete { .. })).filter(|_| !objects.approved.is_empty())
    };
    if let Some(first_write) = first_write {
        let action = ReleaseAction::RecordInventory {
            status: Box::new(status.clone()),
        };
        steps.insert(first_write, Step::gate(vec![action]));
    }
}

/// Reads, checks and takeovers: they precede every write, because they may change what is to be written.
fn looks(objects: &Objects) -> Option<Step> {
    let wanted = objects.wanted.values().filter_map(|sync| sync.action.as_ref());
    let leftovers = objects.leftovers.values().filter_map(Fate::action);
    let actions: Vec<ReleaseAction> = wanted
        .chain(leftovers)
        .filter(|action| {
            matches!(
                action,
                ReleaseAction::Read { .. } | ReleaseAction::Check { .. } | ReleaseAction::TakeOver { .. }
            )
        })
        .cloned()
        .collect();
    (!actions.is_empty()).then_some(Step { actions, gate: false })
}

/// The applies, wave by wave. A wave with an object that cannot be brought in line holds the later waves back.
fn applications(observed: &ReleaseObserved, objects: &Objects) -> Vec<Step> {
    let Rendering::Rendered { intents } = &observed.rendering else {
        return Vec::new();
    };
    let mut waves: BTreeMap<Wave, Vec<(&Intent, &Sync)>> = BTreeMap::new();
    for (key, sync) in &objects.wanted {
        if let Some(intent) = intents.get(key) {
            waves.entry(intent.wave).or_default().push((intent, sync));
        }
    }
    let mut steps = Vec::new();
    for wave in waves.values() {
        let actions: Vec<ReleaseAction> = wave
            .iter()
            .filter_map(|(_, sync)| sync.action.clone())
            .filter(|action| matches!(action, ReleaseAction::Apply { .. }))
            .collect();
        if !actions.is_empty() {
            steps.push(Step::gate(actions));
        }
        if wave.iter().any(|(_, sync)| sync.holds_later_waves()) {
            break;
        }
    }
    steps
}

/// The deletions: ClusterClasses, then the rest in the reverse order of application. What is left of a wave holds the later ones back: Cluster API does
/// not let a class go that a Cluster uses, whatever we believe, and then nothing goes that the class needs.
fn deletions(objects: &Objects) -> Option<Step> {
    let order = |key: &ObjectKey| {
        let kind = key.group_kind();
        (!is_class(&kind), Reverse(wave_of(&kind)))
    };
    let left = || objects.leftovers.iter().filter(|(_, fate)| !fate.is_over());
    let first = left().map(|(key, _)| order(key)).min()?;
    let actions: Vec<ReleaseAction> = left()
        .filter(|(key, _)| order(key) == first)
        .filter_map(|(_, fate)| fate.action())
        .filter(|action| matches!(action, ReleaseAction::Delete { .. }))
        .cloned()
        .collect();
    (!actions.is_empty()).then(|| Step::gate(actions))
}

fn next_rendering(rendering: &Rendering, now: Timestamp) -> Next {
    match rendering {
        Rendering::Failed {
            transient: Some(attempts),
            ..
        } => attempts.retry_at(now).map_or(Next::Now, Next::At),
        Rendering::Failed { transient: None, .. }
        | Rendering::NotRendered
        | Rendering::Awaited { .. }
        | Rendering::Rendered { .. } => Next::Await,
    }
}

fn next(objects: &Objects) -> Next {
    let wanted = objects.wanted.values().map(|sync| sync.next);
    let leftovers = objects.leftovers.values().map(|fate| match fate {
        Fate::Failed { next, .. } | Fate::Going { next, .. } => *next,
        Fate::Gone | Fate::LeftAlone => Next::Await,
    });
    wanted.chain(leftovers).fold(Next::Await, Next::sooner)
}

impl Fate {
    /// Whether nothing is left to do for the release.
    fn is_over(&self) -> bool {
        matches!(self, Self::Gone | Self::LeftAlone)
    }

    fn action(&self) -> Option<&ReleaseAction> {
        match self {
            Self::Going { action, .. } => action.as_ref(),
            _ => None,
        }
    }
}

impl Sync {
    pub(super) fn is_apply(&self) -> bool {
        matches!(self.action, Some(ReleaseAction::Apply { .. }))
    }

    /// Whether the object will not stand when this plan has been performed. An apply holds the later waves by failing.
    fn holds_later_waves(&self) -> bool {
        match self.state {
            SyncState::KindMissing | SyncState::Failed { .. } | SyncState::Unverified | SyncState::Held { .. } => true,
            SyncState::Pending => !matches!(self.action, Some(ReleaseAction::Apply { .. })),
            SyncState::Synced
            | SyncState::Drifted { .. }
            | SyncState::Superseded { .. }
            | SyncState::Outgrown { .. }
            | SyncState::Missing { .. }
            | SyncState::Contested { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;
