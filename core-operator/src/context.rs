//! The handles that every driver needs, and the few questions that are asked of several of them at once.

use std::sync::Arc;
use std::time::Duration;

use crds::conditions::Condition;
use crds::policy::HelmProfile;
use crds::{ClusterStack, ClusterStackRelease};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use operator_kit::events::{EventType, Events};
use operator_kit::lease::Tenure;
use operator_kit::projection;
use operator_kit::record::Recorder;
use planning::election::{shard_of_release, shard_of_stack};
use planning::next::Next;
use planning::unlisted::Unlisted;
use planning::warnings::warnings;
use release::Admitted;
use rendering::Rendered;

use crate::addon::Addons;
use crate::charts::Charts;
use crate::clock::Clock;
use crate::clusters::Clusters;
use crate::freshest::Freshest;
use crate::lanes::Unrendered;
use crate::leftovers::Leftovers;
use crate::looking::Looking;
use crate::metrics::Metrics;
use crate::objects::{Memories, Place};
use crate::providers::Providers;
use crate::release::{Claims, LiveMarks, ReleaseMemory};
use crate::sources::Sources;
use crate::stack::StackMemories;
use crate::workloads::Workloads;

/// Handles only; what is remembered of an object lives in [`Memories`].
pub(crate) struct Context {
    /// The management cluster, where our own objects are, and those of releases.
    pub(crate) management: Place,
    pub(crate) clock: Clock,
    pub(crate) tenure: Tenure,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) leftovers: Leftovers,
    pub(crate) providers: Providers,
    pub(crate) sources: Sources,
    pub(crate) charts: Charts,
    pub(crate) stacks: Freshest<ClusterStack>,
    pub(crate) releases: Freshest<ClusterStackRelease>,
    /// Where the add-ons of Clusters are looked after.
    pub(crate) addons: Option<Addons>,
    /// The ways to their workload clusters.
    pub(crate) workloads: Option<Workloads>,
    pub(crate) memories: Memories<ClusterStackRelease, ReleaseMemory>,
    pub(crate) claims: Claims,
    pub(crate) live_marks: LiveMarks,
    pub(crate) stack_memories: StackMemories,
    pub(crate) looking: Looking,
    pub(crate) events: Events,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) metrics: Metrics,
}

impl Context {
    /// Waits until all of our own kinds that are worked on have been listed.
    pub(crate) async fn listed(&self) {
        self.stacks.listed().await;
        self.releases.listed().await;
        if let Some(addons) = &self.addons {
            addons.objects.listed().await;
        }
    }

    /// Whether a stack is in a shard of this process.
    pub(crate) fn has_stack(&self, stack: &ClusterStack) -> bool {
        self.tenure.holds(shard_of_stack(stack, self.tenure.count()))
    }

    /// Whether a release is in a shard of this process.
    pub(crate) fn has_release(&self, release: &ClusterStackRelease) -> bool {
        self.tenure.holds(shard_of_release(release, self.tenure.count()))
    }

    /// Now.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// What planning is told of a watch that has not listed.
    pub(crate) fn unlisted(&self, unlisted: projection::Unlisted) -> Unlisted {
        let since = self.now().checked_sub(unlisted.since.elapsed());
        Unlisted {
            since: since.unwrap_or(Timestamp::MIN),
            error: unlisted.error,
        }
    }

    /// How long until a plan wants to be made again, if it does by itself.
    pub(crate) fn until(&self, next: Next) -> Option<Duration> {
        match next {
            Next::Await => None,
            Next::Now => Some(Duration::ZERO),
            Next::At(at) => Some(Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO)),
        }
    }

    /// Tells in events what is wrong with an object, as its new status says it. What was told last is not told again.
    pub(crate) fn warn(&self, about: &ObjectReference, before: &[Condition], after: &[Condition]) {
        for (reason, message) in warnings(before, after) {
            self.events.publish(about.clone(), EventType::Warning, reason, message);
        }
    }

    /// Renders the class chart of a release, unless that takes long.
    pub(crate) async fn render(
        &self,
        release: &ClusterStackRelease,
        files: &Admitted,
        profile: HelmProfile,
    ) -> Result<Arc<Rendered>, Unrendered> {
        let namespace = release.namespace().unwrap_or_default();
        let whose = ObjectRef::from_obj(release);
        let rendered = self.charts.render(&whose, files, &namespace, profile).await;
        if matches!(&rendered, Err(Unrendered::Failed(failed)) if failed.unreadable) {
            self.sources.doubt(&files.release().tag, files.release().digest);
        }
        rendered
    }
}
