//! When the time of a stage is up: it runs only while somebody is at work.

use crds::cluster_addon::{ClusterAddonStatus, StageProgress};
use crds::conditions::{ConditionStatus, ConditionType, Reason, find};
use jiff::{SignedDuration, Timestamp};

use super::course::{CourseInput, Kind, Stage, after};

/// Whoever is at work notices within this time that a deadline has passed, however slow the cluster is.
const NOTICED: SignedDuration = SignedDuration::from_mins(5);

/// Until when a stage may take that is open now.
///
/// While add-ons are paused it does not run on. Where a deadline passed long ago and the row does not say so, nobody was at work: no operator ran, or the release could not be
/// used. Then the stage has its time anew, or one that may fail would be passed over at the first look, before anybody has tried it. What comes before a deletion
/// has an end that nobody may put off, and all of it is worked on until then.
pub(super) fn deadline(
    input: &CourseInput<'_>,
    stage: &Stage,
    row: Option<&StageProgress>,
    now: Timestamp,
) -> Timestamp {
    // A clock that was set back does not lengthen it.
    let longest = after(now, stage.timeout);
    let Some((row, recorded)) = row.and_then(|row| Some((row, row.deadline.as_ref()?.0))) else {
        return longest;
    };
    if input.kind == Kind::Deletion {
        return recorded.min(longest);
    }
    let deadline = resumed(recorded, input.status, now);
    let is_missed = now.duration_since(deadline) > NOTICED && !is_noticed(row);
    if is_missed { longest } else { deadline.min(longest) }
}

/// The same deadline without the time of a pause that has just ended, as the status still says.
fn resumed(deadline: Timestamp, status: &ClusterAddonStatus, now: Timestamp) -> Timestamp {
    let paused = find(&status.conditions, ConditionType::Paused);
    let since = paused
        .filter(|paused| paused.status == ConditionStatus::True)
        .map(|paused| paused.last_transition_time.0);
    match since {
        Some(since) if since < deadline && since < now => deadline
            .checked_add(now.duration_since(since))
            .unwrap_or(Timestamp::MAX),
        Some(_) | None => deadline,
    }
}

/// Whether the row was written by somebody who saw that its time is up, or that time alone mends nothing.
fn is_noticed(row: &StageProgress) -> bool {
    let noticed = [Reason::StageDeadlineExceeded, Reason::ConditionInvalid];
    row.passed_over
        || noticed
            .iter()
            .any(|reason| row.reason.as_deref() == Some(reason.as_str()))
}
