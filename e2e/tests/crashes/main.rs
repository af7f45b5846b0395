//! kill -9 of the operator at every write of a journey that subscribes, upgrades, drops and deletes, and of one that waits for its provider: the
//! end is always the same and true, nothing on the way was wrong, nothing is orphaned, and nothing that is in use is deleted. The same when every
//! status is lost on the way. Of repairs, of the end of a stack of which a release is in use, of approved deletions (`approved`, `orphaned`) and
//! of a takeover from the Go operator (`inherited`) one write in three is tried; with `cargo xtask test --positions`, every one.
//!
//! The write is stopped by a proxy in front of the API server, once before the API server learns of it and once when it is
//! done but the operator does not know. Each journey has a namespace, a proxy, a directory of releases and an operator of
//! its own; some take part in leader election, where the Lease of the dead [lapses](e2e::lapse) at once. At every station the whole world is
//! compared with that of a journey without a crash. What happens between such writes, at sources and in the store, is in `sources`; what happens with the
//! add-ons of clusters, which are in other API servers, is in `addons`.

mod addons;
mod approved;
mod effects;
mod inherited;
mod orphaned;
mod servers;
mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{
    Journey, Operator, Point,
    fault_proxy::{Strike, Write},
    journey::journey,
    lanes::side_by_side,
    lapse::lapse,
    positions::{every_position, positions},
    storm::Voyage,
    travel::{Course, Station, expected},
    world::{World, becomes, orphans, wipe, world},
};

/// The journeys have more writes than this, or they are not those that were meant.
const FEWEST_WRITES: usize = 15;
/// Two cores are busy with this many: three quarters of a journey are waiting.
const LANES: usize = 6;
/// The tests of this file take turns, for the same reason.
static TURN: Mutex<()> = Mutex::new(());
/// Every so many journeys take part in leader election.
const LEASE_EVERY: usize = 4;
/// Longer than any journey takes.
const JOURNEY_DEADLINE: Duration = Duration::from_mins(15);
/// Each write is crashed at before and after it is done.
const POINTS: [Point; 2] = [Point::BeforeForwarding, Point::AfterCommit];

/// Where and how a journey is disturbed.
#[derive(Clone, Copy, Debug)]
struct Crash {
    /// The write, counted from 1.
    n: usize,
    point: Point,
    /// Whether all statuses are emptied while the operator is dead.
    wipe: bool,
    lease: bool,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n, point, wipe, lease } = self;
        write!(f, "write {n} {point:?}")?;
        f.write_str(if *wipe { ", statuses wiped" } else { "" })?;
        f.write_str(if *lease { ", with a Lease" } else { "" })
    }
}

/// The journey without a crash.
struct Survey {
    course: Course,
    writes: Vec<Write>,
    /// How many of them there were at each station.
    counts: BTreeMap<Station, usize>,
    stations: BTreeMap<Station, World>,
}

static LIFE: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Course::Life));
static PROVIDER: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Course::Provider));
static REPAIR: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Course::Repair));
static REMOVE: LazyLock<Result<Survey>> = LazyLock::new(|| survey(Course::Remove));

fn survey(course: Course) -> Result<Survey> {
    let mut survey = None;
    journey(async |journey| {
        survey = Some(undisturbed(journey, course).await?);
        Ok(())
    })?;
    survey.context("the journey has not been made")
}

#[test]
fn a_crash_at_any_write_leads_to_the_same_end() -> Result<()> {
    crash_at_every_write(&LIFE)
}

#[test]
fn a_crash_at_any_write_of_a_release_with_a_provider_leads_to_the_same_end() -> Result<()> {
    crash_at_every_write(&PROVIDER)
}

fn crash_at_every_write(survey: &'static LazyLock<Result<Survey>>) -> Result<()> {
    let survey = surveyed(survey)?;
    let all = (1..=survey.writes.len()).flat_map(|n| POINTS.map(|point| crash(n, point)));
    suffer(survey, all.collect())
}

#[test]
fn a_crash_at_a_write_of_a_repair_leads_to_the_same_end() -> Result<()> {
    crash_behind(&REPAIR, Station::Installed)
}

