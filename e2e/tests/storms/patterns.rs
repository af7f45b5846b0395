//! Two of the three patterns by which Sieve (Sun et al., OSDI 2022) finds faults of operators, systematically over whole courses. The third, the
//! intermediate state that a crash between two writes leaves, is the program `crashes`.
//!
//! Unobserved state: one event is lost, and what it told is seen only as its result. Stale state: after a restart, everything that is read is
//! of the past.
//!
//! There are some forty positions in each course. One in three of two courses is tried for each pattern; with
//! `cargo xtask test --positions`, every one of every course.

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use e2e::{
    Journey, Operator, Point,
    journey::journey,
    lanes::side_by_side,
    positions::{every_position, positions},
    storm::{Surveys, Voyage},
    travel::Course,
    world::{becomes, orphans, version},
};

use crate::surveys;

/// Three quarters of a journey are waiting.
const LANES: usize = 8;
/// Longer than any journey takes.
const JOURNEY_DEADLINE: Duration = Duration::from_mins(15);
/// Long enough for several writes of an operator.
const BLIND: Duration = Duration::from_millis(400);
/// Long enough for an operator to begin, and to act on what it reads.
const BACK: Duration = Duration::from_secs(2);
/// The courses have more of both than this, or they are not those that were meant.
const FEWEST: usize = 15;

fn is_alone(course: Course) -> bool {
    !matches!(course, Course::Provider | Course::Shared | Course::Addons)
}

/// The courses of a pattern: the usual one or, where everything is asked for, all but the one with a provider, which has tests of its own, the
/// one with two processes, and the one with add-ons, which the program `crashes` disturbs.
fn courses(usual: Course) -> Result<Vec<Course>> {
    let every = every_position()?;
    let wanted = |course: &Course| *course == usual || every && is_alone(*course);
    Ok(Course::ALL.into_iter().filter(wanted).collect())
}

/// Goes a course with an operator that `operating` looks after, which returns only when something is wrong. `station` is the resource version of the
/// last station.
async fn disturbed(
    journey: &Journey,
    course: Course,
    surveys: &Surveys,
    station: &Cell<u64>,
    operating: impl Future<Output = Result<()>>,
) -> Result<()> {
    let travelling = course.travel(journey, async |arrived| {
        becomes(journey, surveys.world(course, arrived)?)
            .await
            .with_context(|| format!("{arrived:?}"))?;
        station.set(version(journey).await?);
        Ok(())
    });
    tokio::select! {
        outcome = travelling => outcome,
        outcome = operating => outcome.context("the operator ended"),
    }
}

/// What became of one journey: what was done to it, if it came to that, and its namespace.
struct Outcome {
    what: String,
    disturbance: Option<String>,
    namespace: String,
    result: Result<()>,
}

/// Makes a journey for every position, and tells of all that failed.
fn each(
    pattern: &str,
    course: Course,
    positions: Vec<usize>,
    one: impl AsyncFn(&mut Journey, usize, &mut Option<String>) -> Result<()> + Sync,
) -> Result<()> {
    let count = positions.len();
    let name = |n: &usize| format!("{pattern}_{}_{n}", course.name());
    let outcomes = side_by_side(LANES, positions, name, |n| {
        let (mut namespace, mut disturbance) = (String::new(), None);
        let result = journey(async |journey| {
            namespace.clone_from(&journey.namespace);
            one(journey, n, &mut disturbance).await
        });
        let what = format!("{pattern} {n} of {}", course.name());
        if let Err(error) = &result {
            eprintln!("{what} ({disturbance:?}) in {namespace}: {error:#}");
        }
        Outcome {
            what,
            disturbance,
            namespace,
            result,
        }
    })?;
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.result.is_err())
        .map(|outcome| outcome.what.as_str())
        .collect();
    ensure!(
        failed.is_empty(),
        "{} of {count} journeys failed: {failed:#?}",
        failed.len()
    );
    // How often a status is written depends on what happens to come together, so journeys differ by a few.
    let missed = outcomes.iter().filter(|outcome| outcome.disturbance.is_none()).count();
    eprintln!(
        "{count} journeys of {}, {missed} had too few to be disturbed",
        course.name()
    );
    ensure!(missed * 4 <= count, "{missed} of {count} journeys were not disturbed");
    if course.is_emptied() {
        let namespaces: BTreeSet<String> = outcomes.into_iter().map(|outcome| outcome.namespace).collect();
        journey(async |journey| {
            let orphans = orphans(&journey.client, &namespaces).await?;
            ensure!(orphans.is_empty(), "left over: {orphans:#?}");
            Ok(())
        })?;
    }
    Ok(())
}

