//! Releases that cannot be used: each says which of its files is wrong and how, the others go on, and a mended one recovers by itself.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find},
};
use e2e::{
    journey::status,
    releases::{Releases, harbor_tag},
};
use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use tar::{EntryType, Header};

use crate::journey;

/// What is done to the directory of a release, and what its condition then has to say.
struct Damage {
    file: &'static str,
    reason: &'static str,
    harm: fn(&Path) -> Result<()>,
}

const DAMAGES: &[Damage] = &[
    broken("metadata.yaml", "missing", |release| {
        Ok(fs::remove_file(release.join("metadata.yaml"))?)
    }),
    broken("metadata.yaml", "is not what this file must be", |release| {
        Ok(fs::write(release.join("metadata.yaml"), "versions: [")?)
    }),
    broken(
        "metadata.yaml",
        "clusterStack is v77, but the release tag says v",
        |release| {
            replace(
                &release.join("metadata.yaml"),
                "clusterStack: v",
                "clusterStack: v77 # v",
            )
        },
    ),
    broken(
        "metadata.yaml",
        "kubernetes is v1.33.0, but the release tag says 1.34",
        |release| {
            replace(
                &release.join("metadata.yaml"),
                "kubernetes: v1.34.0",
                "kubernetes: v1.33.0",
            )
        },
    ),
    broken("metadata.yaml", "has 6291456 bytes", |release| {
        Ok(File::create(release.join("metadata.yaml"))?.set_len(6 << 20)?)
    }),
    broken("metadata.yaml", "is a symbolic link", |release| {
        fs::rename(release.join("metadata.yaml"), release.join("other.yaml"))?;
        Ok(symlink("other.yaml", release.join("metadata.yaml"))?)
    }),
    broken("notes", "is a directory", |release| {
        Ok(fs::create_dir(release.join("notes"))?)
    }),
    broken("cluster-class", "missing", |release| {
        Ok(fs::remove_file(class_chart(release)?)?)
    }),
    broken("cluster-addon", "missing", |release| {
        Ok(fs::remove_file(chart(release, "cluster-addon")?)?)
    }),
    broken(
        "cluster-class",
        "is not a complete gzip-compressed tar archive",
        |release| {
            let half = fs::metadata(class_chart(release)?)?.len() / 2;
            Ok(File::options().write(true).open(class_chart(release)?)?.set_len(half)?)
        },
    ),
    broken(
        "cluster-class",
        "is not a complete gzip-compressed tar archive",
        |release| Ok(fs::write(class_chart(release)?, "no archive at all")?),
    ),
    broken(
        "cluster-class",
        r#"has the entry "chart/secret", which is neither a file nor a directory"#,
        |release| archive(release, [entry("chart/secret", EntryType::Symlink, 0)]),
    ),
    broken(
        "cluster-class",
        r#"has the entry "chart/hard", which is neither a file nor a directory"#,
        |release| archive(release, [entry("chart/hard", EntryType::Link, 0)]),
    ),
    broken(
        "cluster-class",
        r#"has the entry "chart/../../outside", whose name leaves the archive"#,
        |release| archive(release, [entry("chart/../../outside", EntryType::Regular, 1)]),
    ),
    broken(
        "cluster-class",
        r#"has the entry "/etc/passwd", whose name leaves the archive"#,
        |release| archive(release, [entry("/etc/passwd", EntryType::Regular, 1)]),
    ),
    broken(
        "cluster-class",
        r#"has the entry "chart/large" of 5242881 bytes"#,
        |release| archive(release, [entry("chart/large", EntryType::Regular, (5 << 20) + 1)]),
    ),
    broken("cluster-class", "unpacks to more than 104857600 bytes", |release| {
        let parts: Vec<_> = (0..21)
            .map(|number| entry(&format!("chart/{number}"), EntryType::Regular, 5 << 20))
            .collect();
        archive(release, parts)
    }),
    broken("cluster-class", "has more than 10000 entries", |release| {
        let parts: Vec<_> = (0..=10_000)
            .map(|number| entry(&format!("chart/{number}"), EntryType::Regular, 0))
            .collect();
        archive(release, parts)
    }),
    broken(
        "cluster-class",
        "must hold one top directory with a Chart.yaml",
        |release| {
            archive(
                release,
                [
                    entry("one/values.yaml", EntryType::Regular, 1),
                    entry("two/values.yaml", EntryType::Regular, 1),
                ],
            )
        },
    ),
    broken(
        "cluster-addon",
        r#"the stage "nowhere" of clusteraddon.yaml needs a directory"#,
        |release| replace(&release.join("clusteraddon.yaml"), "name: welcome", "name: nowhere"),
    ),
];