#[test]
fn a_crash_at_a_write_while_a_stack_goes_of_which_a_release_is_in_use_leads_to_the_same_end() -> Result<()> {
    crash_behind(&REMOVE, Station::Subscribed)
}

/// Crashes at some of the writes behind a station; what comes before is the same as in another course. Where every position is asked for, at each of them
/// before and after it is done.
fn crash_behind(survey: &'static LazyLock<Result<Survey>>, station: Station) -> Result<()> {
    let survey = surveyed(survey)?;
    let before = survey.counts.get(&station).context("not on the way")?;
    let every = every_position()?;
    let some = positions(before + 1..=survey.writes.len(), 0)?
        .into_iter()
        .flat_map(|n| POINTS.map(|point| crash(n, point)))
        .filter(|crash| every || crash.point == POINTS[crash.n % POINTS.len()]);
    suffer(survey, some.collect())
}

/// Crashes at some of the first so many writes of a journey that is its own judge, either before or after each is done. Where every position is asked for,
/// at each of them both before and after.
fn crash_at_some(
    what: &str,
    writes: usize,
    disturbed: impl AsyncFn(&mut Journey, usize, Point) -> Result<()> + Sync,
) -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let every = every_position()?;
    let crashes = positions(1..=writes, 1)?
        .into_iter()
        .flat_map(|n| POINTS.map(|point| (n, point)))
        .filter(|(n, point)| every || *point == POINTS[n % POINTS.len()]);
    let name = |(n, point): &(usize, Point)| format!("{what}_write_{n}_{point:?}");
    let outcomes = side_by_side(LANES, crashes.collect(), name, |(n, point)| {
        let result = journey(async |journey| disturbed(journey, n, point).await);
        result.map_err(|error| format!("write {n} {point:?}: {error:#}"))
    })?;
    let count = outcomes.len();
    let failed: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    ensure!(
        failed.is_empty(),
        "{} of {count} journeys failed: {failed:#?}",
        failed.len()
    );
    Ok(())
}

/// Waits for the write to crash at, kills the operator at it, and starts another.
async fn crash_and_start_again(journey: &mut Journey, strike: Strike) -> Result<()> {
    let stopped = strike.wait(JOURNEY_DEADLINE).await?;
    journey.kill_operator().await?;
    drop(stopped);
    journey.operate().await
}

/// The journey without a crash, which has to have enough of them to be the one that was meant.
fn surveyed(survey: &'static LazyLock<Result<Survey>>) -> Result<&'static Survey> {
    let survey = survey.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let n = survey.writes.len();
    eprintln!("the journey {} has n = {n} writes", survey.course.name());
    ensure!(
        n >= FEWEST_WRITES,
        "n = {n} is less than {FEWEST_WRITES}: {:#?}",
        survey.writes
    );
    Ok(survey)
}

fn crash(n: usize, point: Point) -> Crash {
    Crash {
        n,
        point,
        wipe: false,
        lease: n.is_multiple_of(LEASE_EVERY),
    }
}

#[test]
fn a_status_lost_in_the_middle_of_an_upgrade_is_rebuilt_by_looking() -> Result<()> {
    let survey = LIFE.as_ref().map_err(|error| anyhow!("{error:#}"))?;
    let since = |station| survey.counts.get(&station).context("not on the way").copied();
    // Since the appearance of the third release, until the second is gone.
    let upgrade = since(Station::Subscribed)? + 1..=since(Station::Dropped)?;
    let crashes = upgrade.map(|n| Crash {
        n,
        point: Point::AfterCommit,
        wipe: true,
        lease: false,
    });
    suffer(survey, crashes.collect())
}

/// What became of one journey.
struct Outcome {
    crash: Crash,
    namespace: String,
    /// Whether the write to crash at came.
    struck: bool,
    result: Result<()>,
}

/// Makes a journey for every crash, several at a time, and tells of all that failed.
fn suffer(survey: &'static Survey, crashes: Vec<Crash>) -> Result<()> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, begun) = (crashes.len(), Instant::now());
    let name = |crash: &Crash| format!("{}_write_{}_{:?}", survey.course.name(), crash.n, crash.point);
    let outcomes = side_by_side(LANES, crashes, name, |crash| one_journey(survey, crash))?;
    let missed = outcomes.iter().filter(|outcome| !outcome.struck).count();
    eprintln!(
        "{count} journeys in {:?}; {missed} had fewer writes than the one to crash at",
        begun.elapsed()
    );
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err());
    let failed: Vec<String> = failed.map(|outcome| outcome.crash.to_string()).collect();
    ensure!(
        failed.is_empty(),
        "{} of {count} journeys failed: {failed:#?}",
        failed.len()
    );
    // How often a status is written depends on what happens to come together, so journeys differ by a few writes.
    ensure!(missed * 10 <= count, "{missed} of {count} journeys were not disturbed");
    if !survey.course.is_emptied() {
        return Ok(());
    }
    let namespaces: BTreeSet<String> = outcomes.into_iter().map(|outcome| outcome.namespace).collect();
    journey(async |journey| {
        let orphans = orphans(&journey.client, &namespaces).await?;
        ensure!(orphans.is_empty(), "left over: {orphans:#?}");
        Ok(())
    })
}

