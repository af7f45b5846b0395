//! Only the one of ours that is meant is deleted, whatever protects it, and deleting what is gone is no error.

use std::sync::Arc;

use futures::future::{self, Either};

use super::{
    Broken, Harness, Held, Notes,
    lab::{Lab, class, content, ensure},
};
use crate::{ContentPlan, Discarded, ErrorClass, ImageStore, Marked, OwnerId};

/// A published image goes, protected or not.
pub async fn discard_protected<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "discard-protected").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    lab.send(&id).await?;
    lab.is_published(&id).await?;
    lab.discard(&id).await?;
    let left = lab.store.owned(lab.owner()).await?;
    ensure!(left.is_empty(), "this is left: {left:?}");
    // Its place is free for the next attempt.
    let next = lab.create(2).await?;
    lab.send(&next).await?;
    lab.is_published(&next).await?;
    lab.leaves(&[&next]).await
}

/// The second deletion finds nothing.
pub async fn discard_twice<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "discard-twice").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    lab.discard(&id).await?;
    let again = lab.store.discard(&id, &lab.image.subject.marked(1)).await?;
    ensure!(again == Discarded::WasGone, "what was gone is {again:?}");
    lab.leaves(&[]).await
}

/// What carries another owner stays, with all its bytes, and so does what is of another attempt or object than was decided about.
pub async fn discard_of_a_stranger<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "discard-stranger").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    lab.send(&id).await?;
    let stranger = OwnerId::parse("a-stranger").ok_or_else(|| Broken::new("a word is an owner"))?;
    let ours = lab.image.subject.marked(1);
    for (marked, what) in [
        (
            Marked {
                owner: stranger.clone(),
                ..ours.clone()
            },
            "a deletion of a stranger's image",
        ),
        (lab.image.subject.marked(2), "a deletion of another attempt"),
        (
            Marked {
                object: "suite/another-object".to_owned(),
                ..ours
            },
            "a deletion of another object's image",
        ),
    ] {
        let refused = class(lab.store.discard(&id, &marked).await, what)?;
        ensure!(refused == ErrorClass::NotOurs, "{what} is {refused}");
    }
    let refused = class(
        lab.store.relinquish(&id, &stranger, None).await,
        "giving away a stranger's image",
    )?;
    ensure!(
        refused == ErrorClass::NotOurs,
        "giving away a stranger's image is {refused}"
    );
    lab.is_published(&id).await?;
    lab.leaves(&[&id]).await
}

/// A record that is being sent into can be deleted, and what is sent afterwards makes no image.
pub async fn discard_while_receiving<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "discard-receiving").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let other = harness.store().await;
    let id = lab.create(1).await?;
    let source = Arc::new(lab.source().hanging_at(lab.bytes.len() as u64 / 2));
    let notes = Arc::<Notes>::default();
    let content = content(&source, ContentPlan::default(), &notes);
    let sending = lab.store.transfer(&id, &lab.image, content, &*notes);
    match future::select(sending, Box::pin(source.hangs())).await {
        Either::Left((sent, _)) => {
            return Err(Broken::new(format!("a transfer ended while its source hung: {sent:?}")));
        }
        Either::Right(((), sending)) => {
            other.discard(&id, &lab.image.subject.marked(1)).await?;
            source.let_go();
            // Whether it is told so or not: what counts is what is there.
            let _ = sending.await;
        }
    }
    ensure!(lab.find(&id).await?.is_none(), "a deleted record came back");
    let next = lab.create(2).await?;
    lab.send(&next).await?;
    lab.is_published(&next).await?;
    lab.leaves(&[&next]).await
}
