//! Facts about the id of an image: who chooses it, and that it is taken for ever.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Fact, Visitor, fact, tenant::fresh_id};

pub(super) const FACTS: &[Fact] = &[
    fact!("the client may choose the id", chosen),
    fact!("the same id again answers 409", twice),
    fact!("the id of a deleted image stays taken (409)", taken),
];

async fn chosen(visitor: &Visitor<'_>) -> Result<()> {
    let (demo, id) = (visitor.tenant("openstack").await?, fresh_id());
    let reply = demo.create(json!({ "id": id })).await?;
    ensure!(
        reply.status == 201 && reply.json()?["id"] == id.as_str(),
        "{} {}",
        reply.status,
        reply.text()
    );
    demo.delete(&id).await?;
    Ok(())
}

async fn twice(visitor: &Visitor<'_>) -> Result<()> {
    let (demo, id) = (visitor.tenant("openstack").await?, fresh_id());
    demo.create(json!({ "id": id })).await?;
    let reply = demo.create(json!({ "id": id })).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 409, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn taken(visitor: &Visitor<'_>) -> Result<()> {
    let (demo, id) = (visitor.tenant("openstack").await?, fresh_id());
    demo.create(json!({ "id": id })).await?;
    demo.delete(&id).await?;
    let reply = demo.create(json!({ "id": id })).await?;
    ensure!(reply.status == 409, "{} {}", reply.status, reply.text());
    Ok(())
}
