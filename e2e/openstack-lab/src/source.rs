//! A web server that image files come from, with the manners of good and bad ones: ranges and tags, answers that break, end early, stand still, or are
//! another thing than was asked for. It knows nothing of clouds, and does by itself only what it was told.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256, Sha512};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use crate::client::{Body, whole};

/// What goes out at once.
const PIECE: usize = 64 * 1024;
/// What is found where nothing is.
const PAGE: &str = "<!DOCTYPE html><html><head><title>404</title></head><body><h1>Not Found</h1></body></html>";

/// A file, and how it is given.
#[derive(Clone, Debug)]
pub struct Article {
    bytes: Bytes,
    kind: &'static str,
    ranges: bool,
    breaks_every: Option<usize>,
    ends_at: Option<usize>,
    held_at: Option<usize>,
    refused_to: Option<&'static str>,
}

impl Article {
    /// These bytes, as a good server gives them.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            kind: "application/octet-stream",
            ranges: true,
            breaks_every: None,
            ends_at: None,
            held_at: None,
            refused_to: None,
        }
    }

    /// A page, with status 200, as of a server that asks people to log in.
    pub fn page(text: &str) -> Self {
        Self {
            kind: "text/html",
            ..Self::of(text.to_owned())
        }
    }

    /// The same without ranges: whoever wants a part gets everything.
    #[must_use]
    pub fn without_ranges(self) -> Self {
        Self { ranges: false, ..self }
    }

    /// The same, where every answer breaks after so many bytes.
    #[must_use]
    pub fn breaking_every(self, bytes: usize) -> Self {
        Self {
            breaks_every: Some(bytes),
            ..self
        }
    }

    /// The same, of which there is nothing behind so many bytes though its length says so.
    #[must_use]
    pub fn ending_at(self, byte: usize) -> Self {
        Self {
            ends_at: Some(byte),
            ..self
        }
    }

    /// The same, which stands still at this byte until the server is told to [let go](Source::let_go).
    #[must_use]
    pub fn held_at(self, byte: usize) -> Self {
        Self {
            held_at: Some(byte),
            ..self
        }
    }

    /// The same, which is forbidden to programs whose name has this part, as by servers that want to be read by people.
    #[must_use]
    pub fn refused_to(self, agent: &'static str) -> Self {
        Self {
            refused_to: Some(agent),
            ..self
        }
    }

    /// Follows from the bytes, as a good one does.
    fn tag(&self) -> String {
        format!("\"{}\"", &hex::encode(Sha256::digest(&self.bytes))[..16])
    }

    fn answer(&self, request: &Request<Incoming>, held: watch::Receiver<bool>) -> Response<Body> {
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let agent = text(header::USER_AGENT).unwrap_or_default();
        if self.refused_to.is_some_and(|part| agent.contains(part)) {
            return status(StatusCode::FORBIDDEN, "not for programs");
        }
        let tag = self.tag();
        let is_same = text(header::IF_RANGE).is_none_or(|asked| asked == tag);
        let from = text(header::RANGE).filter(|_| self.ranges && is_same).and_then(begin);
        let (from, is_part) = from.map_or((0, false), |from| (from, true));
        let length = self.bytes.len();
        if from > length {
            return status(StatusCode::RANGE_NOT_SATISFIABLE, "");
        }
        let mut answer = Response::new(self.body(from, held));
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CONTENT_LENGTH, (length - from).into());
        headers.extend(HeaderValue::from_str(&tag).map(|tag| (header::ETAG, tag)));
        if self.ranges {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        if is_part {
            let range = format!("bytes {from}-{}/{length}", length.saturating_sub(1));
            headers.extend(HeaderValue::from_str(&range).map(|range| (header::CONTENT_RANGE, range)));
            *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        answer
    }

    fn body(&self, from: usize, held: watch::Receiver<bool>) -> Body {
        let length = self.bytes.len();
        let broken = self.breaks_every.map_or(length, |bytes| from.saturating_add(bytes));
        let end = length.min(broken).min(self.ends_at.unwrap_or(length)).max(from);
        let stop = self.held_at.unwrap_or(length).clamp(from, end);
        let (before, behind) = (self.bytes.slice(from..stop), self.bytes.slice(stop..end));
        let waiting = stream::once(async move {
            let mut held = held;
            if stop < end {
                // The server goes away with the test.
                let _ = held.wait_for(|held| !held).await;
            }
            stream::iter(pieces_of(&behind))
        });
        let cut = stream::iter((end < length).then_some(())).then(|()| async {
            // What was given before leaves while this waits for its turn.
            tokio::task::yield_now().await;
            Err(io::ErrorKind::ConnectionAborted.into())
        });
        let all = stream::iter(pieces_of(&before))
            .chain(waiting.flatten())
            .map(Ok)
            .chain(cut);
        StreamBody::new(all.map(|piece| piece.map(Frame::data))).boxed_unsync()
    }
}

