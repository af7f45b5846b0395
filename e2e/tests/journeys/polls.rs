//! Sources that are asked again and again: GitHub with hundreds of releases, many stacks that share it, one that wants to be left alone, and
//! a web server whose index changes.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionType, find},
};
use e2e::{
    Journey, Metrics, eventually,
    github::{Github, TOKEN},
    journey::{SOON, status},
    releases::harbor_tag,
    web::{IndexServer, Visit},
};
use http::StatusCode;
use kube::api::ListParams;
use serde_json::json;

use crate::journey;

/// The shortest that a stack may ask for.
const OFTEN: &str = "10s";

/// An operator that may reach this machine, and the Secret that stacks name.
async fn operate(journey: &mut Journey) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "github" }, "stringData": { "token": TOKEN },
    });
    journey.apply(secret).await?;
    let cache = journey.folder().join("cache");
    journey.options.flags.extend([
        "--allow-plain-http".into(),
        "--allow-source-network=127.0.0.0/8".into(),
        format!("--cache-dir={}", cache.display()).into(),
    ]);
    journey.operate().await
}

/// Packs our own stack as this version, for a source to publish; the operator has no directory with it.
fn publish(journey: &Journey, version: &str, publish: impl FnOnce(&std::path::Path) -> Result<()>) -> Result<String> {
    let tag = journey.releases.publish_harbor("v1", version)?;
    publish(&journey.releases.folder_of(&tag))?;
    journey.releases.unpublish(&tag)?;
    Ok(tag)
}

/// 250 releases, of which one is ours and on the third page: others of us without files, drafts, and tags of somebody else.
fn fill(journey: &Journey, github: &Github) -> Result<String> {
    let tag = publish(journey, "v1", |release| github.publish(release))?;
    github.tag((0..40).map(|number| format!("v1.{number}.0")));
    for number in 0..9 {
        github.draft(&format!("docker-harbor-1-34-v{}", 900 + number));
    }
    github.tag((0..200).map(|number| format!("docker-other-1-34-v{number}")));
    Ok(tag)
}

fn synced(stack: &ClusterStack) -> Option<&Condition> {
    let status = stack.status.as_ref()?;
    find(&status.conditions, ConditionType::ReleasesSynced)
}

/// The polls of the first page.
fn polls(visits: &[Visit]) -> Vec<&Visit> {
    let is_first = |visit: &&Visit| visit.target.ends_with("&page=1");
    visits.iter().filter(is_first).collect()
}

#[test]
fn a11_f45_a_stack_becomes_ready_from_a_repository_with_250_releases_of_many_sorts() -> Result<()> {
    journey(async |journey| {
        let github = Github::start().await?;
        let tag = fill(journey, &github)?;
        operate(journey).await?;
        let source = github.source("127.0.0.1", Some("github"));
        journey
            .stack("harbor", json!({ "autoSubscribe": true, "source": source }))
            .await?;
        let assets = status(&journey.release_ready(&tag).await?).assets.context("a pin")?;
        ensure!(assets.source.contains("kaas/stacks"), "{}", assets.source);

        let stack = journey.usable("harbor", "v1").await?;
        let told = stack.status.clone().context("a status")?;
        let offered: Vec<_> = told.available.iter().map(|release| release.release.as_str()).collect();
        assert_eq!(
            offered,
            [tag.as_str()],
            "drafts and releases of other stacks are none of its"
        );
        assert_eq!(told.foreign_count, Some(40), "one number for the tags of others");
        let events = journey.events_of(&stack).await?;
        let reasons: BTreeSet<_> = events.iter().map(|(_, reason, _)| reason.as_str()).collect();
        assert_eq!(reasons, BTreeSet::from(["ClusterStackReleaseCreated"]), "{events:?}");

        let pages: BTreeSet<_> = github.api.visits().into_iter().map(|visit| visit.target).collect();
        ensure!(
            pages.iter().any(|page| page.ends_with("per_page=100&page=3")),
            "{pages:?}"
        );
        let stored = github.storage.visits();
        ensure!(!stored.is_empty(), "no file was fetched");
        for visit in stored {
            ensure!(
                visit.authorization.is_none() && visit.status == StatusCode::OK,
                "{visit:?}"
            );
        }
        Ok(())
    })
}

