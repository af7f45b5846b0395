//! What is known of the Jobs of all objects, and what becomes of it by what is told: by drivers, by the watch, by the answers of the API server. Asks
//! nobody and wakes nobody.

mod barred;
mod watched;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crds::providers::image_status::TransferStatus;
use planning::image::{Deed, Done, Failure, FailureClass, Form, Op, OpState, StopReason};
use tokio::task::JoinHandle;

pub(super) use self::barred::without_right;
use super::ending::{Before, unsent};
use crate::executor::OpView;
use crate::objects::ObjectId;
use crate::worker::{Found, WorkPlan};

/// Everything that is known.
#[derive(Default)]
pub(super) struct Desk {
    entries: HashMap<ObjectId, Entry>,
    /// What is done about each object last.
    turns: HashMap<ObjectId, JoinHandle<()>>,
    /// Since when Jobs cannot be had, until when that is believed, and why; of all namespaces under no name.
    barred: BTreeMap<String, (Duration, String)>,
    /// Identities of the Jobs in a list that has not ended.
    listing: HashSet<String>,
    is_listed: bool,
    is_closed: bool,
}

/// A Job that is meant: this very one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) uid: String,
}

/// The Job of one object.
struct Entry {
    deed: Deed,
    key: String,
    since: Duration,
    /// Once it is there.
    job: Option<Target>,
    /// Since when the container that sends runs.
    sends: Option<Duration>,
    /// Whether it runs no more, as far as the Job tells: its Pod has a successor, or its node does not answer.
    is_silent: bool,
    /// What was sent when that was last seen to change, and when.
    sent: Option<(i64, Duration)>,
    /// Whether somebody looks why it does not begin, and what he has found.
    is_looked_after: bool,
    held: Option<String>,
    state: State,
}

/// What stays when the end of a Job is noted: the Job itself, for its logs, or nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaves(pub(super) Option<Target>);

enum State {
    /// It is made, or about to be.
    Under,
    /// It is over, and its Pods are asked how.
    Asking,
    /// It is told to end.
    Stopping { since: Duration, why: StopReason },
    /// The driver is to take note of it. `stays`: whether the Job is there, for its logs.
    Ended {
        outcome: Result<Done, Failure>,
        at: Duration,
        stays: bool,
    },
    /// The driver has. It is nobody's business any more.
    Noted,
}

impl Entry {
    fn new(plan: &WorkPlan, since: Duration) -> Self {
        Self {
            deed: plan.deed.clone(),
            key: plan.image.subject.key.as_str().to_owned(),
            since,
            job: None,
            sends: None,
            is_silent: false,
            sent: None,
            is_looked_after: false,
            held: None,
            state: State::Under,
        }
    }

    fn is(&self, uid: &str) -> bool {
        self.job.as_ref().is_some_and(|job| job.uid == uid)
    }

    fn end(&mut self, outcome: Result<Done, Failure>, at: Duration, stays: bool) {
        self.state = State::Ended { outcome, at, stays };
    }

    /// It was stopped, in words.
    fn stopped(&self, why: StopReason) -> Failure {
        let is_built = matches!(self.deed, Deed::Build { .. }) && self.sends.is_some();
        if why == StopReason::Stalled && is_built {
            return unsent("nothing moved while it was sent");
        }
        let stopped = stopped(why, &self.deed);
        match &self.held {
            Some(held) if why == StopReason::Stalled => Failure {
                message: format!("{}: {held}", stopped.message),
                ..stopped
            },
            _ => stopped,
        }
    }

    fn attempt(&self) -> Option<i64> {
        attempt(&self.deed)
    }

    /// Bytes count once the container that sends runs: before, they are those of an earlier try.
    fn running(&mut self, sent: Option<&TransferStatus>, now: Duration) -> OpState {
        let Some(begun) = self.sends else {
            return OpState::Running {
                since: self.since,
                moved: self.since,
                bytes: None,
            };
        };
        let sent = sent.filter(|sent| Some(sent.attempt) == self.attempt());
        let count = |bytes: i64| u64::try_from(bytes).unwrap_or_default();
        if let Some(sent) = sent
            && self.sent.is_none_or(|(bytes, _)| bytes != sent.sent_bytes)
        {
            self.sent = Some((sent.sent_bytes, now));
        }
        OpState::Running {
            since: self.since,
            moved: self.sent.map_or(begun, |(_, moved)| moved.max(begun)),
            bytes: Some((
                sent.map_or(0, |sent| count(sent.sent_bytes)),
                sent.and_then(|sent| sent.total_bytes).map(count),
            )),
        }
    }
}

/// What drivers say.
impl Desk {
    /// Whether a Job is to be made. An end that nobody has noted is noted first.
    pub(super) fn begin(&mut self, plan: &WorkPlan, now: Duration) -> bool {
        if !self.is_free(&plan.object) {
            return false;
        }
        let mut entry = Entry::new(plan, now);
        let is_closed = self.is_closed;
        if is_closed {
            entry.end(Err(stopped(StopReason::Draining, &plan.deed)), now, false);
        }
        self.entries.insert(plan.object.clone(), entry);
        !is_closed
    }

