//! Where deeds are done: everything that asks a cloud or an image's source goes through an [`Executor`], so that no driver ever waits for one. Runs
//! what it is told to and decides nothing about images; who is served when, it does decide.

mod asking;
pub(crate) mod errand;
mod forms;
mod gates;
mod inprocess;
pub(crate) mod jobs;
mod lanes;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use planning::image::{JobsSight, Op, StopReason};
use provider_plugin::Progress;

pub(crate) use self::errand::Pace;
pub(crate) use self::forms::Executors;
pub(crate) use self::inprocess::{Bounds, InProcess, Wake};
use self::jobs::JobOrder;
use crate::identity::Connection;
use crate::objects::ObjectId;
use crate::source::Files;
use crate::worker::{Found, WorkPlan};

/// Does deeds somewhere, at most one for an object.
pub(crate) trait Executor: Send + Sync {
    /// Begins a deed and returns at once. Nothing happens when something of this object is under way, or has ended and is not forgotten yet. Whatever
    /// becomes of it, [`Executor::look`] tells: also when it could not begin at all.
    fn begin(&self, order: Order);

    /// How far the object's deed is; never waits. `None`: nothing is known of it, because the process is new, or it was forgotten.
    fn look(&self, object: &ObjectId) -> Option<OpView>;

    /// Ends what is under way, within a second unless the provider holds a thread. The end is told by [`Executor::look`], and wakes the driver.
    fn stop(&self, object: &ObjectId, why: StopReason);

    /// The same for all objects: when another process leads, say. Others may begin afterwards.
    fn stop_all(&self, why: StopReason);

    /// Forgets a deed that has ended, once its end is noted. What is under way stays.
    fn forget(&self, object: &ObjectId);

    /// Nothing new begins from now on, and what waits for its turn ends. What is under way gets so long to end by itself, then it is stopped. Returns when
    /// nothing of it is left: every connection that a deed has used is idle or closed.
    fn drain(&self, patience: Duration) -> BoxFuture<'_, ()>;

    /// Whether Jobs can be had for this object, whose image goes into the cloud or store of this name.
    fn jobs(&self, _object: &ObjectId, _cloud: Option<&str>) -> JobsSight {
        JobsSight::Off {
            why: "this operator has none; start it with --jobs and --worker-image, or leave execution out and build the image elsewhere".to_owned(),
        }
    }

    /// The name of the Job that does, or did, what [`Executor::look`] tells of. `None` before it has been made, and where there is none.
    fn job(&self, _object: &ObjectId) -> Option<String> {
        None
    }

    /// Whether everything is known that earlier lives of this process began. Before that nothing is to be decided.
    fn is_listed(&self) -> bool {
        true
    }
}

/// A deed with everything that it needs.
pub(crate) struct Order {
    /// What is done, and for what.
    pub(crate) plan: WorkPlan,
    /// In which cloud, as whom. Also says in which lane it waits.
    pub(crate) connection: Arc<Connection>,
    /// Where the bytes come from; nothing for deeds that read none.
    pub(crate) files: Option<Files>,
    /// What it needs where it is done in a Job; nothing where it is done in this process.
    pub(crate) job: Option<Box<JobOrder>>,
}

/// How far a deed is.
#[derive(Clone, Debug)]
pub(crate) struct OpView {
    /// As decisions see it.
    pub(crate) op: Op,
    /// What it has found, once it has ended.
    pub(crate) found: Found,
    /// How far its bytes are, in all detail.
    pub(crate) progress: Option<Progress>,
}

#[cfg(test)]
mod tests;
