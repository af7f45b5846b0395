//! A transfer into a part: what is there is gone on with, what is written is confirmed by the disk and read back before it counts.
//!
//! Each call to the disk is one piece of bounded work, so a transfer that is dropped ends with the call it is at, and lets go of its lock.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use provider_plugin::{
    Algorithm, Body, ByteStream, CloudError, Content, ContentError, ErrorClass, Hasher, ImageId, ImageSpec, Progress,
    Report, Sent, SourceError, Stage, Sums,
};
use storage::BlockingWork;
use tokio::time;

use crate::{
    disk,
    error::RecordError,
    records::{Part, Records},
    sidecar::{State, Whole},
};

const OPERATION: &str = "store the image";
/// Bytes that are read at once.
const PIECE: u64 = 256 * 1024;
/// Bytes that are read back in one piece of work.
const STRETCH: u64 = 8 * 1024 * 1024;
/// Who looks whether a part is being written holds it for a moment; so often, and with this pause, it is tried again.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// What a transfer works with.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) records: Arc<Records>,
    pub(crate) work: Arc<BlockingWork>,
    /// After so many bytes the disk confirms them. What it has not confirmed is not gone on with.
    pub(crate) sync_every: u64,
}

impl Store {
    /// Does this with the records, in bounded time.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Records) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<T, CloudError> {
        let records = Arc::clone(&self.records);
        let done = self.work.run(move || work(&records)).await;
        done.map_err(RecordError::from)
            .flatten()
            .map_err(|error| error.of(operation))
    }

    pub(crate) async fn transfer(
        &self,
        id: &ImageId,
        image: &ImageSpec,
        content: Content,
        report: &dyn Report,
    ) -> Result<Sent, CloudError> {
        let part = self.open(id, image).await?;
        let held = held(&part, &content);
        let cutting = Arc::clone(&part);
        self.with(OPERATION, move |records| Ok(records.disk.cut(&cutting.file, held)?))
            .await?;
        let opened = if held > 0 {
            content.open_after(self.bytes(&part, 0, Some(held)), held).await
        } else {
            content.open().await
        };
        let mut writing = Writing {
            store: self,
            state: State {
                synced: held,
                ..part.state.clone()
            },
            at: held,
            part,
        };
        match opened {
            Ok(body) => writing.all(body, report).await,
            Err(error) => Err(writing.failed(error).await),
        }
    }

    async fn open(&self, id: &ImageId, image: &ImageSpec) -> Result<Arc<Part>, CloudError> {
        for _ in 0..TRIES {
            let (id, owner) = (id.clone(), image.subject.owner.clone());
            let opened = self
                .with(OPERATION, move |records| records.open_part(&id, &owner))
                .await?;
            if let Some(part) = opened {
                return Ok(Arc::new(part));
            }
            time::sleep(PAUSE).await;
        }
        let why = "somebody is storing this image already";
        Err(RecordError::Proceed { why }.of(OPERATION))
    }

    /// The bytes of a part from one byte on, to another one or its end.
    pub(crate) fn bytes(&self, part: &Arc<impl AsFile>, from: u64, until: Option<u64>) -> ByteStream {
        let state = (Arc::clone(&self.work), Arc::clone(part), from);
        stream::unfold(Some(state), move |state| async move {
            let (work, part, at) = state?;
            let count = until.map_or(PIECE, |until| PIECE.min(until.saturating_sub(at)));
            let reading = Arc::clone(&part);
            let read = work.run(move || disk::read_at(reading.file(), at, size(count))).await;
            match read.map_err(RecordError::from).and_then(|read| Ok(read?)) {
                Ok(bytes) if bytes.is_empty() => None,
                Ok(bytes) => {
                    let next = at + bytes.len() as u64;
                    Some((Ok(Bytes::from(bytes)), Some((work, part, next))))
                }
                Err(error) => {
                    let error = SourceError::new(ErrorClass::Unavailable, error.to_string()).because(error);
                    Some((Err(error), None))
                }
            }
        })
        .boxed()
    }
}

/// What has a file to read from.
pub(crate) trait AsFile: Send + Sync + 'static {
    fn file(&self) -> &std::fs::File;
}

impl AsFile for Part {
    fn file(&self) -> &std::fs::File {
        &self.file
    }
}

