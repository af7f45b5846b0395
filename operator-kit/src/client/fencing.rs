//! Keeps writes back that are made under a Lease which has run out.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::request::Asked;
use crate::lease::Fence;

/// What a write is told that comes too late.
const TOO_LATE: &str = "this process holds no Lease (any more), so that it writes nothing";

#[derive(Clone)]
pub(super) struct FencingLayer {
    fence: Fence,
}

impl FencingLayer {
    pub(super) fn new(fence: Fence) -> Self {
        Self { fence }
    }
}

impl<S> Layer<S> for FencingLayer {
    type Service = Fencing<S>;

    fn layer(&self, inner: S) -> Fencing<S> {
        let fence = self.fence.clone();
        Fencing { inner, fence }
    }
}

pub(super) struct Fencing<S> {
    inner: S,
    fence: Fence,
}

impl<S, B> Service<Request<Body>> for Fencing<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// Nothing is sent before the inner future is polled, and nothing is waited for between the question and that.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_write = Asked::of(request.method(), request.uri(), request.headers()).is_write();
        let (answer, fence) = (self.inner.call(request), self.fence.clone());
        Box::pin(async move {
            if !is_write {
                return answer.await.map_err(Into::into);
            }
            if !fence.is_open() {
                return Err(io::Error::other(TOO_LATE).into());
            }
            // Also where no connection could be made, which cannot be told from one that broke: Leases wait a little longer then.
            let departure = fence.leaves();
            let answer = answer.await.map_err(Into::into)?;
            if is_final(answer.status()) {
                departure.answered();
            }
            Ok(answer)
        })
    }
}

/// Whether nothing of a write comes any more after this answer. An API server that gave up on etcd says 500 or 504, and a load balancer that
/// gave up on the API server 502, 503 or 504: what they gave up on may still be done.
fn is_final(status: StatusCode) -> bool {
    !status.is_server_error()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use http::Method;
    use tower::{ServiceExt, service_fn};

    use super::*;
    use crate::lease::Clock;

    #[tokio::test]
    async fn writes_pass_until_the_lease_has_run_out_and_reads_always() {
        let seconds = Arc::new(AtomicU32::new(0));
        let time = Arc::clone(&seconds);
        let clock = Clock::of(move || Duration::from_secs(time.load(Ordering::Relaxed).into()));
        let fence = Fence::shut(clock);
        let service =
            FencingLayer::new(fence.clone()).layer(service_fn(|_| async { Ok::<_, Infallible>(Response::new(())) }));
        let service = tokio::sync::Mutex::new(service);
        let asked = async |method: Method| {
            let request = Request::builder().method(method).uri("/api/v1/namespaces/n/pods/p");
            let mut service = service.lock().await;
            let ready = service.ready().await.unwrap();
            ready.call(request.body(Body::empty()).unwrap()).await
        };
        assert!(asked(Method::PUT).await.is_err(), "nothing is held yet");
        fence.set(Some(Duration::from_secs(10)));
        seconds.store(9, Ordering::Relaxed);
        assert!(asked(Method::PUT).await.is_ok());
        seconds.store(10, Ordering::Relaxed);
        let refused = asked(Method::PUT).await.unwrap_err();
        assert_eq!(refused.to_string(), TOO_LATE);
        assert!(asked(Method::GET).await.is_ok());
    }

    /// Writes once through a service that answers like this, gives up after a second, and says whether something may still be done.
    async fn is_doubted(answer: impl Future<Output = Result<Response<()>, io::Error>> + Send + 'static) -> bool {
        let fence = Fence::shut(Clock::of(|| Duration::from_secs(1)));
        fence.set(Some(Duration::from_secs(10)));
        let mut answer = Some(answer);
        let service = service_fn(move |_| answer.take().expect("it is asked once"));
        let request = Request::patch("/apis/a.io/v1/namespaces/n/stacks/s").body(Body::empty());
        let asked = FencingLayer::new(fence.clone())
            .layer(service)
            .oneshot(request.unwrap());
        let _ = tokio::time::timeout(Duration::from_secs(1), asked).await;
        fence.awaits_writes()
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_left_and_was_not_answered_may_still_be_done() {
        assert!(is_doubted(std::future::pending()).await);
        assert!(is_doubted(async { Err(io::Error::from(io::ErrorKind::ConnectionReset)) }).await);
    }
    #[tokio::test]
    async fn an_answer_that_leaves_open_what_became_of_a_write_is_no_end_of_it() {
        for (status, is_open) in [
            (200, false),
            (201, false),
            (403, false),
            (404, false),
            (409, false),
            (422, false),
            (429, false),
            (500, true),
            (502, true),
            (503, true),
            (504, true),
        ] {
            let answer = Response::builder().status(status).body(()).unwrap();
            assert_eq!(is_doubted(async { Ok(answer) }).await, is_open, "{status}");
        }
    }
}
