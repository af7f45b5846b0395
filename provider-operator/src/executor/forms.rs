//! The two forms of one executor: whatever moves bytes may run in this process or in a Job, and drivers need not know where.

use std::time::Duration;

use futures::future::BoxFuture;
use planning::image::{JobsSight, StopReason};

use super::jobs::Jobs;
use super::{Executor, InProcess, OpView, Order};
use crate::objects::ObjectId;

/// Does each deed in the form that its order names.
pub(crate) struct Executors {
    pub(crate) in_process: InProcess,
    /// Where there are Jobs.
    pub(crate) jobs: Option<Jobs>,
}

impl Executors {
    fn both(&self, act: impl Fn(&dyn Executor)) {
        act(&self.in_process);
        if let Some(jobs) = &self.jobs {
            act(jobs);
        }
    }
}

impl Executor for Executors {
    fn begin(&self, order: Order) {
        match &self.jobs {
            Some(jobs) if order.job.is_some() => jobs.begin(order),
            _ => self.in_process.begin(order),
        }
    }

    fn look(&self, object: &ObjectId) -> Option<OpView> {
        let in_job = || self.jobs.as_ref()?.look(object);
        self.in_process.look(object).or_else(in_job)
    }

    fn stop(&self, object: &ObjectId, why: StopReason) {
        self.both(|form| form.stop(object, why));
    }

    fn stop_all(&self, why: StopReason) {
        self.both(|form| form.stop_all(why));
    }

    fn forget(&self, object: &ObjectId) {
        self.both(|form| form.forget(object));
    }

    fn drain(&self, patience: Duration) -> BoxFuture<'_, ()> {
        let jobs = async move {
            if let Some(jobs) = &self.jobs {
                jobs.drain(patience).await;
            }
        };
        Box::pin(async move {
            tokio::join!(self.in_process.drain(patience), jobs);
        })
    }

    fn jobs(&self, object: &ObjectId, cloud: Option<&str>) -> JobsSight {
        match &self.jobs {
            Some(jobs) => jobs.jobs(object, cloud),
            None => self.in_process.jobs(object, cloud),
        }
    }

    fn job(&self, object: &ObjectId) -> Option<String> {
        self.jobs.as_ref()?.job(object)
    }

    fn is_listed(&self) -> bool {
        self.jobs.as_ref().is_none_or(Executor::is_listed)
    }
}
