//! One request on its way to a service, and the answer on its way back. A connection for each, closed when either end hangs up.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future, future::BoxFuture, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Body as HttpBody, Frame, Incoming, SizeHint},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};

use super::{
    Behind, State,
    strike::{Point, Stop},
    trouble::{Trouble, answer},
};
use crate::{
    client::{Body, whole},
    lock,
};

/// What belongs to one connection.
const HOP: [HeaderName; 3] = [header::CONNECTION, header::HOST, header::TRANSFER_ENCODING];

/// The work of a connection, which ends when nobody needs it.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What came of a request.
enum Outcome {
    /// An answer; the connection lasts as long.
    Answered(Response<Incoming>, Connection),
    /// No more of it may pass. What is here keeps it open.
    Cut(Box<dyn Send>),
}

/// How much of a request's body passes.
#[derive(Clone, Copy, Default)]
struct Limit {
    /// So many bytes; all where there is none.
    bytes: Option<u64>,
    /// Whether the rest passes later.
    stalls: bool,
}

pub(super) async fn forward(
    behind: Behind,
    state: Arc<State>,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let method = request.method().clone();
    let target = request.uri().to_string();
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
    let (number, trouble, stop) = state.note(&method, &target, announced);
    if let Some(stop) = stop {
        return Err(struck(&behind, &state, number, stop, request).await);
    }
    if let Some(Trouble::Answer {
        hears,
        status,
        headers,
        body,
    }) = trouble
    {
        if hears {
            request.into_body().collect().await.map_err(io::Error::other)?;
        }
        state.change(number, |passed| passed.status = Some(status));
        return Ok(answer(status, &headers, body));
    }
    if trouble == Some(Trouble::Sever) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    if let Some(Trouble::Echo(status)) = trouble {
        state.change(number, |passed| passed.status = Some(status));
        return echo(status, request).await;
    }
    if trouble == Some(Trouble::Hang) {
        state.until_relented().await;
    }
    let limit = Limit {
        bytes: trouble.as_ref().and_then(Trouble::passes),
        stalls: matches!(trouble, Some(Trouble::StallRequest(_))),
    };
    let (reply, connection) = match exchange(&behind, &state, number, limit, request).await? {
        Outcome::Answered(reply, connection) => (reply, connection),
        Outcome::Cut(open) => {
            if matches!(trouble, Some(Trouble::Strand(_))) {
                strand(&state, open);
            }
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    };
    match trouble {
        Some(Trouble::LoseAnswer) => return Err(io::ErrorKind::ConnectionAborted.into()),
        Some(Trouble::HoldAnswer) => state.until_relented().await,
        _ => {}
    }
    state.change(number, |passed| passed.status = Some(reply.status()));
    let is_login = behind.has_catalogue && method == Method::POST && target.ends_with("/auth/tokens");
    match trouble {
        Some(Trouble::CutAnswer(bytes)) => Ok(cut(reply, bytes, connection)),
        _ if is_login => with_catalogue(&state, reply).await,
        _ => Ok(kept(reply, connection)),
    }
}

/// What was sent, for whoever sent it to read.
async fn echo(status: StatusCode, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let token = head.headers.get("x-auth-token").and_then(|token| token.to_str().ok());
    let said = String::from_utf8(body.to_vec()).unwrap_or_else(|_| format!("{} bytes", body.len()));
    Ok(answer(
        status,
        &[],
        format!("you are {} and said {said}", token.unwrap_or("nobody")),
    ))
}

/// Does with the chosen change what it was chosen for. The answer is why nobody gets one.
async fn struck(
    behind: &Behind,
    state: &Arc<State>,
    number: usize,
    stop: Stop,
    request: Request<Incoming>,
) -> io::Error {
    let limit = Limit {
        bytes: match stop.point {
            Point::Within(bytes) => Some(bytes),
            Point::Before | Point::After => None,
        },
        stalls: false,
    };
    if stop.point == Point::Before {
        stop.hold().await;
        return io::ErrorKind::ConnectionAborted.into();
    }
    match exchange(behind, state, number, limit, request).await {
        Ok(outcome) => {
            if let Outcome::Answered(reply, _) = &outcome {
                state.change(number, |passed| passed.status = Some(reply.status()));
            }
            stop.hold().await;
            // What is open is closed now.
            drop(outcome);
            io::ErrorKind::ConnectionAborted.into()
        }
        Err(error) => error,
    }
}

/// Has the request done, as far as it is let through.
async fn exchange(
    behind: &Behind,
    state: &Arc<State>,
    number: usize,
    limit: Limit,
    request: Request<Incoming>,
) -> io::Result<Outcome> {
    let stream = TcpStream::connect(&behind.authority).await?;
    let (mut sender, work) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let connection = Connection(tokio::spawn(async move {
        // What it has to say the answer says as well.
        let _ = work.await;
    }));
    let (mut head, body) = request.into_parts();
    head.headers = passed_on(&head.headers, Some(&behind.authority));
    let (ended, end) = oneshot::channel();
    let body = Passing {
        body,
        state: Arc::clone(state),
        number,
        left: limit.bytes,
        stalls: limit.stalls,
        stalled: None,
        ended: Some(ended),
    };
    let mut answering = sender.send_request(Request::from_parts(head, body)).boxed();
    let end = async {
        // Dropped without a word when all of the body has passed.
        if end.await.is_err() {
            future::pending::<()>().await;
        }
    };
    let reply = tokio::select! {
        reply = &mut answering => Some(reply.map_err(io::Error::other)?),
        () = end => None,
    };
    Ok(match reply {
        Some(reply) => Outcome::Answered(reply, connection),
        // Without whoever waits for the answer the connection would be closed.
        None => Outcome::Cut(Box::new((connection, answering))),
    })
}

/// What is open stays so until everything is let go.
fn strand(state: &Arc<State>, stays: impl Send + 'static) {
    let mut relented = state.relented.subscribe();
    relented.mark_unchanged();
    lock(&state.stranded).spawn(async move {
        let _stays = stays;
        let _ = relented.changed().await;
    });
}

/// The headers without those that belong to the connection that they came by.
fn passed_on(headers: &HeaderMap, host: Option<&str>) -> HeaderMap {
    let mut headers = headers.clone();
    for name in HOP {
        headers.remove(name);
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if let Some(Ok(host)) = host.map(HeaderValue::from_str) {
        headers.insert(header::HOST, host);
    }
    headers
}

/// A body that is counted, and as much of it as is let through.
struct Passing {
    body: Incoming,
    state: Arc<State>,
    number: usize,
    /// Bytes that may pass still; none when all may.
    left: Option<u64>,
    /// Whether the rest passes later.
    stalls: bool,
    /// Ends when it may.
    stalled: Option<BoxFuture<'static, ()>>,
    /// Told when no more may.
    ended: Option<oneshot::Sender<()>>,
}

impl HttpBody for Passing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == Some(0) && self.stalls {
            let state = Arc::clone(&self.state);
            let stalled = self
                .stalled
                .get_or_insert_with(|| async move { state.until_relented().await }.boxed());
            if stalled.poll_unpin(context).is_pending() {
                return Poll::Pending;
            }
            self.left = None;
        }
        if self.left == Some(0) {
            if let Some(ended) = self.ended.take() {
                // Nobody hears it whose answer was there before.
                let _ = ended.send(());
            }
            return Poll::Pending;
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            return Poll::Pending;
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(io::Error::other)?;
            let Ok(mut bytes) = frame.into_data() else {
                return Ok(Frame::data(Bytes::new()));
            };
            if let Some(left) = &mut self.left {
                bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes.len() as u64;
            }
            let sent = bytes.len() as u64;
            self.state.change(self.number, |passed| passed.sent += sent);
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left != Some(0) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The answer as it comes; the connection lasts as long.
fn kept(reply: Response<Incoming>, connection: Connection) -> Response<Body> {
    let (mut head, body) = reply.into_parts();
    head.headers = passed_on(&head.headers, None);
    let body = body.map_frame(move |frame| {
        let _connection = &connection;
        frame
    });
    Response::from_parts(head, body.map_err(io::Error::other).boxed_unsync())
}

/// So many bytes of the answer, and the end of the connection.
fn cut(reply: Response<Incoming>, bytes: u64, connection: Connection) -> Response<Body> {
    let (mut head, body) = reply.into_parts();
    head.headers = passed_on(&head.headers, None);
    let pieces = body.into_data_stream().scan(bytes, move |left, piece| {
        let _connection = &connection;
        let piece = piece.map_err(io::Error::other).map(|mut piece: Bytes| {
            piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= piece.len() as u64;
            piece
        });
        future::ready(Some(piece))
    });
    let pieces = pieces.take_while(|piece| future::ready(!matches!(piece, Ok(piece) if piece.is_empty())));
    let end = stream::once(async {
        // What was given before leaves while this waits for its turn.
        tokio::task::yield_now().await;
        Err(io::ErrorKind::ConnectionAborted.into())
    });
    let body = StreamBody::new(pieces.chain(end).map(|piece| piece.map(Frame::data)));
    Response::from_parts(head, body.boxed_unsync())
}

/// A login, whose catalogue leads here.
async fn with_catalogue(state: &State, reply: Response<Incoming>) -> io::Result<Response<Body>> {
    let (mut head, body) = reply.into_parts();
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let (behind, front) = &state.images;
    let text = String::from_utf8_lossy(&bytes).replace(behind.as_str(), front);
    head.headers = passed_on(&head.headers, None);
    head.headers.insert(header::CONTENT_LENGTH, text.len().into());
    Ok(Response::from_parts(head, whole(text)))
}
