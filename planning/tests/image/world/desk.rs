//! What one process knows of Jobs: of its own by what it was answered, of those of earlier lives by a list before it decides anything, and of how they end
//! by a watch that may be late. Decides nothing.

use std::time::Duration;

use planning::image::{Deed, Done, FailureClass, Form, JobsSight, Op, OpState, StopReason};

use super::cloud::failure;
use super::jobs::{GONE, Job, Making, Stage};
use super::object::Object;
use super::{Arrival, Mishap, Planted, World};

/// How long an earlier Job may be in the way of the next one.
const CLEARING: Duration = Duration::from_mins(1);
/// How long it is believed that Jobs cannot be had.
const BARRED: Duration = Duration::from_mins(1);

#[derive(Clone, Debug, Default)]
pub(crate) struct Desk {
    /// The Job of what is under way, once it is there.
    job: Option<u64>,
    /// Since when one is asked for, and for what.
    making: Option<(Duration, Object)>,
    /// Whether the program that sends has run.
    sends: bool,
    /// For so many steps the watch tells nothing new.
    pub(crate) late: u8,
    watched: Vec<Job>,
    /// How many there had ever been when the watch told of them.
    revision: u64,
    is_listed: bool,
    /// Until when it is believed that none can be had.
    barred: Option<Duration>,
}

impl World {
    /// What a process hears of Jobs before it decides.
    pub(super) fn follow(&mut self, who: usize) {
        let desk = &mut self.operators[who].desk;
        let is_first = !std::mem::replace(&mut desk.is_listed, true);
        if desk.late > 0 && !is_first {
            desk.late -= 1;
        } else {
            desk.watched.clone_from(&self.cluster.jobs);
            desk.revision = self.cluster.made;
        }
        if self.operators[who].op.is_none() {
            self.find_job(who, is_first);
        }
        let op = self.operators[who].op.as_ref();
        let Some(state) = op.filter(|op| op.form == Form::Job).map(|op| op.state.clone()) else {
            return;
        };
        match state {
            OpState::Queued { .. } => self.wait_for_turn(who),
            OpState::Running { since, .. } => self.hear_of_job(who, since),
            OpState::Stopping { since, why } => self.wait_for_end(who, since, why),
            OpState::Ended { .. } => {}
        }
    }

    /// Whether Jobs can be had, as far as a process knows.
    pub(super) fn jobs_sight(&self, who: usize) -> JobsSight {
        let desk = &self.operators[who].desk;
        if desk.barred.is_some_and(|until| self.steady < until) {
            return JobsSight::Off {
                why: "exceeded quota: no Jobs".to_owned(),
            };
        }
        let job = desk.job.and_then(|uid| self.cluster.job(uid));
        let waits = job.is_some_and(|job| matches!(job.shown, Stage::Waits { .. }));
        if waits && !self.cluster.takes {
            return JobsSight::Held {
                why: "no node takes it".to_owned(),
            };
        }
        JobsSight::Usable
    }

    /// A Job that is nobody's by now is what is under way. One that was being deleted when this process began may have been told to end by an earlier life;
    /// for another one somebody has waited.
    fn find_job(&mut self, who: usize, is_first: bool) {
        if self.planted == Some(Planted::FindsNoJobs) {
            return;
        }
        let counts = |job: &&Job| !job.noted && (job.shown.is_over() || job.going.is_none() || is_first);
        let now = self.steady;
        let operator = &mut self.operators[who];
        let Some(job) = operator.desk.watched.iter().find(counts) else {
            return;
        };
        operator.op = Some(Op {
            deed: job.deed.clone(),
            key: job.told.spec.key(),
            form: Form::Job,
            state: OpState::Running {
                since: now,
                moved: now,
                bytes: None,
            },
        });
        operator.desk.job = Some(job.uid);
    }

    /// Has a Job made.
    pub(super) fn begin_job(&mut self, who: usize, deed: &Deed, mishap: Mishap) {
        let now = self.steady;
        if who != self.leader {
            // The API server does not hear him.
            return self.end(who, Err(failure(FailureClass::Unknown)));
        }
        let order = self.operators[who].cached.clone();
        if let Mishap::Late(commands) = mishap {
            self.arrivals.push(Arrival {
                commands,
                deed: deed.clone(),
                sender: order,
            });
            return;
        }
        self.operators[who].desk.making = Some((now, order));
        // What builds sends nothing for most of its time.
        if self.cluster.crowded && matches!(deed, Deed::Transfer { .. }) {
            return self.set_state(who, OpState::Queued { since: now, ahead: 1 });
        }
        self.make_job(who);
        if mishap != Mishap::AnswerLost {
            return;
        }
        if let Some(uid) = self.operators[who].desk.job.take() {
            self.job_strays(uid);
            self.end(who, Err(failure(FailureClass::Unknown)));
        }
    }

