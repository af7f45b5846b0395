//! Deeds as tasks of this process. Keeps what is known of each until it is forgotten, gives turns by lanes and asks no cloud while a gate is shut.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use planning::image::{Done, Failure, FailureClass, Form, Op, OpState, StopReason};
use tokio::sync::oneshot;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::{Asking, Turn};
use super::errand::{self, Others, Pace};
use super::gates::Gates;
use super::lanes::{Lanes, Ticket};
use super::{Executor, OpView, Order};
use crate::clock::Steady;
use crate::objects::ObjectId;
use crate::progress::Ledgers;
use crate::worker::{Failed, Found, Whose, Worked};

/// Told of every object whose deed has begun or ended. Must not wait.
pub(crate) type Wake = Arc<dyn Fn(&ObjectId) + Send + Sync>;

/// How much is done at once. A bound of 0 is one of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Short deeds in one cloud.
    pub(crate) short: usize,
    /// Deeds that move all bytes of an image, in one cloud.
    pub(crate) transfers: usize,
    /// The same in all clouds together.
    pub(crate) transfers_total: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            short: 8,
            transfers: 2,
            transfers_total: 16,
        }
    }
}

/// Does deeds in this process. Cheap to clone; clones are one executor.
#[derive(Clone)]
pub(crate) struct InProcess(pub(super) Arc<Shared>);

pub(super) struct Shared {
    steady: Steady,
    ledgers: Ledgers,
    wake: Wake,
    tasks: TaskTracker,
    desk: Mutex<Desk>,
}

pub(super) struct Desk {
    pub(super) lanes: Lanes,
    pub(super) gates: Gates,
    entries: HashMap<ObjectId, Entry>,
    /// Who waits to ask something for no object, by his ticket.
    pub(super) asking: HashMap<ObjectId, Asking>,
    pub(super) is_closed: bool,
}

/// What is known of one object's deed.
struct Entry {
    order: Arc<Order>,
    ticket: Ticket,
    pace: Arc<Pace>,
    state: State,
}

enum State {
    Queued {
        since: Duration,
    },
    Running {
        since: Duration,
        token: CancellationToken,
        stopping: Option<(Duration, StopReason)>,
    },
    Ended {
        outcome: Result<Done, Failure>,
        found: Box<Found>,
        at: Duration,
    },
}

impl InProcess {
    /// Nothing is under way.
    pub(crate) fn new(bounds: Bounds, steady: Steady, ledgers: Ledgers, wake: Wake) -> Self {
        let desk = Desk {
            lanes: Lanes::new(bounds),
            gates: Gates::default(),
            entries: HashMap::new(),
            asking: HashMap::new(),
            is_closed: false,
        };
        Self(Arc::new(Shared {
            steady,
            ledgers,
            wake,
            tasks: TaskTracker::new(),
            desk: Mutex::new(desk),
        }))
    }
}

impl Executor for InProcess {
    fn begin(&self, order: Order) {
        let object = order.plan.object.clone();
        let now = self.0.steady.now();
        let mut desk = self.0.desk();
        if desk.entries.contains_key(&object) {
            return;
        }
        let ticket = Ticket {
            object: object.clone(),
            cloud: order.connection.cloud().clone(),
            is_long: order.plan.deed.name().is_long(),
        };
        let pace = Pace::new(self.0.steady, order.connection.counts().clone());
        let entry = Entry {
            order: Arc::new(order),
            ticket: ticket.clone(),
            pace,
            state: State::Queued { since: now },
        };
        desk.entries.insert(object.clone(), entry);
        if desk.is_closed {
            desk.end(&object, Err(stopped(StopReason::Draining)), Found::default(), now);
            drop(desk);
            (self.0.wake)(&object);
        } else {
            desk.lanes.join(ticket);
            drop(desk);
            self.0.dispatch();
        }
    }

    fn look(&self, object: &ObjectId) -> Option<OpView> {
        let desk = self.0.desk();
        let entry = desk.entries.get(object)?;
        Some(entry.view(&desk.lanes))
    }

