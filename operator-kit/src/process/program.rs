//! The program from its first thread to its exit code.

use std::error::Error;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Runtime};

use crate::client::install_crypto;
use crate::failure::chain;
use crate::telemetry::{LogLevel, LoggingError, Traces};

/// Most threads that wait for the network. More cores do not make waiting faster, and every thread keeps memory of its own.
const REACTORS: usize = 4;

/// How long a thread for blocking work waits for more. Each keeps memory of its own, and what comes from time to time would keep all of them: they are
/// woken in turn.
const WORKER_WAITS: Duration = Duration::from_secs(1);

/// What the program of an operator is called, and how large it may become.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name, such as `core-operator`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Most threads for work that blocks: files, names of hosts, computing. What hangs keeps its thread; what is left has to be enough for all others.
    pub workers: usize,
}

impl Program {
    /// What it calls itself where it asks.
    pub fn user_agent(&self) -> String {
        format!("stackwright-{}/{}", self.name, self.version)
    }

    /// Does the work of an operator, and tells the error that it ends with.
    pub fn operate<E>(&self, work: impl Future<Output = Result<(), E>>) -> ExitCode
    where
        E: AsRef<dyn Error + 'static>,
    {
        self.complete(async {
            match Box::pin(work).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    let error = chain(error.as_ref());
                    // Whoever reads JSON lines reads nothing else.
                    if tracing::enabled!(tracing::Level::ERROR) {
                        tracing::error!(error, "the operator ended");
                    } else {
                        eprintln!("{}: {error}", self.name);
                    }
                    ExitCode::FAILURE
                }
            }
        })
    }

    /// Does work that says itself how the process ends, on threads of its own.
    pub fn complete(&self, work: impl Future<Output = ExitCode>) -> ExitCode {
        install_crypto();
        let ended = self.runtime().map(|runtime| complete(runtime, work));
        ended.unwrap_or_else(|error| {
            eprintln!("{}: failed to start threads: {error}", self.name);
            ExitCode::FAILURE
        })
    }

    /// The threads that it works with.
    pub fn runtime(&self) -> io::Result<Runtime> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Builder::new_multi_thread()
            .worker_threads(cores.min(REACTORS))
            .max_blocking_threads(self.workers)
            .thread_keep_alive(WORKER_WAITS)
            .enable_all()
            .build()
    }
}

/// Does the work and nothing after it: a thread that reads a file from a storage that hangs must not keep the process.
fn complete<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

/// Works until the process is asked to stop: with the last spans sent, and with nothing logged after the word that it stopped.
pub async fn until_stopped<E>(
    log_level: &LogLevel,
    traces: Option<Traces>,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), E>
where
    E: From<LoggingError>,
{
    let outcome = work.await;
    if let Some(traces) = traces {
        // What led to an end with an error is what somebody looks for.
        traces.end().await;
    }
    outcome?;
    tracing::info!("stopped");
    // The connections end with the process, and nobody needs to hear that of each watch.
    log_level.set("off")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::{Arc, Barrier, mpsc};
    use std::time::Instant;

    use super::*;

    const PROGRAM: Program = Program {
        name: "operator",
        version: "1",
        workers: 32,
    };

    thread_local! {
        /// Held for as long as the thread lives.
        static MARK: RefCell<Option<Arc<()>>> = const { RefCell::new(None) };
    }

    #[test]
    fn threads_end_that_a_little_work_would_keep_in_turn() {
        const WORKERS: usize = PROGRAM.workers;
        let runtime = PROGRAM.runtime().unwrap();
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
            thread::sleep(WORKER_WAITS / 10);
        }
    }

    #[test]
    fn thread_that_hangs_does_not_keep_the_process() {
        let (storage, answer) = mpsc::channel::<()>();
        let outcome = complete(PROGRAM.runtime().unwrap(), async {
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

    #[test]
    fn an_operator_that_may_not_go_on_ends_with_a_failure() {
        let failure: Box<dyn Error> = "it could not".into();
        assert_eq!(PROGRAM.operate(async { Err(failure) }), ExitCode::FAILURE);
        assert_eq!(
            PROGRAM.operate(async { Ok::<(), Box<dyn Error>>(()) }),
            ExitCode::SUCCESS
        );
    }
}
