//! kill -9 of the provider operator before and after every effect on the way of an image: its changes in the cloud, of which sending the image is
//! stopped in the middle too, and its writes to the API server. The statuses are always those of a journey without a crash, the images of the project are the
//! expected ones, none was made twice, and none was called ready that was not verified.
//!
//! The effects are counted by a journey without a crash. Each journey has a namespace, a project, two proxies and an operator of its own. Of the writes one in
//! three is tried, and on the way of an import nobody is killed before a change, where the cloud is as it was left after the one before; of a way that begins
//! like another one, only what that has not is tried. With `cargo xtask test --positions`, every position is.

mod course;

use std::{
    collections::BTreeMap,
    fmt,
    future::pending,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use e2e::{
    FaultProxy, Point, fault_proxy,
    lanes::side_by_side,
    lapse::lapse,
    positions::{every_position, positions},
    stage::{Left, Stage, on_stage},
    world::{World, quiet},
};
use http::Method;
use openstack_lab::proxy;

use self::course::{Course, Station};

/// Longer than any journey takes.
const JOURNEY_DEADLINE: Duration = Duration::from_mins(20);
/// How many journeys keep two cores busy.
const BUSY_LANES: usize = 4;
/// The same where some of them wait, for a minute or two, for a cloud that nobody hears of. Those come early.
const WAITING_LANES: usize = 5;
/// Every so many journeys take part in leader election.
const LEASE_EVERY: usize = 4;

/// Where a journey is disturbed.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// At the n-th write to the API server.
    Write(usize, Point),
    /// At the n-th change in the cloud.
    Change(usize, proxy::Point),
}

impl Blow {
    fn number(self) -> usize {
        match self {
            Self::Write(n, _) | Self::Change(n, _) => n,
        }
    }
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(n, point) => write!(f, "write {n} {point:?}"),
            Self::Change(n, point) => write!(f, "change {n} {point:?}"),
        }
    }
}

/// Everything stands still there. Dropped, it goes on.
enum Stopped {
    Write(fault_proxy::Struck),
    Change(proxy::Struck),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(struck) => write!(f, "{}", struck.write),
            Self::Change(struck) => write!(f, "{} {}", struck.method, struck.target),
        }
    }
}

/// The journey without a crash.
struct Survey {
    course: Course,
    /// How many writes to the API server there were.
    writes: usize,
    changes: Vec<proxy::Passed>,
    /// How many writes and changes had been made when the image was there for the first time.
    made: (usize, usize),
    stations: BTreeMap<Station, World>,
}

/// `None` where this machine has no cloud, which is said.
fn survey(course: Course) -> Result<Option<Survey>> {
    let mut survey = None;
    on_stage(async |stage| {
        survey = Some(undisturbed(stage, course).await?);
        Ok(Left::new())
    })?;
    Ok(survey)
}

async fn undisturbed(stage: &Stage<'_>, course: Course) -> Result<Survey> {
    let api = FaultProxy::start(stage.journey.control_plane()).await?;
    let options = stage.options(&["--leader-elect=false"]).await?.by_way_of(&api).await?;
    let mut operator = options.start(stage.journey.lab())?;
    let (mut stations, mut made) = (BTreeMap::new(), (0, 0));
    course
        .travel(stage, async |station| {
            course.arrived(stage, station).await?;
            quiet(&api).await?;
            if station == Station::Ready {
                made = (api.writes().len(), stage.proxy.changes().len());
            }
            stations.insert(station, course::world(stage).await?);
            Ok(())
        })
        .await?;
    operator.check()?;
    course.judge(stage)?;
    let (writes, changes) = (api.writes().len(), stage.proxy.changes());
    eprintln!(
        "the journey {course:?} has {writes} writes and {} changes",
        changes.len()
    );
    Ok(Survey {
        course,
        writes,
        changes,
        made,
        stations,
    })
}

/// Before and after every change.
const BOTH: [proxy::Point; 2] = [proxy::Point::Before, proxy::Point::After];

/// At these points of every change, and in the midst of each that sends the image: when it has begun, half-way, and when no more than a byte is missing.
fn at_every_change(survey: &Survey, points: &[proxy::Point]) -> Vec<Blow> {
    let mut blows = Vec::new();
    for (n, change) in (1..).zip(&survey.changes) {
        blows.extend(points.iter().map(|point| Blow::Change(n, *point)));
        if change.method == Method::PUT {
            let within = [1, change.sent / 2, change.sent - 1];
            blows.extend(within.map(|bytes| Blow::Change(n, proxy::Point::Within(bytes))));
        }
    }
    blows
}

