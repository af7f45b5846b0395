//! The driver of ClusterAddon: see to its presence, observe, plan, write the status, say when to look again.
//!
//! Clusters that have no ClusterAddon yet have no place in the queue of the driver: [`making`] is theirs.

mod charts;
mod made;
mod making;
mod memory;
mod observe;
mod parts;
mod plan;
mod presence;
mod seen;
mod status;

use std::sync::Arc;
use std::time::Duration;

use crds::cluster_addon::{ClusterAddon, name_for};
use crds::labels;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::flags::ScopeArgs;
use operator_kit::telemetry::log_refusal;
use planning::election::shard_of;
use planning::next::retry_delay_seconds;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

pub(crate) use self::making::make;

use self::memory::AddonMemory;
use self::observe::observe;
use self::parts::Parts;
use self::plan::plan;
use self::presence::{Presence, see_to};
use self::status::write_status;
use crate::by_kind::KindChange;
use crate::context::Context;
use crate::driver::Look;
use crate::freshest::Freshest;
use crate::objects::{Memories, Memory, lock};
use crate::spans::reconciled;

/// Namespace and name of a Cluster.
pub(crate) type ClusterPlace = (String, String);

/// What the work on add-ons needs besides everything else.
pub(crate) struct Addons {
    pub(crate) objects: Freshest<ClusterAddon>,
    /// Control planes and what providers make of Clusters.
    pub(crate) parts: Parts,
    pub(crate) memories: Memories<ClusterAddon, AddonMemory>,
    /// The only namespace that is looked after, or empty.
    pub(crate) namespace: String,
    /// The value of the label without which the watch does not show a ClusterAddon, or empty.
    watch_filter: String,
}

impl Addons {
    /// Those in this scope, and where it is told that something changed that belongs to their Clusters.
    pub(crate) fn new(
        objects: Freshest<ClusterAddon>,
        client: &Client,
        (discovery, crds): (&Discovery, &CrdWatch),
        scope: &ScopeArgs,
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
        let addons = Self {
            objects,
            parts,
            memories: Memories::default(),
            namespace,
            watch_filter,
        };
        (addons, changes)
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

/// Reconciles one ClusterAddon, if it is in a shard of this process.
pub(crate) async fn reconcile(context: Arc<Context>, namespace: String, name: String) -> Look {
    let Some(addons) = &context.addons else {
        return Look::Done(None);
    };
    let part_of = labels::part_of("ClusterAddon", &namespace, &name);
    let Some(addon) = addons.objects.get(&namespace, &name) else {
        addons.memories.forget(&part_of);
        return Look::Done(None);
    };
    let Some(pass) = context
        .tenure
        .enter(shard_of(&namespace, &name, context.tenure.count()))
    else {
        return Look::NotOurs;
    };
    let memory = addons
        .memories
        .of(&part_of, &ObjectRef::from_obj(addon.as_ref()), pass.term());
    let work = Box::pin(work_on(&context, addons, addon, &memory));
    Look::Done(reconciled("ClusterAddon", &namespace, &name, work).await)
}

/// Reconciles one ClusterAddon; `None` means that only a change can change the decision.
async fn work_on(
    context: &Context,
    addons: &Addons,
    addon: Arc<ClusterAddon>,
    memory: &Memory<AddonMemory>,
) -> Option<Duration> {
    let (namespace, cluster) = cluster_of(&addon)?;
    let (addon, sight) = match Box::pin(see_to(context, addons, &namespace, &cluster)).await {
        Ok(Presence::Tended { addon, sight }) => (addon, sight),
        Ok(Presence::Settled) => {
            lock(&memory.own).refusals = 0;
            return None;
        }
        Err(error) => return Some(after_refusal(&addon, memory, &error.words())),
    };
    let looking = Box::pin(observe(context, addons, &addon, sight));
    let observed = context
        .looking
        .at("ClusterAddon", &namespace, &addon.name_any(), looking)
        .await?;
    let plan = plan(&observed, context.now());
    match write_status(context, addons, &addon, &plan.status).await {
        Ok(()) => {
            lock(&memory.own).refusals = 0;
            context.until(plan.next)
        }
        Err(message) => Some(after_refusal(&addon, memory, &message)),
    }
}

/// When to look again after the API server refused something, or did not answer.
fn after_refusal(addon: &ClusterAddon, memory: &Memory<AddonMemory>, message: &str) -> Duration {
    let mut memory = lock(&memory.own);
    memory.refusals = memory.refusals.saturating_add(1);
    log_refusal("ClusterAddon", addon, memory.refusals, message);
    Duration::from_secs(retry_delay_seconds(memory.refusals).unsigned_abs())
}
