//! What holds of every deed that is done in a Job.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    everywhere,
    place::{Web, disk},
};

#[test]
fn a_job_brings_the_image_and_says_how_far_it_is() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let wish = place
            .image("done", json!({ "url": web.url }), json!({ "execution": "Job" }))
            .await?;
        let half = wish
            .until("bytes to move", |status| {
                status["transfer"]["sentBytes"].as_i64() > Some(0)
            })
            .await?;
        ensure!(
            half["execution"]["form"] == "Job" && half["execution"]["reason"] == "asked for",
            "{half:#}"
        );
        let pod = wish
            .pods()
            .await?
            .pop()
            .and_then(|pod| pod.metadata.name)
            .unwrap_or_default();
        ensure!(
            half["execution"]["job"]
                .as_str()
                .is_some_and(|job| pod.starts_with(job)),
            "{half:#}"
        );
        web.go_on();
        wish.ready().await?;
        ensure!(wish.bytes()? == disk(), "the bytes are others");
        wish.delete().await
    })
}

#[test]
fn what_can_never_be_is_told_and_not_tried_again_by_the_node() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, true)?;
        let other = json!({ "url": web.url, "digest": format!("sha256:{}", "ab".repeat(32)) });
        let wish = place.image("refused", other, json!({ "execution": "Job" })).await?;
        let status = wish.until("a halt", |status| status["halted"].is_object()).await?;
        ensure!(status["halted"]["reason"] == "SourceMismatch", "{status:#}");
        ensure!(status["phase"] == "Failed" && wish.bytes().is_err(), "{status:#}");
        wish.delete().await
    })
}

#[test]
fn a_job_that_somebody_deletes_is_made_again() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let wish = place
            .image("vanished", json!({ "url": web.url }), json!({ "execution": "Job" }))
            .await?;
        wish.until("bytes to move", |status| {
            status["transfer"]["sentBytes"].as_i64() > Some(0)
        })
        .await?;
        wish.delete_job().await?;
        web.go_on();
        wish.ready().await?;
        ensure!(wish.bytes()? == disk(), "the bytes are others");
        wish.delete().await
    })
}

#[test]
fn a_job_that_takes_too_long_is_told_so_and_the_next_one_goes_on() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let wish = place
            .image("late", json!({ "url": web.url }), json!({ "execution": "Job" }))
            .await?;
        wish.until("bytes to move", |status| {
            status["transfer"]["sentBytes"].as_i64() > Some(0)
        })
        .await?;
        wish.patch_job(&json!({ "spec": { "activeDeadlineSeconds": 1 } }))
            .await?;
        wish.failure("longer than it may").await?;
        web.go_on();
        wish.ready().await?;
        wish.delete().await
    })
}

#[test]
fn what_is_cancelled_while_it_is_sent_leaves_nothing() -> Result<()> {
    everywhere(async |place| {
        let web = Web::start(place, false)?;
        let wish = place
            .image("cancelled", json!({ "url": web.url }), json!({ "execution": "Job" }))
            .await?;
        wish.until("bytes to move", |status| {
            status["transfer"]["sentBytes"].as_i64() > Some(0)
        })
        .await?;
        wish.delete().await
    })
}
