//! Glance is killed while it takes images, and started again on what it left, or takes no more of one.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::providers::image_status::NodeImageStatus;
use e2e::{
    eventually,
    journey::SOON,
    stage::{DISK, Stage, message_of, on_a_stage_that_may_fall, on_stage, small},
};
use http::Method;
use openstack_lab::{
    disk,
    proxy::{Point, Trouble},
    real::Real,
    source::{Article, sha256, sha512},
};
use serde_json::{Value, json};

/// A cloud that was killed never says that it gave something up: what it sends is given a minute, what it fetches as long as flags say.
const PATIENCE: Duration = Duration::from_mins(10);
/// The changes on the way of an image by the stage up to its import: the record, its bytes, the mark, the import.
const UP_TO_IMPORT: usize = 4;
/// So many bytes that no connection takes all of them on its way.
const LARGE: u64 = 24 << 20;

/// The three ways into a cloud.
const WAYS: [(&str, &str); 3] = [("sent", "Upload"), ("fetched", "ServerSide"), ("staged", "Staged")];

async fn want(stage: &Stage<'_>, name: &str, path: &str, via: &str, digest: &str) -> Result<()> {
    let changes = json!({ "image": { "digest": digest }, "transfer": { "via": via } });
    stage.want(name, path, changes).await
}

/// Waits until the cloud takes an image of this name.
async fn taken(stage: &Stage<'_>, name: &str) -> Result<()> {
    eventually(SOON, format!("the cloud to take {name}"), async || {
        let images = stage.cloud.images().await?;
        let is_taken = |image: &&Value| {
            let at_work = ["saving", "uploading", "importing"]
                .map(Value::from)
                .contains(&image["status"]);
            image["name"] == name && at_work
        };
        ensure!(images.iter().any(|image| is_taken(&image)), "{images:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Waits until the image is there, for as long as it takes to give up on the cloud before.
async fn ready(stage: &Stage<'_>, name: &str) -> Result<NodeImageStatus> {
    eventually(PATIENCE, format!("{name} to be ready"), async || {
        let status = stage.status(name).await?;
        ensure!(status.ready, "{status:?}");
        Ok::<_, anyhow::Error>(status)
    })
    .await
}

/// The cloud has fallen, which is told, and stands again.
async fn rise(stage: &Stage<'_>, real: &mut Real, name: &str) -> Result<()> {
    stage.look_again(name, "it fell").await?;
    let message = message_of(&stage.not_ready(name, "CloudUnavailable").await?);
    ensure!(!message.is_empty(), "nothing is told");
    real.restart_glance().await
}

pub(super) fn images_that_the_cloud_was_taking_when_it_was_killed_are_there_in_the_end() -> Result<()> {
    on_a_stage_that_may_fall(async |stage, real| {
        let disk = small(1);
        let digest = sha256(&disk);
        stage.source.put(DISK, Article::of(disk.clone()));
        stage.operate_with(&["--image-import-timeout=1"]).await?;
        want(stage, "there", DISK, "Upload", &digest).await?;
        let mut ids = vec![stage.id("there").await?];

        // While it makes an image of what is on its stage.
        let strike = stage
            .proxy
            .strike_at(stage.proxy.changes().len() + UP_TO_IMPORT, Point::After);
        want(stage, "imported", DISK, "Staged", &digest).await?;
        let struck = strike.wait(SOON).await?;
        ensure!(struck.target.ends_with("/import"), "{struck:?}");
        real.kill_glance().await?;
        drop(struck);
        rise(stage, real, "imported").await?;

        // While it is sent one image, fetches another, and is sent a third to its stage.
        stage
            .source
            .put("/held", Article::of(disk.clone()).held_at(disk.len() / 2));
        for (name, via) in WAYS {
            want(stage, name, "/held", via, &digest).await?;
            taken(stage, name).await?;
        }
        real.kill_glance().await?;
        rise(stage, real, "sent").await?;
        stage.source.let_go();

        for name in ["imported", "sent", "fetched", "staged"] {
            let status = ready(stage, name).await?;
            ids.push(status.image.context("an image")?.id);
            let failure = status.last_failure;
            // It took them on, and never said that nothing comes of them.
            let is_told = failure
                .as_ref()
                .is_some_and(|failure| failure.reason == "ImportFailed" && failure.message.contains("in time"));
            ensure!(is_told || name == "sent", "{name}: {failure:?}");
        }
        for id in &ids {
            let image = stage.cloud.image(id).await?;
            let is_it = image["os_hash_value"] == sha512(&disk).as_str() && image["cs_verified"] == digest.as_str();
            ensure!(is_it, "{image}");
        }
        Ok(ids)
    })
}

pub(super) fn a_cloud_that_takes_no_more_of_an_image_is_told_of_and_not_waited_for() -> Result<()> {
    on_stage(async |stage| {
        let disk = disk::qcow2_of(1, 2 * LARGE, LARGE);
        stage
            .proxy
            .meet(Method::PUT, "/file", 1, Trouble::StallRequest(1 << 20));
        stage.want_disk("ubuntu", &disk).await?;
        stage.operate().await?;
        let told = eventually(PATIENCE, "the stall to be told of", async || {
            let status = stage.status("ubuntu").await?;
            let failure = status.last_failure.clone().with_context(|| format!("{status:?}"))?;
            Ok::<_, anyhow::Error>((status.ready, failure.message))
        })
        .await?;
        ensure!(!told.0 && told.1.contains("took nothing"), "{told:?}");
        stage.proxy.relent();
        let id = ready(stage, "ubuntu").await?.image.context("an image")?.id;
        let image = stage.cloud.image(&id).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

pub(super) fn what_lies_on_a_stage_and_nobody_takes_off_is_given_up_and_the_image_sent() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        let digest = sha256(&disk);
        stage.source.put(DISK, Article::of(disk.clone()));
        // Nobody knows what became of a request without an answer, and what was begun by another one may go on.
        let cases = [
            ("sent-lost", Method::PUT, "/stage", Trouble::LoseAnswer),
            ("mark-lost", Method::PATCH, "", Trouble::LoseAnswer),
            ("import-cut", Method::POST, "/import", Trouble::CutRequest(5)),
        ];
        for (number, (name, method, part, trouble)) in cases.iter().enumerate() {
            let id = format!("57a6ed00-0000-4000-8000-{number:012}");
            let part = format!("/images/{id}{part}");
            stage.proxy.meet(method.clone(), &part, 1, trouble.clone());
            let image = json!({ "digest": digest, "createOpts": { "id": id } });
            let changes = json!({ "image": image, "transfer": { "via": "Staged" } });
            stage.want(name, DISK, changes).await?;
        }
        stage.operate().await?;
        let mut ids = Vec::new();
        for (name, ..) in &cases {
            let status = ready(stage, name).await?;
            let failure = status.last_failure.with_context(|| format!("{name} tells nothing"))?;
            let is_told = failure.reason == "ImportFailed" && failure.message.contains("in time");
            ensure!(is_told && failure.attempt == Some(1), "{name}: {failure:?}");
            ensure!(status.attempt == Some(2), "{name} took {:?} attempts", status.attempt);
            let id = status.image.context("an image")?.id;
            let image = stage.cloud.image(&id).await?;
            ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{name}: {image}");
            ids.push(id);
        }
        ensure!(stage.proxy.met() == cases.len(), "{:?}", stage.proxy.passed());
        Ok(ids)
    })
}
