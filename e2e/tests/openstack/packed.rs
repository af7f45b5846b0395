//! Images of which nobody knows the length before they are there: packed files, and files of servers that do not say it; and servers that begin anew all the
//! time, also where they break off. Their bytes are sent without a length, and what comes of them in Glance is held against the digest of what was unpacked.

use anyhow::{Context, Result, bail, ensure};
use e2e::{
    eventually,
    journey::SOON,
    packed::{PACKED, disk},
    stage::{Stage, on_stage, small},
};
use http::Method;
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::{Article, Visit, sha256, sha512},
};
use serde_json::{Value, json};

/// What was sent of an image, each time that it was.
fn sent(stage: &Stage<'_>, id: &str) -> Vec<Passed> {
    let target = format!("/v2/images/{id}/file");
    let mut passed = stage.proxy.passed();
    passed.retain(|passed| passed.method == Method::PUT && passed.target == target);
    passed
}

/// The image of this name is ready, has these bytes in Glance, and is known there and in the status by this digest at the source; its id.
async fn is_there(stage: &Stage<'_>, name: &str, disk: &[u8], source: &str) -> Result<String> {
    let status = stage.ready(name).await?;
    ensure!(status.attempt == Some(1), "{name}: {status:?}");
    let told = status.image.context("an image")?;
    let is_told = told.sha512 == Some(sha512(disk)) && told.source_digest.as_deref() == Some(source);
    ensure!(is_told, "{name}: {told:?}");
    let image = stage.cloud.image(&told.id).await?;
    let is_it = image["status"] == "active"
        && image["os_hidden"] == false
        && image["size"] == disk.len()
        && image["os_hash_value"] == sha512(disk).as_str()
        && image["cs_verified"] == source;
    ensure!(is_it, "{name}: {image}");
    Ok(told.id)
}

#[test]
fn packed_images_are_sent_unpacked_and_known_by_the_digest_of_the_packed_file() -> Result<()> {
    on_stage(async |stage| {
        // Whichever of them it befalls, in the middle of what comes out of it.
        let cut = Trouble::CutRequest(1_000_000);
        stage.proxy.meet(Method::PUT, "/file", 1, cut.clone());
        for (kind, packed) in PACKED {
            let path = format!("/disk.{kind}");
            stage.source.put(&path, Article::of(packed));
            let image = json!({ "digest": sha256(packed), "createOpts": { "disk_format": "raw" } });
            stage.want(kind, &path, json!({ "image": image })).await?;
        }
        stage.operate().await?;
        let (disk, mut ids, mut cuts) = (disk()?, Vec::new(), 0);
        for (kind, packed) in PACKED {
            let id = is_there(stage, kind, &disk, &sha256(packed)).await?;
            let sent = sent(stage, &id);
            ensure!(sent.iter().all(|sent| sent.announced.is_none()), "{kind}: {sent:?}");
            let (last, before) = sent.split_last().context("it was not sent")?;
            let is_whole = last.status.is_some_and(|status| status == 204) && last.sent == disk.len() as u64;
            ensure!(is_whole, "{kind}: {sent:?}");
            let is_cut = |sent: &Passed| sent.trouble.as_ref() == Some(&cut) && sent.sent == 1_000_000;
            ensure!(before.iter().all(is_cut), "{kind}: {sent:?}");
            cuts += before.len();
            ids.push(id);
        }
        ensure!(cuts == 1, "{cuts} were cut");
        Ok(ids)
    })
}

#[test]
fn a_source_that_says_no_length_or_gives_no_parts_is_as_good_as_another() -> Result<()> {
    on_stage(async |stage| {
        let (first, second) = (small(1), small(2));
        let endless = Article::of(first.clone()).without_a_length().without_ranges();
        stage.source.put("/endless", endless);
        let whole = Article::of(second.clone()).without_ranges();
        stage.source.put("/whole", whole);
        for name in ["endless", "whole"] {
            stage.want(name, &format!("/{name}"), json!({})).await?;
        }
        stage.operate().await?;
        let mut ids = Vec::new();
        for (name, disk, announced) in [("endless", &first, None), ("whole", &second, Some(second.len() as u64))] {
            let id = is_there(stage, name, disk, &sha256(disk)).await?;
            let sent = sent(stage, &id);
            ensure!(sent.len() == 1 && sent[0].announced == announced, "{name}: {sent:?}");
            ids.push(id);
        }
        Ok(ids)
    })
}

/// Has an object ask for a disk of which the source gives no parts. It breaks off behind its middle, once.
struct Breaking<'a> {
    name: &'a str,
    disk: Vec<u8>,
    whole: Article,
}

