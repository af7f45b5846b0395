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
mod kinds;
mod metrics;
mod objects;
mod operator;
mod progress;
mod readiness;
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
use operator_kit::process::Program;

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
    let arguments = args::CommandLine::parse().args();
    if let Err(message) = arguments.check() {
        args::CommandLine::command()
            .error(ErrorKind::ValueValidation, message)
            .exit();
    }
    PROGRAM.operate(run::run(arguments))
}