#[test]
fn f31_fifty_stacks_that_poll_an_unchanged_list_cost_answers_304_and_no_write() -> Result<()> {
    const STACKS: usize = 50;
    // A release takes some ten requests, of which a host gets five in a second.
    const RELEASES: usize = 5;
    journey(async |journey| {
        let github = Github::start().await?;
        github.tag((0..200).map(|number| format!("docker-other-1-34-v{number}")));
        for number in 1..=RELEASES {
            publish(journey, &format!("v{number}"), |release| github.publish(release))?;
        }
        operate(journey).await?;
        for number in 1..=STACKS {
            let mut spec = if number <= RELEASES {
                json!({ "versions": [format!("v{number}")] })
            } else {
                json!({ "autoSubscribe": true, "kubernetesVersion": "1.33" })
            };
            spec["interval"] = json!(OFTEN);
            spec["source"] = github.source("127.0.0.1", Some("github"));
            journey.stack(&format!("harbor-{number}"), spec).await?;
        }
        for number in 1..=STACKS {
            let name = format!("harbor-{number}");
            if number <= RELEASES {
                let version = format!("v{number}");
                journey.release_ready(&harbor_tag(&version)).await?;
                journey.usable(&name, &version).await?;
            } else {
                let is_synced = |stack: &ClusterStack| synced(stack).is_some();
                journey.until_stack(&name, "synced", is_synced).await?;
            }
        }
        // Settled when a poll passes that finds nothing new and nobody does anything about.
        let mark = eventually(SOON, "a poll without a write", async || {
            github.api.forget_visits();
            let mark = journey.mark().await?;
            polled(&github, 1).await?;
            let writes = journey.requests_since(mark).await?.writes();
            ensure!(writes.is_empty(), "{writes:#?}");
            Ok(mark)
        })
        .await?;
        polled(&github, 4).await?;

        let asked = journey.requests_since(mark).await?;
        ensure!(asked.clone().writes().is_empty(), "{:#?}", asked.writes());
        // Discovery is read when CRDs change, and other journeys change theirs.
        let reads = asked.reads_other_than_watch().filter(|event| event.object.is_some());
        ensure!(reads.is_empty(), "{reads:#?}");
        let visits = github.api.visits();
        for visit in &visits {
            let is_list = visit.target.starts_with("/repos/kaas/stacks/releases?");
            ensure!(is_list && visit.status == StatusCode::NOT_MODIFIED, "{visit:?}");
        }
        // All of them have it asked once in an interval, and nothing but the list.
        let polls = polls(&visits);
        ensure!(visits.len() <= 2 * polls.len(), "{visits:#?}");
        for (one, next) in polls.iter().zip(&polls[1..]) {
            let pause = next.at.duration_since(one.at);
            ensure!(pause.as_secs_f64() > 9.0, "{one:?} and {next:?}");
        }
        let metrics = journey.operator()?.metrics().await?;
        let unchanged = metrics.sum(
            "stackwright_source_requests_total",
            &[("source", "github"), ("answer", "304")],
        );
        ensure!(unchanged >= Some(5.0), "{unchanged:?}");
        let hit = metrics.sum("stackwright_sources", &[("source", "github"), ("answers", "true")]);
        ensure!(hit == Some(1.0), "{hit:?} sources for fifty stacks");
        Ok(())
    })
}

/// Waits until the list has been asked for so often.
async fn polled(github: &Github, times: usize) -> Result<()> {
    eventually(
        SOON + Duration::from_secs(10) * 4,
        format!("{times} polls"),
        async || {
            let visits = github.api.visits();
            let count = polls(&visits).len();
            ensure!(count >= times, "{count} so far");
            Ok(())
        },
    )
    .await
}

