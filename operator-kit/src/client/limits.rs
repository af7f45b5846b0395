//! Ends what would not end: a deadline for every answer (head and body) and a size that it must fit into, in bytes and in parts: few bytes may become a tree that
//! takes all memory.
//!
//! A watch is an answer without an end: only its head has a deadline and each of its events a size; that it is alive is
//! the watcher's business, which expects a bookmark or an end within its own timeout.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tower::{BoxError, Layer, Service};

use super::request::Asked;
use crate::failure::link_of;
use crate::parts::{MOST_PARTS, Parts};

/// From sending a request to the last byte of its answer. The API server itself gives up after 60 s; what takes longer
/// than half of that is better asked again.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// Until a watch answers its head: an API server that is starting fills its cache first.
pub const WATCH_START_DEADLINE: Duration = Duration::from_mins(1);

/// Most bytes of an object, unpacked, and so of an event of a watch and of a page of a list: etcd refuses objects beyond 1.5 MiB, and as JSON what is
/// stored in another form may be several times larger.
pub const OBJECT_LIMIT: usize = 8 << 20;

/// Most bytes of an answer of discovery, unpacked: a kilobyte for each kind that is served.
pub const DISCOVERY_LIMIT: usize = 32 << 20;

/// An answer of the API server went beyond what it may take of us.
#[derive(Debug, thiserror::Error)]
pub enum OutOfBounds {
    /// It has too many bytes.
    #[error("the API server's answer to {call} has more than {limit} bytes; what it shows must be smaller")]
    TooLarge {
        /// Verb and path.
        call: String,
        /// Most bytes that it may have.
        limit: usize,
    },
    /// It has too many parts.
    #[error(
        "the API server's answer to {call} has more lists, maps and fields than the {most} that there is memory for; what it shows must be smaller"
    )]
    TooManyParts {
        /// Verb and path.
        call: String,
        /// Most parts that it may have; see [`MOST_PARTS`].
        most: usize,
    },
    /// It does not begin.
    #[error(
        "the API server did not answer {call} within {} s; look at its load, and at the network on the way",
        patience.as_secs()
    )]
    Silent {
        /// Verb and path.
        call: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// It does not end.
    #[error(
        "the API server's answer to {call} did not end within {} s; look at its load, and at the network on the way",
        patience.as_secs()
    )]
    Endless {
        /// Verb and path.
        call: String,
        /// How long it was waited for.
        patience: Duration,
    },
}

impl OutOfBounds {
    /// What went out of bounds, if that is what an error stems from.
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        link_of(error)
    }

    /// Whether it was too much at once, so that less of it may do.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooManyParts { .. })
    }
}

#[derive(Clone)]
pub(crate) struct LimitsLayer;

impl<S> Layer<S> for LimitsLayer {
    type Service = Limits<S>;

    fn layer(&self, inner: S) -> Limits<S> {
        Limits { inner }
    }
}

pub(crate) struct Limits<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for Limits<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let call = format!("{} {}", asked.verb, request.uri().path());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let watch = asked.is_watch();
            let patience = if watch { WATCH_START_DEADLINE } else { REQUEST_DEADLINE };
            let deadline = Instant::now() + patience;
            let Ok(answer) = timeout_at(deadline, answer).await else {
                return Err(OutOfBounds::Silent { call, patience }.into());
            };
            Ok(answer.map_err(Into::into)?.map(|body| LimitedBody {
                inner: body,
                call,
                seen: 0,
                parts: Parts::default(),
                limit: Limit::of(&asked),
                deadline: (!watch).then(|| Box::pin(sleep_until(deadline))),
            }))
        })
    }
}

#[derive(Clone, Copy)]
enum Limit {
    Whole { limit: usize },
    EachLine { limit: usize },
}

impl Limit {
    fn of(asked: &Asked) -> Self {
        match asked.verb {
            "watch" => Self::EachLine { limit: OBJECT_LIMIT },
            "discover" => Self::Whole { limit: DISCOVERY_LIMIT },
            _ => Self::Whole { limit: OBJECT_LIMIT },
        }
    }
}

