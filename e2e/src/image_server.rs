//! A web server with images: in parts where it is asked for parts, as fast as it is told, and breaking off when it is told. It says what it was asked.

use std::{
    collections::BTreeMap,
    fmt, future, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use openstack_lab::{
    client::{self, whole},
    file::File,
    listening::{Listening, Port},
};
use tokio::{sync::watch, time::sleep};

use crate::web::{lock, sha256};

/// Bytes of a piece, where nothing asks for smaller ones.
const PIECE: usize = 256 << 10;
/// Where the rate is bounded, so many pieces in a second or more.
const PIECES_A_SECOND: u32 = 20;
/// Bytes of the largest of these.
const SLOW_PIECE: u32 = 1 << 20;

/// How bytes are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// In a second; as fast as can be when absent.
    pub bytes_per_second: Option<u32>,
    /// Nothing from this byte on is given until the pace is another.
    pub hold_at: Option<usize>,
    /// Each answer breaks off after so many bytes, unless the image ends before.
    pub break_every: Option<usize>,
    /// Whoever asks has his connection closed without an answer.
    pub away: bool,
}

/// A body that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Of which image.
    pub path: String,
    /// Its first byte.
    pub from: usize,
}

/// An image, and how it is told from others.
struct Image {
    bytes: Bytes,
    tag: String,
}

struct State {
    images: BTreeMap<String, Image>,
    pace: watch::Sender<Pace>,
    /// How often everything was cut.
    cuts: watch::Sender<usize>,
    giving: AtomicUsize,
    given: Mutex<Vec<Given>>,
}

/// A running server. Dropped, it closes every connection.
pub struct ImageServer {
    state: Arc<State>,
    listening: Listening,
}

impl ImageServer {
    /// Starts one that has these images, each at a path that begins with `/`.
    pub async fn start(images: impl IntoIterator<Item = (String, Bytes)>) -> Result<Self> {
        let images = images.into_iter().map(|(path, bytes)| {
            let tag = format!("\"{}\"", &sha256(&bytes)[..16]);
            (path, Image { bytes, tag })
        });
        let state = Arc::new(State {
            images: images.collect(),
            pace: watch::Sender::new(Pace::default()),
            cuts: watch::Sender::new(0),
            giving: AtomicUsize::new(0),
            given: Mutex::default(),
        });
        let answering = Arc::clone(&state);
        let answer = move |request| future::ready(answer(&answering, &request));
        let listening = Port::open().await?.answer(answer);
        Ok(Self { state, listening })
    }

    /// The URL of what is at a path.
    pub fn url(&self, path: &str) -> String {
        self.listening.url(path)
    }

    /// From now on bytes are given so, also of what was asked for before.
    pub fn set_pace(&self, pace: Pace) {
        self.state.pace.send_replace(pace);
    }

    /// Breaks off everything that is being given.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Bodies that somebody waits for the rest of.
    pub fn giving(&self) -> usize {
        self.state.giving.load(Ordering::SeqCst)
    }

    /// All bodies that were begun, in order.
    pub fn given(&self) -> Vec<Given> {
        lock(&self.state.given).clone()
    }
}

impl fmt::Debug for ImageServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ImageServer")
            .field("listening", &self.listening)
            .finish_non_exhaustive()
    }
}

