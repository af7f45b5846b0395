//! The driver of ClusterAddon: see to its presence, observe, plan, execute, write the status, say when to look again.
//!
//! Clusters that have no ClusterAddon yet have no place in the queue of the driver: [`making`] is theirs.

mod allowance;
mod charts;
mod conditions;
mod consents;
mod made;
mod making;
mod memory;
mod observe;
mod own;
mod parts;
mod presence;
mod seen;
mod served;
mod status;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crds::cluster_addon::{ClusterAddon, name_for};
use crds::events::Happening;
use crds::labels;
use futures::channel::mpsc::UnboundedSender;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, Resource, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::events::EventType;
use operator_kit::flags::ScopeArgs;
use operator_kit::telemetry::log_refusal;
use planning::addon::{AddonObserved, AddonPlan, AddonWaiting, StageKey, Step, overridden, plan};
use planning::election::shard_of;
use planning::next::retry_delay_seconds;
use planning::objects::{corrected, corrections};
use planning::topology::Topology;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::making::make;
pub(crate) use self::memory::AddonMemory;

use self::charts::AddonCharts;
use self::conditions::follow;
use self::consents::Consents;
use self::observe::{Found, Subject};
use self::own::AddonOwner;
use self::parts::Parts;
use self::presence::{Presence, see_to, tell_stray};
use self::served::Library;
use self::status::{tell, write_status};
use crate::by_kind::KindChange;
use crate::context::Context;
use crate::driver::Look;
use crate::freshest::Freshest;
use crate::objects::{Memories, Memory, Outcome, Pass, lock};
use crate::spans::reconciled;
use crate::wishes::Wishes;

/// Rounds of one reconcile. A chart takes one, a repair two (look, then write); whatever needs more goes on in the next reconcile.
const ROUNDS: usize = 3;

/// Namespace and name of a Cluster.
pub(crate) type ClusterPlace = (String, String);

/// What the work on add-ons needs besides everything else.
pub(crate) struct Addons {
    pub(crate) objects: Freshest<ClusterAddon>,
    /// Control planes and what providers make of Clusters.
    pub(crate) parts: Parts,
    /// The Secrets and ConfigMaps that Clusters may take values from.
    consents: Consents,
    pub(crate) memories: Memories<ClusterAddon, AddonMemory>,
    charts: AddonCharts,
    /// What the clusters publish of their kinds.
    library: Library,
    /// The only namespace that is looked after, or empty.
    pub(crate) namespace: String,
    /// The value of the label without which the watch does not show a ClusterAddon, or empty.
    watch_filter: String,
}

impl Addons {
    /// Those in this scope, which are woken through this queue, and where it is told that something changed that belongs to their Clusters.
    pub(crate) fn new(
        objects: Freshest<ClusterAddon>,
        client: &Client,
        (discovery, crds): (&Discovery, &CrdWatch),
        scope: &ScopeArgs,
        woken: UnboundedSender<ObjectRef<ClusterAddon>>,
        stop: &CancellationToken,
    ) -> (Self, UnboundedReceiver<KindChange>) {
        let ScopeArgs {
            namespace,
            watch_filter,
        } = scope.clone();
        let (parts, changes) = Parts::new(
            client.clone(),
            discovery.clone(),
            crds.clone(),
            &namespace,
            stop.clone(),
        );
        let consents = Consents::new(client.clone(), parts.changes(), stop.clone());
        let addons = Self {
            objects,
            parts,
            consents,
            memories: Memories::default(),
            charts: AddonCharts::new(woken),
            library: Library::default(),
            namespace,
            watch_filter,
        };
        (addons, changes)
    }

    /// A ClusterAddon is gone, or is no longer ours to work on: nothing of it is kept.
    pub(crate) fn forget(&self, context: &Context, addon: &ObjectRef<ClusterAddon>) {
        let namespace = addon.namespace.as_deref().unwrap_or_default();
        let part_of = labels::part_of("ClusterAddon", namespace, &addon.name);
        self.charts.forget(&context.charts, addon);
        if let Some(memory) = self.memories.forget(&part_of) {
            leave(context, &memory);
        }
        if self
            .objects
            .select(namespace, |other| other.name_any() != addon.name)
            .is_empty()
        {
            self.consents.leave(namespace);
        }
    }

    /// The ClusterAddon of a Cluster.
    pub(crate) fn of(&self, namespace: &str, cluster: &str) -> Option<Arc<ClusterAddon>> {
        self.objects.get(namespace, &name_for(cluster))
    }
}

