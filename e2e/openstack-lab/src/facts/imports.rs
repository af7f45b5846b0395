//! Facts about images that a cloud fetches itself, or puts in place after they were staged.

use anyhow::{Result, ensure};
use serde_json::json;
use sha2::{Digest, Sha512};

use super::{Fact, Origin, Visitor, fact};
use crate::client::whole;

pub(super) const FACTS: &[Fact] = &[
    fact!("web-download answers 202", accepted),
    fact!("web-download ends active with the right hash", imported),
    fact!(
        "a failed web-download (404) is queued with os_glance_failed_import",
        missing
    ),
    fact!("a failed web-download (404) has a failed task", missing_task),
    fact!(
        "a failed web-download (refused) is queued with os_glance_failed_import",
        refused
    ),
    fact!("a failed web-download (refused) has a failed task", refused_task),
    fact!("a filtered URL answers 400 at once", filtered),
    fact!("a running import shows its task and stores", running),
    fact!("a second import is refused (409)", second),
    fact!("deleting it cancels it", cancelled),
    fact!("staging answers 204", staging),
    fact!("a staged image is uploading", staged),
    fact!("glance-direct ends active", direct),
];

/// Where nobody listens.
const REFUSED: &str = "http://127.0.0.1:1/x";

async fn accepted(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let reply = demo.web_download(&id, &visitor.origin.url("/disk")).await?;
    demo.settled(&id).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 202, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn imported(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.web_download(&id, &visitor.origin.url("/disk")).await?;
    let image = demo.settled(&id).await?;
    demo.delete(&id).await?;
    let sum = hex::encode(Sha512::digest(&visitor.disk));
    ensure!(
        image["status"] == "active" && image["os_hash_value"] == sum.as_str(),
        "{image}"
    );
    Ok(())
}

async fn missing(visitor: &Visitor<'_>) -> Result<()> {
    failed_mark(visitor, &visitor.origin.url("/missing")).await
}

async fn missing_task(visitor: &Visitor<'_>) -> Result<()> {
    failed_task(visitor, &visitor.origin.url("/missing")).await
}

async fn refused(visitor: &Visitor<'_>) -> Result<()> {
    failed_mark(visitor, REFUSED).await
}

async fn refused_task(visitor: &Visitor<'_>) -> Result<()> {
    failed_task(visitor, REFUSED).await
}

async fn failed_mark(visitor: &Visitor<'_>, uri: &str) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.web_download(&id, uri).await?;
    let image = demo.settled(&id).await?;
    demo.delete(&id).await?;
    let store = visitor.site.default_store.as_str();
    ensure!(
        image["status"] == "queued" && image["os_glance_failed_import"] == store,
        "{image}"
    );
    Ok(())
}

async fn failed_task(visitor: &Visitor<'_>, uri: &str) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let path = format!("/images/{id}/tasks");
    let before = demo.read(&path).await?.json()?;
    ensure!(before["tasks"] == json!([]), "nobody has imported it: {before}");
    demo.web_download(&id, uri).await?;
    demo.settled(&id).await?;
    let tasks = demo.read(&path).await?.json()?;
    demo.delete(&id).await?;
    let states: Vec<_> = tasks["tasks"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|task| &task["status"])
        .collect();
    ensure!(states == ["failure"], "{tasks}");
    Ok(())
}

async fn filtered(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let reply = demo.web_download(&id, "http://10.0.0.1/x").await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 400, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn running(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let slow = Origin::start(visitor.disk.clone()).await?;
    let id = demo.new_image(json!({})).await?;
    demo.web_download(&id, &slow.url("/held")).await?;
    let image = demo.seen(&id, |image| image["status"] == "importing").await?;
    slow.let_go();
    demo.settled(&id).await?;
    demo.delete(&id).await?;
    let store = visitor.site.default_store.as_str();
    ensure!(image["os_glance_importing_to_stores"] == store, "{image}");
    ensure!(image["os_glance_import_task"].is_string(), "{image}");
    Ok(())
}

async fn second(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let slow = Origin::start(visitor.disk.clone()).await?;
    let id = demo.new_image(json!({})).await?;
    demo.web_download(&id, &slow.url("/held")).await?;
    demo.seen(&id, |image| image["status"] == "importing").await?;
    let reply = demo.web_download(&id, &slow.url("/disk")).await?;
    slow.let_go();
    demo.settled(&id).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 409, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn cancelled(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let slow = Origin::start(visitor.disk.clone()).await?;
    let id = demo.new_image(json!({})).await?;
    demo.web_download(&id, &slow.url("/held")).await?;
    demo.seen(&id, |image| image["status"] == "importing").await?;
    let reply = demo.delete(&id).await?;
    let image = demo.image(&id).await?;
    // The cloud goes on fetching, unseen.
    slow.let_go();
    ensure!(
        reply.status == 204 && image["status"] == 404,
        "{} {image}",
        reply.status
    );
    Ok(())
}

async fn staging(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    let reply = demo.put(&id, "stage", whole(visitor.disk.clone())).await?;
    demo.delete(&id).await?;
    ensure!(reply.status == 204, "{} {}", reply.status, reply.text());
    Ok(())
}

async fn staged(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.put(&id, "stage", whole(visitor.disk.clone())).await?;
    let image = demo.image(&id).await?;
    demo.delete(&id).await?;
    ensure!(image["status"] == "uploading", "{image}");
    Ok(())
}

async fn direct(visitor: &Visitor<'_>) -> Result<()> {
    let demo = visitor.tenant("openstack").await?;
    let id = demo.new_image(json!({})).await?;
    demo.put(&id, "stage", whole(visitor.disk.clone())).await?;
    let reply = demo.import(&id, json!({ "name": "glance-direct" })).await?;
    let image = demo.settled(&id).await?;
    demo.delete(&id).await?;
    ensure!(
        reply.status == 202 && image["status"] == "active",
        "{} {image}",
        reply.status
    );
    Ok(())
}
