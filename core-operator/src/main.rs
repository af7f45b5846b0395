//! The core operator: ClusterStacks become releases, releases become usable ClusterClasses.

mod args;
mod census;
mod charts;
mod clock;
mod clusters;
mod context;
mod errands;
#[cfg(test)]
mod every_call;
mod freshest;
mod heard;
mod lanes;
mod latecomers;
mod leftovers;
mod looking;
mod metrics;
mod operator;
mod providers;
mod readiness;
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

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;
use std::{io, thread};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use operator_kit::failure::chain;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Most threads that wait for the network. More cores do not make waiting faster, and every thread keeps memory of its own.
const REACTORS: usize = 4;

/// Most threads that render, look up names, or read and write files: each of sixteen downloads and four slow ones holds one for as long as
/// its source takes, each storage that hangs three, and name servers that hang eight. What is left has to be enough for all others.
const WORKERS: usize = 64;

/// How long one of those waits for more. Each keeps memory of its own, and what comes from time to time would keep all of them: they are woken in
/// turn.
const WORKER_WAITS: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    rendering::serve_tera();
    let arguments = args::Args::parse();
    if let Err(message) = arguments.check() {
        args::Args::command().error(ErrorKind::ValueValidation, message).exit();
    }
    let ended = runtime().map(|runtime| complete(runtime, operate(arguments)));
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

async fn operate(arguments: args::Args) -> ExitCode {
    operator_kit::client::install_crypto();
    #[cfg(feature = "mutants")]
    if let Some(mutant) = arguments.mutant {
        operator_kit::mutants::plant(mutant);
    }
    match Box::pin(run::run(arguments)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = chain(error.as_ref());
            // Whoever reads JSON lines reads nothing else.
            if tracing::enabled!(tracing::Level::ERROR) {
                tracing::error!(error, "the operator ended");
            } else {
                eprintln!("core-operator: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::{Arc, Barrier, mpsc};
    use std::time::Instant;

    use super::*;

    thread_local! {
        /// Held for as long as the thread lives.
        static MARK: RefCell<Option<Arc<()>>> = const { RefCell::new(None) };
    }

    #[test]
    fn threads_end_that_a_little_work_would_keep_in_turn() {
        let runtime = runtime().unwrap();
        let (alive, all_there) = (Arc::new(()), Arc::new(Barrier::new(WORKERS)));
        let burst: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (mark, all_there) = (Arc::clone(&alive), Arc::clone(&all_there));
                runtime.spawn_blocking(move || {
                    MARK.set(Some(mark));
                    all_there.wait();
                })
            })
            .collect();
        for work in burst {
            runtime.block_on(work).unwrap();
        }
        assert_eq!(Arc::strong_count(&alive), 1 + WORKERS);
        // Each is woken every three seconds, until there are fewer.
        let end = Instant::now() + WORKER_WAITS * 8;
        while Arc::strong_count(&alive) > WORKERS / 2 {
            assert!(Instant::now() < end, "{} threads live", Arc::strong_count(&alive) - 1);
            runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
            thread::sleep(WORKER_WAITS / 5);
        }
    }

    #[test]
    fn downloads_that_hang_leave_threads_for_other_work() {
        let runtime = runtime().unwrap();
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
        let answer = others.recv_timeout(WORKER_WAITS * 10);
        hanging.wait();
        assert_eq!(answer, Ok(()));
    }

    #[test]
    fn thread_that_hangs_does_not_keep_the_process() {
        let (storage, answer) = mpsc::channel::<()>();
        let outcome = complete(runtime().unwrap(), async {
            let (reading, read) = mpsc::channel();
            tokio::task::spawn_blocking(move || {
                reading.send(()).unwrap();
                answer.recv()
            });
            read.recv().unwrap();
            "done"
        });
        assert_eq!(outcome, "done");
        // The thread still waits for it.
        assert!(storage.send(()).is_ok());
    }
}
