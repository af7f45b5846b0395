//! Every course under twenty seeds, the one with add-ons under five. Any number of others: `cargo xtask storm --seeds 500`.

use std::{collections::BTreeSet, ops::ControlFlow};

use anyhow::{Result, ensure};
use e2e::{
    journey::journey,
    storm::{Run, Subject, run_all},
    travel::Course,
    world::orphans,
};

use crate::surveys;

const SEEDS: u64 = 20;
/// A Cluster's add-ons are two API servers' work.
const SEEDS_WITH_ADDONS: u64 = 5;
/// Three quarters of a run are waiting.
const LANES: usize = 8;
/// A run in a storm meets this many faults on average, or there is no storm.
const FEWEST_BLOWS: usize = 5;

#[test]
fn every_course_ends_alike_in_every_storm() -> Result<()> {
    let surveys = surveys()?;
    let seeds = |course: Course| {
        if course == Course::Addons {
            SEEDS_WITH_ADDONS
        } else {
            SEEDS
        }
    };
    let of_seed = |seed| Course::ALL.map(|course| Run { course, seed });
    let runs = (0..SEEDS).flat_map(of_seed);
    let runs: Vec<Run> = runs.filter(|run| run.seed < seeds(run.course)).collect();
    let outcomes = run_all(surveys, runs, &Subject::default(), LANES, |outcome| {
        if let Err(error) = &outcome.result {
            eprintln!(
                "{} after {:?}: {error:#}\n  again: {}",
                outcome.run,
                outcome.elapsed,
                outcome.run.command()
            );
        }
        ControlFlow::Continue(())
    })?;
    let failed: Vec<String> = outcomes
        .iter()
        .filter(|outcome| outcome.result.is_err())
        .map(|outcome| outcome.run.command())
        .collect();
    ensure!(
        failed.is_empty(),
        "{} of {} runs failed: {failed:#?}",
        failed.len(),
        outcomes.len()
    );
    let struck: usize = outcomes.iter().map(|outcome| outcome.struck.len()).sum();
    let shared = outcomes.iter().filter(|outcome| outcome.run.course == Course::Shared);
    ensure!(struck >= shared.count(), "sources met only {struck} faults");
    let blows: usize = outcomes.iter().map(|outcome| outcome.blows.len()).sum();
    eprintln!("{} runs met {blows} faults", outcomes.len());
    ensure!(
        blows >= FEWEST_BLOWS * outcomes.len(),
        "{} runs met only {blows} faults",
        outcomes.len()
    );
    let namespaces: BTreeSet<String> = outcomes
        .into_iter()
        .filter(|outcome| outcome.run.course.is_emptied())
        .map(|outcome| outcome.namespace)
        .collect();
    journey(async |journey| {
        let orphans = orphans(&journey.client, &namespaces).await?;
        ensure!(orphans.is_empty(), "left over: {orphans:#?}");
        Ok(())
    })
}