/// How many events a course in fair weather has, and how many writes.
fn counted(course: Course) -> Result<(usize, usize)> {
    let surveys = surveys()?;
    let mut counts = (0, 0);
    journey(async |journey| {
        let voyage = Voyage::begin(journey).await?;
        voyage.proxy.lose_event(&journey.namespace, None, BLIND);
        let mut operator = Operator::start(journey.lab(), &journey.options)?;
        let station = Cell::new(0);
        disturbed(journey, course, surveys, &station, operator.runs_on(JOURNEY_DEADLINE)).await?;
        voyage.end(journey, &mut operator).await?;
        counts = (voyage.proxy.events(), voyage.proxy.writes().len());
        Ok(())
    })?;
    let (events, writes) = counts;
    eprintln!("{} has {events} events and {writes} writes", course.name());
    ensure!(
        events >= FEWEST && writes >= FEWEST,
        "{events} events and {writes} writes are too few"
    );
    Ok(counts)
}

#[test]
fn any_event_that_is_lost_leads_to_the_same_end() -> Result<()> {
    courses(Course::Upgrade)?.into_iter().try_for_each(lose_events)
}

#[test]
fn any_event_that_is_lost_with_a_provider_leads_to_the_same_end() -> Result<()> {
    lose_events(Course::Provider)
}

fn lose_events(course: Course) -> Result<()> {
    let surveys = surveys()?;
    let (events, _) = counted(course)?;
    each(
        "lost_event",
        course,
        positions(1..=events, 1)?,
        async |journey, n, disturbance| {
            let voyage = Voyage::begin(journey).await?;
            voyage.proxy.lose_event(&journey.namespace, Some(n), BLIND);
            let mut operator = Operator::start(journey.lab(), &journey.options)?;
            let station = Cell::new(0);
            let travelled = disturbed(journey, course, surveys, &station, operator.runs_on(JOURNEY_DEADLINE)).await;
            *disturbance = voyage.proxy.lost_event();
            travelled?;
            voyage.end(journey, &mut operator).await
        },
    )
}

#[test]
fn a_restart_into_the_past_at_any_write_leads_to_the_same_end() -> Result<()> {
    courses(Course::Remove)?.into_iter().try_for_each(restart_into_the_past)
}

#[test]
fn a_restart_into_the_past_with_a_provider_leads_to_the_same_end() -> Result<()> {
    restart_into_the_past(Course::Provider)
}

fn restart_into_the_past(course: Course) -> Result<()> {
    let surveys = surveys()?;
    let (_, writes) = counted(course)?;
    // After each write the operator is killed, and the next one reads what was so at the last station, for a while.
    each(
        "restart_into_the_past",
        course,
        positions(1..=writes, 0)?,
        async |journey, n, disturbance| {
            let voyage = Voyage::begin(journey).await?;
            let journey = &*journey;
            let strike = voyage.proxy.strike_at(n, Point::AfterCommit);
            let station = Cell::new(version(journey).await?);
            let mut operator = Some(Operator::start(journey.lab(), &journey.options)?);
            let mut struck = None;
            let operating = async {
                if let Ok(stopped) = strike.wait(JOURNEY_DEADLINE).await {
                    operator.take().context("an operator runs")?.kill().await?;
                    struck = Some(stopped.write.to_string());
                    voyage.proxy.answer_from(station.get(), BACK);
                    drop(stopped);
                    operator = Some(Operator::start(journey.lab(), &journey.options)?);
                }
                let operator = operator.as_mut().context("an operator runs")?;
                operator.runs_on(JOURNEY_DEADLINE).await
            };
            let travelled = disturbed(journey, course, surveys, &station, operating).await;
            *disturbance = struck.filter(|_| voyage.proxy.answered_from_the_past());
            travelled?;
            // The last write may end the course while the operator is being killed for it.
            let mut operator = match operator {
                Some(operator) => operator,
                None => Operator::start(journey.lab(), &journey.options)?,
            };
            voyage.end(journey, &mut operator).await
        },
    )
}