impl<'a> Breaking<'a> {
    /// `manners`: what else this source is like.
    async fn wanted(
        stage: &Stage<'_>,
        name: &'a str,
        disk: Vec<u8>,
        manners: impl FnOnce(Article) -> Article,
    ) -> Result<Self> {
        let whole = manners(Article::of(disk.clone()).without_ranges());
        let half = disk.len() / 2;
        let article = whole.clone().held_at(half).breaking_every(half + half / 2);
        let breaking = Self { name, disk, whole };
        stage.source.put(&breaking.path(), article);
        stage.want(name, &breaking.path(), json!({})).await?;
        Ok(breaking)
    }

    fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Waits until the cloud takes it; the next one who reads it is given all of it.
    async fn taken(&self, stage: &Stage<'_>) -> Result<()> {
        eventually(SOON, format!("the cloud to take {}", self.name), async || {
            let images = stage.cloud.images().await?;
            let is_taken = |image: &Value| image["name"] == self.name && image["status"] == "saving";
            ensure!(images.iter().any(is_taken), "{images:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        stage.source.put(&self.path(), self.whole.clone());
        Ok(())
    }

    /// It was read so often, and always from its start.
    fn was_read(&self, stage: &Stage<'_>, times: usize) -> Result<()> {
        let (path, visits) = (self.path(), stage.source.visits());
        let of_it: Vec<&Visit> = visits
            .iter()
            .filter(|visit| visit.reads && visit.path == path)
            .collect();
        // Whoever asks for the first byte alone wants to know whether there are parts.
        let is_at_start = of_it.iter().all(|visit| visit.from.is_none_or(|from| from == 0));
        let begun = of_it.iter().filter(|visit| visit.from.is_none()).count();
        ensure!(is_at_start && begun == times, "{path}: {visits:?}");
        Ok(())
    }
}

#[test]
fn a_source_without_parts_that_breaks_off_is_read_again_from_its_start_and_the_image_sent_once() -> Result<()> {
    on_stage(async |stage| {
        let whole = Breaking::wanted(stage, "whole", small(1), |article| article).await?;
        let endless = Breaking::wanted(stage, "endless", small(2), Article::without_a_length).await?;
        stage.operate().await?;
        for breaking in [&whole, &endless] {
            breaking.taken(stage).await?;
        }
        stage.source.let_go();
        let mut ids = Vec::new();
        for (breaking, is_announced) in [(&whole, true), (&endless, false)] {
            let (name, disk) = (breaking.name, &breaking.disk);
            let id = is_there(stage, name, disk, &sha256(disk)).await?;
            breaking.was_read(stage, 2)?;
            let (sent, length) = (sent(stage, &id), disk.len() as u64);
            let is_once = sent.len() == 1
                && sent[0].announced == is_announced.then_some(length)
                && sent[0].sent == length
                && sent[0].status.is_some_and(|status| status == 204);
            ensure!(is_once, "{name}: {sent:?}");
            ids.push(id);
        }
        ensure!(stage.proxy.count(&Method::POST, "/v2/images") == ids.len());
        Ok(ids)
    })
}

#[test]
fn a_file_that_nobody_would_know_again_is_sent_anew_when_its_source_breaks_off() -> Result<()> {
    on_stage(async |stage| {
        let breaking = Breaking::wanted(stage, "ubuntu", small(1), Article::without_a_tag).await?;
        stage.operate().await?;
        breaking.taken(stage).await?;
        stage.source.let_go();
        let disk = &breaking.disk;
        let id = is_there(stage, breaking.name, disk, &sha256(disk)).await?;
        let failure = stage.status(breaking.name).await?.last_failure.context("a failure")?;
        let is_told = failure.reason == "SourceBroken" && failure.message.contains("; pin its digest");
        ensure!(is_told, "{failure:?}");
        breaking.was_read(stage, 2)?;
        // Into the same record, of which the half is gone.
        let (sent, length) = (sent(stage, &id), disk.len() as u64);
        let [half, all] = sent.as_slice() else {
            bail!("{sent:?}");
        };
        let is_half = half.sent < length && half.status.is_none_or(|status| !status.is_success());
        let is_whole = all.sent == length && all.status.is_some_and(|status| status == 204);
        ensure!(is_half && is_whole, "{sent:?}");
        ensure!(
            stage.proxy.count(&Method::POST, "/v2/images") == 1,
            "it has two records"
        );
        Ok(vec![id])
    })
}
