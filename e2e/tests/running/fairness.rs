//! What never comes to an end delays nothing else: a source, a file, a write, a rendering.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionStatus, ConditionType, find},
    labels,
};
use e2e::{
    FaultProxy, Journey, Metrics, eventually,
    fault_proxy::{Delay, Late},
    journey::{SOON, journey, status},
    releases::{FAILS_IN_USE, StackSource, harbor_tag},
    web::IndexServer,
};
use http::Method;
use serde_json::json;

/// Of the stacks the first four hang.
const STACKS: usize = 100;

/// Of the others so many come from the same server as those that hang, the rest from a directory.
const FROM_SERVER: usize = 12;

/// Fewer workers than stacks by far, and more than may be kept by two of them.
const WORKERS: u16 = 4;

/// More than are ever made of one write while this test runs: each hangs for half a minute.
const ATTEMPTS: usize = 50;

/// A template that takes longer than any rendering may, but not while the release is made: then the namespace is another one.
const ENDLESS: &str = "{% if Release.Namespace != \"default\" %}{% for a in range(end=100000) %}{% for b in range(end=100000) %}\
    {% if a == -1 %}x{% endif %}{% endfor %}{% endfor %}{% endif %}";

/// A write that never gets an answer, as often as it is tried.
pub(crate) struct HungWrite {
    hangs: Arc<AtomicBool>,
    waiting: Vec<Delay>,
    now: Late,
}

impl HungWrite {
    /// Holds every write of this sort that comes, and waits for the first.
    pub(crate) async fn of(proxy: &FaultProxy, method: Method, end: String) -> Result<Self> {
        let hangs = Arc::new(AtomicBool::new(true));
        let delays = (0..ATTEMPTS).map(|_| {
            let (hangs, method, end) = (Arc::clone(&hangs), method.clone(), end.clone());
            proxy.delay(move |write| {
                hangs.load(Ordering::SeqCst) && write.method == method && write.path.ends_with(&end)
            })
        });
        let mut waiting: Vec<Delay> = delays.collect();
        let now = waiting.remove(0).wait(SOON).await?;
        Ok(Self { hangs, waiting, now })
    }

    /// Waits for the next attempt when this one was given up.
    async fn hang(&mut self) -> Result<()> {
        if !self.now.is_awaited() {
            self.now = self.waiting.remove(0).wait(SOON).await?;
        }
        Ok(())
    }

    /// Lets the next attempt pass; this one fails.
    fn end(self) {
        self.hangs.store(false, Ordering::SeqCst);
    }
}

/// The version of the stack with this number, and the name of the stack.
fn numbered(number: usize) -> (String, String) {
    (format!("v{number}"), format!("harbor-{number}"))
}

/// Packs a release for the web server; the operator has no directory with it.
fn publish(journey: &Journey, server: &IndexServer, number: usize, source: Option<&StackSource>) -> Result<String> {
    let (version, _) = numbered(number);
    let tag = match source {
        Some(source) => journey.releases.publish_stack(&source.path(), &version)?,
        None => journey.releases.publish_harbor("v1", &version)?,
    };
    server.publish(&journey.releases.folder_of(&tag))?;
    journey.releases.unpublish(&tag)?;
    Ok(tag)
}

fn is_on_server(number: usize) -> bool {
    number < 4 + FROM_SERVER
}

/// Without a server from the directory.
async fn ask_for(journey: &Journey, number: usize, server: Option<&IndexServer>) -> Result<()> {
    let (version, name) = numbered(number);
    let mut spec = json!({ "versions": [version] });
    if let Some(server) = server {
        spec["source"] = server.source();
    }
    journey.stack(&name, spec).await
}

/// How many of the releases are ready.
async fn ready(journey: &Journey) -> Result<usize> {
    let releases = journey
        .api::<ClusterStackRelease>()
        .list(&kube::api::ListParams::default())
        .await?;
    Ok(releases.iter().filter(|release| status(release).ready).count())
}

