//! `helm-oracle`: our chart engine beside the real Helm.
//!
//! This file knows the words of the command line and the exit codes; what a command does is decided in the library.

mod arguments;

use std::{
    fs,
    io::{Write as _, stdout},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};

use helm_oracle::{
    Lab,
    conformance::{self, Settings},
};

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
        Command::Conformance(arguments) => conformance(arguments),
        Command::Bench(OracleBenchCommand::Render(_)) => bail!("bench render is not built yet"),
        Command::Fuzz(FuzzCommand::Helm(_)) => bail!("fuzz helm is not built yet"),
    }
}

fn conformance(arguments: ConformanceArguments) -> anyhow::Result<ExitCode> {
    let ConformanceArguments {
        profiles,
        charts,
        names,
        json,
        keep,
    } = arguments;
    let settings = Settings {
        profiles,
        charts,
        names,
        keep,
        remember: true,
    };
    let report = conformance::run(&settings, &Lab::load()?)?;
    write!(stdout(), "{report}").context("failed to write to standard output")?;
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&report).context("failed to write the report as JSON")?;
        fs::write(&file, text + "\n").with_context(|| format!("failed to write {}", file.display()))?;
    }
    if report.total.renders == 0 {
        eprintln!("error: there is no chart to render");
    }
    Ok(if report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
