//! The provider operator: node images into a cloud.

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
mod progress;
mod readiness;
#[cfg(feature = "docker")]
mod registries;
mod registry;
mod release;
mod run;
mod source;
#[cfg(test)]
mod stand_ins;
mod supply;
mod worker;

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
            if let Err(message) = arguments.check() {
                args::CommandLine::command()
                    .error(ErrorKind::ValueValidation, message)
                    .exit();
            }
            PROGRAM.operate(run::run(*arguments))
        }
        Asked::Worker(arguments) => PROGRAM.complete(send(arguments)),
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