/// Begins what never ends, and waits until all four are at it: no worker that they keep is free when the others come.
async fn hang(journey: &Journey, proxy: &FaultProxy, silent: &IndexServer, server: &IndexServer) -> Result<HungWrite> {
    let endless = StackSource::harbor("v1")?;
    endless.write("cluster-class/templates/endless.tera", ENDLESS)?;
    silent.server.keep_silent(|_| true);
    publish(journey, silent, 0, None)?;
    let no_file = publish(journey, server, 1, None)?;
    server
        .server
        .keep_silent(move |target| target.contains(&format!("/{no_file}/")));
    let no_answer = publish(journey, server, 2, None)?;
    publish(journey, server, 3, Some(&endless))?;
    for (number, source) in [(0, silent), (1, server), (2, server), (3, server)] {
        ask_for(journey, number, Some(source)).await?;
    }
    let write = HungWrite::of(proxy, Method::PATCH, format!("/clusterclasses/{no_answer}")).await?;
    eventually(SOON, "questions without an answer", async || {
        let unanswered = [silent.server.unanswered(), server.server.unanswered()];
        ensure!(unanswered.iter().all(|count| *count > 0), "{unanswered:?}");
        Ok(())
    })
    .await?;
    let is_slow = |release: &ClusterStackRelease| reason(release) == Some("TemplateNewClusterStackFailed");
    let endless = harbor_tag(&numbered(3).0);
    journey.until_release(&endless, "too slow", is_slow).await?;
    Ok(write)
}

fn reason(release: &ClusterStackRelease) -> Option<&str> {
    let conditions = &release.status.as_ref()?.conditions;
    find(conditions, ConditionType::Ready)?.reason.as_deref()
}

#[test]
fn four_of_a_hundred_that_never_come_to_an_end_delay_none_of_the_others() -> Result<()> {
    journey(async |journey| {
        let proxy = journey.behind_a_proxy().await?;
        let (silent, server) = (IndexServer::start().await?, IndexServer::start().await?);
        let cache = journey.folder().join("cache");
        journey.options.flags.extend([
            "--allow-plain-http".into(),
            "--allow-source-network=127.0.0.0/8".into(),
            format!("--cache-dir={}", cache.display()).into(),
            format!("--concurrency={WORKERS}").into(),
        ]);
        for number in 4..STACKS {
            if is_on_server(number) {
                publish(journey, &server, number, None)?;
            } else {
                journey.releases.publish_harbor("v1", &numbered(number).0)?;
            }
        }
        journey.operate().await?;
        let mut write = hang(journey, &proxy, &silent, &server).await?;
        ensure!(ready(journey).await? == 0, "nothing else was asked for");

        for number in 4..STACKS {
            ask_for(journey, number, is_on_server(number).then_some(&server)).await?;
        }
        pass_by(journey, &mut write).await?;
        all_ready(journey).await?;
        for number in 4..STACKS {
            let (version, name) = numbered(number);
            journey.usable(&name, &version).await?;
        }
        still_hang(journey).await?;

        write.end();
        journey.release_ready(&harbor_tag(&numbered(2).0)).await?;
        Ok(())
    })
}

/// Waits until releases become ready while one and the same attempt of the write hangs, and not only between two attempts.
async fn pass_by(journey: &Journey, write: &mut HungWrite) -> Result<()> {
    loop {
        write.hang().await?;
        let before = ready(journey).await?;
        ensure!(before < STACKS - 4, "all of them waited for attempts to end");
        let passed = eventually(SOON, "another release to be ready", async || {
            let is_more = ready(journey).await? > before;
            let hangs = write.now.is_awaited();
            ensure!(is_more || !hangs, "{before} are ready");
            Ok::<_, anyhow::Error>(is_more && hangs)
        })
        .await?;
        if passed {
            return Ok(());
        }
    }
}

