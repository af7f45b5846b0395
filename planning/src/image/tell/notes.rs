//! What happened to an image, each once, and what went wrong last.

use crds::conditions::Reason;
use crds::events::Happening;
use crds::providers::image_status::LastFailure;

use super::Situation;
use super::view::View;
use crate::image::deletion::is_held_elsewhere;
use crate::image::failure::FailureClass;
use crate::image::kept::Kept;
use crate::image::op::{Deed, DeedName, Done, OpState, StopReason};
use crate::image::retry::as_seen;
use crate::image::seen::{Seen, Sight};
use crate::image::status::whole_seconds;
use crate::image::step::{AttemptReason, Intent, Step};
use crate::image::wanted::Now;
use crate::image::wording::{IMPORT_FAILED, discarded, reason_of_failure, remedy_of_failure};
use crate::stack::Note;

/// What is told of a step.
pub(super) fn notes(situation: &Situation<'_>, kept: &Kept) -> Vec<Note> {
    let note = |reason, message| Note {
        warning: false,
        reason,
        message,
    };
    let mut notes = Vec::new();
    match (situation.step, situation.op.map(|op| (&op.deed, &op.state))) {
        (Step::Settle(_), Some((deed, OpState::Ended { outcome: Ok(done), .. }))) => match (deed, done) {
            (Deed::Create { attempt, .. }, Done::Created { id }) => notes.push(note(
                Happening::ImageCreated,
                format!("made a record of the image in the cloud: {id} (attempt {attempt})"),
            )),
            (Deed::Discard { id, why, .. }, Done::Discarded) => notes.push(note(
                Happening::ImageDiscarded,
                format!("deleted {id} from the cloud: {}", discarded(*why)),
            )),
            _ => {}
        },
        (Step::Finish { left_behind: left }, _) => notes.extend(left_behind(situation.seen, left)),
        _ => {}
    }
    let before = situation.before.image.as_ref();
    let is_known = |id: &String, adopted| before.is_some_and(|before| before.id == *id && before.adopted == adopted);
    if let Some(image) = kept.image.as_ref().filter(|image| !is_known(&image.id, image.adopted)) {
        notes.push(if image.adopted {
            note(
                Happening::ImageAdopted,
                format!("the image {} is used, which is not ours", image.id),
            )
        } else {
            note(
                Happening::ImageVerified,
                format!("the image {} is in the cloud and is what it must be", image.id),
            )
        });
    }
    notes
}

/// What stays in the cloud without the object, and why.
fn left_behind(seen: &Seen, ids: &[String]) -> Vec<Note> {
    let is_held = |id: &str| {
        let Sight::Seen { value, .. } = &seen.cloud else {
            return false;
        };
        let mut records = value.records.iter();
        records.any(|record| record.id == id && is_held_elsewhere(record))
    };
    let (held, late): (Vec<&str>, Vec<&str>) = ids.iter().map(String::as_str).partition(|id| is_held(id));
    let told = [
        (late, "its image, because the cloud did not delete it in time"),
        (
            held,
            "an image that another installation works on, which is that one's to delete",
        ),
    ];
    let told = told.into_iter().filter(|(ids, _)| !ids.is_empty());
    told.map(|(ids, words)| Note {
        warning: true,
        reason: Happening::ImageLeftBehind,
        message: format!("the object goes without {words}; left there: {}", ids.join(", ")),
    })
    .collect()
}

/// What just went wrong by itself. Looks at the cloud are not counted: what they find is in the conditions, and they fail as long as an outage lasts.
pub(super) fn last_failure(view: &View<'_>, now: Now) -> Option<LastFailure> {
    match view.step {
        Step::Settle(_) => of_deed(view, now),
        Step::Record(Intent::Attempt {
            why: AttemptReason::ImportFailed | AttemptReason::ImportStalled,
            ..
        }) => of_import(view, now),
        _ => None,
    }
}

/// The cloud took an import on, and nothing came of it: no deed of ours failed.
fn of_import(view: &View<'_>, now: Now) -> Option<LastFailure> {
    let retry = view.kept.retry.as_ref();
    let retry = retry.filter(|retry| retry.class == FailureClass::Unknown)?;
    Some(LastFailure {
        attempt: view.before.attempt,
        reason: Reason::ImportFailed.as_str().to_owned(),
        message: retry.message.clone(),
        request_id: None,
        time: Some(whole_seconds(now.wall)),
        remedy: Some(IMPORT_FAILED.to_owned()),
    })
}

fn of_deed(view: &View<'_>, now: Now) -> Option<LastFailure> {
    let op = view.op?;
    let OpState::Ended {
        outcome: Err(failure), ..
    } = &op.state
    else {
        return None;
    };
    let failure = as_seen(failure, op, view.wanted);
    let is_stopped = matches!(failure.class, FailureClass::Stopped { why } if why != StopReason::Stalled);
    if is_stopped || op.deed.name() == DeedName::Look {
        return None;
    }
    let attempt = match op.deed {
        Deed::Create { attempt, .. }
        | Deed::Transfer { attempt, .. }
        | Deed::Import { attempt, .. }
        | Deed::Build { attempt, .. }
        | Deed::ReadBack { attempt, .. }
        | Deed::Publish { attempt, .. }
        | Deed::Discard { attempt, .. } => Some(i64::from(attempt)),
        Deed::Look | Deed::Probe | Deed::Amend { .. } | Deed::Relinquish { .. } => None,
    };
    Some(LastFailure {
        attempt,
        reason: reason_of_failure(failure.class).as_str().to_owned(),
        message: failure.told(),
        request_id: failure.request_id.clone(),
        time: Some(whole_seconds(now.wall)),
        remedy: remedy_of_failure(failure.class).map(str::to_owned),
    })
}
