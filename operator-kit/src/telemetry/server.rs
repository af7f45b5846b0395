//! The HTTP endpoints for scrapers and kubelets: metrics on one port, health on another.
//!
//! Both are open to the pod network and therefore only answer; the log level can be changed from the pod itself alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::logging::LogLevel;
use super::readiness::Readiness;
use crate::failure::chain;
use crate::serving::{self, DRAIN, Plain, ServeError, Service, Serving};

/// How long a connection may be without a request. Whoever keeps one between scrapes makes another.
const IDLE_DEADLINE: Duration = Duration::from_secs(10);

/// From the head of a request to the head of its answer: for bodies that do not come.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Largest request body that is read: a list of log directives.
const BODY_LIMIT: usize = 4096;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/metrics` in the `OpenMetrics` text format until `cancel`.
pub async fn serve_metrics(
    address: SocketAddr,
    registry: Arc<Registry>,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let router = Router::new().route("/metrics", get(metrics)).with_state(registry);
    serve(address, router, cancel).await
}

/// Serves `/healthz`, `/readyz` and `/loglevel` until `cancel`.
///
/// `/readyz` answers 503 with what is missing, one a line, or as JSON when that is asked for; what somebody should look after is said
/// either way. `PUT /loglevel` with a
/// level or directives as its body changes the log level, from loopback addresses only.
pub async fn serve_health(
    address: SocketAddr,
    readiness: Readiness,
    log_level: Option<LogLevel>,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let mut router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready).with_state(readiness));
    if let Some(log_level) = log_level {
        router = router.route("/loglevel", get(log_level_now).put(set_log_level).with_state(log_level));
    }
    serve(address, router.layer(DefaultBodyLimit::max(BODY_LIMIT)), cancel).await
}

async fn serve(address: SocketAddr, router: Router, cancel: CancellationToken) -> Result<Serving, ServeError> {
    let service = Service {
        handshake: Plain,
        router: router.layer(from_fn(answer_in_time)),
        idle: IDLE_DEADLINE,
        drain: DRAIN,
    };
    serving::serve(address, service, cancel).await
}

async fn answer_in_time(request: Request, next: Next) -> Response {
    let answer = timeout(ANSWER_DEADLINE, next.run(request)).await;
    answer.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut body = String::new();
    match text::encode(&mut body, &registry) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn ready(State(readiness): State<Readiness>, headers: HeaderMap) -> Response {
    let (missing, remarks) = (readiness.missing(), readiness.remarks());
    let status = if missing.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let wants_json = headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("json"));
    if wants_json {
        let body =
            serde_json::json!({ "ready": missing.is_empty(), "missing": missing, "remarks": remarks }).to_string();
        return (status, [(CONTENT_TYPE, "application/json")], body).into_response();
    }
    let mut body = if missing.is_empty() {
        "ok\n".to_owned()
    } else {
        format!("waiting for {}\n", missing.join("\nwaiting for "))
    };
    for remark in remarks {
        body += "look after ";
        body += &remark;
        body.push('\n');
    }
    (status, body).into_response()
}

async fn log_level_now(State(log_level): State<LogLevel>) -> String {
    log_level.current() + "\n"
}

async fn set_log_level(
    State(log_level): State<LogLevel>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    level: String,
) -> Response {
    if !peer.ip().is_loopback() {
        return (
            StatusCode::FORBIDDEN,
            "the log level can be changed from within the pod only\n",
        )
            .into_response();
    }
    match log_level.set(level.trim()) {
        Ok(()) => {
            tracing::info!(level = level.trim(), "log level changed");
            (StatusCode::OK, "ok\n").into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, chain(&error) + "\n").into_response(),
    }
}

#[cfg(test)]
mod tests;
