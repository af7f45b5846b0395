//! A web server that image files come from, with the manners of good and bad ones: ranges and tags, answers that break, end early, stand still, or are
//! another thing than was asked for. It knows nothing of clouds, and does by itself only what it was told.

use std::{
    collections::BTreeMap,
    future, io,
    net::Ipv4Addr,
    ops::Range,
    sync::{Arc, Mutex},
};

use anyhow::Result;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use sha2::{Digest, Sha256, Sha512};
use tokio::sync::watch;

use crate::{
    client::{Body, whole},
    file::{self, File},
    listening::{Listening, Port},
    lock,
};

/// What goes out at once.
const PIECE: usize = 64 * 1024;
/// What is found where nothing is.
const PAGE: &str = "<!DOCTYPE html><html><head><title>404</title></head><body><h1>Not Found</h1></body></html>";

/// A file, and how it is given.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "habits of a server, each of which goes with each other"
)]
pub struct Article {
    bytes: Bytes,
    kind: &'static str,
    ranges: bool,
    measured: bool,
    tagged: bool,
    breaks_every: Option<usize>,
    ends_at: Option<usize>,
    announces: Option<usize>,
    held_at: Option<usize>,
    refused_to: Option<&'static str>,
    otherwise: Option<(&'static str, Box<Self>)>,
    echoes: bool,
}

impl Article {
    /// These bytes, as a good server gives them.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            kind: "application/octet-stream",
            ranges: true,
            measured: true,
            tagged: true,
            breaks_every: None,
            ends_at: None,
            announces: None,
            held_at: None,
            refused_to: None,
            otherwise: None,
            echoes: false,
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

    /// The same, of which whoever asks for the headers is told that it has so many bytes, and whoever reads it is not told.
    #[must_use]
    pub fn announcing(self, bytes: usize) -> Self {
        Self {
            announces: Some(bytes),
            ..self
        }
    }

    /// The same, of which nobody is told how many bytes it has.
    #[must_use]
    pub fn without_a_length(self) -> Self {
        Self {
            measured: false,
            ..self
        }
    }

    /// The same, by which nobody knows it again: neither its entity tag nor the time of its last change is told.
    #[must_use]
    pub fn without_a_tag(self) -> Self {
        Self { tagged: false, ..self }
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

    /// The same, instead of which programs whose name has this part get another one, as by somebody on the way to them.
    #[must_use]
    pub fn otherwise_to(self, agent: &'static str, other: Self) -> Self {
        Self {
            otherwise: Some((agent, Box::new(other))),
            ..self
        }
    }

    /// The same, which nobody is given who wants to read it, in words that repeat who he said that he is.
    #[must_use]
    pub fn echoing(self) -> Self {
        Self { echoes: true, ..self }
    }

    /// Follows from the bytes, as a good one does.
    fn tag(&self) -> String {
        format!("\"{}\"", &hex::encode(Sha256::digest(&self.bytes))[..16])
    }

    fn answer(&self, request: &Request<Incoming>, held: watch::Receiver<bool>) -> Response<Body> {
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        if self.refused_to.is_some_and(|part| agent.contains(part)) {
            return status(StatusCode::FORBIDDEN, "not for programs");
        }
        if let Some((_, other)) = self.otherwise.as_ref().filter(|(part, _)| agent.contains(part)) {
            return other.answer(request, held);
        }
        if self.echoes && request.method() != Method::HEAD {
            let said = request.headers().get(header::AUTHORIZATION);
            let said = said.and_then(|said| said.to_str().ok()).unwrap_or("nothing");
            return status(StatusCode::FORBIDDEN, format!("you said {said}"));
        }
        let tag = self.tag();
        let file = File {
            kind: self.kind,
            tag: &tag,
            length: self.bytes.len(),
            ranges: self.ranges,
        };
        let mut answer = file.answer(request.headers(), |bytes| self.body(bytes, held));
        if !self.measured {
            answer.headers_mut().remove(header::CONTENT_LENGTH);
        }
        if !self.tagged {
            answer.headers_mut().remove(header::ETAG);
        }
        if let Some(announced) = self.announces {
            let headers = answer.headers_mut();
            headers.remove(header::CONTENT_LENGTH);
            if request.method() == Method::HEAD {
                headers.insert(header::CONTENT_LENGTH, announced.into());
            }
        }
        answer
    }

    fn body(&self, asked: Range<usize>, held: watch::Receiver<bool>) -> Body {
        let from = asked.start;
        let broken = self.breaks_every.map_or(asked.end, |bytes| from.saturating_add(bytes));
        let end = asked.end.min(broken).min(self.ends_at.unwrap_or(asked.end)).max(from);
        let stop = self.held_at.unwrap_or(end).clamp(from, end);
        let (before, behind) = (self.bytes.slice(from..stop), self.bytes.slice(stop..end));
        let waiting = stream::once(async move {
            let mut held = held;
            if stop < end {
                // The server goes away with the test.
                let _ = held.wait_for(|held| !held).await;
            }
            stream::iter(pieces_of(&behind))
        });
        let cut = stream::iter((end < asked.end).then_some(())).then(|()| async {
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

fn status(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
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
    state: Arc<State>,
    held: watch::Sender<bool>,
    listening: Listening,
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
        let port = Port::open_at(address).await?;
        let state = Arc::<State>::default();
        let held = watch::Sender::new(true);
        let (answering, waiting) = (Arc::clone(&state), held.subscribe());
        let listening = port.answer(move |request| future::ready(Ok(answering.answer(&request, waiting.clone()))));
        Ok(Self { state, held, listening })
    }

    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        self.listening.url(path)
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

/// A digest as it is written down: `sha256:` and 64 digits.
pub fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// The digest that a cloud makes, without a word before it.
pub fn sha512(bytes: &[u8]) -> String {
    hex::encode(Sha512::digest(bytes))
}

impl State {
    fn answer(&self, request: &Request<Incoming>, held: watch::Receiver<bool>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let range = request.headers().get(header::RANGE);
        lock(&self.visits).push(Visit {
            from: range.and_then(|range| Some(file::part(range.to_str().ok()?)?.start)),
            reads: request.method() != Method::HEAD,
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
