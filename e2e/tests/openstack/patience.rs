//! A cloud that asks for patience has it: of all its images, at every call, and in both forms in which it can say how long.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::stage::{DISK, Stage, message_of, on_stage, small};
use http::{Method, StatusCode};
use openstack_lab::{
    proxy::{Passed, Trouble},
    source::Article,
};
use serde_json::json;

/// Clocks of proxies and timers differ by less.
const SLACK: Duration = Duration::from_millis(500);

/// The request that was refused last, and those after it.
fn since_refused(passed: &[Passed]) -> Result<(&Passed, &[Passed])> {
    let refused = passed.iter().rposition(|passed| passed.trouble.is_some());
    let (before, since) = passed.split_at(refused.context("nothing was refused")? + 1);
    Ok((before.last().context("it is among them")?, since))
}

#[test]
fn a_cloud_that_refuses_one_image_for_a_while_is_left_alone_by_another_one_too() -> Result<()> {
    // More than it is left alone that does not say for how long.
    const ASKED: Duration = Duration::from_secs(12);
    on_stage(async |stage| {
        let busy = [("retry-after", "12")];
        let busy = Trouble::answer(StatusCode::TOO_MANY_REQUESTS, &busy, "too many at once");
        stage.proxy.meet(Method::POST, "/v2/images", 1, busy);
        stage.want_disk("first", &small(1)).await?;
        stage.operate().await?;
        stage.met(1).await?;
        stage.want("second", DISK, json!({})).await?;
        let told = message_of(&stage.not_ready("second", "Throttled").await?);
        ensure!(told.contains("too many at once"), "{told}");
        let ids = vec![stage.id("first").await?, stage.id("second").await?];

        let passed = stage.proxy.passed();
        let (refused, since) = since_refused(&passed)?;
        let early: Vec<_> = since
            .iter()
            .filter(|passed| passed.at < refused.at + ASKED - SLACK)
            .filter(|passed| passed.method != Method::GET || passed.target.contains("second"))
            .collect();
        ensure!(early.is_empty(), "it was not left alone: {early:?}");
        Ok(ids)
    })
}

/// What a cloud says, to which call, and for how long nobody may ask it for the same.
struct Refusal {
    image: &'static str,
    method: Method,
    part: &'static str,
    status: StatusCode,
    headers: &'static [(&'static str, &'static str)],
    asked: Duration,
}

impl Refusal {
    async fn heeded(self, stage: &Stage<'_>) -> Result<String> {
        // A body that is not read breaks the connection, and the answer may be lost.
        let refusal = Trouble::answer(self.status, self.headers, "not now").once_heard();
        stage.proxy.meet(self.method, self.part, 1, refusal);
        stage.want(self.image, DISK, json!({})).await?;
        let status = stage.ready(self.image).await?;
        ensure!(status.attempt == Some(1), "{}: {status:?}", self.image);
        let passed = stage.proxy.passed();
        let (refused, since) = since_refused(&passed)?;
        let is_same = |again: &&Passed| again.method == refused.method && again.target == refused.target;
        let again = since.iter().find(is_same).context("nobody asked again")?;
        let waited = again.at - refused.at;
        ensure!(
            waited + SLACK >= self.asked,
            "{}: it was asked again after {waited:?}",
            self.image
        );
        Ok(status.image.context("a ready image has an id")?.id)
    }
}

#[test]
fn what_a_cloud_refuses_for_a_while_is_asked_for_no_sooner() -> Result<()> {
    const SECONDS: &[(&str, &str)] = &[("retry-after", "3")];
    const DATE: &[(&str, &str)] = &[
        ("date", "Fri, 27 Nov 2026 01:00:00 GMT"),
        ("retry-after", "Fri, 27 Nov 2026 01:00:07 GMT"),
    ];
    let (seconds, until) = (Duration::from_secs(3), Duration::from_secs(7));
    let refusal = |image, method, part, status, headers, asked| Refusal {
        image,
        method,
        part,
        status,
        headers,
        asked,
    };
    let (put, post) = (Method::PUT, Method::POST);
    let (file, images) = ("/file", "/v2/images");
    let refusals = [
        refusal("rate", put.clone(), file, StatusCode::TOO_MANY_REQUESTS, DATE, until),
        // Without a time it would be a bound of the project, for which people must make room.
        refusal("size", put, file, StatusCode::PAYLOAD_TOO_LARGE, SECONDS, seconds),
        refusal(
            "away",
            post.clone(),
            images,
            StatusCode::SERVICE_UNAVAILABLE,
            SECONDS,
            seconds,
        ),
        refusal("gone", post, images, StatusCode::SERVICE_UNAVAILABLE, DATE, until),
    ];
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        stage.operate().await?;
        let mut ids = Vec::new();
        for refusal in refusals {
            ids.push(refusal.heeded(stage).await?);
        }
        Ok(ids)
    })
}
