//! `lab bench`: what the operator costs, on a real control plane. Numbers by command, so that nobody has to believe them.
//!
//! Requests are counted by the API server's audit log and memory by the kernel, never by the operator itself.

mod converge;
mod ground;
mod idle;
mod install;
mod progress;
mod recording;
mod replay;
mod report;
mod stock;
mod usage;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use self::{ground::Machine, report::Report};

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Exit codes: 0 measured, whatever the numbers are; 1 something failed; 2 wrong arguments; 130 interrupted.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring releases of a class and templates from a directory to ready, beside a raw writer that sends the same bodies
    #[command(after_help = "Examples:\n  cargo xtask bench converge --json converge.json\n  \
                            cargo xtask bench converge --releases 200 --stacks 4 --objects 7")]
    Converge(converge::Arguments),
    /// Look for a minute at an operator that has nothing to do
    #[command(after_help = "Example:\n  cargo xtask bench idle --releases 500 --seconds 300")]
    Idle(idle::Arguments),
}

/// What every benchmark takes.
#[derive(Args, Debug)]
struct Common {
    /// Write the same as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A control plane that is already there, from `cargo xtask control-plane up --crds --audit-bodies`
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Runs one benchmark. Interrupted, it ends what it started before it returns.
pub(crate) async fn run(command: Command) -> Result<ExitCode> {
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    tokio::select! {
        measured = measure(command) => measured.map(|()| ExitCode::SUCCESS),
        _ = interrupted.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminated.recv() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

async fn measure(command: Command) -> Result<()> {
    let machine = Machine::look()?;
    match command {
        Command::Converge(arguments) => {
            let runs = converge::measure(&arguments).await?;
            Report::of("converge", machine, runs)?.publish(arguments.common.json.as_deref())
        }
        Command::Idle(arguments) => {
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
