//! Reads the bodies of requests that anybody can send, within bounds: few large ones are here at once, and who sends slowly takes no place from others.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Bytes of a body that are read without more ado: many times what a Cluster usually has before and after.
pub const USUAL_BODY: usize = 128 << 10;

/// Bodies with more bytes than that which are here at once; more wait for their turn.
pub const LARGE_AT_ONCE: usize = 4;

/// How long one of those may take for as many bytes more, or to its end: an API server sends the largest in less. Whoever sends slowly gives his
/// place back.
const GOES_ON_WITHIN: Duration = Duration::from_millis(500);

/// Reads the bodies of one server.
pub struct Bodies {
    what: &'static str,
    limit: usize,
    large: Semaphore,
}

/// A body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyRefused {
    /// It is large, and there is no end of it.
    #[error("the {what} comes too slowly")]
    Slow {
        /// What it is.
        what: &'static str,
    },
    /// The connection ended before it.
    #[error("the {what} was not sent to its end")]
    Cut {
        /// What it is.
        what: &'static str,
    },
    /// It is too large.
    #[error("the {what} has more than {limit} bytes; make the object smaller")]
    Size {
        /// What it is.
        what: &'static str,
        /// Most bytes that are taken.
        limit: usize,
    },
}

impl IntoResponse for BodyRefused {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Slow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Cut { .. } => StatusCode::BAD_REQUEST,
            Self::Size { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        };
        (status, format!("{self}\n")).into_response()
    }
}

/// The bytes of a body.
pub struct Content<'a> {
    bytes: Vec<u8>,
    /// As long as there are more of them than is usual.
    _place: Option<Place<'a>>,
}

impl Content<'_> {
    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Bodies {
    /// Of at most `limit` bytes; `what` says in answers what is read.
    pub fn new(what: &'static str, limit: usize) -> Self {
        Self {
            what,
            limit,
            large: Semaphore::new(LARGE_AT_ONCE),
        }
    }

    /// Reads a body. How long that takes is up to who sends it, as long as it takes no place from others.
    pub async fn read(&self, body: Body) -> Result<Content<'_>, BodyRefused> {
        let Self { what, limit, .. } = *self;
        let mut bytes = Vec::new();
        let mut place: Option<Place<'_>> = None;
        let mut pieces = body.into_data_stream();
        loop {
            let piece = match &place {
                Some(place) => timeout_at(place.until, pieces.next()).await,
                None => Ok(pieces.next().await),
            };
            let piece = piece.map_err(|_| BodyRefused::Slow { what })?;
            let Some(piece) = piece else {
                return Ok(Content { bytes, _place: place });
            };
            let piece = piece.map_err(|_| BodyRefused::Cut { what })?;
            let length = bytes.len() + piece.len();
            if length > limit {
                return Err(BodyRefused::Size { what, limit });
            }
            if length > USUAL_BODY && place.is_none() {
                place = Some(self.place(length).await);
                // No byte is here twice because there are more. What is not filled takes nothing.
                bytes.reserve_exact(limit - bytes.len());
            }
            bytes.extend_from_slice(&piece);
            if let Some(place) = &mut place {
                place.goes_on(length);
            }
        }
    }

    /// Waits for a place among the large ones.
    async fn place(&self, length: usize) -> Place<'_> {
        Place {
            // Never closed.
            _permit: self.large.acquire().await.ok(),
            length,
            until: Instant::now() + GOES_ON_WITHIN,
        }
    }
}

/// A place among the large bodies, of which a part is still to come.
struct Place<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    /// How much had come when it last went on.
    length: usize,
    /// When it has to go on again.
    until: Instant,
}

impl Place<'_> {
    /// So many bytes have come.
    fn goes_on(&mut self, length: usize) {
        if length - self.length >= USUAL_BODY {
            self.length = length;
            self.until = Instant::now() + GOES_ON_WITHIN;
        }
    }
}
