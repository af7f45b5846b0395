//! What is left in a cluster: objects found by label, of every kind that the API server lists and wherever they are.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::PartialObjectMeta,
    discovery::{Discovery, verbs},
};

use crate::eventually;

/// An API server answers a list at once.
const DEADLINE: Duration = Duration::from_secs(30);
/// Lists under way at once.
const SIDE_BY_SIDE: usize = 16;
/// What an add-on announces and its Pods would serve, if they ran.
const UNSERVED: [&str; 1] = ["metrics.k8s.io"];

/// Kind and name of all objects with these labels, sorted.
pub async fn with_labels(client: &Client, selector: &str) -> Result<Vec<String>> {
    let lists = stream::iter(kinds(client).await?)
        .map(|kind| list(client, kind, selector))
        .buffer_unordered(SIDE_BY_SIDE);
    let mut found = lists.try_concat().await?;
    found.sort();
    Ok(found)
}

/// Every kind of which the API server lists objects.
pub async fn kinds(client: &Client) -> Result<Vec<ApiResource>> {
    let discovery = Discovery::new(client.clone())
        .exclude(&UNSERVED)
        .run()
        .await
        .context("failed to ask what is served")?;
    let kinds = discovery
        .groups()
        .flat_map(kube::discovery::ApiGroup::recommended_resources)
        .filter(|(_, capabilities)| capabilities.supports_operation(verbs::LIST));
    Ok(kinds.map(|(resource, _)| resource).collect())
}

async fn list(client: &Client, kind: ApiResource, selector: &str) -> Result<Vec<String>> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let parameters = ListParams::default().labels(selector);
    let what = format!("a list of {}", kind.plural);
    // Kinds come and go under other tests: a new one is refused for a moment, one that went has no objects.
    let list = eventually(DEADLINE, what, async || match api.list_metadata(&parameters).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    });
    let named = |object: &PartialObjectMeta<DynamicObject>| format!("{} {}", kind.kind, object.name_any());
    Ok(list.await?.iter().map(named).collect())
}
