//! How Leases are asked for: at most so many at once, and beside a call that gets no answer once more.
//!
//! client-go gives one call half of the time that a holder has: one that hangs leaves room for one more, and one that is only slow counts as lost though
//! the API server took it. Here a call that is slow goes on, and whichever is answered first counts.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Calls for Leases under way at once, and with them connections.
pub const LEASE_CALLS: usize = KEEPING + REPEATING + TAKING + LOOKING;

/// For what is held, or let go.
const KEEPING: usize = 12;

/// The same calls once more: apart, so that those that hang leave places for those that may be answered.
const REPEATING: usize = 12;

/// For what is to be held: apart, so that no renewal waits for them.
const TAKING: usize = 4;

/// For what others hold: apart, so that nobody waits for them.
const LOOKING: usize = 4;

/// How often the same call is made beside one for what is held. Any other is made once: who looks or takes in vain has lost nothing.
const BESIDE: usize = 2;

/// How long an answer is still taken when its time is over, from the moment in which that is noticed. A process that stood still finds at once what it
/// was answered and that it is too late; whether it holds a Lease follows from when the call left, not from when its answer was read.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(100);

/// The places for calls of one process. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    keeping: Arc<Semaphore>,
    repeating: Arc<Semaphore>,
    taking: Arc<Semaphore>,
    looking: Arc<Semaphore>,
}

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To keep what is held, or to let it go.
    Keep,
    /// To hold what is not held.
    Take,
    /// To see who holds it.
    Look,
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
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            keeping: places(KEEPING),
            repeating: places(REPEATING),
            taking: places(TAKING),
            looking: places(LOOKING),
        }
    }
}

impl Calls {
    /// The first answer; none when there was none in time. `call` is made when there is a place for it, perhaps several times, and each of them may
    /// arrive.
    pub(super) async fn first<F>(&self, purpose: Purpose, wait: Wait, call: impl Fn() -> F) -> Option<F::Output>
    where
        F: Future,
    {
        let (places, most) = match purpose {
            Purpose::Keep => (&self.keeping, 1 + BESIDE),
            Purpose::Take => (&self.taking, 1),
            Purpose::Look => (&self.looking, 1),
        };
        let in_turn = |places: Arc<Semaphore>| async {
            // Never closed.
            let _place = places.acquire_owned().await;
            call().await
        };
        let first = async {
            let mut calls = FuturesUnordered::from_iter([in_turn(Arc::clone(places))]);
            loop {
                tokio::select! {
                    Some(answer) = calls.next() => return answer,
                    () = sleep(wait.pause), if calls.len() < most => calls.push(in_turn(Arc::clone(&self.repeating))),
                }
            }
        };
        let too_late = async {
            sleep(wait.patience).await;
            // Not one sleep of both: that would be over, too, when a process has stood still for long.
            sleep(LAST_WORDS).await;
        };
        tokio::select! {
            biased;
            answer = first => Some(answer),
            () = too_late => None,
        }
    }
}
