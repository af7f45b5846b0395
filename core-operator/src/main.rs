//! The core operator: ClusterStacks become releases, releases become usable ClusterClasses.

mod addon;
mod args;
mod by_kind;
mod census;
mod certificates;
mod charts;
mod clock;
mod clusters;
mod context;
mod driver;
mod errands;
#[cfg(test)]
mod every_call;
mod freshest;
mod heard;
mod hooks;
mod lanes;
mod latecomers;
mod leftovers;
mod looking;
mod metrics;
mod objects;
mod operator;
mod providers;
mod release;
mod run;
mod shared_answer;
mod sources;
mod spans;
mod stack;
mod surroundings;
mod tasks;
mod triggers;
mod webhooks;
mod wishes;
mod workloads;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use operator_kit::process::Program;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PROGRAM: Program = Program {
    name: "core-operator",
    version: env!("CARGO_PKG_VERSION"),
    // For rendering, looking up names, and reading or writing files: each of sixteen downloads and four slow ones holds one for as long as its source
    // takes, each storage that hangs three, and name servers that hang eight.
    workers: 64,
};

fn main() -> ExitCode {
    rendering::serve_tera();
    let arguments = args::Args::parse();
    if let Err(message) = arguments.check() {
        args::Args::command().error(ErrorKind::ValueValidation, message).exit();
    }
    #[cfg(feature = "mutants")]
    if let Some(mutant) = arguments.mutant {
        operator_kit::mutants::plant(mutant);
    }
    PROGRAM.operate(run::run(arguments))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, mpsc};
    use std::time::Duration;

    use super::*;

    /// Longer than a thread takes to begin.
    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn downloads_that_hang_leave_threads_for_other_work() {
        let runtime = PROGRAM.runtime().unwrap();
        let downloads = ::release::store::StoreOptions::new("cache".into(), 0).downloads;
        let (hanging, all_there) = (
            Arc::new(Barrier::new(downloads + 1)),
            Arc::new(Barrier::new(downloads + 1)),
        );
        for _ in 0..downloads {
            let (hanging, all_there) = (Arc::clone(&hanging), Arc::clone(&all_there));
            runtime.spawn_blocking(move || {
                all_there.wait();
                hanging.wait();
            });
        }
        all_there.wait();
        let (done, others) = mpsc::channel();
        runtime.spawn_blocking(move || done.send(()));
        let answer = others.recv_timeout(LONG);
        hanging.wait();
        assert_eq!(answer, Ok(()));
    }
}
