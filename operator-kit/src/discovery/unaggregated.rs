//! Discovery of API servers that know nothing of the aggregated form: those before Kubernetes 1.26, and those that only play one. One request for each group
//! and version.

use std::pin::pin;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, APIResourceList};
use kube::client::{
    APIGroupDiscovery, APIResourceDiscovery, APISubresourceDiscovery, APIVersionDiscovery, Client,
    DiscoveryGroupVersionKind as ResponseKind,
};
use kube::core::ObjectMeta;

use super::{DiscoveryError, Room, STALE, unread};

/// Lists that are waited for at once: each may be as large as an answer may be.
const AT_ONCE: usize = 4;

/// What is served, as the aggregated form says it, each version of a group by itself.
pub(super) async fn read(client: &Client) -> Result<Vec<APIGroupDiscovery>, DiscoveryError> {
    let mut groups = Vec::new();
    let mut room = Room::default();
    let lists = versions(client).await?.into_iter();
    let lists = lists.map(|(group, version)| version_of(client, group, version));
    let mut lists = pin!(stream::iter(lists).buffered(AT_ONCE));
    while let Some(group) = lists.try_next().await? {
        let resources = group.versions.iter().map(|version| version.resources.len());
        room.take(resources.sum(), &[])?;
        groups.push(group);
    }
    Ok(groups)
}

/// The groups with their versions, of which the API server lists the one that it prefers first.
async fn versions(client: &Client) -> Result<Vec<(String, String)>, DiscoveryError> {
    let mut room = Room::default();
    let core = client.list_core_api_versions().await.map_err(unread)?.versions;
    room.take(core.len(), &[])?;
    let mut versions: Vec<_> = core.into_iter().map(|version| (String::new(), version)).collect();
    for group in client.list_api_groups().await.map_err(unread)?.groups {
        // Before its name is there as often as it has versions.
        room.take(group.versions.len(), &[&group.name])?;
        let of_group = group.versions.into_iter();
        versions.extend(of_group.map(|version| (group.name.clone(), version.version)));
    }
    Ok(versions)
}

/// A version of a group. One of which the API server gives no list is listed as stale: another server may stand behind it, which is away.
async fn version_of(client: &Client, group: String, version: String) -> Result<APIGroupDiscovery, DiscoveryError> {
    let answer = list_of(client, &group, &version).await;
    let (resources, freshness) = match answer {
        Ok(list) => {
            // Before group and version are there as often as there are resources.
            Room::default().take(list.resources.len(), &[&group, &version])?;
            (resources_of(&group, &version, list.resources), None)
        }
        Err(kube::Error::Api(_)) => (Vec::new(), Some(STALE.to_owned())),
        Err(error) => return Err(unread(error)),
    };
    let version = APIVersionDiscovery {
        version: Some(version),
        resources,
        freshness,
    };
    Ok(APIGroupDiscovery {
        versions: vec![version],
        metadata: Some(ObjectMeta {
            name: Some(group),
            ..ObjectMeta::default()
        }),
    })
}

async fn list_of(client: &Client, group: &str, version: &str) -> kube::Result<APIResourceList> {
    if group.is_empty() {
        client.list_core_api_resources(version).await
    } else {
        client.list_api_group_resources(&format!("{group}/{version}")).await
    }
}

/// Subresources are listed beside what they are of, as `deployments/status`.
fn resources_of(group: &str, version: &str, listed: Vec<APIResource>) -> Vec<APIResourceDiscovery> {
    let (of_others, resources): (Vec<_>, Vec<_>) = listed.into_iter().partition(|entry| entry.name.contains('/'));
    let subresources = |resource: &str| {
        let names = of_others.iter().filter_map(|entry| entry.name.split_once('/'));
        let names = names.filter(|(of, _)| *of == resource);
        names
            .map(|(_, name)| APISubresourceDiscovery {
                subresource: Some(name.to_owned()),
                ..APISubresourceDiscovery::default()
            })
            .collect()
    };
    let resource = |entry: APIResource| APIResourceDiscovery {
        subresources: subresources(&entry.name),
        resource: Some(entry.name),
        response_kind: Some(ResponseKind {
            group: Some(group.to_owned()),
            version: Some(version.to_owned()),
            kind: Some(entry.kind),
        }),
        scope: Some(if entry.namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
        verbs: entry.verbs,
        ..APIResourceDiscovery::default()
    };
    resources.into_iter().map(resource).collect()
}
