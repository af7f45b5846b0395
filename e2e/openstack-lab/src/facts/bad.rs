//! Facts about uploads that end early, or send what was not promised.

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use http::Method;
use serde_json::json;
use url::Url;

use super::{Fact, Tenant, Visitor, fact};
use crate::client::pieces;

pub(super) const FACTS: &[Fact] = &[
    fact!("a half-sent image is saving", saving),
    fact!("a second writer is refused (409)", second_writer),
    fact!("a cut upload falls back to queued", cut),
    fact!("and can be sent again", again),
    fact!("content that is not qcow2 answers 415", other_format),
    fact!("that record is spoilt: good data fails too", spoilt),
    fact!("a truncated qcow2 does become active", truncated),
];

/// What of the disk is sent before the sender falls silent.
const SENT: usize = 100_000;

/// Does something to an image while it is half sent, and then hangs up.
async fn half_sent<T>(
    visitor: &Visitor<'_>,
    demo: &Tenant<'_>,
    id: &str,
    meanwhile: impl Future<Output = Result<T>>,
) -> Result<T> {
    let url = Url::parse(&format!("{}/v2/images/{id}/file", visitor.site.glance))?;
    let length = visitor.disk.len().to_string();
    let headers = [
        ("X-Auth-Token", demo.token.as_str()),
        ("Content-Type", "application/octet-stream"),
        ("Content-Length", length.as_str()),
    ];
    let beginning = Bytes::copy_from_slice(&visitor.disk[..SENT]);
    let body = pieces(stream::iter([beginning]).chain(stream::pending()));
    let upload = visitor.client.send(Method::PUT, &url, &headers, body);
    let answered = async {
        demo.seen(id, |image| image["status"] == "saving").await?;
        meanwhile.await
    };
    tokio::select! {
        reply = upload => Err(anyhow::anyhow!("half a disk was answered: {reply:?}")),
        answered = answered => answered,
    }
}

async fn saving(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    // That it is saving is what the sender waits for.
    half_sent(visitor, &demo, &id, async { Ok(()) }).await?;
    demo.settled(&id).await?;
    demo.delete(&id).await?;
    Ok(())
}

async fn second_writer(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let second = demo.upload(&id, b"QFI").boxed();
    let reply = half_sent(visitor, &demo, &id, second).await?;
    demo.settled(&id).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 409, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn cut(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    half_sent(visitor, &demo, &id, async { Ok(()) }).await?;
    let image = demo.settled(&id).await?;
    demo.delete(&id).await?;
    ensure!(image["status"] == "queued" && image["checksum"].is_null(), "{image}");
    Ok(())
}

async fn again(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    half_sent(visitor, &demo, &id, async { Ok(()) }).await?;
    demo.settled(&id).await?;
    let reply = demo.upload(&id, &visitor.disk).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 204, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn other_format(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let reply = demo.upload(&id, &page()).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 415, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn spoilt(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.upload(&id, &page()).await?;
    let image = demo.settled(&id).await?;
    let reply = demo.upload(&id, &visitor.disk).await?;
    demo.delete(&id).await?;
    ensure!(image["status"] == "queued" && image["checksum"].is_string(), "{image}");
    ensure!(!reply.status.is_success(), "{} {}", reply.status, reply.text());
    Ok(())
}

async fn truncated(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.upload(&id, &visitor.disk[..1000]).await?;
    let image = demo.image(&id).await?;
    demo.delete(&id).await?;
    ensure!(image["status"] == "active", "{image}");
    Ok(())
}

/// What a web server says instead of a disk.
fn page() -> Vec<u8> {
    b"<html>not a disk</html>".repeat(1000)
}
