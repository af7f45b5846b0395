//! Keeps the time that the API server names when it refuses: `Retry-After` with 429 or 503.
//!
//! Priority and fairness, and an API server that is about to end, refuse a caller before they look at what it asks, in plain text: nothing is sent until
//! then. A refusal as a Status is about one object (an admission webhook's words, a kind whose storage begins): only that one waits, so that whoever
//! runs a webhook does not hold up everything. Source of both forms: `k8s.io/apiserver/pkg/server/filters` and `.../handlers/responsewriters`.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, sleep_until};
use tower::{Layer, Service};

use super::request::Asked;
use super::traffic::Traffic;

/// Longer than this no refusal is kept, and no request waits for refusals of others.
const LONGEST: Duration = Duration::from_secs(30);

/// Objects whose refusals are remembered at once; with more, the oldest are asked again sooner.
const OBJECTS: usize = 1024;

/// Until when not to ask.
#[derive(Default)]
struct Refusals {
    everything: Option<Instant>,
    /// By address without the query: an object, or a list of them.
    objects: HashMap<String, Instant>,
}

impl Refusals {
    fn until(&self, path: &str) -> Option<Instant> {
        self.everything.max(self.objects.get(path).copied())
    }

    /// True when nobody was waiting for everything.
    fn note(&mut self, path: &str, refusal: Refusal, now: Instant) -> bool {
        let until = now + refusal.wait;
        if refusal.is_of_everything {
            let was_open = self.everything.is_none_or(|before| before <= now);
            self.everything = self.everything.max(Some(until));
            return was_open;
        }
        self.objects.retain(|_, until| *until > now);
        if self.objects.len() < OBJECTS {
            let known = self.objects.entry(path.to_owned()).or_insert(until);
            *known = until.max(*known);
        }
        false
    }
}

/// What a refusal asks for.
#[derive(Clone, Copy)]
struct Refusal {
    wait: Duration,
    is_of_everything: bool,
}

impl Refusal {
    fn of<B>(answer: &Response<B>) -> Option<Self> {
        let is_busy = matches!(
            answer.status(),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        );
        let text = answer.headers().get(RETRY_AFTER).filter(|_| is_busy)?.to_str().ok()?;
        let seconds = text.trim().parse().ok().filter(|seconds| *seconds > 0)?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        Some(Self {
            wait: Duration::from_secs(seconds).min(LONGEST),
            is_of_everything: kind.is_none_or(|kind| !kind.starts_with("application/")),
        })
    }
}

#[derive(Clone)]
pub(super) struct PatienceLayer {
    refusals: Arc<Mutex<Refusals>>,
    traffic: Traffic,
}

impl PatienceLayer {
    pub(super) fn new(traffic: Traffic) -> Self {
        Self {
            refusals: Arc::default(),
            traffic,
        }
    }
}

impl<S> Layer<S> for PatienceLayer {
    type Service = Patience<S>;

    fn layer(&self, inner: S) -> Patience<S> {
        Patience {
            inner,
            layer: self.clone(),
        }
    }
}

pub(super) struct Patience<S> {
    inner: S,
    layer: PatienceLayer,
}

impl<S, B> Service<Request<Body>> for Patience<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    /// Waits in the answer's future, before the inner one is polled: nothing is sent until then.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let path = request.uri().path().to_owned();
        let answer = self.inner.call(request);
        let layer = self.layer.clone();
        Box::pin(async move {
            // Leadership must not be lost while others are told to wait.
            if asked.is_watch() || !asked.is_urgent() {
                layer.wait(&path).await;
            }
            let answer = answer.await?;
            if let Some(refusal) = Refusal::of(&answer) {
                layer.note(&path, refusal);
            }
            Ok(answer)
        })
    }
}

impl PatienceLayer {
    async fn wait(&self, path: &str) {
        let begin = Instant::now();
        let last = begin + LONGEST;
        // While one waits, others may be refused, too.
        while let Some(until) = self.until(path).filter(|until| *until > Instant::now())
            && Instant::now() < last
        {
            sleep_until(until.min(last)).await;
        }
        self.traffic.waited(begin.elapsed());
    }

