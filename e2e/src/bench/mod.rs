//! `lab bench`: what the operator costs, on a real control plane. Numbers by command, so that nobody has to believe them.
//!
//! Requests are counted by the API server's audit log and memory by the kernel, never by the operator itself.

mod addons;
mod converge;
mod download;
mod ground;
mod idle;
mod images;
mod install;
mod memory;
mod operator;
mod reaction;
mod recording;
mod replay;
mod report;
mod restart;
mod sources;
mod stock;

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use self::{ground::Machine, report::Report};
use crate::arguments::BenchCommand;

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// Every benchmark of this program.
#[cfg(test)]
const NAMES: [&str; 8] = [
    "converge", "idle", "memory", "reaction", "restart", "download", "images", "addons",
];

/// Runs one benchmark. Interrupted, it ends what it started before it returns.
pub(crate) async fn run(command: BenchCommand) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let commands = match command {
        BenchCommand::Operator(arguments) => operator::all(&arguments),
        one => vec![one],
    };
    let measuring = async {
        for command in commands {
            Box::pin(measure(command)).await?;
        }
        Ok(ExitCode::SUCCESS)
    };
    tokio::select! {
        measured = measuring => measured,
        _ = interrupted.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminated.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

async fn measure(command: BenchCommand) -> Result<()> {
    let machine = Machine::look()?;
    match command {
        // It is the others.
        BenchCommand::Operator(_) => Ok(()),
        BenchCommand::Images(arguments) => {
            let runs = images::measure(&arguments).await?;
            Report::of("images", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Addons(arguments) => {
            let runs = addons::measure(&arguments).await?;
            Report::of("addons", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Converge(arguments) => {
            let runs = converge::measure(&arguments).await?;
            Report::of("converge", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Idle(arguments) => {
            let runs = idle::measure(&arguments).await?;
            Report::of("idle", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Memory(arguments) => {
            let runs = memory::measure(&arguments).await?;
            Report::of("memory", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Reaction(arguments) => {
            let runs = reaction::measure(&arguments).await?;
            Report::of("reaction", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Restart(arguments) => {
            let runs = restart::measure(&arguments).await?;
            Report::of("restart", machine, runs)?.publish(&arguments.common.output)
        }
        BenchCommand::Download(arguments) => {
            let runs = download::measure(&arguments).await?;
            Report::of("download", machine, runs)?.publish(&arguments.common.output)
        }
    }
}
