//! The plan for one ClusterStackRelease: steps in order, the status that follows from what was seen, and why nothing more happens.

use std::collections::BTreeSet;

use crds::cluster_stack_release::ClusterStackReleaseStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::{ReleaseAction, Step};
use super::class::misnamed;
use super::confinement::outside;
use super::objects::{installation, removal};
use super::observed::{Assets, Provider, ReleaseObserved};
use super::status;
use super::waiting::{self, Waiting};
use crate::next::{ECHO, Next, rests_until};
use crate::objects::{Decisions, Rendering, record_before_writes};
use crate::pacing::paced;
use crate::pause::Pause;
use crate::unlisted::next_words;

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
    match observed.set().too_large() {
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
    let set = observed.set();
    let decisions = if observed.deleting {
        removal(observed, now)
    } else {
        installation(observed, now)
    };
    let mut steps = preparation(observed, &decisions, now);
    steps.extend(decisions.steps(&set));
    if observed.deleting && released(observed, &decisions) && observed.finalizer {
        steps.push(Step::own(ReleaseAction::RemoveFinalizer));
    }
    let waiting = waiting::waiting(observed, &decisions);
    let status = status::status(observed, &decisions, &waiting, now);
    let unpinned = pinned(&status) != pinned(&observed.status);
    record_before_writes(&set, &decisions, &mut steps, unpinned, || {
        let status = Box::new(status.clone());
        ReleaseAction::RecordInventory { status }
    });
    let (status, in_full) = paced(&observed.status, observed.status_written_at, status, now);
    let next = decisions
        .next()
        .sooner(observed.rendering.next(now))
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
    if matches!(observed.provider, Provider::NotListed(_)) {
        next_words(now)
    } else {
        observed.set().next_of_watches(now)
    }
}

/// Whether a release that is being deleted has nothing left to clean up.
fn released(observed: &ReleaseObserved, decisions: &Decisions) -> bool {
    observed.set().unseen().is_empty()
        && observed.used_by.as_ref().is_some_and(BTreeSet::is_empty)
        && decisions.is_over()
}

/// What has to be on the release object and on the provider's before anything else is written.
fn preparation(observed: &ReleaseObserved, decisions: &Decisions, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    if observed.deleting {
        return steps;
    }
    if let Some(uid) = uncontrolled(observed)
        && control_shown_by(observed, now).is_none()
    {
        steps.push(Step::own(ReleaseAction::ControlProvider { uid: uid.clone() }));
    }
    let kinds = decisions.group_kinds();
    if !observed.finalizer || !kinds.is_subset(&observed.group_kinds) {
        let group_kinds = observed.group_kinds.union(&kinds).cloned().collect();
        steps.push(Step::own(ReleaseAction::Mark { group_kinds }));
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

/// The digest of the files that a status pins.
fn pinned(status: &ClusterStackReleaseStatus) -> Option<&str> {
    status.assets.as_ref().map(|assets| assets.digest.as_str())
}

#[cfg(test)]
mod tests;
