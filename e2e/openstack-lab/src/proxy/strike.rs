//! The one change at which everything stands still, so that a test can end a program right there. What a change means it does not know.

use std::time::Duration;

use anyhow::{Context, Result};
use http::Method;
use tokio::sync::oneshot;

/// Where the chosen change stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The service does not learn of it.
    Before,
    /// So many bytes of its body are passed on, and no more. Where it has fewer, its answer is where it stops.
    Within(u64),
    /// It is done, whatever came of it, and its answer is not passed back.
    After,
}

/// A proxy that is armed. Dropped, it stays armed, but nobody waits: the stop is over as soon as it begins.
#[derive(Debug)]
pub struct Strike(pub(super) oneshot::Receiver<Struck>);

impl Strike {
    /// Waits until the chosen change is where it stops.
    pub async fn wait(self, deadline: Duration) -> Result<Struck> {
        let struck = tokio::time::timeout(deadline, self.0).await;
        struck
            .with_context(|| format!("the chosen change did not come within {deadline:?}"))?
            .context("the proxy was armed anew or stopped before the chosen change came")
    }
}

/// The chosen change stands where it was stopped. Dropped, it is closed at both ends; nobody is answered.
#[derive(Debug)]
pub struct Struck {
    /// Its method.
    pub method: Method,
    /// Its path and query.
    pub target: String,
    _release: oneshot::Sender<()>,
}

/// Which change is waited for.
#[derive(Debug)]
pub(super) struct Armed {
    /// Counted from 1.
    pub(super) n: usize,
    pub(super) point: Point,
    pub(super) waiting: oneshot::Sender<Struck>,
}

/// The chosen change on its way.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) point: Point,
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) waiting: oneshot::Sender<Struck>,
}

impl Stop {
    /// Tells who waits that it stands still, and returns when it need not any more.
    pub(super) async fn hold(self) {
        let (release, released) = oneshot::channel();
        // Refused when nobody waits: then the sender is dropped here and the stop is over.
        let _ = self.waiting.send(Struck {
            method: self.method,
            target: self.target,
            _release: release,
        });
        let _ = released.await;
    }
}

/// Whether a request changes something of images. Who logs in changes nothing.
pub(super) fn is_change(method: &Method, target: &str) -> bool {
    let asks = [Method::GET, Method::HEAD].contains(method);
    !asks && !target.ends_with("/auth/tokens")
}