/// The Cluster that a ClusterAddon is for; `None` where it has another name than that of the Cluster's: then nobody here makes anything of it.
pub(crate) fn cluster_of(addon: &ClusterAddon) -> Option<ClusterPlace> {
    let cluster = addon.spec.cluster_ref.name.clone()?;
    (addon.name_any() == name_for(&cluster)).then(|| (addon.namespace().unwrap_or_default(), cluster))
}

/// The shard of the add-ons of a Cluster: by their own namespace and name, since the class of a Cluster changes.
pub(crate) fn shard_of_addons(namespace: &str, cluster: &str, count: u16) -> u16 {
    shard_of(namespace, &name_for(cluster), count)
}

/// Whether the cluster of a ClusterAddon is being asked and says nothing, so that a look at it may take any time.
pub(crate) fn keeps_silent(addon: &ClusterAddon, context: &Context) -> bool {
    let cluster = cluster_of(addon);
    let workloads = context.workloads.as_ref();
    workloads
        .zip(cluster)
        .is_some_and(|(workloads, cluster)| workloads.keeps_silent(&cluster))
}

/// Nothing is to be done any more in the cluster of a ClusterAddon: the way to it ends.
fn leave(context: &Context, memory: &Memory<AddonMemory>) {
    let cluster = lock(&memory.own).cluster.take();
    if let (Some(workloads), Some(cluster)) = (&context.workloads, cluster) {
        workloads.forget(&cluster);
    }
}

/// Reconciles one ClusterAddon, if it is in a shard of this process.
pub(crate) async fn reconcile(context: Arc<Context>, namespace: String, name: String) -> Look {
    let Some(addons) = &context.addons else {
        return Look::Done(None);
    };
    let part_of = labels::part_of("ClusterAddon", &namespace, &name);
    let reference = ObjectRef::new(&name).within(&namespace);
    let Some(addon) = addons.objects.get(&namespace, &name) else {
        addons.forget(&context, &reference);
        return Look::Done(None);
    };
    let Some(pass) = context
        .tenure
        .enter(shard_of(&namespace, &name, context.tenure.count()))
    else {
        addons.forget(&context, &reference);
        return Look::NotOurs;
    };
    let memory = addons
        .memories
        .of(&part_of, &ObjectRef::from_obj(addon.as_ref()), pass.term());
    let subject = Subject {
        context: &context,
        addons,
        part_of: &part_of,
        memory: &memory,
    };
    let work = Box::pin(work_on(subject, addon));
    Look::Done(reconciled("ClusterAddon", &namespace, &name, work).await)
}

/// Reconciles one ClusterAddon; `None` means that only a change can change the decision.
async fn work_on(subject: Subject<'_>, addon: Arc<ClusterAddon>) -> Option<Duration> {
    let Subject {
        context,
        addons,
        memory,
        ..
    } = subject;
    let Some((namespace, cluster)) = cluster_of(&addon) else {
        tell_stray(context, &addon);
        return None;
    };
    memory.hear(Wishes::of(addon.as_ref())).await;
    for _ in 0..ROUNDS {
        let (addon, sight) = match Box::pin(see_to(context, addons, &namespace, &cluster)).await {
            Ok(Presence::Tended { addon, sight }) => (addon, sight),
            Ok(Presence::Settled) => {
                lock(&memory.own).refusals = 0;
                return None;
            }
            Ok(Presence::NotOurs) => {
                lock(&memory.own).refusals = 0;
                leave(context, memory);
                return None;
            }
            Err(error) => return Some(after_refusal(&addon, memory, &error.words())),
        };
        let looking = Box::pin(subject.observe(&addon, &sight));
        let found = context
            .looking
            .at("ClusterAddon", &namespace, &addon.name_any(), looking)
            .await?;
        let plan = decide(context, &found.observed);
        if memory.is_to_evaluate(conditions_of(&plan)) {
            continue;
        }
        if plan.steps.is_empty() {
            return settle(subject, &addon, &found, &plan).await;
        }
        match perform(subject, &addon, &found, &plan).await {
            Outcome::Current(_) => {}
            Outcome::Refused { message } => return Some(after_refusal(&addon, memory, &message)),
            // The end of the rendering wakes it.
            Outcome::Awaited(_) => return None,
        }
    }
    Some(Duration::ZERO)
}

fn decide(context: &Context, observed: &AddonObserved) -> AddonPlan {
    let now = context.now();
    let plan = plan(observed, now);
    if let Some(recorder) = &context.recorder {
        recorder.record("addon", observed, now, &plan);
    }
    plan
}

