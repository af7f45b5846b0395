//! What answers to hooks are made from: of each ClusterAddon what they depend on, and which releases there are. Kept in memory by watches of the hook server's own,
//! which a replica has that does not lead.

use std::sync::Arc;

use crds::GROUP;
use crds::cluster_addon::{ClusterAddon, ClusterAddonSpec, ClusterAddonStatus, name_for};
use crds::names::ReleaseTag;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::api::{DynamicObject, ObjectMeta};
use operator_kit::object::GroupKind;
use operator_kit::projection::{Notice, ProjectedWatch, Watched};
use operator_kit::telemetry::{Gate, Readiness};
use planning::addon::{ClusterSeen, Listed, ReleaseListed};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::clusters::{ClusterSight, Clusters};

/// The eyes of the hook server.
pub(super) struct Sight {
    /// The one namespace that the operator looks after; all when empty.
    namespace: String,
    addons: ProjectedWatch<ClusterAddon>,
    releases: ProjectedWatch<()>,
    /// Those of whoever makes ClusterAddons in this process.
    clusters: Arc<Clusters>,
}

impl Sight {
    /// Begins to watch. The process is ready when all of both kinds were seen once.
    pub(super) fn start(
        client: &Client,
        sight: &ClusterSight,
        namespace: &str,
        readiness: &Readiness,
        stop: &CancellationToken,
    ) -> Self {
        let ClusterSight {
            discovery,
            crds,
            clusters,
            ..
        } = sight;
        let watched = |kind: &str| Watched {
            namespace: namespace.to_owned(),
            ..GroupKind::new(GROUP, kind).into()
        };
        let (addons, addon_notices) = ProjectedWatch::start(
            client.clone(),
            discovery.clone(),
            crds,
            watched("ClusterAddon"),
            |addon| Some(outline(addon)),
            stop.clone(),
        );
        let (releases, release_notices) = ProjectedWatch::start(
            client.clone(),
            discovery.clone(),
            crds,
            watched("ClusterStackRelease"),
            |_| Some(()),
            stop.clone(),
        );
        let gate = readiness.gate("ClusterAddons and ClusterStackReleases for the hooks");
        let (seen_addons, seen_releases) = (addons.clone(), releases.clone());
        tokio::spawn(async move {
            let synced = || seen_addons.synced() && seen_releases.synced();
            listen(addon_notices, release_notices, synced, &gate).await;
        });
        Self {
            namespace: namespace.to_owned(),
            addons,
            releases,
            clusters: Arc::clone(clusters),
        }
    }

    /// The add-on of a Cluster, as far as answers depend on it.
    pub(super) fn addon(&self, cluster: &ClusterSeen) -> Option<Arc<ClusterAddon>> {
        self.addons.get(&cluster.namespace, &name_for(&cluster.name))
    }

    /// What was in the way of it, where this process makes it.
    pub(super) fn unmade(&self, cluster: &ClusterSeen) -> Option<String> {
        self.clusters.unmade(&cluster.namespace, &cluster.name)
    }

    /// What is known of it and of the release of its class. Asked before [`Self::addon`]: a list that ends in between must not count.
    pub(super) fn listed<'a>(&self, cluster: &ClusterSeen, unmade: Option<&'a str>) -> Listed<'a> {
        Listed {
            addons: self.addons.synced(),
            release: self.release(cluster),
            unmade,
        }
    }

    fn release(&self, cluster: &ClusterSeen) -> ReleaseListed {
        if !self.namespace.is_empty() && self.namespace != cluster.namespace {
            return ReleaseListed::OutOfScope;
        }
        let Some(topology) = &cluster.topology else {
            return ReleaseListed::Absent;
        };
        let Ok(class) = topology.class_name() else {
            return ReleaseListed::Absent;
        };
        let tag = ReleaseTag::from(class).to_string();
        // Asked before: a list that ends in between must not count.
        let is_listed = self.releases.synced();
        if self.releases.get(&topology.class_namespace, &tag).is_some() {
            ReleaseListed::Present
        } else if is_listed {
            ReleaseListed::Absent
        } else {
            ReleaseListed::NotYet
        }
    }
}

/// Lets news pass, which a watch waits to be rid of, until nothing is watched any more.
async fn listen(
    mut addons: Receiver<Notice<ClusterAddon>>,
    mut releases: Receiver<Notice<()>>,
    synced: impl Fn() -> bool,
    gate: &Gate,
) {
    loop {
        let goes_on = tokio::select! {
            notice = addons.recv() => notice.is_some(),
            notice = releases.recv() => notice.is_some(),
        };
        if !goes_on {
            return;
        }
        if synced() {
            gate.open();
        }
    }
}

/// What answers depend on: of the metadata who owns it and what annotations say, of the status everything but its objects.
fn outline(addon: &DynamicObject) -> ClusterAddon {
    let metadata = &addon.metadata;
    let status = &addon.data["status"];
    let outlined = json!({
        "clusterGeneration": status["clusterGeneration"],
        "target": status["target"],
        "hook": status["hook"],
        "stages": status["stages"].as_array().map(Vec::as_slice).unwrap_or_default(),
        "conditions": status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default(),
    });
    ClusterAddon {
        metadata: ObjectMeta {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            uid: metadata.uid.clone(),
            annotations: metadata.annotations.clone(),
            owner_references: metadata.owner_references.clone(),
            ..ObjectMeta::default()
        },
        spec: ClusterAddonSpec {
            cluster_ref: ObjectReference::default(),
            cluster_stack: None,
            version: None,
            hook: None,
        },
        // What cannot be read is as good as lost, and holds up whoever asks.
        status: serde_json::from_value::<ClusterAddonStatus>(outlined).ok(),
    }
}
