//! Deeds as Jobs: made, followed by a watch, ended. What is known of a Job is what the API server shows of it, so that a process that has just begun
//! knows of those that an earlier one made. Whether a Job is made, and what follows from its end, others decide.

mod access;
mod beginning;
mod desk;
mod ending;
mod following;
mod hands;
mod known;
mod names;
mod quantity;
mod queue;
mod template;
#[cfg(test)]
mod tests;

use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crds::labels::JOB_OF;
use crds::providers::Provider;
use crds::providers::image_options::{Build, JobShape};
use crds::providers::image_status::TransferStatus;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use operator_kit::failure::{chain, words_of_watch};
use operator_kit::telemetry::Readiness;
use operator_kit::watch_log::WatchLog;
use operator_kit::watching::watching;
use planning::image::{Deed, Done, Failure, FailureClass, JobsSight, StopReason};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::desk::{Desk, Leaves, without_right};
use self::hands::{Hands, Refusal};
use self::known::{Known, provider_of};
pub(crate) use self::names::logs;
use self::quantity::bytes;
use self::queue::Queue;
use self::template::{Asked, job};
pub(crate) use self::template::{JobOptions, JobVolume};
use super::{Bounds, Executor, OpView, Order, Wake};
use crate::clock::Steady;
use crate::objects::ObjectId;
use crate::worker::WorkPlan;
use crate::worker::document::{Document, SumsOfDocument, Surroundings};
use crate::worker::exit;

/// How long a Job that was told to end may take to be gone. After that its node does not answer, and nobody waits for it.
const GONE: Duration = Duration::from_mins(1);
/// Between two looks at it, and two tries of what could not be done.
const PAUSE: Duration = Duration::from_secs(1);
/// How soon, and at last how often, one looks why a Job has not begun. A Pod has a node and its images within the first.
const FIRST_LOOK: Duration = Duration::from_secs(10);
const LOOKS: Duration = Duration::from_mins(1);
/// Tries of what is of use and not needed, and of asking how a Job ended.
const TRIES: u32 = 30;
/// How long it is believed that Jobs cannot be had.
const BARRED: Duration = Duration::from_mins(1);
/// Jobs in one page of a list.
const PAGE_SIZE: u32 = 100;

/// What a Job needs beside the deed.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobOrder {
    /// What the container that sends gets.
    pub(crate) shape: JobShape,
    /// What is built before.
    pub(crate) build: Option<Build>,
    /// Where the digest is.
    pub(crate) sums: Option<SumsOfDocument>,
    /// The Secret of the cloud.
    pub(crate) secret: Option<String>,
}

/// What the status of an object says of the transfer, as last seen.
pub(crate) type Sent = Arc<dyn Fn(&ObjectId) -> Option<TransferStatus> + Send + Sync>;

/// Does deeds in Jobs. Cheap to clone; clones are one executor.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Shared>);

struct Shared {
    hands: Hands,
    options: JobOptions,
    steady: Steady,
    wake: Wake,
    sent: Sent,
    tasks: TaskTracker,
    desk: Mutex<Desk>,
    /// Who waits for a place. Taken before the desk, where both are.
    queue: Mutex<Queue>,
}

impl Jobs {
    /// Knows of none yet: [`Jobs::follow`] has to run. Of `bounds` those of transfers count, for Jobs apart from what this process sends itself.
    pub(crate) fn new(
        client: Client,
        options: JobOptions,
        bounds: Bounds,
        steady: Steady,
        wake: Wake,
        sent: Sent,
    ) -> Self {
        Self(Arc::new(Shared {
            hands: Hands(client),
            options,
            steady,
            wake,
            sent,
            tasks: TaskTracker::new(),
            desk: Mutex::new(Desk::default()),
            queue: Mutex::new(Queue::new(bounds)),
        }))
    }

    /// Follows the Jobs of these providers in one namespace, or in all where it is empty, until `stop`.
    pub(crate) async fn follow(
        self,
        namespace: String,
        providers: Vec<Provider>,
        readiness: Readiness,
        stop: CancellationToken,
    ) {
        let client = self.0.hands.0.clone();
        let api: Api<Job> = if namespace.is_empty() {
            Api::all(client)
        } else {
            Api::namespaced(client, &namespace)
        };
        let mut log = WatchLog::essential("Job", &readiness);
        let events = watching(api, JOB_OF, PAGE_SIZE).inspect(move |event| log.heard(event));
        let hearing = self.hear(events, &providers);
        let _ = stop.run_until_cancelled(hearing).await;
    }

