//! The driver of ClusterStackRelease: observe, plan, execute, write the status, say when to look again.

mod claims;
mod kinds;
mod marks;
mod memory;
mod observe;
mod own;
mod provider;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use crds::events::Happening;
use crds::{ClusterStackRelease, labels};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use operator_kit::events::EventType;
use operator_kit::telemetry::log_refusal;
use planning::election::shard_of_release;
use planning::next::retry_delay_seconds;
use planning::objects::{corrected, corrections};
use planning::release::{ReleaseAction, ReleasePlan, Step, plan};

pub(crate) use self::claims::{Claims, handles, mark, names, object_handle};
pub(crate) use self::kinds::kinds_of;
pub(crate) use self::marks::LiveMarks;
pub(crate) use self::memory::ReleaseMemory;
pub(crate) use self::provider::{group_kind, owner_reference};

use self::observe::{Sight, observe};
use self::own::{ReleaseOwner, write_status};
use crate::context::Context;
use crate::driver::Look;
use crate::objects::{Memory, Outcome, Pass, lock};
use crate::spans::reconciled;
use crate::wishes::Wishes;

/// Rounds of one reconcile. An installation takes one, a repair two (look, then write); whatever needs more goes on in the next reconcile.
const ROUNDS: usize = 3;

/// Until the next look where the watch of Clusters and the API server do not agree on who uses a release, or the latter did not say.
const IN_DOUBT: Duration = Duration::from_secs(5);

/// Reconciles one release, if it is in a shard of this process.
pub(crate) async fn reconcile(context: Arc<Context>, namespace: String, name: String) -> Look {
    let part_of = labels::part_of("ClusterStackRelease", &namespace, &name);
    let Some(release) = context.releases.get(&namespace, &name) else {
        context.memories.forget(&part_of);
        return Look::Done(None);
    };
    let shard = shard_of_release(&release, context.tenure.count());
    let Some(pass) = context.tenure.enter(shard) else {
        return Look::NotOurs;
    };
    let memory = context
        .memories
        .of(&part_of, &ObjectRef::from_obj(release.as_ref()), pass.term());
    let work = Box::pin(work_on(&context, release, part_of, memory));
    Look::Done(reconciled("ClusterStackRelease", &namespace, &name, work).await)
}

/// Reconciles one release; `None` means that only a change can change the decision.
async fn work_on(
    context: &Context,
    mut release: Arc<ClusterStackRelease>,
    part_of: String,
    memory: Arc<Memory<ReleaseMemory>>,
) -> Option<Duration> {
    if memory.hear(Wishes::of(release.as_ref())) {
        context.sources.request(&release);
    }
    for _ in 0..ROUNDS {
        let sight = look(context, &release, &part_of, &memory).await?;
        let plan = decide(context, &sight.observed);
        #[cfg(feature = "mutants")]
        let plan = with_late_inventory(plan);
        if plan.steps.is_empty() {
            break;
        }
        let owner = ReleaseOwner {
            context,
            part_of: &part_of,
            memory: &memory,
            sight: &sight,
        };
        match perform(&owner, &release, &plan.steps).await {
            Outcome::Current(current) => release = current,
            Outcome::Refused { message } => return Some(after_refusal(&release, &memory, &message)),
            Outcome::Awaited(current) => {
                release = current;
                break;
            }
        }
        if release.finalizers().is_empty() && release.metadata.deletion_timestamp.is_some() {
            tracing::info!(
                kind = "ClusterStackRelease",
                namespace = release.namespace().unwrap_or_default(),
                name = release.name_any(),
                "gone, with everything that it brought"
            );
            context.releases.bury(&release);
            context.memories.forget(&part_of);
            return None;
        }
    }
    let sight = look(context, &release, &part_of, &memory).await?;
    let plan = decide(context, &sight.observed);
    if !plan.steps.is_empty() {
        // The status would tell of a moment.
        return Some(Duration::ZERO);
    }
    let again = settle(context, &release, &memory, &plan).await;
    if sight.in_doubt {
        return Some(again.map_or(IN_DOUBT, |again| again.min(IN_DOUBT)));
    }
    again
}

