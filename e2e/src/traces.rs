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

/// A kind, and what is known of an object of it without its body.
pub type Trace = (String, PartialObjectMeta<DynamicObject>);

/// Kind and name of all objects with these labels, sorted.
pub async fn with_labels(client: &Client, selector: &str) -> Result<Vec<String>> {
    let found = all(client, selector).await?.into_iter();
    let mut found: Vec<String> = found
        .map(|(kind, object)| format!("{kind} {}", object.name_any()))
        .collect();
    found.sort();
    Ok(found)
}

/// All objects with these labels; without any that is everything there is.
pub async fn all(client: &Client, selector: &str) -> Result<Vec<Trace>> {
    let lists = stream::iter(kinds(client).await?)
        .map(|kind| list(client, kind, selector))
        .buffer_unordered(SIDE_BY_SIDE);
    lists.try_concat().await
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

async fn list(client: &Client, kind: ApiResource, selector: &str) -> Result<Vec<Trace>> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let parameters = ListParams::default().labels(selector);
    let what = format!("a list of {}", kind.plural);
    // Kinds come and go under other tests: a new one is refused for a moment, one that went has no objects.
    let list = eventually(DEADLINE, what, async || match api.list_metadata(&parameters).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error),
    });
    Ok(list
        .await?
        .into_iter()
        .map(|object| (kind.kind.clone(), object))
        .collect())
}
