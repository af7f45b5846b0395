//! Releases that cannot be used: each says which of its files is wrong and how, the others go on, and a mended one recovers by itself.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find},
};
use e2e::{
    journey::status,
    releases::{ADD_ONS, CLASS, Releases, archive as archive_of, harbor_tag, put_into},
    usage::Usage,
};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::json;
use tar::{Archive, Builder, EntryType, Header};

use crate::journey;

/// What is done to the directory of a release, and what its condition then has to say.
struct Damage {
    file: &'static str,
    reason: &'static str,
    condition: ConditionType,
    harm: fn(&Path) -> Result<()>,
}

/// The most that the operator may ever have resident, in MiB, all of them at once: a build for debugging.
const MOST_MEMORY: f64 = 160.0;

/// Longer than what may stand before an entry of an archive.
const LONG: u64 = 2 << 20;

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
        Ok(fs::remove_file(archive_of(release, ADD_ONS)?)?)
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
    broken("cluster-class", BEFORE_AN_ENTRY, |release| {
        let name = entry("././@LongLink", EntryType::GNULongName, LONG);
        archive(release, [name, entry("chart/file", EntryType::Regular, 1)])
    }),
    broken("cluster-class", BEFORE_AN_ENTRY, |release| {
        let attributes = entry("attributes", EntryType::XHeader, LONG);
        archive(release, [attributes, entry("chart/file", EntryType::Regular, 1)])
    }),
    broken("cluster-class", BEFORE_AN_ENTRY, |release| {
        pack(release, |archive| holes(archive, "chart/holes", 4096))
    }),
    broken("metadata.yaml", ONE_BRACKET_MORE, |release| {
        Ok(fs::write(release.join("metadata.yaml"), "[".repeat(60_000))?)
    }),
    broken("metadata.yaml", "is not what this file must be", |release| {
        Ok(fs::write(release.join("metadata.yaml"), "- ".repeat(30_000))?)
    }),
    broken("metadata.yaml", "is not what this file must be", |release| {
        Ok(fs::write(
            release.join("metadata.yaml"),
            alias_bomb() + "versions: *a9\n",
        )?)
    }),
    broken("cluster-class", ONE_BRACKET_MORE, |release| {
        add(release, "Chart.yaml", &"[".repeat(60_000))
    }),
    unreadable("further.yaml", "excessive aliasing", |release| {
        add(release, "templates/further.yaml", &alias_bomb())
    }),
    unreadable("values.yaml", "excessive aliasing", |release| {
        add(release, "values.yaml", &alias_bomb())
    }),
    unreadable("further.yaml", "nests deeper than 250 levels", |release| {
        add(release, "templates/further.yaml", &"- ".repeat(1 << 20))
    }),
    unreadable("values.yaml", "nests deeper than 250 levels", |release| {
        add(release, "values.yaml", &format!("a: {}", "[".repeat(1 << 20)))
    }),
    unreadable("further.yaml", "more than 500000 parts", |release| {
        add(
            release,
            "templates/further.yaml",
            &format!("a:\n{}", "- {}\n".repeat(900_000)),
        )
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

const BEFORE_AN_ENTRY: &str = "more than 1048576 bytes of names and attributes before one entry";
const ONE_BRACKET_MORE: &str = "opens one bracket more than the 1024";

const fn broken(file: &'static str, reason: &'static str, harm: fn(&Path) -> Result<()>) -> Damage {
    Damage {
        file,
        reason,
        condition: ConditionType::ClusterStackReleaseDownloaded,
        harm,
    }
}

/// Files that are what they must be, with a chart in them that is not.
const fn unreadable(file: &'static str, reason: &'static str, harm: fn(&Path) -> Result<()>) -> Damage {
    Damage {
        file,
        reason,
        condition: ConditionType::HelmChartTemplated,
        harm,
    }
}

fn class_chart(release: &Path) -> Result<PathBuf> {
    archive_of(release, CLASS)
}

fn replace(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    anyhow::ensure!(text.contains(from), "{} does not contain {from:?}", file.display());
    Ok(fs::write(file, text.replace(from, to))?)
}

/// An entry of so many bytes under a name that no honest program would write.
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

type Packing = Builder<GzEncoder<File>>;

/// Replaces the class chart of a release by an archive with what is put into it.
fn pack(release: &Path, fill: impl FnOnce(&mut Packing) -> Result<()>) -> Result<()> {
    let chart = File::create(class_chart(release)?)?;
    let mut archive = Builder::new(GzEncoder::new(chart, Compression::fast()));
    fill(&mut archive)?;
    archive.into_inner()?.finish()?;
    Ok(())
}

/// The same with these entries.
fn archive(release: &Path, entries: impl IntoIterator<Item = Header>) -> Result<()> {
    pack(release, |archive| {
        for header in entries {
            archive.append(&header, io::repeat(b'a').take(header.size()?))?;
        }
        Ok(())
    })
}

/// A file with nothing in it and a map of its holes in this many blocks.
fn holes(archive: &mut Packing, name: &str, blocks: usize) -> Result<()> {
    let mut header = entry(name, EntryType::GNUSparse, 0);
    let gnu = header.as_gnu_mut().context("a header of GNU")?;
    gnu.isextended[0] = 1;
    gnu.realsize[0] = b'0';
    header.set_cksum();
    let mut map = vec![0; 512 * blocks];
    for block in 1..blocks {
        map[512 * block - 8] = 1;
    }
    Ok(archive.append(&header, map.as_slice())?)
}

/// Puts a file into the class chart of a release, in place of one of this name.
fn add(release: &Path, file: &str, text: &str) -> Result<()> {
    let chart = class_chart(release)?;
    let mut packed = Archive::new(GzDecoder::new(File::open(&chart)?));
    let first = packed.entries()?.next().context("no chart")??.path()?.into_owned();
    let top = first.iter().next().context("an entry has a name")?;
    put_into(&chart, &Path::new(top).join(file), text.len() as u64, text.as_bytes())
}

/// A text that says more and more with each line: a thousand million letters.
fn alias_bomb() -> String {
    let first = format!("a0: &a0 [{}]\n", ["x"; 10].join(", "));
    let others = (1..10).map(|level| {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{items}]\n")
    });
    first + &others.collect::<String>()
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

/// Whether a release tells what was done to it.
fn tells(release: &ClusterStackRelease, damage: &Damage) -> bool {
    let conditions = status(release).conditions;
    let of_files = damage.condition == ConditionType::ClusterStackReleaseDownloaded;
    find(&conditions, damage.condition).is_some_and(|condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        (!of_files || condition.reason.as_deref() == Some("IssueWithReleaseAssets"))
            && message.contains(damage.file)
            && message.contains(damage.reason)
    })
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
            let told = |release: &ClusterStackRelease| tells(release, damage);
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
        let operator = journey.operator()?;
        operator.check()?;
        let usage = Usage::of(operator.process_id().context("it runs")?)?;
        ensure!(usage.peak_mib < MOST_MEMORY, "{usage:?}");
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
