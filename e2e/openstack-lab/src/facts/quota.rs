//! Facts about what a project may hold.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::stream;
use serde_json::json;

use super::{Fact, Tenant, Visitor, fact};
use crate::client::{Reply, pieces};

pub(super) const FACTS: &[Fact] = &[
    fact!("limits and usage can be read", usage),
    fact!("a body without Content-Length slips past the size quota", chunked),
    fact!("over the size quota answers 413 and names it", size),
    fact!("over the count quota answers 413 and names it", count),
];

async fn usage(visitor: &Visitor<'_>) -> Result<()> {
    let usage = visitor.tenant("tiny").await?.read("/info/usage").await?.json()?;
    let limit = &usage["usage"]["image_size_total"]["limit"];
    ensure!(*limit == visitor.site.tiny.size_total, "{usage}");
    Ok(())
}

/// Fills the project beyond what it may hold.
async fn overfill(visitor: &Visitor<'_>, tiny: &Tenant<'_>, id: &str) -> Result<Reply> {
    let pieces_of_a_mib = usize::try_from(visitor.site.tiny.size_total).context("a quota")? + 1;
    let body = pieces(stream::iter(vec![Bytes::from(vec![1; 1 << 20]); pieces_of_a_mib]));
    tiny.put(id, "file", body).await
}

async fn chunked(visitor: &Visitor<'_>) -> Result<()> {
    let tiny = visitor.tenant("tiny").await?;
    let id = tiny.new_image(json!({ "disk_format": "raw" })).await?;
    let reply = overfill(visitor, &tiny, &id).await?;
    tiny.delete(&id).await?;
    ensure!(reply.status == 204, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn size(visitor: &Visitor<'_>) -> Result<()> {
    let tiny = visitor.tenant("tiny").await?;
    let full = tiny.new_image(json!({ "disk_format": "raw" })).await?;
    let more = tiny.new_image(json!({ "disk_format": "raw" })).await?;
    overfill(visitor, &tiny, &full).await?;
    // A small body: with a large one the early answer can be lost to a broken pipe.
    let reply = tiny.upload(&more, &[1; 1024]).await?;
    tiny.delete(&full).await?;
    tiny.delete(&more).await?;
    names(&reply, "image_size_total")
}

async fn count(visitor: &Visitor<'_>) -> Result<()> {
    let tiny = visitor.tenant("tiny").await?;
    let mut ids = Vec::new();
    for _ in 0..visitor.site.tiny.count_total {
        ids.push(tiny.new_image(json!({})).await?);
    }
    let reply = tiny.create(json!({})).await?;
    for id in ids {
        tiny.delete(&id).await?;
    }
    names(&reply, "image_count_total")
}

fn names(reply: &Reply, resource: &str) -> Result<()> {
    let text = reply.text();
    ensure!(
        reply.status == 413 && text.contains(resource),
        "{} {text}",
        reply.status
    );
    Ok(())
}
