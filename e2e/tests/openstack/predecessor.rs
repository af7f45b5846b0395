//! The faults of the Go provider, none of which this one has: a test for each, by its number.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use crds::providers::{
    image_status::NodeImageStatus,
    openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease},
};
use e2e::{
    eventually,
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, IMAGE_OBJECT, SECRET, Stage, holds, message_of, on_stage, small, tag},
};
use http::{Method, StatusCode};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use openstack_lab::{
    Site,
    proxy::Trouble,
    source::{Article, sha256, sha512},
};
use serde_json::json;
use url::Url;

/// What a balancer says whose service is away.
fn away() -> Trouble {
    Trouble::answer(
        StatusCode::SERVICE_UNAVAILABLE,
        &[("content-type", "text/html")],
        "<html><h1>503</h1></html>",
    )
}

/// A cloud whose fetches fail: the source does not serve Python, and everybody else.
async fn unfetchable(stage: &Stage<'_>, name: &str, disk: &[u8]) -> Result<()> {
    stage.source.put(DISK, Article::of(disk.to_vec()).refused_to("Python"));
    let changes = json!({ "image": { "digest": sha256(disk) }, "transfer": { "via": "ServerSide" } });
    stage.want(name, DISK, changes).await
}

/// An image waits as `queued` after an import that failed, and the Go provider with it.
#[test]
fn p01_a_failed_import_is_no_progress() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        unfetchable(stage, "ubuntu", &disk).await?;
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        let imports = stage.proxy.count(&Method::POST, "/import");
        ensure!(imports == 2, "{imports} imports were begun");
        ensure!(
            status.attempt == Some(3),
            "each import that failed is an attempt: {status:?}"
        );
        let id = status.image.context("an image")?.id;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

/// Nothing is verified there.
#[test]
fn p02_an_html_page_never_becomes_an_image() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(
            "/disk.raw",
            Article::page("<!DOCTYPE html><html><body>Please log in</body></html>"),
        );
        let raw = json!({ "image": { "createOpts": { "disk_format": "raw" } } });
        stage.want("ubuntu", "/disk.raw", raw.clone()).await?;
        stage.operate().await?;
        stage.not_ready("ubuntu", "SourceNotAnImage").await?;
        let images = stage.cloud.images().await?;
        ensure!(
            images.iter().all(|image| image["status"] != "active"),
            "a page is an image: {images:?}"
        );

        let mut disk = openstack_lab::disk::raw(7, 300_000);
        // As a disk begins that can be booted from.
        disk[..3].copy_from_slice(&[0xEB, 0x63, 0x90]);
        stage.source.put("/disk.raw", Article::of(disk));
        stage.look_again("ubuntu", "it is mended").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

/// It knows no other way, and never asks whether there is that one.
#[test]
fn p03_a_cloud_without_web_download_is_served() -> Result<()> {
    on_stage(async |stage| {
        let methods = json!({ "import-methods": { "description": "", "type": "array", "value": ["glance-direct"] } });
        let json = [("content-type", "application/json")];
        let answer = Trouble::answer(StatusCode::OK, &json, &methods.to_string());
        stage.proxy.meet(Method::GET, "/info/import", usize::MAX, answer);
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("ubuntu", DISK, changes).await?;
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(
            stage.proxy.count(&Method::POST, "/import") == 0,
            "it was asked to fetch"
        );
        Ok(vec![status.image.context("an image")?.id])
    })
}

/// The empty record is found by its name and waited for, for ever.
#[test]
fn p04_a_crash_between_create_and_transfer_goes_on() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::POST, "/v2/images", 1, Trouble::HoldAnswer);
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.cloud.one().await?;
        stage.kill().await?;
        stage.proxy.relent();
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(status.image.is_some_and(|image| image.id == id), "it is another record");
        ensure!(
            stage.proxy.count(&Method::PUT, "/file") == 1,
            "it was sent more than once"
        );
        Ok(vec![id])
    })
}

/// Whatever has the name counts there, however it came about.
#[test]
fn p05_a_foreign_image_of_the_name_is_not_taken() -> Result<()> {
    on_stage(async |stage| {
        let unfinished = stage.cloud.queued("ubuntu").await?;
        let finished = stage.cloud.uploaded("debian", &small(3)).await?;
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.want("debian", DISK, json!({})).await?;
        stage.operate().await?;
        let ours = stage.id("ubuntu").await?;
        ensure!(ours != unfinished, "a half-made image counts");
        let status = stage.not_ready("debian", "ImageNameTaken").await?;
        ensure!(message_of(&status).contains(&finished), "{status:?}");

        stage.cloud.delete(&finished).await?;
        stage.look_again("debian", "the name is free").await?;
        let theirs = stage.cloud.image(&unfinished).await?;
        ensure!(
            theirs["status"] == "queued",
            "somebody else's record was touched: {theirs}"
        );
        Ok(vec![ours, stage.id("debian").await?])
    })
}

