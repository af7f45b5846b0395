//! What is seen of the add-ons of a Cluster: its control plane, the release of its class, what was said last.

use crds::ClusterStackRelease;
use crds::cluster_addon::ClusterAddon;
use crds::conditions::{ConditionType, find};
use crds::names::ReleaseTag;
use planning::addon::ReleaseSeen;
use planning::topology::Topology;

use super::plan::AddonObserved;
use super::presence::Sight;
use super::{Addons, Context};
use crate::sources::Opened;

/// Looks at everything that decides.
pub(super) async fn observe(context: &Context, addons: &Addons, addon: &ClusterAddon, sight: Sight) -> AddonObserved {
    let Sight { cluster, paused } = sight;
    let mut seen = cluster.seen;
    if let Some(part) = &cluster.control_plane {
        let control_plane = addons.parts.get(part, &seen.namespace).map(|part| part.facts.clone());
        seen.initialized |= control_plane.as_ref().is_some_and(|facts| facts.initialized);
        seen.control_plane = control_plane;
    }
    if let Some(part) = &cluster.infrastructure {
        // Values will be made of it: from now on it is followed.
        addons.parts.get(part, &seen.namespace);
    }
    let release = match &seen.topology {
        Some(topology) if paused.is_none() => release_of(context, topology).await,
        _ => ReleaseSeen::Absent,
    };
    AddonObserved {
        generation: addon.metadata.generation.unwrap_or_default(),
        status: addon.status.clone().unwrap_or_default(),
        paused,
        cluster: seen,
        release,
    }
}

/// The release of a class.
async fn release_of(context: &Context, topology: &Topology) -> ReleaseSeen {
    let Ok(class) = topology.class_name() else {
        return ReleaseSeen::Absent;
    };
    let tag = ReleaseTag::from(class).to_string();
    let Some(release) = context.releases.get(&topology.class_namespace, &tag) else {
        return ReleaseSeen::Absent;
    };
    let not_ready = |why: &str| ReleaseSeen::NotReady {
        message: format!("the ClusterStackRelease {tag} cannot be used: {why}"),
    };
    let status = release.status.as_ref();
    if !status.is_some_and(|status| status.ready) {
        return not_ready(&why_not_ready(&release));
    }
    match context.sources.of(&release).await {
        Opened::Ready { files, .. } => {
            let metadata = &files.release().metadata;
            ReleaseSeen::Ready {
                addon_version: metadata.cluster_addon.to_string(),
                kubernetes_version: metadata.kubernetes.clone(),
            }
        }
        Opened::Missing { message, .. } | Opened::Broken { message } | Opened::Refused { message, .. } => {
            not_ready(&message)
        }
    }
}

fn why_not_ready(release: &ClusterStackRelease) -> String {
    let conditions = release.status.as_ref().map(|status| status.conditions.as_slice());
    let ready = find(conditions.unwrap_or_default(), ConditionType::Ready);
    let said = ready.and_then(|ready| ready.message.clone().or_else(|| ready.reason.clone()));
    said.unwrap_or_else(|| "nobody has looked at it yet".to_owned())
}
