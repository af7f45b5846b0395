//! A network, a cloud and a source that fail at chosen requests and bytes. Whatever fails, the image is there in the end, once.

use std::{collections::BTreeSet, fs, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::OpenStackClusterStackRelease;
use e2e::{
    releases::{copy, corpus},
    stage::{DISK, Stage, message_of, on_stage, small},
};
use http::{Method, StatusCode};
use openstack_lab::{
    disk,
    proxy::Trouble,
    source::{Article, sha512},
};
use serde_json::json;

/// Where a request ends, or its answer.
fn cuts(length: u64) -> Vec<(Method, &'static str, Trouble)> {
    let images = "/v2/images";
    vec![
        (Method::GET, "/v2/images?", Trouble::CutAnswer(0)),
        (Method::GET, "/v2/images?", Trouble::CutAnswer(5)),
        (Method::POST, images, Trouble::CutRequest(5)),
        (Method::POST, images, Trouble::CutAnswer(5)),
        (Method::PUT, "/file", Trouble::CutRequest(0)),
        (Method::PUT, "/file", Trouble::CutRequest(1)),
        (Method::PUT, "/file", Trouble::CutRequest(100_000)),
        (Method::PUT, "/file", Trouble::CutRequest(length - 1)),
        (Method::PATCH, images, Trouble::CutRequest(3)),
        (Method::PATCH, images, Trouble::CutAnswer(3)),
    ]
}

#[test]
fn cut_at_byte_n_in_every_phase() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let logins = [Trouble::CutRequest(10), Trouble::CutAnswer(20)];
        for login in &logins {
            stage.proxy.meet(Method::POST, "/auth/tokens", 1, login.clone());
        }
        stage.want("first", DISK, json!({})).await?;
        stage.operate().await?;
        let mut ids = vec![stage.id("first").await?];
        ensure!(stage.proxy.met() == logins.len(), "{:?}", stage.proxy.passed());
        let cuts = cuts(disk.len() as u64);
        for (number, (method, part, trouble)) in cuts.iter().enumerate() {
            stage.proxy.meet(method.clone(), part, 1, trouble.clone());
            let name = format!("image-{number}");
            stage.want(&name, DISK, json!({})).await?;
            let id = stage.id(&name).await?;
            ensure!(
                stage.proxy.met() == logins.len() + number + 1,
                "{method} {part} {trouble:?} did not come"
            );
            let image = stage.cloud.image(&id).await?;
            ensure!(
                image["os_hash_value"] == sha512(&disk).as_str(),
                "{method} {part} {trouble:?}: {image}"
            );
            ids.push(id);
        }
        Ok(ids)
    })
}

/// So many bytes that no connection takes all of them on its way: whoever answers early has closed it before they are sent.
fn large() -> Vec<u8> {
    disk::qcow2_of(1, 64 << 20, 32 << 20)
}

/// What somebody on the way says who reads no body.
fn early(status: StatusCode, words: &str) -> Trouble {
    let body = json!({ "error": { "message": words } }).to_string();
    Trouble::answer(status, &[("content-type", "application/json")], &body)
}

#[test]
fn early_401() -> Result<()> {
    on_stage(async |stage| {
        stage
            .proxy
            .meet(Method::PUT, "/file", 1, early(StatusCode::UNAUTHORIZED, "who are you?"));
        stage.want_disk("ubuntu", &large()).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(
            stage.proxy.met() == 1 && stage.proxy.count(&Method::PUT, "/file") == 2,
            "{:?}",
            stage.proxy.passed()
        );
        Ok(vec![id])
    })
}

/// Whoever asks again waits as long as he was told to.
async fn waits(stage: &mut Stage<'_>, headers: &[(&str, &str)]) -> Result<String> {
    let busy = Trouble::answer(StatusCode::TOO_MANY_REQUESTS, headers, "not now");
    // The question for the image alone: whoever looks for orphans asks for all, and not soon again.
    stage.proxy.meet(Method::GET, "cs_object=", 1, busy);
    stage.want_disk("ubuntu", &small(1)).await?;
    stage.operate().await?;
    let id = stage.id("ubuntu").await?;
    let passed = stage.proxy.passed();
    let refused = passed
        .iter()
        .position(|passed| passed.trouble.is_some())
        .context("nothing was refused")?;
    let mut since = passed[refused + 1..].iter();
    let again = since.find(|again| again.target == passed[refused].target);
    let again = again.context("nobody asked again")?;
    let waited = again.at - passed[refused].at;
    ensure!(
        waited >= Duration::from_millis(2_500),
        "it was asked again after {waited:?}"
    );
    Ok(id)
}

#[test]
fn retry_after_seconds() -> Result<()> {
    on_stage(async |stage| Ok(vec![waits(stage, &[("retry-after", "3")]).await?]))
}

#[test]
fn retry_after_a_date() -> Result<()> {
    let headers = [
        ("date", "Fri, 27 Nov 2026 01:00:00 GMT"),
        ("retry-after", "Fri, 27 Nov 2026 01:00:03 GMT"),
    ];
    on_stage(async |stage| Ok(vec![waits(stage, &headers).await?]))
}

