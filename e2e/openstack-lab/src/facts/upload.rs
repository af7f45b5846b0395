//! Facts about an image that is sent as a whole, and what may be done with it then.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use super::{Fact, Tenant, Visitor, fact, tenant::fresh_id};

pub(super) const FACTS: &[Fact] = &[
    fact!("upload answers 204 and the image is active", active),
    fact!("os_hash_value is the sha512 of what was sent", hash),
    fact!("size and virtual_size are known", sizes),
    fact!("a second upload answers 409", second),
    fact!("an image is found by property and tag", found),
    fact!("a stranger does not see it", stranger),
    fact!("patch sets protected and a property", patch),
    fact!("a protected image answers 403 to delete", protected),
    fact!("delete answers 204", deleted),
    fact!("a deleted image answers 404", gone),
];

/// An image that was sent.
async fn sent(visitor: &Visitor<'_>, demo: &Tenant<'_>, fields: Value) -> Result<String> {
    let id = demo.new_image(fields).await?;
    let reply = demo.upload(&id, &visitor.disk).await?;
    ensure!(reply.status == 204, "{} {}", reply.status, reply.text());
    Ok(id)
}

async fn active(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = sent(visitor, &demo, json!({})).await?;
    let image = demo.image(&id).await?;
    demo.delete(&id).await?;
    ensure!(image["status"] == "active", "{image}");
    Ok(())
}

async fn hash(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = sent(visitor, &demo, json!({})).await?;
    let image = demo.image(&id).await?;
    demo.delete(&id).await?;
    let sum = hex::encode(Sha512::digest(&visitor.disk));
    ensure!(
        image["os_hash_algo"] == "sha512" && image["os_hash_value"] == sum.as_str(),
        "{image}"
    );
    Ok(())
}

async fn sizes(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = sent(visitor, &demo, json!({})).await?;
    let image = demo.image(&id).await?;
    demo.delete(&id).await?;
    ensure!(
        image["size"] == visitor.disk.len() && image["virtual_size"] == 16 << 20,
        "{image}"
    );
    Ok(())
}

async fn second(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = sent(visitor, &demo, json!({})).await?;
    let reply = demo.upload(&id, b"more").await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 409, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn found(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let key = fresh_id();
    let id = demo.new_image(json!({ "tags": ["facts"], "cs_key": key })).await?;
    let other = demo.new_image(json!({ "tags": ["facts"], "cs_key": "other" })).await?;
    let query = format!("cs_key={key}&tag=facts&visibility=shared&owner={}", demo.project);
    let list = demo.read(&format!("/images?{query}")).await?.json()?;
    demo.delete(&id).await?;
    demo.delete(&other).await?;
    let ids: Vec<_> = list["images"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|image| &image["id"])
        .collect();
    ensure!(ids == [id.as_str()], "{list}");
    Ok(())
}

async fn stranger(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let seen = visitor.tenant("other").await?.image(&id).await?;
    demo.delete(&id).await?;
    ensure!(seen["status"] == 404, "{seen}");
    Ok(())
}

async fn patch(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let reply = demo.patch(&id, &protecting(true, "ok")).await?;
    let image = demo.image(&id).await?;
    demo.patch(&id, &json!([{ "op": "replace", "path": "/protected", "value": false }]))
        .await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 200, "{} {}", reply.status, reply.text());
    ensure!(image["cs_state"] == "ok" && image["protected"] == true, "{image}");
    Ok(())
}

fn protecting(protected: bool, state: &str) -> Value {
    json!([
        { "op": "replace", "path": "/protected", "value": protected },
        { "op": "add", "path": "/cs_state", "value": state },
    ])
}

async fn protected(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({ "protected": true })).await?;
    let refused = demo.delete(&id).await?;
    demo.patch(&id, &protecting(false, "no")).await?;
    demo.delete(&id).await?;
    ensure!(refused.status == 403, "{} {}", refused.status, refused.text());
    Ok(())
}

async fn deleted(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = sent(visitor, &demo, json!({})).await?;
    let reply = demo.delete(&id).await?;
    ensure!(reply.status == 204, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn gone(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.delete(&id).await?;
    let image = demo.image(&id).await?;
    ensure!(image["status"] == 404, "{image}");
    Ok(())
}
