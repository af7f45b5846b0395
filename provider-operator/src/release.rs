//! The driver of a provider's release objects: observe, plan, execute, write the status, say when to look again. It makes, shares and lets go of the objects of
//! images; what becomes of an image is its own driver's.

mod execute;
mod files;
mod memory;
mod observe;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::labels;
use crds::providers::Provider;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::failure::chain;
use operator_kit::status::{StatusWrite, replace_status};
use operator_kit::telemetry::{Change, log_readiness, log_refusal};
use planning::next::retry_delay_seconds;
use planning::node_image::{ReleaseObserved, ReleasePlan, plan};

pub(crate) use self::memory::Memories;

use self::execute::{Executed, execute};
use self::memory::{ReleaseMemory, lock};
use self::observe::observe;
use crate::context::{Context, Served};
use crate::driver::Look;
use crate::kinds::with;

/// Rounds of one reconcile: the finalizer, the objects, and what there is then.
const ROUNDS: usize = 4;

/// Until the next reconcile of a release that takes more.
const GOES_ON: Duration = Duration::from_secs(1);

/// Reconciles one release object.
pub(crate) async fn reconcile(context: Arc<Context>, served: Arc<Served>, namespace: String, name: String) -> Look {
    let Some(_pass) = context.tenure.enter(0) else {
        return Look::NotOurs;
    };
    let Some(release) = served.releases.get(&namespace, &name) else {
        gone(&context, served.kind.provider(), &namespace, &name);
        return Look::Done(None);
    };
    let uid = release.uid().unwrap_or_default();
    let memory = context.releases.of(served.kind.provider(), &namespace, &name, &uid);
    Look::Done(work_on(&context, &served, release, &memory).await)
}

/// A release object went: what is remembered of it is of no use.
pub(crate) fn gone(context: &Context, provider: Provider, namespace: &str, name: &str) {
    context.releases.forget(provider, namespace, name);
}

/// Reconciles one release; `None` means that only something that is told of can change the decision.
async fn work_on(
    context: &Context,
    served: &Served,
    mut release: Arc<DynamicObject>,
    memory: &Mutex<ReleaseMemory>,
) -> Option<Duration> {
    for _ in 0..ROUNDS {
        let observed = Box::pin(observe(context, served, &release, memory)).await;
        let now = context.clock.wall();
        let plan = plan(&observed, now);
        if let Some(recorder) = &context.recorder {
            recorder.record("release", &observed, now, &plan);
        }
        if plan.actions.is_empty() {
            return settle(context, served, &release, memory, &observed, &plan).await;
        }
        match Box::pin(execute(context, served, &release, memory, &plan.actions)).await {
            Executed::Current(current) => release = current,
            Executed::Gone => {
                let (namespace, name) = (release.namespace(), release.name_any());
                tracing::info!(kind = served.releases.resource().kind, namespace, name, "gone");
                return None;
            }
        }
    }
    Some(GOES_ON)
}

/// Writes the status that follows, and tells what it says for the first time.
async fn settle(
    context: &Context,
    served: &Served,
    release: &Arc<DynamicObject>,
    memory: &Mutex<ReleaseMemory>,
    observed: &ReleaseObserved,
    plan: &ReleasePlan,
) -> Option<Duration> {
    let next = context.clock.until(plan.next);
    if !plan.status_due {
        return next;
    }
    match write_status(context, served, release, plan).await {
        Ok(Some(written)) => {
            let change = Change {
                before: &observed.status.conditions,
                after: &plan.status.conditions,
                by_words: true,
                objects: None,
            };
            let kind = served.kind.definition().release_kind;
            log_readiness(kind, release.as_ref(), change, context.clock.wall());
            context.warn(&served.release_reference(release), change.before, change.after);
            lock(memory).written(context.clock.wall());
            served.releases.note(written);
            next
        }
        Ok(None) => next,
        Err(message) => {
            let refusals = lock(memory).refused();
            log_refusal(
                served.kind.definition().release_kind,
                release.as_ref(),
                refusals,
                &message,
            );
            Some(Duration::from_secs(retry_delay_seconds(refusals).unsigned_abs()))
        }
    }
}

async fn write_status(
    context: &Context,
    served: &Served,
    release: &Arc<DynamicObject>,
    plan: &ReleasePlan,
) -> Result<Option<DynamicObject>, String> {
    let status = serde_json::to_value(&plan.status).map_err(|error| error.to_string())?;
    let mut wanted = DynamicObject::clone(release);
    with(&mut wanted, "status", status);
    let api = served.release_api(&context.client, &release.namespace().unwrap_or_default());
    match replace_status(&api, release.as_ref(), &wanted, labels::STATUS_FIELD_MANAGER).await {
        Ok(StatusWrite::Written(written)) => Ok(Some(*written)),
        Ok(StatusWrite::Unchanged | StatusWrite::Gone) => Ok(None),
        Ok(StatusWrite::Conflict) => Err("somebody else wrote the release in between".to_owned()),
        Err(error) => Err(chain(&error)),
    }
}
