//! What runs in the Pods of Jobs: a build, and the program that sends, which does as an operator does, but writes to status whoever leads.

use std::time::Duration;

use planning::image::{Done, Failure, FailureClass};

use super::cloud::{TAKES, failure};
use super::jobs::{Job, Stage};
use super::{Giving, World};

/// How long a node takes to begin a Pod.
const BEGINS: Duration = Duration::from_secs(3);
/// How long a build takes.
const BUILDS: Duration = Duration::from_secs(30);
/// How long the programs of a Pod take to end.
const ENDS: Duration = Duration::from_secs(5);
/// How long a Job that is over stays.
const STAYS: Duration = Duration::from_hours(24);

impl World {
    /// Pods begin, build, send and end.
    pub(super) fn pods_move(&mut self) {
        for job in self.cluster.jobs.clone() {
            self.pod_moves(&job);
        }
    }

    fn pod_moves(&mut self, job: &Job) {
        let now = self.steady;
        let runs = matches!(job.stage, Stage::Builds { .. } | Stage::Sends { .. });
        let is_ended = job.going.is_some_and(|since| !runs || now >= since + ENDS);
        // With its owner it goes too.
        if !job.lost && (is_ended || self.object.gone) {
            return self.job_goes(job);
        }
        // Without its Secret nothing begins.
        let begins = self.cluster.takes && self.object.secret > 0;
        match job.stage {
            Stage::Waits { since } if begins && now >= since + BEGINS => self.pod_begins(job),
            Stage::Builds { since } if !self.cluster.stands && now >= since + BUILDS => self.pod_has_built(job),
            Stage::Sends { .. } => self.pod_sends(job),
            Stage::Over { at, .. } if !job.lost && now >= at + STAYS => self.job_goes(job),
            Stage::Waits { .. } | Stage::Builds { .. } | Stage::Over { .. } => {}
        }
    }

    fn pod_begins(&mut self, job: &Job) {
        if job.is_build() {
            let since = self.steady;
            self.cluster.gets_to(job.uid, Stage::Builds { since });
        } else {
            let content = self.gives(job.told.spec.url);
            self.pod_connects(job, content);
        }
    }

    fn pod_has_built(&mut self, job: &Job) {
        let (exit, times) = self.cluster.fails;
        if times > 0 {
            self.cluster.fails = (exit, times - 1);
            return self.job_is_over(job, Err(failure(FailureClass::BuildFailed { exit })));
        }
        // No two builds give the same bytes.
        self.cluster.built += 1;
        self.pod_connects(job, 1000 * self.cluster.built);
    }

    fn pod_connects(&mut self, job: &Job, content: u32) {
        let (id, _, staged) = job.target();
        let trouble = match self.giving {
            _ if job.is_build() => None,
            Giving::Nothing => Some(FailureClass::SourceGone),
            Giving::Html => Some(FailureClass::SourceNotAnImage),
            Giving::Bytes | Giving::Broken(_) => None,
        };
        if let Some(class) = trouble {
            return self.job_is_over(job, Err(failure(class)));
        }
        self.connections += 1;
        let connection = self.connections;
        let now = self.steady;
        match self.cloud.receive(id, connection, staged) {
            Ok(()) => {
                let stage = Stage::Sends {
                    connection,
                    content,
                    since: now,
                    moved: now,
                };
                self.cluster.gets_to(job.uid, stage);
            }
            Err(failure) => self.job_is_over(job, Err(failure)),
        }
    }

    fn pod_sends(&mut self, job: &Job) {
        let Stage::Sends {
            connection,
            content,
            since,
            ..
        } = job.stage
        else {
            return;
        };
        let (id, attempt, staged) = job.target();
        if !self.cloud.receives(id, connection) {
            return self.job_is_over(job, Err(failure(FailureClass::Unknown)));
        }
        let trouble = if job.is_build() { None } else { self.breaks_off() };
        if let Some(class) = trouble {
            self.cloud.cut(id, connection);
            return self.job_is_over(job, Err(failure(class)));
        }
        if self.cluster.stands {
            return;
        }
        let now = self.steady;
        if now < since + TAKES {
            let stage = Stage::Sends {
                connection,
                content,
                since,
                moved: now,
            };
            return self.cluster.gets_to(job.uid, stage);
        }
        let outcome = match self.seal(&job.told, content, attempt, true) {
            Ok(()) => self.last_leaves(id, content, staged),
            Err(failure) => {
                self.cloud.cut(id, connection);
                Err(failure)
            }
        };
        self.job_is_over(job, outcome);
    }

    /// What its program says of its end may not come through.
    fn job_is_over(&mut self, job: &Job, outcome: Result<Done, Failure>) {
        let is_mute = self.cluster.mute > 0;
        self.cluster.mute = self.cluster.mute.saturating_sub(1);
        let outcome = if is_mute {
            Err(failure(FailureClass::JobVanished))
        } else {
            outcome
        };
        let at = self.steady;
        self.cluster.gets_to(job.uid, Stage::Over { outcome, at });
    }

    fn pod_is_cut_off(&mut self, job: &Job) {
        if let Stage::Sends { connection, .. } = job.stage {
            let (id, _, _) = job.target();
            self.cloud.cut(id, connection);
        }
    }

    /// Neither the Job nor its Pod is there any more.
    fn job_goes(&mut self, job: &Job) {
        self.pod_is_cut_off(job);
        self.cluster.jobs.retain(|other| other.uid != job.uid);
    }

    /// Somebody deletes all Jobs, and waits for nothing.
    pub(super) fn jobs_vanish(&mut self) {
        for job in self.cluster.jobs.clone() {
            self.job_goes(&job);
        }
    }

    /// The node of what runs does not answer any more; another one takes what begins.
    pub(super) fn node_falls_silent(&mut self) {
        for job in &mut self.cluster.jobs {
            job.lost |= matches!(job.stage, Stage::Builds { .. } | Stage::Sends { .. });
        }
    }

    /// What runs is ended. The Job is over so, or has another Pod begin anew.
    pub(super) fn pods_end(&mut self, class: Option<FailureClass>) {
        let since = self.steady;
        for job in self.cluster.jobs.clone() {
            let runs = matches!(job.stage, Stage::Builds { .. } | Stage::Sends { .. });
            if !runs || job.lost {
                continue;
            }
            self.pod_is_cut_off(&job);
            let stage = match class {
                Some(class) => Stage::Over {
                    outcome: Err(failure(class)),
                    at: since,
                },
                None => Stage::Waits { since },
            };
            self.cluster.gets_to(job.uid, stage);
        }
    }
}
