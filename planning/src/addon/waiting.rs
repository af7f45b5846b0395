//! Why nothing more happens to the add-ons of a cluster, as data for reports; the conditions say the same in words.

use std::collections::BTreeSet;

use crds::cluster_addon::StagePhase;
use serde::{Deserialize, Serialize};

use super::belongings::Belongings;
use super::course::StageKey;
use super::hook::Hook;
use super::observed::{ChartSeen, Connection, Layout};
use super::outlook::Outlook;
use super::target::Wanted;
use crate::object_key::ObjectKey;
use crate::objects::{Decisions, ObjectObserved, ObjectSet, Rendering, Wait};

/// Why nothing more happens, as data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddonWaiting {
    /// Somebody stopped the work.
    Paused,
    /// `clusterctl` is moving it.
    Moving,
    /// It is not known yet whose the class is, or whether its release is there.
    Releases,
    /// The Cluster has no class any more.
    NoClass,
    /// The release of the class cannot be used.
    Release,
    /// The Cluster has another Kubernetes version than its class is for.
    Version,
    /// The list of stages cannot be read.
    Layout,
    /// The list of stages has not been read yet.
    NextLayout,
    /// The values are being made.
    Values,
    /// The values of all charts, or of one, cannot be made.
    BrokenValues,
    /// The values do not stay the same.
    UnstableValues,
    /// The cluster has no API server that ever answered.
    ControlPlane,
    /// Nobody has looked at its control plane yet, which alone may tell whether it ever answered.
    UnseenControlPlane,
    /// The kubeconfig cannot be used.
    Kubeconfig,
    /// The cluster does not answer.
    Connection,
    /// A stage takes longer than it may, and nothing goes on without it.
    Deadline {
        /// Which.
        stage: StageKey,
    },
    /// A stage waits for what cannot hold in this cluster, and nothing goes on without it.
    Invalid {
        /// Which.
        stage: StageKey,
    },
    /// A chart is missing, or does not render.
    Chart {
        /// Which.
        chart: String,
    },
    /// A chart did not render, for a reason that may pass.
    NextRendering {
        /// Which.
        chart: String,
    },
    /// A chart takes long to render, or has many before it.
    SlowRendering {
        /// Which.
        chart: String,
    },
    /// The next stage waits for the moment of a hook.
    Moment {
        /// Which.
        hook: Hook,
    },
    /// What must hold before or after a stage does not, as far as anybody knows. A driver follows the objects that it is about; where it has not evaluated it
    /// yet, it does so before it writes the status.
    Condition {
        /// Which.
        stage: StageKey,
    },
    /// Watches have not shown yet how its objects are: what the status says of them still stands.
    Watches,
    /// Something about its objects.
    #[serde(untagged)]
    Objects(Wait),
}

/// Why nothing more happens, sorted and without repetition.
pub(super) fn waiting(
    outlook: &Outlook<'_>,
    belongings: &Belongings,
    set: &ObjectSet<'_>,
    decisions: &Decisions,
) -> Vec<AddonWaiting> {
    let mut waiting = BTreeSet::new();
    waiting.extend(for_the_target(outlook));
    waiting.extend(for_the_cluster(outlook));
    waiting.extend(for_stages(outlook));
    waiting.extend(for_charts(outlook, belongings));
    waiting.extend(outlook.held().map(|_| AddonWaiting::BrokenValues));
    waiting.extend(for_watches(set));
    waiting.extend(set.waits(decisions).into_iter().map(AddonWaiting::Objects));
    waiting.into_iter().collect()
}

fn for_watches(set: &ObjectSet<'_>) -> Option<AddonWaiting> {
    let is_open =
        |(key, object): (&ObjectKey, &ObjectObserved)| object.served && !object.watched && set.intent(key).is_some();
    set.objects.iter().any(is_open).then_some(AddonWaiting::Watches)
}

fn for_the_target(outlook: &Outlook<'_>) -> Option<AddonWaiting> {
    match &outlook.wanted {
        Wanted::NoClass => Some(AddonWaiting::NoClass),
        Wanted::ReleaseAwaited => Some(AddonWaiting::Releases),
        Wanted::ReleaseNotReady { .. } => Some(AddonWaiting::Release),
        Wanted::VersionMismatch { .. } => Some(AddonWaiting::Version),
        Wanted::ValuesAwaited => Some(AddonWaiting::Values),
        Wanted::ValuesFailed { .. } => Some(AddonWaiting::BrokenValues),
        Wanted::ValuesUnstable { .. } => Some(AddonWaiting::UnstableValues),
        Wanted::Target(_) => match &outlook.observed.layout {
            Layout::NotRead => Some(AddonWaiting::NextLayout),
            Layout::Wrong { .. } => Some(AddonWaiting::Layout),
            Layout::Known(_) => None,
        },
    }
}

fn for_the_cluster(outlook: &Outlook<'_>) -> Option<AddonWaiting> {
    match &outlook.observed.connection {
        _ if !outlook.cluster.initialized => Some(AddonWaiting::ControlPlane),
        Connection::Healthy => None,
        Connection::Refused { .. } => Some(AddonWaiting::Kubeconfig),
        Connection::Disconnected | Connection::Connecting { .. } | Connection::Suspect { .. } => {
            Some(AddonWaiting::Connection)
        }
    }
}

fn for_stages(outlook: &Outlook<'_>) -> Vec<AddonWaiting> {
    let Some(way) = &outlook.way else {
        return Vec::new();
    };
    let mut waiting = Vec::new();
    if let Some(current) = way.course.current() {
        if current.is_late() {
            let stage = current.key.clone();
            waiting.push(AddonWaiting::Deadline { stage });
        }
        if current.is_invalid() {
            let stage = current.key.clone();
            waiting.push(AddonWaiting::Invalid { stage });
        }
        if !current.open {
            waiting.push(AddonWaiting::Moment { hook: current.opens });
        }
    }
    let held = way.course.open().filter(|stage| {
        matches!(
            stage.phase,
            StagePhase::WaitingForPreCondition | StagePhase::WaitingForPostCondition
        )
    });
    waiting.extend(held.map(|stage| AddonWaiting::Condition {
        stage: stage.key.clone(),
    }));
    waiting
}

fn for_charts(outlook: &Outlook<'_>, belongings: &Belongings) -> Vec<AddonWaiting> {
    let charts = outlook.charts_and(belongings.unknown());
    charts
        .filter_map(|(chart, seen)| {
            let chart = chart.to_owned();
            match seen {
                seen if seen.is_broken() => Some(AddonWaiting::Chart { chart }),
                ChartSeen::Found(Rendering::Failed { .. }) => Some(AddonWaiting::NextRendering { chart }),
                ChartSeen::Found(Rendering::Awaited { .. }) => Some(AddonWaiting::SlowRendering { chart }),
                ChartSeen::Missing { .. } | ChartSeen::Found(_) => None,
            }
        })
        .collect()
}
