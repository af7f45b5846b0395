//! Every request to the API server of a workload cluster fails once, and every event that it tells is lost once. Each position is that of a Cluster of
//! its own, with a proxy of its own before the API server that all of them share, and all are looked after by one operator: what one of them suffers
//! must delay no other.
//!
//! One position in three is tried, each with another fault than the next; with `cargo xtask test --positions`, every one with every fault.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{
    FaultProxy, Journey,
    addons::{
        cluster::Cluster,
        ground::{Dates, Ground},
        stack,
    },
    fault_proxy::Fault,
    journey::journey,
    positions::{every_position, positions},
};
use futures::{StreamExt, stream};
use http::StatusCode;
use jiff::Timestamp;

use super::{Part, Worlds, worlds};

/// The life of a Cluster has more requests than this, or it is not the one that was meant.
const FEWEST_REQUESTS: usize = 30;
/// And more events.
const FEWEST_EVENTS: usize = 8;
/// More Clusters at once than one operator brings to their ends while somebody waits for each of them.
const SIDE_BY_SIDE: usize = 32;
/// What is not answered for so long is not answered.
const NEVER: Duration = Duration::from_hours(1);
/// Long enough for several writes of an operator.
const BLIND: Duration = Duration::from_millis(400);

/// What a request meets.
const FAULTS: [Fault; 5] = [
    Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
    Fault::ResetBefore,
    Fault::ResetAfter,
    Fault::Refuse(StatusCode::SERVICE_UNAVAILABLE),
    Fault::Delay(NEVER),
];

/// What a Cluster suffers.
#[derive(Clone, Copy, Debug)]
enum Suffering {
    /// Nothing: it is counted what others can suffer.
    Nothing,
    /// The n-th request.
    Request(usize, Fault),
    /// The n-th event is lost.
    Event(usize),
}

impl fmt::Display for Suffering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Request(n, fault) => write!(f, "request {n} {fault}"),
            Self::Event(n) => write!(f, "event {n} lost"),
        }
    }
}

/// What there was to suffer, and when what was asked for.
struct Life {
    requests: usize,
    events: usize,
    dates: Dates,
    /// Whether it came to that.
    suffered: bool,
}

#[test]
fn whichever_request_to_a_workload_cluster_fails_or_event_is_lost_the_add_ons_are_the_same() -> Result<()> {
    let worlds = worlds()?;
    journey(async |journey| {
        let ground = Ground::prepare(journey).await?;
        journey.operate().await?;
        stack::subscribe(journey).await?;
        let here = &*journey;
        let first = live(here, &ground, worlds, "patient-0", Suffering::Nothing).await?;
        eprintln!(
            "the life of a Cluster has {} requests and {} events",
            first.requests, first.events
        );
        ensure!(
            first.requests >= FEWEST_REQUESTS && first.events >= FEWEST_EVENTS,
            "that is too few"
        );
        let sufferings = sufferings(&first)?;
        let named = sufferings.iter().enumerate();
        let named: Vec<(String, Suffering)> = named
            .map(|(number, what)| (format!("patient-{}", number + 1), *what))
            .collect();
        let lives = named.iter().map(async |(name, suffering)| {
            let life = live(here, &ground, worlds, name, *suffering).await;
            life.with_context(|| format!("{name}: {suffering}"))
        });
        let begun = Instant::now();
        let lives: Vec<Result<Life>> = stream::iter(lives).buffered(SIDE_BY_SIDE).collect().await;
        let count = lives.len();
        let failed: Vec<String> = lives
            .iter()
            .filter_map(|life| Some(format!("{:#}", life.as_ref().err()?)))
            .collect();
        ensure!(
            failed.is_empty(),
            "{} of {count} lives failed: {failed:#?}",
            failed.len()
        );
        let missed = lives.iter().flatten().filter(|life| !life.suffered).count();
        eprintln!(
            "{count} lives in {:?}; {missed} had less than what to suffer",
            begun.elapsed()
        );
        // How many requests there are depends on what happens to come together.
        ensure!(missed * 5 <= count, "{missed} of {count} lives were not disturbed");
        let ended = named.into_iter().map(|(name, _)| name).zip(lives);
        let dates: BTreeMap<String, Dates> = ended
            .filter_map(|(name, life)| Some((name, life.ok()?.dates)))
            .collect();
        ground.nothing_is_left(journey).await?;
        ground.judge(journey, &dates).await?;
        journey.operator()?.check()
    })
}

/// What the Clusters suffer of which the first had so much.
fn sufferings(first: &Life) -> Result<Vec<Suffering>> {
    let every = every_position()?;
    let requests = positions(1..=first.requests, 1)?.into_iter().enumerate();
    let mut all: Vec<Suffering> = requests
        .flat_map(|(turn, n)| {
            let faults = FAULTS.into_iter().enumerate();
            faults
                .filter(move |(number, _)| every || *number == turn % FAULTS.len())
                .map(move |(_, fault)| Suffering::Request(n, fault))
        })
        .collect();
    all.extend(positions(1..=first.events, 0)?.into_iter().map(Suffering::Event));
    Ok(all)
}

/// The whole life of a Cluster, which is the same at each station as one that suffered nothing.
async fn live(journey: &Journey, ground: &Ground, worlds: &Worlds, name: &str, suffering: Suffering) -> Result<Life> {
    let proxy = FaultProxy::start(ground.workload).await?;
    proxy.lose_event(&journey.namespace, None, BLIND);
    match suffering {
        Suffering::Nothing => {}
        Suffering::Request(n, fault) => proxy.fail_at(n, fault),
        Suffering::Event(n) => proxy.lose_event(&journey.namespace, Some(n), BLIND),
    }
    let kubeconfig = proxy.access().admin_kubeconfig().await?;
    let cluster = Cluster { journey, name };
    let mut dates = Vec::new();
    for part in Part::ALL {
        dates.push(Timestamp::now());
        part.travel(cluster, &kubeconfig)
            .await
            .with_context(|| format!("{part:?}"))?;
        let became = ground.becomes(cluster, &worlds[&part]).await;
        became.with_context(|| format!("at the end of {part:?}"))?;
    }
    Ok(Life {
        requests: proxy.requests(),
        events: proxy.events(),
        dates: Dates {
            changed: dates[1],
            deleted: dates[2],
            again: false,
        },
        suffered: !proxy.blows().is_empty() || proxy.lost_event().is_some(),
    })
}
