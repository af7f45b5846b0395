//! Bounds how many requests are under way at once, and with them the connections: HTTP/1.1 needs one for each.
//!
//! Every connection costs some 100 KiB here and a good deal at the API server, and beyond a few for each of its cores none is faster. A request that
//! is not answered soon, because an admission webhook hangs, makes room for those of other kinds; so that there are no more and more of them, those of
//! one kind are few.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tower::{BoxError, Layer, Service};

use super::request::Asked;

/// Requests under way at once, as long as they are answered soon. Watches come on top, and calls for Leases: no more than
/// [`LEASE_CALLS`](crate::lease::LEASE_CALLS), by whoever stands for election.
pub const CONNECTIONS: usize = 16;

/// How long a request may be without an answer before it makes room for another one.
const SOON: Duration = Duration::from_secs(2);

/// Reads, and writes, of one kind under way at once.
const OF_A_KIND: usize = CONNECTIONS / 2;

/// How long a request stands in line behind those of its kind while none of them is answered.
const LONGEST_LINE: Duration = Duration::from_secs(10);

/// Too many requests of a kind have no answer.
#[derive(Debug, thiserror::Error)]
#[error(
    "the API server does not answer requests for {resource}, of which {OF_A_KIND} wait; look at the admission webhooks for them"
)]
struct Unanswered {
    resource: String,
}

#[derive(Clone)]
pub(super) struct ConnectionsLayer {
    free: Arc<Semaphore>,
    lines: Lines,
}

/// A line for the reads of each kind, and one for the writes.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<HashMap<Line, Arc<Row>>>>);

/// Who stands in one line.
struct Row {
    places: Semaphore,
    /// When a place was given back last.
    moved: Mutex<Instant>,
}

impl Row {
    fn new() -> Self {
        Self {
            places: Semaphore::new(OF_A_KIND),
            moved: Mutex::new(Instant::now()),
        }
    }

    /// Waits for a place for as long as the line moves; `None` when it stands still.
    async fn place(self: Arc<Self>) -> Option<InLine> {
        let begun = Instant::now();
        let place = self.places.acquire();
        let mut place = pin!(place);
        loop {
            let moved = (*self.moved()).max(begun);
            match timeout_at(moved + LONGEST_LINE, place.as_mut()).await {
                Ok(place) => {
                    // Never closed; given back by whoever drops the place in the line.
                    place.ok()?.forget();
                    return Some(InLine(Arc::clone(&self)));
                }
                Err(_) if *self.moved() > moved => {}
                Err(_) => return None,
            }
        }
    }

    fn moved(&self) -> MutexGuard<'_, Instant> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line.
struct InLine(Arc<Row>);

impl Drop for InLine {
    fn drop(&mut self) {
        *self.0.moved() = Instant::now();
        self.0.places.add_permits(1);
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Line {
    resource: String,
    changes: bool,
}

impl Lines {
    fn of(&self, asked: &Asked) -> Arc<Row> {
        let line = Line {
            resource: asked.resource.clone(),
            changes: asked.is_write() || asked.verb == "dry-run",
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let places = lines.entry(line).or_insert_with(|| Arc::new(Row::new()));
        Arc::clone(places)
    }
}

impl ConnectionsLayer {
    pub(super) fn new(connections: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections)),
            lines: Lines::default(),
        }
    }
}

impl<S> Layer<S> for ConnectionsLayer {
    type Service = Connections<S>;

    fn layer(&self, inner: S) -> Connections<S> {
        let layer = self.clone();
        Connections { inner, layer }
    }
}

pub(super) struct Connections<S> {
    inner: S,
    layer: ConnectionsLayer,
}

impl<S, B> Service<Request<Body>> for Connections<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<Held<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// Waits in the answer's future, never in `poll_ready`: a request in line must not hold up an urgent one behind it.
    /// Nothing is sent before the inner future is polled.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let layer = self.layer.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let places = if asked.is_urgent() {
                Places::default()
            } else {
                layer.places(asked).await?
            };
            let (answer, places) = places.until_answered(answer).await;
            Ok(answer.map_err(Into::into)?.map(|inner| Held { inner, places }))
        })
    }
}

/// What a request holds while it is under way.
#[derive(Default)]
struct Places {
    connection: Option<OwnedSemaphorePermit>,
    _in_line: Option<InLine>,
}

