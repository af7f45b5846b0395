//! The bytes of an image on their way: read from a source that breaks, checked, unpacked, digested twice in one pass, and the last of them
//! held back until everything is known to be right and written down. Decides nothing about what comes after a failure.

mod checked;
mod known;
mod sending;

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, OnceLock, atomic::AtomicU32},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};
use tokio::time;

pub use self::known::{Sums, SumsHandle, Turn};
use self::{checked::Checking, sending::Sending};
use crate::{
    Attempt, ByteStream, Compression, ContentError, ErrorClass, Format, ImageSource, Pinned, Probe, Report,
    SourceError,
    compression::{self, Limits},
    resume::Resuming,
    sniff,
};

/// How long the beginning of a file may take.
const PEEK: Duration = Duration::from_secs(30);

/// Bytes of an image as they are sent. After an error nothing more comes, and what came before is not an image.
pub type ContentStream = Pin<Box<dyn Stream<Item = Result<Bytes, ContentError>> + Send>>;

/// What has to hold for the bytes, and for whom they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentPlan {
    /// The record that they are for.
    pub attempt: Attempt,
    /// The digest that users demand of the bytes at the source, as they are there.
    pub pinned: Option<Pinned>,
    /// The digest that they had when somebody first looked.
    pub remembered: Option<Pinned>,
    /// How they are packed at the source. They are sent unpacked.
    pub compression: Compression,
    /// What they are promised to be, unpacked.
    pub format: Option<Format>,
}

/// One image on its way. Made for one transfer, and read once.
pub struct Content {
    source: Arc<dyn ImageSource>,
    probe: Probe,
    plan: ContentPlan,
    report: Arc<dyn Report>,
}

/// A content that was opened: its first bytes are here, and what can be told by them is known.
pub struct Body {
    /// Bytes of all that is sent. `None` where it is unpacked on the way, because nobody knows before.
    pub length: Option<u64>,
    /// What [`Content::origin`] says, where a part that is kept is of use. `None` also where what is sent is not what lies at the source.
    pub origin: Option<String>,
    /// The bytes, at most 1 MiB at once. Reading them is what makes them come: little is read ahead, and dropping ends all of it.
    pub stream: ContentStream,
    /// What is known meanwhile.
    pub sums: SumsHandle,
}

impl Content {
    /// The file at this source, about which the source said `probe`.
    pub fn new(source: Arc<dyn ImageSource>, probe: Probe, plan: ContentPlan, report: Arc<dyn Report>) -> Self {
        Self {
            source,
            probe,
            plan,
            report,
        }
    }

    /// Bytes of the file at the source, where it says so.
    pub fn size(&self) -> Option<u64> {
        self.probe.size
    }

    /// By what the same bytes at the source are known another time: for who keeps a part of what was sent, and goes on with it when this is
    /// the same. `None` where nothing tells it, or where the source cannot be read from the middle.
    pub fn origin(&self) -> Option<String> {
        let size = self.probe.size.filter(|_| self.probe.ranges)?;
        let tag = self.probe.tag.as_ref().map(|tag| format!("tag {tag}"));
        let digest = self.digest().map(Pinned::to_string);
        Some(format!("{}, {size} bytes", digest.or(tag)?))
    }

    /// Reads the first bytes. What is no image at all is found here, before anything is sent.
    pub async fn open(self) -> Result<Body, ContentError> {
        let resumes = Arc::default();
        let bytes = self.read_source(0, &resumes);
        self.begin(bytes, 0, resumes).await
    }

    /// The same for who has the first `length` bytes already, from a body of the same [`Body::origin`]: `held` is read again, so that all of
    /// the image is digested, and the stream begins with the byte after it.
    ///
    /// There has to be something left to send, so `length` is less than the size at the source.
    pub async fn open_after(self, held: ByteStream, length: u64) -> Result<Body, ContentError> {
        if self.probe.size.is_none_or(|size| length >= size) {
            return Err(no_part("nothing is missing from what is there"));
        }
        let resumes = Arc::default();
        let bytes = exactly(held, length).chain(self.read_source(length, &resumes));
        self.begin(bytes.boxed(), length, resumes).await
    }

    /// The digest that counts.
    fn digest(&self) -> Option<&Pinned> {
        self.plan.pinned.as_ref().or(self.plan.remembered.as_ref())
    }

    fn read_source(&self, from: u64, resumes: &Arc<AtomicU32>) -> ByteStream {
        let resuming = Resuming {
            source: Arc::clone(&self.source),
            probe: self.probe.clone(),
            from,
            is_checked: self.digest().is_some(),
            resumes: Arc::clone(resumes),
        };
        resuming.stream()
    }