/// A moment without the cloud ends all work until somebody touches the object.
#[test]
fn p06_a_burst_of_503_at_login_and_list_ends_nothing() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::POST, "/auth/tokens", 2, away());
        stage.proxy.meet(Method::GET, "/v2/images?", 2, away());
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(stage.proxy.met() == 4, "{:?}", stage.proxy.passed());
        Ok(vec![id])
    })
}

/// It has no finalizer, and no image was ever deleted by it.
#[test]
fn p07_the_last_owner_takes_the_image_along() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        for version in ["v1", "v2"] {
            stage.publish_with(version, &["protected: true"])?;
            stage.want_release(&tag(version)).await?;
        }
        stage.operate().await?;
        for version in ["v1", "v2"] {
            stage.release_is(&tag(version), true).await?;
        }
        let id = stage.id(IMAGE_OBJECT).await?;
        stage.delete_release(&tag("v1")).await?;
        stage.image_belongs_to(&[tag("v2")]).await?;
        stage.ready(IMAGE_OBJECT).await?;
        // Nobody sees that the last one is deleted, and somebody else comes afterwards.
        stage.kill().await?;
        stage.journey.delete::<OpenStackClusterStackRelease>(&tag("v2")).await?;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["protected"] == true, "{image}");
        stage.operate().await?;
        stage.journey.gone::<OpenStackClusterStackRelease>(&tag("v2")).await?;
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        Ok(Vec::new())
    })
}

/// How long a deletion is tried.
const IMPATIENT: &[&str] = &["--force-finalize-after=6s"];

/// Deletes an object whose image stays in the cloud, and returns when the object is gone, which takes as long as it is tried.
async fn goes_without(stage: &Stage<'_>, name: &str, image: &str) -> Result<()> {
    const PATIENCE: SignedDuration = SignedDuration::from_secs(6);
    stage.journey.delete::<OpenStackNodeImageRelease>(name).await?;
    let object = stage.journey.api::<OpenStackNodeImageRelease>().get(name).await?;
    let since = object.metadata.deletion_timestamp.context("it is being deleted")?.0;
    stage.journey.gone::<OpenStackNodeImageRelease>(name).await?;
    let took = jiff::Timestamp::now().duration_since(since);
    // The API server writes whole seconds.
    ensure!(took >= PATIENCE - SignedDuration::from_secs(1), "it took {took}");
    let image = stage.cloud.image(image).await?;
    ensure!(image["status"] == "active", "{image}");
    Ok(())
}

/// Nothing holds a deletion up there, because nothing is deleted; and here a cloud that refuses does not for ever.
#[test]
fn p07_a_cloud_that_refuses_to_delete_holds_nobody_up_for_longer_than_a_flag_says() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate_with(IMPATIENT).await?;
        let id = stage.id("ubuntu").await?;
        stage.proxy.meet(Method::DELETE, "/v2/images/", usize::MAX, away());
        goes_without(stage, "ubuntu", &id).await?;
        ensure!(stage.proxy.met() > 0, "nobody tried to delete it");
        Ok(vec![id])
    })
}

/// Whoever is not logged in meets a cloud that says nothing at all, and then none where it was.
#[test]
fn p07_a_cloud_that_hangs_or_is_not_there_any_more_holds_nobody_up_either() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("hung", &small(1)).await?;
        stage.want("left", DISK, json!({})).await?;
        stage.operate_with(IMPATIENT).await?;
        let ids = vec![stage.id("hung").await?, stage.id("left").await?];
        stage.kill().await?;
        stage
            .proxy
            .meet(Method::POST, "/auth/tokens", usize::MAX, Trouble::Hang);
        stage.operate_with(IMPATIENT).await?;
        goes_without(stage, "hung", &ids[0]).await?;
        ensure!(stage.proxy.met() > 0, "nobody tried to log in");

        stage.kill().await?;
        let nobody = Site {
            // No program listens there.
            keystone: Url::parse("http://127.0.0.1:1/v3")?,
            ..stage.proxy.site().clone()
        };
        stage.journey.apply(identity(SECRET, &nobody)).await?;
        stage.operate_with(IMPATIENT).await?;
        goes_without(stage, "left", &ids[1]).await?;
        Ok(ids)
    })
}

