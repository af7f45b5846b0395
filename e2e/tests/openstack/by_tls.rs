//! A Keystone and a Glance as a client is easily wrong about: by TLS of an authority of their own, below a prefix, and with tokens that end while an image is on
//! its way and between all that is done. The whole life of an image on them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{labels, providers::openstack::OpenStackNodeImageRelease};
use e2e::{
    Journey, eventually, journey,
    journey::SOON,
    provider_operator::{Destination, ProviderOptions, identity},
    stage::{API_VERSION, Cloud, DISK, SECRET},
};
use http::StatusCode;
use openstack_lab::{
    Site, disk,
    facts::Visitor,
    real::{Installed, Real, RealOptions},
    source::{Article, Source, sha512},
};
use serde_json::{Value, json};

const OBJECT: &str = "ubuntu";

/// What is in the project now, seen with a token of its own.
async fn images(site: &Site) -> Result<Vec<Value>> {
    let visitor = Visitor::new(site).await?;
    Cloud(visitor.tenant("openstack").await?).images().await
}

/// Returns when every token is refused that was good when this was called.
async fn tokens_end(site: &Site) -> Result<()> {
    const NOTHING: &str = "00000000-0000-4000-8000-000000000000";
    let visitor = Visitor::new(site).await?;
    let tenant = visitor.tenant("openstack").await?;
    eventually(SOON, "the token to end", async || {
        let answer = tenant.image(NOTHING).await?;
        let is_refused = answer["status"] == StatusCode::UNAUTHORIZED.as_u16();
        ensure!(is_refused, "{answer}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

async fn want(journey: &Journey, url: &str, options: Value) -> Result<()> {
    let mut create = json!({ "name": OBJECT, "disk_format": "qcow2", "container_format": "bare" });
    create
        .as_object_mut()
        .into_iter()
        .zip(options.as_object())
        .for_each(|(create, options)| create.extend(options.clone()));
    let spec = json!({
        "identityRef": { "kind": "Secret", "name": SECRET }, "image": { "url": url, "createOpts": create },
    });
    let object = json!({
        "apiVersion": API_VERSION, "kind": "OpenStackNodeImageRelease", "metadata": { "name": OBJECT }, "spec": spec,
    });
    journey.apply(object).await.map(drop)
}

async fn ready(journey: &Journey) -> Result<String> {
    let is_ready = |object: &OpenStackNodeImageRelease| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.ready && status.observed_generation == object.metadata.generation)
    };
    let object = journey.until(OBJECT, "ready", is_ready).await?;
    let image = object.status.and_then(|status| status.image);
    Ok(image.context("a ready image has an id")?.id)
}

/// Waits until the project has one image, and it is so.
async fn becomes(site: &Site, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
    eventually(SOON, format!("the image to be {what}"), async || {
        let images = images(site).await?;
        ensure!(images.len() == 1 && is_so(&images[0]), "{images:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[test]
fn an_image_lives_by_tls_below_a_prefix_though_tokens_end_all_the_time() -> Result<()> {
    journey::journey(async |journey| {
        let Some(installed) = Installed::find()? else {
            return Ok(());
        };
        let options = RealOptions {
            prefix: true,
            tls: true,
            token_ttl: Duration::from_secs(8),
            ..RealOptions::default()
        };
        let real = Real::start(&installed, &options).await?;
        let site = real.project(&journey.namespace).await?;
        journey.apply(identity(SECRET, &site)).await?;
        let source = Source::start().await?;
        let disk = disk::qcow2_of(1, 16 << 20, 4 << 20);
        let held = Article::of(disk.clone()).held_at(disk.len() / 2);
        source.put(DISK, held);
        let mut operator = ProviderOptions::of(journey, Destination::OpenStack)
            .await?
            .start(journey.lab())?;
        operator.ready().await?;

        want(journey, &source.url(DISK), json!({ "min_disk": 8 })).await?;
        becomes(&site, "on its way", |image| image["status"] == "saving").await?;
        tokens_end(&site).await?;
        source.let_go();
        let id = ready(journey).await?;
        let is_it = |image: &Value| image["id"] == id.as_str() && image["os_hash_value"] == sha512(&disk).as_str();
        becomes(&site, "whole", |image| is_it(image) && image["status"] == "active").await?;
        ensure!(source.reads(DISK) == 1, "it was read again: {:?}", source.visits());

        tokens_end(&site).await?;
        want(journey, &source.url(DISK), json!({ "min_disk": 12, "tags": ["new"] })).await?;
        let is_new =
            |image: &Value| is_it(image) && image["min_disk"] == 12 && image["tags"].to_string().contains("new");
        becomes(&site, "as it is wanted now", is_new).await?;
        ensure!(ready(journey).await? == id, "it is another image");

        tokens_end(&site).await?;
        journey
            .annotate::<OpenStackNodeImageRelease>(OBJECT, labels::REQUESTED_AT, Some("tokens have ended"))
            .await?;
        let is_handled = |object: &OpenStackNodeImageRelease| {
            let status = object.status.as_ref().filter(|status| status.ready);
            status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("tokens have ended"))
        };
        journey.until(OBJECT, "looked at", is_handled).await?;
        tokens_end(&site).await?;
        journey.delete::<OpenStackNodeImageRelease>(OBJECT).await?;
        journey.gone::<OpenStackNodeImageRelease>(OBJECT).await?;
        let left = images(&site).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
}
