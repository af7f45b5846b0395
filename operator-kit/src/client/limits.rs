//! Ends what would not end: a deadline for every answer (head and body) and a size that it must fit into.
//!
//! A watch is an answer without an end: only its head has a deadline and each of its events a size; that it is alive is
//! the watcher's business, which expects a bookmark or an end within its own timeout.

use std::io;
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

/// From sending a request to the last byte of its answer. The API server itself gives up after 60 s; what takes longer
/// than half of that is better asked again.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(30);

/// Until a watch answers its head: an API server that is starting fills its cache first.
pub const WATCH_START_DEADLINE: Duration = Duration::from_mins(1);

/// Most bytes of one answer, unpacked. A page of 250 objects of the largest size that etcd takes would be larger; of
/// objects as they occur it is a few megabytes.
pub const ANSWER_LIMIT: usize = 64 << 20;

/// Most bytes of one event of a watch: etcd refuses objects beyond 1.5 MiB, and JSON may double that.
pub const EVENT_LIMIT: usize = 8 << 20;

#[derive(Clone)]
pub(super) struct LimitsLayer;

impl<S> Layer<S> for LimitsLayer {
    type Service = Limits<S>;

    fn layer(&self, inner: S) -> Limits<S> {
        Limits { inner }
    }
}

pub(super) struct Limits<S> {
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
        let watch = Asked::of(request.method(), request.uri(), request.headers()).is_watch();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let patience = if watch { WATCH_START_DEADLINE } else { REQUEST_DEADLINE };
            let deadline = Instant::now() + patience;
            let answer = timeout_at(deadline, answer)
                .await
                .map_err(|_| too_late(patience))?
                .map_err(Into::into)?;
            let limit = if watch {
                Limit::EachLine { limit: EVENT_LIMIT }
            } else {
                Limit::Whole { limit: ANSWER_LIMIT }
            };
            Ok(answer.map(|body| LimitedBody {
                inner: body,
                seen: 0,
                limit,
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

/// A body that fails instead of growing without bound or never ending.
pub(super) struct LimitedBody<B> {
    inner: B,
    /// Bytes so far, of the whole body or of the line that is being read.
    seen: usize,
    limit: Limit,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<B> LimitedBody<B> {
    fn admit(&mut self, data: &Bytes) -> Result<(), BoxError> {
        let (seen, limit) = match self.limit {
            Limit::Whole { limit } => (self.seen + data.len(), limit),
            Limit::EachLine { limit } => match data.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => (data.len() - end - 1, limit),
                None => (self.seen + data.len(), limit),
            },
        };
        self.seen = seen;
        if seen > limit {
            return Err(Box::new(io::Error::other(format!(
                "the API server's answer is larger than {limit} bytes"
            ))));
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
            return Poll::Ready(Some(Err(too_late(REQUEST_DEADLINE))));
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
            return Poll::Ready(Some(Err(refusal)));
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

fn too_late(patience: Duration) -> BoxError {
    let text = format!("the API server did not answer within {} s", patience.as_secs());
    Box::new(io::Error::new(io::ErrorKind::TimedOut, text))
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    fn limited<B>(inner: B, limit: Limit) -> LimitedBody<B> {
        LimitedBody {
            inner,
            seen: 0,
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
        assert!(body.collect().await.is_err());
        let body = limited(Full::new(Bytes::from_static(b"1234")), Limit::Whole { limit: 4 });
        assert_eq!(body.collect().await.unwrap().to_bytes(), "1234");
    }

    #[tokio::test]
    async fn a_watch_may_be_long_but_not_one_of_its_events() {
        let body = limited(chunks(&["abc\n", "de", "f\ngh", "i\n"]), Limit::EachLine { limit: 4 });
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 12);
        let body = limited(chunks(&["abc\n", "de", "fgh"]), Limit::EachLine { limit: 4 });
        assert!(body.collect().await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_ended_by_the_deadline() {
        let mut body = limited(
            StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, io::Error>>()),
            Limit::Whole { limit: 4 },
        );
        body.deadline = Some(Box::pin(sleep_until(Instant::now() + REQUEST_DEADLINE)));
        let error = body.collect().await.unwrap_err();
        assert!(error.to_string().contains("30 s"), "{error}");
    }
}