    /// Whether there is no Job that anybody has still to do with.
    pub(super) fn is_free(&self, object: &ObjectId) -> bool {
        let entry = self.entries.get(object);
        entry.is_none_or(|entry| matches!(entry.state, State::Noted))
    }

    /// Gives the Job that is to be deleted. One that is still being made is deleted by whoever makes it.
    pub(super) fn stop(&mut self, object: &ObjectId, why: StopReason, now: Duration) -> Option<Target> {
        let entry = self.entries.get_mut(object)?;
        match entry.state {
            State::Under | State::Asking => {
                entry.state = State::Stopping { since: now, why };
                entry.job.clone()
            }
            State::Stopping { .. } | State::Ended { .. } | State::Noted => None,
        }
    }

    /// `None`: nothing has ended.
    pub(super) fn forget(&mut self, object: &ObjectId) -> Option<Leaves> {
        let entry = self.entries.get_mut(object)?;
        let State::Ended { stays, .. } = entry.state else {
            return None;
        };
        let job = entry.job.clone().filter(|_| stays);
        if job.is_some() {
            entry.state = State::Noted;
        } else {
            self.entries.remove(object);
        }
        Some(Leaves(job))
    }

    pub(super) fn view(&mut self, object: &ObjectId, sent: Option<&TransferStatus>, now: Duration) -> Option<OpView> {
        let entry = self.entries.get_mut(object)?;
        let state = match &entry.state {
            State::Under | State::Asking => entry.running(sent, now),
            State::Stopping { since, why } => OpState::Stopping {
                since: *since,
                why: *why,
            },
            State::Ended { outcome, at, .. } => OpState::Ended {
                outcome: outcome.clone(),
                at: *at,
            },
            State::Noted => return None,
        };
        Some(OpView {
            op: Op {
                deed: entry.deed.clone(),
                key: entry.key.clone(),
                form: Form::Job,
                state,
            },
            found: Found::default(),
            progress: None,
        })
    }

    /// The name of the Job, from when it is there until nobody is to take note of it any more.
    pub(super) fn job(&self, object: &ObjectId) -> Option<String> {
        let entry = self.entries.get(object)?;
        let job = entry.job.as_ref().filter(|_| !matches!(entry.state, State::Noted));
        job.map(|job| job.name.clone())
    }

    /// Whose images are sent, or were about to be when the Job was told to end.
    pub(super) fn sending(&self) -> Vec<ObjectId> {
        let is_sending = |entry: &Entry| {
            let is_under_way = matches!(entry.state, State::Under | State::Asking | State::Stopping { .. });
            is_under_way && matches!(entry.deed, Deed::Transfer { .. })
        };
        let sending = self.entries.iter().filter(|(_, entry)| is_sending(entry));
        sending.map(|(object, _)| object.clone()).collect()
    }

    /// Nothing begins any more.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }
}

/// What the API server answers.
impl Desk {
    /// The Job is there. Gives it back where somebody stopped it meanwhile.
    pub(super) fn made(&mut self, object: &ObjectId, uid: &str, now: Duration) -> Option<Target> {
        let entry = self.entries.get_mut(object)?;
        let attempt = entry.attempt().and_then(|attempt| u32::try_from(attempt).ok())?;
        let target = Target {
            name: super::names::job(object, attempt),
            uid: uid.to_owned(),
        };
        // The watch may have been faster.
        if entry.job.is_none() {
            entry.since = now;
            entry.job = Some(target.clone());
        }
        matches!(entry.state, State::Stopping { .. }).then_some(target)
    }

    /// No Job was made; or the watch has shown it, and what is missing is the answer. Gives it back where somebody stopped it meanwhile.
    pub(super) fn fail(&mut self, object: &ObjectId, outcome: Result<Done, Failure>, now: Duration) -> Option<Target> {
        let entry = self.entries.get_mut(object)?;
        if let Some(job) = &entry.job {
            return matches!(entry.state, State::Stopping { .. }).then(|| job.clone());
        }
        match entry.state {
            State::Stopping { why, .. } => {
                let outcome = Err(entry.stopped(why));
                entry.end(outcome, now, false);
            }
            State::Under => entry.end(outcome, now, false),
            State::Asking | State::Ended { .. } | State::Noted => {}
        }
        None
    }

    /// Whether somebody still waits for a Job that is being made.
    pub(super) fn is_wanted(&self, object: &ObjectId) -> bool {
        let state = self.entries.get(object).map(|entry| &entry.state);
        matches!(state, Some(State::Under))
    }

    pub(super) fn is_stopping(&self, object: &ObjectId, uid: &str) -> bool {
        let entry = self.entries.get(object).filter(|entry| entry.is(uid));
        entry.is_some_and(|entry| matches!(entry.state, State::Stopping { .. }))
    }

