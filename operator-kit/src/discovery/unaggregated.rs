//! Discovery of API servers that know nothing of the aggregated form: those before Kubernetes 1.26, and those that only play one. One request for each group
//! and version.

use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kube::client::{
    APIGroupDiscovery, APIResourceDiscovery, APISubresourceDiscovery, APIVersionDiscovery, Client,
    DiscoveryGroupVersionKind as ResponseKind,
};
use kube::core::ObjectMeta;

use super::STALE;

/// What is served, as the aggregated form says it.
pub(super) async fn read(client: &Client) -> kube::Result<Vec<APIGroupDiscovery>> {
    let core = client.list_core_api_versions().await?.versions;
    let core = core.into_iter().map(|version| async move {
        let answer = client.list_core_api_resources(&version).await;
        version_of("", version, answer)
    });
    let core = APIGroupDiscovery {
        metadata: None,
        versions: try_join_all(core).await?,
    };
    let groups = client.list_api_groups().await?.groups;
    let groups = try_join_all(groups.into_iter().map(|group| group_of(client, group))).await?;
    Ok([vec![core], groups].concat())
}

async fn group_of(client: &Client, group: APIGroup) -> kube::Result<APIGroupDiscovery> {
    let name = group.name.as_str();
    // The API server lists the version that it prefers first.
    let versions = group.versions.into_iter().map(|version| async move {
        let answer = client.list_api_group_resources(&version.group_version).await;
        version_of(name, version.version, answer)
    });
    Ok(APIGroupDiscovery {
        versions: try_join_all(versions).await?,
        metadata: Some(ObjectMeta {
            name: Some(group.name.clone()),
            ..ObjectMeta::default()
        }),
    })
}

/// A version of a group. One of which the API server gives no list is listed as stale: another server may stand behind it, which is away.
fn version_of(
    group: &str,
    version: String,
    answer: kube::Result<APIResourceList>,
) -> kube::Result<APIVersionDiscovery> {
    let (resources, freshness) = match answer {
        Ok(list) => (resources_of(group, &version, list.resources), None),
        Err(kube::Error::Api(_)) => (Vec::new(), Some(STALE.to_owned())),
        Err(error) => return Err(error),
    };
    Ok(APIVersionDiscovery {
        version: Some(version),
        resources,
        freshness,
    })
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
