//! What users do with images: have one brought, use one that is there, change it, share it, let it go.

use anyhow::{Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    eventually,
    journey::SOON,
    stage::{DISK, IMAGE, IMAGE_OBJECT, Stage, holds, on_stage, small, tag},
};
use http::Method;
use openstack_lab::source::{Article, sha256, sha512};
use serde_json::json;

/// The operator has counted one image of so many bytes, which was sent at once.
async fn is_counted(stage: &mut Stage<'_>, bytes: usize) -> Result<()> {
    let metrics = stage.operator()?.metrics().await?;
    let bytes = Some(f64::from(u32::try_from(bytes)?));
    let once = Some(1.0);
    for (name, labels, expected) in [
        ("transferred_bytes_total", [("direction", "ToCloud")].as_slice(), bytes),
        ("transferred_bytes_total", &[("direction", "FromSource")], bytes),
        ("transfer_seconds_count", &[], once),
        ("queue_seconds_count", &[("lane", "transfer")], once),
        ("attempts_total", &[], once),
        ("attempts_total", &[("reason", "First")], once),
    ] {
        let counted = metrics.sum(&format!("stackwright_provider_{name}"), labels);
        ensure!(
            counted == expected,
            "{name} {labels:?} is {counted:?} instead of {expected:?}"
        );
    }
    Ok(())
}

#[test]
fn created_verified_ready() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let options = json!({
            "visibility": "private", "min_disk": 8, "min_ram": 512, "tags": ["nodes"], "properties": { "hw_disk_bus": "scsi" },
        });
        let image = json!({ "image": { "digest": sha256(&disk), "createOpts": options } });
        stage.want("ubuntu", DISK, image).await?;
        stage.operate().await?;

        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(holds(&status, "OpenStackImageActive"), "{status:?}");
        let told = status.image.expect("a ready image");
        ensure!(
            told.sha512 == Some(sha512(&disk)) && told.source_digest == Some(sha256(&disk)),
            "{told:?}"
        );

        let image = stage.cloud.image(&told.id).await?;
        let expected = json!({
            "status": "active", "os_hidden": false, "name": "ubuntu", "visibility": "private", "size": disk.len(),
            "os_hash_value": sha512(&disk), "cs_verified": sha256(&disk), "min_disk": 8, "min_ram": 512, "hw_disk_bus": "scsi",
        });
        for (field, value) in expected.as_object().into_iter().flatten() {
            ensure!(image[field] == *value, "{field} is {} instead of {value}", image[field]);
        }
        ensure!(
            image["tags"]
                .as_array()
                .is_some_and(|tags| tags.contains(&json!("nodes"))),
            "{image}"
        );

        is_counted(stage, disk.len()).await?;

        stage.kill().await?;
        let before = (stage.source.visits().len(), stage.proxy.count(&Method::PUT, "/file"));
        stage.operate().await?;
        stage.looked_again("ubuntu", "after the restart").await?;
        let after = (stage.source.visits().len(), stage.proxy.count(&Method::PUT, "/file"));
        ensure!(
            before == after && before.1 == 1,
            "an image that is there was sent again: {before:?} {after:?}"
        );
        Ok(vec![told.id])
    })
}

#[test]
fn adopted_only_when_asked() -> Result<()> {
    on_stage(async |stage| {
        let theirs = stage.cloud.uploaded("ubuntu", &small(1)).await?;
        let before = stage.cloud.image(&theirs).await?;
        stage.want_disk("ubuntu", &small(2)).await?;
        stage.operate().await?;
        stage.not_ready("ubuntu", "ImageNameTaken").await?;
        stage.cloud.holds(&[]).await?;

        stage.want("ubuntu", DISK, json!({ "policy": "Adopt" })).await?;
        let image = stage.ready("ubuntu").await?.image.expect("a ready image");
        ensure!(image.id == theirs && image.adopted, "{image:?}");

        stage.delete("ubuntu").await?;
        let after = stage.cloud.image(&theirs).await?;
        ensure!(before == after, "somebody else's image was touched: {after}");
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 0, "an image was sent");
        Ok(Vec::new())
    })
}

#[test]
fn if_missing_uses_what_is_there() -> Result<()> {
    on_stage(async |stage| {
        let theirs = stage.cloud.uploaded("there", &small(1)).await?;
        stage.source.put(DISK, Article::of(small(2)));
        for name in ["there", "missing"] {
            stage.want(name, DISK, json!({ "policy": "IfMissing" })).await?;
        }
        stage.operate().await?;
        let image = stage.ready("there").await?.image.expect("a ready image");
        ensure!(image.id == theirs && image.adopted, "{image:?}");
        let image = stage.ready("missing").await?.image.expect("a ready image");
        ensure!(!image.adopted, "{image:?}");
        Ok(vec![image.id])
    })
}

