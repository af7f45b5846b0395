//! What a server answered, and its bytes within limits.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyDataStream, BodyExt};
use jiff::Timestamp;
use tokio::{
    io::AsyncRead,
    time::{self, Instant, Sleep},
};
use tokio_util::io::StreamReader;
use url::Url;

use super::{HttpError, Place, Stage, network::Shared, retry_after, statistics::Counters};
use crate::{Digest, places};

/// Longest answer that anybody may have in memory at any time. Nearly every list is shorter.
const SHORT: usize = 1 << 20;

/// An answer longer than that, with its place.
struct LongAnswer {
    bytes: BytesMut,
    _place: places::Place,
}

impl AsRef<[u8]> for LongAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a server answered. Any status: which of them is an error, its caller knows.
#[derive(Debug)]
pub struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) url: Url,
    pub(super) body: Body,
    /// When all of it must be here, if it is read into memory.
    pub(super) deadline: Instant,
    /// In which line it waits for its place, if it is long.
    pub(super) line: String,
}

impl Response {
    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its headers. Texts of a stranger.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Where it came from, after all redirects. Its query can be a secret: for messages there is [`Response::place`].
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// What was asked for, for messages.
    pub fn place(&self) -> &Place {
        &self.body.place
    }

    /// The entity tag, to be given back in `If-None-Match`.
    pub fn etag(&self) -> Option<&str> {
        self.headers.get(header::ETAG)?.to_str().ok()
    }

    /// How long it asks to be left alone, at most an hour. The client has taken note already.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after::retry_after(&self.headers, Timestamp::now())
    }

    /// How long it is until a time that a header of this answer names, by the server's own clock; at most an hour, nothing if it is over.
    pub fn until(&self, time: Timestamp) -> Option<Duration> {
        retry_after::until(time, &self.headers, Timestamp::now())
    }

    /// The whole body, if it is not longer than `limit` and here in time. Of long ones there are only a few at once, for as long as their bytes are kept;
    /// so nobody keeps them while he asks for something else.
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes, HttpError> {
        let is_encoded = self
            .headers
            .get(header::CONTENT_ENCODING)
            .is_some_and(|encoding| encoding != "identity");
        if is_encoded {
            return Err(HttpError::Encoded {
                place: self.body.place.clone(),
            });
        }
        let announced = self.body.size_hint().lower();
        if announced > limit as u64 {
            return Err(self.too_large(limit));
        }
        let mut whole = BytesMut::new();
        if announced <= SHORT as u64 && self.fill(&mut whole, SHORT, limit).await? {
            return Ok(whole.freeze());
        }
        let (shared, waiting) = (Arc::clone(&self.body.shared), Instant::now());
        let place = shared.long_answers.take(Digest::of(self.line.as_bytes())).await;
        // That wait is our own doing.
        self.deadline += waiting.elapsed();
        // At once: to grow takes twice as much, and what nothing was written to takes none.
        whole.reserve(limit - whole.len());
        let after = shared.deadlines.quick;
        tokio::select! {
            filled = self.fill(&mut whole, limit, limit) => filled?,
            () = place.outstays(after) => {
                let place = self.body.place.clone();
                return Err(HttpError::TooManySlow { place, after });
            }
        };
        Ok(Bytes::from_owner(LongAnswer {
            bytes: whole,
            _place: place,
        }))
    }

    /// Reads on until there is more than `enough`; tells whether the body ended before that.
    async fn fill(&mut self, whole: &mut BytesMut, enough: usize, limit: usize) -> Result<bool, HttpError> {
        while whole.len() <= enough {
            let next = time::timeout_at(self.deadline, self.body.frame()).await;
            let next = next.map_err(|_| HttpError::TimedOut {
                place: self.body.place.clone(),
                stage: Stage::Whole,
                after: self.body.shared.deadlines.whole,
            })?;
            let Some(frame) = next else { return Ok(true) };
            let Ok(data) = frame?.into_data() else { continue };
            if data.len() > limit - whole.len() {
                return Err(self.too_large(limit));
            }
            whole.extend_from_slice(&data);
        }
        Ok(false)
    }

    fn too_large(&self, limit: usize) -> HttpError {
        HttpError::TooLarge {
            place: self.body.place.clone(),
            limit,
        }
    }

    /// The body as it comes, without end if the server wants that: see [`Body`].
    pub fn into_body(self) -> Body {
        self.body
    }

    /// The body as it comes, to be read. An error that it ends with has an [`HttpError`] inside.
    pub fn reader(self) -> impl AsyncRead + Send + use<> {
        StreamReader::new(BodyDataStream::new(self.body.map_err(io::Error::from)))
    }
}

impl From<HttpError> for io::Error {
    fn from(error: HttpError) -> Self {
        let kind = match error {
            HttpError::TimedOut { .. } => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The bytes of an answer. It ends with an error when nothing comes for too long while somebody waits, and when fewer come than were told;
/// it never gives more than were told. Without a told length there is no end but that of the server: whoever reads sets one.
#[derive(Debug)]
pub struct Body {
    pub(super) inner: reqwest::Body,
    pub(super) place: Place,
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<Counters>,
    /// Runs only while somebody waits: a reader that takes its time is no silence of the server.
    pub(super) silence: Option<Pin<Box<Sleep>>>,
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.inner).poll_frame(context);
        if let Poll::Ready(frame) = polled {
            this.silence = None;
            let counters = &this.counters;
            return Poll::Ready(frame.map(|frame| {
                let frame = frame.map_err(|source| HttpError::Body {
                    place: this.place.clone(),
                    source: source.without_url(),
                })?;
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                counters.received(bytes);
                Ok(frame)
            }));
        }
        let after = this.shared.deadlines.idle;
        let silence = this.silence.get_or_insert_with(|| Box::pin(time::sleep(after)));
        ready!(silence.as_mut().poll(context));
        Poll::Ready(Some(Err(HttpError::TimedOut {
            place: this.place.clone(),
            stage: Stage::Idle,
            after,
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
