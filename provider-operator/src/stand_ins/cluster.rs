//! An API server that keeps `status.transfer` of objects and Secrets, and answers as it is told.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::service_fn;

/// A write of `status.transfer`.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    /// By which field manager.
    pub(crate) manager: String,
    /// Of which object, as `<plural>/<name>`.
    pub(crate) object: String,
    /// What was sent.
    pub(crate) body: Value,
    /// When it was answered.
    pub(crate) at: Instant,
}

impl Write {
    /// The field of this name in the transfer.
    pub(crate) fn field(&self, name: &str) -> &Value {
        &self.body["status"]["transfer"][name]
    }

    pub(crate) fn is_seal(&self) -> bool {
        !self.field("sealed").is_null()
    }
}

/// What it keeps.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    transfers: Mutex<BTreeMap<String, Value>>,
    writes: Mutex<Vec<Write>>,
    secrets: Mutex<BTreeMap<String, Value>>,
    reads: Mutex<usize>,
    /// The next seals are answered so.
    refusals: Mutex<VecDeque<u16>>,
}

impl Cluster {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// A client of it.
    pub(crate) fn client(self: &Arc<Self>) -> Client {
        let cluster = Arc::clone(self);
        let service = service_fn(move |request: Request<Body>| {
            let cluster = Arc::clone(&cluster);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (status, answer) = cluster.answer(&head, &body);
                let answer = Full::new(Bytes::from(answer.to_string()));
                Ok::<_, Infallible>(Response::builder().status(status).body(answer).unwrap())
            }
        });
        Client::new(service, "default")
    }

    /// The next seals are answered with these codes.
    pub(crate) fn refuse_seals(&self, codes: impl IntoIterator<Item = u16>) {
        self.refusals.lock().unwrap().extend(codes);
    }

    /// All writes that were done.
    pub(crate) fn writes(&self) -> Vec<Write> {
        self.writes.lock().unwrap().clone()
    }

    /// `status.transfer` of the object of this name; null when there is none.
    pub(crate) fn transfer(&self, name: &str) -> Value {
        let transfers = self.transfers.lock().unwrap();
        transfers.get(name).cloned().unwrap_or_default()
    }

    /// Has a Secret in this version, in the namespace `fleet`.
    pub(crate) fn put_secret(&self, name: &str, version: &str, data: &Value) {
        self.put_secret_in("fleet", name, version, data);
    }

    /// The same in another namespace.
    pub(crate) fn put_secret_in(&self, namespace: &str, name: &str, version: &str, data: &Value) {
        let metadata = json!({ "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": version });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data });
        self.secrets
            .lock()
            .unwrap()
            .insert(format!("{namespace}/{name}"), secret);
    }

    /// The Secret in `fleet` is of this type from now on.
    pub(crate) fn type_secret(&self, name: &str, type_: &str) {
        let mut secrets = self.secrets.lock().unwrap();
        secrets.get_mut(&format!("fleet/{name}")).unwrap()["type"] = json!(type_);
    }

    /// Has it no more.
    pub(crate) fn remove_secret(&self, name: &str) {
        self.secrets.lock().unwrap().remove(&format!("fleet/{name}"));
    }

    /// How often Secrets were read.
    pub(crate) fn reads(&self) -> usize {
        *self.reads.lock().unwrap()
    }

    fn answer(&self, head: &http::request::Parts, body: &[u8]) -> (u16, Value) {
        let parts: Vec<&str> = head.uri.path().trim_matches('/').split('/').collect();
        match (&head.method, parts.as_slice()) {
            (&Method::GET, [.., "namespaces", namespace, "secrets", name]) => {
                *self.reads.lock().unwrap() += 1;
                let found = self.secrets.lock().unwrap();
                let found = found.get(&format!("{namespace}/{name}")).cloned();
                found.map_or_else(|| refusal(404), |secret| (200, secret))
            }
            (&Method::PATCH, [.., plural, name, "status"]) => {
                let query = head.uri.query().unwrap_or_default();
                self.patch(&format!("{plural}/{name}"), name, query, body)
            }
            _ => refusal(405),
        }
    }

    fn patch(&self, object: &str, name: &str, query: &str, body: &[u8]) -> (u16, Value) {
        let manager = query.split('&').find_map(|pair| pair.strip_prefix("fieldManager="));
        assert!(query.contains("force=true"), "{query}");
        let write = Write {
            manager: manager.unwrap_or_default().to_owned(),
            object: object.to_owned(),
            body: serde_json::from_slice(body).unwrap(),
            at: Instant::now(),
        };
        if write.is_seal()
            && let Some(code) = self.refusals.lock().unwrap().pop_front()
        {
            return refusal(code);
        }
        let mut transfers = self.transfers.lock().unwrap();
        let transfer = transfers.entry(name.to_owned()).or_insert_with(|| json!({}));
        let sent = write.body["status"]["transfer"].as_object().unwrap().clone();
        transfer.as_object_mut().unwrap().extend(sent);
        let mut stored = write.body.clone();
        stored["status"]["transfer"] = transfer.clone();
        self.writes.lock().unwrap().push(write);
        (200, stored)
    }
}

fn refusal(code: u16) -> (u16, Value) {
    let words = format!("answered with {code}, as it was told to");
    let reason = if code == 404 { "NotFound" } else { "" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words, "reason": reason, "code": code,
    });
    (code, status)
}
