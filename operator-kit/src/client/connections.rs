//! Bounds how many requests are under way at once, and with them the connections: HTTP/1.1 needs one for each.
//!
//! Every connection costs some 100 KiB here and a good deal at the API server, and beyond a few for each of its cores none is faster.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use super::request::Asked;

/// Requests under way at once. Watches come on top, and calls for Leases: no more than [`LEASE_CALLS`](crate::lease::LEASE_CALLS), by whoever stands for
/// election.
pub const CONNECTIONS: usize = 16;

#[derive(Clone)]
pub(super) struct ConnectionsLayer {
    free: Arc<Semaphore>,
}

impl ConnectionsLayer {
    pub(super) fn new(connections: usize) -> Self {
        let free = Arc::new(Semaphore::new(connections));
        Self { free }
    }
}

impl<S> Layer<S> for ConnectionsLayer {
    type Service = Connections<S>;

    fn layer(&self, inner: S) -> Connections<S> {
        let free = Arc::clone(&self.free);
        Connections { inner, free }
    }
}

pub(super) struct Connections<S> {
    inner: S,
    free: Arc<Semaphore>,
}

impl<S, B> Service<Request<Body>> for Connections<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<Held<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    /// Waits in the answer's future, never in `poll_ready`: a request in line must not hold up an urgent one behind it.
    /// Nothing is sent before the inner future is polled.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let urgent = Asked::of(request.method(), request.uri(), request.headers()).is_urgent();
        let free = (!urgent).then(|| Arc::clone(&self.free));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let connection = match free {
                // Never closed, so it never fails.
                Some(free) => free.acquire_owned().await.ok(),
                None => None,
            };
            let answer = answer.await?;
            Ok(answer.map(|inner| Held { inner, connection }))
        })
    }
}

/// A body whose connection is another request's as soon as it has been read, or is dropped.
pub(super) struct Held<B> {
    inner: B,
    connection: Option<OwnedSemaphorePermit>,
}

impl<B> http_body::Body for Held<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.inner).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) {
            this.connection = None;
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use http_body_util::{BodyExt, Full};
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Answers after everybody else had the chance to ask, and notes how many were under way at most.
    async fn most_at_once(connections: usize, path: &str) -> usize {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counter, record) = (Arc::clone(&now), Arc::clone(&most));
        let server = service_fn(move |_: Request<Body>| {
            let (counter, record) = (Arc::clone(&counter), Arc::clone(&record));
            async move {
                record.fetch_max(counter.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                counter.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
            }
        });
        let layer = ConnectionsLayer::new(connections);
        let asking = (0..10).map(|_| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let asking = layer.layer(server.clone()).oneshot(request);
            async move { asking.await.unwrap().into_body().collect().await.unwrap() }
        });
        join_all(asking).await;
        most.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn no_more_requests_are_under_way_than_connections_are_allowed() {
        assert_eq!(most_at_once(3, "/api/v1/configmaps").await, 3);
    }

    #[tokio::test]
    async fn watches_stand_in_no_line() {
        assert_eq!(most_at_once(3, "/api/v1/configmaps?watch=true").await, 10);
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_frees_its_connection() {
        let server = service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
        });
        let layer = ConnectionsLayer::new(1);
        for _ in 0..2 {
            let request = Request::get("/api/v1/configmaps").body(Body::empty()).unwrap();
            layer.layer(server).oneshot(request).await.unwrap();
        }
    }
}