    async fn hear(&self, events: impl Stream<Item = watcher::Result<Event<Job>>>, providers: &[Provider]) {
        let mut events = std::pin::pin!(events);
        let is_served = |job: &Job| provider_of(job).is_some_and(|provider| providers.contains(&provider));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => self.0.desk().begin_list(),
                Ok(Event::InitApply(job) | Event::Apply(job)) => {
                    if let Some(known) = Some(&job).filter(|job| is_served(job)).and_then(Known::of) {
                        self.0.see(known);
                    }
                }
                Ok(Event::Delete(job)) => {
                    if let Some(uid) = &job.metadata.uid {
                        self.0.gone(from_ref(uid));
                    }
                }
                Ok(Event::InitDone) => {
                    let missing = self.0.desk().end_list();
                    self.0.gone(&missing);
                }
                Err(error) if is_refused(&error) => self.0.desk().bar_all(&words_of_watch(&error)),
                // It is mended by whoever watches.
                Err(_) => {}
            }
        }
    }
}

impl Executor for Jobs {
    fn begin(&self, order: Order) {
        if !matches!(order.plan.deed, Deed::Transfer { .. }) {
            self.0.start(order);
        } else if self.look(&order.plan.object).is_none() {
            self.0.queue().join(order, self.0.steady.now());
            self.0.dispatch();
        }
    }

    fn look(&self, object: &ObjectId) -> Option<OpView> {
        let sent = (self.0.sent)(object);
        let now = self.0.steady.now();
        let seen = self.0.desk().view(object, sent.as_ref(), now);
        seen.or_else(|| self.0.queue().view(object))
    }

    fn stop(&self, object: &ObjectId, why: StopReason) {
        let waited = self.0.queue().leave(object);
        // Where a Job was found meanwhile, that one is meant.
        let is_free = self.0.desk().is_free(object);
        if let Some(plan) = waited.filter(|_| is_free) {
            return self.0.never_begun(&plan, why);
        }
        let now = self.0.steady.now();
        let target = self.0.desk().stop(object, why, now);
        if let Some(target) = target {
            let (shared, object) = (Arc::clone(&self.0), object.clone());
            self.0
                .one_by_one(&object.clone(), async move { shared.remove(&object, &target).await });
        }
    }

    /// Jobs go on by themselves, whoever leads: the next process knows of them.
    fn stop_all(&self, _why: StopReason) {}

    fn forget(&self, object: &ObjectId) {
        let Some(Leaves(stays)) = self.0.desk().forget(object) else {
            return;
        };
        let (shared, object) = (Arc::clone(&self.0), object.clone());
        self.0
            .one_by_one(&object.clone(), async move { shared.settle(&object, stays).await });
    }

    fn drain(&self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.0.desk().close();
            let waited = self.0.queue().close();
            for plan in &waited {
                let is_free = self.0.desk().is_free(&plan.object);
                if is_free {
                    self.0.never_begun(plan, StopReason::Draining);
                }
            }
            self.0.tasks.close();
            // What is under way is a few calls; what it did not come to, the next process finds.
            let _ = time::timeout(patience, self.0.tasks.wait()).await;
        })
    }

    fn jobs(&self, object: &ObjectId, cloud: Option<&str>) -> JobsSight {
        if let Some(why) = self.0.desk().barred(&object.namespace, self.0.steady.now()) {
            return JobsSight::Off { why };
        }
        let has_volume = |cloud: &str| self.0.options.volumes.contains_key(cloud);
        match cloud {
            Some(store) if object.provider == Provider::FileStore && !has_volume(store) => JobsSight::Off {
                why: format!("no --job-volume of the operator says what Jobs mount as the store {store}"),
            },
            _ => match self.0.desk().held(object) {
                Some(why) => JobsSight::Held { why },
                None => JobsSight::Usable,
            },
        }
    }

    fn job(&self, object: &ObjectId) -> Option<String> {
        self.0.desk().job(object)
    }

    fn is_listed(&self) -> bool {
        self.0.desk().is_listed()
    }
}

impl Shared {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the Job made.
    fn start(self: &Arc<Self>, order: Order) {
        let plan = order.plan.clone();
        if self.desk().begin(&plan, self.steady.now()) {
            let shared = Arc::clone(self);
            self.one_by_one(&plan.object, async move { shared.make(order).await });
        }
    }

    /// Has the Jobs made whose turn it is.
    fn dispatch(self: &Arc<Self>) {
        let mut begun = Vec::new();
        let mut queue = self.queue();
        loop {
            let sending = self.desk().sending();
            queue.align(&sending);
            let Some(order) = queue.next(self.steady.now()) else {
                break;
            };
            begun.push(order.plan.object.clone());
            self.start(order);
        }
        drop(queue);
        for object in &begun {
            (self.wake)(object);
        }
    }

