//! The handles that every driver needs, and the few questions that are asked of several of them at once.

use std::sync::Arc;
use std::time::Duration;

use crds::conditions::Condition;
use crds::policy::HelmProfile;
use crds::{ClusterStack, ClusterStackRelease};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use operator_kit::crd_watch::{CrdWatch, Serving};
use operator_kit::discovery::Discovery;
use operator_kit::events::{EventType, Events};
use operator_kit::lease::Tenure;
use operator_kit::object::GroupKind;
use operator_kit::objects::ObjectWatches;
use operator_kit::projection;
use operator_kit::record::Recorder;
use planning::election::{shard_of_release, shard_of_stack};
use planning::next::Next;
use planning::release::KindScope;
use planning::unlisted::Unlisted;
use planning::warnings::warnings;
use release::Admitted;
use rendering::Rendered;

use crate::charts::Charts;
use crate::clock::Clock;
use crate::clusters::Clusters;
use crate::freshest::Freshest;
use crate::lanes::Unrendered;
use crate::leftovers::Leftovers;
use crate::looking::Looking;
use crate::metrics::Metrics;
use crate::providers::Providers;
use crate::release::{Claims, LiveMarks, Memories};
use crate::sources::Sources;
use crate::stack::StackMemories;

/// Handles only; what is remembered of an object lives in [`Memories`].
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) tenure: Tenure,
    pub(crate) discovery: Discovery,
    pub(crate) crds: CrdWatch,
    pub(crate) objects: ObjectWatches,
    pub(crate) clusters: Arc<Clusters>,
    pub(crate) leftovers: Leftovers,
    pub(crate) providers: Providers,
    pub(crate) sources: Sources,
    pub(crate) charts: Charts,
    pub(crate) stacks: Freshest<ClusterStack>,
    pub(crate) releases: Freshest<ClusterStackRelease>,
    pub(crate) memories: Memories,
    pub(crate) claims: Claims,
    pub(crate) live_marks: LiveMarks,
    pub(crate) stack_memories: StackMemories,
    pub(crate) looking: Looking,
    pub(crate) events: Events,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) metrics: Metrics,
}

/// What is known of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindFacts {
    /// The API server serves it in some version.
    Served {
        /// Whether its objects have no namespace.
        cluster_scoped: bool,
    },
    /// There are no objects of it.
    NotServed,
    /// Discovery cannot tell: nothing may be concluded.
    Unsure,
}

impl KindFacts {
    /// Whether there may be objects of it.
    pub(crate) fn maybe_served(self) -> bool {
        self != Self::NotServed
    }

    /// Whether its objects have namespaces, as far as discovery tells.
    pub(crate) fn scope(self) -> KindScope {
        match self {
            Self::Served { cluster_scoped: true } => KindScope::ClusterWide,
            Self::Served { cluster_scoped: false } => KindScope::Namespaced,
            Self::NotServed | Self::Unsure => KindScope::Unknown,
        }
    }
}

impl Context {
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

    /// What is known of a kind; its objects are watched from now on.
    pub(crate) async fn kind(&self, kind: &GroupKind) -> KindFacts {
        let resolved = match self.crds.serving(&self.discovery, kind).await {
            Ok(Serving::Served(resolved)) => resolved,
            Ok(Serving::NotServed) => return KindFacts::NotServed,
            Ok(Serving::Unsure) | Err(_) => return KindFacts::Unsure,
        };
        let gvk = GroupVersionKind::gvk(&kind.group, &resolved.resource.version, &kind.kind);
        match self.objects.ensure(&gvk).await {
            Ok(true) => KindFacts::Served {
                cluster_scoped: resolved.scope == Scope::Cluster,
            },
            // It went in between, or was never there: the next look tells.
            Ok(false) | Err(_) => KindFacts::Unsure,
        }
    }

    /// Whether the API server serves a kind in exactly this version, as far as is known.
    pub(crate) async fn serves(&self, gvk: &GroupVersionKind) -> bool {
        !matches!(self.discovery.resolve(gvk).await, Ok(None))
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
