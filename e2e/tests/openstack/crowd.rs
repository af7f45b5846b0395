//! Many images at once, and what others notice of them.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use e2e::{
    eventually,
    image_server::{ImageServer, Pace},
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, Stage, on_a_fake, small},
};
use http::Method;
use openstack_lab::{
    disk,
    proxy::{Proxy, Trouble},
    source::{sha256, sha512},
};
use serde_json::json;

const IMAGES: usize = 20;
/// Bytes that each of them has to send.
const SIZE: u64 = 50 << 20;
/// Changes of another image while all of them stand in the middle.
const CHANGES: usize = 20;

/// Asks for all of them, from a server that stops in the middle of each; returns when it stands in the middle of every one.
async fn in_the_middle(stage: &Stage<'_>, server: &ImageServer, disk: &[u8]) -> Result<Vec<String>> {
    let names: Vec<String> = (1..=IMAGES).map(|number| format!("image-{number}")).collect();
    server.set_pace(Pace {
        hold_at: Some(disk.len() / 2),
        ..Pace::default()
    });
    let image = json!({ "image": { "url": server.url(DISK), "digest": sha256(disk) } });
    for name in &names {
        stage.want(name, DISK, image.clone()).await?;
    }
    eventually(SOON, format!("{IMAGES} images to be on their way"), async || {
        let giving = server.giving();
        ensure!(giving == IMAGES, "{giving} are");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    Ok(names)
}

/// Changes what becomes of the other image at the end; the answer is for how long its status was not about that.
async fn change(stage: &Stage<'_>, number: usize) -> Result<Duration> {
    let policy = if number.is_multiple_of(2) { "Retain" } else { "Delete" };
    stage.want("other", DISK, json!({ "deletionPolicy": policy })).await?;
    let changed = Instant::now();
    stage.until("other", "still ready", |status| status.ready).await?;
    Ok(changed.elapsed())
}

/// Changes the other image again and again until the work is done.
async fn beside<T>(stage: &Stage<'_>, work: impl Future<Output = Result<T>>) -> Result<(T, Vec<Duration>)> {
    let mut work = pin!(work);
    let mut waits = Vec::new();
    loop {
        tokio::select! {
            done = &mut work => return done.map(|done| (done, waits)),
            waited = change(stage, waits.len()) => waits.push(waited?),
        }
    }
}

/// What others notice of transfers: as a rule less than a second, on a machine as busy as this one is. How much less, a benchmark says.
fn are_fresh(mut waits: Vec<Duration>) -> Result<()> {
    waits.sort();
    let median = waits[waits.len() / 2];
    let longest = waits[waits.len() - 1];
    let is_fresh = median < Duration::from_secs(1) && longest < Duration::from_secs(10);
    let told = format!("{} changes, median {median:?}, longest {longest:?}", waits.len());
    ensure!(is_fresh, "{told}");
    Ok(())
}

#[test]
fn twenty_images_at_once_all_come_verified_and_neither_they_nor_a_hung_cloud_hold_up_others() -> Result<()> {
    // A real Glance of this size answers nobody while it has ten bodies to wait for.
    on_a_fake(async |stage, _| {
        let hung = Proxy::start(stage.site()).await?;
        hung.meet(Method::GET, "/v2/images", usize::MAX, Trouble::Hang);
        stage.journey.apply(identity("hung", hung.site())).await?;
        stage.want_disk("other", &small(1)).await?;
        stage
            .operate_with(&["--max-transfers=20", "--max-transfers-total=20"])
            .await?;
        let other = stage.id("other").await?;
        let secret = json!({ "identityRef": { "kind": "Secret", "name": "hung" } });
        stage.want("waiting", DISK, secret).await?;
        eventually(SOON, "somebody to wait for the hung cloud", async || {
            ensure!(hung.met() > 0, "nobody does");
            Ok::<_, anyhow::Error>(())
        })
        .await?;

        let disk = disk::qcow2_of(2, 64 << 20, SIZE);
        let server = ImageServer::start([(DISK.to_owned(), disk.clone().into())]).await?;
        let (names, mut waits) = beside(stage, in_the_middle(stage, &server, &disk)).await?;
        for number in 1..=CHANGES {
            waits.push(change(stage, number).await?);
            ensure!(server.giving() == IMAGES, "the change was waited for by the transfers");
        }
        are_fresh(waits)?;
        for name in &names {
            let status = stage.status(name).await?;
            ensure!(!status.ready && status.transfer.is_some(), "{name}: {status:?}");
        }

        server.set_pace(Pace::default());
        let wanted = (sha256(&disk), sha512(&disk));
        let mut ids = vec![other];
        for name in &names {
            let id = stage.id(name).await?;
            let image = stage.cloud.image(&id).await?;
            let is_verified = image["status"] == "active"
                && image["cs_verified"] == wanted.0.as_str()
                && image["os_hash_value"] == wanted.1.as_str();
            ensure!(is_verified, "{name}: {image}");
            ids.push(id);
        }
        let puts = stage.proxy.count(&Method::PUT, "/file");
        ensure!(puts == IMAGES + 1, "{puts} uploads of {} images", IMAGES + 1);
        ensure!(hung.count(&Method::PUT, "/file") == 0, "{:?}", hung.passed());
        let waiting = stage
            .journey
            .api::<crds::providers::openstack::OpenStackNodeImageRelease>();
        let waiting = waiting.get("waiting").await?.status.unwrap_or_default();
        ensure!(!waiting.ready, "{waiting:?}");

        hung.relent();
        stage.look_again("waiting", "the cloud answers").await?;
        ids.push(stage.id("waiting").await?);
        Ok(ids)
    })
}
