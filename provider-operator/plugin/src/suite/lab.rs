//! What statements do with a cloud: images made, sent, looked at and taken away again, with words for what is not as it should be.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::TryStreamExt;
use tokio::time::{self, Instant};

use super::{Broken, Harness, Held, Notes, ScriptedSource, SharedSource};
use crate::{
    Attempt, CloudError, Content, ContentPlan, Created, Discarded, ErrorClass, ImageId, ImageSpec, ImageStore, Marked,
    Observed, OwnerId, Record, RecordState, Sent,
};

/// A cloud may take so long until what was begun is seen, also on a machine that is busy with much else.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// `Err(Broken)` with these words unless it is so.
macro_rules! ensure {
    ($is:expr, $($words:tt)+) => {
        if !$is {
            return Err($crate::suite::Broken::new(format!($($words)+)));
        }
    };
}
pub(super) use ensure;

/// One cloud and one image to make in it.
pub(super) struct Lab<H: Harness> {
    pub(super) store: H::Store,
    pub(super) image: ImageSpec,
    pub(super) bytes: Bytes,
}

impl<H: Harness> Lab<H> {
    /// The cloud with an image of this name, which is not there yet.
    pub(super) async fn new(harness: &H, name: &str) -> Self {
        let (image, bytes) = harness.image(name);
        Self {
            store: harness.store().await,
            image,
            bytes: Bytes::from(bytes),
        }
    }

    /// Why statements about transfers say nothing of this cloud, if they do not.
    pub(super) fn without_transfers(&self) -> Option<Held> {
        let transfers = self.store.capabilities().transfers;
        (!transfers).then_some(Held::Skipped("this provider transfers no images"))
    }

    pub(super) fn owner(&self) -> &OwnerId {
        &self.image.subject.owner
    }

    pub(super) fn source(&self) -> ScriptedSource {
        ScriptedSource::of(self.bytes.clone())
    }

    pub(super) async fn create(&self, attempt: Attempt) -> Result<ImageId, Broken> {
        match self.store.create(&self.image, attempt).await? {
            Created::New(id) => Ok(id),
            other => Err(Broken::new(format!("a new record was to be made, and it is {other:?}"))),
        }
    }

    /// Sends everything, from a source without faults.
    pub(super) async fn send(&self, id: &ImageId) -> Result<Sent, Broken> {
        let sent = self
            .transfer(id, self.source(), ContentPlan::default(), Notes::default())
            .await?;
        ensure!(
            sent.bytes == self.bytes.len() as u64,
            "{} bytes were sent of {}",
            sent.bytes,
            self.bytes.len()
        );
        Ok(sent)
    }

    pub(super) async fn transfer(
        &self,
        id: &ImageId,
        source: ScriptedSource,
        plan: ContentPlan,
        notes: Notes,
    ) -> Result<Sent, CloudError> {
        let notes = Arc::new(notes);
        let content = content(&Arc::new(source), plan, &notes);
        self.store.transfer(id, &self.image, content, &*notes).await
    }

    pub(super) async fn observe(&self) -> Result<Observed, Broken> {
        Ok(self.store.observe(&self.image.subject, &self.image).await?)
    }

    /// The record of this id, if it is there.
    pub(super) async fn find(&self, id: &ImageId) -> Result<Option<Record>, Broken> {
        Ok(self
            .observe()
            .await?
            .records
            .into_iter()
            .find(|record| record.id == *id))
    }

    pub(super) async fn record(&self, id: &ImageId) -> Result<Record, Broken> {
        let found = self.find(id).await?;
        found.ok_or_else(|| Broken::new(format!("the record {id} is not there")))
    }

