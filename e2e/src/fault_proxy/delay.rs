//! Writes that arrive late: held on their way while everything else passes, and delivered when a test says so.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use http::{Request, StatusCode};
use tokio::sync::oneshot;

use super::strike::{Write, is_write};

/// A proxy that waits for a write to hold.
#[derive(Debug)]
pub struct Delay(oneshot::Receiver<Late>);

impl Delay {
    /// Waits until the write is there, whole: its program may be stopped now.
    pub async fn wait(self, deadline: Duration) -> Result<Late> {
        let late = tokio::time::timeout(deadline, self.0).await;
        late.with_context(|| format!("the write to be held did not arrive within {deadline:?}"))?
            .context("the proxy was stopped before the write arrived")
    }
}

/// A write that has left its program and has not reached the API server. Dropped, it never does, and its connection is closed.
#[derive(Debug)]
pub struct Late {
    /// Which.
    pub write: Write,
    deliver: oneshot::Sender<Told>,
}

/// Where the API server's answer is told.
pub(super) type Told = oneshot::Sender<StatusCode>;

impl Late {
    /// Whether its program still waits for the answer.
    pub fn is_awaited(&self) -> bool {
        !self.deliver.is_closed()
    }

    /// Lets it arrive; the answer is the API server's, and its program hears it too.
    pub async fn deliver(self) -> Result<StatusCode> {
        let (told, answer) = oneshot::channel();
        let gone = || format!("the connection of {} is gone", self.write);
        self.deliver.send(told).ok().with_context(gone)?;
        answer.await.with_context(gone)
    }
}

/// The writes that are waited for.
#[derive(Default)]
pub(super) struct Delays(Mutex<Vec<Expected>>);

struct Expected {
    is_meant: Box<dyn Fn(&Write) -> bool + Send>,
    waiting: oneshot::Sender<Late>,
}

/// The expected write has come.
pub(super) struct Claimed {
    write: Write,
    waiting: oneshot::Sender<Late>,
}

impl Claimed {
    /// Tells who waits for it; the answer comes when it is to be delivered.
    pub(super) fn hold(self) -> oneshot::Receiver<Told> {
        let (deliver, delivery) = oneshot::channel();
        let late = Late {
            write: self.write,
            deliver,
        };
        // Refused when nobody waits: then it is dropped here, and with it the write.
        let _ = self.waiting.send(late);
        delivery
    }
}

impl Delays {
    pub(super) fn expect(&self, is_meant: Box<dyn Fn(&Write) -> bool + Send>) -> Delay {
        let (waiting, delay) = oneshot::channel();
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        expected.push(Expected { is_meant, waiting });
        Delay(delay)
    }

    /// Whether this request is one of the expected; each is expected once.
    pub(super) fn claim<B>(&self, request: &Request<B>) -> Option<Claimed> {
        if !is_write(request) {
            return None;
        }
        let write = Write {
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
        };
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = expected.iter().position(|expected| (expected.is_meant)(&write))?;
        let Expected { waiting, .. } = expected.remove(position);
        Some(Claimed { write, waiting })
    }
}

impl fmt::Debug for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays").finish_non_exhaustive()
    }
}
