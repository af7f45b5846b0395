//! The plan for one release object: which objects of images to create, share, change and let go, and what follows for its status.

use crds::providers::image_status::ProviderReleaseStatus;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::ReleaseAction;
use super::entries::{ImageEntry, is_in_place};
use super::observed::{Files, ImageView, ReleaseObserved, version_of};
use super::status::status;
use super::summary::{Refused, Row, RowState};
use crate::next::{Next, rests_until, retry_delay_seconds};
use crate::pause::Pause;

/// The status of one release object is written at most this often, unless it becomes ready or another phase begins: images tell how far they are all the
/// time.
const STATUS_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// What a driver performs, and what it then knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleasePlan {
    /// What to do; the actions are independent of each other, and one that fails stops none.
    pub actions: Vec<ReleaseAction>,
    /// The status that follows from what was observed.
    pub status: ProviderReleaseStatus,
    /// Whether it is to be written now.
    pub status_due: bool,
    /// When to look again.
    pub next: Next,
}

/// Decides about a release object.
pub fn plan(observed: &ReleaseObserved, now: Timestamp) -> ReleasePlan {
    let leaves_by_itself = observed.moved && !observed.deleting;
    if observed.paused || leaves_by_itself {
        let pause = if observed.paused {
            Pause::ProviderRelease
        } else {
            Pause::MovedRelease
        };
        let status = ProviderReleaseStatus {
            conditions: pause.conditions(&observed.status.conditions, now),
            ..observed.status.clone()
        };
        return finish(observed, Vec::new(), status, Next::Await, now);
    }
    if !observed.listed {
        // What the status says still stands.
        return finish(observed, Vec::new(), observed.status.clone(), Next::Await, now);
    }
    let (rows, actions) = if observed.deleting {
        removal(observed)
    } else {
        installation(observed, now)
    };
    let (actions, refused, retry) = back_off(observed, actions, now);
    let rows = with_refusals(rows, &refused);
    let status = status(observed, &rows, &refused, now);
    finish(observed, actions, status, retry.sooner(forgets(observed, now)), now)
}

fn finish(
    observed: &ReleaseObserved,
    actions: Vec<ReleaseAction>,
    status: ProviderReleaseStatus,
    next: Next,
    now: Timestamp,
) -> ReleasePlan {
    let before = &observed.status;
    let is_urgent = (status.ready, status.phase, status.observed_generation)
        != (before.ready, before.phase, before.observed_generation);
    let rests = observed
        .status_written_at
        .and_then(|written| rests_until(written, STATUS_INTERVAL, now))
        .filter(|_| !is_urgent);
    let differs = status != *before;
    let write = rests.filter(|_| differs).map_or(Next::Await, Next::At);
    ReleasePlan {
        actions,
        status,
        status_due: differs && rests.is_none(),
        next: next.sooner(write),
    }
}

/// When objects of images may be made that are missing because they were moved.
fn forgets(observed: &ReleaseObserved, now: Timestamp) -> Next {
    let later = observed.moved_images.values().filter(|until| **until > now);
    later.min().map_or(Next::Await, |until| Next::At(*until))
}

/// Leaves out what failed a moment ago, and tells when it is tried again.
fn back_off(
    observed: &ReleaseObserved,
    actions: Vec<ReleaseAction>,
    now: Timestamp,
) -> (Vec<ReleaseAction>, Vec<Refused>, Next) {
    let mut retry = Next::Await;
    let mut refused = Vec::new();
    let due = actions.into_iter().filter(|action| {
        let Some(failure) = observed.failures.get(action.subject()) else {
            return true;
        };
        let delay = SignedDuration::from_secs(retry_delay_seconds(failure.attempts));
        let Some(until) = rests_until(failure.at, delay, now) else {
            return true;
        };
        retry = retry.sooner(Next::At(until));
        refused.push(Refused {
            subject: action.subject().to_owned(),
            deletes: matches!(
                action,
                ReleaseAction::DeleteImage { .. } | ReleaseAction::DropOwner { .. } | ReleaseAction::RemoveFinalizer
            ),
            message: failure.message.clone(),
        });
        false
    });
    let due = due.collect();
    (due, refused, retry)
}

/// An object that could not be written is told as that, if nothing better is known of it.
fn with_refusals<'a>(mut rows: Vec<Row<'a>>, refused: &[Refused]) -> Vec<Row<'a>> {
    for row in &mut rows {
        let refusal = refused
            .iter()
            .find(|refused| refused.subject == row.name && !refused.deletes);
        if let Some(refusal) = refusal
            && matches!(row.state, RowState::Missing)
        {
            row.state = RowState::Refused {
                message: refusal.message.clone(),
            };
        }
    }
    rows
}

