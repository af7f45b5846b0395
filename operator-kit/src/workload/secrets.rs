//! Hears when the kubeconfig of a cluster is written: by the metadata of Secrets of Cluster API's type alone, so that what is in them stays where it is.
//!
//! Without the right to do so nothing is lost but time: a Secret is read when a cluster is asked again, and when one does not accept its credentials.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::client::Client;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use tokio::sync::watch;

use super::kubeconfig::{SECRET_TYPE, cluster_name};
use super::owner::WorkloadClusters;
use crate::failure::code_of;
use crate::watch_log::WatchLog;
use crate::watching::{Pace, Selection, watching_since};

/// Metadata is about two kilobytes each with managedFields.
const PAGE_SIZE: u32 = 250;

/// Tells the owner of what is written in one namespace, and the other whether it does so now. Never ends.
pub(super) async fn follow(
    management: Client,
    namespace: String,
    clusters: WorkloadClusters,
    hears: watch::Sender<bool>,
) {
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
        if let Ok(Event::InitApply(secret) | Event::Apply(secret)) = &event {
            tell(&clusters, &secret.metadata);
        }
        hears.send_if_modified(|hears| {
            let before = *hears;
            *hears = is_heard(&event, before);
            *hears != before
        });
    }
}

/// Whether what is written from now on will be told. An interrupted watch goes on where it was; without the right to watch nothing goes on.
fn is_heard<K>(event: &watcher::Result<Event<K>>, before: bool) -> bool {
    match event {
        Ok(Event::Init | Event::InitApply(_)) => before,
        Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => true,
        Err(error) => before && code_of(error) != Some(StatusCode::FORBIDDEN),
    }
}

fn tell(clusters: &WorkloadClusters, metadata: &ObjectMeta) {
    let cluster = metadata.name.as_deref().and_then(cluster_name);
    if let (Some(cluster), Some(namespace), Some(version)) = (cluster, &metadata.namespace, &metadata.resource_version)
    {
        clusters.kubeconfig_written((namespace, cluster), version);
    }
}
