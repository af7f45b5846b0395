//! Servers of releases that a test plays: plain HTTP on a loopback port, with a log of what they were asked.

mod stop;
mod storm;

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use jiff::Timestamp;
use openstack_lab::{
    client,
    listening::{Listening, Port},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub use self::{
    stop::{Arrest, Moment, Stopped},
    storm::{Struck, Trouble},
};
use self::{
    stop::{Sent, Stops, Verdict},
    storm::Storm,
};

/// What a server says to a question.
pub type Answer = Response<Bytes>;

/// One question, and what came of it.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Path and query.
    pub target: String,
    /// The token or password, as it was sent.
    pub authorization: Option<String>,
    /// The status of the answer.
    pub status: StatusCode,
    /// When it was asked.
    pub at: Timestamp,
}

type Behaviour = dyn Fn(&Request<Bytes>) -> Answer + Send + Sync;

type Question = dyn Fn(&str) -> bool + Send + Sync;

struct State {
    behaviour: Box<Behaviour>,
    /// Which targets get no answer.
    silence: Mutex<Box<Question>>,
    /// Questions that wait for one.
    unanswered: AtomicUsize,
    stops: Arc<Stops>,
    storm: Storm,
    visits: Mutex<Vec<Visit>>,
}

/// A running server. Dropped, it closes every connection.
pub struct WebServer {
    state: Arc<State>,
    listening: Listening,
}

impl WebServer {
    /// Starts one that answers so.
    pub async fn start(behaviour: impl Fn(&Request<Bytes>) -> Answer + Send + Sync + 'static) -> Result<Self> {
        let state = Arc::new(State {
            behaviour: Box::new(behaviour),
            silence: Mutex::new(Box::new(|_| false)),
            unanswered: AtomicUsize::new(0),
            stops: Arc::default(),
            storm: Storm::default(),
            visits: Mutex::default(),
        });
        let serving = Arc::clone(&state);
        let answer = move |request| serve(Arc::clone(&serving), request);
        let listening = Port::open().await?.answer(answer);
        Ok(Self { state, listening })
    }

    /// Its URL by a name of this machine, without a slash at the end.
    pub fn url(&self, host: &str) -> String {
        format!("http://{host}:{}", self.listening.port())
    }

    /// What it was asked so far.
    pub fn visits(&self) -> Vec<Visit> {
        lock(&self.state.visits).clone()
    }

    /// From now on whoever asks for a target (path and query) that is meant waits for an answer until he hangs up.
    pub fn keep_silent(&self, is_meant: impl Fn(&str) -> bool + Send + Sync + 'static) {
        *lock(&self.state.silence) = Box::new(is_meant);
    }

    /// Arms the server for the first question that is meant, by its number since the start, counted from 1, and its target (path and query).
    /// The later of two calls replaces the earlier.
    pub fn stop_at(&self, moment: Moment, is_meant: impl Fn(usize, &str) -> bool + Send + 'static) -> Arrest {
        self.state.stops.arm(moment, Box::new(is_meant))
    }

    /// From now on questions meet what this seed says of this part of the journey, counted anew. It ends by itself.
    pub fn set_storm(&self, seed: u64, phase: u64) {
        self.state.storm.begin(Some((seed, phase)));
    }

    /// The storm is over.
    pub fn calm(&self) {
        self.state.storm.begin(None);
    }

    /// What storms did so far, in order.
    pub fn struck(&self) -> Vec<Struck> {
        self.state.storm.struck()
    }

    /// How many questions wait for an answer now.
    pub fn unanswered(&self) -> usize {
        self.state.unanswered.load(Ordering::SeqCst)
    }

    /// Forgets what it was asked.
    pub fn forget_visits(&self) {
        lock(&self.state.visits).clear();
    }
}

impl fmt::Debug for WebServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WebServer")
            .field("listening", &self.listening)
            .finish_non_exhaustive()
    }
}

async fn serve(state: Arc<State>, request: Request<Incoming>) -> io::Result<Response<Sent>> {
    let target = request.uri().to_string();
    let verdict = state.stops.judge(&target);
    state.silence(&target).await;
    let request = whole(request).await?;
    let pending = match verdict {
        Verdict::Answer => None,
        Verdict::Hold(hold) => {
            hold.over().await?;
            None
        }
        Verdict::Stop(pending) if pending.moment == Moment::BeforeAnswer => {
            pending.stop().over().await?;
            None
        }
        Verdict::Stop(pending) => Some(pending),
    };
    let answer = state.answer(&request);
    match (pending, state.storm.trouble(&target)) {
        (Some(pending), _) => Ok(pending.within(answer)),
        (None, Some(trouble)) => trouble.instead_of(answer).await,
        (None, None) => Ok(answer.map(client::whole)),
    }
}

