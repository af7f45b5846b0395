//! Counts what goes to the API server, by verb, resource and answer, and makes a span of what belongs to a reconcile.

use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::request::Asked;

/// One series of the request counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// In the words of role rules, and `apply`, `discover`, `dry-run`.
    pub verb: &'static str,
    /// Plural, group and subresource: `clusterstacks.clusterstack.x-k8s.io/status`.
    pub resource: String,
    /// The HTTP status, or 0 when there was no answer.
    pub code: u16,
}

/// One series of the counter of requests to workload clusters: their kinds are those of charts, any number of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
    code: u16,
}

/// The request counter. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    requests: Requests,
    waited: Counter<f64, AtomicU64>,
}

#[derive(Clone, Debug)]
enum Requests {
    ByResource(Family<RequestLabels, Counter>),
    ByVerb(Family<VerbLabels, Counter>),
}

impl Default for Requests {
    fn default() -> Self {
        Self::ByResource(Family::default())
    }
}

impl Traffic {
    /// Registered as `kubernetes_requests_total` and `kubernetes_retry_after_seconds_total`, below the registry's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let requests = Family::default();
        registry.register(
            "kubernetes_requests",
            "Requests to the API server by verb, resource and answer",
            requests.clone(),
        );
        let traffic = Self {
            requests: Requests::ByResource(requests),
            waited: Counter::default(),
        };
        registry.register(
            "kubernetes_retry_after_seconds",
            "Seconds that requests waited because the API server had named a time (Retry-After)",
            traffic.waited.clone(),
        );
        traffic
    }

    /// Of all workload clusters together, registered as `workload_requests_total`, below the registry's prefix.
    pub fn register_of_workloads(registry: &mut Registry) -> Self {
        let requests = Family::default();
        registry.register(
            "workload_requests",
            "Requests to the API servers of workload clusters by verb and answer",
            requests.clone(),
        );
        Self {
            requests: Requests::ByVerb(requests),
            waited: Counter::default(),
        }
    }

    /// Requests counted so far under these labels.
    pub fn count(&self, labels: &RequestLabels) -> u64 {
        let counted = match &self.requests {
            Requests::ByResource(requests) => requests.get(labels).map(|counter| counter.get()),
            Requests::ByVerb(_) => None,
        };
        counted.unwrap_or_default()
    }

    /// A request has waited so long because the API server had asked for it.
    pub(super) fn waited(&self, time: Duration) {
        if !time.is_zero() {
            self.waited.inc_by(time.as_secs_f64());
        }
    }

    #[cfg(test)]
    pub(super) fn seconds_waited(&self) -> f64 {
        self.waited.get()
    }

    fn add(&self, asked: Asked, code: u16) {
        let Asked { verb, resource } = asked;
        match &self.requests {
            Requests::ByResource(requests) => {
                let labels = RequestLabels { verb, resource, code };
                requests.get_or_create(&labels).inc();
            }
            Requests::ByVerb(requests) => {
                requests.get_or_create(&VerbLabels { verb, code }).inc();
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct TrafficLayer {
    traffic: Traffic,
}

impl TrafficLayer {
    pub(super) fn new(traffic: Traffic) -> Self {
        Self { traffic }
    }
}

impl<S> Layer<S> for TrafficLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            traffic: self.traffic.clone(),
        }
    }
}

pub(super) struct Counted<S> {
    inner: S,
    traffic: Traffic,
}

impl<S, B> Service<Request<Body>> for Counted<S>
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let asked = Asked::of(request.method(), request.uri(), request.headers());
        let traffic = self.traffic.clone();
        let span = span(&asked);
        let answer = self.inner.call(request).instrument(span.clone());
        Box::pin(async move {
            let answer = answer.await;
            let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            span.record("http.response.status_code", code);
            if code == 0 || code >= 400 {
                span.record("otel.status_code", "ERROR");
            }
            traffic.add(asked, code);
            answer
        })
    }
}

/// Watches, Leases and what else belongs to no reconcile would be traces of one span each, without an end or without a word.
fn span(asked: &Asked) -> Span {
    if Span::current().is_none() {
        return Span::none();
    }
    tracing::info_span!(
        "request",
        otel.name = format!("{} {}", asked.verb, asked.resource),
        otel.kind = "client",
        otel.status_code = Empty,
        peer.service = "kubernetes",
        http.response.status_code = Empty,
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use prometheus_client::encoding::text;
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn requests_to_workload_clusters_are_counted_by_verb_and_answer_whatever_they_are_about() {
        let mut registry = Registry::default();
        let layer = TrafficLayer::new(Traffic::register_of_workloads(&mut registry));
        for (path, code) in [
            ("/api/v1/namespaces/n/configmaps/a", 200_u16),
            ("/apis/apps/v1/namespaces/n/deployments/a", 200),
            ("/api/v1/namespaces/n/configmaps/a", 403),
        ] {
            let server = service_fn(move |_: Request<Body>| async move {
                let answer = Response::builder().status(code).body(());
                Ok::<_, Infallible>(answer.unwrap())
            });
            let request = Request::get(path).body(Body::empty()).unwrap();
            layer.layer(server).oneshot(request).await.unwrap();
        }
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        let mut counted: Vec<&str> = page.lines().filter(|line| !line.starts_with('#')).collect();
        counted.sort_unstable();
        assert_eq!(
            counted,
            [
                "workload_requests_total{verb=\"get\",code=\"200\"} 2",
                "workload_requests_total{verb=\"get\",code=\"403\"} 1",
            ]
        );
    }
}