/// Before or after some of the writes to the API server; where every position is asked for, both at each.
fn at_writes(all: RangeInclusive<usize>) -> Result<Vec<Blow>> {
    const POINTS: [Point; 2] = [Point::BeforeForwarding, Point::AfterCommit];
    let every = every_position()?;
    let some = positions(all, 0)?
        .into_iter()
        .flat_map(|n| POINTS.map(|point| (n, point)))
        .filter(|(n, point)| every || *point == POINTS[n % POINTS.len()]);
    Ok(some.map(|(n, point)| Blow::Write(n, point)).collect())
}

#[test]
fn a_kill_at_any_change_in_the_cloud_or_at_a_write_leads_to_the_same_end() -> Result<()> {
    let Some(survey) = survey(Course::Shared)? else {
        return Ok(());
    };
    ensure!(survey.changes.len() >= 4, "{:?}", survey.changes);
    ensure!(survey.writes >= 12, "there are {} writes", survey.writes);
    let blows = [at_every_change(&survey, &BOTH), at_writes(1..=survey.writes)?].concat();
    suffer(&survey, blows, BUSY_LANES)
}

pub(super) fn a_kill_at_any_change_on_the_way_of_an_image_that_the_cloud_fetches_leads_to_the_same_end() -> Result<()> {
    at_changes_of(Course::Fetched)
}

pub(super) fn a_kill_at_any_change_on_the_way_of_an_image_by_the_stage_leads_to_the_same_end() -> Result<()> {
    at_changes_of(Course::Staged)
}

fn at_changes_of(course: Course) -> Result<()> {
    let Some(survey) = survey(course)? else {
        return Ok(());
    };
    ensure!(survey.changes.len() >= 5, "{:?}", survey.changes);
    let points = if every_position()? { &BOTH[..] } else { &BOTH[1..] };
    suffer(&survey, at_every_change(&survey, points), WAITING_LANES)
}

/// Before and after each change that brings no bytes, and after the others, which are those of every image.
fn at_changes_of_an_image_that_is_there(survey: &Survey) -> Vec<Blow> {
    let changes = (1..).zip(&survey.changes).skip(survey.made.1);
    let blows = changes.flat_map(|(n, change)| {
        let is_new = [Method::PATCH, Method::DELETE].contains(&change.method);
        let points = if is_new { &BOTH[..] } else { &BOTH[1..] };
        points.iter().map(move |point| Blow::Change(n, *point))
    });
    blows.collect()
}

#[test]
fn a_kill_at_any_change_of_an_image_that_is_wanted_otherwise_leads_to_the_same_end() -> Result<()> {
    let Some(survey) = survey(Course::Changed)? else {
        return Ok(());
    };
    let (writes, changes) = survey.made;
    let of = |method: &Method| {
        let changes = survey.changes.iter().skip(changes);
        changes.filter(|change| change.method == *method).count()
    };
    // The option, the mark of the new image and that of the one that stays; the old image.
    ensure!(
        of(&Method::PATCH) >= 3 && of(&Method::DELETE) == 1,
        "{:?}",
        survey.changes
    );
    let at_changes = if every_position()? {
        at_every_change(&survey, &BOTH)
    } else {
        at_changes_of_an_image_that_is_there(&survey)
    };
    let blows = [at_changes, at_writes(writes + 1..=survey.writes)?].concat();
    suffer(&survey, blows, BUSY_LANES)
}

#[test]
fn a_kill_at_the_end_of_an_earlier_attempt_leads_to_the_same_end() -> Result<()> {
    let Some(survey) = survey(Course::Refused)? else {
        return Ok(());
    };
    let changes = (1..).zip(&survey.changes).take(survey.made.1);
    let mut ends = changes.filter(|(_, change)| change.method == Method::DELETE);
    let (n, _) = ends.next().context("no earlier attempt was taken away")?;
    let blows = BOTH.map(|point| Blow::Change(n, point));
    suffer(&survey, blows.into(), BUSY_LANES)
}

/// What became of one journey.
struct Outcome {
    name: String,
    /// Where it was disturbed, if that came.
    struck: Option<String>,
    took: Duration,
    result: Result<()>,
}

