//! Counts what goes to the API server, by verb, resource and answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::Body;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tower::{Layer, Service};

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

/// The request counter. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    requests: Family<RequestLabels, Counter>,
}

impl Traffic {
    /// Registered as `kubernetes_requests_total`, below the registry's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let traffic = Self::default();
        registry.register(
            "kubernetes_requests",
            "Requests to the API server by verb, resource and answer",
            traffic.requests.clone(),
        );
        traffic
    }

    /// Requests counted so far under these labels.
    pub fn count(&self, labels: &RequestLabels) -> u64 {
        self.requests.get(labels).map_or(0, |counter| counter.get())
    }

    fn add(&self, asked: Asked, code: u16) {
        let labels = RequestLabels {
            verb: asked.verb,
            resource: asked.resource,
            code,
        };
        self.requests.get_or_create(&labels).inc();
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
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            traffic.add(asked, answer.as_ref().map_or(0, |answer| answer.status().as_u16()));
            answer
        })
    }
}
