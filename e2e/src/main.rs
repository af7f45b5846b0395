//! `lab`: the control plane of the tests, for people.

mod arguments;
mod bench;
mod commands;
mod demo;
mod progress;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use e2e::node;

use self::arguments::{
    BenchCommand, ConformanceProviderArguments, ControlPlaneCommand, DemoArguments, SoakArguments, StormArguments,
};

/// A real Kubernetes control plane on this machine, without containers
///
/// Needs what `cargo xtask setup` builds and fetches. Everything runs under this user and on the loopback interface.
#[derive(Debug, Parser)]
// People reach it through the chores.
#[command(name = "lab", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start, find and stop a control plane that stays until it is stopped
    #[command(subcommand)]
    ControlPlane(ControlPlaneCommand),
    /// Releases that come and go for hours, in bad weather, under one operator: what it holds over time, and whether that grows
    Soak(SoakArguments),
    /// Measure: prints a table, and with --json FILE writes the same as JSON
    #[command(subcommand)]
    Bench(BenchCommand),
    /// The life of one ClusterStack, as it happens: it becomes usable, is upgraded, damaged, repaired and removed
    Demo(DemoArguments),
    /// Run the node of a test, as the first process of its namespaces
    #[command(hide = true)]
    NodeInside {
        /// The folder of the node
        folder: PathBuf,
    },
    /// Journeys of the operator in bad weather: seeded faults between it and the API server, and what must hold afterwards
    Storm(StormArguments),
    /// Hold somebody's operator of a provider, on a cluster on which it runs, against the contract with the core operator
    ConformanceProvider(Box<ConformanceProviderArguments>),
}

#[tokio::main]
async fn main() -> ExitCode {
    run(Arguments::parse().command).await.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

async fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::ControlPlane(command) => commands::control_plane::run(command).await.map(|()| ExitCode::SUCCESS),
        Command::Bench(command) => bench::run(command).await,
        Command::Demo(arguments) => Box::pin(demo::run(arguments)).await,
        Command::NodeInside { folder } => node::inside::run(&folder).map(|()| ExitCode::SUCCESS),
        Command::Soak(arguments) => commands::soak::run(&arguments).await,
        Command::Storm(arguments) => commands::storm::run(&arguments).await,
        Command::ConformanceProvider(arguments) => commands::conformance_provider::run(*arguments).await,
    }
}