/// A question with its body, which nobody sends here by gigabytes.
async fn whole(request: Request<Incoming>) -> io::Result<Request<Bytes>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?;
    Ok(Request::from_parts(parts, body.to_bytes()))
}

/// A question that waits for an answer.
struct Unanswered<'a>(&'a AtomicUsize);

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl State {
    /// Ends only for who is to be answered.
    async fn silence(&self, target: &str) {
        let is_meant = (lock(&self.silence))(target);
        if is_meant {
            self.unanswered.fetch_add(1, Ordering::SeqCst);
            let _until_dropped = Unanswered(&self.unanswered);
            std::future::pending::<()>().await;
        }
    }

    fn answer(&self, request: &Request<Bytes>) -> Answer {
        let answer = (self.behaviour)(request);
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        lock(&self.visits).push(Visit {
            target: request.uri().to_string(),
            authorization: text(header::AUTHORIZATION).map(str::to_owned),
            status: answer.status(),
            at: Timestamp::now(),
        });
        answer
    }
}

/// An answer with these headers.
pub(crate) fn answer(status: StatusCode, headers: &[(&str, String)], body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    for (name, value) in headers {
        let parsed = (name.parse::<header::HeaderName>(), value.parse());
        if let (Ok(name), Ok(value)) = parsed {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The same with an entity tag of its bytes, or 304 for whoever has them already.
pub(crate) fn conditional(request: &Request<Bytes>, headers: &[(&str, String)], body: impl Into<Bytes>) -> Answer {
    let body = body.into();
    let etag = format!("W/\"{}\"", sha256(&body));
    let known = request.headers().get(header::IF_NONE_MATCH);
    let headers = [headers, &[("etag", etag.clone())]].concat();
    if known.is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return answer(StatusCode::NOT_MODIFIED, &headers, Bytes::new());
    }
    answer(StatusCode::OK, &headers, body)
}

/// The digest of these bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The files of a folder by name.
pub(crate) fn files_of(folder: &Path) -> Result<BTreeMap<String, Bytes>> {
    let what = || format!("failed to read {}", folder.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(what)? {
        let entry = entry.with_context(what)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read(entry.path()).with_context(what)?.into());
    }
    Ok(files)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A web server with an index of releases.
#[derive(Debug)]
pub struct IndexServer {
    /// What was asked of it.
    pub server: WebServer,
    releases: Arc<Mutex<BTreeMap<String, Published>>>,
}

/// The files of a release, and what the index says of them: found out once, because whoever asks for a file would wait for all digests of an index.
#[derive(Debug)]
struct Published {
    files: BTreeMap<String, Bytes>,
    entry: Value,
}

impl IndexServer {
    /// Starts one without releases.
    pub async fn start() -> Result<Self> {
        let releases = Arc::<Mutex<BTreeMap<String, Published>>>::default();
        let shown = Arc::clone(&releases);
        let server = WebServer::start(move |request| {
            let releases = lock(&shown);
            let mut path = request.uri().path().split('/').skip(2);
            match (path.next(), path.next()) {
                (Some("index.json"), None) => conditional(request, &[], index(&releases).to_string()),
                (Some(tag), Some(file)) => match releases.get(tag).and_then(|release| release.files.get(file)) {
                    Some(content) => answer(StatusCode::OK, &[], content.clone()),
                    None => answer(StatusCode::NOT_FOUND, &[], "no such file"),
                },
                _ => answer(StatusCode::NOT_FOUND, &[], "no such page"),
            }
        })
        .await?;
        Ok(Self { server, releases })
    }

    /// Puts the files of a folder there and into the index, under the name of the folder.
    pub fn publish(&self, release: &Path) -> Result<()> {
        let tag = release.file_name().context("a release has a name")?;
        let (tag, files) = (tag.to_string_lossy().into_owned(), files_of(release)?);
        let entry = entry(&tag, &files);
        lock(&self.releases).insert(tag, Published { files, entry });
        Ok(())
    }

    /// Takes a release away, files and all.
    pub fn withdraw(&self, tag: &str) {
        lock(&self.releases).remove(tag);
    }

    /// What a stack names.
    pub fn source(&self) -> Value {
        json!({ "http": { "url": format!("{}/stacks/", self.server.url("127.0.0.1")) } })
    }
}

fn index(releases: &BTreeMap<String, Published>) -> Value {
    let releases: Vec<&Value> = releases.values().map(|release| &release.entry).collect();
    json!({ "apiVersion": "index.clusterstack.x-k8s.io/v1alpha1", "releases": releases })
}

fn entry(tag: &str, files: &BTreeMap<String, Bytes>) -> Value {
    let file =
        |(name, content): (&String, &Bytes)| json!({ "name": name, "size": content.len(), "sha256": sha256(content) });
    let files: Vec<Value> = files.iter().map(file).collect();
    json!({ "tag": tag, "files": files })
}
