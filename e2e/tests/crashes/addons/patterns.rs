//! Two of the patterns by which Sieve (Sun et al., OSDI 2022) finds faults of operators, at the management API server and over the life of a Cluster with
//! add-ons. Unobserved state: one event is lost (of the Cluster, its ClusterAddon, its parts, its kubeconfig, what it takes values from, its release), and what it told is
//! seen only as its result. Stale state: after a restart, everything that is read there is of the last station, while the API server of the cluster
//! answers from the present.
//!
//! Each position is that of a Cluster of its own; a few operators share the positions, and look after one Cluster after the other. One position in three is
//! tried; with `cargo xtask test --positions`, every one.
//!
//! Who reads the past cannot know better, and makes once more what was there then: so objects may flicker after such a restart. That must be over before
//! nothing holds up the end of the Cluster any more. No restart comes after that: of a cluster that is gone, the real API server would not be behind.

use std::{
    cell::Cell,
    collections::BTreeMap,
    sync::{LazyLock, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use e2e::{
    FaultProxy, Journey, Operator, Point,
    addons::{
        cluster::Cluster,
        ground::Dates,
        stack::{self, Version},
    },
    eventually,
    journey::{SOON, journey},
    lanes::side_by_side,
    positions::positions,
    world::{quiet, version},
};
use jiff::Timestamp;

use super::{BACK, NAME, Part, Scene, Worlds};
use crate::{JOURNEY_DEADLINE, LANES, TURN};

/// Long enough for several writes of an operator.
const BLIND: Duration = Duration::from_millis(400);
/// The life of a Cluster has more of both than this, or it is not the one that was meant.
const FEWEST: usize = 15;
/// A release becomes ready by at least so many events.
const FEWEST_OF_RELEASES: usize = 4;
/// Who has it for its owner is counted, too.
const RELEASE: &str = "ClusterStackRelease";

/// A life in which nothing was lost and nobody restarted.
struct Fair {
    worlds: Worlds,
    events: usize,
    /// Until nothing holds up the end of the Cluster.
    writes: usize,
}

static FAIR: LazyLock<Result<Fair>> = LazyLock::new(|| {
    let mut fair = None;
    journey(async |journey| {
        fair = Some(undisturbed(journey).await?);
        Ok(())
    })?;
    fair.context("the journey has not been made")
});

fn fair() -> Result<&'static Fair> {
    let fair = FAIR.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let Fair { events, writes, .. } = fair;
    eprintln!("the life of a Cluster has {events} events and {writes} writes to the management API server");
    ensure!(*events >= FEWEST && *writes >= FEWEST, "that is too few");
    Ok(fair)
}

/// The life of a Cluster; `arrived` judges the world at each station, and `leaving` is done before Cluster API takes the Cluster away.
async fn live(
    cluster: Cluster<'_>,
    kubeconfig: &str,
    mut arrived: impl AsyncFnMut(Part) -> Result<()>,
    leaving: impl AsyncFn() -> Result<()>,
) -> Result<Dates> {
    let mut dates = Vec::new();
    for part in Part::WITH_VALUES {
        dates.push(Timestamp::now());
        let travelled = async {
            if part != Part::Delete {
                return part.travel(cluster, kubeconfig).await;
            }
            cluster.empty().await?;
            leaving().await?;
            cluster.end().await
        };
        travelled.await.with_context(|| format!("{part:?}"))?;
        let judged = arrived(part).await;
        judged.with_context(|| format!("at the end of {part:?}"))?;
    }
    cluster.erase_words().await?;
    let &[_, changed, _, deleted] = dates.as_slice() else {
        bail!("there are four parts");
    };
    Ok(Dates {
        changed,
        deleted,
        again: false,
    })
}

async fn undisturbed(journey: &mut Journey) -> Result<Fair> {
    let mut scene = Scene::begin(journey).await?;
    let journey = &*journey;
    let cluster = Cluster { journey, name: NAME };
    let Scene {
        ground,
        management,
        kubeconfig,
        ..
    } = &scene;
    management.forget_writes();
    management.lose_event(&journey.namespace, None, BLIND);
    let (mut worlds, writes) = (Worlds::new(), Cell::new(0));
    let dates = live(
        cluster,
        kubeconfig,
        async |part| {
            quiet(management).await?;
            ground.stands(cluster, part.version()).await?;
            worlds.insert(part, ground.world(cluster).await?);
            Ok(())
        },
        async || {
            writes.set(management.writes().len());
            Ok(())
        },
    )
    .await?;
    let events = management.events();
    scene.over(journey, &BTreeMap::from([(NAME.to_owned(), dates)])).await?;
    Ok(Fair {
        worlds,
        events,
        writes: writes.get(),
    })
}

/// The same number of positions for each lane.
fn shares(positions: &[usize]) -> Vec<Vec<usize>> {
    let mut shares = vec![Vec::new(); LANES];
    for (turn, position) in positions.iter().enumerate() {
        shares[turn % LANES].push(*position);
    }
    shares.retain(|share| !share.is_empty());
    shares
}

/// Makes journeys that share the positions, and tells of all that failed. Each counts the positions to which something was done.
fn each(
    pattern: &str,
    shares: Vec<Vec<usize>>,
    one: impl AsyncFn(&mut Journey, &[usize], &mut usize) -> Result<()> + Sync,
) -> Result<()> {
    let (count, begun) = (shares.iter().map(Vec::len).sum::<usize>(), Instant::now());
    let name = |share: &Vec<usize>| format!("addons_{pattern}_{}", share[0]);
    let outcomes = side_by_side(LANES, shares, name, |share| {
        let mut met = 0;
        let outcome = journey(async |journey| one(journey, share.as_slice(), &mut met).await);
        outcome
            .map(|()| met)
            .map_err(|error| format!("{pattern} {share:?}: {error:#}"))
    })?;
    let failed: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    ensure!(failed.is_empty(), "{} journeys failed: {failed:#?}", failed.len());
    let met: usize = outcomes.iter().flatten().sum();
    eprintln!(
        "{pattern}: {met} of {count} Clusters were disturbed in {:?}",
        begun.elapsed()
    );
    // How many of them there are depends on what happens to come together.
    ensure!(met * 4 >= count * 3, "only {met} of {count} Clusters were disturbed");
    Ok(())
}

/// The same where each position is that of a Cluster of its own; those of one journey live one after the other. `one` answers with the dates of a
/// Cluster, and whether something was done to it.
fn each_life(
    pattern: &str,
    positions: &[usize],
    one: impl AsyncFn(Cluster<'_>, &mut Scene, usize) -> Result<(Dates, bool)> + Sync,
) -> Result<()> {
    each(pattern, shares(positions), async |journey, share, met| {
        let mut scene = Scene::begin(journey).await?;
        let journey = &*journey;
        let mut dates = BTreeMap::new();
        for n in share {
            let name = format!("patient-{n}");
            let cluster = Cluster { journey, name: &name };
            let (lived, is_disturbed) = one(cluster, &mut scene, *n).await?;
            *met += usize::from(is_disturbed);
            dates.insert(name, lived);
        }
        scene.over(journey, &dates).await
    })
}

#[test]
fn whichever_event_of_the_management_api_server_is_lost_the_add_ons_are_the_same() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let fair = fair()?;
    let positions = positions(1..=fair.events, 1)?;
    each_life("lost_event", &positions, async |cluster, scene, n| {
        lose_event(cluster, scene, fair, n).await
    })
}

/// The life of a Cluster of which the n-th event is lost.
async fn lose_event(cluster: Cluster<'_>, scene: &Scene, fair: &Fair, n: usize) -> Result<(Dates, bool)> {
    let Scene {
        ground,
        management,
        kubeconfig,
        ..
    } = scene;
    management.lose_event(&cluster.journey.namespace, Some(n), BLIND);
    let lived = live(
        cluster,
        kubeconfig,
        async |part| ground.becomes(cluster, &fair.worlds[&part]).await,
        async || Ok(()),
    )
    .await;
    let lost = management.lost_event();
    let lived = lived.with_context(|| format!("event {n} lost: {lost:?}"))?;
    Ok((lived, lost.is_some()))
}

#[test]
fn whichever_event_of_a_release_is_lost_a_cluster_that_waits_for_it_gets_its_add_ons() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let fair = fair()?;
    let mut events = 0;
    journey(async |journey| {
        events = awaited(journey, fair, None).await?.0;
        Ok(())
    })?;
    eprintln!("releases become ready by {events} events");
    ensure!(events >= FEWEST_OF_RELEASES, "that is too few");
    // A stack becomes usable once in a journey.
    let shares = positions(1..=events, 0)?.into_iter().map(|n| vec![n]).collect();
    each("lost_event_of_a_release", shares, async |journey, share, met| {
        for n in share {
            let (_, lost) = awaited(journey, fair, Some(*n))
                .await
                .with_context(|| format!("event {n}"))?;
            *met += usize::from(lost.is_some());
        }
        Ok(())
    })
}

