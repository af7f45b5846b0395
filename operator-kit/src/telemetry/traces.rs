//! Spans to a collector that speaks OTLP over HTTP: what the operator did when, for whom, and what it waited for.
//!
//! Without a collector no span is made. With one, spans are kept in a queue of bounded length and sent by a thread of their own: a collector that
//! is slow or away costs spans, never work. The variables of OpenTelemetry's specification (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`,
//! `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_BSP_*`) mean here what they mean elsewhere.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::Uri;
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::KeyValue;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, ResponseExt};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{SdkTracerProvider, Tracer};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::failure::chain;

/// From sending spans to the last byte of the answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Most bytes of the answer; what is said in it is that spans were refused, and why.
const ANSWER_LIMIT: usize = 64 << 10;

/// How long the last spans may take when the process ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where the spans of a collector's own address go.
const PATH: &str = "/v1/traces";

/// Traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The address is none.
    #[error(
        "unable to send traces to that address; give a URL such as http://collector.observability:4318, without a user"
    )]
    Endpoint,
    /// There are no authorities to check the collector by.
    #[error("found no certificate authorities to check the collector by; name a bundle in SSL_CERT_FILE")]
    Authorities(#[source] std::io::Error),
    /// What the environment says of OTLP is wrong.
    #[error("unable to send traces as OTEL_EXPORTER_OTLP_* asks")]
    Build(#[source] opentelemetry_otlp::ExporterBuildError),
}

/// A collector's address: scheme, host, port and perhaps a path, without a user.
#[derive(Clone, PartialEq, Eq)]
pub struct Collector(Uri);

impl Collector {
    /// Reads the address as `OTEL_EXPORTER_OTLP_ENDPOINT` has it: `/v1/traces` is added where it is not the end already.
    pub fn parse(address: &str) -> Result<Self, TracesError> {
        let address = address.trim_end_matches('/');
        let whole = if address.ends_with(PATH) {
            address.to_owned()
        } else {
            format!("{address}{PATH}")
        };
        let uri: Uri = whole.parse().map_err(|_| TracesError::Endpoint)?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let named = uri
            .authority()
            .is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
        (known && named && uri.query().is_none())
            .then_some(Self(uri))
            .ok_or(TracesError::Endpoint)
    }

    fn connector(&self) -> Result<HttpsConnector<HttpConnector>, TracesError> {
        let builder = HttpsConnectorBuilder::new();
        let builder = if self.0.scheme_str() == Some("https") {
            builder.with_native_roots().map_err(TracesError::Authorities)?
        } else {
            let nobody = ClientConfig::builder()
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth();
            builder.with_tls_config(nobody)
        };
        Ok(builder.https_or_http().enable_http1().build())
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The way of spans to the collector. Clones share it.
#[derive(Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Makes ready to send spans of the service `name` in `version`. Call it inside of the runtime that is to carry them.
    pub fn start(collector: &Collector, name: &'static str, version: &'static str) -> Result<Self, TracesError> {
        let client = Courier {
            client: Client::builder(TokioExecutor::new()).build(collector.connector()?),
            runtime: Handle::current(),
            collector: collector.to_string(),
            lost: Arc::default(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(collector.to_string())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(DEADLINE)
            .build()
            .map_err(TracesError::Build)?;
        let resource = Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", name),
                KeyValue::new("service.version", version),
            ])
            // What OTEL_RESOURCE_ATTRIBUTES says wins.
            .with_detector(Box::new(EnvResourceDetector::new()))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self { provider })
    }

    pub(super) fn tracer(&self) -> Tracer {
        self.provider.tracer("stackwright")
    }

    /// Sends what is left, for a second at most.
    pub async fn end(self) {
        let sending = tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FAREWELL));
        if let Ok(Err(error)) = sending.await {
            tracing::debug!(error = chain(&error), "the last spans were not sent");
        }
    }
}

/// The trace that is being written here, for lines of the log; `None` where none is.
pub fn trace_id() -> Option<String> {
    let context = tracing::Span::current().context();
    let span = context.span();
    let here = span.span_context();
    (here.is_valid() && here.is_sampled()).then(|| here.trace_id().to_string())
}

/// Carries spans from the thread that sends them through the process's runtime, and tells once that nobody takes them.
struct Courier {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    /// Without credentials.
    collector: String,
    /// That the collector does not take spans was said, and that it does again was not.
    lost: Arc<AtomicBool>,
}

impl fmt::Debug for Courier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers of requests may be secrets.
        write!(formatter, "Courier to {}", self.collector)
    }
}

impl Courier {
    fn heard(&self, trouble: Option<&str>) {
        let was = self.lost.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(error) if !was => {
                tracing::warn!(
                    error,
                    "unable to send traces to {}; the work goes on without",
                    self.collector
                );
            }
            None if was => tracing::info!("{} takes traces again", self.collector),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let (parts, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, ANSWER_LIMIT).collect().await?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        // The thread that asks is none of the runtime's, whose clock is needed too.
        let sent = self.runtime.spawn(async move { timeout(DEADLINE, exchange).await });
        let answer = sent.await.map_err(HttpError::from);
        let answer = answer.and_then(|in_time| in_time.map_err(HttpError::from).flatten());
        let answer = answer.and_then(ResponseExt::error_for_status);
        let trouble = answer.as_ref().err().map(|error| chain(error.as_ref()));
        self.heard(trouble.as_deref());
        answer
    }
}

#[cfg(test)]
mod tests;
