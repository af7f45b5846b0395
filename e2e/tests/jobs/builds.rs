//! Images that are built by somebody's script.

use anyhow::{Context, Result, ensure};
use e2e::{eventually, kubelet::processes_with};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::{
    everywhere,
    place::{PATIENCE, SHELL, Wish},
    really,
};

/// A build by this script.
pub(crate) fn build(script: &str, more: Value) -> Value {
    let mut build = json!({ "image": SHELL, "command": ["/bin/sh", "-c", script], "sizeLimit": "64Mi" });
    if let Value::Object(more) = more {
        build.as_object_mut().expect("it is one").extend(more);
    }
    json!({ "url": "", "build": build })
}

/// The command that shows what a build writes, as soon as it is told.
async fn logs(wish: &Wish<'_>) -> Result<String> {
    let is_told = |status: &Value| status["execution"]["logs"].is_string();
    let status = wish.until("a command that shows the log", is_told).await?;
    Ok(status["execution"]["logs"].as_str().context("a command")?.to_owned())
}

#[test]
fn a_script_builds_a_raw_disk() -> Result<()> {
    everywhere(async |place| {
        let wish = place
            .image("built", build("cat /bin/sh > /artifact/image", json!({})), json!({}))
            .await?;
        let logs = logs(&wish).await?;
        let jobs = wish.jobs().await?;
        let named = jobs
            .iter()
            .map(|job| format!("kubectl logs -n built job/{} -c build", job.name_any()));
        ensure!(named.collect::<Vec<_>>() == [logs], "{jobs:?}");
        let status = wish.ready().await?;
        ensure!(status["execution"]["reason"] == "the image is built", "{status:#}");
        ensure!(wish.bytes()?.starts_with(b"\x7fELF"), "the store has something else");
        wish.delete().await
    })
}

/// As a person types it.
#[test]
fn the_command_in_the_status_shows_what_the_build_wrote() -> Result<()> {
    really(async |place| {
        let script = "echo made by hand; cat /bin/sh > /artifact/image";
        let wish = place.image("logged", build(script, json!({})), json!({})).await?;
        let logs = logs(&wish).await?;
        eventually(PATIENCE, format!("{logs} to show it"), async || {
            let shown = place.typed(&logs).await?;
            ensure!(shown.contains("made by hand"), "{shown}");
            anyhow::Ok(())
        })
        .await?;
        wish.ready().await?;
        wish.delete().await
    })
}

#[test]
fn the_build_has_no_token_no_secret_and_no_store() -> Result<()> {
    really(async |place| {
        let script = "for path in /var/run/secrets /identity /plan /stores; do [ ! -e $path ] || { echo found $path; exit 9; }; done; \
                      while read line; do case $line in *wire*) echo the network of the node; exit 9;; esac; done < /proc/net/dev; \
                      cat /bin/sh > /artifact/image";
        let wish = place.image("confined", build(script, json!({})), json!({})).await?;
        wish.ready().await?;
        wish.delete().await
    })
}

#[test]
fn a_build_that_fails_tells_its_last_lines() -> Result<()> {
    everywhere(async |place| {
        let script = "echo first; echo no such makefile >&2; exit 3";
        let wish = place.image("failing", build(script, json!({})), json!({})).await?;
        let status = wish.failure("ended with code 3").await?;
        let message = status["lastFailure"]["message"].as_str().context("a message")?;
        ensure!(message.contains("no such makefile"), "{message}");
        wish.delete().await
    })
}

#[test]
fn an_artifact_over_its_limit_is_no_image() -> Result<()> {
    everywhere(async |place| {
        let script =
            "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat /bin/sh; done > /artifact/image";
        let wish = place
            .image("large", build(script, json!({ "sizeLimit": "1Mi" })), json!({}))
            .await?;
        let status = wish.failure("sizeLimit").await?;
        ensure!(status["lastFailure"]["reason"] == "BuildFailed", "{status:#}");
        wish.delete().await
    })
}

#[test]
fn a_cancelled_build_leaves_nothing() -> Result<()> {
    everywhere(async |place| {
        // Of this place alone.
        let word = &(u32::from(place.kubelet.host()) % 1_000_000 + 1_000_000).to_string();
        let wish = place
            .image("stopped", build(&format!("sleep {word}"), json!({})), json!({}))
            .await?;
        wish.until("the build to run", |status| {
            status["phase"] == "Building" && !processes_with(word).is_empty()
        })
        .await?;
        wish.delete().await?;
        ensure!(processes_with(word).is_empty(), "the script still runs");
        Ok(())
    })
}