/// The short life of a Cluster that is there before the release of its class. The answer is how many events there were of releases, and which one was lost.
async fn awaited(journey: &mut Journey, fair: &Fair, n: Option<usize>) -> Result<(usize, Option<String>)> {
    let mut scene = Scene::set(journey).await?;
    let journey = &*journey;
    let cluster = Cluster { journey, name: NAME };
    scene.management.lose_event_of(RELEASE, &journey.namespace, n, BLIND);
    cluster.make(Version::First).await?;
    cluster.initialize(&scene.kubeconfig).await?;
    stack::subscribe(journey).await?;
    cluster.complete(Version::First).await?;
    scene.ground.becomes(cluster, &fair.worlds[&Part::Install]).await?;
    let met = (scene.management.events(), scene.management.lost_event());
    cluster.empty().await?;
    cluster.end().await?;
    // Nothing is known of an upgrade that was not, and nothing may have gone before the end.
    scene.over(journey, &BTreeMap::new()).await?;
    Ok(met)
}

#[test]
fn a_restart_into_the_past_of_the_management_api_server_leads_to_the_same_add_ons() -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let fair = fair()?;
    let positions = positions(1..=fair.writes, 0)?;
    each_life("restart_into_the_past", &positions, async |cluster, scene, n| {
        let mut struck = None;
        let lived = relived(cluster, scene, fair, n, &mut struck).await;
        let lived = lived.with_context(|| format!("write {n}: {struck:?}"))?;
        Ok((Dates { again: true, ..lived }, struck.is_some()))
    })
}