impl AsFile for std::fs::File {
    fn file(&self) -> &std::fs::File {
        self
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How many bytes of a part are gone on with: those that the disk has confirmed, if they are of the same file, and never all.
fn held(part: &Part, content: &Content) -> u64 {
    let is_same = part.state.origin.is_some() && part.state.origin == content.origin();
    match content.size() {
        Some(size) if is_same => part.length.min(part.state.synced).min(size.saturating_sub(1)),
        _ => 0,
    }
}

struct Writing<'a> {
    store: &'a Store,
    part: Arc<Part>,
    /// What is noted beside the part, or will be.
    state: State,
    /// Bytes that were written.
    at: u64,
}

impl Writing<'_> {
    async fn all(&mut self, mut body: Body, report: &dyn Report) -> Result<Sent, CloudError> {
        let written = self.written(&mut body).await;
        if written.as_ref().is_err_and(|error| error.class == ErrorClass::Quota) {
            self.give_back().await;
        }
        written?;
        let Some(sums) = body.sums.sums() else {
            let words = "the content ended without its digests";
            return Err(CloudError::new(ErrorClass::Unknown, OPERATION, words));
        };
        let whole = self.read_back(report).await?;
        self.confirm(whole, &sums).await?;
        Ok(Sent {
            bytes: sums.bytes,
            sums,
        })
    }

    async fn written(&mut self, body: &mut Body) -> Result<(), CloudError> {
        self.state.origin.clone_from(&body.origin);
        self.keep().await?;
        while let Some(piece) = body.stream.next().await {
            match piece {
                Ok(piece) => self.write(piece).await?,
                Err(error) => return Err(self.failed(error).await),
            }
        }
        self.keep().await
    }

    /// What finds no room leaves the room that it took to others: a volume that stays full takes not even what is noted beside their images. That nothing is
    /// there to go on with, the part itself says.
    async fn give_back(&self) {
        let part = Arc::clone(&self.part);
        // The failure to tell is that there is no room.
        let _ = self
            .store
            .with(OPERATION, move |records| Ok(records.disk.cut(&part.file, 0)?))
            .await;
    }

    async fn write(&mut self, piece: Bytes) -> Result<(), CloudError> {
        let (part, at) = (Arc::clone(&self.part), self.at);
        let count = piece.len() as u64;
        self.store
            .with(OPERATION, move |records| {
                Ok(records.disk.write_at(&part.file, at, &piece)?)
            })
            .await?;
        self.at += count;
        if self.at - self.state.synced >= self.store.sync_every {
            self.keep().await?;
        }
        Ok(())
    }

    /// What was written is confirmed by the disk, and noted.
    async fn keep(&mut self) -> Result<(), CloudError> {
        let part = Arc::clone(&self.part);
        let state = State {
            synced: self.at,
            ..self.state.clone()
        };
        let kept = state.clone();
        self.store
            .with(OPERATION, move |records| records.keep(&part, &kept))
            .await?;
        self.state = state;
        Ok(())
    }

    /// The content failed. What is there is kept for the next transfer, unless it may be what is wrong.
    async fn failed(&mut self, error: ContentError) -> CloudError {
        let is_wrong = matches!(
            error.class,
            ErrorClass::SourceMismatch | ErrorClass::SourceNotAnImage | ErrorClass::SourceChanged | ErrorClass::State
        );
        if is_wrong {
            self.state.origin = None;
        }
        // Whether it can be kept or not, the failure to tell is that of the content.
        let _ = self.keep().await;
        CloudError::of_content(OPERATION, error)
    }

    async fn read_back(&self, report: &dyn Report) -> Result<Whole, CloudError> {
        let mut hashers = (Hasher::new(Algorithm::Sha256), Hasher::new(Algorithm::Sha512));
        let mut at = 0;
        while at < self.at {
            let (part, until) = (Arc::clone(&self.part), self.at.min(at + STRETCH));
            let read = move |_: &Records| -> Result<_, RecordError> {
                while at < until {
                    let piece = disk::read_at(&part.file, at, size(PIECE.min(until - at)))?;
                    if piece.is_empty() {
                        return Err(RecordError::Confirm);
                    }
                    hashers.0.update(&piece);
                    hashers.1.update(&piece);
                    at += piece.len() as u64;
                }
                Ok((hashers, at))
            };
            (hashers, at) = self.store.with(OPERATION, read).await?;
            report.progress(Progress {
                sent: at,
                total: Some(self.at),
                resumes: 0,
                stage: Stage::ReadingBack,
            });
        }
        let (sha256, sha512) = hashers;
        Ok(Whole {
            bytes: at,
            sha256: sha256.finish().hex().to_owned(),
            sha512: sha512.finish().hex().to_owned(),
        })
    }

    /// What the disk has is what was sent: from here on it is an image.
    async fn confirm(&mut self, whole: Whole, sums: &Sums) -> Result<(), CloudError> {
        if (whole.bytes, &whole.sha512) != (sums.bytes, &sums.sha512) {
            self.state.origin = None;
            self.keep().await?;
            return Err(RecordError::Confirm.of(OPERATION));
        }
        self.state.whole = Some(whole);
        self.keep().await
    }
}
