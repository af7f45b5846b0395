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

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;
use std::{io, thread};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use operator_kit::failure::chain;

use crate::args::Asked;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Most threads that wait for the network. More cores do not make waiting faster, and every thread keeps memory of its own.
const REACTORS: usize = 4;

/// Most threads that unpack images, look up names, or read and write files: each transfer may hold two for as long as it takes, and each storage
/// that hangs some. What is left has to be enough for all others.
const WORKERS: usize = 96;

/// How long one of those waits for more. Each keeps memory of its own.
const WORKER_WAITS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let ended = match args::CommandLine::parse().asked() {
        Asked::Run(arguments) => {
            if let Err(message) = arguments.check() {
                args::CommandLine::command()
                    .error(ErrorKind::ValueValidation, message)
                    .exit();
            }
            runtime().map(|runtime| complete(runtime, operate(*arguments)))
        }
        Asked::Worker(arguments) => runtime().map(|runtime| complete(runtime, send(arguments))),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("provider-operator: failed to start threads: {error}");
        ExitCode::FAILURE
    })
}

fn runtime() -> io::Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.min(REACTORS))
        .max_blocking_threads(WORKERS)
        .thread_keep_alive(WORKER_WAITS)
        .enable_all()
        .build()
}

/// Does the work and nothing after it: a thread that reads a file from a storage that hangs must not keep the process.
fn complete<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
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

async fn operate(arguments: args::Args) -> ExitCode {
    operator_kit::client::install_crypto();
    match Box::pin(run::run(arguments)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = chain(error.as_ref());
            // Whoever reads JSON lines reads nothing else.
            if tracing::enabled!(tracing::Level::ERROR) {
                tracing::error!(error, "the operator ended");
            } else {
                eprintln!("provider-operator: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
