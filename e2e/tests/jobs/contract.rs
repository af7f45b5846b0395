//! What holds of every deed that is done in a Job.

use anyhow::{Result, ensure};
use openstack_lab::source::{Article, Source};
use serde_json::{Value, json};

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
        let half = wish.moves().await?;
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
        let said = wish.ended_with("worker", 65).await?;
        ensure!(said.contains("SourceMismatch"), "{said}");
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
        wish.moves().await?;
        // Otherwise the Pod is gone before anybody has seen how its program ended.
        let kept_by = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
        let kept = wish.pods().await?.pop().and_then(|pod| pod.metadata.finalizers);
        let kept = kept.unwrap_or_default();
        let held: Vec<_> = kept.iter().map(String::as_str).chain(["test.example/seen"]).collect();
        wish.patch_pod(&kept_by(json!(held))).await?;
        wish.delete_job().await?;
        let said = wish.ended_with("worker", 143).await?;
        ensure!(said.contains("the Pod was told to end"), "{said}");
        wish.patch_pod(&kept_by(json!([]))).await?;
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
        wish.moves().await?;
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
        wish.moves().await?;
        wish.delete().await
    })
}

#[test]
fn a_file_that_is_taken_away_while_it_is_sent_is_told_as_gone() -> Result<()> {
    everywhere(async |place| {
        let source = Source::start_at(place.kubelet.host()).await?;
        let (path, file) = ("/disk.raw", disk());
        let (half, more) = (file.len() / 2, file.len() / 4 * 3);
        source.put(path, Article::of(file).held_at(half).ending_at(more));
        let wish = place
            .image(
                "gone",
                json!({ "url": source.url(path) }),
                json!({ "execution": "Job" }),
            )
            .await?;
        wish.moves().await?;
        source.take_away(path);
        source.let_go();
        let said = wish.ended_with("worker", 66).await?;
        ensure!(said.contains("SourceGone"), "{said}");
        let status = wish.failure("has no such file").await?;
        ensure!(status["lastFailure"]["reason"] == "SourceNotFound", "{status:#}");
        wish.delete().await
    })
}
