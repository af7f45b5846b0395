//! Images that the cloud itself fetches, or takes off its stage: they are ready when they are known to be right and not before, and where nothing comes
//! of an import, that is told, and the image is sent instead.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use crds::{
    conditions::ConditionType,
    providers::image_status::{ImagePhase, NodeImageStatus, SentVia},
};
use e2e::stage::{DISK, Stage, on_stage, small};
use http::{Method, StatusCode};
use openstack_lab::{
    proxy::Trouble,
    source::{Article, Source, sha256, sha512},
};
use serde_json::json;

/// Where the source has what stands still half-way.
const HELD: &str = "/held.qcow2";
/// The id of an image that is chosen, so that the proxy knows it.
const READ_BACK: &str = "5eadbac0-0000-4000-8000-000000000001";
/// The same of one that is staged and never imported.
const ON_ITS_STAGE: &str = "5eadbac0-0000-4000-8000-000000000002";
/// By which Glance introduces itself to a source, and we do not.
const GLANCE: &str = "Python";

/// Asks for an image that comes in this way and must be this.
async fn want(stage: &Stage<'_>, name: &str, path: &str, via: &str, digest: &str) -> Result<()> {
    let changes = json!({ "image": { "digest": digest }, "transfer": { "via": via } });
    stage.want(name, path, changes).await
}

/// The same, with this id in the cloud.
async fn want_as(stage: &Stage<'_>, name: &str, id: &str, via: &str, digest: &str) -> Result<()> {
    let image = json!({ "digest": digest, "createOpts": { "id": id } });
    let changes = json!({ "image": image, "transfer": { "via": via } });
    stage.want(name, DISK, changes).await
}

/// Nothing of it can be used: not by its name in the cloud, and not by who waits for the object.
async fn is_held_back(stage: &Stage<'_>, name: &str, id: &str) -> Result<()> {
    let image = stage.cloud.image(id).await?;
    let is_hidden = image["status"] == "active" && image["os_hidden"] == true && image["cs_verified"].is_null();
    ensure!(is_hidden, "{image}");
    let status = stage.status(name).await?;
    ensure!(!status.ready, "{status:?}");
    Ok(())
}

/// The image is there as it must be, marked with this digest; its id.
async fn is_right(stage: &Stage<'_>, name: &str, disk: &[u8], digest: &str) -> Result<String> {
    let id = stage.id(name).await?;
    let image = stage.cloud.image(&id).await?;
    let is_it = image["status"] == "active"
        && image["os_hidden"] == false
        && image["os_hash_value"] == sha512(disk).as_str()
        && image["size"] == disk.len()
        && image["cs_verified"] == digest;
    ensure!(is_it, "{name}: {image}");
    Ok(id)
}

#[test]
fn what_the_cloud_fetched_or_was_staged_is_ready_when_it_is_verified() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        let [short, long] = [sha256(&disk), format!("sha512:{}", sha512(&disk))];
        stage.source.put(DISK, Article::of(disk.clone()));
        stage
            .source
            .put(HELD, Article::of(disk.clone()).held_at(disk.len() / 2));
        let its_bytes = format!("/images/{READ_BACK}/file");
        stage.proxy.meet(Method::GET, &its_bytes, 1, Trouble::Hang);
        want_as(stage, "fetched-256", READ_BACK, "ServerSide", &short).await?;
        want(stage, "fetched-512", HELD, "ServerSide", &long).await?;
        want(stage, "staged-256", DISK, "Staged", &short).await?;
        want(stage, "staged-512", DISK, "Staged", &long).await?;
        stage.operate().await?;

        let is_fetching = |status: &NodeImageStatus| {
            let transfer = status.transfer.as_ref();
            status.phase == Some(ImagePhase::Importing)
                && transfer.is_some_and(|transfer| transfer.via == SentVia::ServerSide)
        };
        let status = stage.until("fetched-512", "fetched by the cloud", is_fetching).await?;
        let transfer = status.transfer.context("a transfer")?;
        let told = (transfer.attempt, transfer.total_bytes, transfer.summary.as_str());
        ensure!(
            told == (1, i64::try_from(disk.len()).ok(), "fetched by the cloud"),
            "{transfer:?}"
        );
        stage.source.let_go();

        // Its digest is not of the kind that the cloud makes.
        stage.met(1).await?;
        let is_verifying = |status: &NodeImageStatus| status.phase == Some(ImagePhase::Verifying);
        stage.until("fetched-256", "compared", is_verifying).await?;
        is_held_back(stage, "fetched-256", READ_BACK).await?;
        stage.proxy.relent();

        let mut ids = Vec::new();
        for (name, digest) in [
            ("fetched-256", &short),
            ("fetched-512", &long),
            ("staged-256", &short),
            ("staged-512", &long),
        ] {
            ids.push(is_right(stage, name, &disk, digest).await?);
            let attempt = stage.status(name).await?.attempt;
            ensure!(attempt == Some(1), "{name} took {attempt:?} attempts");
        }
        // What the cloud says of the others is enough, because what they must have by it is known.
        let count = |method, part| stage.proxy.count(&method, part);
        ensure!(count(Method::GET, "/file") == 1, "{:?}", stage.proxy.passed());
        ensure!(count(Method::PUT, "/file") == 0 && count(Method::PUT, "/stage") == 2);
        ensure!(count(Method::POST, "/import") == 4);
        Ok(ids)
    })
}