    /// `bytes`: all of the file, of which the first `held` are not sent.
    async fn begin(self, bytes: ByteStream, held: u64, resumes: Arc<AtomicU32>) -> Result<Body, ContentError> {
        let source = Arc::new(OnceLock::new());
        let checking = Checking {
            place: self.source.place().to_owned(),
            pinned: self.plan.pinned.clone(),
            remembered: self.plan.remembered.clone(),
            found: Arc::clone(&source),
        };
        let bytes = bytes.map(|item| item.map_err(ContentError::from)).boxed();
        let (first, mut bytes) = beginning(checking.stream(bytes)).await?;
        let content_type = self.probe.content_type.as_deref();
        let packed = match self.plan.compression {
            Compression::Auto => sniff::packed(&first),
            Compression::None => None,
            kind => Some(kind),
        };
        if let Some(kind) = packed {
            if held > 0 {
                return Err(no_part("what lies at the source is packed"));
            }
            sniff::check(&first, content_type, None)?;
            let room = compression::room(kind, &first, Limits::default()).await?;
            let (first, unpacked) = beginning(compression::unpack(kind, bytes, room)).await?;
            sniff::check(&first, None, self.plan.format.as_ref())?;
            bytes = unpacked;
        } else {
            sniff::check(&first, content_type, self.plan.format.as_ref())?;
        }
        let is_as_it_lies = packed.is_none();
        let (length, origin) = (self.probe.size.filter(|_| is_as_it_lies), self.origin());
        let sending = Sending {
            bytes,
            held,
            length,
            longest: sending::UNTOLD,
            attempt: self.plan.attempt,
            source,
            resumes,
            report: self.report,
        };
        let (stream, sums) = sending.stream();
        Ok(Body {
            length,
            origin: origin.filter(|_| is_as_it_lies),
            stream,
            sums,
        })
    }
}

/// How a file is packed, by its first bytes, for who lets it be fetched as it lies. What is no image at all, or not of this format, is an error as in
/// [`Content::open`]. Reads no more of it, and waits for half a minute.
pub async fn packed_at_source(
    source: Arc<dyn ImageSource>,
    probe: &Probe,
    format: Option<&Format>,
) -> Result<Option<Compression>, ContentError> {
    let silent = format!("{} gave not even its beginning", source.place());
    let resuming = Resuming {
        source,
        probe: probe.clone(),
        from: 0,
        // Whoever fetches it compares all of it.
        is_checked: true,
        resumes: Arc::default(),
    };
    let bytes = resuming.stream().map(|item| item.map_err(ContentError::from)).boxed();
    let read = time::timeout(PEEK, beginning(bytes)).await;
    let (first, _) = read.map_err(|_| ContentError::new(ErrorClass::Unavailable, silent))??;
    let packed = sniff::packed(&first);
    sniff::check(
        &first,
        probe.content_type.as_deref(),
        format.filter(|_| packed.is_none()),
    )?;
    Ok(packed)
}

/// The first bytes, as many as are looked at where there are so many; and all bytes, these again.
async fn beginning(bytes: ContentStream) -> Result<(Bytes, ContentStream), ContentError> {
    // Of a small file the end is seen here, and asked for once more.
    let mut bytes = bytes.fuse();
    let mut first = BytesMut::new();
    while first.len() < sniff::ENOUGH
        && let Some(more) = bytes.next().await
    {
        first.extend_from_slice(&more?);
    }
    let first = first.freeze();
    let all = stream::iter((!first.is_empty()).then(|| Ok(first.clone()))).chain(bytes);
    Ok((first.slice(..first.len().min(sniff::ENOUGH)), all.boxed()))
}

/// The first `length` bytes of what is held, or an error when there are less.
fn exactly(held: ByteStream, length: u64) -> ByteStream {
    stream::unfold((held, length), |(mut held, missing)| async move {
        if missing == 0 {
            return None;
        }
        let item = match held.next().await {
            Some(Ok(mut bytes)) => {
                bytes.truncate(usize::try_from(missing).unwrap_or(usize::MAX));
                Ok(bytes)
            }
            Some(Err(error)) => Err(error),
            None => Err(SourceError::new(
                ErrorClass::State,
                format!("{missing} bytes are missing from the part that is there"),
            )),
        };
        let missing = item.as_ref().map_or(0, |bytes| missing - bytes.len() as u64);
        Some((item, (held, missing)))
    })
    .boxed()
}

fn no_part(why: &str) -> ContentError {
    ContentError::new(
        ErrorClass::State,
        format!("a part cannot be gone on with, because {why}"),
    )
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Body")
            .field("length", &self.length)
            .field("origin", &self.origin)
            .field("sums", &self.sums)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Content")
            .field("source", &self.source)
            .field("probe", &self.probe)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