    fn until(&self, path: &str) -> Option<Instant> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).until(path)
    }

    fn note(&self, path: &str, refusal: Refusal) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = refusals.note(path, refusal, Instant::now());
        drop(refusals);
        let seconds = refusal.wait.as_secs();
        if begins {
            tracing::warn!(
                seconds,
                "the API server is busy and names a time; nothing is asked of it until then"
            );
        } else {
            tracing::debug!(seconds, path, "the API server names a time");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::FutureExt;
    use tower::{BoxError, ServiceExt, service_fn};

    use super::*;
    use crate::told::Told;

    const OBJECT: &str = "/api/v1/namespaces/a/configmaps/one";
    const OTHER: &str = "/api/v1/namespaces/a/configmaps/other";
    const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/a/leases/operator";
    const PLAIN: &str = "text/plain; charset=utf-8";
    const STATUS: &str = "application/json";

    /// An API server that refuses everything with this, and what asks it.
    async fn refused(layer: &PatienceLayer, path: &str, kind: &'static str, seconds: &'static str) -> Duration {
        let server = service_fn(move |_: Request<Body>| async move {
            let answer = Response::builder()
                .status(429)
                .header(CONTENT_TYPE, kind)
                .header(RETRY_AFTER, seconds);
            Ok::<_, BoxError>(answer.body(())?)
        });
        let (request, begin) = (Request::get(path).body(Body::empty()).unwrap(), Instant::now());
        layer.layer(server).oneshot(request).await.unwrap();
        begin.elapsed()
    }

    /// How long a request waits before it is sent.
    async fn waits(layer: &PatienceLayer, path: &str) -> Duration {
        let begin = Instant::now();
        let server = service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Instant::now())));
        let request = Request::get(path).body(Body::empty()).unwrap();
        let sent = layer.layer(server).oneshot(request).await.unwrap().into_body();
        sent - begin
    }

    fn layer() -> (PatienceLayer, Traffic) {
        let traffic = Traffic::default();
        (PatienceLayer::new(traffic.clone()), traffic)
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_not_asked_before_it_and_that_is_told_once() {
        let (told, (layer, traffic)) = (Told::begin(), layer());
        refused(&layer, OBJECT, PLAIN, "7").await;
        assert_eq!(waits(&layer, LEASE).await, Duration::ZERO);
        let watch = format!("{OTHER}?watch=true");
        let (object, other, watch) = tokio::join!(waits(&layer, OBJECT), waits(&layer, OTHER), waits(&layer, &watch));
        for waited in [object, other, watch] {
            assert!(
                waited >= Duration::from_secs(7) && waited < Duration::from_secs(8),
                "{waited:?}"
            );
        }
        assert_eq!(waits(&layer, OBJECT).await, Duration::ZERO);
        assert!(
            (21.0..24.0).contains(&traffic.seconds_waited()),
            "{}",
            traffic.seconds_waited()
        );
        let line = "WARN the API server is busy and names a time; nothing is asked of it until then seconds=7";
        assert_eq!(told.lines(), [line]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_said_of_one_object_holds_up_no_other() {
        let (layer, _) = layer();
        refused(&layer, OBJECT, STATUS, "7").await;
        assert_eq!(waits(&layer, OTHER).await, Duration::ZERO);
        assert!(waits(&layer, OBJECT).await >= Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever_however_often_and_whatever_the_server_says() {
        for seconds in ["4000000000", "18446744073709551615"] {
            let (layer, _) = layer();
            refused(&layer, OBJECT, PLAIN, seconds).await;
            let again = async {
                loop {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    layer.note(
                        OBJECT,
                        Refusal {
                            wait: LONGEST,
                            is_of_everything: true,
                        },
                    );
                }
            };
            let waited = tokio::select! {
                waited = waits(&layer, OBJECT) => waited,
                () = again => unreachable!("it never ends"),
            };
            assert!(waited <= LONGEST + Duration::from_secs(1), "{waited:?}");
        }
        let (layer, _) = layer();
        for nothing in ["", "0", "-1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            refused(&layer, OBJECT, PLAIN, nothing).await;
            assert_eq!(waits(&layer, OBJECT).now_or_never(), Some(Duration::ZERO), "{nothing}");
        }
        for number in 0..OBJECTS * 2 {
            refused(&layer, &format!("{OBJECT}{number}"), STATUS, "7").await;
        }
        assert_eq!(layer.refusals.lock().unwrap().objects.len(), OBJECTS);
    }
}