/// A release that is wanted: what it asks for is there, and what it does not ask for any more is let go. Without its files nothing changes.
fn installation(observed: &ReleaseObserved, now: Timestamp) -> (Vec<Row<'_>>, Vec<ReleaseAction>) {
    let Files::Ready { images, .. } = &observed.files else {
        let rows = known(observed);
        let claim = (!observed.finalizer).then_some(ReleaseAction::AddFinalizer);
        return (rows, claim.into_iter().collect());
    };
    let mut rows = Vec::new();
    let mut actions = Vec::new();
    for entry in images {
        let (state, action) = fate(observed, entry, now);
        rows.push(Row {
            name: &entry.name,
            state,
        });
        actions.extend(action);
    }
    let is_wanted = |name: &String| images.iter().any(|entry| entry.name == *name);
    let left = owned(observed).filter(|(name, _)| !is_wanted(name));
    actions.extend(left.filter_map(|(name, view)| let_go(observed, name, view)));
    if !observed.finalizer {
        // Before anything is made that has to go again.
        actions = vec![ReleaseAction::AddFinalizer];
    }
    rows.sort_by_key(|row| row.name);
    (rows, actions)
}

/// A release that goes: first what it owns, and the finalizer when that is gone. What was moved is another management cluster's.
fn removal(observed: &ReleaseObserved) -> (Vec<Row<'_>>, Vec<ReleaseAction>) {
    if !observed.finalizer {
        return (Vec::new(), Vec::new());
    }
    let rows: Vec<Row<'_>> = owned(observed)
        .filter(|_| !observed.moved)
        .map(|(name, view)| Row {
            name,
            state: RowState::Image { view },
        })
        .collect();
    if rows.is_empty() {
        return (rows, vec![ReleaseAction::RemoveFinalizer]);
    }
    let actions = owned(observed).filter_map(|(name, view)| let_go(observed, name, view));
    let actions = actions.collect();
    (rows, actions)
}

/// What the release asked for when its files were read last, and what it owns.
fn known(observed: &ReleaseObserved) -> Vec<Row<'_>> {
    let told = observed.status.images.iter().map(|row| row.name.as_str());
    let mut names: Vec<&str> = told.chain(owned(observed).map(|(name, _)| name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let row = |name| Row {
        name,
        state: match observed.objects.get(name) {
            Some(view) if is_owned(observed, view) => RowState::Image { view },
            Some(_) | None => RowState::Missing,
        },
    };
    names.into_iter().map(row).collect()
}

fn owned(observed: &ReleaseObserved) -> impl Iterator<Item = (&String, &ImageView)> {
    observed.objects.iter().filter(|(_, view)| is_owned(observed, view))
}

fn is_owned(observed: &ReleaseObserved, view: &ImageView) -> bool {
    view.owners.iter().any(|owner| owner.uid == observed.uid)
}

fn is_shared(observed: &ReleaseObserved, view: &ImageView) -> bool {
    view.foreign || view.owners.iter().any(|owner| owner.uid != observed.uid)
}

/// An object that others need only loses its owner.
fn let_go(observed: &ReleaseObserved, name: &str, view: &ImageView) -> Option<ReleaseAction> {
    let (name, version) = (name.to_owned(), view.version.clone());
    if is_shared(observed, view) {
        return Some(ReleaseAction::DropOwner { name, version });
    }
    (!view.deleting).then(|| ReleaseAction::DeleteImage {
        name,
        uid: view.uid.clone(),
        version,
    })
}

/// How one image stands that the release asks for, and what is done about its object.
fn fate<'a>(
    observed: &'a ReleaseObserved,
    entry: &'a ImageEntry,
    now: Timestamp,
) -> (RowState<'a>, Option<ReleaseAction>) {
    let name = entry.name.clone();
    let Some(view) = observed.objects.get(&entry.name) else {
        if observed.moved_images.get(&name).is_some_and(|until| *until > now) {
            return (RowState::Moved, None);
        }
        let spec = entry.spec.clone();
        return (RowState::Missing, Some(ReleaseAction::CreateImage { name, spec }));
    };
    let version = view.version.clone();
    let is_ours = is_owned(observed, view);
    if view.deleting {
        return (RowState::Leaving, None);
    }
    if view.foreign && !is_ours {
        return (RowState::Foreign, None);
    }
    let is_same = view.content == entry.content;
    if !is_ours {
        // The object of whoever was there first stays as it is. Nobody's is taken, and brought in line when it is ours.
        if !is_same && is_shared(observed, view) {
            return (RowState::Differs { view }, None);
        }
        return (RowState::Missing, Some(ReleaseAction::AdoptImage { name, version }));
    }
    let update = |spec: &Value| ReleaseAction::UpdateImage {
        name,
        version,
        spec: spec.clone(),
    };
    let leads = leads(observed, view);
    if leads && !is_shared(observed, view) && !is_in_place(&view.spec, &entry.spec) {
        // It goes where it is, and is made anew elsewhere.
        return (RowState::Leaving, let_go(observed, &entry.name, view));
    }
    let leads = leads && is_in_place(&view.spec, &entry.spec);
    let action = (view.spec != entry.spec && leads).then(|| update(&entry.spec));
    let state = if is_same {
        RowState::Image { view }
    } else if leads {
        RowState::Missing
    } else {
        RowState::Differs { view }
    };
    (state, action)
}

/// Of releases that share an object the one with the highest version of the stack says what may be amended, and of equal ones the first by name.
fn leads(observed: &ReleaseObserved, view: &ImageView) -> bool {
    let own = (version_of(&observed.name), std::cmp::Reverse(observed.name.as_str()));
    let others = view.owners.iter().filter(|owner| owner.uid != observed.uid);
    others
        .map(|owner| (owner.version(), std::cmp::Reverse(owner.name.as_str())))
        .all(|other| other < own)
}
