//! Counting writes, and the one at which the proxy stops the world.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use http::{Method, Request};
use tokio::sync::{oneshot, watch};

/// When at the chosen write the world stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The API server does not learn of the write.
    BeforeForwarding,
    /// The write is done, whatever its outcome, and its answer is swallowed.
    AfterCommit,
}

/// A write that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// POST, PUT, PATCH or DELETE.
    pub method: Method,
    /// Without the query.
    pub path: String,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A proxy that is armed. Dropped, it stays armed, but nobody waits: the stop is over as soon as it begins.
#[derive(Debug)]
pub struct Strike(oneshot::Receiver<Struck>);

impl Strike {
    /// Waits until the chosen write arrives (and, after the commit, until the API server has answered).
    pub async fn wait(self, deadline: Duration) -> Result<Struck> {
        let struck = tokio::time::timeout(deadline, self.0).await;
        struck
            .with_context(|| format!("the chosen write did not arrive within {deadline:?}"))?
            .context("the proxy was armed anew or stopped before the chosen write arrived")
    }
}

/// The world is stopped: neither the chosen write nor any request after it is answered or passed on. (Watches that run go
/// on; they can move a program to nothing that would get through.) A test now does to the program what it wants to.
///
/// Dropped, the held requests are closed without an answer, and the proxy passes on what comes after them.
#[derive(Debug)]
pub struct Struck {
    /// The write that was chosen.
    pub write: Write,
    pub(super) _release: watch::Sender<bool>,
}

/// The count of writes and the armed strike.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    writes: Vec<Write>,
    armed: Option<Armed>,
    stopped: Option<watch::Receiver<bool>>,
}

#[derive(Debug)]
struct Armed {
    n: usize,
    /// Of these writes it is the n-th.
    is_counted: fn(&Write) -> bool,
    point: Point,
    waiting: oneshot::Sender<Struck>,
}

/// What is to be done with a request.
pub(super) enum Verdict {
    Pass,
    /// It came while the world is stopped: hold it until the stop is over, then close its connection.
    Hold(watch::Receiver<bool>),
    /// It is the chosen write.
    Strike(Pending),
}

/// The chosen write on its way.
pub(super) struct Pending {
    pub(super) point: Point,
    write: Write,
    waiting: oneshot::Sender<Struck>,
}

impl Ledger {
    pub(super) fn writes(&self) -> Vec<Write> {
        self.entries().writes.clone()
    }

    pub(super) fn forget(&self) {
        self.entries().writes.clear();
    }

    pub(super) fn arm(&self, is_counted: fn(&Write) -> bool, n: usize, point: Point) -> Strike {
        let (waiting, strike) = oneshot::channel();
        self.entries().armed = Some(Armed {
            n,
            is_counted,
            point,
            waiting,
        });
        Strike(strike)
    }

    /// Counts the request if it is a write, and says what is to be done with it.
    pub(super) fn judge<B>(&self, request: &Request<B>) -> Verdict {
        let mut entries = self.entries();
        if let Some(stopped) = entries.stop() {
            return Verdict::Hold(stopped);
        }
        if !is_write(request) {
            return Verdict::Pass;
        }
        let write = Write {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
        };
        let Entries { writes, armed, .. } = &mut *entries;
        writes.push(write.clone());
        let is_chosen = |armed: &mut Armed| {
            let counted = writes.iter().filter(|write| (armed.is_counted)(write));
            (armed.is_counted)(&write) && counted.count() == armed.n
        };
        match armed.take_if(is_chosen) {
            Some(Armed { point, waiting, .. }) => Verdict::Strike(Pending { point, write, waiting }),
            None => Verdict::Pass,
        }
    }

    /// Stops the world and tells who waits for it. The answer ends when the world may go on.
    pub(super) fn stop(&self, pending: Pending) -> watch::Receiver<bool> {
        let (release, stopped) = watch::channel(true);
        self.entries().stopped = Some(stopped.clone());
        // Refused when nobody waits: then the sender is dropped here and the stop is over.
        let _ = pending.waiting.send(Struck {
            write: pending.write,
            _release: release,
        });
        stopped
    }

    /// The stop that lasts now.
    pub(super) fn stopped(&self) -> Option<watch::Receiver<bool>> {
        self.entries().stop()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn stop(&mut self) -> Option<watch::Receiver<bool>> {
        // The sender is inside of `Struck`: gone means released.
        self.stopped.take_if(|stopped| stopped.has_changed().is_err());
        self.stopped.clone()
    }
}

/// Whether the API server would change something for it. Leases are renewed by the clock, not by what a program does.
pub(super) fn is_write<B>(request: &Request<B>) -> bool {
    const WRITES: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    const NOT_COUNTED: [&str; 3] = [
        "/apis/coordination.k8s.io/",
        "/apis/authorization.k8s.io/",
        "/apis/authentication.k8s.io/",
    ];
    let path = request.uri().path();
    let dry_run = request
        .uri()
        .query()
        .is_some_and(|query| query.split('&').any(|pair| pair == "dryRun=All"));
    WRITES.contains(request.method()) && !dry_run && !NOT_COUNTED.iter().any(|prefix| path.starts_with(prefix))
}