    fn set_state(&mut self, who: usize, state: OpState) {
        if let Some(op) = &mut self.operators[who].op {
            op.state = state;
        }
    }

    fn make_job(&mut self, who: usize) {
        let now = self.steady;
        let operator = &self.operators[who];
        let (Some(op), Some((since, order))) = (&operator.op, &operator.desk.making) else {
            return;
        };
        let is_late = now > *since + CLEARING;
        let making = self.cluster.make(&op.deed, order, now);
        let desk = &mut self.operators[who].desk;
        match making {
            Making::Made(uid) => {
                (desk.job, desk.making) = (Some(uid), None);
                let state = OpState::Running {
                    since: now,
                    moved: now,
                    bytes: None,
                };
                self.set_state(who, state);
            }
            Making::Refused => {
                desk.barred = Some(now + BARRED);
                self.end(who, Err(failure(FailureClass::JobVanished)));
            }
            // Its name is free when its node answers, if ever: another attempt has another one.
            Making::InTheWay if is_late => self.end(who, Ok(Done::Taken)),
            Making::InTheWay => {}
        }
    }

    fn wait_for_turn(&mut self, who: usize) {
        if self.cluster.crowded {
            return;
        }
        let now = self.steady;
        if let Some((since, _)) = &mut self.operators[who].desk.making {
            *since = now;
        }
        let state = OpState::Running {
            since: now,
            moved: now,
            bytes: None,
        };
        self.set_state(who, state);
        self.make_job(who);
    }

    fn hear_of_job(&mut self, who: usize, since: Duration) {
        let now = self.steady;
        let desk = &mut self.operators[who].desk;
        let Some(uid) = desk.job else {
            return self.make_job(who);
        };
        let Some(job) = desk.watched.iter().find(|job| job.uid == uid).cloned() else {
            // A watch that is late has not told of it yet.
            if uid <= desk.revision {
                self.end(who, Err(failure(FailureClass::JobVanished)));
            }
            return;
        };
        match job.shown {
            Stage::Over { outcome, .. } => self.end(who, outcome),
            _ if job.going.is_some() => {
                // Whoever deletes it has his reasons.
                let why = StopReason::Changed;
                self.set_state(who, OpState::Stopping { since: now, why });
            }
            Stage::Sends { moved, .. } => {
                desk.sends = true;
                let bytes = Some((0, None));
                self.set_state(who, OpState::Running { since, moved, bytes });
            }
            Stage::Waits { .. } | Stage::Builds { .. } => {}
        }
    }

    /// Tells what is under way to end.
    pub(super) fn stop(&mut self, who: usize, why: StopReason) {
        let (since, leads) = (self.steady, who == self.leader);
        let operator = &mut self.operators[who];
        let Some(op) = &mut operator.op else { return };
        let has_waited = matches!(op.state, OpState::Queued { .. });
        op.state = OpState::Stopping { since, why };
        if op.form == Form::InProcess {
            return;
        }
        if has_waited {
            return self.end(who, Err(failure(FailureClass::Stopped { why })));
        }
        let job = operator.desk.job.filter(|_| leads);
        if let Some(job) = job.and_then(|uid| self.cluster.job_mut(uid)) {
            job.going.get_or_insert(since);
        }
    }

    /// A Job has ended when it is gone, or its node does not answer for too long.
    fn wait_for_end(&mut self, who: usize, since: Duration, why: StopReason) {
        let operator = &self.operators[who];
        let is_there = operator.desk.job.is_some_and(|uid| self.cluster.job(uid).is_some());
        let waits = self.planted != Some(Planted::WaitsForNoJob);
        if is_there && waits && self.steady < since + GONE {
            return;
        }
        let builds = operator
            .op
            .as_ref()
            .is_some_and(|op| matches!(op.deed, Deed::Build { .. }));
        // The build is not at fault where its image is not taken.
        let class = if builds && operator.desk.sends && why == StopReason::Stalled {
            FailureClass::Unavailable
        } else {
            FailureClass::Stopped { why }
        };
        self.end(who, Err(failure(class)));
    }

    /// What has ended is in status. That is written on its Job, so that no later life takes it for news.
    pub(super) fn forget(&mut self, who: usize) {
        let leads = who == self.leader;
        let operator = &mut self.operators[who];
        operator.op = None;
        let desk = &mut operator.desk;
        (desk.making, desk.sends) = (None, false);
        let Some(uid) = desk.job.take().filter(|_| leads) else {
            return;
        };
        for job in desk.watched.iter_mut().chain(&mut self.cluster.jobs) {
            job.noted |= job.uid == uid && job.shown.is_over();
        }
    }
}
