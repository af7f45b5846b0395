//! `lab soak`: a line for each sample, and at the end what grows.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use e2e::{
    journey::journey,
    soak::{Plan, Sample, Until, Verdict, judge, soak, verdict},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::{arguments::SoakArguments, progress::Progress};

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// There were too few samples to say whether anything grows.
const UNTOLD: u8 = 3;
const HEADINGS: &str = "| minute | resident MiB | heap MiB | open files | threads | tasks | queue | releases | requests | faults | deeds |\n\
                        |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

type Samples = Arc<Mutex<Vec<Sample>>>;

pub(crate) async fn run(arguments: &SoakArguments) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let plan = Plan {
        stacks: arguments.stacks.into(),
        seed: arguments.seed,
        until: Until::Elapsed(Duration::from_mins(arguments.minutes.into())),
        interval: Duration::from_secs(arguments.interval.into()),
    };
    let samples = Samples::default();
    let (done, ended) = oneshot::channel();
    let kept = Arc::clone(&samples);
    // A journey brings a runtime of its own and is named after its thread, which ends with the process, and so does all that it started.
    thread::Builder::new()
        .name("soak".to_owned())
        .spawn(move || done.send(live_through(plan, &kept)))
        .context("failed to start a thread")?;
    let broken_off = tokio::select! {
        ended = ended => {
            let outcome = ended.context("the soak ended abnormally")?;
            if let Err(error) = outcome {
                judged(&lock(&samples));
                return Err(error);
            }
            false
        }
        _ = interrupted.recv() => true,
        _ = terminated.recv() => true,
    };
    let verdict = judged(&lock(&samples));
    Ok(match (broken_off, verdict) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, Verdict::Grows) => ExitCode::FAILURE,
        (false, Verdict::Untold) => ExitCode::from(UNTOLD),
        (false, Verdict::Steady) => ExitCode::SUCCESS,
    })
}

fn live_through(plan: Plan, samples: &Samples) -> Result<()> {
    let progress = Progress::start("soak".to_owned());
    progress.step(&format!(
        "starts a control plane and packs releases of {} stacks",
        plan.stacks
    ));
    journey(async |journey| {
        let mut is_first = true;
        soak(journey, plan, |sample| {
            if is_first {
                say(HEADINGS);
                is_first = false;
            }
            say(&line(sample));
            lock(samples).push(*sample);
        })
        .await
    })
}

fn lock(samples: &Samples) -> std::sync::MutexGuard<'_, Vec<Sample>> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(sample: &Sample) -> String {
    let Sample {
        elapsed,
        usage,
        tasks,
        queue,
        releases,
        requests,
        faults,
        deeds,
    } = sample;
    format!(
        "| {:.1} | {:.1} | {:.1} | {} | {} | {tasks} | {queue} | {releases} | {requests} | {faults} | {deeds} |",
        elapsed.as_secs_f64() / 60.0,
        usage.resident_mib,
        usage.anonymous_mib,
        usage.open_files,
        usage.threads,
    )
}

/// Prints what came of each measure, and tells what came of all.
fn judged(samples: &[Sample]) -> Verdict {
    let judged = judge(samples);
    say("\n| | per hour | by chance up to | second half more | at most | grows |\n|---|---:|---:|---:|---:|---|");
    for one in &judged {
        let grows = match one.verdict() {
            Verdict::Grows => "**yes**",
            Verdict::Steady => "no",
            Verdict::Untold => "too few samples to say",
        };
        let name = one.name;
        say(&match one.found {
            None => format!("| {name} | | | | | {grows} |"),
            Some(found) => format!(
                "| {name} | {:+.2} | {:.2} | {:+.2} | {} | {grows} |",
                found.trend.per_hour, found.trend.noise, found.rise, found.most
            ),
        });
    }
    verdict(&judged)
}

#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn say(text: &str) {
    println!("{text}");
}
