//! Releases from a real registry: found, brought, pinned, and kept through everything that becomes of the registry.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionType, find},
};
use e2e::{
    journey::{Journey, SOON, status},
    operator::sources_of_this_machine,
    registry::{PASSWORD, Registry},
    web::{IndexServer, Moment},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{events::told, journey};

pub(crate) const REPOSITORY: &str = "kaas/stacks";

/// A registry with one release, what stacks need to read it, and an operator that may reach it.
pub(crate) async fn given(journey: &mut Journey) -> Result<(Registry, String)> {
    let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
    let tag = publish(journey, &registry, "v1", "v1")?;
    journey.apply(registry.secret(PASSWORD)?).await?;
    let cache = journey.folder().join("cache");
    journey.options.flags.extend([
        "--allow-source-network=127.0.0.0/8".into(),
        format!("--cache-dir={}", cache.display()).into(),
    ]);
    journey.operate().await?;
    Ok((registry, tag))
}

fn publish(journey: &Journey, registry: &Registry, source: &str, version: &str) -> Result<String> {
    registry.publish(&journey.releases, (source, version), REPOSITORY)
}

pub(crate) fn source(registry: &Registry) -> Value {
    registry.source(REPOSITORY)
}

pub(crate) fn condition(conditions: &[Condition], type_: ConditionType) -> (Option<&str>, &str) {
    let found = find(conditions, type_);
    let reason = found.and_then(|condition| condition.reason.as_deref());
    let message = found.and_then(|condition| condition.message.as_deref());
    (reason, message.unwrap_or_default())
}

fn stack_says(stack: &ClusterStack, type_: ConditionType, reason: &str, words: &str) -> bool {
    let conditions = stack.status.as_ref().map(|status| status.conditions.as_slice());
    let (found, message) = condition(conditions.unwrap_or_default(), type_);
    found == Some(reason) && message.contains(words)
}

#[test]
fn a_stack_follows_a_registry_and_an_outage_changes_nothing_that_is_there() -> Result<()> {
    journey(async |journey| {
        let (mut registry, tag) = given(journey).await?;
        let spec = json!({ "autoSubscribe": true, "interval": "10s", "source": source(&registry) });
        journey.stack("harbor", spec).await?;
        let release = journey.release_ready(&tag).await?;
        let assets = status(&release).assets.context("a pin")?;
        ensure!(
            assets.source.contains(&registry.repository(REPOSITORY)),
            "{}",
            assets.source
        );

        registry.stop().await?;
        journey
            .until_stack("harbor", "the outage to be told", |stack| {
                stack_says(stack, ConditionType::ReleasesSynced, "FailedToSync", "(since ")
            })
            .await?;
        // Another process finds the files where the first one left them.
        journey.kill_operator().await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        classes.delete(&tag, &kube::api::DeleteParams::default()).await?;
        journey.operate().await?;
        e2e::eventually(SOON, "the class to be back", async || classes.get(&tag).await).await?;

        registry.resume(journey.lab()).await?;
        let newer = publish(journey, &registry, "v2", "v2")?;
        journey.release_ready(&newer).await?;
        Ok(())
    })
}

#[test]
fn a11_an_operator_with_an_empty_disk_fetches_again_what_it_had_and_changes_nothing() -> Result<()> {
    journey(async |journey| {
        let (registry, tag) = given(journey).await?;
        let spec = json!({ "versions": ["v1"], "source": source(&registry) });
        journey.stack("harbor", spec).await?;
        let pinned = status(&journey.release_ready(&tag).await?).assets.context("a pin")?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        let uid = async || anyhow::Ok(classes.get(&tag).await?.metadata.uid);
        let before = uid().await?;
        journey.kill_operator().await?;
        fs::remove_dir_all(journey.folder().join("cache"))?;
        journey.operate().await?;
        let release = journey.ask_release(&tag, "after the loss").await?;
        ensure!(
            status(&release).assets.as_ref() == Some(&pinned) && status(&release).ready,
            "{release:#?}"
        );
        ensure!(uid().await? == before, "the class was made anew");
        // Nothing but the files can tell how.
        classes.delete(&tag, &kube::api::DeleteParams::default()).await?;
        e2e::eventually(SOON, "the class to be back", async || classes.get(&tag).await).await?;
        Ok(())
    })
}

#[test]
fn how_far_a_download_is_and_how_large_it_was_stand_in_status_and_metrics() -> Result<()> {
    const LARGE: u64 = 8 << 20;
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let folder = journey.releases.folder_of(&tag);
        fs::File::create(folder.join("large.tgz"))?.set_len(LARGE)?;
        let files = fs::read_dir(&folder)?.map(|file| Ok(file?.metadata()?.len()));
        let size: u64 = files.sum::<std::io::Result<u64>>()?;
        let server = IndexServer::start().await?;
        server.publish(&folder)?;
        journey.releases.unpublish(&tag)?;
        let half = server
            .server
            .stop_at(Moment::InTheMiddle, |_, target| target.ends_with("/large.tgz"));
        let flags = sources_of_this_machine(&journey.folder().join("cache"));
        journey.options.flags.extend(flags);
        journey.operate().await?;
        let spec = json!({ "versions": ["v1"], "source": server.source() });
        journey.stack("harbor", spec).await?;
        let half = half.wait(SOON).await?;
        let is_told = |release: &ClusterStackRelease| {
            let status = status(release);
            let (reason, message) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            reason == Some("ReleaseAssetsNotDownloadedYet")
                && message.starts_with("downloading: 4.")
                && message.ends_with(" of 8.0 MiB")
        };
        journey
            .until_release(&tag, "told how far its download is", is_told)
            .await?;
        let bytes = async |journey: &mut Journey, what: &str| {
            let metrics = journey.operator()?.metrics().await?;
            let name = format!("stackwright_store_{what}bytes");
            let told = metrics.sum(&name, &[]).with_context(|| format!("no {name}"))?;
            Ok::<u64, anyhow::Error>(told.to_string().parse()?)
        };
        let done = bytes(journey, "downloading_").await?;
        ensure!((LARGE / 2..LARGE).contains(&done), "{done}");
        ensure!(bytes(journey, "downloading_expected_").await? == size);
        half.go_on();
        let release = journey.release_ready(&tag).await?;
        let told = status(&release).assets.and_then(|assets| assets.size);
        ensure!(told == Some(i64::try_from(size)?), "{told:?} of {size}");
        ensure!(bytes(journey, "downloading_").await? == 0);
        ensure!(bytes(journey, "").await? == size);
        Ok(())
    })
}