/// Waits for all that do not hang. However long that takes on this machine: one after the other has to become ready.
async fn all_ready(journey: &Journey) -> Result<()> {
    loop {
        let before = ready(journey).await?;
        if before == STACKS - 4 {
            return Ok(());
        }
        eventually(SOON, "another release to be ready", async || {
            let now = ready(journey).await?;
            ensure!(now > before, "{now} are ready");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
}

/// What hung when the others came has hung since.
async fn still_hang(journey: &Journey) -> Result<()> {
    let stack = journey.api::<ClusterStack>().get(&numbered(0).1).await?;
    let conditions = stack.status.context("a status")?.conditions;
    let synced = find(&conditions, ConditionType::ReleasesSynced);
    ensure!(
        synced.is_none_or(|synced| synced.status != ConditionStatus::True),
        "{synced:?}"
    );
    for number in 1..4 {
        let tag = harbor_tag(&numbered(number).0);
        let release = journey.api::<ClusterStackRelease>().get(&tag).await?;
        ensure!(!status(&release).ready, "{tag} became ready");
    }
    Ok(())
}

/// Three for each worker, and more than are rendered at once by far.
const SLOW: usize = 12;

/// As many others.
const QUICK: usize = 20;

/// A Go template that takes as many steps as a chart may, and then is stopped; but not while the release is made.
const LONG: &str = "{{ if ne .Release.Namespace \"default\" }}{{ range until 100 }}\
    {{ $_ := derivePassword 1 \"long\" \"password\" \"user\" \"example.com\" }}{{ end }}{{ end }}";

/// Whether the chart of a release is waited for.
fn is_awaited(release: &ClusterStackRelease) -> bool {
    reason(release) == Some("Progressing")
}

#[test]
fn three_times_as_many_slow_charts_as_workers_delay_none_that_are_quick() -> Result<()> {
    journey(async |journey| {
        journey.options.flags.push(format!("--concurrency={WORKERS}").into());
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/long.yaml", LONG)?;
        for number in 0..SLOW {
            // Each is another chart: of the same one, only the first would take time from others.
            source.write("cluster-class/number.txt", &number.to_string())?;
            journey.releases.publish_stack(&source.path(), &numbered(number).0)?;
        }
        for number in SLOW..SLOW + QUICK {
            journey.releases.publish_harbor("v1", &numbered(number).0)?;
        }
        journey.operate().await?;
        for number in 0..SLOW {
            ask_for(journey, number, None).await?;
        }
        for number in 0..SLOW {
            let tag = harbor_tag(&numbered(number).0);
            journey.until_release(&tag, "said to be slow", is_awaited).await?;
        }

        for number in SLOW..SLOW + QUICK {
            ask_for(journey, number, None).await?;
        }
        for number in SLOW..SLOW + QUICK {
            journey.release_ready(&harbor_tag(&numbered(number).0)).await?;
        }
        let slow = (0..SLOW).map(|number| harbor_tag(&numbered(number).0));
        let releases = journey.api::<ClusterStackRelease>();
        let mut awaited = 0;
        for tag in slow.clone() {
            awaited += usize::from(is_awaited(&releases.get(&tag).await?));
        }
        ensure!(awaited > 0, "the others became ready when the slow ones were over");

        for tag in slow {
            let is_stopped = |release: &ClusterStackRelease| reason(release) == Some("TemplateNewClusterStackFailed");
            journey.until_release(&tag, "stopped", is_stopped).await?;
        }
        Ok(())
    })
}

/// How often charts were rendered without success, and releases looked at.
async fn attempts_and_looks(url: &str) -> Result<(f64, f64)> {
    let metrics = Metrics::read(url).await?;
    let sum = |name, label| metrics.sum(name, &[label]).with_context(|| format!("no {name}"));
    Ok((
        sum("stackwright_renders_total", ("outcome", "failed"))?,
        sum("stackwright_reconciles_total", ("kind", "ClusterStackRelease"))?,
    ))
}

#[test]
fn chart_that_is_wrong_is_rendered_once_until_somebody_asks_for_it() -> Result<()> {
    journey(async |journey| {
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/region.yaml", FAILS_IN_USE)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let is_wrong = |release: &ClusterStackRelease| reason(release) == Some("TemplateNewClusterStackFailed");
        journey.until_release(&tag, "wrong", is_wrong).await?;
        let url = journey.operator()?.metrics_url().await?;
        let (once, _) = attempts_and_looks(&url).await?;
        for turn in 0..5 {
            let (_, before) = attempts_and_looks(&url).await?;
            let turn = turn.to_string();
            journey
                .annotate::<ClusterStackRelease>(&tag, "example.com/turn", Some(&turn))
                .await?;
            eventually(SOON, "another look", async || {
                let (_, looks) = attempts_and_looks(&url).await?;
                ensure!(looks > before, "{looks} looks");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        let (attempts, _) = attempts_and_looks(&url).await?;
        ensure!(
            (attempts - once).abs() < 0.5,
            "rendered {attempts} times instead of {once}"
        );

        journey
            .annotate::<ClusterStackRelease>(&tag, labels::REQUESTED_AT, Some("now"))
            .await?;
        eventually(SOON, "another attempt", async || {
            let (attempts, _) = attempts_and_looks(&url).await?;
            ensure!(attempts > once, "{attempts} attempts");
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}
