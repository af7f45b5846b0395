//! What people read of an image after a step: its status, events, and when to look again. Computed anew each time; writes nothing.
//!
//! Only what was seen is told. What is under way is told as long as it takes; a look at the cloud or the source changes nothing before it is over, so an
//! image at rest is written once. An outage is not a bad image: what was ready stays so until something else is seen.

mod fetched;
mod findings;
mod notes;
mod trouble;
mod view;

use std::time::Duration;

use crds::conditions::{ConditionStatus, ConditionType, Finding, Severity, find, merge};
use crds::providers::Provider;
use crds::providers::image_status::{
    ExecutionForm, ExecutionStatus, ImagePhase, NodeImageStatus, Progress, TransferStatus,
};
use jiff::{SignedDuration, Timestamp};

use self::findings::findings;
use self::view::{View, Work};
use super::after::after;
use super::execution::executed_as;
use super::kept::Kept;
use super::op::{Deed, DeedName, Form, Op, OpState};
use super::seen::Seen;
use super::step::{Settlement, Step};
use super::wait::{Since, Until};
use super::wanted::{Now, Wanted};
use super::wording::executed;
use crate::next::Next;
use crate::pause::Pause;
use crate::stack::Note;

/// Deadlines are over a moment after they were reached.
const AFTER_THE_DEADLINE: Duration = Duration::from_secs(1);

/// One decision, and what status said when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// Whose kinds: OpenStack has conditions that the others do not.
    pub provider: Provider,
    /// What was wanted.
    pub wanted: &'a Wanted,
    /// What was kept before the step: what `before` says.
    pub kept: &'a Kept,
    /// What was seen.
    pub seen: &'a Seen,
    /// What was under way.
    pub op: Option<&'a Op>,
    /// What was decided.
    pub step: &'a Step,
    /// The status as read.
    pub before: &'a NodeImageStatus,
}

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The whole status, with what is kept after the step; `transfer` as it was read, but for how fast it is when it is over, and for what the cloud does
    /// itself. Nothing is to be written where it equals what was read.
    pub status: NodeImageStatus,
    /// What happened, each once. To be told when the status was written.
    pub notes: Vec<Note>,
    /// When to decide again, unless a watch or whoever runs deeds wakes the driver.
    pub next: Next,
}

/// What is told after a step.
pub fn tell(situation: &Situation<'_>, now: Now) -> Told {
    let Situation {
        wanted,
        kept,
        seen,
        op,
        step,
        before,
        ..
    } = *situation;
    let kept = after(step, wanted, kept, seen, op, now);
    let mut status = before.clone();
    kept.write_to(&mut status);
    let next = next(step, now);
    if wanted.paused || wanted.moved {
        let pause = if wanted.paused { Pause::Image } else { Pause::MovedImage };
        status.conditions = pause.conditions(&before.conditions, now.wall);
        let notes = Vec::new();
        return Told { status, notes, next };
    }
    if looks_only(situation) && says_all(before, wanted) {
        let notes = Vec::new();
        return Told { status, notes, next };
    }
    let notes = notes::notes(situation, &kept);
    let view = View::new(situation, kept, now);
    let findings = findings(&view);
    describe(&mut status, &view, &findings, now);
    status.conditions = merge(&before.conditions, findings, now.wall);
    Told { status, notes, next }
}

/// Whether this is a look, or the end of one, of which more is known in a moment.
fn looks_only(situation: &Situation<'_>) -> bool {
    let looks = |deed: &Deed| matches!(deed.name(), DeedName::Look | DeedName::Probe);
    let op_looks = situation.op.is_some_and(|op| looks(&op.deed));
    match situation.step {
        Step::Do { deed, .. } => looks(deed),
        Step::Await(_) => {
            let is_running = |op: &Op| matches!(op.state, OpState::Running { .. } | OpState::Queued { .. });
            op_looks && situation.op.is_some_and(is_running)
        }
        Step::Settle(Settlement::Nothing | Settlement::Progressed) => op_looks,
        _ => false,
    }
}

/// Whether status was written for this very object.
fn says_all(before: &NodeImageStatus, wanted: &Wanted) -> bool {
    before.observed_generation == Some(wanted.generation)
        && before.content_key.as_ref().is_none_or(|key| *key == wanted.key)
        && find(&before.conditions, ConditionType::Ready).is_some()
        && find(&before.conditions, ConditionType::Paused).is_none()
}

