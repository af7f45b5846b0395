//! The raw writer for many API servers: makes the writes of a step again in another namespace of each, with nothing to decide.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use crds::ClusterAddon;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};

use super::{place::Place, step::Step};
use crate::bench::{
    recording::{self, Chains, Target},
    replay::{Bodies, Identity, Move},
};

/// Where the objects of the add-ons are: the chart names no namespace.
const NAMESPACE_OF_ADDONS: &str = "kube-system";
/// What the operator writes beside the add-ons: of these kinds there is nothing in the other namespace.
const OF_STACKS: [&str; 2] = ["clusterstacks", "clusterstackreleases"];

/// A writer with a namespace of its own on every API server.
pub(super) struct RawWriter<'a> {
    place: &'a Place,
    pub(super) namespace: String,
    connections: usize,
}

/// What it took.
pub(super) struct Raw {
    /// With the writes of the benchmark.
    pub(super) took: Duration,
    /// Of it, the writes of the benchmark.
    pub(super) clusters_took: Duration,
    /// Writes of the operator.
    pub(super) writes: usize,
}

impl<'a> RawWriter<'a> {
    /// Makes the namespaces.
    pub(super) async fn begin(place: &'a Place, connections: usize) -> Result<Self> {
        let namespace = place.ground.namespace("raw").await?;
        let mut object = Namespace::default();
        object.metadata.name = Some(namespace.clone());
        for server in &place.servers {
            let api = Api::all(server.client.clone());
            let created = api.create(&PostParams::default(), &object).await;
            created.context("failed to make a namespace")?;
        }
        Ok(Self {
            place,
            namespace,
            connections,
        })
    }

    /// Does what the benchmark did at the beginning of the step, and then writes what the operator wrote. The bodies are made between the two, while no clock runs.
    pub(super) async fn write(&self, step: &Step, begin: impl AsyncFnOnce() -> Result<()>) -> Result<Raw> {
        let there = self.addons().await?;
        let start = Instant::now();
        begin().await?;
        let clusters_took = start.elapsed();
        let owners = self.clusters().await?;
        let (mut writes, mut all) = (0, Vec::new());
        let nobody = (BTreeMap::new(), BTreeMap::new());
        for (number, events) in step.requests.iter().enumerate() {
            let mut chains: Chains = recording::chains(events.clone().writes().iter())?;
            chains.retain(|(target, _)| !OF_STACKS.contains(&target.resource.as_str()));
            writes += chains.iter().map(|(_, writes)| writes.len()).sum::<usize>();
            let is_management = number == 0;
            let to = &self.namespace;
            let place = Move {
                from: if is_management {
                    self.place.namespace.as_str()
                } else {
                    NAMESPACE_OF_ADDONS
                },
                to,
                owners: if is_management { &owners } else { &nobody.0 },
                there: if is_management { &there } else { &nobody.1 },
            };
            all.push(Bodies::of(&chains, &place)?);
        }
        let start = Instant::now();
        let sent = self.place.clients().zip(all);
        try_join_all(sent.map(|(client, bodies)| bodies.send(client, self.connections))).await?;
        Ok(Raw {
            took: clusters_took + start.elapsed(),
            clusters_took,
            writes,
        })
    }

    /// The ClusterAddons that the writer has made.
    async fn addons(&self) -> Result<BTreeMap<Target, Identity>> {
        let api: Api<ClusterAddon> = Api::namespaced(self.place.ground.client.clone(), &self.namespace);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.context("failed to list the ClusterAddons of the raw writer")?;
        let addons = listed.iter();
        Ok(addons
            .map(|addon| (Target::addon(&addon.name_any()), identity(addon)))
            .collect())
    }

    /// The Clusters that own them.
    async fn clusters(&self) -> Result<BTreeMap<String, Identity>> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", "Cluster"));
        let client = self.place.ground.client.clone();
        let api = Api::<DynamicObject>::namespaced_with(client, &self.namespace, &resource);
        let listed = api.list_metadata(&ListParams::default()).await;
        let listed = listed.context("failed to list the Clusters of the raw writer")?;
        Ok(listed
            .iter()
            .map(|cluster| (cluster.name_any(), identity(cluster)))
            .collect())
    }
}

fn identity(object: &impl Resource) -> Identity {
    Identity {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
    }
}
