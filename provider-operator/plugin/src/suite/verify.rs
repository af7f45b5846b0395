//! What is not known to be right never becomes a whole image.

use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::mpsc;

use super::{
    Broken, Harness, Held, Notes,
    lab::{Lab, class, content, ensure},
};
use crate::{Algorithm, ContentPlan, ErrorClass, Hasher, ImageStore, Pinned, RecordState, SealError};

/// A digest that no image of the suite has.
fn other_digest() -> Pinned {
    Hasher::new(Algorithm::Sha256).finish()
}

/// A source that gives more than it said makes no image.
pub async fn wrong_length<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "wrong-length").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let short = lab.bytes.len() as u64 - 5;
    let source = lab.source().saying(|probe| probe.size = Some(short));
    let failed = lab
        .transfer(&id, source, ContentPlan::default(), Notes::default())
        .await;
    let class = class(failed, "a transfer of the wrong length")?;
    ensure!(
        class == ErrorClass::SourceChanged,
        "a source of the wrong length is {class}"
    );
    lab.comes_into_being_after(&id).await
}

/// Bytes with another digest than the demanded one make no image.
pub async fn mismatch_is_not_whole<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "mismatch").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let plan = ContentPlan {
        pinned: Some(other_digest()),
        ..ContentPlan::default()
    };
    let failed = lab.transfer(&id, lab.source(), plan, Notes::default()).await;
    let class = class(failed, "a transfer of other bytes")?;
    ensure!(class == ErrorClass::SourceMismatch, "other bytes are {class}");
    lab.comes_into_being_after(&id).await
}

/// Without a stored seal there is no image.
pub async fn refused_seal_is_not_whole<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "refused-seal").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let failed = lab
        .transfer(&id, lab.source(), ContentPlan::default(), Notes::refusing())
        .await;
    let class = class(failed, "a transfer without a seal")?;
    ensure!(class == ErrorClass::Sealing, "a transfer without a seal is {class}");
    lab.comes_into_being_after(&id).await
}

/// While the seal is being stored, the cloud does not have the whole image; the seal says what the cloud then gets.
pub async fn seal_before_last_byte<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "seal-first").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let id = lab.create(1).await?;
    let (sealing, mut sealed) = mpsc::unbounded_channel();
    let (answer, answers) = async_channel();
    let notes = Arc::new(Notes::sealing(move |_| {
        let (sealing, answers) = (sealing.clone(), Arc::clone(&answers));
        async move {
            // Whoever looks at the seal is part of the same test.
            let _ = sealing.send(());
            let answered = answers.lock().await.recv().await;
            answered.ok_or_else(|| SealError {
                message: "nobody looked at the seal".to_owned(),
            })
        }
        .boxed()
    }));
    let content = content(&Arc::new(lab.source()), ContentPlan::default(), &notes);
    let sending = lab.store.transfer(&id, &lab.image, content, &*notes);
    let looking = async {
        let _ = sealed.recv().await;
        let unsealed = lab.record(&id).await;
        let _ = answer.send(());
        unsealed
    };
    let (sent, unsealed) = futures::future::join(sending, looking).await;
    let (sent, unsealed) = (sent?, unsealed?);
    ensure!(
        unsealed.state != RecordState::Whole,
        "before it was sealed it is {unsealed:?}"
    );
    let seals = notes.seals();
    let is_sealed = seals.len() == 1 && seals[0].sha512 == sent.sums.sha512 && seals[0].bytes == sent.bytes;
    ensure!(is_sealed, "{sent:?} was sent, and sealed {seals:?}");
    lab.is_published(&id).await?;
    lab.leaves(&[&id]).await
}

fn async_channel() -> (
    mpsc::UnboundedSender<()>,
    Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>>,
) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Arc::new(tokio::sync::Mutex::new(receiver)))
}

/// A record in which the cloud found something else than an image never becomes whole, and the next one does.
pub async fn spoilt_stays_spoilt<H: Harness>(harness: &H) -> Result<Held, Broken> {
    let lab = Lab::new(harness, "spoilt").await;
    if let Some(skipped) = lab.without_transfers() {
        return Ok(skipped);
    }
    let Some(bad) = harness.bad_image() else {
        return Ok(Held::Skipped("this cloud does not look at the bytes of images"));
    };
    let id = lab.create(1).await?;
    let bad = super::ScriptedSource::of(bad);
    let failed = lab.transfer(&id, bad, ContentPlan::default(), Notes::default()).await;
    class(failed, "a transfer of no image")?;
    let record = lab.rests(&id).await?;
    if let RecordState::Spoilt { .. } = record.state {
        let again = lab
            .transfer(&id, lab.source(), ContentPlan::default(), Notes::default())
            .await;
        class(again, "a transfer into a spoilt record")?;
        let record = lab.rests(&id).await?;
        ensure!(
            matches!(record.state, RecordState::Spoilt { .. }),
            "a spoilt record became {record:?}"
        );
    }
    lab.comes_into_being_after(&id).await
}
