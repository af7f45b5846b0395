//! `lab bench`: what the operator costs, on a real control plane. Numbers by command, so that nobody has to believe them.
//!
//! Requests are counted by the API server's audit log and memory by the kernel, never by the operator itself.

mod converge;
mod ground;
mod idle;
mod install;
mod recording;
mod replay;
mod report;
mod stock;
mod usage;

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use self::{ground::Machine, report::Report};
use crate::arguments::BenchCommand;

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Runs one benchmark. Interrupted, it ends what it started before it returns.
pub(crate) async fn run(command: BenchCommand) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    tokio::select! {
        measured = measure(command) => measured.map(|()| ExitCode::SUCCESS),
        _ = interrupted.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminated.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

async fn measure(command: BenchCommand) -> Result<()> {
    let machine = Machine::look()?;
    match command {
        BenchCommand::Converge(arguments) => {
            let runs = converge::measure(&arguments).await?;
            Report::of("converge", machine, runs)?.publish(arguments.common.json.as_deref())
        }
        BenchCommand::Idle(arguments) => {
            let runs = idle::measure(&arguments).await?;
            Report::of("idle", machine, runs)?.publish(arguments.common.json.as_deref())
        }
    }
}

/// To so many decimals: more would pretend to be known.
fn rounded(number: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (number * scale).round() / scale
}