/// The life of a Cluster whose operator is killed after its n-th write; the next one reads what was so at the last station, for a while. `struck` is that
/// write, if it came.
async fn relived(
    cluster: Cluster<'_>,
    scene: &mut Scene,
    fair: &Fair,
    n: usize,
    struck: &mut Option<String>,
) -> Result<Dates> {
    let Scene {
        ground,
        management,
        kubeconfig,
        operator,
        ..
    } = scene;
    let (ground, management, journey) = (&*ground, &*management, cluster.journey);
    management.forget_writes();
    let strike = management.strike_at(n, Point::AfterCommit);
    let station = Cell::new(version(journey).await?);
    let (has_fallen, has_risen) = (Cell::new(false), Cell::new(false));
    let living = async {
        // An error says that no write is waited for any more.
        if let Ok(stopped) = strike.wait(JOURNEY_DEADLINE).await {
            has_fallen.set(true);
            operator.take().context("an operator lives")?.kill().await?;
            *struck = Some(stopped.write.to_string());
            management.answer_from(station.get(), BACK);
            drop(stopped);
            *operator = Some(Operator::start(journey.lab(), &journey.options)?);
            has_risen.set(true);
        }
        let alive = operator.as_mut().context("an operator lives")?;
        alive.runs_on(JOURNEY_DEADLINE).await
    };
    let is_present = || !has_fallen.get() || has_risen.get() && management.past_is_over();
    let travelling = live(
        cluster,
        kubeconfig,
        async |part| {
            ground.becomes(cluster, &fair.worlds[&part]).await?;
            station.set(version(journey).await?);
            Ok(())
        },
        async || {
            in_the_present(management, is_present).await?;
            drop(management.strike_at(usize::MAX, Point::BeforeForwarding));
            eventually(SOON, "nothing to be left of the add-ons", async || {
                ground.stands(cluster, None).await
            })
            .await?;
            cluster.emptied().await
        },
    );
    tokio::select! {
        lived = travelling => lived,
        ended = living => bail!("the operator ended: {ended:?}"),
    }
}

/// Waits until the operator has left the past, and has done what is to be done since.
async fn in_the_present(management: &FaultProxy, is_present: impl Fn() -> bool) -> Result<()> {
    quiet(management).await?;
    eventually(SOON, "the operator to have left the past", || {
        std::future::ready(if is_present() { Ok(()) } else { Err("it is there") })
    })
    .await?;
    quiet(management).await
}
