//! Hears what a cluster answers, whoever asked: while it says something it is there, and nobody has to ask whether it is.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

/// A request that is given up after so long without an answer is a sign that something is wrong.
const LONG: Duration = Duration::from_secs(10);

/// Whoever is asked and says nothing for so long may hang: most answers of an API server take a hundredth.
const SILENT: Duration = Duration::from_millis(500);

/// What is heard of one cluster. Clones share it.
#[derive(Clone)]
pub(super) struct Pulse(Arc<Inner>);

struct Inner {
    heard: Mutex<Heard>,
    trouble: Notify,
}

struct Heard {
    /// When something was heard last.
    last: Instant,
    /// Requests without an answer.
    waiting: usize,
    /// Since when there are some.
    asked: Instant,
}

impl Pulse {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Inner {
            heard: Mutex::new(Heard {
                last: now,
                waiting: 0,
                asked: now,
            }),
            trouble: Notify::new(),
        }))
    }

    /// When something was heard last.
    pub(super) fn heard(&self) -> Instant {
        self.lock().last
    }

    /// Whether the cluster has been asked and has said nothing for a while.
    pub(super) fn keeps_silent(&self) -> bool {
        let heard = self.lock();
        heard.waiting > 0 && heard.asked.max(heard.last).elapsed() >= SILENT
    }

    /// Waits until a request fails so that the cluster may be lost.
    pub(super) async fn troubled(&self) {
        self.0.trouble.notified().await;
    }

    fn hear(&self) {
        self.lock().last = Instant::now();
    }

    fn worry(&self) {
        self.0.trouble.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Layer<S> for Pulse {
    type Service = Felt<S>;

    fn layer(&self, inner: S) -> Felt<S> {
        let pulse = self.clone();
        Felt { inner, pulse }
    }
}

pub(super) struct Felt<S> {
    inner: S,
    pulse: Pulse,
}

impl<S, B> Service<Request<Body>> for Felt<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<FeltBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.inner.call(request);
        let pulse = self.pulse.clone();
        Box::pin(async move {
            let waiting = Waiting::begin(&pulse);
            let answer = answer.await;
            drop(waiting);
            match &answer {
                Ok(answer) => {
                    pulse.hear();
                    if answer.status() == StatusCode::UNAUTHORIZED {
                        pulse.worry();
                    }
                }
                Err(_) => pulse.worry(),
            }
            answer.map(|answer| answer.map(|inner| FeltBody { inner, pulse }))
        })
    }
}

/// A request without an answer. Whoever gives it up may have waited long.
struct Waiting {
    since: Instant,
    pulse: Pulse,
}

impl Waiting {
    fn begin(pulse: &Pulse) -> Self {
        let since = Instant::now();
        let mut heard = pulse.lock();
        if heard.waiting == 0 {
            heard.asked = since;
        }
        heard.waiting += 1;
        drop(heard);
        Self {
            since,
            pulse: pulse.clone(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.pulse.lock().waiting -= 1;
        if self.since.elapsed() >= LONG {
            self.pulse.worry();
        }
    }
}

pub(super) struct FeltBody<B> {
    inner: B,
    pulse: Pulse,
}

impl<B> http_body::Body for FeltBody<B>
where
    B: http_body::Body<Data = Bytes, Error = BoxError> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.inner).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(_))) => this.pulse.hear(),
            Poll::Ready(Some(Err(_))) => this.pulse.worry(),
            Poll::Ready(None) | Poll::Pending => {}
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_after_long_is_trouble_and_one_that_is_given_up_soon_is_none() {
        let pulse = Pulse::new();
        for (waited, is_trouble) in [(LONG / 2, false), (LONG, true)] {
            let waiting = Waiting::begin(&pulse);
            sleep(waited).await;
            drop(waiting);
            assert_eq!(pulse.troubled().now_or_never().is_some(), is_trouble, "{waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_and_says_nothing_keeps_silent_and_nobody_else_does() {
        let pulse = Pulse::new();
        sleep(SILENT).await;
        assert!(!pulse.keeps_silent(), "nobody asks");
        let (first, second) = (Waiting::begin(&pulse), Waiting::begin(&pulse));
        assert!(!pulse.keeps_silent(), "it was asked just now");
        sleep(SILENT).await;
        assert!(pulse.keeps_silent());
        pulse.hear();
        assert!(!pulse.keeps_silent(), "it answers somebody");
        sleep(SILENT).await;
        drop(first);
        assert!(pulse.keeps_silent(), "somebody waits yet");
        drop(second);
        assert!(!pulse.keeps_silent());
    }
}