fn one_journey(survey: &Survey, crash: Crash) -> Outcome {
    let begun = Instant::now();
    let (mut namespace, mut struck) = (String::new(), None);
    let result = journey(async |journey| {
        namespace.clone_from(&journey.namespace);
        disturbed(journey, survey, crash, &mut struck).await
    });
    if let Err(error) = &result {
        let at = struck.as_ref().map_or_else(|| "nothing".to_owned(), Write::to_string);
        eprintln!("{crash} ({at}) in {namespace} after {:?}: {error:#}", begun.elapsed());
    }
    Outcome {
        crash,
        namespace,
        struck: struck.is_some(),
        result,
    }
}

async fn undisturbed(journey: &mut Journey, course: Course) -> Result<Survey> {
    let voyage = Voyage::begin(journey).await?;
    let mut operator = Operator::start(journey.lab(), &journey.options)?;
    let (mut stations, mut counts) = (BTreeMap::new(), BTreeMap::new());
    course
        .travel(journey, async |station| {
            voyage.rest(journey, &mut operator).await?;
            let world = world(journey).await?;
            let (found, expected) = (world.keys().collect::<Vec<_>>(), expected(station));
            ensure!(found == expected.iter().collect::<Vec<_>>(), "{station:?}: {found:#?}");
            stations.insert(station, world);
            counts.insert(station, voyage.proxy.writes().len());
            Ok(())
        })
        .await?;
    operator.check()?;
    Ok(Survey {
        course,
        writes: voyage.proxy.writes(),
        counts,
        stations,
    })
}

/// The journey with one crash; `struck` is the write at which it happened, if it came.
async fn disturbed(journey: &mut Journey, survey: &Survey, crash: Crash, struck: &mut Option<Write>) -> Result<()> {
    let voyage = Voyage::begin(journey).await?;
    if crash.lease {
        let election = ["--leader-elect=true", "--leader-elect-namespace"];
        journey.options.flags.extend(election.map(Into::into));
        journey.options.flags.push(journey.namespace.clone().into());
    }
    let journey = &*journey;
    let strike = voyage.proxy.strike_at(crash.n, crash.point);
    let mut operator = Operator::start(journey.lab(), &journey.options)?;
    let operating = async {
        let stopped = tokio::select! {
            stopped = strike.wait(JOURNEY_DEADLINE) => stopped?,
            outcome = operator.runs_on(JOURNEY_DEADLINE) => return outcome,
        };
        let dead = operator
            .process_id()
            .context("the operator that writes is no process")?;
        operator.kill().await?;
        lapse(journey, dead).await?;
        *struck = Some(stopped.write.clone());
        if crash.wipe {
            wipe(journey).await?;
        }
        drop(stopped);
        operator = Operator::start(journey.lab(), &journey.options)?;
        operator.runs_on(JOURNEY_DEADLINE).await
    };
    let travelling = survey.course.travel(journey, async |station| {
        let wanted = &survey.stations[&station];
        becomes(journey, wanted).await.with_context(|| format!("{station:?}"))
    });
    let judged = async {
        travelling.await?;
        voyage.judge(journey).await
    };
    tokio::select! {
        outcome = judged => outcome,
        outcome = operating => outcome,
    }
}
