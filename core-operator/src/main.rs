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

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    operator_kit::client::install_crypto();
    match run::run(args::Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the operator ended");
            eprintln!("core-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}