#[test]
fn a11_f31_a_source_that_wants_to_be_left_alone_for_an_hour_is_and_delays_no_other_stack() -> Result<()> {
    journey(async |journey| {
        let (blocked, other) = (Github::start().await?, Github::start().await?);
        blocked.exceed_secondary_limit(3_600);
        let tag = publish(journey, "v1", |release| other.publish(release))?;
        operate(journey).await?;
        let spec = json!({
            "autoSubscribe": true, "kubernetesVersion": "1.33", "interval": OFTEN, "source": blocked.source("localhost", None),
        });
        journey.stack("blocked", spec).await?;
        let is_told = |stack: &ClusterStack| {
            let message = synced(stack)
                .and_then(|condition| condition.message.clone())
                .unwrap_or_default();
            message.contains("(since ")
        };
        let stack = journey.until_stack("blocked", "the outage to be told", is_told).await?;
        let reason = synced(&stack).and_then(|condition| condition.reason.clone());
        assert_eq!(reason.as_deref(), Some("FailedToSync"));

        let source = other.source("127.0.0.1", Some("github"));
        journey
            .stack(
                "harbor",
                json!({ "autoSubscribe": true, "interval": OFTEN, "source": source }),
            )
            .await?;
        journey.release_ready(&tag).await?;
        // Not even when somebody asks for it.
        journey.ask_stack("blocked", "now").await?;
        let newer = publish(journey, "v2", |release| other.publish(release))?;
        journey.ask_stack("harbor", "now").await?;
        journey.release_ready(&newer).await?;
        let visits = blocked.api.visits();
        assert_eq!(visits.len(), 1, "{visits:#?}");

        let metrics = journey.operator()?.metrics().await?;
        let outage = metrics.sum("stackwright_source_outage_seconds", &[("source", "github")]);
        ensure!(outage > Some(0.0), "{outage:?}");
        let refused = metrics.sum(
            "stackwright_source_requests_total",
            &[("source", "github"), ("answer", "4xx")],
        );
        assert_eq!(refused, Some(1.0));
        let held_back = metrics.sum("stackwright_source_requests_held_back_total", &[("source", "github")]);
        ensure!(held_back >= Some(1.0), "{held_back:?}");
        Ok(())
    })
}

#[test]
fn a_file_that_is_not_what_github_reports_is_told_with_both_digests_and_applied_nowhere() -> Result<()> {
    journey(async |journey| {
        let github = Github::start().await?;
        let tag = publish(journey, "v1", |release| github.publish(release))?;
        let class = format!("{}-cluster-class-v1.tgz", tag.trim_end_matches("-v1"));
        let [promised, given] = github.exchange(&class)?;
        operate(journey).await?;
        let source = github.source("127.0.0.1", Some("github"));
        journey
            .stack("harbor", json!({ "versions": ["v1"], "source": source }))
            .await?;
        let words = format!("{class}: the source promised {promised} and gives {given}; it is asked again");
        let is_told = |release: &ClusterStackRelease| {
            let status = status(release);
            let downloaded = find(&status.conditions, ConditionType::ClusterStackReleaseDownloaded);
            downloaded.is_some_and(|condition| {
                let message = condition.message.as_deref().unwrap_or_default();
                condition.reason.as_deref() == Some("ReleaseAssetsNotDownloadedYet") && message.contains(&words)
            })
        };
        let release = journey.until_release(&tag, "told of the other bytes", is_told).await?;
        ensure!(
            !status(&release).ready && status(&release).resources.is_empty(),
            "{release:#?}"
        );
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        let applied = classes.list(&ListParams::default()).await?.items;
        ensure!(applied.is_empty(), "{applied:#?}");
        let kept = std::fs::read_dir(journey.folder().join("cache/sha256"))?.count();
        ensure!(kept == 0, "{kept} releases are kept");

        github.give_back();
        journey.release_ready(&tag).await?;
        Ok(())
    })
}

