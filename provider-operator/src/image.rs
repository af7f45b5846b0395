//! The driver of image objects: observe, decide, do one step, tell, say when to look again. It never waits for a cloud: whatever is asked of one is a deed of
//! the executor, and what a deed found out is the next observation.

mod execute;
mod memory;
mod observe;
mod seen;
mod status;
mod wanted;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::providers::Provider;
use crds::providers::image_status::ExecutionForm;
use kube::ResourceExt;
use kube::api::DynamicObject;
use planning::image::{Deed, Form, Situation, Step, StopReason, Told, decide, tell};

pub(crate) use self::memory::Memories;

use self::execute::{Pass, Performed};
use self::memory::ImageMemory;
use self::observe::{Case, observe};
use crate::context::{Context, Served};
use crate::driver::Look;
use crate::executor::jobs::logs;
use crate::objects::ObjectId;

/// Steps of one reconcile: from nothing to the first deed, or from the end of one to the next, it takes fewer.
const STEPS: usize = 12;

/// Until the next reconcile of an object that takes more.
const GOES_ON: Duration = Duration::from_secs(1);

/// How often a Secret is looked for, or looked at again, while something does not go on with what it holds: nobody tells of Secrets.
const SECRET: Duration = Duration::from_secs(20);

/// Reconciles one image object.
pub(crate) async fn reconcile(context: Arc<Context>, served: Arc<Served>, namespace: String, name: String) -> Look {
    let Some(_pass) = context.tenure.enter(0) else {
        return Look::NotOurs;
    };
    let object = served.images.get(&namespace, &name);
    let id = ObjectId {
        provider: served.kind.provider(),
        namespace,
        name,
        uid: object.as_ref().and_then(|object| object.uid()).unwrap_or_default(),
    };
    forget_others(&context, &id);
    let Some(object) = object else {
        return Look::Done(None);
    };
    if !context.executor.is_listed() {
        // What an earlier life began would be taken for a stranger's.
        return Look::Done(Some(GOES_ON));
    }
    let memory = context.images.of(&id);
    Look::Done(work_on(&context, &served, object, &id, &memory).await)
}

/// An object went, whoever let it go: what is under way for it is nobody's.
pub(crate) fn gone(context: &Context, provider: Provider, namespace: &str, name: &str) {
    context.metrics.forget(provider, namespace, name);
    let nobody = ObjectId {
        provider,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: String::new(),
    };
    forget_others(context, &nobody);
}

/// Another object of the same name is gone, and what is under way for it is nobody's. It is remembered until that has ended, and its end wakes the driver.
fn forget_others(context: &Context, id: &ObjectId) {
    for gone in context.images.others(id) {
        context.executor.stop(&gone, StopReason::Deleted);
        context.executor.forget(&gone);
        if context.executor.look(&gone).is_none() {
            context.images.forget(&gone);
        }
    }
}

/// Reconciles one image; `None` means that only something that is told of can change the decision.
async fn work_on(
    context: &Context,
    served: &Served,
    mut object: Arc<DynamicObject>,
    id: &ObjectId,
    memory: &Mutex<ImageMemory>,
) -> Option<Duration> {
    for _ in 0..STEPS {
        let case = observe(context, served, Arc::clone(&object), id, memory).await;
        let now = context.clock.now();
        let step = decide(&case.wanted, &case.kept, &case.seen, case.op.as_ref(), now);
        case.record(context, now, &step);
        let situation = Situation {
            provider: id.provider,
            wanted: &case.wanted,
            kept: &case.kept,
            seen: &case.seen,
            op: case.op.as_ref(),
            step: &step,
            before: &case.status,
        };
        let told = with_job(tell(&situation, now), &situation, id, context.executor.job(id));
        let told = with_owner(told, &case);
        let pass = Pass {
            context,
            served,
            id,
            memory,
            case: &case,
        };
        match Box::pin(pass.perform(&step, &told)).await {
            Performed::Current(current) => {
                object = current;
                case.count(&step);
            }
            Performed::Gone => return None,
            Performed::Refused(pause) => return Some(pause),
        }
        if is_over(&step) {
            let next = context.clock.until(told.next);
            return if case.awaits_secret() {
                Some(next.map_or(SECRET, |next| next.min(SECRET)))
            } else {
                next
            };
        }
    }
    Some(GOES_ON)
}

/// Names the Job that does the work, once it has been made, and how its logs are read. They stay there when it is over.
fn with_job(mut told: Told, situation: &Situation<'_>, id: &ObjectId, job: Option<String>) -> Told {
    let deed = situation.op.filter(|op| op.form == Form::Job).map(|op| &op.deed);
    if let (Some(deed), Some(job), Some(execution)) = (deed, job, &mut told.status.execution)
        && execution.form == ExecutionForm::Job
    {
        execution.logs = Some(logs(id, &job, matches!(deed, Deed::Build { .. })));
        execution.job = Some(job);
    }
    told
}

/// Says under which owner images are marked, with the attempt and so before the first of them is made.
fn with_owner(mut told: Told, case: &Case) -> Told {
    let image = case.asked.image.as_ref().filter(|_| !case.wanted.moved);
    if let Some(image) = image
        && told.status.attempt.is_some()
        && told.status.owner.is_none()
    {
        told.status.owner = Some(image.subject.owner.as_str().to_owned());
    }
    told
}

/// Whether there is nothing more to do at once.
fn is_over(step: &Step) -> bool {
    matches!(step, Step::Await(_) | Step::Rest { .. } | Step::Hold(_))
}
