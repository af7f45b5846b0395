//! Jobs as a cluster keeps them: each name is free once, what is made under it goes on whoever made it, and whoever likes to deletes it. A Job that is
//! being deleted keeps its name until its node says that its Pod has ended.

use std::collections::BTreeSet;
use std::time::Duration;

use planning::image::{Deed, Done, Failure, FailureClass};

use super::World;
use super::object::Object;
use super::script::number;

/// How long whoever told a Job to end waits for that. After that its node does not answer.
pub(crate) const GONE: Duration = Duration::from_mins(1);

/// How far a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for a node.
    Waits {
        since: Duration,
    },
    Builds {
        since: Duration,
    },
    Sends {
        connection: u64,
        content: u32,
        since: Duration,
        moved: Duration,
    },
    Over {
        outcome: Result<Done, Failure>,
        at: Duration,
    },
}

impl Stage {
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Over { .. })
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// No two ever have the same.
    pub(crate) uid: u64,
    pub(crate) deed: Deed,
    /// The object as it was when this was asked for: all that its program knows.
    pub(crate) told: Object,
    pub(crate) stage: Stage,
    /// What the API server shows of that.
    pub(crate) shown: Stage,
    /// Since when it is being deleted.
    pub(crate) going: Option<Duration>,
    /// Its node says nothing any more, and its Pod runs on.
    pub(crate) lost: bool,
    /// Its end is in the status of the object.
    pub(crate) noted: bool,
    /// It was made and nobody was answered, so that nobody knows of it before a watch shows it.
    pub(crate) stray: bool,
}

impl Job {
    /// To which record it sends, of which attempt, and whether to a stage.
    pub(crate) fn target(&self) -> (&str, u32, bool) {
        target(&self.deed)
    }

    pub(crate) const fn is_build(&self) -> bool {
        matches!(self.deed, Deed::Build { .. })
    }

    /// It is called after its attempt.
    fn attempt(&self) -> u32 {
        self.target().1
    }

    /// Whether it does this, and still can.
    fn does(&self, deed: &Deed, key: &str) -> bool {
        let can = !self.shown.is_over() && self.going.is_none() && !self.noted;
        can && self.deed == *deed && self.told.spec.key() == key
    }

    /// Whether nobody waits for its end any more.
    fn is_given_up(&self, now: Duration) -> bool {
        self.going.is_some_and(|since| now >= since + GONE)
    }
}

fn target(deed: &Deed) -> (&str, u32, bool) {
    match deed {
        Deed::Transfer { id, attempt, staged } => (id.as_str(), *attempt, *staged),
        Deed::Build { id, attempt } => (id.as_str(), *attempt, false),
        other => panic!("{other:?} is nothing for a Job"),
    }
}

/// What comes of asking for a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// It is there.
    Made(u64),
    /// The API server does not take it.
    Refused,
    /// An earlier one of its name still goes.
    InTheWay,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is switched by commands of its own")]
pub(crate) struct Cluster {
    pub(crate) jobs: Vec<Job>,
    /// How many there ever were.
    pub(crate) made: u64,
    /// How many builds went well.
    pub(crate) built: u32,
    /// Whether Jobs may be made.
    pub(crate) allowed: bool,
    /// Whether others send so much that Jobs that send wait for their turn.
    pub(crate) crowded: bool,
    /// Whether a node takes Pods.
    pub(crate) takes: bool,
    /// Whether nothing moves in Pods.
    pub(crate) stands: bool,
    /// With which code builds fail, and how many do.
    pub(crate) fails: (i32, u32),
    /// So many Jobs leave no word of how they ended.
    pub(crate) mute: u32,
}

impl Cluster {
    pub(crate) const fn new() -> Self {
        Self {
            jobs: Vec::new(),
            made: 0,
            built: 0,
            allowed: true,
            crowded: false,
            takes: true,
            stands: false,
            fails: (0, 0),
            mute: 0,
        }
    }

    pub(crate) fn job(&self, uid: u64) -> Option<&Job> {
        self.jobs.iter().find(|job| job.uid == uid)
    }