/// Makes a journey for every blow, several at a time, and tells of all that failed.
fn suffer(survey: &Survey, blows: Vec<Blow>, lanes: usize) -> Result<()> {
    let (count, begun) = (blows.len(), Instant::now());
    let name = |blow: &Blow| -> String {
        let words = format!("{:?} {blow}", survey.course);
        let letters = words.chars().filter(|letter| *letter != ')');
        letters
            .map(|letter| if letter.is_alphanumeric() { letter } else { '_' })
            .collect()
    };
    let outcomes = side_by_side(lanes, blows, name, |blow| one_journey(survey, blow))?;
    let missed = outcomes.iter().filter(|outcome| outcome.struck.is_none()).count();
    eprintln!("{count} journeys in {:?}; {missed} had no such effect", begun.elapsed());
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err());
    let failed: Vec<String> = failed.map(|outcome| outcome.name.clone()).collect();
    ensure!(
        failed.is_empty(),
        "{} of {count} journeys failed: {failed:#?}",
        failed.len()
    );
    // How often a status is written depends on what happens to come together, so journeys differ by a few writes.
    ensure!(missed * 10 <= count, "{missed} of {count} journeys were not disturbed");
    Ok(())
}

fn one_journey(survey: &Survey, blow: Blow) -> Outcome {
    let (begun, mut struck) = (Instant::now(), None);
    let result = on_stage(async |stage| {
        Box::pin(disturbed(stage, survey, blow, &mut struck)).await?;
        Ok(Left::new())
    });
    let outcome = Outcome {
        name: format!("{:?}: {blow}", survey.course),
        struck,
        took: begun.elapsed(),
        result,
    };
    let Outcome { name, struck, took, .. } = &outcome;
    match &outcome.result {
        Ok(()) => eprintln!("{name} ({struck:?}) took {took:?}"),
        Err(error) => eprintln!("{name} ({struck:?}) failed after {took:?}: {error:#}"),
    }
    outcome
}

/// The journey with one crash; `struck` is what it happened at, if that came.
async fn disturbed(stage: &Stage<'_>, survey: &Survey, blow: Blow, struck: &mut Option<String>) -> Result<()> {
    let api = FaultProxy::start(stage.journey.control_plane()).await?;
    let is_elected = blow.number().is_multiple_of(LEASE_EVERY);
    let mut options = stage.options(&[]).await?.by_way_of(&api).await?;
    if is_elected {
        // That of the dead lapses at once.
        let namespace = format!("--leader-elect-namespace={}", stage.journey.namespace);
        options
            .flags
            .extend(["--leader-elect=true", namespace.as_str()].map(Into::into));
    }
    let stopping = armed(blow, &api, &stage.proxy);
    let operator = options.start(stage.journey.lab())?;
    let operating = async {
        let stopped = stopping.await?;
        let dead = operator.process_id().context("nobody was there to be killed")?;
        operator.kill().await?;
        *struck = Some(stopped.to_string());
        drop(stopped);
        lapse(stage.journey, dead).await?;
        let _next = options.start(stage.journey.lab())?;
        pending::<Result<()>>().await
    };
    let travelling = survey.course.travel(stage, async |station| {
        course::becomes(stage, &survey.stations[&station])
            .await
            .with_context(|| format!("{station:?}"))
    });
    let judged = async {
        travelling.await?;
        survey.course.judge(stage)
    };
    tokio::select! {
        outcome = judged => outcome,
        outcome = operating => outcome,
        outcome = course::nothing_unverified_is_ready(stage) => outcome,
    }
}

/// Arms a proxy; the answer comes when everything stands still.
fn armed(blow: Blow, api: &FaultProxy, cloud: &proxy::Proxy) -> impl Future<Output = Result<Stopped>> + use<> {
    enum Armed {
        Write(fault_proxy::Strike),
        Change(proxy::Strike),
    }
    let armed = match blow {
        Blow::Write(n, point) => Armed::Write(api.strike_at(n, point)),
        Blow::Change(n, point) => Armed::Change(cloud.strike_at(n, point)),
    };
    async move {
        Ok(match armed {
            Armed::Write(strike) => Stopped::Write(strike.wait(JOURNEY_DEADLINE).await?),
            Armed::Change(strike) => Stopped::Change(strike.wait(JOURNEY_DEADLINE).await?),
        })
    }
}
