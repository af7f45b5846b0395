//! Reads that are answered from the past: with the API server's own history, so that objects, resource versions and what a watch tells
//! from there on fit together.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE},
};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    asked::{Asked, Place, Verb, value_of, with_pairs},
    forward::{Forwarder, Outcome, is_initial, of_query, whole},
    watching::Watching,
};

const PARTIAL: &str = "as=PartialObjectMetadata";

/// From when on reads are answered, and how long.
#[derive(Debug, Default)]
pub(super) struct Standstill(Mutex<Option<Still>>);

#[derive(Clone, Copy, Debug)]
struct Still {
    version: u64,
    lasting: Duration,
    /// Its end, once a read was answered.
    until: Option<Instant>,
}

impl Standstill {
    pub(super) fn begin(&self, version: u64, lasting: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Still {
            version,
            lasting,
            until: None,
        });
    }

    /// Whether a read has been answered.
    pub(super) fn was_felt(&self) -> bool {
        let still = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        still.is_some_and(|still| still.until.is_some())
    }

    /// Whether a read has been answered, and none is any more.
    pub(super) fn is_over(&self) -> bool {
        let still = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until = still.and_then(|still| still.until);
        until.is_some_and(|until| until <= Instant::now())
    }

    /// The version that a read of now is answered with, and until when that is so.
    pub(super) fn now(&self) -> Option<(u64, Instant)> {
        let mut still = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let still = still.as_mut()?;
        let now = Instant::now();
        let until = *still.until.get_or_insert(now + still.lasting);
        (now < until).then_some((still.version, until))
    }
}

impl Forwarder {
    /// Answers a read with what was so at a resource version. A watch has no news before `until`. What the history does not answer, because it
    /// is no read of objects, or because that version is compacted, is answered from the present.
    pub(super) async fn as_it_was(
        &self,
        request: Request<Bytes>,
        asked: &Asked,
        version: u64,
        until: Option<Instant>,
    ) -> Outcome {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let answer = match asked.verb {
            Verb::List if value_of(&query, "continue").is_none() => self.list_at(&request, version, None).await?,
            Verb::Get => return self.get_at(request, version).await,
            Verb::Watch if is_initial(&query) => return self.watch_from(request, version, until).await,
            Verb::Watch => return self.frozen(request, VecDeque::new(), until).await,
            _ => None,
        };
        match answer {
            Some(list) => json_answer(StatusCode::OK, &list),
            None => self.forward(request, None).await,
        }
    }

    /// The list of what a request is about, or of one object of it.
    async fn list_at(&self, request: &Request<Bytes>, version: u64, name: Option<&str>) -> io::Result<Option<Value>> {
        let Some(place) = Place::of(request.uri().path()) else {
            return Ok(None);
        };
        let version = version.to_string();
        let selector = name.map(|name| format!("metadata.name%3D{name}"));
        let mut pairs = vec![
            ("watch", None),
            ("sendInitialEvents", None),
            ("allowWatchBookmarks", None),
            ("timeoutSeconds", None),
            ("resourceVersion", Some(version.as_str())),
            ("resourceVersionMatch", Some("Exact")),
        ];
        if let Some(selector) = &selector {
            pairs.push(("fieldSelector", Some(selector)));
        }
        let query = with_pairs(request.uri().query().unwrap_or_default(), &pairs);
        let mut list = request.clone();
        *list.uri_mut() = of_query(&place.collection, &query)?;
        list.headers_mut().remove(ACCEPT_ENCODING);
        if is_partial(request) {
            let accept = HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
            list.headers_mut().insert(ACCEPT, accept);
        }
        let answer = self.send(list).await?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        let bytes = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(serde_json::from_slice(&bytes).ok())
    }

    async fn get_at(&self, request: Request<Bytes>, version: u64) -> Outcome {
        let path = request.uri().path().to_owned();
        let place = Place::of(&path).filter(|place| place.subresource.is_none());
        let Some(name) = place.and_then(|place| place.name) else {
            return self.forward(request, None).await;
        };
        let Some(list) = self.list_at(&request, version, Some(name)).await? else {
            return self.forward(request, None).await;
        };
        if let Some(object) = items(&list).pop() {
            return json_answer(StatusCode::OK, &object);
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound",
            "message": format!("{name:?} not found at version {version}, says the fault proxy"), "code": 404,
        });
        json_answer(StatusCode::NOT_FOUND, &status)
    }

    /// A streaming list of the past, and then what happened since.
    async fn watch_from(&self, request: Request<Bytes>, version: u64, until: Option<Instant>) -> Outcome {
        let Some(list) = self.list_at(&request, version, None).await? else {
            return self.forward(request, None).await;
        };
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List");
        let (kind, api_version) = if is_partial(&request) {
            ("PartialObjectMetadata", json!("meta.k8s.io/v1"))
        } else {
            (kind, list["apiVersion"].clone())
        };
        let version = version.to_string();
        let end = json!({ "type": "BOOKMARK", "object": {
            "kind": kind, "apiVersion": api_version,
            "metadata": { "resourceVersion": version, "annotations": { "k8s.io/initial-events-end": "true" } },
        } });
        let added = items(&list)
            .into_iter()
            .map(|object| json!({ "type": "ADDED", "object": object }));
        let lines = added
            .chain([end])
            .map(|event| Bytes::from(format!("{event}\n")))
            .collect();
        let pairs = [
            ("sendInitialEvents", None),
            ("resourceVersionMatch", None),
            ("resourceVersion", Some(version.as_str())),
        ];
        let query = with_pairs(request.uri().query().unwrap_or_default(), &pairs);
        let mut watch = request;
        let path = watch.uri().path().to_owned();
        *watch.uri_mut() = of_query(&path, &query)?;
        self.frozen(watch, lines, until).await
    }

    async fn frozen(&self, request: Request<Bytes>, before: VecDeque<Bytes>, until: Option<Instant>) -> Outcome {
        let answer = self.send(request).await?;
        if !answer.status().is_success() {
            return Ok(answer.map(whole));
        }
        Ok(answer.map(|body| {
            Watching::new(&self.watches, body, None)
                .begun_with(before, until)
                .into_body()
        }))
    }
}

/// The objects of a list as they would be alone.
fn items(list: &Value) -> Vec<Value> {
    let partial = list["kind"] == "PartialObjectMetadataList";
    let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List");
    let alone = |object: &Value| {
        let mut object = object.clone();
        if object.get("kind").is_none() {
            object["kind"] = json!(if partial { "PartialObjectMetadata" } else { kind });
            object["apiVersion"] = list["apiVersion"].clone();
        }
        object
    };
    list["items"].as_array().into_iter().flatten().map(alone).collect()
}

fn is_partial(request: &Request<Bytes>) -> bool {
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains(PARTIAL))
}

fn json_answer(status: StatusCode, value: &Value) -> Outcome {
    let body = http_body_util::Full::new(Bytes::from(value.to_string())).map_err(|never| match never {});
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, "application/json")
        .body(body.boxed())
        .map_err(io::Error::other)
}
