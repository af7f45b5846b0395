//! The wire before the stored objects: requests, watches, and the one call that fails.

#![expect(
    clippy::missing_panics_doc,
    reason = "a test that asks for what cannot be done is wrong, and ends"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::{self, BoxStream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use super::answers::{refused, repeated};
use super::api::{Api, Happened, Key, OLDEST, Refusal, Served, Write};
use super::asked::{Asked, Scope};
use super::published::Documents;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done.
    Refused,
    /// It is done, and the connection breaks before the answer.
    AnswerLost,
}

/// A small API server. Clones share it.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Mutex<Inner>>,
}

pub(super) struct Inner {
    pub(super) kinds: &'static [Served],
    api: Api,
    watches: Vec<Watch>,
    calls: usize,
    /// Which call fails, counted from 1.
    fault: Option<(usize, Fault)>,
    /// The call that did.
    struck: Option<String>,
    /// Kinds of which the watches tell nothing new.
    stalled: BTreeSet<&'static str>,
    /// Kinds that may not be listed, and whether only in all namespaces at once.
    denied: BTreeMap<&'static str, bool>,
    /// The fields that a CRD does not have or a policy drops, by kind.
    unknown: BTreeMap<&'static str, &'static [&'static str]>,
    /// The group that discovery leaves out.
    pub(super) hidden: Option<&'static str>,
    /// A part of the requests that a policy refuses for Secrets, in words that repeat all it was shown.
    policy: Option<&'static str>,
    /// With what words requests of a method for single objects of a kind are refused as conflicts.
    conflicts: HashMap<(Method, &'static str), &'static str>,
    /// How long the answers to such requests are held back.
    held: HashMap<(Method, &'static str), Duration>,
    /// How many answers are held back now.
    holding: usize,
    /// The last call that is answered.
    last: Option<usize>,
    /// How often single objects were asked for, or written, by kind and name.
    pub(super) asked_for: HashMap<(&'static str, String), usize>,
    /// The schemas that it publishes.
    pub(super) published: Documents,
}

/// After so many calls all fail: without a pause between them no time goes by, and they would never end.
pub const MOST: usize = 2_000;

/// Who watches what.
struct Watch {
    scope: Scope,
    events: UnboundedSender<Value>,
}

/// The lines of an answer.
type Frames = BoxStream<'static, io::Result<Frame<Bytes>>>;

pub(super) enum Answer {
    Whole { code: u16, body: Value },
    Watch(BoxStream<'static, Value>),
}

impl Server {
    /// Without an object. Serves these kinds, and spoils the call of this number, counted from 1.
    pub fn new(kinds: &'static [Served], fault: Option<(usize, Fault)>) -> Self {
        let inner = Inner {
            kinds,
            api: Api::of(kinds),
            watches: Vec::new(),
            calls: 0,
            fault,
            struck: None,
            stalled: BTreeSet::new(),
            denied: BTreeMap::new(),
            unknown: BTreeMap::new(),
            hidden: None,
            policy: None,
            conflicts: HashMap::new(),
            held: HashMap::new(),
            holding: 0,
            last: None,
            asked_for: HashMap::new(),
            published: Documents::new(),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Whoever asks it.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(io::Error::other)?;
                if server.calls() >= MOST {
                    return Err(io::Error::other("too many calls"));
                }
                if server.is_cut_off() {
                    return std::future::pending().await;
                }
                let pause = server.held(&head, &body);
                let answer = server.answer(&head, &body);
                if let Some(pause) = pause {
                    server.inner().holding += 1;
                    sleep(pause).await;
                    server.inner().holding -= 1;
                }
                answer
            }
        });
        Client::new(service, "default")
    }

    /// Writes as somebody else; the n-th call is the operator's.
    pub fn apply(&self, object: &Value) {
        self.apply_as("kubectl", object);
    }

    /// The same, by somebody of this name.
    pub fn apply_as(&self, manager: &str, object: &Value) {
        let (kind, name) = (&object["kind"], object["metadata"]["name"].as_str().expect("a name"));
        let kind = self
            .inner()
            .kinds
            .iter()
            .find(|served| *kind == served.kind)
            .expect("a kind");
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let key = (kind.kind, namespace.to_owned(), name.to_owned());
        let write = Write::Apply {
            manager,
            intent: object,
            force: true,
        };
        let mut inner = self.inner();
        let before = inner.api.version;
        inner.api.write(&key, &write, false).expect("an apply");
        inner.tell(before);
    }

    /// Deletes as somebody else.
    pub fn delete(&self, kind: &'static str, name: &str) {
        let mut inner = self.inner();
        let before = inner.api.version;
        let key = (kind, "fleet".to_owned(), name.to_owned());
        inner.api.delete(&key, &Value::Null).expect("a deletion");
        inner.tell(before);
    }

    /// Changes an object as somebody else, by RFC 7396.
    pub fn merge(&self, kind: &'static str, name: &str, patch: &Value) {
        self.write(kind, name, &Write::Merge(patch));
    }

    /// Writes an object as somebody else.
    pub fn write(&self, kind: &'static str, name: &str, write: &Write<'_>) {
        let mut inner = self.inner();
        let before = inner.api.version;
        let key = (kind, "fleet".to_owned(), name.to_owned());
        inner.api.write(&key, write, false).expect("a change");
        inner.tell(before);
    }

    /// From now on the watches of a kind tell nothing new.
    pub fn stall(&self, kind: &'static str) {
        self.inner().stalled.insert(kind);
    }

    /// From now on nobody may list a kind, or only not in all namespaces at once.
    pub fn deny(&self, kind: &'static str, only_everywhere: bool) {
        self.inner().denied.insert(kind, only_everywhere);
    }

    /// From now on everybody may list a kind again.
    pub fn allow(&self, kind: &'static str) {
        self.inner().denied.remove(kind);
    }

    /// From now on these fields, named by JSON pointers, are dropped from what is written of a kind.
    pub fn forget_fields(&self, kind: &'static str, fields: &'static [&'static str]) {
        self.inner().unknown.insert(kind, fields);
    }

    /// An object; null where there is none.
    pub fn find(&self, kind: &'static str, name: &str) -> Value {
        let key = (kind, "fleet".to_owned(), name.to_owned());
        self.inner().api.get(&key).cloned().unwrap_or_default()
    }

    /// Nothing more is answered after the call of this number, nor refused, as if whoever calls had died; or everything is again.
    pub fn cut_off_after(&self, call: Option<usize>) {
        self.inner().last = call;
    }

    fn is_cut_off(&self) -> bool {
        let inner = self.inner();
        inner.last.is_some_and(|last| inner.calls >= last)
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.inner().calls
    }

    /// How many of them were about the objects of a kind that have this name, be it to read or to write them.
    pub fn calls_about(&self, kind: &'static str, name: &str) -> usize {
        let inner = self.inner();
        inner
            .asked_for
            .get(&(kind, name.to_owned()))
            .copied()
            .unwrap_or_default()
    }

    /// Stores an object of others as it is, with its managers.
    pub fn create(&self, kind: &'static str, object: &Value) {
        let mut inner = self.inner();
        let before = inner.api.version;
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        inner
            .api
            .create(&(kind, "fleet".to_owned(), name), object)
            .expect("a new object");
        inner.tell(before);
    }

    /// From now on a policy refuses requests for Secrets that have this in method, address or content type, and repeats the Secret.
    pub fn refuse_secrets(&self, part: &'static str) {
        self.inner().policy = Some(part);
    }

    /// From now on a policy refuses requests of this method for single objects of a kind as conflicts, in these words, or no longer does.
    pub fn refuse(&self, method: Method, kind: &'static str, words: Option<&'static str>) {
        let mut inner = self.inner();
        match words {
            Some(words) => inner.conflicts.insert((method, kind), words),
            None => inner.conflicts.remove(&(method, kind)),
        };
    }

    /// From now on what requests of this method for single objects of a kind ask for is done and told at once, and answered after this time.
    pub fn hold(&self, method: Method, kind: &'static str, time: Duration) {
        self.inner().held.insert((method, kind), time);
    }

    /// How many answers are held back now.
    pub fn holding(&self) -> usize {
        self.inner().holding
    }

    fn held(&self, head: &http::request::Parts, body: &[u8]) -> Option<Duration> {
        let asked = Asked::of(self.inner().kinds, head, body)
            .ok()
            .filter(|asked| !asked.name.is_empty())?;
        self.inner().held.get(&(asked.method, asked.scope.kind.kind)).copied()
    }

    /// Discovery leaves out this group from now on.
    pub fn hide(&self, group: Option<&'static str>) {
        self.inner().hidden = group;
    }

    /// Whether somebody watches the objects of a kind that have a label of this name; any objects where it is empty.
    pub fn is_watched(&self, kind: &str, label: &str) -> bool {
        let inner = self.inner();
        let mut open = inner.watches.iter().filter(|watch| !watch.events.is_closed());
        open.any(|watch| watch.scope.kind.kind == kind && watch.scope.selector.contains(label))
    }

    /// Whether somebody watches the one object of a kind that has this name.
    pub fn is_watched_by_name(&self, kind: &str, name: &str) -> bool {
        let inner = self.inner();
        let mut open = inner.watches.iter().filter(|watch| !watch.events.is_closed());
        open.any(|watch| watch.scope.kind.kind == kind && watch.scope.named.as_deref() == Some(name))
    }

    /// Everything that is stored.
    pub fn objects(&self) -> Vec<(Key, Value)> {
        self.inner().api.objects.clone().into_iter().collect()
    }

    /// The call that failed, if it came to it, and how many there were.
    pub fn struck(&self) -> (Option<String>, usize) {
        let inner = self.inner();
        (inner.struck.clone(), inner.calls)
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("the server did not panic")
    }

    fn answer(&self, head: &http::request::Parts, body: &[u8]) -> io::Result<Response<StreamBody<Frames>>> {
        let mut inner = self.inner();
        inner.calls += 1;
        let fault = inner.fault.filter(|(at, _)| *at == inner.calls).map(|(_, fault)| fault);
        if fault.is_some() {
            inner.struck = Some(format!("{} {}", head.method, head.uri));
        }
        let answer = if fault == Some(Fault::Refused) {
            Err(Refusal::new(503, "ServiceUnavailable", "not at the moment"))
        } else {
            inner.perform(head, body)
        };
        if fault == Some(Fault::AnswerLost) {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "the answer was lost"));
        }
        let (code, events) = match answer {
            Ok(Answer::Whole { code, body }) => (code, stream::iter([body]).boxed()),
            Ok(Answer::Watch(events)) => (200, events),
            Err(refusal) => (refusal.code, stream::iter([refused(&refusal)]).boxed()),
        };
        let frames = events.map(|event| Ok(Frame::data(Bytes::from(line(&event)))));
        let answer = Response::builder().status(code).body(StreamBody::new(frames.boxed()));
        answer.map_err(io::Error::other)
    }
}

/// An answer, or an event as API servers write it: its type comes first.
fn line(told: &Value) -> String {
    match (told.get("type"), told.get("object")) {
        (Some(kind), Some(object)) => format!("{{\"type\":{kind},\"object\":{object}}}\n"),
        _ => format!("{told}\n"),
    }
}

impl Inner {
    fn perform(&mut self, head: &http::request::Parts, body: &[u8]) -> Result<Answer, Refusal> {
        if let Some(answer) = self.says(head.uri.path()) {
            return Ok(answer);
        }
        let mut asked = Asked::of(self.kinds, head, body)?;
        let (kind, plural) = (asked.scope.kind.kind, asked.scope.kind.plural);
        *self.asked_for.entry((kind, asked.name.clone())).or_default() += 1;
        let denied = self.denied.get(kind);
        let is_denied = denied.is_some_and(|everywhere| !everywhere || asked.scope.namespace.is_empty());
        if asked.method == Method::GET && asked.name.is_empty() && is_denied {
            return Err(Refusal::new(403, "Forbidden", format!("nobody may list {kind}")));
        }
        let call = format!("{} {} {}", head.method, head.uri, asked.content_type);
        if kind == "Secret" && self.policy.is_some_and(|part| call.contains(part)) {
            let key = (kind, asked.scope.namespace.clone(), asked.name.clone());
            let stored = self.api.objects.get(&key);
            return Err(repeated(&stored.into_iter().chain([&asked.body]).collect::<Vec<_>>()));
        }
        let conflict = self.conflicts.get(&(asked.method.clone(), kind));
        if let Some(words) = conflict.filter(|_| !asked.name.is_empty()) {
            return Err(Refusal::new(409, "Conflict", *words));
        }
        for field in self.unknown.get(kind).copied().unwrap_or_default() {
            let (place, name) = field.rsplit_once('/').expect("a JSON pointer");
            let place = asked.body.pointer_mut(place).and_then(Value::as_object_mut);
            place.and_then(|place| place.remove(name));
        }
        self.perform_asked(asked).map_err(|refusal| Refusal {
            about: refusal.about.or(Some(plural)),
            ..refusal
        })
    }

    fn perform_asked(&mut self, asked: Asked) -> Result<Answer, Refusal> {
        let key = (asked.scope.kind.kind, asked.scope.namespace.clone(), asked.name.clone());
        let before = self.api.version;
        let dry_run = asked.parameter("dryRun") == Some("All");
        let creates =
            asked.method == Method::POST || asked.method == Method::PATCH && !self.api.objects.contains_key(&key);
        let body = match (&asked.method, asked.name.is_empty()) {
            (&Method::GET, true) if asked.parameter("watch").is_some() => return Ok(self.watch(asked)),
            (&Method::GET, true) => self.list(&asked),
            (&Method::GET, false) => asked.scope.shown(self.api.get(&key)?),
            (&Method::POST, true) => {
                let name = asked.body["metadata"]["name"].as_str().unwrap_or_default();
                self.api.create(&(key.0, key.1, name.to_owned()), &asked.body)?
            }
            (&Method::DELETE, false) => match self.api.delete(&key, &asked.body)? {
                Some(object) => object,
                None => {
                    json!({ "kind": "Status", "apiVersion": "v1", "status": "Success", "details": { "kind": asked.scope.kind.plural } })
                }
            },
            (&Method::PUT | &Method::PATCH, false) => {
                let written = self.api.write(&key, &asked.write()?, dry_run)?;
                asked.scope.shown(&written)
            }
            _ => return Err(Refusal::new(405, "MethodNotAllowed", "not allowed")),
        };
        self.tell(before);
        Ok(Answer::Whole {
            code: if creates { 201 } else { 200 },
            body,
        })
    }

    /// A page says with which object the next one goes on.
    fn list(&self, asked: &Asked) -> Value {
        let scope = &asked.scope;
        let limit = asked.parameter("limit").and_then(|limit| limit.parse().ok());
        let from = asked.parameter("continue");
        let place = |key: &Key| format!("{}/{}", key.1, key.2);
        let mut objects = self
            .api
            .objects
            .iter()
            .filter(|(key, object)| scope.has(key, object) && from.is_none_or(|from| *place(key) >= *from));
        let items = objects.by_ref().take(limit.unwrap_or(usize::MAX));
        let items: Vec<Value> = items.map(|(_, object)| scope.shown(object)).collect();
        let next = objects.next().map(|(key, _)| place(key));
        let (version, kind) = if scope.metadata_only {
            ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned())
        } else {
            (scope.kind.api_version(), format!("{}List", scope.kind.kind))
        };
        let metadata = json!({ "resourceVersion": self.api.version.to_string(), "continue": next.unwrap_or_default() });
        json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "items": items })
    }

    fn watch(&mut self, asked: Asked) -> Answer {
        let since = asked
            .parameter("resourceVersion")
            .and_then(|version| version.parse().ok());
        let since: u64 = since.unwrap_or_default();
        if (1..OLDEST).contains(&since) {
            let expired = refused(&Refusal::new(410, "Expired", "too old resource version"));
            return Answer::Watch(stream::iter([json!({ "type": "ERROR", "object": expired })]).boxed());
        }
        let missed = self.api.history.iter().filter(|happened| happened.version > since);
        let told: Vec<Value> = missed.filter_map(|happened| asked.scope.event(happened)).collect();
        let (events, coming) = unbounded();
        self.watches.push(Watch {
            scope: asked.scope,
            events,
        });
        Answer::Watch(stream::iter(told).chain(coming).boxed())
    }

    /// Tells the watches what happened since.
    fn tell(&mut self, since: u64) {
        let news = self
            .api
            .history
            .iter()
            .rev()
            .take_while(|happened| happened.version > since);
        let news: Vec<&Happened> = news.collect();
        self.watches.retain(|watch| {
            if self.stalled.contains(watch.scope.kind.kind) {
                return true;
            }
            let mut events = news.iter().rev().filter_map(|happened| watch.scope.event(happened));
            events.all(|event| watch.events.unbounded_send(event).is_ok()) && !watch.events.is_closed()
        });
    }
}

impl Served {
    fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}
