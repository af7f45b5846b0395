//! The core operator: ClusterStacks become releases, releases become usable ClusterClasses.

mod args;
mod clusters;
mod context;
mod freshest;
mod operator;
mod providers;
mod release;
mod run;
mod sources;
mod stack;
mod triggers;

use std::process::ExitCode;
use std::{io, thread};

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Most threads that wait for the network. More cores do not make waiting faster, and every thread keeps memory of its own.
const REACTORS: usize = 4;

/// Most threads that render or read files.
const WORKERS: usize = 8;

fn main() -> ExitCode {
    let arguments = args::Args::parse();
    let ended = runtime().map(|runtime| runtime.block_on(operate(arguments)));
    ended.unwrap_or_else(|error| {
        eprintln!("core-operator: failed to start threads: {error}");
        ExitCode::FAILURE
    })
}

fn runtime() -> io::Result<Runtime> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(cores.min(REACTORS))
        .max_blocking_threads(WORKERS)
        .enable_all()
        .build()
}

async fn operate(arguments: args::Args) -> ExitCode {
    operator_kit::client::install_crypto();
    match run::run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever reads JSON lines reads nothing else.
            if tracing::enabled!(tracing::Level::ERROR) {
                tracing::error!(error = format!("{error:#}"), "the operator ended");
            } else {
                eprintln!("core-operator: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
