//! What is left in a cluster: objects found by label, of every kind that the API server lists and wherever they are.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    discovery::{Discovery, verbs},
};

/// Lists under way at once.
const SIDE_BY_SIDE: usize = 16;

/// Kind and name of all objects with these labels, sorted.
pub async fn with_labels(client: &Client, selector: &str) -> Result<Vec<String>> {
    let discovery = Discovery::new(client.clone())
        .run()
        .await
        .context("failed to ask what is served")?;
    let kinds: Vec<ApiResource> = discovery
        .groups()
        .flat_map(|group| group.recommended_resources())
        .filter(|(_, capabilities)| capabilities.supports_operation(verbs::LIST))
        .map(|(resource, _)| resource)
        .collect();
    let lists = stream::iter(kinds)
        .map(|kind| list(client, kind, selector))
        .buffer_unordered(SIDE_BY_SIDE);
    let mut found = lists.try_concat().await?;
    found.sort();
    Ok(found)
}

async fn list(client: &Client, kind: ApiResource, selector: &str) -> Result<Vec<String>> {
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    match api.list_metadata(&ListParams::default().labels(selector)).await {
        Ok(list) => Ok(list
            .iter()
            .map(|object| format!("{} {}", kind.kind, object.name_any()))
            .collect()),
        // Its CRD went in between, and its objects with it.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("failed to list {}", kind.plural)),
    }
}
