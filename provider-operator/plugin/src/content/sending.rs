//! What is sent: every byte digested, and the last piece held back until the source has ended well and the seal is stored.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use bytes::{Buf, Bytes};
use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{
    ContentStream,
    known::{Sums, SumsHandle, Turn, Watched},
};
use crate::{Algorithm, Attempt, ContentError, ErrorClass, Hasher, Pinned, Progress, Report, Seal, Speed, Stage};

/// The most that is given, and held back, at once.
const PIECE: usize = 1024 * 1024;
/// The most that comes of an image whose length nobody told before: one without end would fill whatever takes it. Disks for nodes have far less, and of one
/// that has more the length can be told.
pub(super) const UNTOLD: u64 = 64 * 1024 * 1024 * 1024;

/// What is sent, and who is told.
pub(super) struct Sending {
    /// The whole image. Ends without an error only when everything is right.
    pub(super) bytes: ContentStream,
    /// So many of its first bytes are there already and are not given.
    pub(super) held: u64,
    /// Its length, where that is known.
    pub(super) length: Option<u64>,
    /// Bytes that come at most where that is not known.
    pub(super) longest: u64,
    pub(super) attempt: Attempt,
    /// The digest at the source; set when the bytes have ended.
    pub(super) source: Arc<OnceLock<Pinned>>,
    /// How often the source was opened again.
    pub(super) resumes: Arc<AtomicU32>,
    pub(super) report: Arc<dyn Report>,
}

impl Sending {
    pub(super) fn stream(self) -> (ContentStream, SumsHandle) {
        let handle = SumsHandle::new(self.held);
        let giving = Giving {
            skip: self.held,
            what: self,
            handle: handle.clone(),
            hasher: Hasher::new(Algorithm::Sha512),
            ahead: Bytes::new(),
            last: None,
            speed: Speed::default(),
            given: None,
        };
        let stream = stream::unfold(Some(giving), |giving| async {
            let mut giving = giving?;
            let next = giving.next().await;
            if let Err(error) = &next {
                giving.handle.end(Err(error.clone()));
            }
            match next {
                Ok((piece, is_last)) => Some((Ok(piece), (!is_last).then_some(giving))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed();
        let watched = Watched {
            stream,
            handle: handle.clone(),
        };
        (watched.fuse().boxed(), handle)
    }
}

struct Giving {
    what: Sending,
    handle: SumsHandle,
    hasher: Hasher,
    /// Bytes of the beginning that are still passed over.
    skip: u64,
    /// Read and digested, and not looked at otherwise.
    ahead: Bytes,
    /// Given when something comes after it, or when everything is right.
    last: Option<Bytes>,
    speed: Speed,
    /// When the cloud was given something, until it asks for more.
    given: Option<Instant>,
}

impl Giving {
    /// The next piece, and whether it is the last one.
    async fn next(&mut self) -> Result<(Bytes, bool), ContentError> {
        if let Some(given) = self.given.take() {
            self.speed.waited(Turn::Cloud, given.elapsed());
        }
        let next = self.piece().await;
        self.given = Some(Instant::now());
        next
    }

    async fn piece(&mut self) -> Result<(Bytes, bool), ContentError> {
        loop {
            if !self.ahead.is_empty() {
                let piece = self.ahead.split_to(self.ahead.len().min(PIECE));
                if let Some(before) = self.last.replace(piece) {
                    self.give(&before);
                    return Ok((before, false));
                }
                continue;
            }
            let asked = Instant::now();
            let bytes = self.what.bytes.next().await;
            self.speed.waited(Turn::Source, asked.elapsed());
            match bytes {
                Some(bytes) => {
                    self.take(bytes?);
                    self.in_bounds()?;
                    self.in_time()?;
                }
                None => return Ok((self.finish().await?, true)),
            }
        }
    }

    fn take(&mut self, mut bytes: Bytes) {
        self.hasher.update(&bytes);
        self.handle.take(bytes.len());
        self.speed.moved(bytes.len() as u64);
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        bytes.advance(skipped);
        self.skip -= skipped as u64;
        if skipped > 0 {
            self.tell(self.what.held - self.skip, Stage::Reading);
        } else {
            // Nothing is given yet, and yet something moves.
            self.tell(self.handle.sent(), Stage::Sending);
        }
        self.ahead = bytes;
    }

    fn in_bounds(&self) -> Result<(), ContentError> {
        let longest = self.what.longest;
        if self.what.length.is_some() || self.hasher.count() <= longest {
            return Ok(());
        }
        let words = format!(
            "more than {longest} bytes came of an image whose length nobody told before; publish it unpacked, on a server that tells its length, or a smaller one"
        );
        Err(ContentError::new(ErrorClass::SourceNotAnImage, words))
    }

    /// What drips holds a place for ever; where nobody wants the place, it may.
    fn in_time(&self) -> Result<(), ContentError> {
        let Some(whose) = self.speed.too_slow().filter(|_| self.what.report.others_wait()) else {
            return Ok(());
        };
        let class = match whose {
            Turn::Source => ErrorClass::SourceBroken,
            // What is unavailable in a content is its source.
            Turn::Cloud => ErrorClass::Busy,
        };
        Err(ContentError::new(class, Speed::words(whose)))
    }

    /// Everything is there, and right. Has it written down, and gives what was held back.
    async fn finish(&mut self) -> Result<Bytes, ContentError> {
        let hasher = self.hasher.clone();
        let bytes = hasher.count();
        let (Some(last), Some(source)) = (self.last.take(), self.what.source.get().cloned()) else {
            let words = "the file ended before it was known to be right";
            return Err(ContentError::new(ErrorClass::SourceNotAnImage, words));
        };
        let seal = Seal {
            attempt: self.what.attempt,
            source_digest: source.to_string(),
            sha512: hasher.finish().hex().to_owned(),
            bytes,
        };
        let sealed = self.what.report.seal(&seal).await;
        sealed.map_err(|error| ContentError::new(ErrorClass::Sealing, error.message))?;
        // Also where nobody knew: from here on it is the cloud's turn alone.
        self.what.length = Some(bytes);
        self.give(&last);
        self.handle.end(Ok(Sums {
            source,
            sha512: seal.sha512,
            bytes,
        }));
        Ok(last)
    }

    fn give(&self, piece: &Bytes) {
        let sent = self.handle.give(piece.len());
        self.tell(sent, Stage::Sending);
    }

    fn tell(&self, sent: u64, stage: Stage) {
        self.what.report.progress(Progress {
            sent,
            total: self.what.length,
            resumes: self.what.resumes.load(Ordering::Relaxed),
            stage,
        });
    }
}