    /// Somebody who waited waits no longer, and the driver is to take note of it.
    fn never_begun(&self, plan: &WorkPlan, why: StopReason) {
        let (now, object) = (self.steady.now(), &plan.object);
        let mut desk = self.desk();
        desk.begin(plan, now);
        desk.stop(object, why, now);
        let class = FailureClass::Stopped { why };
        desk.fail(object, Err(Failure::new(class, "it was stopped")), now);
        drop(desk);
        (self.wake)(object);
    }

    /// Runs what is done about one object in the order in which it was asked for.
    fn one_by_one(&self, object: &ObjectId, work: impl Future<Output = ()> + Send + 'static) {
        let mut desk = self.desk();
        let before = desk.take_turn(object);
        let turn = self.tasks.spawn(async move {
            if let Some(before) = before {
                // It panicked at worst, and the log has it.
                let _ = before.await;
            }
            work.await;
        });
        desk.give_turn(object.clone(), turn);
    }

    /// Makes the Job, with what it may do before it.
    async fn make(self: Arc<Self>, order: Order) {
        let plan = &order.plan;
        let made = match self.document(&order) {
            Ok(job) => self.made(plan, &job).await,
            Err(words) => Err(Refusal::Invalid(words)),
        };
        let object = &plan.object;
        let now = self.steady.now();
        let target = match made {
            Ok(uid) => {
                let target = self.desk().made(object, &uid, now);
                self.look_after(object, uid);
                target
            }
            Err(refusal) => {
                let why = match &refusal {
                    Refusal::Forbidden(words) => Some(without_right(words)),
                    Refusal::Barred(words) => Some(words.clone()),
                    _ => None,
                };
                if let Some(why) = why {
                    self.desk().bar(&object.namespace, why, now + BARRED);
                }
                tracing::debug!(%object, error = %refusal, "no Job was made");
                let target = self.desk().fail(object, refused(&plan.deed, &refusal), now);
                self.dispatch();
                target
            }
        };
        (self.wake)(object);
        if let Some(target) = target {
            // Somebody stopped it meanwhile.
            self.remove(object, &target).await;
        }
    }

    async fn made(&self, plan: &WorkPlan, job: &serde_json::Value) -> Result<String, Refusal> {
        self.hands.allow(&plan.object).await?;
        let is_wanted = || self.desk().is_wanted(&plan.object);
        self.hands.make(plan, job, is_wanted).await
    }

    fn document(&self, order: &Order) -> Result<serde_json::Value, String> {
        let usual = JobOrder::default();
        let JobOrder {
            shape,
            build,
            sums,
            secret,
        } = order.job.as_deref().unwrap_or(&usual);
        let surroundings = Surroundings {
            cloud: order.connection.identity().0.to_owned(),
            network: self.options.network.clone(),
            artifact_limit: build.as_ref().and_then(|build| bytes(&build.size_limit.0)),
            sums: sums.clone(),
        };
        let document = Document::of(&order.plan, surroundings).map_err(|error| chain(&error))?;
        let keys = order.connection.keys();
        let asked = Asked {
            object: &order.plan.object,
            document: &document,
            secret: secret.as_deref().map(|secret| (secret, keys.as_slice())),
            shape,
            build: build.as_ref(),
        };
        job(&asked, &self.options).map_err(|error| chain(&error))
    }
}

/// Whether the right to follow Jobs is missing.
fn is_refused(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// A Job that could not be made, as decisions see it: no cloud had a part in it.
fn refused(deed: &Deed, refusal: &Refusal) -> Result<Done, Failure> {
    let class = match (refusal, deed) {
        (Refusal::Invalid(_), Deed::Build { .. }) => FailureClass::BuildFailed {
            exit: i32::from(exit::WRONG),
        },
        (Refusal::Invalid(_), _) => FailureClass::Invalid,
        (Refusal::Stopped, _) => FailureClass::Stopped {
            why: StopReason::Changed,
        },
        // The next decision knows that Jobs cannot be had.
        (Refusal::Forbidden(_) | Refusal::Barred(_), _) => FailureClass::JobVanished,
        // Its name is free when its node answers again, if ever: another attempt has another one.
        (Refusal::Lingers(_), _) => return Ok(Done::Taken),
        (Refusal::Strange { .. }, _) => FailureClass::State,
        (Refusal::Failed(_), _) => FailureClass::Unknown,
    };
    Err(Failure::new(class, refusal.to_string()))
}