    /// The record when it is as it should be; fails when it does not become so.
    pub(super) async fn becomes(
        &self,
        id: &ImageId,
        is: impl Fn(&Record) -> bool,
        words: &str,
    ) -> Result<Record, Broken> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let record = self.record(id).await?;
            if is(&record) {
                return Ok(record);
            }
            ensure!(Instant::now() < deadline, "{words}: {record:?}");
            time::sleep(PAUSE).await;
        }
    }

    /// The record when nobody sends into it any more.
    pub(super) async fn rests(&self, id: &ImageId) -> Result<Record, Broken> {
        let rests = |record: &Record| record.state != RecordState::Receiving;
        self.becomes(id, rests, "a transfer that was dropped does not end")
            .await
    }

    /// After a failure: nothing of it is whole or shown, and the image comes into being with what the operator does next.
    pub(super) async fn comes_into_being_after(&self, id: &ImageId) -> Result<Held, Broken> {
        let record = self.rests(id).await?;
        ensure!(
            !record.shown && record.verified.is_none(),
            "what failed is shown: {record:?}"
        );
        let id = match record.state {
            RecordState::Empty => id.clone(),
            RecordState::Spoilt { .. } | RecordState::Dead => {
                let next = self.create(record.attempt + 1).await?;
                self.discard(id).await?;
                next
            }
            state => return Err(Broken::new(format!("what failed is {state:?}"))),
        };
        self.send_when_free(&id).await?;
        self.is_published(&id).await?;
        self.leaves(&[&id]).await
    }

    /// Sends everything as soon as nobody else does. A cloud may look at what was sent first only after its sender has gone: until then the
    /// record is at rest, and then it is not. Meanwhile it refuses what is sent second, or believes at its end that the record has gone.
    async fn send_when_free(&self, id: &ImageId) -> Result<(), Broken> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.rests(id).await?;
            let sent = self
                .transfer(id, self.source(), ContentPlan::default(), Notes::default())
                .await;
            match sent {
                Err(error)
                    if matches!(error.class, ErrorClass::State | ErrorClass::Gone) && Instant::now() < deadline =>
                {
                    time::sleep(PAUSE).await;
                }
                sent => return sent.map(drop).map_err(Broken::from),
            }
        }
    }

    /// Publishes, and looks whether it is shown and has the right bytes.
    pub(super) async fn is_published(&self, id: &ImageId) -> Result<(), Broken> {
        let whole = self
            .becomes(
                id,
                |record| record.state == RecordState::Whole,
                "what was sent is not whole",
            )
            .await?;
        ensure!(
            !whole.shown && whole.verified.is_none(),
            "it is shown before it was published: {whole:?}"
        );
        ensure!(
            whole.size == Some(self.bytes.len() as u64),
            "{} bytes were sent, and the cloud says {:?}",
            self.bytes.len(),
            whole.size
        );
        self.store.publish(id, &self.image, "sha512:00").await?;
        let shown = self.record(id).await?;
        ensure!(
            shown.shown && shown.verified.as_deref() == Some("sha512:00") && shown.state == RecordState::Whole,
            "it is not as it was published: {shown:?}"
        );
        self.has_the_bytes(id).await
    }

    async fn has_the_bytes(&self, id: &ImageId) -> Result<(), Broken> {
        let mut stored = self.store.read_back(id).await?;
        let mut at = 0;
        let broken = |error: crate::SourceError| Broken::new(format!("reading back: {error}"));
        while let Some(piece) = stored.try_next().await.map_err(broken)? {
            let sent = self.bytes.get(at..at + piece.len());
            ensure!(sent == Some(&piece[..]), "other bytes come back from byte {at} on");
            at += piece.len();
        }
        ensure!(at == self.bytes.len(), "{at} bytes come back of {}", self.bytes.len());
        Ok(())
    }

    /// The marks of one of ours.
    async fn marked(&self, id: &ImageId) -> Result<Marked, Broken> {
        let owned = self.store.owned(self.owner()).await?;
        let found = owned.iter().find(|owned| owned.id == *id);
        let found = found.ok_or_else(|| Broken::new(format!("the record {id} is not among {owned:?}")))?;
        Ok(found.marked())
    }

    /// Deletes it and waits until it is gone.
    pub(super) async fn discard(&self, id: &ImageId) -> Result<(), Broken> {
        let discarded = self.store.discard(id, &self.marked(id).await?).await?;
        ensure!(
            discarded != Discarded::WasGone,
            "the record {id} was gone before it was deleted"
        );
        let deadline = Instant::now() + PATIENCE;
        while self.find(id).await?.is_some() {
            ensure!(
                Instant::now() < deadline,
                "the record {id} was deleted and is still there"
            );
            time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// The owner has exactly these in the cloud, and nothing when they were taken away.
    pub(super) async fn leaves(&self, expected: &[&ImageId]) -> Result<Held, Broken> {
        self.owns(expected).await?;
        for id in expected {
            self.store.discard(id, &self.marked(id).await?).await?;
        }
        self.owns(&[]).await?;
        Ok(Held::Holds)
    }

    /// Returns when exactly these are the owner's; fails when that does not come.
    async fn owns(&self, expected: &[&ImageId]) -> Result<(), Broken> {
        let expected: BTreeSet<&ImageId> = expected.iter().copied().collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let owned = self.store.owned(self.owner()).await?;
            if owned.iter().map(|owned| &owned.id).collect::<BTreeSet<_>>() == expected {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{expected:?} should be there, and owned are {owned:?}"
            );
            time::sleep(PAUSE).await;
        }
    }
}

/// A content of this source.
pub(super) fn content(source: &Arc<ScriptedSource>, plan: ContentPlan, notes: &Arc<Notes>) -> Content {
    let shared = Arc::new(SharedSource(Arc::clone(source)));
    Content::new(shared, source.said(), plan, Arc::<Notes>::clone(notes))
}

/// The class of an error where there has to be one.
pub(super) fn class<T>(answer: Result<T, CloudError>, of: &str) -> Result<ErrorClass, Broken> {
    match answer {
        Ok(_) => Err(Broken::new(format!("{of} succeeded"))),
        Err(error) => Ok(error.class),
    }
}
