//! `helm-oracle`: our chart engine beside the real Helm.
//!
//! This file knows the words of the command line and the exit codes; what a command does is decided in the library.

mod arguments;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Parser, Subcommand};

use self::arguments::{ConformanceArguments, FuzzCommand, OracleBenchCommand};

/// Our chart engine beside the real Helm
///
/// Needs what `cargo xtask setup` builds and fetches, and our `helm-template` beside this program.
#[derive(Debug, Parser)]
// People reach it through the chores.
#[command(name = "helm-oracle", bin_name = "cargo xtask", version, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Render charts with the real Helm and with ours, and compare what they answer
    Conformance(ConformanceArguments),
    /// Measure: prints a table, and with --json FILE writes the same as JSON
    #[command(subcommand)]
    Bench(OracleBenchCommand),
    /// Search for differences with generated charts
    #[command(subcommand)]
    Fuzz(FuzzCommand),
}

fn main() -> ExitCode {
    run(Arguments::parse().command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Conformance(_) => bail!("conformance is not built yet"),
        Command::Bench(OracleBenchCommand::Render(_)) => bail!("bench render is not built yet"),
        Command::Fuzz(FuzzCommand::Helm(_)) => bail!("fuzz helm is not built yet"),
    }
}