/// A source that gives Glance something else than us.
fn puts_what_glance_cannot_have(stage: &Stage<'_>, disk: &[u8]) {
    let good = || Article::of(disk.to_vec());
    stage.source.put(DISK, good());
    stage.source.put("/closed", good().refused_to(GLANCE));
    stage
        .source
        .put("/spoilt", good().otherwise_to(GLANCE, Article::of(small(2))));
    stage
        .source
        .put("/page", good().otherwise_to(GLANCE, Article::page("Please log in")));
}

/// What is told of an image that is there in the end, by which attempt, and why it was not by the first.
async fn is_told(stage: &Stage<'_>, name: &str, attempt: i64, reason: &str, words: &str) -> Result<()> {
    let status = stage.status(name).await?;
    ensure!(status.attempt == Some(attempt), "{name}: {status:?}");
    let failure = status
        .last_failure
        .with_context(|| format!("{name} tells no failure"))?;
    let is_it = failure.reason == reason && failure.message.contains(words);
    ensure!(is_it, "{name}: {failure:?}");
    ensure!(failure.remedy.is_some_and(|remedy| !remedy.is_empty()), "{name}");
    Ok(())
}

#[test]
fn where_nothing_comes_of_an_import_that_is_told_and_the_image_is_sent() -> Result<()> {
    const COULD_NOT: &str = "the cloud could not import the image";
    on_stage(async |stage| {
        let disk = small(1);
        let [short, long] = [sha256(&disk), format!("sha512:{}", sha512(&disk))];
        puts_what_glance_cannot_have(stage, &disk);
        // From there Glance is configured to fetch nothing.
        let elsewhere = Source::start_at(Ipv4Addr::new(127, 0, 0, 2)).await?;
        elsewhere.put(DISK, Article::of(disk.clone()));
        let image = json!({ "url": elsewhere.url(DISK), "digest": short });
        let filtered = json!({ "image": image, "transfer": { "via": "ServerSide" } });
        stage.want("filtered", DISK, filtered).await?;
        want(stage, "closed", "/closed", "ServerSide", &short).await?;
        want(stage, "page", "/page", "ServerSide", &short).await?;
        want(stage, "spoilt-256", "/spoilt", "ServerSide", &short).await?;
        want(stage, "spoilt-512", "/spoilt", "ServerSide", &long).await?;
        want(stage, "wrong", DISK, "ServerSide", &sha256(b"something else")).await?;
        let its_import = format!("/images/{ON_ITS_STAGE}/import");
        let refused = Trouble::answer(StatusCode::FORBIDDEN, &[], "not by you");
        stage.proxy.meet(Method::POST, &its_import, 1, refused);
        want_as(stage, "staged", ON_ITS_STAGE, "Staged", &short).await?;
        stage.operate().await?;

        let ready = [ConditionType::Ready, ConditionType::Stalled];
        let object = |name: &str| format!("openstacknodeimagerelease/{name}");
        stage.journey.kubectl_waits(&object("closed"), ready).await?;
        let [ready, stalled] = ready;
        stage.journey.kubectl_waits(&object("wrong"), [stalled, ready]).await?;
        let mut ids = Vec::new();
        let table = [
            // It was refused before anything was begun: the same record takes the bytes.
            ("filtered", &short, 1, "ImageRefused", "filter"),
            ("closed", &short, 3, "ImportFailed", COULD_NOT),
            ("page", &short, 3, "ImportFailed", COULD_NOT),
            ("spoilt-256", &short, 3, "ImportFailed", COULD_NOT),
            ("spoilt-512", &long, 3, "ImportFailed", COULD_NOT),
            // Nobody takes its bytes off the stage.
            ("staged", &short, 2, "PermissionDenied", "not by you"),
        ];
        for (name, digest, attempt, reason, words) in table {
            ids.push(is_right(stage, name, &disk, digest).await?);
            is_told(stage, name, attempt, reason, words).await?;
        }
        stage.not_ready("wrong", "SourceMismatch").await?;
        stage.is_active(&table.map(|(name, ..)| name)).await?;
        stage.delete("wrong").await?;
        Ok(ids)
    })
}
