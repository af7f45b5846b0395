//! `lab storm`: courses under seeds, with a table of what came of them.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
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
    let (done, ended) = oneshot::channel();
    let mutant = arguments.mutant.map(name_of);
    let subject = mutant.as_deref().map(Subject::mutant).unwrap_or_default();
    let hunting = mutant.is_some();
    let (count, records) = (runs.len(), Records::default());
    let kept = Arc::clone(&records);
    // A journey brings a runtime of its own. The thread ends with the process, and so does all that the journeys started.
    thread::spawn(move || done.send(sail(&courses, runs, &subject, jobs, hunting, &kept)));
    let broken_off = tokio::select! {
        ended = ended => {
            ended.context("the runs ended abnormally")??;
            false
        }
        _ = interrupted.recv() => true,
        _ = terminated.recv() => true,
    };
    let records = records.lock().unwrap_or_else(PoisonError::into_inner);
    report(&records);
    if broken_off {
        say(&format!("broken off after {} of {count} runs", records.len()));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(judged(&records, mutant.as_deref()))
}

/// What is told of a run that has ended.
struct Record {
    run: Run,
    failed: bool,
    blows: usize,
    writes: usize,
    elapsed: Duration,
}

type Records = Arc<Mutex<Vec<Record>>>;

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
        StormJourney::Provider => vec![Course::Provider],
        StormJourney::Shared => vec![Course::Shared],
        StormJourney::Addons => vec![Course::Addons],
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

/// Makes all runs and keeps a record of each; `hunting`, until one fails.
fn sail(
    courses: &[Course],
    runs: Vec<Run>,
    subject: &Subject,
    jobs: usize,
    hunting: bool,
    records: &Records,
) -> Result<()> {
    let progress = Progress::start("storm".to_owned());
    progress.step("goes each course in fair weather");
    let surveys = Surveys::of(courses)?;
    let count = runs.len();
    let outcomes = run_all(&surveys, runs, subject, jobs, |outcome| {
        let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
        records.push(Record {
            run: outcome.run,
            failed: outcome.result.is_err(),
            blows: outcome.blows.len() + outcome.struck.len(),
            writes: outcome.writes,
            elapsed: outcome.elapsed,
        });
        if let Err(error) = &outcome.result {
            progress.tell(&failure(outcome, error));
        }
        let failed = records.iter().filter(|record| record.failed).count();
        progress.tick(&format!("{} of {count} runs, {failed} failed", records.len()));
        if hunting && failed > 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    outcomes.map(drop)
}

fn failure(outcome: &Outcome, error: &anyhow::Error) -> String {
    let Outcome {
        run,
        namespace,
        blows,
        struck,
        ..
    } = outcome;
    let first = blows.len().saturating_sub(BLOWS_SHOWN);
    let blows = blows[first..].iter().map(|blow| format!("    {blow}"));
    let struck = struck.iter().map(|struck| format!("    {struck}"));
    let blows: Vec<String> = struck.chain(blows).collect();
    format!(
        "FAILED {run} in {namespace}: {error:#}\n  the last faults:\n{}\n  again: {}",
        blows.join("\n"),
        run.command()
    )
}

#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn say(line: &str) {
    println!("{line}");
}

/// Prints the table, and how to repeat what failed.
fn report(records: &[Record]) {
    say("| journey | runs | failed | faults dealt | writes tried | median | longest |");
    say("|---|---:|---:|---:|---:|---:|---:|");
    for course in Course::ALL {
        let of_course: Vec<_> = records.iter().filter(|record| record.run.course == course).collect();
        let mut times: Vec<Duration> = of_course.iter().map(|record| record.elapsed).collect();
        times.sort();
        let Some(longest) = times.last() else { continue };
        let median = times[times.len() / 2];
        let failed = of_course.iter().filter(|record| record.failed).count();
        let blows: usize = of_course.iter().map(|record| record.blows).sum();
        let writes: usize = of_course.iter().map(|record| record.writes).sum();
        say(&format!(
            "| {} | {} | {failed} | {blows} | {writes} | {:.1} s | {:.1} s |",
            course.name(),
            of_course.len(),
            median.as_secs_f64(),
            longest.as_secs_f64()
        ));
    }
    let mut failed: BTreeMap<String, u32> = BTreeMap::new();
    for record in records.iter().filter(|record| record.failed) {
        *failed.entry(record.run.command()).or_default() += 1;
    }
    for (command, times) in failed {
        let times = if times > 1 {
            format!(" {times} times")
        } else {
            String::new()
        };
        say(&format!("failed{times}: {command}"));
    }
}

fn judged(records: &[Record], mutant: Option<&str>) -> ExitCode {
    let found = records.iter().any(|record| record.failed);
    if let Some(mutant) = mutant {
        let found = if found { "was found" } else { "was not found" };
        say(&format!("{mutant} {found} in {} runs", records.len()));
    }
    if found == mutant.is_some() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
