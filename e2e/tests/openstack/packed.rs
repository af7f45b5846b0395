//! Images of which nobody knows the length before they are there: packed files, and files of servers that do not say it; and servers that begin anew all the
//! time. Their bytes are sent without a length, and what comes of them in Glance is held against the digest of what was unpacked.

use anyhow::{Context, Result, ensure};
use e2e::{
    packed::{PACKED, disk},
    stage::{Stage, on_stage, small},
};
use http::Method;
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::{Article, sha256, sha512},
};
use serde_json::json;

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