#[test]
fn options_are_amended() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        let options = json!({
            "min_disk": 12, "protected": true, "tags": ["new"], "properties": { "os_distro": "ubuntu" },
        });
        stage
            .want("ubuntu", DISK, json!({ "image": { "createOpts": options } }))
            .await?;
        eventually(SOON, "the options in the cloud", async || {
            let image = stage.cloud.image(&id).await?;
            let is_so = image["min_disk"] == 12
                && image["protected"] == true
                && image["os_distro"] == "ubuntu"
                && image["tags"]
                    .as_array()
                    .is_some_and(|tags| tags.contains(&json!("new")));
            ensure!(is_so, "{image}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        ensure!(stage.id("ubuntu").await? == id, "it is another image");
        ensure!(
            stage.proxy.count(&Method::PUT, "/file") == 1,
            "its bytes were sent again"
        );
        Ok(vec![id])
    })
}

#[test]
fn new_content_is_a_new_image_and_the_old_goes() -> Result<()> {
    on_stage(async |stage| {
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let old = stage.id("ubuntu").await?;

        let disk = small(2);
        stage
            .source
            .put("/new.qcow2", Article::of(disk.clone()).held_at(disk.len() / 2));
        stage.want("ubuntu", "/new.qcow2", json!({})).await?;
        eventually(SOON, "the new image to be on its way", async || {
            let owned = stage.cloud.owned().await?;
            ensure!(owned.len() == 2, "{owned:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let image = stage.cloud.image(&old).await?;
        ensure!(
            image["status"] == "active" && image["os_hidden"] == false,
            "the old one went first: {image}"
        );

        stage.source.let_go();
        let new = stage.id("ubuntu").await?;
        ensure!(new != old, "the image has the same id");
        let image = stage.cloud.image(&new).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![new])
    })
}

/// Two releases whose image is in the cloud.
async fn shared(stage: &mut Stage<'_>) -> Result<String> {
    stage.source.put(DISK, Article::of(small(1)));
    stage.publish("v1")?;
    stage.publish("v2")?;
    stage.operate().await?;
    for version in ["v1", "v2"] {
        stage.want_release(&tag(version)).await?;
        stage.release_is(&tag(version), true).await?;
    }
    stage.image_belongs_to(&[tag("v1"), tag("v2")]).await?;
    stage.id(IMAGE_OBJECT).await
}

#[test]
fn a_second_release_shares_the_image() -> Result<()> {
    on_stage(async |stage| {
        let id = shared(stage).await?;
        ensure!(stage.image_objects().await? == 1, "there are more objects than images");
        ensure!(
            stage.source.reads(DISK) == 1,
            "it was read again: {:?}",
            stage.source.visits()
        );
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was sent again");
        let image = stage.cloud.image(&id).await?;
        ensure!(image["name"] == IMAGE, "{image}");
        Ok(vec![id])
    })
}

#[test]
fn deleted_with_the_last_owner() -> Result<()> {
    on_stage(async |stage| {
        let id = shared(stage).await?;
        stage.delete_release(&tag("v1")).await?;
        stage.image_belongs_to(&[tag("v2")]).await?;
        stage.looked_again(IMAGE_OBJECT, "one is left").await?;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["status"] == "active", "it went with the first of two: {image}");
        stage.delete_release(&tag("v2")).await?;
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        Ok(Vec::new())
    })
}

#[test]
fn retained() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        stage
            .want("ubuntu", DISK, json!({ "deletionPolicy": "Retain" }))
            .await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        stage.delete("ubuntu").await?;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["status"] == "active" && image["os_hidden"] == false, "{image}");
        let marks = image
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(field, _)| field.starts_with("cs_"));
        ensure!(marks.count() == 0, "it still looks like ours: {image}");
        Ok(Vec::new())
    })
}

#[test]
fn readiness_goes_back_when_somebody_deactivates_the_image_and_returns_after_repair() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        stage.publish("v1")?;
        stage.operate().await?;
        stage.want_release(&tag("v1")).await?;
        stage.release_is(&tag("v1"), true).await?;
        let id = stage.id(IMAGE_OBJECT).await?;

        stage.cloud.act(&id, "deactivate").await?;
        stage.look_again(IMAGE_OBJECT, "it is deactivated").await?;
        stage.not_ready(IMAGE_OBJECT, "ImageDeactivated").await?;
        stage.release_is(&tag("v1"), false).await?;

        stage.cloud.act(&id, "reactivate").await?;
        stage.look_again(IMAGE_OBJECT, "it is allowed again").await?;
        stage.ready(IMAGE_OBJECT).await?;
        stage.release_is(&tag("v1"), true).await?;
        ensure!(stage.id(IMAGE_OBJECT).await? == id, "it is another image");
        Ok(vec![id])
    })
}