    /// It is gone, or its node does not answer. Says whether that was news.
    pub(super) fn end_stopped(&mut self, object: &ObjectId, uid: &str, now: Duration) -> bool {
        let Some(entry) = self.entries.get_mut(object).filter(|entry| entry.is(uid)) else {
            return false;
        };
        let State::Stopping { why, .. } = entry.state else {
            return false;
        };
        let outcome = Err(entry.stopped(why));
        entry.end(outcome, now, false);
        true
    }

    /// How it ended is known.
    pub(super) fn over(&mut self, object: &ObjectId, uid: &str, outcome: Result<Done, Failure>, now: Duration) {
        if let Some(entry) = self.entries.get_mut(object).filter(|entry| entry.is(uid))
            && matches!(entry.state, State::Asking)
        {
            entry.end(outcome, now, true);
        }
    }
}

/// What holds a Job up before it sends.
impl Desk {
    /// Whether somebody has to begin to look: one at a time does for each Job.
    pub(super) fn look_after(&mut self, object: &ObjectId, uid: &str) -> bool {
        let entry = self.entries.get_mut(object).filter(|entry| entry.is(uid));
        entry.is_some_and(|entry| !std::mem::replace(&mut entry.is_looked_after, true))
    }

    /// Whether whoever looks is to look once more: as long as it is to begin, or may have to once more.
    pub(super) fn looks_on(&mut self, object: &ObjectId, uid: &str) -> bool {
        let is_closed = self.is_closed;
        let Some(entry) = self.entries.get_mut(object).filter(|entry| entry.is(uid)) else {
            return false;
        };
        let is_before = matches!(entry.state, State::Under) && (entry.sends.is_none() || entry.is_silent);
        entry.is_looked_after = is_before && !is_closed;
        entry.is_looked_after
    }

    /// Its Pod has a successor that has not come to send: nothing can move before, and a build is done once more. Says whether that is news.
    pub(super) fn begin_anew(&mut self, object: &ObjectId, uid: &str, now: Duration) -> bool {
        let is_silent = |entry: &&mut Entry| entry.is(uid) && entry.is_silent && matches!(entry.state, State::Under);
        let Some(entry) = self.entries.get_mut(object).filter(is_silent) else {
            return false;
        };
        (entry.since, entry.sends, entry.is_silent) = (now, None, false);
        true
    }

    /// Whether it is still to begin.
    pub(super) fn begins(&self, object: &ObjectId, uid: &str) -> bool {
        let entry = self.entries.get(object).filter(|entry| entry.is(uid));
        let is_before = |entry: &Entry| matches!(entry.state, State::Under) && entry.sends.is_none();
        !self.is_closed && entry.is_some_and(is_before)
    }

    /// Notes what does, or that nothing is known to. Says whether that is news.
    pub(super) fn hold(&mut self, object: &ObjectId, uid: &str, held: Option<String>) -> bool {
        if !self.begins(object, uid) {
            return false;
        }
        let entry = self.entries.get_mut(object);
        entry.is_some_and(|entry| std::mem::replace(&mut entry.held, held) != entry.held)
    }

    /// What holds it up, or did when it was ended.
    pub(super) fn held(&self, object: &ObjectId) -> Option<String> {
        self.entries.get(object)?.held.clone()
    }

    /// What was known of it while it ran.
    pub(super) fn before(&self, object: &ObjectId, uid: &str) -> Before {
        let entry = self.entries.get(object).filter(|entry| entry.is(uid));
        entry.map_or_else(Before::default, |entry| Before {
            held: entry.held.clone(),
            sends: entry.sends.is_some(),
        })
    }
}

/// One after the other.
impl Desk {
    pub(super) fn take_turn(&mut self, object: &ObjectId) -> Option<JoinHandle<()>> {
        self.turns.retain(|_, turn| !turn.is_finished());
        self.turns.remove(object)
    }

    pub(super) fn give_turn(&mut self, object: ObjectId, turn: JoinHandle<()>) {
        self.turns.insert(object, turn);
    }
}

fn attempt(deed: &Deed) -> Option<i64> {
    match deed {
        Deed::Transfer { attempt, .. } | Deed::Build { attempt, .. } => Some((*attempt).into()),
        _ => None,
    }
}

fn stopped(why: StopReason, deed: &Deed) -> Failure {
    let words = match (why, deed) {
        (StopReason::Deleted, _) => "the Job was ended, because the object is being deleted",
        (StopReason::Changed, _) => "the Job was ended, because something else is wanted now",
        (StopReason::Paused, _) => "the Job was ended, because the work on it is paused",
        (StopReason::Stalled, Deed::Build { .. }) => {
            "the Job was ended, because the build takes longer than it may, or no node takes it"
        }
        (StopReason::Stalled, _) => "the Job was ended, because nothing moved, or no node takes it",
        (StopReason::Fenced, _) => "the Job was ended, because another process leads",
        (StopReason::Draining, _) => "no Job was made, because this process ends",
    };
    Failure::new(FailureClass::Stopped { why }, words.to_owned())
}
