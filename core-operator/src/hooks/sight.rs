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
use planning::addon::{ClusterSeen, Listed, ReleaseListed, Waits};
use serde_json::json;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use crate::clusters::{ClusterSight, Clusters, Unmade};

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
}

/// What is known at the moment of each question. Between two of them a list may end.
trait Eyes {
    /// The add-on of a Cluster, as far as answers depend on it.
    fn addon(&self, cluster: &ClusterSeen) -> Option<Arc<ClusterAddon>>;
    /// Whether all add-ons are known.
    fn has_all_addons(&self) -> bool;
    /// Whether there is this release, as far as is known.
    fn has_release(&self, namespace: &str, tag: &str) -> bool;
    /// Whether all releases are known.
    fn has_all_releases(&self) -> bool;
}

impl Eyes for Sight {
    fn addon(&self, cluster: &ClusterSeen) -> Option<Arc<ClusterAddon>> {
        self.addons.get(&cluster.namespace, &name_for(&cluster.name))
    }

    fn has_all_addons(&self) -> bool {
        self.addons.synced()
    }

    fn has_release(&self, namespace: &str, tag: &str) -> bool {
        self.releases.get(namespace, tag).is_some()
    }

    fn has_all_releases(&self) -> bool {
        self.releases.synced()
    }
}

/// What one answer is made from.
pub(super) struct Looked {
    pub(super) addon: Option<Arc<ClusterAddon>>,
    /// Whether all add-ons were known before this one was looked for.
    addons: bool,
    release: ReleaseListed,
    unmade: Option<Unmade>,
    never_initialized: bool,
    waits: Waits,
}

impl Looked {
    /// How much of it is known.
    pub(super) fn listed(&self) -> Listed<'_> {
        Listed {
            addons: self.addons,
            release: self.release,
            unmade: self.unmade.as_ref().map(|unmade| planning::addon::Unmade {
                why: &unmade.why,
                namespace_ends: unmade.namespace_ends,
            }),
            never_initialized: self.never_initialized,
            waits: self.waits,
        }
    }

    /// What it is, where the release has been looked for already. Whether all are known is asked first: a list that ends in between must not count.
    fn of(eyes: &impl Eyes, cluster: &ClusterSeen, release: ReleaseListed) -> Self {
        let addons = eyes.has_all_addons();
        Self {
            addon: eyes.addon(cluster),
            addons,
            release,
            unmade: None,
            never_initialized: false,
            waits: Waits::Unseen,
        }
    }
}

impl Sight {
    /// What is known of a Cluster, and of the release of its class.
    pub(super) fn look(&self, cluster: &ClusterSeen) -> Looked {
        let ClusterSeen { namespace, name, .. } = cluster;
        let shown = self.clusters.facts(namespace, name);
        let shown = shown.as_ref().map(|facts| &facts.seen);
        let is_elsewhere = !self.namespace.is_empty() && self.namespace != *namespace;
        let release = if is_elsewhere {
            ReleaseListed::OutOfScope
        } else {
            release_of(self, cluster)
        };
        Looked {
            // What was in the way of the add-on, where this process makes it.
            unmade: self.clusters.unmade(namespace, name),
            never_initialized: ClusterSeen::was_never_initialized(shown, cluster),
            waits: Waits::of(shown, cluster),
            ..Looked::of(self, cluster, release)
        }
    }
}

fn release_of(eyes: &impl Eyes, cluster: &ClusterSeen) -> ReleaseListed {
    let Some(topology) = &cluster.topology else {
        return ReleaseListed::Absent;
    };
    let Ok(class) = topology.class_name() else {
        return ReleaseListed::Absent;
    };
    let tag = ReleaseTag::from(class).to_string();
    // Asked before: a list that ends in between must not count.
    let is_listed = eyes.has_all_releases();
    if eyes.has_release(&topology.class_namespace, &tag) {
        ReleaseListed::Present
    } else if is_listed {
        ReleaseListed::Absent
    } else {
        ReleaseListed::NotYet
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// All there is becomes known right after the first question about it.
    #[derive(Default)]
    struct Waking {
        addons: Cell<bool>,
        releases: Cell<bool>,
    }

    impl Eyes for Waking {
        fn addon(&self, _: &ClusterSeen) -> Option<Arc<ClusterAddon>> {
            self.addons.replace(true).then(|| {
                Arc::new(outline(&DynamicObject {
                    types: None,
                    metadata: ObjectMeta::default(),
                    data: json!({}),
                }))
            })
        }

        fn has_all_addons(&self) -> bool {
            self.addons.replace(true)
        }

        fn has_release(&self, _: &str, _: &str) -> bool {
            self.releases.replace(true)
        }

        fn has_all_releases(&self) -> bool {
            self.releases.replace(true)
        }
    }

    #[test]
    fn a_list_that_ends_between_two_questions_makes_nothing_absent() {
        let cluster = json!({
            "metadata": { "name": "web", "namespace": "team" },
            "spec": { "topology": { "class": "docker-harbor-1-34-v1", "version": "v1.34.0" } },
        });
        let cluster = ClusterSeen::of(&cluster, None);
        let eyes = Waking::default();
        let looked = Looked::of(&eyes, &cluster, release_of(&eyes, &cluster));
        assert_eq!(looked.listed().release, ReleaseListed::Present);
        assert!(looked.addon.is_some() || !looked.listed().addons, "it is there");
    }
}
