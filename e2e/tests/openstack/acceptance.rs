//! What was to be shown of the Go provider on a stub of Glance and is shown here on Glance itself (A15 of its acceptance): one image, from nothing to
//! active, and each way in which a cloud does not give it.
//!
//! Two of them are on the fake of `openstack-lab`: no version of Glance of today gives an image up as `killed`, and the real Keystone is shared by tests
//! that cannot do without their tokens.

use anyhow::{Context, Result, ensure};
use crds::{labels, providers::openstack::OpenStackNodeImageRelease};
use e2e::stage::{DISK, IMAGE_OBJECT, message_of, on_a_fake, on_stage, on_stage_as, small, tag};
use http::{Method, StatusCode};
use openstack_lab::{
    proxy::Trouble,
    source::{Article, sha256, sha512},
};
use serde_json::json;

#[test]
fn a15_active() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("ubuntu", DISK, changes).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(
            stage.proxy.count(&Method::POST, "/import") == 1,
            "it was not asked to fetch once"
        );
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 0, "it was sent");
        let image = stage.cloud.image(&id).await?;
        ensure!(
            image["status"] == "active" && image["os_hash_value"] == sha512(&disk).as_str(),
            "{image}"
        );
        ensure!(image["cs_verified"] == sha256(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

#[test]
fn a15_queued_orphan() -> Result<()> {
    on_stage(async |stage| {
        // As the Go provider leaves it: by its name, and without bytes.
        let orphan = stage.cloud.queued("ubuntu").await?;
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(id != orphan, "the orphan counts");
        let image = stage.cloud.image(&orphan).await?;
        ensure!(
            image["status"] == "queued",
            "somebody else's record was touched: {image}"
        );
        Ok(vec![id])
    })
}

#[test]
fn a15_killed() -> Result<()> {
    on_a_fake(async |stage, fake| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let first = stage.id("ubuntu").await?;
        fake.kill(&first);
        stage.look_again("ubuntu", "it was given up").await?;
        let is_second = |attempt: Option<i64>| attempt == Some(2);
        let holds = |status: &crds::providers::image_status::NodeImageStatus| status.ready && is_second(status.attempt);
        let status = stage.until("ubuntu", "ready by another attempt", holds).await?;
        Ok(vec![status.image.context("an image")?.id])
    })
}

#[test]
fn a15_two_of_the_name() -> Result<()> {
    on_stage(async |stage| {
        let first = stage.cloud.uploaded("ubuntu", &small(1)).await?;
        let second = stage.cloud.uploaded("ubuntu", &small(2)).await?;
        stage.want("ubuntu", DISK, json!({ "policy": "Adopt" })).await?;
        stage.operate().await?;
        let status = stage.not_ready("ubuntu", "ImageAmbiguous").await?;
        let message = message_of(&status);
        ensure!(message.contains(&first) && message.contains(&second), "{message}");
        let journey = stage.journey;
        journey
            .annotate::<OpenStackNodeImageRelease>("ubuntu", labels::ADOPT_IMAGE, Some(&second))
            .await?;
        let image = stage.ready("ubuntu").await?.image.context("an image")?;
        ensure!(image.id == second && image.adopted, "{image:?}");
        Ok(Vec::new())
    })
}

#[test]
fn a15_quota_413() -> Result<()> {
    on_stage_as("tiny", async |stage| {
        let mut others = Vec::new();
        for number in 0..stage.site().tiny.count_total {
            others.push(stage.cloud.queued(&format!("other-{number}")).await?);
        }
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let status = stage.not_ready("ubuntu", "QuotaExceeded").await?;
        ensure!(!message_of(&status).is_empty(), "{status:?}");
        stage.cloud.delete(&others[0]).await?;
        stage.look_again("ubuntu", "there is room").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

#[test]
fn a15_permission_403() -> Result<()> {
    on_stage_as("reader", async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        stage.not_ready("ubuntu", "PermissionDenied").await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 0, "it was sent");
        Ok(Vec::new())
    })
}

#[test]
fn a15_token_expiry() -> Result<()> {
    on_a_fake(async |stage, fake| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let first = stage.id("ubuntu").await?;
        fake.revoke_tokens();
        stage.want_disk("debian", &small(2)).await?;
        let second = stage.id("debian").await?;
        let logins = stage.proxy.count(&Method::POST, "/auth/tokens");
        ensure!(logins == 2, "{logins} logins");
        Ok(vec![first, second])
    })
}

#[test]
fn a15_web_download_off() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        // As a cloud answers that announces more than it does.
        let off = Trouble::answer(
            StatusCode::NOT_FOUND,
            &[("content-type", "text/html")],
            "<h1>404</h1>off",
        );
        stage.proxy.meet(Method::POST, "/import", usize::MAX, off);
        stage.source.put(DISK, Article::of(disk.clone()));
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("ubuntu", DISK, changes).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was not sent once");
        let asked = stage.proxy.count(&Method::POST, "/import");
        ensure!(asked == 1, "it was asked {asked} times to fetch what it does not fetch");
        Ok(vec![id])
    })
}

#[test]
fn a15_shared_last_owner() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        let theirs = stage.cloud.uploaded("theirs", &small(2)).await?;
        stage.publish("v1")?;
        stage.publish("v2")?;
        stage.operate().await?;
        for version in ["v1", "v2"] {
            stage.want_release(&tag(version)).await?;
            stage.release_is(&tag(version), true).await?;
        }
        let ours = stage.id(IMAGE_OBJECT).await?;
        stage.want("theirs", DISK, json!({ "policy": "Adopt" })).await?;
        stage.ready("theirs").await?;

        for version in ["v1", "v2"] {
            stage.delete_release(&tag(version)).await?;
        }
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        stage.delete("theirs").await?;
        let image = stage.cloud.image(&ours).await?;
        ensure!(
            image["status"] == StatusCode::NOT_FOUND.as_u16(),
            "it was not deleted: {image}"
        );
        let image = stage.cloud.image(&theirs).await?;
        ensure!(image["status"] == "active", "it was not made by us: {image}");
        Ok(Vec::new())
    })
}
