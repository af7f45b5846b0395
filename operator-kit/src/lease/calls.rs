//! How Leases are asked for: at most so many at once, and beside a call that gets no answer once more.
//!
//! client-go gives one call half of the time that a holder has: one that hangs leaves room for one more, and one that is only slow counts as lost though
//! the API server took it. Here a call that is slow goes on, and whichever is answered first counts.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Calls for Leases under way at once, and with them connections.
pub const LEASE_CALLS: usize = RENEWALS + LOOKS;

/// For what is held.
const RENEWALS: usize = 12;

/// For what is not: apart, so that no renewal waits for them.
const LOOKS: usize = 4;

/// The same call as often at once for what is held. For what is not once: who looks in vain has lost nothing.
const BESIDE: usize = 3;

/// The places for calls of one process. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    renewals: Arc<Semaphore>,
    looks: Arc<Semaphore>,
}

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// At most.
    pub(super) patience: Duration,
    /// Before it is asked once more beside.
    pub(super) pause: Duration,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            renewals: Arc::new(Semaphore::new(RENEWALS)),
            looks: Arc::new(Semaphore::new(LOOKS)),
        }
    }
}

impl Calls {
    /// The first answer; none when there was none in time. `call` may be made several times, and each of them may arrive.
    pub(super) async fn first<F>(&self, is_held: bool, wait: Wait, call: impl Fn() -> F) -> Option<F::Output>
    where
        F: Future,
    {
        let (places, most) = if is_held {
            (&self.renewals, BESIDE)
        } else {
            (&self.looks, 1)
        };
        let in_turn = || async {
            // Never closed.
            let _place = places.acquire().await;
            call().await
        };
        let first = async {
            let mut calls = FuturesUnordered::from_iter([in_turn()]);
            loop {
                tokio::select! {
                    Some(answer) = calls.next() => return answer,
                    () = sleep(wait.pause), if calls.len() < most => calls.push(in_turn()),
                }
            }
        };
        timeout(wait.patience, first).await.ok()
    }
}
