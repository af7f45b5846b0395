//! A transfer that is dropped anywhere leaves what the next one goes on with.

use std::sync::Arc;

use futures::future::{self, Either};

use super::{
    Broken, Harness, Held, Notes,
    lab::{Lab, content, ensure},
};
use crate::{ContentPlan, ImageStore, RecordState};

/// Dropped before its first byte.
pub async fn dropped_transfer_at_0<H: Harness>(harness: &H) -> Result<Held, Broken> {
    dropped(harness, "dropped-at-0", |_| 0).await
}

/// Dropped after its first byte.
pub async fn dropped_transfer_at_1<H: Harness>(harness: &H) -> Result<Held, Broken> {
    dropped(harness, "dropped-at-1", |_| 1).await
}

/// Dropped in the middle.
pub async fn dropped_transfer_half<H: Harness>(harness: &H) -> Result<Held, Broken> {
    dropped(harness, "dropped-half", |length| length / 2).await
}

/// Dropped before its last byte.
pub async fn dropped_transfer_all_but_one<H: Harness>(harness: &H) -> Result<Held, Broken> {
    dropped(harness, "dropped-all-but-one", |length| length - 1).await
}

async fn dropped<H: Harness>(harness: &H, name: &str, at: fn(u64) -> u64) -> Result<Held, Broken> {
    let lab = Lab::new(harness, name).await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let source = Arc::new(lab.source().hanging_at(at(lab.bytes.len() as u64)));
    let notes = Arc::<Notes>::default();
    let content = content(&source, ContentPlan::default(), &notes);
    let sending = lab.store.transfer(&id, &lab.image, content, &*notes);
    // Both borrow the lab, and the transfer is dropped at the end of this statement.
    let ended = match future::select(sending, Box::pin(source.hangs())).await {
        Either::Left((sent, _)) => Some(sent.map(|_| ())),
        Either::Right(((), sending)) => {
            drop(sending);
            None
        }
    };
    if let Some(ended) = ended {
        return Err(Broken::new(format!(
            "a transfer ended while its source hung: {ended:?}"
        )));
    }
    let record = lab.rests(&id).await?;
    ensure!(
        !matches!(record.state, RecordState::Whole | RecordState::Importing { .. }),
        "a transfer that was dropped left {record:?}"
    );
    lab.comes_into_being_after(&id).await
}