    fn stop(&self, object: &ObjectId, why: StopReason) {
        let now = self.0.steady.now();
        let ended = self.0.desk().stop(object, why, now);
        if ended {
            (self.0.wake)(object);
        }
    }

    fn stop_all(&self, why: StopReason) {
        let now = self.0.steady.now();
        let mut desk = self.0.desk();
        let mut ended: Vec<ObjectId> = desk.entries.keys().cloned().collect();
        ended.retain(|object| desk.stop(object, why, now));
        drop(desk);
        for object in &ended {
            (self.0.wake)(object);
        }
    }

    fn forget(&self, object: &ObjectId) {
        let mut desk = self.0.desk();
        let has_ended = |entry: &Entry| matches!(entry.state, State::Ended { .. });
        if desk.entries.get(object).is_some_and(has_ended) {
            desk.entries.remove(object);
        }
    }

    fn drain(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.close();
            if time::timeout(patience, self.0.tasks.wait()).await.is_err() {
                self.stop_all(StopReason::Draining);
                self.0.tasks.wait().await;
            }
        })
    }
}

impl Shared {
    pub(super) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Duration {
        self.steady.now()
    }

    /// Nothing new begins, and what waits for its turn ends.
    fn close(&self) {
        let now = self.steady.now();
        let mut desk = self.desk();
        desk.is_closed = true;
        let entries = desk.entries.values();
        let queued = entries.filter(|entry| matches!(entry.state, State::Queued { .. }));
        let queued: Vec<ObjectId> = queued.map(|entry| entry.ticket.object.clone()).collect();
        for object in &queued {
            desk.stop(object, StopReason::Draining, now);
        }
        drop(desk);
        for object in &queued {
            (self.wake)(object);
        }
        self.tasks.close();
    }

    /// Begins everything whose turn it is.
    pub(super) fn dispatch(self: &Arc<Self>) {
        let now = self.steady.now();
        let mut moved = Vec::new();
        let mut told: Vec<(oneshot::Sender<Turn>, Turn)> = Vec::new();
        let mut desk = self.desk();
        while let Some(ticket) = desk.lanes.next() {
            if let Some(asked) = desk.asked(&ticket, now) {
                told.push(asked);
                continue;
            }
            self.give_turn(&mut desk, &ticket, now);
            moved.push(ticket.object);
        }
        drop(desk);
        for (turn, told) in told {
            // Who does not listen any more gives the turn back by himself.
            let _ = turn.send(told);
        }
        for object in &moved {
            (self.wake)(object);
        }
    }

    fn give_turn(self: &Arc<Self>, desk: &mut Desk, ticket: &Ticket, now: Duration) {
        let Desk {
            lanes, gates, entries, ..
        } = desk;
        let Some(entry) = entries.get_mut(&ticket.object) else {
            return lanes.done(ticket);
        };
        if let Some(failure) = gates.refusal(&entry.order.connection, now) {
            lanes.done(ticket);
            return desk.end(&ticket.object, Err(failure), Found::default(), now);
        }
        if let State::Queued { since } = entry.state {
            let counts = entry.order.connection.counts();
            counts.queued(ticket.is_long, now.saturating_sub(since));
        }
        let token = CancellationToken::new();
        entry.state = State::Running {
            since: now,
            token: token.clone(),
            stopping: None,
        };
        let (shared, order, pace) = (Arc::clone(self), Arc::clone(&entry.order), Arc::clone(&entry.pace));
        let ticket = ticket.clone();
        self.tasks.spawn(async move {
            let ledger = shared.ledgers.open(&order.plan);
            let desk = Arc::clone(&shared);
            let others: Others = Box::new(move || desk.desk().lanes.others_wait(&ticket));
            // Whatever is dropped here is over before anybody is told of the end.
            let worked = token
                .run_until_cancelled(errand::run(&order, pace, ledger, others))
                .await;
            shared.ended(&order, worked);
        });
    }

