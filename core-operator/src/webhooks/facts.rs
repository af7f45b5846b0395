//! What a verdict needs to know of the world: the release of a class, and the Clusters that use one. Judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crds::GROUP;
use crds::names::ReleaseTag;
use futures::future::join_all;
use kube::Client;
use kube::api::DynamicObject;
use operator_kit::crd_watch::CrdWatch;
use operator_kit::discovery::Discovery;
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use operator_kit::read::read;
use planning::admission::{ReleasePlace, ReleaseSight, Users};
use tokio::time::timeout;

use crate::clusters::{CLUSTER_API_GROUP, ClusterSight, Clusters, class_in_use};

/// For one read, well within the time that the API server gives us.
const READ_DEADLINE: Duration = Duration::from_secs(2);

/// So many Clusters are looked at once more before they keep something from being deleted. Of more it is enough that they were seen.
const CONFIRMED_CLUSTERS: usize = 16;

/// By release tag the Clusters (`namespace/name`) that use its class.
pub(super) type Used = BTreeMap<ReleaseTag, BTreeSet<String>>;

/// The eyes of the webhooks.
pub(crate) struct Facts {
    client: Client,
    discovery: Discovery,
    crds: CrdWatch,
    clusters: Arc<Clusters>,
}

impl Facts {
    /// Reads through `client`, besides what is in sight.
    pub(crate) fn new(client: Client, sight: &ClusterSight) -> Self {
        Self {
            client,
            discovery: sight.discovery.clone(),
            crds: sight.crds.clone(),
            clusters: Arc::clone(&sight.clusters),
        }
    }

    /// The release as it is now: its version may have been written a moment ago, and a standby has no watch of releases.
    pub(super) async fn release(&self, place: &ReleasePlace) -> ReleaseSight {
        match self
            .read(GROUP, "ClusterStackRelease", &place.namespace, &place.tag.to_string())
            .await
        {
            Ok(Some(release)) => {
                let version = release.data.pointer("/status/kubernetesVersion");
                let kubernetes_version = version.and_then(|version| version.as_str()).map(str::to_owned);
                ReleaseSight::Found {
                    kubernetes_version,
                    deleting: release.metadata.deletion_timestamp.is_some(),
                }
            }
            Ok(None) => ReleaseSight::Missing,
            Err(error) => ReleaseSight::Unread { error },
        }
    }

    /// The Clusters that `of` selects from those that use classes of this namespace. They come from a watch; those that would be in the
    /// way are read once more, because a Cluster that was deleted a moment ago is in nobody's way.
    pub(super) async fn users(&self, namespace: &str, of: impl Fn(&Used) -> BTreeSet<String>) -> Users {
        let Some(used) = self.clusters.used_by(namespace) else {
            let error = "the watch of Clusters has not listed them yet; try again in a moment".to_owned();
            return Users::Unknown { error };
        };
        let seen = of(&used);
        if seen.is_empty() || seen.len() > CONFIRMED_CLUSTERS {
            return Users::Known(seen);
        }
        Users::Known(of(&self.confirmed(namespace, used, &seen).await))
    }

    async fn confirmed(&self, namespace: &str, used: Used, users: &BTreeSet<String>) -> Used {
        let named = used
            .into_iter()
            .flat_map(|(tag, clusters)| clusters.into_iter().map(move |cluster| (tag.clone(), cluster)));
        let looks = named
            .filter(|(_, cluster)| users.contains(cluster))
            .map(|(tag, cluster)| async move {
                let (own, name) = cluster.split_once('/').unwrap_or_default();
                let tag = match self.read(CLUSTER_API_GROUP, "Cluster", own, name).await {
                    Ok(Some(now)) => class_in_use(&now)
                        .filter(|class| class.namespace == namespace)
                        .map(|class| class.tag),
                    Ok(None) => None,
                    // What was seen last counts.
                    Err(_) => Some(tag),
                };
                tag.map(|tag| (tag, cluster))
            });
        let mut confirmed = Used::new();
        for (tag, cluster) in join_all(looks).await.into_iter().flatten() {
            confirmed.entry(tag).or_default().insert(cluster);
        }
        confirmed
    }

    async fn read(
        &self,
        group: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>, String> {
        let key = ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let reading = read(&self.client, &self.discovery, &self.crds, &key);
        match timeout(READ_DEADLINE, reading).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("no answer within {READ_DEADLINE:?} to reading {key}")),
        }
    }
}
