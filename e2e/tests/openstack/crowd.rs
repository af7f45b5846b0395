//! Many images at once, and what others notice of them.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    eventually,
    image_server::{ImageServer, Pace},
    journey::SOON,
    provider_operator::identity,
    stage::{DISK, Stage, on_a_stage_of_its_own, small},
};
use http::Method;
use openstack_lab::{
    disk,
    proxy::{Proxy, Trouble},
    real::RealOptions,
    source::{sha256, sha512},
};
use serde_json::json;

const IMAGES: usize = 20;
/// Bytes that each of them has to send.
const SIZE: u64 = 50 << 20;
/// Bytes a second of each: slow enough that all of them are on their way for as long as others are looked at, and that two cores which hash, send and store
/// them have time for others, whatever else they do.
const RATE: u32 = 1 << 20;
/// By then everything was sent, on whatever machine.
const SENT: Duration = Duration::from_mins(15);
/// At least so many changes of another image are counted meanwhile.
const CHANGES: usize = 30;
/// The p99 of how late a status is. `cargo xtask bench images` holds it to a second, where nothing else runs. Here two cores hash, send and store twenty images
/// beside other tests, and by what they are late now and then nobody would know a fault. Whoever waited for a transfer would be later than this: each takes
/// most of a minute.
const BOUND: Duration = Duration::from_secs(5);
/// More requests than that are not made at once, so that a Glance that takes twenty images answers others too.
const THREADS: u16 = 40;
/// What hangs in a cloud that hangs: the list of images, or the login.
const HANGS: [(&str, Method, &str); 2] = [
    ("list", Method::GET, "/v2/images"),
    ("login", Method::POST, "/auth/tokens"),
];

/// Asks for all of them, from a server that stops soon after the beginning of each; returns when it stands there in every one.
async fn begun(stage: &Stage<'_>, server: &ImageServer, disk: &[u8]) -> Result<Vec<String>> {
    let names: Vec<String> = (1..=IMAGES).map(|number| format!("image-{number}")).collect();
    server.set_pace(Pace {
        hold_at: Some(1 << 20),
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

/// Lets all of them go on at once, and returns when the last byte was given.
async fn sent(server: &ImageServer) -> Result<()> {
    server.set_pace(Pace {
        bytes_per_second: Some(RATE),
        ..Pace::default()
    });
    eventually(SENT, "all images to be sent", async || {
        let giving = server.giving();
        ensure!(giving == 0, "{giving} are on their way");
        Ok::<_, anyhow::Error>(())
    })
    .await
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

/// What others notice of transfers.
fn are_fresh(mut waits: Vec<Duration>) -> Result<()> {
    waits.sort();
    let quantile = |percent: usize| waits.get((waits.len() * percent).div_ceil(100).saturating_sub(1));
    let (median, p99) = (quantile(50).context("no change")?, quantile(99).context("no change")?);
    let told = format!("{} changes, median {median:?}, p99 {p99:?}", waits.len());
    eprintln!("{told}");
    ensure!(waits.len() >= CHANGES, "{told}");
    ensure!(*median < Duration::from_secs(1) && *p99 < BOUND, "{told}");
    Ok(())
}

/// Clouds that hang, each in another way, and an image of each that somebody waits with.
async fn hung(stage: &Stage<'_>) -> Result<Vec<(String, Proxy)>> {
    let mut hung = Vec::new();
    for (name, method, part) in HANGS {
        let cloud = Proxy::start(stage.site()).await?;
        cloud.meet(method, part, usize::MAX, Trouble::Hang);
        let secret = format!("hung-{name}");
        stage.journey.apply(identity(&secret, cloud.site())).await?;
        let secret = json!({ "identityRef": { "kind": "Secret", "name": secret } });
        let waiting = format!("waiting-{name}");
        stage.want(&waiting, DISK, secret).await?;
        eventually(SOON, format!("somebody to wait for the {name}"), async || {
            ensure!(cloud.met() > 0, "nobody does");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        hung.push((waiting, cloud));
    }
    Ok(hung)
}

#[test]
fn twenty_images_at_once_all_come_verified_and_neither_they_nor_hung_clouds_hold_up_others() -> Result<()> {
    let options = RealOptions {
        threads: THREADS,
        // Keystone answers one after the other, and would be asked for them two hundred times.
        limits: false,
        ..RealOptions::default()
    };
    on_a_stage_of_its_own(&options, None, async |stage, _| {
        stage.want_disk("other", &small(1)).await?;
        stage
            .operate_with(&["--max-transfers=20", "--max-transfers-total=20"])
            .await?;
        let other = stage.id("other").await?;
        let hung = hung(stage).await?;

        let disk = disk::qcow2_of(2, 64 << 20, SIZE);
        let server = ImageServer::start([(DISK.to_owned(), disk.clone().into())]).await?;
        let names = begun(stage, &server, &disk).await?;
        for name in &names {
            let status = stage.status(name).await?;
            ensure!(!status.ready && status.transfer.is_some(), "{name}: {status:?}");
        }
        let ((), waits) = beside(stage, sent(&server)).await?;
        are_fresh(waits)?;

        let mut ids = vec![other];
        ids.extend(verified(stage, &names, &disk).await?);
        for (waiting, cloud) in hung {
            ensure!(cloud.count(&Method::PUT, "/file") == 0, "{:?}", cloud.passed());
            let status = stage
                .journey
                .api::<OpenStackNodeImageRelease>()
                .get(&waiting)
                .await?
                .status;
            ensure!(!status.as_ref().is_some_and(|status| status.ready), "{status:?}");
            cloud.relent();
            stage.look_again(&waiting, "the cloud answers").await?;
            ids.push(stage.id(&waiting).await?);
        }
        Ok(ids)
    })
}

/// Waits until all of them are there, each sent once; the answer is their ids.
async fn verified(stage: &Stage<'_>, names: &[String], disk: &[u8]) -> Result<Vec<String>> {
    let wanted = (sha256(disk), sha512(disk));
    let mut ids = Vec::new();
    for name in names {
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
    Ok(ids)
}
