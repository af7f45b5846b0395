//! The files of a release arrive in pieces, change under their tag, or do not render.

use std::fs;

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find},
};
use e2e::{
    journey::status,
    releases::{FAILS_IN_USE, StackSource, harbor_tag},
};
use serde_json::json;

use crate::journey;

/// Whether a condition of a release is not True for this reason, with these words in its message.
fn says(release: &ClusterStackRelease, type_: ConditionType, reason: &str, words: &str) -> bool {
    let conditions = status(release).conditions;
    find(&conditions, type_).is_some_and(|condition| {
        condition.reason.as_deref() == Some(reason) && condition.message.as_deref().unwrap_or_default().contains(words)
    })
}

#[test]
fn f23_a_release_that_arrives_in_pieces_is_used_once_it_is_whole() -> Result<()> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let (folder, whole) = (journey.releases.folder_of(&tag), journey.folder().join("whole"));
        fs::rename(&folder, &whole)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let absent = |release: &ClusterStackRelease| {
            says(release, TYPE, "ReleaseAssetsNotDownloadedYet", "is not in the source")
        };
        journey.until_release(&tag, "told that it is not there", absent).await?;
        fs::create_dir(&folder)?;
        let class = format!("{}.tgz", tag.replace("-v1", "-cluster-class-v1"));
        let files = fs::read_dir(&whole)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let files = files.collect::<Result<Vec<_>>>()?;
        assert!(files.contains(&class), "{class} is not among {files:?}");
        for file in files.iter().filter(|file| **file != class && *file != "metadata.yaml") {
            fs::copy(whole.join(file), folder.join(file))?;
        }
        let without_metadata =
            |release: &ClusterStackRelease| says(release, TYPE, "IssueWithReleaseAssets", "metadata.yaml: missing");
        journey
            .until_release(&tag, "told that metadata.yaml is missing", without_metadata)
            .await?;
        fs::copy(whole.join("metadata.yaml"), folder.join("metadata.yaml"))?;
        let missing = format!("{class}: missing");
        let without_class = |release: &ClusterStackRelease| says(release, TYPE, "IssueWithReleaseAssets", &missing);
        journey
            .until_release(&tag, "told that the class chart is missing", without_class)
            .await?;
        // Somebody stops in the middle of a file, and so does the operator.
        let bytes = fs::read(whole.join(&class))?;
        fs::write(folder.join(&class), &bytes[..bytes.len() / 2])?;
        journey.restart_operator().await?;
        let half = |release: &ClusterStackRelease| says(release, TYPE, "IssueWithReleaseAssets", "is not a complete");
        let release = journey
            .until_release(&tag, "told that the class chart is not complete", half)
            .await?;
        assert!(status(&release).resources.is_empty(), "{release:#?}");
        fs::write(folder.join(&class), &bytes)?;
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn f24_other_bytes_under_a_tag_are_refused_until_the_release_is_made_again() -> Result<()> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let first = journey.release_ready(&tag).await?;
        let pinned = status(&first).assets.context("the status pins the bytes")?.digest;
        let objects = journey.inventory(&tag).await?;
        // Other objects under the same tag.
        journey.releases.publish_harbor("v2", "v1")?;
        let refused =
            |release: &ClusterStackRelease| says(release, TYPE, "DigestChanged", &pinned) && !status(release).ready;
        journey.until_release(&tag, "refusing the other bytes", refused).await?;
        journey.restart_operator().await?;
        let told = |stack: &ClusterStack| {
            let mut summary = stack.status.iter().flat_map(|status| &status.summary);
            summary.any(|row| row.message.as_deref().is_some_and(|message| message.contains(&pinned)))
        };
        journey.until_stack("harbor", "telling it", told).await?;
        let again = journey.api::<ClusterStackRelease>().get(&tag).await?;
        assert_eq!(
            status(&again).assets.map(|assets| assets.digest).as_ref(),
            Some(&pinned)
        );
        assert_eq!(journey.inventory(&tag).await?, objects);
        // The old bytes are back, and nothing has to be done.
        journey.releases.publish_harbor("v1", "v1")?;
        journey.release_ready(&tag).await?;
        assert_eq!(journey.inventory(&tag).await?, objects);
        // Somebody wants the new ones.
        journey.releases.publish_harbor("v2", "v1")?;
        journey.until_release(&tag, "refusing the other bytes", refused).await?;
        journey.delete::<ClusterStackRelease>(&tag).await?;
        let made_again =
            |release: &ClusterStackRelease| release.metadata.uid != first.metadata.uid && status(release).ready;
        let second = journey.until_release(&tag, "made again", made_again).await?;
        assert_ne!(
            status(&second).assets.map(|assets| assets.digest).as_ref(),
            Some(&pinned)
        );
        assert_ne!(journey.inventory(&tag).await?.len(), objects.len());
        Ok(())
    })
}