/// Performs the steps of a plan, and tells people what they did of their own accord.
async fn perform(
    owner: &ReleaseOwner<'_>,
    release: &Arc<ClusterStackRelease>,
    steps: &[Step],
) -> Outcome<ClusterStackRelease> {
    let ReleaseOwner {
        context,
        part_of,
        memory,
        sight,
    } = *owner;
    let pass = Pass {
        clock: &context.clock,
        metrics: &context.metrics,
        events: &context.events,
        place: &context.management,
        part_of,
        memory: &memory.objects,
        intents: sight.observed.rendering.intents(),
        owner,
    };
    tell_unreached(context, release, sight, steps);
    let outcome = pass.run(Arc::clone(release), steps).await;
    tell_corrections(context, release, sight, steps, memory);
    outcome
}

/// Writes the status that follows, and tells what it says for the first time.
async fn settle(
    context: &Context,
    release: &ClusterStackRelease,
    memory: &Memory<ReleaseMemory>,
    plan: &ReleasePlan,
) -> Option<Duration> {
    let written = match write_status(context, release, &plan.status).await {
        Ok(written) => written,
        Err(message) => return Some(after_refusal(release, memory, &message)),
    };
    if written.resource_version() != release.resource_version() {
        let before = release.status.as_ref().map(|status| status.conditions.as_slice());
        context.warn(
            &release.object_ref(&()),
            before.unwrap_or_default(),
            &plan.status.conditions,
        );
        lock(&memory.own).status_written_at = Some(context.now());
    }
    context.releases.note(written);
    lock(&memory.own).refusals = 0;
    context.until(plan.next)
}

async fn look(
    context: &Context,
    release: &ClusterStackRelease,
    part_of: &str,
    memory: &Memory<ReleaseMemory>,
) -> Option<Sight> {
    let (namespace, name) = (release.namespace().unwrap_or_default(), release.name_any());
    let looking = Box::pin(observe(context, release, part_of, memory));
    context
        .looking
        .at("ClusterStackRelease", &namespace, &name, looking)
        .await
}

/// When to look again after the release object could not be written. Where somebody else wrote it, the watch usually tells before; where the
/// API server refuses, asking again at once would only be noise.
fn after_refusal(release: &ClusterStackRelease, memory: &Memory<ReleaseMemory>, message: &str) -> Duration {
    let mut memory = lock(&memory.own);
    memory.refusals = memory.refusals.saturating_add(1);
    log_refusal("ClusterStackRelease", release, memory.refusals, message);
    Duration::from_secs(retry_delay_seconds(memory.refusals).unsigned_abs())
}

/// Names the objects that the steps put back, what was changed and by whom.
fn tell_corrections(
    context: &Context,
    release: &ClusterStackRelease,
    sight: &Sight,
    steps: &[Step],
    memory: &Memory<ReleaseMemory>,
) {
    let memory = lock(&memory.objects);
    let done = corrections(steps).filter(|key| memory.get(key).is_some_and(|object| object.verified.is_some()));
    if let Some(message) = corrected(&sight.observed.set(), done) {
        let about = release.object_ref(&());
        let (namespace, name) = (&about.namespace, &about.name);
        tracing::info!(
            kind = "ClusterStackRelease",
            namespace,
            name,
            what = message,
            "drift corrected"
        );
        context
            .events
            .publish(about, EventType::Normal, Happening::DriftCorrected, &message);
    }
}

/// Names what a release goes without that asked for it.
fn tell_unreached(context: &Context, release: &ClusterStackRelease, sight: &Sight, steps: &[Step]) {
    let mut actions = steps.iter().flat_map(Step::on_owner);
    let goes = actions.any(|action| matches!(action, ReleaseAction::RemoveFinalizer));
    if let Some(message) = sight.observed.set().unreached().filter(|_| goes) {
        let about = release.object_ref(&());
        context
            .events
            .publish(about, EventType::Warning, Happening::ObjectsLeftAlone, &message);
    }
}

#[cfg(feature = "mutants")]
fn with_late_inventory(mut plan: ReleasePlan) -> ReleasePlan {
    if operator_kit::mutants::planted(operator_kit::mutants::Mutant::LateInventory) {
        let records = |action: &_| matches!(action, ReleaseAction::RecordInventory { .. });
        plan.steps.sort_by_key(|step| step.on_owner().any(records));
    }
    plan
}

fn decide(context: &Context, observed: &planning::release::ReleaseObserved) -> ReleasePlan {
    let now = context.now();
    let plan = plan(observed, now);
    if let Some(recorder) = &context.recorder {
        recorder.record("release", observed, now, &plan);
    }
    plan
}
