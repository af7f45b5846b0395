//! An operator under load for as long as somebody likes: stacks whose releases come and go, in bad weather, and what the operator holds over time.
//!
//! What happens follows from a seed as far as clocks and tasks let it. The weather is that of the storms, begun anew every few seconds, so that
//! there are faults from the first minute to the last. The operator is not restarted: what is looked for grows slowly.

mod deeds;
mod judgement;
mod trend;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use kube::api::ListParams;
use tokio::time::sleep;

use self::deeds::Deeds;
pub use self::judgement::{Found, Judged, Verdict, judge, verdict};
pub use self::trend::Trend;
use crate::{
    Forecast, Journey, Operator, eventually,
    journey::SOON,
    operator::sources_of_this_machine,
    storm::{Voyage, rules},
    usage::Usage,
};

/// The weather of one phase strikes the first few requests of each kind; then the next phase begins.
const PHASE: Duration = Duration::from_secs(5);
/// Between two deeds.
const PACE: Duration = Duration::from_millis(500);

/// When it has been enough.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many deeds.
    Deeds(usize),
}

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many stacks there are.
    pub stacks: usize,
    /// Which weather, and what happens to which stack.
    pub seed: u64,
    /// How long.
    pub until: Until,
    /// Between two samples.
    pub interval: Duration,
}

/// What an operator held at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since its start.
    pub elapsed: Duration,
    /// Memory, files and threads, as the kernel counts them.
    pub usage: Usage,
    /// Tasks of its runtime.
    pub tasks: f64,
    /// Objects that wait to be looked at.
    pub queue: f64,
    /// Releases that there were.
    pub releases: f64,
    /// Requests that it made so far.
    pub requests: usize,
    /// Faults that they met so far.
    pub faults: usize,
    /// What was done to the world so far.
    pub deeds: usize,
}

/// Does it all; `tell` hears of every sample. At the end the operator has to rest in a world whose state is true, and when all stacks are
/// deleted nothing may be left of them.
pub async fn soak(journey: &mut Journey, plan: Plan, mut tell: impl FnMut(&Sample)) -> Result<()> {
    let mut deeds = Deeds::prepare(journey, plan.stacks, plan.seed).await?;
    let voyage = Voyage::begin(journey).await?;
    let cache = journey.folder().join("cache");
    journey.options.flags.extend(sources_of_this_machine(&cache));
    let journey = &*journey;
    let mut operator = Operator::start(journey.lab(), &journey.options)?;
    operator.ready().await?;
    let begun = Instant::now();
    let (mut phase, mut sampled) = (0, Duration::ZERO);
    loop {
        let elapsed = begun.elapsed();
        let enough = match plan.until {
            Until::Elapsed(duration) => elapsed >= duration,
            Until::Deeds(count) => deeds.done() >= count,
        };
        if elapsed >= sampled || enough {
            sampled = elapsed + plan.interval;
            tell(&sample(&voyage, &mut operator, elapsed, deeds.done()).await?);
        }
        if enough {
            break;
        }
        if elapsed >= PHASE * phase {
            // Each seed has kinds of faults of its own, and over time all are to come.
            voyage
                .proxy
                .set_storm(Forecast::of(plan.seed.wrapping_add(phase.into())));
            phase += 1;
        }
        deeds.next(journey).await?;
        sleep(PACE).await;
    }
    voyage.proxy.calm();
    // Only what comes now has to come to its end.
    voyage.proxy.forget_writes();
    voyage.rest(journey, &mut operator).await?;
    deeds.remove_all(journey).await?;
    until_empty(journey).await?;
    rules::state(journey).await?;
    operator.check()
}

async fn sample(voyage: &Voyage, operator: &mut Operator, elapsed: Duration, deeds: usize) -> Result<Sample> {
    operator.check()?;
    let metrics = operator.metrics().await?;
    let number = |name: &str| metrics.sum(name, &[]).with_context(|| format!("no sample of {name}"));
    Ok(Sample {
        elapsed,
        usage: Usage::of(operator.process_id().context("the operator has no process")?)?,
        tasks: number("stackwright_runtime_tasks")?,
        queue: number("stackwright_queue_depth")?,
        releases: metrics
            .sum("stackwright_cluster_stack_releases", &[])
            .unwrap_or_default(),
        requests: voyage.proxy.requests(),
        faults: voyage.proxy.blows().len(),
        deeds,
    })
}

async fn until_empty(journey: &Journey) -> Result<()> {
    eventually(SOON * 2, "everything to be gone with its stacks", async || {
        let stacks = journey.api::<ClusterStack>().list(&ListParams::default()).await?;
        let releases = journey
            .api::<ClusterStackRelease>()
            .list(&ListParams::default())
            .await?;
        let (stacks, releases) = (stacks.items.len(), releases.items.len());
        ensure!(
            stacks + releases == 0,
            "{stacks} stacks and {releases} releases are there"
        );
        Ok(())
    })
    .await
}
