//! Clusters with add-ons in journeys that play Cluster API and its providers themselves: a stack with two versions of add-ons, Clusters as an operator
//! reads them, and the API server that all of them share. It writes what Cluster API would write, and knows nothing of how operators decide.

pub mod asker;
pub mod cluster;
pub mod ground;
pub mod stack;

use std::collections::BTreeSet;

use anyhow::Result;

use self::{cluster::Cluster, ground::Ground, stack::Version};
use crate::{FaultProxy, Journey};

/// The name of the Cluster of a course.
pub const CLUSTER: &str = "web";

/// Where the Cluster of a course is, behind a proxy.
pub struct Beyond {
    /// Its API server.
    pub ground: Ground,
    /// Between the operator and that.
    pub proxy: FaultProxy,
    /// Leads there through the proxy.
    pub kubeconfig: String,
}

impl Beyond {
    /// Before there is an operator; both versions of the stack are where it finds them.
    pub async fn prepare(journey: &mut Journey) -> Result<Self> {
        let ground = Ground::prepare(journey).await?;
        let proxy = FaultProxy::start(ground.workload).await?;
        let kubeconfig = proxy.access().admin_kubeconfig().await?;
        Ok(Self {
            ground,
            proxy,
            kubeconfig,
        })
    }
}

/// What a Cluster has with a version, as worlds name it.
pub fn parts(version: Version) -> BTreeSet<String> {
    let own = [ground::ADDON, ground::MEMO].map(str::to_owned);
    version.objects().into_iter().chain(own).collect()
}

/// The Cluster of a course.
pub fn cluster(journey: &Journey) -> Cluster<'_> {
    Cluster { journey, name: CLUSTER }
}
