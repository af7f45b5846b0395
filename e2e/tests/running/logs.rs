//! What a person reads at the usual level: the story in few lines, and nothing twice.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Ended, Operator, eventually,
    journey::{SOON, journey},
};
use serde_json::Value;

use crate::{STACK, elapse, log_lines, subscribe};

/// The lines with this message.
fn said<'a>(lines: &'a [Value], message: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["message"] == message).collect()
}

#[test]
fn a_usual_run_tells_its_story_in_few_lines() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        operator.ready().await?;
        subscribe(journey).await?;
        journey.release_ready(&tag).await?;
        journey.usable(STACK, "v1").await?;
        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        let log = operator.log().to_owned();
        ensure!(operator.stop().await? == Ended::Status(0));

        let lines = log_lines(&log)?;
        let usual = lines.iter().all(|line| line["level"] == "INFO");
        ensure!(usual && lines.len() <= 12, "{lines:#?}");
        let first = lines.first().context("an empty log")?;
        ensure!(
            first["message"] == "core-operator" && first["namespace"] == journey.namespace.as_str(),
            "{first}"
        );
        ensure!(first["version"].is_string() && first["source"].is_string(), "{first}");
        ensure!(first["leader_election"] == false, "{first}");
        let created = said(&lines, "release created");
        ensure!(
            created.len() == 1 && created[0]["release"] == tag.as_str(),
            "{lines:#?}"
        );
        let ready = said(&lines, "ready");
        let ready: Vec<_> = ready.iter().filter(|line| line["name"] == tag.as_str()).collect();
        ensure!(
            ready.len() == 1 && ready[0]["objects"] == 7 && ready[0]["seconds"].is_u64(),
            "{lines:#?}"
        );
        ensure!(
            said(&lines, "gone, with everything that it brought").len() == 1,
            "{lines:#?}"
        );
        ensure!(
            lines.last().is_some_and(|line| line["message"] == "stopped"),
            "{lines:#?}"
        );
        Ok(())
    })
}

#[test]
fn a_release_that_cannot_be_used_is_told_once_with_its_reason() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let metadata = journey.releases.folder_of(&tag).join("metadata.yaml");
        std::fs::write(&metadata, "versions: [no map]")?;
        journey.operate().await?;
        subscribe(journey).await?;
        let broken = |release: &ClusterStackRelease| {
            release
                .status
                .as_ref()
                .is_some_and(|status| !status.conditions.is_empty())
        };
        journey.until_release(&tag, "told that it is broken", broken).await?;
        // Looked at again, with the same outcome.
        journey.restart_operator().await?;
        let key = crds::labels::REQUESTED_AT;
        journey.annotate::<ClusterStackRelease>(&tag, key, Some("now")).await?;
        let answered = |release: &ClusterStackRelease| {
            let status = release.status.as_ref();
            status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some("now")
        };
        journey.until_release(&tag, "looked at again", answered).await?;
        let lines = log_lines(journey.operator()?.log())?;
        let told = said(&lines, "cannot become ready");
        let told: Vec<_> = told.iter().filter(|line| line["name"] == tag.as_str()).collect();
        ensure!(
            told.len() == 1 && told[0]["level"] == "WARN" && told[0]["reason"] == "IssueWithReleaseAssets",
            "{lines:#?}"
        );
        let why = told[0]["why"].as_str().unwrap_or_default();
        ensure!(why.contains("metadata.yaml"), "{why}");
        Ok(())
    })
}

#[test]
fn what_looks_like_a_mistake_is_told_at_the_start() -> Result<()> {
    journey(async |journey| {
        journey.options.namespace = "nowhere-at-all".to_owned();
        journey.options.release_dir = journey.folder().join("not-there");
        let operator = Operator::start(journey.lab(), &journey.options)?;
        eventually(SOON, "both to be told", async || {
            let lines = log_lines(operator.log())?;
            let told = |message: &str| {
                lines.iter().any(|line| {
                    line["level"] == "WARN" && line["message"].as_str().is_some_and(|told| told.starts_with(message))
                })
            };
            ensure!(told("the release directory does not exist"), "{lines:#?}");
            ensure!(told("the namespace does not exist"), "{lines:#?}");
            Ok(())
        })
        .await?;
        operator.kill().await
    })
}

#[test]
fn an_api_server_that_is_not_there_is_told_once() -> Result<()> {
    journey(async |journey| {
        let kubeconfig = journey.folder().join("nobody-listens");
        std::fs::write(
            &kubeconfig,
            "clusters: [{ name: c, cluster: { server: 'https://me:secret@127.0.0.1:1' } }]\nusers: [{ name: u, user: {} }]\n\
             contexts: [{ name: lab, context: { cluster: c, user: u } }]\ncurrent-context: lab\n",
        )?;
        journey.options.kubeconfig = kubeconfig;
        let operator = Operator::start(journey.lab(), &journey.options)?;
        elapse(Duration::from_secs(6)).await?;
        let lines = log_lines(operator.log())?;
        let loud: Vec<_> = lines.iter().filter(|line| line["level"] != "INFO").collect();
        ensure!(loud.len() == 1, "{loud:#?}");
        ensure!(
            loud[0]["message"] == "unable to reach the API server https://127.0.0.1:1",
            "{loud:#?}"
        );
        ensure!(
            !std::fs::read_to_string(operator.log())?.contains("secret"),
            "{lines:#?}"
        );
        operator.kill().await
    })
}
