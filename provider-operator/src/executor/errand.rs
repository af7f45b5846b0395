//! One deed on its way through this process: connected, done within its time, and told of also when its provider falls over.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Order;
use crate::clock::Steady;
use crate::identity::Connection;
use crate::metrics::{CloudCounts, Direction};
use crate::progress::Ledger;
use crate::worker::{Failed, Whose, Worked, work};
use async_trait::async_trait;
use futures::FutureExt;
use planning::image::{FailureClass, SHORT_DEED};
use provider_plugin::{Progress, Report, Seal, SealError, Stage};
use tokio::time;

/// How far the bytes of a deed are, in memory.
#[derive(Debug)]
pub(crate) struct Pace {
    steady: Steady,
    counts: CloudCounts,
    last: Mutex<Option<(Progress, Duration)>>,
}

impl Pace {
    pub(crate) fn new(steady: Steady, counts: CloudCounts) -> Arc<Self> {
        Arc::new(Self {
            steady,
            counts,
            last: Mutex::default(),
        })
    }

    /// What was told last, and when bytes moved last.
    pub(super) fn last(&self) -> Option<(Progress, Duration)> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever tells has moved something, also where the cloud has not taken more yet.
    fn note(&self, progress: Progress) {
        let moved = self.steady.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace((progress, moved)).map_or(0, |(before, _)| before.sent);
        drop(last);
        let direction = match progress.stage {
            // Behind what an earlier life has sent, which was told of before.
            Stage::Sending => Direction::ToCloud,
            Stage::ReadingBack => Direction::FromCloud,
            // What was sent before.
            Stage::Reading => return,
        };
        self.counts.moved(direction, progress.sent.saturating_sub(before));
    }
}

/// Says whether others wait for the place of a deed. Must not wait itself.
pub(crate) type Others = Box<dyn Fn() -> bool + Send + Sync>;

/// Tells memory of every piece, and status now and then.
struct Told {
    others: Others,
    pace: Arc<Pace>,
    ledger: Option<Arc<Ledger>>,
}

#[async_trait]
impl Report for Told {
    fn progress(&self, progress: Progress) {
        self.pace.note(progress);
        if let Some(ledger) = &self.ledger {
            ledger.note(progress);
        }
    }

    fn others_wait(&self) -> bool {
        (self.others)()
    }

    async fn seal(&self, seal: &Seal) -> Result<(), SealError> {
        match &self.ledger {
            Some(ledger) => ledger.seal(seal).await,
            None => Err(SealError {
                message: "this deed sends no image, so that nothing of it is noted".to_owned(),
            }),
        }
    }
}

/// Does the deed. Dropping the future ends it.
pub(crate) async fn run(order: &Order, pace: Arc<Pace>, ledger: Option<Ledger>, others: Others) -> Worked {
    let ledger = ledger.map(Arc::new);
    let report = Told {
        others,
        pace,
        ledger: ledger.clone(),
    };
    let guarded = AssertUnwindSafe(in_time(order, Arc::new(report))).catch_unwind();
    let worked = match &ledger {
        Some(ledger) => ledger.beside(guarded).await,
        None => guarded.await,
    };
    // What it said is in the log, where the hook of panics puts it.
    worked.unwrap_or_else(|_| {
        tracing::error!(object = %order.plan.object, deed = ?order.plan.deed.name(), "a provider fell over");
        let words = "the provider fell over in the middle of it; its words are in the log of the operator";
        Worked::failed(Failed::new(FailureClass::Unknown, words, Whose::Cloud))
    })
}

async fn in_time(order: &Order, report: Arc<dyn Report>) -> Worked {
    let done = connected(order, report);
    if order.plan.deed.name().is_long() {
        return done.await;
    }
    let done = time::timeout(SHORT_DEED, done).await;
    done.unwrap_or_else(|_| Worked::failed(silent(&order.connection)))
}

/// A cloud that has not answered for as long as one answer may take.
pub(super) fn silent(connection: &Connection) -> Failed {
    let words = format!(
        "{} did not answer within {} seconds",
        connection.cloud(),
        SHORT_DEED.as_secs()
    );
    Failed::new(FailureClass::Unavailable, words, Whose::Cloud)
}

async fn connected(order: &Order, report: Arc<dyn Report>) -> Worked {
    match order.connection.store().await {
        Ok(store) => {
            let files = order
                .files
                .as_ref()
                .map(|files| files.counted(order.connection.counts()));
            work(&order.plan, store.as_ref(), files.as_ref(), report).await
        }
        Err(error) => Worked::failed(error.into()),
    }
}