/// A body that fails instead of growing without bound or never ending.
pub(crate) struct LimitedBody<B> {
    inner: B,
    /// Verb and path.
    call: String,
    /// Bytes so far, of the whole body or of the line that is being read.
    seen: usize,
    /// Those of the same.
    parts: Parts,
    limit: Limit,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B> LimitedBody<B> {
    fn admit(&mut self, data: &Bytes) -> Result<(), OutOfBounds> {
        let (limit, each_line) = match self.limit {
            Limit::Whole { limit } => (limit, false),
            Limit::EachLine { limit } => (limit, true),
        };
        for piece in data.split_inclusive(|byte| each_line && *byte == b'\n') {
            self.seen += piece.len();
            if self.seen > limit {
                let call = std::mem::take(&mut self.call);
                return Err(OutOfBounds::TooLarge { call, limit });
            }
            self.parts.take(piece);
            if self.parts.count() > MOST_PARTS {
                let (call, most) = (std::mem::take(&mut self.call), MOST_PARTS);
                return Err(OutOfBounds::TooManyParts { call, most });
            }
            if each_line && piece.ends_with(b"\n") {
                self.seen = 0;
                self.parts = Parts::default();
            }
        }
        Ok(())
    }
}

impl<B> http_body::Body for LimitedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            let (call, patience) = (std::mem::take(&mut this.call), REQUEST_DEADLINE);
            return Poll::Ready(Some(Err(OutOfBounds::Endless { call, patience }.into())));
        }
        let frame = match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(source))) => return Poll::Ready(Some(Err(source.into()))),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        if let Some(data) = frame.data_ref()
            && let Err(refusal) = this.admit(data)
        {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io;

    use http_body_util::{BodyExt, Full, StreamBody};
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn limited<B>(inner: B, limit: Limit) -> LimitedBody<B> {
        LimitedBody {
            inner,
            call: "get /api/v1/pods/one".to_owned(),
            seen: 0,
            parts: Parts::default(),
            limit,
            deadline: None,
        }
    }

    fn chunks(chunks: &[&'static str]) -> impl http_body::Body<Data = Bytes, Error = io::Error> + Unpin {
        let frames: Vec<_> = chunks
            .iter()
            .map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes()))))
            .collect();
        StreamBody::new(futures::stream::iter(frames))
    }

    #[tokio::test]
    async fn an_answer_beyond_its_limit_fails() {
        let body = limited(Full::new(Bytes::from_static(b"12345")), Limit::Whole { limit: 4 });
        let told = body.collect().await.unwrap_err().to_string();
        let words =
            "the API server's answer to get /api/v1/pods/one has more than 4 bytes; what it shows must be smaller";
        assert_eq!(told, words);
        let body = limited(Full::new(Bytes::from_static(b"1234")), Limit::Whole { limit: 4 });
        assert_eq!(body.collect().await.unwrap().to_bytes(), "1234");
    }

    #[tokio::test]
    async fn an_answer_of_discovery_may_be_larger_than_an_object() {
        let is_read = async |path: &str, length: usize| {
            let large = Bytes::from(vec![b' '; length]);
            let server = service_fn(move |_: Request<Body>| {
                let large = large.clone();
                async move { Ok::<_, Infallible>(Response::new(Full::new(large))) }
            });
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = LimitsLayer.layer(server).oneshot(request).await.unwrap();
            answer.into_body().collect().await.is_ok()
        };
        assert!(is_read("/apis", OBJECT_LIMIT + 1).await);
        assert!(!is_read("/api/v1/pods", OBJECT_LIMIT + 1).await);
        assert!(!is_read("/apis", DISCOVERY_LIMIT + 1).await);
    }

    #[tokio::test]
    async fn a_watch_may_be_long_but_not_one_of_its_events() {
        let body = limited(chunks(&["abc\n", "de", "f\ngh", "i\n"]), Limit::EachLine { limit: 4 });
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 12);
        for too_much in [&["abc\n", "de", "fgh"][..], &["a\nbcde\nf\n"], &["abc", "de\nf\n"]] {
            let body = limited(chunks(too_much), Limit::EachLine { limit: 4 });
            assert!(body.collect().await.is_err(), "{too_much:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_of_few_bytes_and_too_many_parts_fails() {
        let bomb = |parts: usize| Full::new(Bytes::from(format!("[{{}}{}]", ",{}".repeat(parts / 5 - 1))));
        let whole = Limit::Whole { limit: OBJECT_LIMIT };
        let told = limited(bomb(MOST_PARTS + 10), whole).collect().await.unwrap_err();
        let words = "the API server's answer to get /api/v1/pods/one has more lists, maps and fields than the 500000 that there is memory \
                     for; what it shows must be smaller";
        assert_eq!(told.to_string(), words);
        assert!(limited(bomb(MOST_PARTS - 10), whole).collect().await.is_ok());
    }

    #[tokio::test]
    async fn the_events_of_a_watch_may_have_more_parts_than_one_of_them() {
        let event = format!("[{{}}{}]\n", ",{}".repeat(MOST_PARTS / 5 - 10));
        let event: &'static str = Box::leak(event.into_boxed_str());
        let each = Limit::EachLine { limit: OBJECT_LIMIT };
        let events = [event, event];
        assert!(limited(chunks(&events), each).collect().await.is_ok());
        let as_one = [&event[..event.len() - 1], event];
        assert!(limited(chunks(&as_one), each).collect().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_ended_by_the_deadline() {
        let mut body = limited(
            StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, io::Error>>()),
            Limit::Whole { limit: 4 },
        );
        body.deadline = Some(Box::pin(sleep_until(Instant::now() + REQUEST_DEADLINE)));
        let error = body.collect().await.unwrap_err();
        let words = "the API server's answer to get /api/v1/pods/one did not end within 30 s; ";
        assert!(error.to_string().starts_with(words), "{error}");
    }
}
