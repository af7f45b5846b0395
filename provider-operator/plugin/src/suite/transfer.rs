//! Bytes become an image that is seen when it is published, and not before.

use std::sync::Arc;

use futures::future::{self, Either};

use super::{
    Broken, Harness, Held, Notes,
    lab::{Lab, class, content, ensure},
};
use crate::{Algorithm, ContentPlan, ErrorClass, Hasher, ImageStore, RecordState};

/// An image is made, sent, published, and has the bytes that were sent and their digest; publishing once more changes nothing.
pub async fn transfer_then_publish<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "transfer-then-publish").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let sent = lab.send(&id).await?;
    let mut hasher = Hasher::new(Algorithm::Sha512);
    hasher.update(&lab.bytes);
    let sha512 = hasher.finish().hex().to_owned();
    ensure!(
        sent.sums.sha512 == sha512,
        "{} was sent and {sha512} read",
        sent.sums.sha512
    );
    lab.is_published(&id).await?;
    let published = lab.record(&id).await?;
    ensure!(
        published.sha512.as_ref().is_none_or(|stored| *stored == sha512),
        "{sha512} was sent, and the cloud says {published:?}"
    );
    lab.store.publish(&id, &lab.image, "sha512:00").await?;
    let again = lab.record(&id).await?;
    ensure!(
        again.shown && again.verified == published.verified,
        "publishing again left {again:?}"
    );
    let second = class(
        lab.transfer(&id, lab.source(), ContentPlan::default(), Notes::default())
            .await,
        "a transfer into a whole image",
    )?;
    ensure!(second == ErrorClass::State, "a transfer into a whole image is {second}");
    lab.leaves(&[&id]).await
}

/// Nobody who looks for the name finds an image that is not published: not while it comes, and not when it is whole.
pub async fn hidden_until_published<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "hidden-until-published").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let half = lab.bytes.len() as u64 / 2;
    let source = Arc::new(lab.source().hanging_at(half));
    let notes = Arc::<Notes>::default();
    let sending = lab.store.transfer(
        &id,
        &lab.image,
        content(&source, ContentPlan::default(), &notes),
        &*notes,
    );
    let looking = async {
        source.hangs().await;
        let coming = lab.record(&id).await;
        source.let_go();
        coming
    };
    let (sent, coming) = future::join(sending, looking).await;
    sent?;
    let coming = coming?;
    ensure!(
        !coming.shown && coming.verified.is_none() && coming.state != RecordState::Whole,
        "half of an image is {coming:?}"
    );
    lab.is_published(&id).await?;
    lab.leaves(&[&id]).await
}

/// Who sends into a record that is being sent into is refused, and the first one goes on.
pub async fn second_writer_is_state<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "second-writer").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let other = harness.store().await;
    let id = lab.create(1).await?;
    let source = Arc::new(lab.source().hanging_at(lab.bytes.len() as u64 - 1));
    let notes = Arc::<Notes>::default();
    let first = lab.store.transfer(
        &id,
        &lab.image,
        content(&source, ContentPlan::default(), &notes),
        &*notes,
    );
    let second = async {
        source.hangs().await;
        lab.becomes(
            &id,
            |record| record.state == RecordState::Receiving,
            "what is being sent is not seen",
        )
        .await?;
        let faultless = content(&Arc::new(lab.source()), ContentPlan::default(), &notes);
        let refused = class(
            other.transfer(&id, &lab.image, faultless, &*notes).await,
            "a second writer",
        )?;
        ensure!(refused == ErrorClass::State, "a second writer is {refused}");
        source.let_go();
        Ok(())
    };
    match future::select(std::pin::pin!(first), std::pin::pin!(second)).await {
        Either::Left((sent, _)) => {
            sent?;
            return Err(Broken::new("the first writer ended while its source hung"));
        }
        Either::Right((refused, first)) => {
            refused?;
            first.await?;
        }
    }
    lab.is_published(&id).await?;
    lab.leaves(&[&id]).await
}