    pub(crate) fn job_mut(&mut self, uid: u64) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.uid == uid)
    }

    /// As operators make Jobs: one that does the same is taken for it, one that is over makes room for it, and one that runs is told to end.
    pub(crate) fn make(&mut self, deed: &Deed, told: &Object, now: Duration) -> Making {
        if !self.allowed {
            return Making::Refused;
        }
        let (_, attempt, _) = target(deed);
        if let Some(there) = self.jobs.iter_mut().find(|job| job.attempt() == attempt) {
            if there.does(deed, &told.spec.key()) {
                there.stray = false;
                return Making::Made(there.uid);
            }
            if !there.shown.is_over() {
                there.going.get_or_insert(now);
                return Making::InTheWay;
            }
        }
        self.jobs.retain(|job| job.attempt() != attempt);
        self.made += 1;
        let stage = Stage::Waits { since: now };
        self.jobs.push(Job {
            uid: self.made,
            deed: deed.clone(),
            told: told.clone(),
            shown: stage.clone(),
            stage,
            going: None,
            lost: false,
            noted: false,
            stray: false,
        });
        Making::Made(self.made)
    }

    /// A Job gets on, which shows where its node says so.
    pub(crate) fn gets_to(&mut self, uid: u64, stage: Stage) {
        if let Some(job) = self.job_mut(uid) {
            job.stage = stage;
            if !job.lost {
                job.shown = job.stage.clone();
            }
        }
    }

    fn answers(&mut self) {
        for job in &mut self.jobs {
            job.lost = false;
            job.shown = job.stage.clone();
        }
    }

    fn deletes(&mut self, now: Duration) {
        for job in &mut self.jobs {
            job.going.get_or_insert(now);
        }
    }
}

impl World {
    /// What becomes of Jobs, of nodes and of what runs there.
    pub(super) fn of_jobs(&mut self, words: &[&str]) {
        let now = self.steady;
        let cluster = &mut self.cluster;
        match words {
            ["jobs", "barred"] => cluster.allowed = false,
            ["jobs", "allowed"] => cluster.allowed = true,
            ["jobs", "in", "line"] => cluster.crowded = true,
            ["jobs", "have", "their", "turn"] => cluster.crowded = false,
            ["jobs", "stand"] => cluster.stands = true,
            ["jobs", "move"] => cluster.stands = false,
            ["jobs", "say", "nothing", times] => cluster.mute = number(times),
            ["jobs", "seen", "late", steps] => self.operators[self.leader].desk.late = number(steps),
            ["jobs", "seen", "at", "once"] => self.operators[self.leader].desk.late = 0,
            ["jobs", "told", "to", "go"] => cluster.deletes(now),
            ["jobs", "deleted"] => self.jobs_vanish(),
            ["builds", "fail", exit, times] => cluster.fails = (number(exit), number(times)),
            ["node", "takes", "nothing"] => cluster.takes = false,
            ["node", "takes", "pods"] => cluster.takes = true,
            ["node", "silent"] => self.node_falls_silent(),
            ["node", "answers"] => cluster.answers(),
            ["pod", "evicted"] => self.pods_end(Some(FailureClass::JobVanished)),
            ["pod", "killed"] => self.pods_end(Some(FailureClass::OutOfMemory)),
            ["pod", "driven", "away"] => self.pods_end(None),
            other => panic!("{other:?} is no command"),
        }
    }

    /// A request arrives that asks for a Job, and nobody hears the answer.
    pub(super) fn job_arrives(&mut self, deed: &Deed, sender: &Object) {
        let (_, attempt, _) = target(deed);
        let is_taken = self.cluster.jobs.iter().any(|job| job.attempt() == attempt);
        if is_taken || self.object.gone {
            return;
        }
        if let Making::Made(uid) = self.cluster.make(deed, sender, self.steady) {
            self.job_strays(uid);
        }
    }

    pub(super) fn job_strays(&mut self, uid: u64) {
        if let Some(job) = self.cluster.job_mut(uid) {
            job.stray = true;
        }
    }

    /// What is beside each other that must not be. Of a Job whose making nobody answered nobody can know before a watch shows it, and for one whose node does
    /// not answer nobody waits for ever; but no two send to one record.
    pub(super) fn beside_each_other(&self) -> Vec<(&'static str, String)> {
        let now = self.steady;
        let mut found = Vec::new();
        let jobs = || self.cluster.jobs.iter().filter(|job| !job.stage.is_over());
        let mut records = BTreeSet::new();
        for job in jobs() {
            let (id, _, _) = job.target();
            if !records.insert(id) {
                found.push(("a Job sends alone to its record", id.to_owned()));
            }
        }
        let known = jobs().filter(|job| !job.stray && !job.is_given_up(now));
        let known = known.map(|job| format!("{:?}", job.deed));
        let sends = self.operators[self.leader].connection;
        let known: Vec<String> = known.chain(sends.map(|_| "the operator".to_owned())).collect();
        if known.len() > 1 {
            found.push(("a Job works alone for its object", known.join(", ")));
        }
        found
    }

    /// What is left of Jobs when nothing is to be done any more. One that is over stays for its logs, where its object does.
    pub(crate) fn job_left(&self) -> Option<String> {
        let is_left = |job: &&Job| self.object.gone || !job.stage.is_over() || !job.noted;
        let job = self.cluster.jobs.iter().find(is_left)?;
        Some(format!("a Job is left over: {job:?}"))
    }
}