impl ConnectionsLayer {
    async fn places(self, asked: Asked) -> Result<Places, Unanswered> {
        let Some(in_line) = self.lines.of(&asked).place().await else {
            let resource = asked.resource;
            return Err(Unanswered { resource });
        };
        Ok(Places {
            // Never closed, so that it does not fail.
            connection: self.free.acquire_owned().await.ok(),
            _in_line: Some(in_line),
        })
    }
}

impl Places {
    /// Waits for an answer, and gives up the place among all others when it does not come soon.
    async fn until_answered<T>(mut self, answer: impl Future<Output = T>) -> (T, Self) {
        let mut answer = pin!(answer);
        if let Ok(answer) = timeout(SOON, answer.as_mut()).await {
            return (answer, self);
        }
        self.connection = None;
        (answer.await, self)
    }
}

/// A body whose connection is another request's as soon as it has been read, or is dropped.
pub(super) struct Held<B> {
    inner: B,
    places: Places,
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
            this.places = Places::default();
        }
        frame
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::{BoxFuture, join_all};
    use http::Method;
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

    /// Asks a server that never answers what is about this.
    fn ask(
        layer: &ConnectionsLayer,
        hung: &'static str,
        method: Method,
        path: &str,
    ) -> BoxFuture<'static, Result<(), BoxError>> {
        let server = service_fn(move |request: Request<Body>| {
            let hangs = request.uri().path().contains(hung);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
            }
        });
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let asking = layer.layer(server).oneshot(request);
        Box::pin(async move { asking.await.map(drop) })
    }

    #[tokio::test(start_paused = true)]
    async fn writes_that_hang_keep_the_others_of_their_kind_and_nobody_else() {
        const HUNG: &str = "/apis/a.io/v1/namespaces/n/stacks/one";
        let layer = ConnectionsLayer::new(CONNECTIONS);
        let ask = |method, path| ask(&layer, "/stacks/", method, path);
        for _ in 0..3 * CONNECTIONS {
            tokio::spawn(ask(Method::PATCH, HUNG));
        }
        tokio::task::yield_now().await;
        let begun = Instant::now();
        for (method, path) in [
            (Method::PATCH, "/apis/a.io/v1/namespaces/n/classes/one"),
            (Method::GET, "/apis/a.io/v1/namespaces/n/classes/one"),
            (Method::GET, "/apis/a.io/v1/namespaces/n/stacks"),
        ] {
            let answer = timeout(LONGEST_LINE, ask(method, path)).await;
            answer.expect("it does not wait for those that hang").unwrap();
        }
        assert!(begun.elapsed() <= SOON, "{:?}", begun.elapsed());
        let error = ask(Method::PATCH, HUNG).await.unwrap_err();
        assert!(error.to_string().contains("stacks.a.io"), "{error}");
        assert!(begun.elapsed() <= SOON + LONGEST_LINE, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn dry_runs_that_hang_keep_no_reads_of_their_kind() {
        const STACKS: &str = "/apis/a.io/v1/namespaces/n/stacks";
        let layer = ConnectionsLayer::new(CONNECTIONS);
        let ask = |method, path: &str| ask(&layer, "/stacks/", method, path);
        for _ in 0..3 * CONNECTIONS {
            tokio::spawn(ask(Method::PATCH, &format!("{STACKS}/one?dryRun=All")));
        }
        tokio::task::yield_now().await;
        let answer = timeout(SOON, ask(Method::GET, STACKS)).await;
        answer.expect("it does not wait for those that hang").unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_hang_together_keep_no_connection_from_others() {
        let layer = ConnectionsLayer::new(CONNECTIONS);
        let ask = |method, path: &str| ask(&layer, "/hung", method, path);
        for number in 0..3 * CONNECTIONS {
            let path = format!("/apis/a.io/v1/namespaces/n/hung{}/one", number % 6);
            tokio::spawn(ask(Method::PATCH, &path));
        }
        tokio::task::yield_now().await;
        let begun = Instant::now();
        let asking = ask(Method::PATCH, "/apis/a.io/v1/namespaces/n/classes/one");
        let answer = timeout(LONGEST_LINE, asking).await;
        answer.expect("it does not wait for those that hang").unwrap();
        // All that hang have had their turn by then, as many at a time as there are connections.
        assert!(begun.elapsed() <= SOON * 3, "{:?}", begun.elapsed());
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