#[test]
fn bursts_of_503() -> Result<()> {
    on_stage(async |stage| {
        let away = Trouble::answer(StatusCode::SERVICE_UNAVAILABLE, &[], "");
        let calls = [
            (Method::POST, "/v2/images"),
            (Method::PUT, "/file"),
            (Method::PATCH, "/v2/images/"),
        ];
        for (method, part) in calls.clone() {
            stage.proxy.meet(method, part, 2, away.clone());
        }
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(stage.proxy.met() == 2 * calls.len(), "{:?}", stage.proxy.passed());
        Ok(vec![id])
    })
}

#[test]
fn html_bodies_are_told_in_words() -> Result<()> {
    on_stage(async |stage| {
        let page = "<html><head><title>502</title></head><body><center><h1>502 Bad Gateway</h1></center><hr>the balancer</body></html>";
        let page = Trouble::answer(StatusCode::BAD_GATEWAY, &[("content-type", "text/html")], page);
        stage.proxy.meet(Method::GET, "/v2/images?", usize::MAX, page);
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let message = message_of(&stage.not_ready("ubuntu", "CloudUnavailable").await?);
        ensure!(
            message.contains("502") && message.contains("the balancer") && !message.contains('<'),
            "{message}"
        );
        stage.proxy.relent();
        stage.look_again("ubuntu", "it is back").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

#[test]
fn lost_answers_repeat_nothing_that_is_done() -> Result<()> {
    on_stage(async |stage| {
        for (method, part) in [
            (Method::PUT, "/file"),
            (Method::PATCH, "/v2/images/"),
            (Method::DELETE, "/v2/images/"),
        ] {
            stage.proxy.meet(method, part, 1, Trouble::LoseAnswer);
        }
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was sent again");
        stage.delete("ubuntu").await?;
        ensure!(stage.proxy.met() == 3, "{:?}", stage.proxy.passed());
        Ok(Vec::new())
    })
}

#[test]
fn stalled_cloud() -> Result<()> {
    on_stage(async |stage| {
        stage.proxy.meet(Method::GET, "/v2/images?", usize::MAX, Trouble::Hang);
        stage.want_disk("ubuntu", &small(1)).await?;
        stage.operate().await?;
        stage.not_ready("ubuntu", "CloudUnavailable").await?;
        stage.proxy.relent();
        stage.look_again("ubuntu", "it answers").await?;
        Ok(vec![stage.id("ubuntu").await?])
    })
}

#[test]
fn a_source_that_breaks_is_read_on_within_one_upload() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage
            .source
            .put(DISK, Article::of(disk.clone()).breaking_every(disk.len() / 3 + 1));
        stage.want("ubuntu", DISK, json!({})).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(stage.proxy.count(&Method::PUT, "/file") == 1, "it was sent again");
        ensure!(
            stage
                .source
                .visits()
                .iter()
                .any(|visit| visit.from.is_some_and(|from| from > 0)),
            "it began anew"
        );
        let image = stage.cloud.image(&id).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

#[test]
fn the_real_ferrol_release_alone() -> Result<()> {
    const TAG: &str = "openstack-ferrol-1-27-v4";
    let Some(corpus) = corpus() else { return Ok(()) };
    on_stage(async |stage| {
        let folder = stage.journey.folder().join("ferrol").join(TAG);
        copy(&corpus.join("releases").join(TAG), &folder)?;
        let path = folder.join("node-images.yaml");
        let images = fs::read_to_string(&path).context("failed to read the images of the release")?;
        let url = images
            .lines()
            .find_map(|line| line.trim().strip_prefix("- url: "))
            .context("a url")?;
        // Nothing else of it is changed.
        fs::write(&path, images.replace(url, &stage.source.url(DISK))).context("failed to change a url")?;
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        // What was kept of it is what its Go provider reads, and so does ours.
        let kept: BTreeSet<_> = fs::read_dir(&folder)?
            .map(|file| Ok(file?.file_name()))
            .collect::<Result<_>>()?;
        ensure!(
            kept == ["metadata.yaml", "node-images.yaml"].map(Into::into).into(),
            "{kept:?}"
        );
        stage.journey.releases.publish(&folder)?;
        stage.operate().await?;
        stage.want_release(TAG).await?;
        stage.release_is(TAG, true).await?;
        let release = stage.journey.api::<OpenStackClusterStackRelease>().get(TAG).await?;
        let rows = release.status.unwrap_or_default().images;
        ensure!(rows.len() == 1 && rows[0].ready, "{rows:?}");
        let id = stage.cloud.one().await?;
        let image = stage.cloud.image(&id).await?;
        let is_it = image["name"] == "ubuntu-capi-image-v1.27.8"
            && image["visibility"] == "shared"
            && image["os_hash_value"] == sha512(&disk).as_str();
        ensure!(is_it, "{image}");
        Ok(vec![id])
    })
}