#[test]
fn a11_f24_a_tag_that_was_moved_is_refused_and_what_was_pinned_stays() -> Result<()> {
    journey(async |journey| {
        let (registry, tag) = given(journey).await?;
        let spec = json!({ "versions": ["v1"], "source": source(&registry) });
        journey.stack("harbor", spec).await?;
        let pinned = status(&journey.release_ready(&tag).await?).assets.context("a pin")?;
        ensure!(publish(journey, &registry, "v2", "v1")? == tag, "another tag");
        journey.ask_stack("harbor", "look").await?;
        let moved = |release: &ClusterStackRelease| {
            let status = status(release);
            let (reason, message) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            reason == Some("DigestChanged") && message.contains(&pinned.digest) && status.ready
        };
        let release = journey.until_release(&tag, "the moved tag to be told", moved).await?;
        ensure!(
            status(&release).assets.as_ref() == Some(&pinned),
            "{:?}",
            status(&release).assets
        );
        let is_told = |(sort, reason, message): &(String, String, String)| {
            sort == "Warning" && reason == "DigestChanged" && message.contains(&pinned.digest)
        };
        told(journey, &release, "of the moved tag", is_told).await?;
        // Whoever deletes the release accepts the new bytes.
        journey.delete::<ClusterStackRelease>(&tag).await?;
        let accepted = |release: &ClusterStackRelease| {
            let status = status(release);
            status.ready && status.assets.is_some_and(|assets| assets.digest != pinned.digest)
        };
        journey
            .until_release(&tag, "the new bytes to be taken", accepted)
            .await?;
        Ok(())
    })
}

#[test]
fn a_download_that_fails_is_told_with_since_when_what_was_tried_and_when_next() -> Result<()> {
    journey(async |journey| {
        let (mut registry, tag) = given(journey).await?;
        registry.stop().await?;
        let spec = json!({ "versions": ["v1"], "source": source(&registry) });
        journey.stack("harbor", spec).await?;
        let words = |release: &ClusterStackRelease| {
            let status = status(release);
            let (reason, message) = condition(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            let is_late = reason == Some("ReleaseAssetsNotDownloadedYet") && message.contains("tried 2 times");
            is_late.then(|| message.to_owned())
        };
        let is_told = |release: &ClusterStackRelease| words(release).is_some();
        let release = journey
            .until_release(&tag, "told how long it was tried", is_told)
            .await?;
        let message = words(&release).context("found above")?;
        let (tried, times) = message.rsplit_once(" (since ").context("no since")?;
        ensure!(tried.contains(&registry.repository(REPOSITORY)), "{message}");
        let times = times
            .strip_suffix(')')
            .and_then(|times| times.split_once(", tried 2 times, next try at "));
        let (since, next) = times.context("since when, how often, when next")?;
        let (since, next) = (since.parse::<Timestamp>()?, next.parse::<Timestamp>()?);
        ensure!(since < next, "{message}");
        // The stack has it in the row of the release.
        let has_row = |stack: &ClusterStack| {
            let rows = stack.status.iter().flat_map(|status| &status.summary);
            let mut words = rows.filter_map(|row| row.message.as_deref());
            words.any(|words| words.contains(&format!("(since {since}, tried ")))
        };
        journey.until_stack("harbor", "told the same", has_row).await?;
        registry.resume(journey.lab()).await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a_secret_with_another_password_is_told_and_the_right_one_is_taken_when_it_comes() -> Result<()> {
    journey(async |journey| {
        let (registry, tag) = given(journey).await?;
        journey.apply(registry.secret("wrong-canary")?).await?;
        let spec = json!({ "autoSubscribe": true, "source": source(&registry) });
        journey.stack("harbor", spec).await?;
        let stack = journey
            .until_stack("harbor", "the refusal to be told", |stack| {
                stack_says(stack, ConditionType::ReleasesSynced, "FailedToSync", "credentials")
            })
            .await?;
        let text = serde_json::to_string(&stack)?;
        ensure!(!text.contains("wrong-canary") && !text.contains(PASSWORD), "{text}");
        journey.apply(registry.secret(PASSWORD)?).await?;
        journey.ask_stack("harbor", "again").await?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}
