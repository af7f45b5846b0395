//! What ends the demo early: Ctrl-C, SIGTERM, a terminal that closes.

use anyhow::{Context, Error, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit code after Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// Why something did not come to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// Somebody asked for it; the exit code that says so.
    Asked(u8),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Once made, signals no longer end the process by themselves.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("failed to listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for one; the answer is the exit code of a shell for it: 128 and its number.
    pub(super) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => 143,
            _ = self.hang_up.recv() => 129,
        }
    }

    /// Does something until its end, or until a signal.
    pub(super) async fn unless_asked<T>(&mut self, work: impl Future<Output = Result<T>>) -> Result<T, Stop> {
        tokio::select! {
            // A child that heard the same Ctrl-C must not look like a failure.
            biased;
            code = self.next() => Err(Stop::Asked(code)),
            outcome = work => outcome.map_err(Stop::Failed),
        }
    }
}
