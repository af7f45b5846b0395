//! What is said of add-ons as long as nothing is applied: whether the cluster answers, and why it does not have its add-ons. A stand-in until the whole plan is
//! in `planning`, which takes the place of [`plan`].

use crds::cluster_addon::ClusterAddonStatus;
use crds::conditions::{ConditionType, Finding, Reason, Severity, merge, paused, with_ready};
use crds::labels;
use jiff::Timestamp;
use planning::addon::{ClusterSeen, PausedBy, Pausing, ReleaseSeen, Values, Wanted, due, wanted};
use planning::next::Next;

/// What was observed of the add-ons of a Cluster.
pub(super) struct AddonObserved {
    /// Of the ClusterAddon.
    pub(super) generation: i64,
    /// What the ClusterAddon says.
    pub(super) status: ClusterAddonStatus,
    /// Who stopped the work, if anybody did.
    pub(super) paused: Option<Pausing>,
    /// The Cluster, with its control plane.
    pub(super) cluster: ClusterSeen,
    /// The release of its class.
    pub(super) release: ReleaseSeen,
}

/// What is to be done.
pub(super) struct AddonPlan {
    pub(super) status: ClusterAddonStatus,
    pub(super) next: Next,
}

/// Decides about the add-ons of a Cluster.
pub(super) fn plan(observed: &AddonObserved, now: Timestamp) -> AddonPlan {
    let AddonObserved {
        generation,
        status: stored,
        paused: pausing,
        cluster,
        release,
    } = observed;
    let status = match pausing {
        Some(pausing) => ClusterAddonStatus {
            conditions: paused(&stored.conditions, Reason::Paused, &words_of(*pausing), now),
            ..stored.clone()
        },
        None => ClusterAddonStatus {
            observed_generation: Some(*generation),
            cluster_generation: Some(cluster.generation),
            ready: false,
            conditions: merge(&stored.conditions, findings(cluster, release), now),
            ..stored.clone()
        },
    };
    AddonPlan {
        status,
        next: Next::Await,
    }
}

fn findings(cluster: &ClusterSeen, release: &ReleaseSeen) -> Vec<Finding> {
    let answers = if cluster.initialized {
        Finding::holds(ConditionType::ClusterReady)
    } else {
        let message = "the API server of the cluster has not answered yet";
        Finding::fails(
            ConditionType::ClusterReady,
            Severity::Info,
            Reason::WaitingForCluster,
            message,
        )
    };
    let (severity, reason, message) = match wanted(cluster, release, &Values::Awaited) {
        Wanted::NoClass => (
            Severity::Warning,
            Reason::ReleaseNotReady,
            "the Cluster has no class any more; what was applied stays".to_owned(),
        ),
        Wanted::ReleaseNotReady { message } => (Severity::Info, Reason::ReleaseNotReady, message),
        Wanted::VersionMismatch { message } => (Severity::Warning, Reason::VersionMismatch, message),
        _ if due(cluster, None).is_empty() => (
            Severity::Info,
            Reason::WaitingForCluster,
            "the cluster is not as far yet that add-ons can be applied".to_owned(),
        ),
        Wanted::ValuesAwaited | Wanted::ValuesFailed { .. } | Wanted::ValuesUnstable { .. } | Wanted::Target(_) => (
            Severity::Warning,
            Reason::NotObservedYet,
            "add-ons are not applied by this version of the operator: --cluster-addons is not complete".to_owned(),
        ),
    };
    let applied = Finding::fails(ConditionType::HelmChartApplied, severity, reason, message);
    with_ready(vec![answers, applied])
}

fn words_of(pausing: Pausing) -> String {
    let left = "nothing is done about the add-ons, and the rest of the status is from before";
    let annotation = labels::PAUSED;
    match pausing {
        Pausing::Addon => format!("the annotation {annotation} is set: {left}; remove it to go on"),
        Pausing::Cluster(PausedBy::Annotation) => {
            format!("the annotation {annotation} is set on the Cluster: {left}; remove it to go on")
        }
        Pausing::Cluster(PausedBy::Spec) => {
            format!("spec.paused of the Cluster is true: {left}; set it to false to go on")
        }
    }
}