#[test]
fn a_release_stays_usable_when_the_operator_starts_without_its_directory() -> Result<()> {
    const TYPE: ConditionType = ConditionType::ClusterStackReleaseDownloaded;
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let objects = journey.inventory(&tag).await?;
        let ready_and_told = |release: &ClusterStackRelease, reason: Option<&str>| {
            let status = status(release);
            let told = find(&status.conditions, TYPE).map(|condition| condition.reason.as_deref());
            status.ready && told == Some(reason)
        };
        let (root, away) = (journey.releases.root().to_owned(), journey.folder().join("away"));
        fs::rename(&root, &away)?;
        journey.restart_operator().await?;
        let without = |release: &ClusterStackRelease| ready_and_told(release, Some("SourceUnavailable"));
        journey.until_release(&tag, "ready without its files", without).await?;
        assert_eq!(journey.inventory(&tag).await?, objects);
        fs::rename(&away, &root)?;
        let with = |release: &ClusterStackRelease| ready_and_told(release, None);
        journey.until_release(&tag, "ready with its files", with).await?;
        assert_eq!(journey.inventory(&tag).await?, objects);
        Ok(())
    })
}

#[test]
fn words_of_a_chart_steer_no_terminal_wherever_they_are_told() -> Result<()> {
    // As a title and an erased screen, in either spelling of the escape.
    const FAILS: &str = r#"{{ if ne .Release.Namespace "default" }}{{ fail "\u001b]0;owned\u0007\u001b[2J\u009b31mset a region" }}{{ end }}"#;
    const TOLD: &str = "]0;owned [2J 31mset a region";
    journey(async |journey| {
        let failing = StackSource::harbor("v1")?;
        failing.write("cluster-class/templates/region.yaml", FAILS)?;
        journey.releases.publish_stack(&failing.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "autoSubscribe": true })).await?;
        let told = |release: &ClusterStackRelease| {
            says(
                release,
                ConditionType::HelmChartTemplated,
                "TemplateNewClusterStackFailed",
                TOLD,
            )
        };
        let tag = harbor_tag("v1");
        let release = journey
            .until_release(&tag, "told in the words of the chart", told)
            .await?;
        let told = |stack: &ClusterStack| {
            let mut summary = stack.status.iter().flat_map(|status| &status.summary);
            summary.any(|row| row.message.as_deref().is_some_and(|message| message.contains(TOLD)))
        };
        let stack = journey.until_stack("harbor", "telling it too", told).await?;
        let mut texts = vec![format!("{:#?}", stack.status), format!("{:#?}", release.status)];
        // Debugging escapes what steers: whatever is escaped was there.
        for (_, _, note) in journey.events_of(&release).await? {
            texts.push(format!("{note:?}"));
        }
        texts.push(fs::read_to_string(journey.operator()?.log())?);
        assert!(
            texts.iter().filter(|text| text.contains(TOLD)).count() >= 3,
            "{texts:#?}"
        );
        for text in texts {
            let steers = ["\\u{1b}", "\\u{7}", "\\u{9b}", "\\u001b", "\\u0007", "\u{1b}", "\u{9b}"];
            assert!(steers.iter().all(|steers| !text.contains(steers)), "{text}");
        }
        Ok(())
    })
}

#[test]
fn a10_f43_the_words_of_a_chart_that_fails_are_in_the_status_and_a_later_release_recovers() -> Result<()> {
    journey(async |journey| {
        let failing = StackSource::harbor("v1")?;
        failing.write("cluster-class/templates/region.yaml", FAILS_IN_USE)?;
        journey.releases.publish_stack(&failing.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "autoSubscribe": true })).await?;
        let one = harbor_tag("v1");
        let told = |release: &ClusterStackRelease| {
            says(
                release,
                ConditionType::HelmChartTemplated,
                "TemplateNewClusterStackFailed",
                "set a region",
            ) && says(
                release,
                ConditionType::HelmChartTemplated,
                "TemplateNewClusterStackFailed",
                "region.yaml:2",
            ) && says(
                release,
                ConditionType::Ready,
                "TemplateNewClusterStackFailed",
                "set a region",
            )
        };
        let release = journey
            .until_release(&one, "told in the words of the chart", told)
            .await?;
        assert!(
            !status(&release).ready && status(&release).resources.is_empty(),
            "{release:#?}"
        );
        let told = |stack: &ClusterStack| {
            let mut summary = stack.status.iter().flat_map(|status| &status.summary);
            summary.any(|row| {
                !row.ready
                    && row
                        .message
                        .as_deref()
                        .is_some_and(|message| message.contains("set a region"))
            })
        };
        journey.until_stack("harbor", "telling it", told).await?;
        let two = journey.releases.publish_harbor("v1", "v2")?;
        journey.usable("harbor", "v2").await?;
        journey.gone::<ClusterStackRelease>(&one).await?;
        journey.release_ready(&two).await?;
        Ok(())
    })
}
