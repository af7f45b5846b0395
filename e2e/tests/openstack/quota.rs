//! A project that is too small for what is asked for: that is told in numbers, and nothing is left of it.

use std::io::Write;

use anyhow::{Result, ensure};
use e2e::stage::{DISK, Left, Stage, message_of, on_a_narrow_stage, small};
use flate2::{Compression, write::GzEncoder};
use http::{Method, StatusCode};
use openstack_lab::{Limits, disk, proxy::Trouble, source::Article};
use serde_json::json;

/// Bytes of a cluster of the disks.
const CLUSTER: usize = 64 << 10;

/// A disk that has 16 MiB where 8 may be. They are the same few all over again, so that it is small when it is packed.
fn large() -> Vec<u8> {
    let mut disk = disk::qcow2_of(1, 32 << 20, 16 << 20);
    let piece = disk::raw(1, CLUSTER / 8);
    // Behind its header and tables.
    for bytes in disk[5 * CLUSTER..].chunks_mut(piece.len()) {
        bytes.copy_from_slice(&piece[..bytes.len()]);
    }
    disk
}

fn packed(disk: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(disk)?;
    Ok(packed.finish()?)
}

/// Waits until it is told that there is no room for an image, how much there may be, and how much there is; and how much it would take, where that is known.
async fn has_no_room(stage: &Stage<'_>, numbers: &str) -> Result<()> {
    let message = message_of(&stage.not_ready("ubuntu", "QuotaExceeded").await?);
    ensure!(message.contains(numbers), "{message}");
    stage.is_active(&[]).await
}

#[test]
fn an_image_for_which_there_is_no_room_is_told_of_in_numbers_and_not_begun() -> Result<()> {
    on_a_narrow_stage(Limits::TINY, async |stage| {
        stage.want_disk("ubuntu", &large()).await?;
        stage.operate().await?;
        has_no_room(stage, "image_size_total: limit 8, used 0, wanted 16").await?;
        let made = stage.proxy.count(&Method::POST, "/v2/images");
        ensure!(made == 0, "{made} records were made for it");

        stage.source.put(DISK, Article::of(small(1)));
        stage.look_again("ubuntu", "there is a smaller one").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

#[test]
fn an_image_that_only_the_upload_shows_to_be_too_large_is_told_of_in_numbers() -> Result<()> {
    on_a_narrow_stage(Limits::TINY, async |stage| {
        // As clouds answer that cannot say how much there is.
        let unknown = Trouble::answer(StatusCode::NOT_FOUND, &[], "");
        stage.proxy.meet(Method::GET, "/info/usage", usize::MAX, unknown);
        stage.want_disk("ubuntu", &large()).await?;
        stage.operate().await?;
        has_no_room(stage, "image_size_total: limit 8, used 0, wanted 16").await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") > 0, "it was not tried");
        stage.delete("ubuntu").await?;
        Ok(Vec::new())
    })
}

/// Until an image is sent, the cloud cannot say how much room there is; then the connection ends so, and that is asked once more.
async fn ends_for_want_of_room(stage: &mut Stage<'_>, trouble: Trouble) -> Result<Left> {
    let unknown = Trouble::answer(StatusCode::NOT_FOUND, &[], "");
    stage.proxy.meet(Method::GET, "/info/usage", 1, unknown);
    stage.proxy.meet(Method::PUT, "/file", usize::MAX, trouble);
    stage.want_disk("ubuntu", &large()).await?;
    stage.operate().await?;
    has_no_room(stage, "image_size_total: limit 8, used 0, wanted 16").await?;
    let tried = stage.proxy.count(&Method::PUT, "/file");
    ensure!(tried == 1, "it was sent {tried} times");

    stage.proxy.relent();
    stage.source.put(DISK, Article::of(small(1)));
    stage.look_again("ubuntu", "there is a smaller one").await?;
    Ok(vec![stage.id("ubuntu").await?])
}

/// Whether the answer arrives is up to the network; both is told alike.
#[test]
fn early_413() -> Result<()> {
    on_a_narrow_stage(Limits::TINY, async |stage| {
        let words = "Request exceeds resource quota: [Resource image_size_total is over limit of 8 due to current usage 0 and delta 16]";
        let body = json!({ "error": { "message": words } }).to_string();
        let json = [("content-type", "application/json")];
        let early = Trouble::answer(StatusCode::PAYLOAD_TOO_LARGE, &json, &body);
        ends_for_want_of_room(stage, early).await
    })
}

/// What is left of an answer that came before the body.
#[test]
fn a_connection_that_breaks_where_there_is_no_room_is_told_of_in_numbers() -> Result<()> {
    on_a_narrow_stage(Limits::TINY, async |stage| {
        ends_for_want_of_room(stage, Trouble::CutRequest(1 << 20)).await
    })
}

/// How large it is nobody knows before it is unpacked, and a cloud takes what is sent without a length.
#[test]
fn a_packed_image_that_is_too_large_when_it_is_unpacked_is_told_of_in_numbers() -> Result<()> {
    on_a_narrow_stage(Limits::TINY, async |stage| {
        let packed = packed(&large())?;
        ensure!(packed.len() < 1 << 20, "it has {} bytes", packed.len());
        stage.source.put("/disk.qcow2.gz", Article::of(packed));
        stage.want("ubuntu", "/disk.qcow2.gz", json!({})).await?;
        stage.operate().await?;
        has_no_room(stage, "image_size_total: limit 8, used 0").await?;
        stage.delete("ubuntu").await?;
        Ok(Vec::new())
    })
}

#[test]
fn a_second_image_waits_where_a_cloud_takes_one_at_a_time() -> Result<()> {
    let one_at_a_time = Limits {
        count_uploading: 1,
        ..Limits::WIDE
    };
    on_a_narrow_stage(one_at_a_time, async |stage| {
        let disk = small(1);
        stage
            .source
            .put("/held", Article::of(disk.clone()).held_at(disk.len() / 2));
        stage.want("first", "/held", json!({})).await?;
        stage.operate().await?;
        let first = stage.cloud.one().await?;
        stage.cloud.becomes(&first, "saving").await?;
        stage.want_disk("second", &small(2)).await?;
        let busy = stage.not_ready("second", "Throttled").await?;
        let message = message_of(&busy);
        ensure!(message.contains("image_count_uploading"), "{message}");

        stage.source.let_go();
        let ids = vec![stage.id("first").await?, stage.id("second").await?];
        ensure!(ids[0] == first, "the first one was begun anew");
        Ok(ids)
    })
}