/// An error closes the connection.
fn answer(state: &Arc<State>, request: &Request<Incoming>) -> io::Result<Response<client::Body>> {
    if state.pace.borrow().away {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    let path = request.uri().path();
    let Some(image) = state.images.get(path) else {
        let mut missing = Response::new(whole(""));
        *missing.status_mut() = StatusCode::NOT_FOUND;
        return Ok(missing);
    };
    let file = File {
        kind: "application/octet-stream",
        tag: &image.tag,
        length: image.bytes.len(),
        ranges: true,
    };
    Ok(file.answer(request.headers(), |bytes| {
        if request.method() == Method::HEAD {
            return whole("");
        }
        let from = bytes.start;
        let path = path.to_owned();
        lock(&state.given).push(Given { path, from });
        Body::new(state, image.bytes.slice(bytes), from).stream()
    }))
}

/// How many bytes come next at this pace, and after which pause.
fn piece(pace: &Pace) -> (usize, Duration) {
    let Some(rate) = pace.bytes_per_second else {
        return (PIECE, Duration::ZERO);
    };
    let piece = (rate / PIECES_A_SECOND).clamp(1, SLOW_PIECE);
    let pause = Duration::from_secs(1) * piece / rate.max(1);
    (usize::try_from(piece).unwrap_or(PIECE), pause)
}

/// What of an answer was not given yet.
struct Body {
    state: Arc<State>,
    rest: Bytes,
    /// Where the rest begins in the image.
    at: usize,
    began: usize,
    pace: watch::Receiver<Pace>,
    cuts: watch::Receiver<usize>,
}

impl Body {
    fn new(state: &Arc<State>, rest: Bytes, at: usize) -> Self {
        state.giving.fetch_add(1, Ordering::SeqCst);
        Self {
            state: Arc::clone(state),
            rest,
            at,
            began: at,
            pace: state.pace.subscribe(),
            cuts: state.cuts.subscribe(),
        }
    }

    fn stream(self) -> client::Body {
        let pieces = stream::unfold(Some(self), |body| async {
            let mut body = body?;
            match body.next().await {
                Ok(piece) => Some((Ok(Frame::data(piece?)), Some(body))),
                Err(error) => Some((Err(error), None)),
            }
        });
        StreamBody::new(pieces).boxed_unsync()
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        loop {
            let pace = *self.pace.borrow_and_update();
            let given = self.at - self.began;
            let (piece, pause) = piece(&pace);
            let mut most = piece.min(self.rest.len());
            if let Some(hold) = pace.hold_at {
                most = most.min(hold.saturating_sub(self.at));
            }
            if let Some(every) = pace.break_every {
                if given >= every {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                most = most.min(every - given);
            }
            tokio::select! {
                _ = self.cuts.changed() => return Err(io::ErrorKind::ConnectionReset.into()),
                _ = self.pace.changed(), if most == 0 => {}
                () = sleep(pause), if most > 0 => {
                    self.at += most;
                    return Ok(Some(self.rest.split_to(most)));
                }
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.state.giving.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use openstack_lab::client::{Client, Reply};

    use super::*;

    const PATH: &str = "/disk";

    async fn server() -> Result<ImageServer> {
        ImageServer::start([(PATH.to_owned(), Bytes::from_static(b"0123456789"))]).await
    }

    async fn ask(server: &ImageServer, headers: &[(&str, &str)]) -> Result<Reply> {
        let url = server.url(PATH).parse()?;
        Client::new(None)?.send(Method::GET, &url, headers, whole("")).await
    }

    #[tokio::test]
    async fn a_part_is_given_of_the_file_that_is_meant_and_else_all_of_it() -> Result<()> {
        let server = server().await?;
        let all = ask(&server, &[]).await?;
        let tag = all.header("etag").context("no tag")?;
        assert_eq!((all.status, &all.body[..]), (StatusCode::OK, &b"0123456789"[..]));
        let part = ask(&server, &[("range", "bytes=7-"), ("if-range", tag)]).await?;
        assert_eq!(
            (part.status, &part.body[..]),
            (StatusCode::PARTIAL_CONTENT, &b"789"[..])
        );
        assert_eq!(part.header("content-range"), Some("bytes 7-9/10"));
        let other = ask(&server, &[("range", "bytes=7-"), ("if-range", "\"other\"")]).await?;
        assert_eq!((other.status, other.body.len()), (StatusCode::OK, 10));
        let from: Vec<usize> = server.given().iter().map(|given| given.from).collect();
        assert_eq!(from, [0, 7, 0]);
        Ok(())
    }

    #[tokio::test]
    async fn answers_break_off_where_they_are_told_and_whoever_is_away_gives_none() -> Result<()> {
        let server = server().await?;
        server.set_pace(Pace {
            break_every: Some(4),
            ..Pace::default()
        });
        assert!(ask(&server, &[]).await.is_err());
        let rest = ask(&server, &[("range", "bytes=8-")]).await?;
        assert_eq!(rest.body.len(), 2, "an image that ends before is whole");
        server.set_pace(Pace {
            away: true,
            ..Pace::default()
        });
        assert!(ask(&server, &[]).await.is_err());
        assert_eq!(server.given().len(), 2);
        Ok(())
    }

    #[tokio::test]
    async fn what_is_held_back_waits_until_it_is_cut_or_given() -> Result<()> {
        let server = server().await?;
        let held = Pace {
            hold_at: Some(5),
            ..Pace::default()
        };
        let is_held = async || {
            crate::eventually(Duration::from_secs(10), "a body to be held", async || {
                anyhow::ensure!(server.giving() == 1, "{} are given", server.giving());
                Ok::<_, anyhow::Error>(())
            })
            .await
        };
        server.set_pace(held);
        let cut = async {
            is_held().await?;
            server.cut();
            Ok::<_, anyhow::Error>(())
        };
        let (answer, done) = tokio::join!(ask(&server, &[]), cut);
        done?;
        assert!(answer.is_err());
        let freed = async {
            is_held().await?;
            server.set_pace(Pace::default());
            Ok::<_, anyhow::Error>(())
        };
        let (answer, done) = tokio::join!(ask(&server, &[]), freed);
        done?;
        assert_eq!(answer?.body.len(), 10);
        Ok(())
    }
}
