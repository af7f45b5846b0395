//! `lab`: the control plane of the tests, for people.

mod commands;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// A real Kubernetes control plane on this machine, without containers
///
/// Needs what `cargo xtask setup` builds and fetches. Everything runs under this user and on the loopback interface.
#[derive(Debug, Parser)]
#[command(name = "lab", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start, find and stop a control plane that stays until it is stopped
    #[command(subcommand)]
    ControlPlane(commands::control_plane::Command),
}

#[tokio::main]
async fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::ControlPlane(command) => commands::control_plane::run(command).await,
    }
}
