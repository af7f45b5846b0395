//! An API server for unit tests: a function from requests to answers, behind a real client.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use http::header::ACCEPT;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::{Body, Client};
use serde_json::{Value, json};
use tower::{Layer, Service, service_fn};

use crate::client::LimitsLayer;

/// A request as the API server sees it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    /// Of objects nothing else is wanted.
    pub(crate) metadata_only: bool,
    /// Null when there is none.
    pub(crate) body: Value,
}

impl Asked {
    /// What the query has by this name; nothing when it has not.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

/// What comes back: an HTTP status and a body, at once or when it comes, or the events of a watch that then stays open, told at once or as they come.
pub(crate) enum Answer {
    Whole(u16, Value),
    Late(u16, BoxFuture<'static, Value>),
    Watch(Vec<Value>),
    Live(BoxStream<'static, Value>),
}

impl From<(u16, Value)> for Answer {
    fn from((status, body): (u16, Value)) -> Self {
        Self::Whole(status, body)
    }
}

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

impl Answer {
    fn response(self) -> Response<StreamBody<Frames>> {
        let frame = |text: String| Ok(Frame::data(Bytes::from(text)));
        let (status, frames) = match self {
            Self::Whole(status, body) => (status, stream::iter([frame(body.to_string())]).boxed()),
            Self::Late(status, body) => (
                status,
                stream::once(body).map(move |body| frame(body.to_string())).boxed(),
            ),
            Self::Watch(events) => return Self::Live(stream::iter(events).boxed()).response(),
            Self::Live(events) => {
                let events = events.map(move |event| frame(line(&event)));
                (200, events.chain(stream::pending()).boxed())
            }
        };
        Response::builder()
            .status(status)
            .body(StreamBody::new(frames))
            .expect("a valid answer")
    }
}

/// An event as the API server writes it: its type comes first.
fn line(event: &Value) -> String {
    match (event.get("type"), event.get("object")) {
        (Some(kind), Some(object)) => format!("{{\"type\":{kind},\"object\":{object}}}\n"),
        _ => format!("{event}\n"),
    }
}

/// A client of `answer`.
pub(crate) fn client<A: Into<Answer> + 'static>(answer: impl FnMut(&Asked) -> A + Send + 'static) -> Client {
    Client::new(service(answer), "default")
}

/// The same, with the bounds of a client that goes over the network.
pub(crate) fn bounded_client<A: Into<Answer> + 'static>(answer: impl FnMut(&Asked) -> A + Send + 'static) -> Client {
    Client::new(LimitsLayer.layer(service(answer)), "default")
}

/// What is behind these clients.
pub(crate) fn service<A: Into<Answer> + 'static>(
    answer: impl FnMut(&Asked) -> A + Send + 'static,
) -> impl Service<
    Request<Body>,
    Response = Response<StreamBody<Frames>>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<StreamBody<Frames>>, Infallible>> + Send,
> + Send {
    let answer = Arc::new(Mutex::new(answer));
    service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.expect("a test's request has a whole body");
            let accept = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
            let asked = Asked {
                method: head.method,
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                metadata_only: accept.is_some_and(|accept| accept.contains("as=PartialObjectMetadata")),
                body: serde_json::from_slice(&body).unwrap_or_default(),
            };
            let answer = (answer.lock().expect("the stub did not panic"))(&asked);
            Ok::<_, Infallible>(answer.into().response())
        }
    })
}

/// The page of these objects that is asked for, at version 5.
pub(crate) fn page(asked: &Asked, objects: &[Value]) -> (u16, Value) {
    let number = |name: &str| asked.parameter(name).parse::<usize>().ok();
    let begin = number("continue").unwrap_or(0).min(objects.len());
    let end = number("limit").map_or(objects.len(), |limit| objects.len().min(begin + limit));
    let shown = |object: &Value| {
        if asked.metadata_only {
            json!({ "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"] })
        } else {
            object.clone()
        }
    };
    let token = if end < objects.len() {
        end.to_string()
    } else {
        String::new()
    };
    let list = json!({
        "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "5", "continue": token },
        "items": objects[begin..end].iter().map(shown).collect::<Vec<_>>(),
    });
    (200, list)
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
            "versions": [{ "version": "v1", "resources": [
                resource("namespaces", "Namespace", "Cluster", json!([])),
                resource("secrets", "Secret", "Namespaced", json!([])),
            ] }],
        }),
        "/apis" => {
            let status = json!([{ "subresource": "status", "verbs": ["get"] }]);
            json!({
                "metadata": { "name": "apps" },
                "versions": [{ "version": "v1", "resources": [resource("deployments", "Deployment", "Namespaced", status)] }],
            })
        }
        _ => return None,
    };
    let list = json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": [group] });
    Some((200, list))
}

/// Aggregated discovery of `Lamp.example.org`, served in v2, which is preferred, and v1; `None` for every other path.
pub(crate) fn discovery_of_two_versions(asked: &Asked) -> Option<(u16, Value)> {
    let version = |version: &str| {
        json!({ "version": version, "resources": [{
            "resource": "lamps", "scope": "Namespaced", "verbs": ["get"],
            "responseKind": { "group": "example.org", "version": version, "kind": "Lamp" },
        }] })
    };
    let groups = match asked.path.as_str() {
        "/api" => json!([]),
        "/apis" => json!([{ "metadata": { "name": "example.org" }, "versions": [version("v2"), version("v1")] }]),
        _ => return None,
    };
    let list = json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups });
    Some((200, list))
}