fn pieces_of(bytes: &Bytes) -> Vec<Bytes> {
    let begins = (0..bytes.len()).step_by(PIECE);
    begins
        .map(|begin| bytes.slice(begin..bytes.len().min(begin + PIECE)))
        .collect()
}

/// Of `bytes=5-`. What else may be asked for is answered as if nobody had.
fn begin(range: &str) -> Option<usize> {
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

fn status(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(whole(text));
    *answer.status_mut() = status;
    answer
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The path.
    pub path: String,
    /// The byte that was asked for to begin with, where a part was.
    pub from: Option<usize>,
    /// Whether more than the headers was asked for.
    pub reads: bool,
}

/// A running server. Dropped, it closes every connection.
#[derive(Debug)]
pub struct Source {
    address: SocketAddr,
    state: Arc<State>,
    held: watch::Sender<bool>,
    accepting: AbortHandle,
}

#[derive(Debug, Default)]
struct State {
    articles: Mutex<BTreeMap<String, Article>>,
    visits: Mutex<Vec<Visit>>,
}

impl Source {
    /// Starts one that has nothing.
    pub async fn start() -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST).await
    }

    /// The same at another address of this machine, for those who do not reach its loopback.
    pub async fn start_at(address: Ipv4Addr) -> Result<Self> {
        let listener = TcpListener::bind((address, 0)).await;
        let listener = listener.context("failed to open the port of a source")?;
        let address = listener.local_addr().context("failed to read the port of a source")?;
        let state = Arc::<State>::default();
        let held = watch::Sender::new(true);
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state), held.subscribe()));
        Ok(Self {
            address,
            state,
            held,
            accepting: accepting.abort_handle(),
        })
    }

    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Has this at this path from now on. Answers that are on their way stay what they are.
    pub fn put(&self, path: &str, article: Article) {
        lock(&self.state.articles).insert(path.to_owned(), article);
    }

    /// Has nothing there any more.
    pub fn take_away(&self, path: &str) {
        lock(&self.state.articles).remove(path);
    }

    /// Lets go of what stands still; from now on nothing does.
    pub fn let_go(&self) {
        self.held.send_replace(false);
    }

    /// What was asked for so far, in order.
    pub fn visits(&self) -> Vec<Visit> {
        lock(&self.state.visits).clone()
    }

    /// How often somebody began to read this path.
    pub fn reads(&self, path: &str) -> usize {
        let is_read = |visit: &&Visit| visit.reads && visit.path == path;
        self.visits().iter().filter(is_read).count()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A digest as it is written down: `sha256:` and 64 digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// The digest that a cloud makes, without a word before it.
pub fn sha512(bytes: &[u8]) -> String {
    hex::encode(Sha512::digest(bytes))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, state: Arc<State>, held: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        while connections.try_join_next().is_some() {}
        let (state, held) = (Arc::clone(&state), held.clone());
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let answer = state.answer(&request, held.clone());
                async move { Ok::<_, Infallible>(answer) }
            });
            // Whoever hangs up has what he wanted.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

impl State {
    fn answer(&self, request: &Request<Incoming>, held: watch::Receiver<bool>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let range = request.headers().get(header::RANGE);
        lock(&self.visits).push(Visit {
            from: range.and_then(|range| begin(range.to_str().ok()?)),
            reads: request.method() != http::Method::HEAD,
            path: path.clone(),
        });
        let article = lock(&self.articles).get(&path).cloned();
        if let Some(article) = article {
            return article.answer(request, held);
        }
        let mut answer = status(StatusCode::NOT_FOUND, PAGE);
        let kind = HeaderValue::from_static("text/html");
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        answer
    }
}
