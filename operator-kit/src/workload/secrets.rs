//! Hears when the kubeconfig of a cluster is written: by the metadata of Secrets of Cluster API's type alone, so that what is in them stays where it is.
//!
//! Without the right to do so nothing is lost but time: a Secret is read when a cluster is asked again, and when one does not accept its credentials.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::client::Client;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::Event;

use super::kubeconfig::{SECRET_TYPE, cluster_name};
use super::owner::WorkloadClusters;
use crate::watch_log::WatchLog;
use crate::watching::{Pace, Selection, watching_since};

/// Metadata is about two kilobytes each with managedFields.
const PAGE_SIZE: u32 = 250;

/// Tells the owner of what is written in one namespace. Never ends.
pub(super) async fn follow(management: Client, namespace: String, clusters: WorkloadClusters) {
    let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(management, &namespace);
    let fields = format!("type={SECRET_TYPE}");
    let selection = Selection {
        labels: "",
        fields: &fields,
    };
    let mut events = pin!(watching_since(
        secrets,
        selection,
        PAGE_SIZE,
        Arc::default(),
        Pace::Watch
    ));
    let mut log = WatchLog::new("Secrets with kubeconfigs");
    while let Some(event) = events.next().await {
        log.heard(&event);
        if let Ok(Event::InitApply(secret) | Event::Apply(secret)) = event {
            tell(&clusters, &secret.metadata);
        }
    }
}

fn tell(clusters: &WorkloadClusters, metadata: &ObjectMeta) {
    let cluster = metadata.name.as_deref().and_then(cluster_name);
    if let (Some(cluster), Some(namespace), Some(version)) = (cluster, &metadata.namespace, &metadata.resource_version)
    {
        clusters.kubeconfig_written((namespace, cluster), version);
    }
}
