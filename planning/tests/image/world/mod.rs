//! One object, one cloud, one source, a cluster that runs Jobs and two processes that both think they may work on the object. Decides nothing that is
//! tested; sees to it that what must never happen does not.

pub(crate) mod cloud;
mod desk;
mod invariants;
mod jobs;
pub(crate) mod object;
mod operator;
mod perform;
mod pods;
pub(crate) mod script;
mod telling;

use std::time::Duration;

use crds::providers::image_status::NodeImageStatus;
use jiff::{SignedDuration, Timestamp};
use planning::image::{
    Awaited, Deed, Done, Failure, FailureClass, Form, Now, OpState, Sealed, Step, StopReason, Unshown, Until, after,
    decide,
};

use self::cloud::{Cloud, Image, TAKES, failure, sha256, sha512};
use self::jobs::Cluster;
use self::object::{Object, Spec, published};
use self::operator::Operator;

/// What goes wrong with one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    Nothing,
    /// It is done, and the answer does not come.
    AnswerLost,
    /// The process dies before anything leaves it.
    CrashBefore,
    /// The process dies when all is done.
    CrashAfter,
    /// The process dies, and what it sent arrives after so many commands.
    Late(u8),
    /// Nothing is done, and no answer comes.
    Hangs,
}

/// A fault that is planted in whoever performs the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    DiscardsBeforeItIsWritten,
    PublishesBeforeItIsWritten,
    PublishesWhatDiffers,
    SendsToSpoiltRecords,
    TakesImagesByName,
    FinishesWithoutLooking,
    CreatesBeforeItIsWritten,
    PublishesTwo,
    ShowsUnverified,
    ForgetsAttempt,
    AdoptsUnasked,
    ForgetsToLook,
    FindsNoJobs,
    WaitsForNoJob,
}

/// What the source gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giving {
    Bytes,
    /// It breaks off so many times.
    Broken(u32),
    Nothing,
    Html,
}

/// Something that was sent and has not arrived.
#[derive(Clone, Debug)]
struct Arrival {
    commands: u8,
    deed: Deed,
    sender: Object,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) cloud: Cloud,
    pub(crate) cluster: Cluster,
    pub(crate) object: Object,
    pub(crate) giving: Giving,
    /// Whether the source gives other bytes than it was published with.
    pub(crate) replaced: bool,
    pub(crate) operators: [Operator; 2],
    /// Who holds the Lease.
    pub(crate) leader: usize,
    pub(crate) asleep: Option<usize>,
    pub(crate) planted: Option<Planted>,
    pub(crate) steady: Duration,
    pub(crate) log: Vec<String>,
    pub(crate) violations: Vec<String>,
    pub(crate) writes: u32,
    pub(crate) looks: u32,
    pub(crate) left_behind: Vec<String>,
    pub(crate) last: Option<Step>,
    /// What people read.
    pub(crate) status: NodeImageStatus,
    /// How often that changed.
    pub(crate) told: u32,
    /// Records that whoever does not lead any more may have made when nobody looked again.
    pub(crate) orphans: Vec<String>,
    arrivals: Vec<Arrival>,
    strangers: Vec<(String, Image)>,
    connections: u64,
    attempt_before: u32,
    /// Whether somebody ever asked for another's image.
    may_adopt: bool,
}

impl World {
    pub(crate) fn new(spec: Spec, makes_sha512: bool) -> Self {
        let object = Object::new(spec);
        Self {
            cloud: Cloud::new(makes_sha512),
            cluster: Cluster::new(),
            operators: [Operator::new(&object), Operator::new(&object)],
            object,
            giving: Giving::Bytes,
            replaced: false,
            leader: 0,
            asleep: None,
            planted: None,
            steady: Duration::from_secs(1000),
            log: Vec::new(),
            violations: Vec::new(),
            writes: 0,
            looks: 0,
            left_behind: Vec::new(),
            last: None,
            status: NodeImageStatus::default(),
            told: 0,
            orphans: Vec::new(),
            arrivals: Vec::new(),
            strangers: Vec::new(),
            connections: 0,
            attempt_before: 0,
            may_adopt: false,
        }
    }

    pub(crate) fn now(&self) -> Now {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let since = SignedDuration::try_from(self.steady).expect("a short test");
        Now {
            wall: start + since,
            steady: self.steady,
        }
    }

    /// Which bytes the URL of the object gives.
    pub(crate) fn given(&self) -> u32 {
        self.gives(self.object.spec.url)
    }

    /// Which bytes an URL gives.
    fn gives(&self, url: char) -> u32 {
        let content = published(url);
        if self.replaced { content + 10 } else { content }
    }