/// Everything beside the conditions and what is kept.
fn describe(status: &mut NodeImageStatus, view: &View<'_>, findings: &[Finding], now: Now) {
    let ready = findings
        .iter()
        .find(|finding| finding.condition_type() == ConditionType::Ready);
    let message = ready.map(Finding::message).filter(|message| !message.is_empty());
    let is_sending = view.work == Work::Transferring;
    let fetched = fetched::fetched(view, status.transfer.as_ref(), now);
    let moves = is_sending || fetched.is_some() && view.work == Work::Importing;
    if fetched.is_some() {
        status.transfer = fetched;
    }
    let transfer = status
        .transfer
        .as_ref()
        .filter(|transfer| moves && u32::try_from(transfer.attempt) == Ok(view.kept.attempt));
    let summary = transfer
        .map(|transfer| transfer.summary.clone())
        .filter(|summary| is_sending && !summary.is_empty());
    status.progress = transfer.map(|transfer| Progress {
        done: transfer.sent_bytes,
        total: transfer.total_bytes,
        unit: "bytes".to_owned(),
    });
    if let Some(transfer) = status.transfer.as_mut().filter(|_| !moves) {
        rests(transfer);
    }
    status.message = summary
        .or_else(|| view.imported())
        .or_else(|| message.map(str::to_owned));
    if let (Some(image), Some(record)) = (&mut status.image, view.record)
        && image.id == record.id
        && record.format.is_some()
    {
        image.disk_format.clone_from(&record.format);
    }
    status.observed_generation = Some(view.wanted.generation);
    status.ready = view.is_ready;
    status.phase = Some(phase(view, ready));
    status.execution = execution(view, status.execution.as_ref());
    if let Some(failure) = notes::last_failure(view, now) {
        status.last_failure = Some(failure);
    }
    if view.wanted.request.is_some() && view.is_answered() {
        status.last_handled_reconcile_at.clone_from(&view.wanted.request);
    }
}

/// A transfer that is over, however it ended, has neither a rate nor time that is left.
fn rests(transfer: &mut TransferStatus) {
    transfer.bytes_per_second = 0;
    transfer.seconds_left = None;
    if let Some((done, _)) = transfer.summary.split_once(", ") {
        transfer.summary = done.to_owned();
    }
}

fn phase(view: &View<'_>, ready: Option<&Finding>) -> ImagePhase {
    if view.wanted.deleting.is_some() {
        return ImagePhase::Deleting;
    }
    if view.is_ready {
        return ImagePhase::Ready;
    }
    let needs_somebody =
        |finding: &Finding| finding.status() == ConditionStatus::False && finding.severity() == Some(Severity::Error);
    if ready.is_some_and(needs_somebody) {
        return ImagePhase::Failed;
    }
    match view.work {
        Work::Nothing => ImagePhase::Pending,
        Work::Preparing => ImagePhase::Preparing,
        Work::Building => ImagePhase::Building,
        Work::Transferring => ImagePhase::Transferring,
        Work::Importing => ImagePhase::Importing,
        Work::Verifying => ImagePhase::Verifying,
        Work::Deactivated => ImagePhase::Failed,
    }
}

/// Where bytes are moved. Nothing moves for an image that somebody else makes.
fn execution(view: &View<'_>, before: Option<&ExecutionStatus>) -> Option<ExecutionStatus> {
    let is_adopted = view.kept.image.as_ref().is_some_and(|image| image.adopted);
    if view.wanted.adopts() || is_adopted || view.wanted.deleting.is_some() {
        return None;
    }
    let (form, reason) = executed_as(view.wanted, &view.seen.jobs).ok()?;
    let form = match form {
        Form::InProcess => ExecutionForm::InProcess,
        Form::Job => ExecutionForm::Job,
    };
    // Whoever makes the Job writes its name.
    let before = before.filter(|before| before.form == form && form == ExecutionForm::Job);
    Some(ExecutionStatus {
        form,
        reason: executed(reason).to_owned(),
        job: before.and_then(|before| before.job.clone()),
        logs: before.and_then(|before| before.logs.clone()),
    })
}

fn next(step: &Step, now: Now) -> Next {
    match step {
        Step::Record(_) | Step::Do { .. } | Step::Stop(_) | Step::Settle(_) | Step::Claim => Next::Now,
        Step::Finish { .. } => Next::Await,
        Step::Await(wait) => {
            let look = wait.look.map_or(Next::Await, |look| at(look, now));
            let end = match wait.until {
                Until::Told(_) => Next::Await,
                Until::At(Since::Steady(deadline)) => at(deadline.saturating_add(AFTER_THE_DEADLINE), now),
                Until::Again(Since::Steady(time)) => at(time, now),
                Until::At(Since::Wall(time)) | Until::Again(Since::Wall(time)) => Next::At(time.max(now.wall)),
            };
            look.sooner(end)
        }
        Step::Rest { look } => at(*look, now),
        Step::Hold(halt) => halt.look.map_or(Next::Await, |look| at(look, now)),
    }
}

/// A steady time on the world's clock, never before now.
fn at(steady: Duration, now: Now) -> Next {
    let left = steady.saturating_sub(now.steady);
    SignedDuration::try_from(left)
        .ok()
        .and_then(|left| now.wall.checked_add(left).ok())
        .map_or(Next::Await, Next::At)
}

/// A past steady time on the world's clock.
fn wall_of(steady: Duration, now: Now) -> Timestamp {
    let signed = |duration: Duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let moved = signed(steady).saturating_sub(signed(now.steady));
    now.wall.saturating_add(moved).unwrap_or(now.wall)
}