/// The stages whose conditions a plan waits for.
fn conditions_of(plan: &AddonPlan) -> BTreeSet<StageKey> {
    let stages = plan.waiting.iter().filter_map(|waiting| match waiting {
        AddonWaiting::Condition { stage } => Some(stage.clone()),
        _ => None,
    });
    stages.collect()
}

/// Performs the steps of a plan, and tells people what they did of their own accord.
async fn perform(
    subject: Subject<'_>,
    addon: &Arc<ClusterAddon>,
    found: &Found,
    plan: &AddonPlan,
) -> Outcome<ClusterAddon> {
    let Subject {
        context,
        part_of,
        memory,
        ..
    } = subject;
    let owner = AddonOwner { subject, found, plan };
    let are_for_objects = plan.steps.iter().flat_map(Step::on_objects).next().is_some();
    let place = match &found.place {
        Some(place) => place,
        // Nothing that is meant for a workload cluster may ever be written here.
        None if are_for_objects => return Outcome::Current(Arc::clone(addon)),
        None => &context.management,
    };
    let wanted = owner.wanted();
    let pass = Pass {
        clock: &context.clock,
        metrics: &context.metrics,
        events: &context.events,
        place,
        part_of,
        memory: &memory.objects,
        intents: Some(&wanted),
        owner: &owner,
    };
    let outcome = pass.run(Arc::clone(addon), &plan.steps).await;
    let none = BTreeSet::new();
    let set = found.observed.set(Some(&wanted), &found.observed.objects, &none);
    let memories = lock(&memory.objects);
    let done = corrections(&plan.steps).filter(|key| memories.get(key).is_some_and(|object| object.verified.is_some()));
    if let Some(message) = corrected(&set, done) {
        let about = addon.object_ref(&());
        let (namespace, name) = (&about.namespace, &about.name);
        tracing::info!(
            kind = "ClusterAddon",
            namespace,
            name,
            what = message,
            "drift corrected"
        );
        context
            .events
            .publish(about, EventType::Normal, Happening::DriftCorrected, &message);
    }
    outcome
}

/// Writes the status that follows, and says when to look again.
async fn settle(subject: Subject<'_>, addon: &ClusterAddon, found: &Found, plan: &AddonPlan) -> Option<Duration> {
    let Subject {
        context,
        addons,
        memory,
        ..
    } = subject;
    match write_status(context, addon, &plan.status).await {
        Ok(written) => {
            if written.resource_version() != addon.resource_version() {
                lock(&memory.own).status_written_at = Some(context.now());
            }
            addons.objects.note(written);
        }
        Err(message) => return Some(after_refusal(addon, memory, &message)),
    }
    if let Some(class) = topology(found).map(|topology| &topology.class) {
        tell(context, addon, &overridden(&found.observed.marks, class, &plan.status));
    }
    let awaited = conditions_of(plan);
    if let Some(place) = &found.place {
        follow(place, &found.stages, &awaited, &plan.status).await;
    }
    let (charts, unread) = {
        let mut own = lock(&memory.own);
        own.refusals = if found.is_unread && !awaited.is_empty() {
            own.refusals.saturating_add(1)
        } else {
            0
        };
        own.evaluated = awaited;
        (Arc::clone(&own.charts), own.refusals)
    };
    if let Some(usable) = &found.usable
        && plan.status.ready
    {
        charts.lock().await.settle(&usable.bundle);
    }
    let again = context.until(plan.next.sooner(found.next));
    // Of what could not be read nothing is known, and nothing tells when it can be.
    let unread = (unread > 0).then(|| retry_after(unread));
    let unpublished = found.again.map(|again| again.saturating_duration_since(Instant::now()));
    again.into_iter().chain(unread).chain(unpublished).min()
}

fn topology(found: &Found) -> Option<&Topology> {
    found.observed.cluster.as_ref()?.topology.as_ref()
}

/// When to look again after the API server refused something, or did not answer.
fn after_refusal(addon: &ClusterAddon, memory: &Memory<AddonMemory>, message: &str) -> Duration {
    let mut memory = lock(&memory.own);
    memory.refusals = memory.refusals.saturating_add(1);
    log_refusal("ClusterAddon", addon, memory.refusals, message);
    retry_after(memory.refusals)
}

fn retry_after(refusals: u32) -> Duration {
    Duration::from_secs(retry_delay_seconds(refusals).unsigned_abs())
}
