//! An operator with nothing to do asks nothing: fifty releases, one measured minute, the API server's own audit log.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditEvent, Ended, Journey, Operator,
    audit::{AuditEvents, Mark},
    eventually,
    journey::{SOON, journey, status},
};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

const RELEASES: usize = 50;
/// What is measured. A minute is longer than every interval of the operator but the re-reading of its directory, which
/// ends in that minute too.
const MEASURED: Duration = Duration::from_mins(1);
/// Nothing asked for this long: the operator has settled.
const QUIET: Duration = Duration::from_secs(3);
const DEPLOYMENTS: usize = 10;
const STATUS_WRITES: usize = 1_000;

#[test]
fn a_converged_operator_reads_and_writes_nothing() -> Result<()> {
    journey(async |journey| {
        let operator = converge(journey).await?;

        let mark = journey.mark().await?;
        let begun = Instant::now();
        let over = || {
            if begun.elapsed() >= MEASURED {
                Ok(())
            } else {
                Err("not yet")
            }
        };
        eventually(MEASURED * 2, "the minute to pass", || std::future::ready(over())).await?;
        let asked = journey.requests_since(mark).await?;
        let renewals = asked.clone().lease_writes().len();
        eprintln!(
            "in {MEASURED:?} with {RELEASES} releases: {renewals} renewals of the Lease, and {}",
            told(&asked)
        );
        ensure!(renewals > 0, "the operator does not even renew its Lease");
        nothing_but_watches(&asked)?;

        let mark = journey.mark().await?;
        write_foreign_statuses(journey).await?;
        settled(journey, mark).await?;
        let asked = journey.requests_since(mark).await?;
        eprintln!(
            "during and after {STATUS_WRITES} foreign status writes: {}",
            told(&asked)
        );
        nothing_but_watches(&asked)?;

        let mark = journey.mark().await?;
        ensure!(operator.stop().await? == Ended::Status(0));
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        // It stands by until the Lease is its own.
        eventually(SOON, "the operator to watch releases again", async || {
            let asked = journey.requests_since(mark).await?;
            ensure!(asked.iter().any(watches_releases), "it does not yet");
            Ok(())
        })
        .await?;
        settled(journey, mark).await?;
        operator.check()?;
        let asked = journey.requests_since(mark).await?;
        eprintln!("after a restart: {}", told(&asked));
        let writes = asked.writes();
        ensure!(writes.is_empty(), "a restart writes: {writes:#?}");
        Ok(())
    })
}

/// Fifty releases ready, and nothing asked any more.
async fn converge(journey: &mut Journey) -> Result<Operator> {
    let versions: Vec<String> = (1..=RELEASES).map(|number| format!("v{number}")).collect();
    stream::iter(versions.clone())
        .map(async |version| {
            let releases = journey.releases.clone();
            let pack = tokio::task::spawn_blocking(move || releases.publish_harbor("v1", &version));
            pack.await.context("packing was stopped")?
        })
        .buffer_unordered(4)
        .try_collect::<Vec<String>>()
        .await?;
    let namespace = &journey.namespace;
    journey.options.flags = vec![
        "--leader-elect=true".into(),
        format!("--leader-elect-namespace={namespace}").into(),
    ];
    journey.options.record = None;
    let mark = journey.mark().await?;
    let operator = Operator::start(journey.lab(), &journey.options)?;
    journey.stack("harbor", json!({ "versions": versions })).await?;
    let releases = journey.api::<crds::ClusterStackRelease>();
    eventually(SOON * 2, format!("{RELEASES} releases to be ready"), async || {
        let list = releases.list(&ListParams::default()).await?;
        let ready = list.items.iter().filter(|release| status(release).ready).count();
        ensure!(ready == RELEASES, "{ready} are");
        Ok(())
    })
    .await?;
    journey.usable("harbor", &versions.join(", ")).await?;
    settled(journey, mark).await?;
    Ok(operator)
}

fn watches_releases(event: &AuditEvent) -> bool {
    let object = event.object.as_ref();
    event.verb == "watch" && object.is_some_and(|object| object.resource == "clusterstackreleases")
}

/// Waits until the operator, the Lease apart, has asked nothing for a while.
async fn settled(journey: &Journey, mark: Mark) -> Result<()> {
    let seen = Cell::new((0, Instant::now()));
    eventually(SOON, "the operator to ask nothing", async || {
        let asked = journey
            .requests_since(mark)
            .await?
            .filter(|event| !event.is_lease())
            .len();
        if asked != seen.get().0 {
            seen.set((asked, Instant::now()));
        }
        ensure!(seen.get().1.elapsed() >= QUIET, "{asked} requests");
        Ok(())
    })
    .await
}

/// Deployments that somebody else has in the namespace, restless as Deployments are.
async fn write_foreign_statuses(journey: &Journey) -> Result<()> {
    let names: Vec<String> = (1..=DEPLOYMENTS).map(|number| format!("restless-{number}")).collect();
    for name in &names {
        let labels = json!({ "app": name });
        let pod =
            json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
            "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": pod },
        });
        journey.apply(deployment).await?;
    }
    let deployments = journey.objects("apps/v1", "Deployment");
    let writes = (1..=STATUS_WRITES).map(|number| {
        let (deployments, name) = (&deployments, &names[number % DEPLOYMENTS]);
        async move {
            let restless = Patch::Merge(json!({ "status": { "replicas": number } }));
            deployments.patch_status(name, &PatchParams::default(), &restless).await
        }
    });
    stream::iter(writes).buffer_unordered(8).try_collect::<Vec<_>>().await?;
    Ok(())
}

fn nothing_but_watches(asked: &AuditEvents) -> Result<()> {
    let others = asked.clone().filter(|event| !event.is_lease() && event.verb != "watch");
    ensure!(others.is_empty(), "{others:#?}");
    Ok(())
}

fn told(asked: &AuditEvents) -> String {
    let asked = asked.clone().filter(|event| !event.is_lease());
    let (writes, reads) = (
        asked.clone().writes().len(),
        asked.clone().reads_other_than_watch().len(),
    );
    format!(
        "{writes} writes, {reads} reads, {} watches begun",
        asked.len() - writes - reads
    )
}
