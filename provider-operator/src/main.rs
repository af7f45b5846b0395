//! The provider operator: node images into a cloud.

mod amount;
mod args;
mod clock;
mod context;
mod driver;
#[cfg(test)]
mod every_call;
mod executor;
mod identity;
mod image;
mod image_files;
#[cfg(feature = "filestore")]
mod image_server;
mod kinds;
mod metrics;
mod objects;
mod operator;
mod owner;
mod progress;
#[cfg(feature = "docker")]
mod registries;
mod registry;
mod release;
mod run;
mod source;
#[cfg(test)]
mod stand_ins;
mod supply;
mod sweeper;
mod worker;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use operator_kit::failure::chain;
use operator_kit::process::Program;

use crate::args::Asked;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PROGRAM: Program = Program {
    name: "provider-operator",
    version: env!("CARGO_PKG_VERSION"),
    // For unpacking images, looking up names, and reading or writing files: each transfer may hold two for as long as it takes, and each storage that
    // hangs some.
    workers: 96,
};

fn main() -> ExitCode {
    match args::CommandLine::parse().asked() {
        Asked::Run(arguments) => {
            insist(arguments.check());
            PROGRAM.operate(run::run(*arguments))
        }
        Asked::Orphans(arguments, listing) => {
            insist(arguments.check_clouds());
            PROGRAM.complete(list(*arguments, listing))
        }
        Asked::Worker(arguments) => PROGRAM.complete(send(arguments)),
    }
}

/// Ends as for a flag that is wrong, where flags do not go together.
fn insist(checked: Result<(), String>) {
    if let Err(message) = checked {
        args::CommandLine::command()
            .error(ErrorKind::ValueValidation, message)
            .exit();
    }
}

/// What scripts can tell apart: nothing is left, something is, and nobody knows.
async fn list(arguments: args::Args, listing: args::Listing) -> ExitCode {
    /// As the help of the command says it.
    const LEFT: u8 = 3;
    let left = match Box::pin(run::list(&arguments, listing)).await {
        Ok(left) => left,
        Err(error) => {
            eprintln!("provider-operator: {}", chain(error.as_ref()));
            return ExitCode::FAILURE;
        }
    };
    if let Err(error) = io::stdout().write_all(left.text.as_bytes()) {
        eprintln!("provider-operator: failed to print the list: {error}");
        return ExitCode::FAILURE;
    }
    for trouble in &left.troubles {
        eprintln!("provider-operator: {trouble}");
    }
    match left.orphans {
        _ if !left.troubles.is_empty() => ExitCode::FAILURE,
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(LEFT),
    }
}

/// What a Job is for.
async fn send(arguments: args::WorkerArgs) -> ExitCode {
    operator_kit::client::install_crypto();
    match Box::pin(worker::program::run(&arguments)).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("provider-operator worker: {}", chain(error.as_ref()));
            ExitCode::from(worker::exit::WRONG)
        }
    }
}