    /// `None`: it was stopped.
    fn ended(self: &Arc<Self>, order: &Order, worked: Option<Worked>) {
        let now = self.steady.now();
        let object = &order.plan.object;
        let mut desk = self.desk();
        let failed = worked.as_ref().and_then(|worked| worked.outcome.as_ref().err());
        desk.gates.learn(&order.connection, failed, now);
        if let Some(entry) = desk.entries.get(object) {
            entry.count(worked.as_ref(), now);
            let ticket = entry.ticket.clone();
            desk.lanes.done(&ticket);
        }
        let (outcome, found) = match worked {
            Some(Worked { outcome, found }) => (outcome.map_err(|failed| failed.failure), found),
            None => (Err(stopped(desk.why(object))), Found::default()),
        };
        desk.end(object, outcome, found, now);
        drop(desk);
        self.dispatch();
        (self.wake)(object);
    }
}

impl Desk {
    fn end(&mut self, object: &ObjectId, outcome: Result<Done, Failure>, found: Found, at: Duration) {
        if let Some(entry) = self.entries.get_mut(object) {
            entry.state = State::Ended {
                outcome,
                found: Box::new(found),
                at,
            };
        }
    }

    /// Whether it ended right away.
    fn stop(&mut self, object: &ObjectId, why: StopReason, now: Duration) -> bool {
        let Self { lanes, entries, .. } = self;
        let Some(entry) = entries.get_mut(object) else {
            return false;
        };
        match &mut entry.state {
            State::Queued { .. } => {
                lanes.leave(&entry.ticket);
                self.end(object, Err(stopped(why)), Found::default(), now);
                true
            }
            State::Running { token, stopping, .. } => {
                stopping.get_or_insert((now, why));
                token.cancel();
                false
            }
            State::Ended { .. } => false,
        }
    }

    /// What it was stopped for.
    fn why(&self, object: &ObjectId) -> StopReason {
        match self.entries.get(object).map(|entry| &entry.state) {
            Some(State::Running {
                stopping: Some((_, why)),
                ..
            }) => *why,
            // Nobody stops anything without saying why.
            _ => StopReason::Changed,
        }
    }
}

impl Entry {
    /// Counts an image that was sent.
    fn count(&self, worked: Option<&Worked>, now: Duration) {
        let is_sent = worked.is_some_and(|worked| worked.outcome == Ok(Done::Sent));
        if let (State::Running { since, .. }, true) = (&self.state, is_sent) {
            self.order.connection.counts().transferred(now.saturating_sub(*since));
        }
    }

    fn view(&self, lanes: &Lanes) -> OpView {
        let plan = &self.order.plan;
        let last = self.pace.last();
        let (state, found) = match &self.state {
            State::Queued { since } => {
                let ahead = u32::try_from(lanes.ahead(&self.ticket)).unwrap_or(u32::MAX);
                (OpState::Queued { since: *since, ahead }, Found::default())
            }
            State::Running {
                stopping: Some((since, why)),
                ..
            } => (
                OpState::Stopping {
                    since: *since,
                    why: *why,
                },
                Found::default(),
            ),
            State::Running { since, .. } => {
                let state = OpState::Running {
                    since: *since,
                    moved: last.map_or(*since, |(_, moved)| moved),
                    bytes: last.map(|(progress, _)| (progress.sent, progress.total)),
                };
                (state, Found::default())
            }
            State::Ended { outcome, found, at } => {
                let outcome = outcome.clone();
                (OpState::Ended { outcome, at: *at }, Found::clone(found))
            }
        };
        OpView {
            op: Op {
                deed: plan.deed.clone(),
                key: plan.image.subject.key.as_str().to_owned(),
                form: Form::InProcess,
                state,
            },
            found,
            progress: last.map(|(progress, _)| progress),
        }
    }
}

pub(super) fn stopped(why: StopReason) -> Failure {
    let words = match why {
        StopReason::Deleted => "it was stopped, because the object is being deleted",
        StopReason::Changed => "it was stopped, because something else is wanted now",
        StopReason::Paused => "it was stopped, because the work on it is paused",
        StopReason::Stalled => "it was stopped, because nothing moved",
        StopReason::Fenced => "it was stopped, because another process leads",
        StopReason::Draining => "it was stopped, because this process ends",
    };
    Failed::new(FailureClass::Stopped { why }, words, Whose::Cloud).failure
}