const fn broken(file: &'static str, reason: &'static str, harm: fn(&Path) -> Result<()>) -> Damage {
    Damage { file, reason, harm }
}

fn class_chart(release: &Path) -> Result<PathBuf> {
    chart(release, "cluster-class")
}

/// The archive of a release with this word in its name.
fn chart(release: &Path, word: &str) -> Result<PathBuf> {
    let paths = fs::read_dir(release)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    let named = |path: &&PathBuf| path.to_string_lossy().ends_with(".tgz") && path.to_string_lossy().contains(word);
    paths
        .iter()
        .find(named)
        .cloned()
        .with_context(|| format!("no {word} in {}", release.display()))
}

fn replace(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    anyhow::ensure!(text.contains(from), "{} does not contain {from:?}", file.display());
    Ok(fs::write(file, text.replace(from, to))?)
}

/// An entry of so many zeros under a name that no honest program would write.
fn entry(name: &str, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    for (place, byte) in header.as_old_mut().name.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

/// Replaces the class chart of a release by an archive with these entries.
fn archive(release: &Path, entries: impl IntoIterator<Item = Header>) -> Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(
        File::create(class_chart(release)?)?,
        Compression::fast(),
    ));
    for header in entries {
        archive.append(&header, io::repeat(0).take(header.size()?))?;
    }
    archive.into_inner()?.finish()?;
    Ok(())
}

/// Puts our own stack there in this version, whole or with a damage; the answer is its tag.
fn publish(releases: &Releases, version: &str, damage: Option<&Damage>) -> Result<String> {
    let tag = releases.publish_harbor("v1", version)?;
    if let Some(damage) = damage {
        releases
            .edit(&tag, damage.harm)
            .with_context(|| format!("{}: {}", damage.file, damage.reason))?;
    }
    Ok(tag)
}

/// What a release says of its files, when they are not good.
fn downloaded(release: &ClusterStackRelease) -> Option<(String, String)> {
    let conditions = status(release).conditions;
    let condition = find(&conditions, ConditionType::ClusterStackReleaseDownloaded)?;
    Some((condition.reason.clone()?, condition.message.clone()?))
}

#[test]
fn every_damage_is_told_with_file_and_reason_and_no_other_release_waits_for_it() -> Result<()> {
    journey(async |journey| {
        let versions: Vec<String> = (2..).take(DAMAGES.len()).map(|number| format!("v{number}")).collect();
        for (version, damage) in versions.iter().zip(DAMAGES) {
            publish(&journey.releases, version, Some(damage))?;
        }
        let good = ["v1".to_owned(), "v99".to_owned()];
        for version in &good {
            publish(&journey.releases, version, None)?;
        }
        journey.operate().await?;
        let listed: Vec<_> = good.iter().chain(&versions).collect();
        journey.stack("harbor", json!({ "versions": listed })).await?;
        journey.usable("harbor", "v1, v99").await?;
        for (version, damage) in versions.iter().zip(DAMAGES) {
            let told = |release: &ClusterStackRelease| {
                downloaded(release).is_some_and(|(reason, message)| {
                    reason == "IssueWithReleaseAssets"
                        && message.contains(damage.file)
                        && message.contains(damage.reason)
                })
            };
            let what = format!("told {:?} of {}", damage.reason, damage.file);
            let release = journey.until_release(&harbor_tag(version), &what, told).await?;
            assert!(
                !status(&release).ready && status(&release).resources.is_empty(),
                "{release:#?}"
            );
        }
        // The stack says it too, for those who look no further.
        let told = |stack: &ClusterStack| {
            versions.iter().zip(DAMAGES).all(|(version, damage)| {
                let summary = stack.status.iter().flat_map(|status| &status.summary);
                let row = summary.into_iter().find(|row| row.name == *version);
                row.and_then(|row| row.message.as_deref())
                    .is_some_and(|message| message.contains(damage.reason))
            })
        };
        journey.until_stack("harbor", "telling all of it", told).await?;
        for version in &versions {
            publish(&journey.releases, version, None)?;
        }
        let all: Vec<&str> = good
            .iter()
            .take(1)
            .chain(&versions)
            .chain(good.iter().skip(1))
            .map(String::as_str)
            .collect();
        journey.usable("harbor", &all.join(", ")).await?;
        Ok(())
    })
}
