//! `lab storm`: courses under seeds, with a table of what came of them.

use std::{
    ops::ControlFlow,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use e2e::{
    storm::{Outcome, Run, Subject, Surveys, run_all},
    travel::Course,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::{
    arguments::{Mutant, StormArguments, StormJourney},
    progress::Progress,
};

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// The last faults before a failure say most.
const BLOWS_SHOWN: usize = 12;

pub(crate) async fn run(arguments: &StormArguments) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let (courses, runs) = (courses(arguments.journey), runs(arguments));
    let jobs = usize::from(arguments.jobs);
    let (done, outcomes) = oneshot::channel();
    // A journey brings a runtime of its own. The thread ends with the process, and so does all that the journeys started.
    let mutant = arguments.mutant.map(name_of);
    let subject = mutant.as_deref().map(Subject::mutant).unwrap_or_default();
    let hunting = mutant.is_some();
    thread::spawn(move || done.send(sail(&courses, runs, &subject, jobs, hunting)));
    tokio::select! {
        outcomes = outcomes => Ok(judged(&outcomes.context("the runs ended abnormally")??, mutant.as_deref())),
        _ = interrupted.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminated.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

/// As the command line has it.
fn name_of(mutant: Mutant) -> String {
    mutant
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn courses(journey: StormJourney) -> Vec<Course> {
    match journey {
        StormJourney::Install => vec![Course::Install],
        StormJourney::Upgrade => vec![Course::Upgrade],
        StormJourney::Repair => vec![Course::Repair],
        StormJourney::Remove => vec![Course::Remove],
        StormJourney::Life => vec![Course::Life],
        StormJourney::All => Course::ALL.to_vec(),
    }
}

fn runs(arguments: &StormArguments) -> Vec<Run> {
    let seeds = arguments
        .seed
        .map_or(0..arguments.seeds, |seed| seed..seed.saturating_add(1));
    let courses = courses(arguments.journey);
    let of_seed = |seed| courses.iter().map(move |course| Run { course: *course, seed });
    seeds
        .flat_map(of_seed)
        .flat_map(|run| (0..arguments.times).map(move |_| run))
        .collect()
}

/// Makes all runs; `hunting`, until one fails.
fn sail(courses: &[Course], runs: Vec<Run>, subject: &Subject, jobs: usize, hunting: bool) -> Result<Vec<Outcome>> {
    let progress = Progress::start("storm".to_owned());
    progress.step("goes each course in fair weather");
    let surveys = Surveys::of(courses)?;
    let count = runs.len();
    let (ended, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let screen = Mutex::new(());
    run_all(&surveys, runs, subject, jobs, |outcome| {
        let _screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
        if let Err(error) = &outcome.result {
            failed.fetch_add(1, Ordering::Relaxed);
            progress.step(&failure(outcome, error));
        }
        let failed = failed.load(Ordering::Relaxed);
        progress.tick(&format!("{ended} of {count} runs, {failed} failed"));
        if hunting && failed > 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
}

fn failure(outcome: &Outcome, error: &anyhow::Error) -> String {
    let Outcome {
        run, namespace, blows, ..
    } = outcome;
    let first = blows.len().saturating_sub(BLOWS_SHOWN);
    let blows: Vec<String> = blows[first..].iter().map(|blow| format!("    {blow}")).collect();
    format!(
        "FAILED {run} in {namespace}: {error:#}\n  the last faults:\n{}\n  again: {}",
        blows.join("\n"),
        run.command()
    )
}

/// Prints the table.
#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn judged(outcomes: &[Outcome], mutant: Option<&str>) -> ExitCode {
    println!("| journey | runs | failed | faults dealt | writes tried | median | longest |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    for course in Course::ALL {
        let of_course: Vec<_> = outcomes.iter().filter(|outcome| outcome.run.course == course).collect();
        let mut times: Vec<Duration> = of_course.iter().map(|outcome| outcome.elapsed).collect();
        times.sort();
        let Some(longest) = times.last() else { continue };
        let median = times[times.len() / 2];
        let failed = of_course.iter().filter(|outcome| outcome.result.is_err()).count();
        let blows: usize = of_course.iter().map(|outcome| outcome.blows.len()).sum();
        let writes: usize = of_course.iter().map(|outcome| outcome.writes).sum();
        println!(
            "| {} | {} | {failed} | {blows} | {writes} | {:.1} s | {:.1} s |",
            course.name(),
            of_course.len(),
            median.as_secs_f64(),
            longest.as_secs_f64()
        );
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
    for outcome in &failed {
        println!("failed: {}", outcome.run.command());
    }
    if let Some(mutant) = mutant {
        let found = if failed.is_empty() {
            "was not found"
        } else {
            "was found"
        };
        println!("{mutant} {found} in {} runs", outcomes.len());
    }
    if failed.is_empty() == mutant.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
