//! Records that somebody deletes in the cloud while the operator is at work on them: whichever call meets that they are gone, another record takes their
//! place, and the image is there in the end, once.

use anyhow::{Context, Result, ensure};
use e2e::{
    eventually,
    journey::SOON,
    stage::{DISK, Stage, on_stage, small},
};
use http::Method;
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::{Article, sha512},
};
use serde_json::json;

/// What was asked of Glance about the image of this id.
fn about(stage: &Stage<'_>, id: &str) -> Vec<Passed> {
    let mut passed = stage.proxy.passed();
    passed.retain(|passed| passed.target.contains(id));
    passed
}

/// The record of an image that is being made, besides those that are there already.
async fn begun(stage: &Stage<'_>, there: &[String]) -> Result<String> {
    eventually(SOON, "a record of it", async || {
        let owned = stage.cloud.owned().await?;
        let new = owned.into_iter().find(|id| !there.contains(id));
        new.context("there is none")
    })
    .await
}

/// The image of this name comes by another record than the one that is gone; its id.
async fn comes_anew(stage: &Stage<'_>, name: &str, gone: &str, disk: &[u8]) -> Result<String> {
    let status = stage.ready(name).await?;
    let id = status.image.context("an image")?.id;
    ensure!(
        id != gone && status.attempt == Some(2),
        "{name}: {id} of attempt {:?}",
        status.attempt
    );
    let image = stage.cloud.image(&id).await?;
    let is_it = image["status"] == "active" && image["os_hash_value"] == sha512(disk).as_str();
    ensure!(is_it, "{name}: {image}");
    let image = stage.cloud.image(gone).await?;
    ensure!(image["status"] == 404, "{name}: {image}");
    Ok(id)
}

/// Where somebody deletes the record.
const CALLS: [(&str, Method, &str, Trouble); 3] = [
    // It was made, and nothing of its bytes has come.
    ("before-its-bytes", Method::PUT, "/file", Trouble::Hang),
    // They are there, and nobody has said so.
    ("before-the-answer", Method::PUT, "/file", Trouble::HoldAnswer),
    // It is whole, and about to be shown.
    ("before-it-is-shown", Method::PATCH, "/v2/images/", Trouble::Hang),
];

#[test]
fn a_record_that_somebody_deletes_at_any_point_is_made_anew() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        let held = Article::of(disk.clone()).held_at(disk.len() / 2);
        stage.source.put("/held", held);
        stage.want("while-it-is-sent", "/held", json!({})).await?;
        stage.operate().await?;
        let gone = stage.cloud.one().await?;
        stage.cloud.becomes(&gone, "saving").await?;
        stage.cloud.delete(&gone).await?;
        stage.source.let_go();
        let mut ids = vec![comes_anew(stage, "while-it-is-sent", &gone, &disk).await?];
        let sent = about(stage, &gone);
        let sent = sent.iter().find(|passed| passed.method == Method::PUT);
        let status = sent.and_then(|sent| sent.status);
        ensure!(status.is_some_and(|status| status == 410), "{sent:?}");

        stage.source.put(DISK, Article::of(disk.clone()));
        for (name, method, part, trouble) in CALLS {
            let met = stage.proxy.met();
            stage.proxy.meet(method.clone(), part, 1, trouble.clone());
            stage.want(name, DISK, json!({})).await?;
            stage.met(met + 1).await?;
            let gone = begun(stage, &ids).await?;
            if trouble == Trouble::HoldAnswer {
                stage.cloud.becomes(&gone, "active").await?;
            }
            stage.cloud.delete(&gone).await?;
            stage.proxy.relent();
            ids.push(comes_anew(stage, name, &gone, &disk).await?);
            let asked = about(stage, &gone);
            let is_it = |passed: &Passed| passed.trouble.is_some() && passed.method == method;
            ensure!(asked.iter().any(is_it), "{name}: {asked:?}");
        }
        Ok(ids)
    })
}