#[test]
fn a_stack_follows_the_index_of_a_web_server() -> Result<()> {
    journey(async |journey| {
        let server = IndexServer::start().await?;
        let tag = publish(journey, "v1", |release| server.publish(release))?;
        operate(journey).await?;
        let spec = json!({ "autoSubscribe": true, "interval": OFTEN, "source": server.source() });
        journey.stack("harbor", spec).await?;
        journey.release_ready(&tag).await?;
        // Nobody is asked: the next poll finds it.
        let newer = publish(journey, "v2", |release| server.publish(release))?;
        journey.release_ready(&newer).await?;
        let is_next = |stack: &ClusterStack| {
            let status = stack.status.clone().unwrap_or_default();
            status.latest_release.is_some_and(|latest| latest.starts_with(&newer))
        };
        journey
            .until_stack("harbor", "the newer release to be the latest", is_next)
            .await?;
        Ok(())
    })
}

#[test]
fn f42_the_list_of_metrics_is_that_of_a_running_operator() -> Result<()> {
    journey(async |journey| {
        let github = Github::start().await?;
        let tag = publish(journey, "v1", |release| github.publish(release))?;
        operate(journey).await?;
        let source = github.source("127.0.0.1", Some("github"));
        journey
            .stack("harbor", json!({ "autoSubscribe": true, "source": source }))
            .await?;
        journey.release_ready(&tag).await?;
        let page = journey.operator()?.metrics_page().await?;
        let exposed: BTreeSet<String> = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .filter_map(|line| {
                let (name, kind) = line.split_once(' ')?;
                Some(if kind == "counter" {
                    format!("{name}_total")
                } else {
                    name.to_owned()
                })
            })
            .collect();
        let guide = include_str!("../../../docs/reference/operating.md");
        let (_, table) = guide
            .split_once("| metric | what it counts |")
            .context("no table of metrics")?;
        let documented: BTreeSet<String> = table
            .lines()
            .skip(1)
            .take_while(|line| line.is_empty() || line.starts_with('|'))
            .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
            .collect();
        // Where webhooks are served, hooks are answered, or there is a cluster.
        let elsewhere = [
            "stackwright_admission_requests_total",
            "stackwright_hook_answers_total",
            "stackwright_hook_duration_seconds",
            "stackwright_workload_clusters",
            "stackwright_workload_requests_total",
            "tls_certificate_expiry_timestamp_seconds",
            "tls_certificate_refused",
        ];
        let here: BTreeSet<String> = documented
            .iter()
            .filter(|name| !elsewhere.contains(&name.as_str()))
            .cloned()
            .collect();
        assert_eq!(exposed, here);
        // No label is a name, a tag or an address of somebody's.
        for word in [tag.as_str(), "kaas", "127.0.0.1", &journey.namespace, "harbor"] {
            let line = page.lines().find(|line| line.contains(word));
            ensure!(line.is_none(), "{word} in {line:?}");
        }
        let metrics = Metrics::parse(&page)?;
        for (name, labels) in [
            ("stackwright_applies_total", ("outcome", "stored")),
            ("stackwright_renders_total", ("outcome", "rendered")),
            ("stackwright_reconciles_total", ("kind", "ClusterStackRelease")),
            ("stackwright_queue_wait_seconds_count", ("kind", "ClusterStack")),
        ] {
            ensure!(metrics.sum(name, &[labels]) > Some(0.0), "{name}");
        }
        for name in [
            "stackwright_store_bytes",
            "stackwright_store_downloaded_bytes_total",
            "stackwright_store_downloaded_releases_total",
            "stackwright_render_duration_seconds_count",
            "stackwright_apply_duration_seconds_count",
        ] {
            ensure!(metrics.sum(name, &[]) > Some(0.0), "{name}");
        }
        assert_eq!(metrics.sum("stackwright_shard_held", &[]), Some(1.0));
        Ok(())
    })
}
