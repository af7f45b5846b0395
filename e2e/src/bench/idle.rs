//! `lab bench idle`: what an operator costs that has nothing to do.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::{
    ground::{Ground, OPERATOR_AGENT},
    install::install,
    report::{Goal, Row},
    rounded,
    stock::{Shape, Stock},
    usage::Usage,
};
use crate::{arguments::IdleArguments, progress::Progress};

/// Releases of the two runs when nothing else is asked for.
const RELEASES: [u32; 2] = [100, 1000];
const OBJECTS: usize = 4;

/// One number of releases, measured. Keys say their unit.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    releases: u32,
    stacks: usize,
    seconds: u32,
    /// Besides renewals of the Lease.
    writes: usize,
    lease_renewals: usize,
    /// Gets and lists; watches that began anew are counted apart.
    reads: usize,
    watches_begun: usize,
    /// Of one core.
    cpu_percent: f64,
    idle_rss_mib: f64,
}

/// Measures every number of releases that is asked for.
pub(super) async fn measure(arguments: &IdleArguments) -> Result<Vec<Run>> {
    let numbers = arguments.releases.map_or(RELEASES.to_vec(), |releases| vec![releases]);
    let mut runs = Vec::new();
    for (index, releases) in numbers.iter().enumerate() {
        let progress = Progress::start(format!("{} of {} · {releases} releases", index + 1, numbers.len()));
        let run = Box::pin(measure_one(arguments, *releases, &progress)).await;
        runs.push(run.with_context(|| format!("failed to measure {releases} releases"))?);
    }
    Ok(runs)
}

async fn measure_one(arguments: &IdleArguments, releases: u32, progress: &Progress) -> Result<Run> {
    progress.step("starting a control plane");
    let ground = Ground::find(arguments.common.kubeconfig.as_deref()).await?;
    let namespace = ground.namespace("idle").await?;
    let run = Box::pin(measure_on(&ground, &namespace, arguments, releases, progress)).await;
    let cleaned = ground.clean_up(&[namespace]).await;
    let run = run?;
    cleaned.map(|()| run)
}

async fn measure_on(
    ground: &Ground,
    namespace: &str,
    arguments: &IdleArguments,
    releases: u32,
    progress: &Progress,
) -> Result<Run> {
    let count = usize::try_from(releases)?;
    let shape = Shape {
        releases: count,
        stacks: count.div_ceil(50),
        objects: OBJECTS,
    };
    let stock = Stock::pack(ground.folder(), shape, progress).await?;
    progress.step("the operator installs");
    let mut installed = install(ground, namespace, &stock, count, true, progress).await?;
    let mark = ground.audit.mark().await?;
    let before = Usage::of(installed.process)?;
    let begin = Instant::now();
    let duration = Duration::from_secs(arguments.seconds.into());
    while begin.elapsed() < duration {
        sleep(Duration::from_secs(1).min(duration.saturating_sub(begin.elapsed()))).await;
        installed.operator.check()?;
        progress.tick(&format!(
            "{} of {} s looked at",
            begin.elapsed().as_secs(),
            arguments.seconds
        ));
    }
    let after = Usage::of(installed.process)?;
    let elapsed = begin.elapsed();
    let requests = ground.audit.since(mark).await?.of_agent(OPERATOR_AGENT);
    installed.operator.stop().await?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    Ok(Run {
        releases,
        stacks: shape.stacks,
        seconds: arguments.seconds,
        writes: requests.clone().writes().len(),
        lease_renewals: requests.clone().lease_writes().len(),
        reads: requests.clone().reads_other_than_watch().len(),
        watches_begun: requests.filter(|request| request.verb == "watch").len(),
        cpu_percent: rounded(100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64(), 2),
        idle_rss_mib: after.resident_mib,
    })
}

impl Row for Run {
    const HEADINGS: &'static [&'static str] = &[
        "releases",
        "stacks",
        "seconds",
        "writes",
        "Lease renewals",
        "reads",
        "watches begun",
        "CPU %",
        "idle MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.releases.to_string(),
            self.stacks.to_string(),
            self.seconds.to_string(),
            self.writes.to_string(),
            self.lease_renewals.to_string(),
            self.reads.to_string(),
            self.watches_begun.to_string(),
            format!("{:.2}", self.cpu_percent),
            format!("{:.1}", self.idle_rss_mib),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let name = format!("{} releases", self.releases);
        let goal = |what: &str, found: f64, limit: f64| Goal {
            what: format!("{what}, {name}"),
            found,
            limit,
        };
        let none = |what: &str, found: usize| goal(what, f64::from(u32::try_from(found).unwrap_or(u32::MAX)), 0.0);
        let mut goals = vec![none("writes", self.writes), none("reads", self.reads)];
        if self.releases <= 100 {
            goals.push(goal("idle MiB", self.idle_rss_mib, 24.0));
        }
        goals
    }
}
