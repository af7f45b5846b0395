//! The faults of the image controller of the OpenStack resource controller, none of which this operator has: a test for each, by its number.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{
    eventually,
    stage::{DISK, on_stage, small},
};
use http::Method;
use openstack_lab::{proxy::Trouble, source::Article};
use serde_json::json;

/// It sends within its one reconcile at a time.
#[test]
fn o1_an_upload_holds_up_no_other_image() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage
            .source
            .put("/slow.qcow2", Article::of(disk.clone()).held_at(disk.len() / 2));
        stage.want("slow", "/slow.qcow2", json!({})).await?;
        stage.operate().await?;
        let is_sending = |status: &crds::providers::image_status::NodeImageStatus| status.transfer.is_some();
        stage.until("slow", "on its way", is_sending).await?;
        stage.want_disk("quick", &small(2)).await?;
        let quick = stage.id("quick").await?;
        let slow = stage.until("slow", "on its way still", is_sending).await?;
        ensure!(!slow.ready, "{slow:?}");
        stage.source.let_go();
        Ok(vec![quick, stage.id("slow").await?])
    })
}

/// It does not look at the status of what it reads.
#[test]
fn o2_a_404_page_is_never_sent() -> Result<()> {
    on_stage(async |stage| {
        let raw = json!({ "image": { "createOpts": { "disk_format": "raw" } } });
        stage.want("ubuntu", "/disk.raw", raw).await?;
        stage.operate().await?;
        stage.not_ready("ubuntu", "SourceNotFound").await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 0, "it was sent");
        stage.cloud.holds(&[]).await?;

        let mut disk = openstack_lab::disk::raw(7, 300_000);
        disk[..3].copy_from_slice(&[0xEB, 0x63, 0x90]);
        stage.source.put("/disk.raw", Article::of(disk));
        stage.look_again("ubuntu", "it is there").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

/// It sends again into a record that takes nothing any more.
#[test]
fn o3_a_spoilt_record_is_not_used_again() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::POST, "/v2/images", 1, Trouble::HoldAnswer);
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let spoilt = stage.cloud.one().await?;
        stage.kill().await?;
        let refused = stage.cloud.put(&spoilt, &openstack_lab::disk::raw(9, 200_000)).await;
        ensure!(refused.is_err(), "the cloud took what is no qcow2");
        stage.proxy.relent();
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        let image = status.image.context("an image")?;
        ensure!(status.attempt == Some(2) && image.id != spoilt, "{image:?}");
        Ok(vec![image.id])
    })
}

/// A record that is being sent when its sender or the cloud dies is waited for without end.
#[test]
fn o4_saving_for_ever_ends() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::PUT, "/file", 1, Trouble::Strand(100_000));
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        stage.met(1).await?;
        let stranded = stage.cloud.one().await?;
        stage.cloud.becomes(&stranded, "saving").await?;
        // A minute without a change is what it is given, from when it was seen last to change; for ever is longer than this.
        eventually(Duration::from_mins(10), "a later attempt", async || {
            let attempt = stage.status("ubuntu").await?.attempt;
            ensure!(attempt == Some(2), "{attempt:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let image = stage.ready("ubuntu").await?.image.context("an image")?;
        ensure!(image.id != stranded, "{image:?}");
        Ok(vec![image.id])
    })
}

/// Between the answer of a create and the write of it, its image is found by its name alone.
#[test]
fn o5_a_create_without_an_answer_is_found_by_its_id() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::POST, "/v2/images", 1, Trouble::LoseAnswer);
        stage.source.put(DISK, Article::of(small(1)));
        // Others of the name are in nobody's way as long as nobody can use them.
        stage.cloud.queued("ubuntu").await?;
        stage.want("ubuntu", DISK, json!({})).await?;
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(stage.proxy.met() == 1, "{:?}", stage.proxy.passed());
        Ok(vec![status.image.context("an image")?.id])
    })
}