/// Its images are never looked at again, and their options never changed.
#[test]
fn p08_a_deleted_image_is_noticed_and_made_again_and_an_edited_option_amended() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let first = stage.id("ubuntu").await?;
        stage.cloud.delete(&first).await?;
        stage.look_again("ubuntu", "it was deleted").await?;
        let is_another = |id: &str| id != first;
        let status = stage
            .until("ubuntu", "made again", |status| {
                status.ready && status.image.as_ref().is_some_and(|image| is_another(&image.id))
            })
            .await?;
        let second = status.image.context("an image")?.id;

        let options = json!({ "image": { "createOpts": { "min_disk": 9 } } });
        stage.want("ubuntu", DISK, options).await?;
        eventually(SOON, "the option in the cloud", async || {
            let image = stage.cloud.image(&second).await?;
            ensure!(image["min_disk"] == 9, "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        Ok(vec![second])
    })
}

/// It logs in for every look at every image.
#[test]
fn p09_ten_images_log_in_once() -> Result<()> {
    on_stage(async |stage| {
        let names: Vec<String> = (0..10).map(|number| format!("image-{number}")).collect();
        stage.source.put(DISK, Article::of(small(1)));
        for name in &names {
            stage.want(name, DISK, json!({})).await?;
        }
        stage.operate().await?;
        let mut ids = Vec::new();
        for name in &names {
            ids.push(stage.id(name).await?);
        }
        let logins = stage.proxy.count(&Method::POST, "/auth/tokens");
        ensure!(logins == 1, "{logins} logins");
        Ok(ids)
    })
}

async fn events(stage: &Stage<'_>) -> Result<BTreeMap<String, i32>> {
    let events: Api<Event> = stage.journey.api();
    let listed = events.list(&ListParams::default()).await?;
    let about = listed
        .items
        .into_iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("OpenStackNodeImageRelease"));
    let mut counts = BTreeMap::new();
    for event in about {
        let key = format!(
            "{}: {}",
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        );
        let series = event.series.and_then(|series| series.count);
        *counts.entry(key).or_default() += event.count.or(series).unwrap_or(1);
    }
    Ok(counts)
}

/// Each look tells of it anew.
#[test]
fn p10_an_active_image_is_told_once() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        // An event may come after the status that it is about.
        let before = eventually(SOON, "an event", async || {
            let events = events(stage).await?;
            ensure!(!events.is_empty(), "there is none");
            Ok::<_, anyhow::Error>(events)
        })
        .await?;
        let looks = stage.proxy.count(&Method::GET, "/v2/images?");
        for request in ["1", "2", "3"] {
            stage.looked_again("ubuntu", request).await?;
        }
        ensure!(
            stage.proxy.count(&Method::GET, "/v2/images?") >= looks + 3,
            "nobody looked"
        );
        let after = events(stage).await?;
        ensure!(
            before == after && after.values().all(|count| *count == 1),
            "{before:?}\n{after:?}"
        );
        Ok(vec![id])
    })
}

/// Its deadlines count from the last change of a condition, which a cloud that comes and goes changes all the time.
#[test]
fn p11_a_deadline_does_not_begin_anew_with_a_flap() -> Result<()> {
    on_stage(async |stage| {
        const FLAPS_AT_LEAST: usize = 5;
        let disk = small(1);
        // The cloud fetches an image of which nothing comes any more.
        stage
            .source
            .put(DISK, Article::of(disk.clone()).held_at(disk.len() / 2));
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("ubuntu", DISK, changes).await?;
        stage.operate_with(&["--image-import-timeout=1"]).await?;
        let lost = stage.cloud.one().await?;
        stage.cloud.becomes(&lost, "importing").await?;

        // Every time that it was seen, it is away the next time; within seconds each, and the deadline is a minute.
        let late = Instant::now() + SOON;
        let mut flaps = 0;
        while stage.status("ubuntu").await?.attempt == Some(1) {
            ensure!(Instant::now() < late, "after {flaps} flaps it is still waited for");
            flaps += 1;
            stage.proxy.meet(Method::GET, "/v2/images?", 1, away());
            stage.look_again("ubuntu", &format!("flap {flaps}")).await?;
            stage.met(flaps).await?;
            let is_back = |status: &NodeImageStatus| holds(status, "CloudAvailable");
            stage.until("ubuntu", "seen again", is_back).await?;
        }
        ensure!(flaps >= FLAPS_AT_LEAST, "the cloud was away only {flaps} times");
        let passed = stage.proxy.passed();
        let troubled = passed.iter().filter(|passed| passed.trouble.is_some());
        let looks = troubled.filter(|passed| passed.method == Method::GET).count();
        ensure!(looks >= FLAPS_AT_LEAST, "{looks} looks were in trouble");

        stage.proxy.relent();
        stage.source.let_go();
        let image = stage.ready("ubuntu").await?.image.context("an image")?;
        ensure!(image.id != lost, "it was not given up: {image:?}");
        Ok(vec![image.id])
    })
}