    /// Time passes: transfers move, Jobs do, imports end, and what was told to end does.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.steady += time;
        let fetched = matches!(self.giving, Giving::Bytes).then(|| self.given());
        self.cloud.pass(self.steady, fetched);
        self.pods_move();
        for who in 0..2 {
            if self.asleep != Some(who) {
                self.transfer_moves(who);
            }
        }
    }

    fn transfer_moves(&mut self, who: usize) {
        let now = self.steady;
        let op = self.operators[who].op.clone();
        let Some(op) = op.filter(|op| op.form == Form::InProcess) else {
            return;
        };
        if let OpState::Stopping { why, .. } = op.state {
            self.hang_up(who);
            self.end(who, Err(failure(FailureClass::Stopped { why })));
            return;
        }
        let (Deed::Transfer { id, attempt, staged }, OpState::Running { .. }) = (&op.deed, &op.state) else {
            return;
        };
        let Some((connection, since)) = self.operators[who].connection else {
            return;
        };
        if !self.cloud.receives(id, connection) {
            self.operators[who].connection = None;
            self.end(who, Err(failure(FailureClass::Unknown)));
            return;
        }
        if let Some(class) = self.breaks_off() {
            self.hang_up(who);
            self.end(who, Err(failure(class)));
        } else if now < since + TAKES {
            if let Some(op) = &mut self.operators[who].op {
                op.state = OpState::Running {
                    since,
                    moved: now,
                    bytes: None,
                };
            }
        } else {
            self.last_byte(who, id, *attempt, *staged);
        }
    }

    /// Why the source does not go on giving, if it does not.
    fn breaks_off(&mut self) -> Option<FailureClass> {
        match self.giving {
            Giving::Bytes => None,
            Giving::Broken(times) => {
                self.giving = if times > 1 {
                    Giving::Broken(times - 1)
                } else {
                    Giving::Bytes
                };
                Some(FailureClass::SourceBroken)
            }
            Giving::Nothing => Some(FailureClass::SourceGone),
            Giving::Html => Some(FailureClass::SourceNotAnImage),
        }
    }

    /// The bytes are held back until they are known to be right and sealed.
    fn last_byte(&mut self, who: usize, id: &str, attempt: u32, staged: bool) {
        let content = self.given();
        let sender = self.operators[who].cached.clone();
        let outcome = match self.seal(&sender, content, attempt, who == self.leader) {
            Ok(()) => {
                self.operators[who].connection = None;
                self.last_leaves(id, content, staged)
            }
            Err(failure) => Err(failure),
        };
        self.hang_up(who);
        self.end(who, outcome);
    }

    /// Compares the bytes with what the sender was told that they are, and notes in status what was sent. `may_write`: whether the API server hears him.
    fn seal(&mut self, sender: &Object, content: u32, attempt: u32, may_write: bool) -> Result<(), Failure> {
        let digest = format!("sha256:{}", sha256(content));
        let promised = sender.spec.pinned();
        let trusts = promised.is_none() && !sender.spec.build;
        let trusted = sender.kept.image.as_ref().filter(|image| !image.adopted && trusts);
        let trusted = trusted.and_then(|image| image.source_digest.clone());
        let is_other = promised.as_ref().is_some_and(|pinned| {
            let sha512 = format!("sha512:{}", sha512(content));
            pinned.contradicts(&digest) || pinned.contradicts(&sha512)
        });
        if is_other || trusted.is_some_and(|trusted| trusted != digest) {
            return Err(failure(FailureClass::SourceMismatch));
        }
        if !may_write || self.object.gone {
            return Err(failure(FailureClass::Sealing));
        }
        self.object.kept.sealed = Some(Sealed {
            attempt,
            source_digest: promised.map_or(digest, |pinned| pinned.to_string()),
            sha512: sha512(content),
            bytes: u64::from(content),
        });
        self.object.version += 1;
        Ok(())
    }

    /// The cloud has all bytes, or its stage has.
    fn last_leaves(&mut self, id: &str, content: u32, staged: bool) -> Result<Done, Failure> {
        if staged {
            self.cloud.staged(id, content, self.steady);
            return Ok(Done::Sent);
        }
        self.cloud.received(id, content).map(|()| Done::Sent)
    }

    /// The connection of a transfer ends.
    fn hang_up(&mut self, who: usize) {
        let operator = &mut self.operators[who];
        let connection = operator.connection.take();
        let id = operator.op.as_ref().and_then(|op| match &op.deed {
            Deed::Transfer { id, .. } => Some(id.clone()),
            _ => None,
        });
        if let (Some((connection, _)), Some(id)) = (connection, id) {
            self.cloud.cut(&id, connection);
        }
    }

    fn end(&mut self, who: usize, outcome: Result<Done, Failure>) {
        let at = self.steady;
        let operator = &mut self.operators[who];
        let asks = |deed: &Deed| matches!(deed, Deed::Look | Deed::Probe);
        if operator.op.as_ref().is_some_and(|op| !asks(&op.deed)) {
            operator.outdate_cloud();
        }
        if let Some(op) = &mut operator.op {
            op.state = OpState::Ended { outcome, at };
            operator.unshown = Unshown::after(operator.unshown.take(), op, at);
        }
    }

    /// A process dies and another one takes its place.
    pub(crate) fn crash(&mut self, who: usize) {
        self.hang_up(who);
        self.operators[who] = Operator::new(&self.object);
    }

    /// The leader stops without noticing, and the other one leads.
    pub(crate) fn sleep(&mut self) {
        if self.asleep.is_some() {
            return;
        }
        self.asleep = Some(self.leader);
        self.leader = 1 - self.leader;
        self.operators[self.leader] = Operator::new(&self.object);
    }

    /// Who slept does so many more steps before it notices that it does not lead.
    pub(crate) fn wake(&mut self, steps: u8) {
        let Some(who) = self.asleep.take() else { return };
        for _ in 0..steps {
            self.step_of(who, Mishap::Nothing);
        }
        self.hang_up(who);
        self.operators[who] = Operator::new(&self.object);
    }

    /// One step of whoever leads.
    pub(crate) fn step(&mut self, mishap: Mishap) -> Step {
        let who = self.leader;
        let operator = &mut self.operators[who];
        if !std::mem::take(&mut operator.lags) {
            operator.cached = self.object.clone();
        }
        self.step_of(who, mishap)
    }

    fn step_of(&mut self, who: usize, mishap: Mishap) -> Step {
        if self.object.gone {
            return Step::Rest { look: Duration::MAX };
        }
        let now = self.now();
        self.follow(who);
        let jobs = self.jobs_sight(who);
        let operator = &mut self.operators[who];
        operator.notice_what_is_asked();
        let (wanted, seen) = (operator.cached.wanted(), operator.seen(jobs));
        let mut step = decide(&wanted, &operator.cached.kept, &seen, operator.op.as_ref(), now);
        if let (Some(Planted::ForgetsToLook), Step::Await(wait)) = (self.planted, &mut step) {
            (wait.look, wait.until) = (None, Until::Told(Awaited::Admin));
        }
        let kept = after(&step, &wanted, &operator.cached.kept, &seen, operator.op.as_ref(), now);
        self.watch_step(who, &step);
        self.tell_people(who, &wanted, &seen, &step, &kept);
        self.tell(who, &step);
        self.perform(who, &step, kept, mishap);
        self.check();
        self.last = Some(step.clone());
        step
    }

    /// Steps until there is nothing to do but wait.
    pub(crate) fn run(&mut self) -> Step {
        const MANY: u32 = 60;
        for _ in 0..MANY {
            let step = self.step(Mishap::Nothing);
            if matches!(step, Step::Await(_) | Step::Rest { .. } | Step::Hold(_)) {
                return step;
            }
        }
        self.violations
            .push(format!("it takes more than {MANY} steps at one time"));
        Step::Stop(StopReason::Stalled)
    }

    /// Steps and waits, as long as somebody would who looks when he is told to.
    pub(crate) fn settle(&mut self, time: Duration) {
        let end = self.steady + time;
        while self.steady < end && self.violations.is_empty() {
            let step = self.run();
            let wake = match &step {
                Step::Await(wait) => wait.look,
                Step::Rest { look } => Some(*look),
                Step::Hold(halt) => halt.look,
                _ => None,
            };
            let leader = &self.operators[self.leader];
            // A watch that lags wakes whoever waits for it in the end.
            let is_under_way = leader.op.is_some() || leader.cached != self.object;
            let wake = match wake {
                Some(look) => look.max(self.steady + Duration::from_secs(1)),
                None if is_under_way => self.steady + Duration::from_secs(5),
                None => end,
            };
            // Status keeps whole seconds, and so does the clock of this world.
            let wake = wake.min(end);
            let wake = Duration::from_secs(wake.as_secs() + u64::from(wake.subsec_nanos() > 0));
            self.pass(wake.saturating_sub(self.steady));
        }
        self.run();
    }

    /// What was sent long ago arrives in its time.
    pub(crate) fn arrive(&mut self) {
        for arrival in &mut self.arrivals {
            arrival.commands = arrival.commands.saturating_sub(1);
        }
        let (due, later) = std::mem::take(&mut self.arrivals)
            .into_iter()
            .partition(|arrival| arrival.commands == 0);
        self.arrivals = later;
        let due: Vec<Arrival> = due;
        for Arrival { deed, sender, .. } in due {
            self.log.push(format!("arrives late: {deed:?}"));
            if deed.name().is_long() {
                self.job_arrives(&deed, &sender);
                continue;
            }
            // Nobody hears the answer.
            if let Ok(Done::Created { id }) = self.answer(&deed, &sender) {
                self.orphans.push(id);
            }
        }
    }
}

/// Tells it these commands, none of which may break a rule.
pub(crate) fn told(world: &mut World, lines: &[&str]) {
    for line in lines {
        world.command(line);
        assert_eq!(world.violations, Vec::<String>::new(), "after {line}: {:#?}", world.log);
    }
}

/// How often this was done.
pub(crate) fn count(world: &World, deed: &str) -> usize {
    world.log.iter().filter(|line| line.contains(deed)).count()
}
