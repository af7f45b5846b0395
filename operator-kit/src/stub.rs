//! An API server for unit tests: a function from requests to answers, behind a real client.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::client::{Body, Client};
use serde_json::{Value, json};
use tower::service_fn;

/// A request as the API server sees it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Null when there is none.
    pub(crate) body: Value,
}

/// A client of `answer`, which gives an HTTP status and a JSON body.
pub(crate) fn client(answer: impl FnMut(&Asked) -> (u16, Value) + Send + 'static) -> Client {
    let answer = Arc::new(Mutex::new(answer));
    let service = service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.expect("a test's request has a whole body");
            let asked = Asked {
                method: head.method,
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let (status, body) = (answer.lock().expect("the stub did not panic"))(&asked);
            let body = Full::new(Bytes::from(body.to_string()));
            let answer = Response::builder().status(status).body(body).expect("a valid answer");
            Ok::<_, Infallible>(answer)
        }
    });
    Client::new(service, "default")
}

/// A refusal as the API server words it.
pub(crate) fn refusal(code: u16, reason: &str, message: &str, details: &Value) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message, "details": details,
    });
    (code, status)
}

/// Aggregated discovery of `apps/v1` Deployments and core/v1 Namespaces; `None` for every other path.
pub(crate) fn discovery(asked: &Asked) -> Option<(u16, Value)> {
    let resource = |plural: &str, kind: &str, scope: &str, subresources: Value| {
        json!({
            "resource": plural, "scope": scope, "verbs": ["get"], "subresources": subresources,
            "responseKind": { "group": "", "version": "", "kind": kind },
        })
    };
    let group = match asked.path.as_str() {
        "/api" => json!({
            "metadata": {},
            "versions": [{ "version": "v1", "resources": [resource("namespaces", "Namespace", "Cluster", json!([]))] }],
        }),
        "/apis" => json!({
            "metadata": { "name": "apps" },
            "versions": [{
                "version": "v1",
                "resources": [resource("deployments", "Deployment", "Namespaced", json!([{ "subresource": "status", "verbs": ["get"] }]))],
            }],
        }),
        _ => return None,
    };
    Some((
        200,
        json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [group] }),
    ))
}
