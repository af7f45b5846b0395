//! Accepts connections and serves a router on them, within bounds: so many at once, and whoever opens one and is silent, or does not read,
//! does not keep it.
//!
//! HTTP/1.1 alone: that is what the API server speaks with webhooks, and kubelets and scrapers with the rest; a server of HTTP/2 is code that nobody
//! would use.

mod writing;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

use self::writing::Hurried;

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use or not ours.
    #[error("unable to listen on {address}; choose another address")]
    Bind {
        /// What was asked for.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A running server: where it listens (the port is real when port 0 was asked for) and its task.
pub type Serving = (SocketAddr, JoinHandle<()>);

/// Most connections of one server at once. Who asks us keeps a few; more wait until one ends.
pub(crate) const CONNECTIONS: usize = 256;

/// Most bytes of a connection that are here before somebody takes them, and of the head of a request: with all the connections that there may be they
/// take no more than 16 MiB.
const BUFFER: usize = 64 << 10;

/// From the first byte of a connection to the last of its handshake.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);

/// From when an answer has to wait for its reader to when he has taken all of it.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// What is being answered when the server is to end may take this long, where answers are short.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// After an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// What becomes of a connection before HTTP is spoken on it.
pub(crate) trait Handshake: Clone + Send + Sync + 'static {
    /// What is spoken on.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Shakes hands.
    fn shake(&self, stream: TcpStream) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// None.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl Handshake for Plain {
    type Stream = TcpStream;

    async fn shake(&self, stream: TcpStream) -> io::Result<TcpStream> {
        Ok(stream)
    }
}

impl Handshake for TlsAcceptor {
    type Stream = TlsStream<TcpStream>;

    async fn shake(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.accept(stream).await
    }
}

/// What is served to whom.
#[derive(Clone)]
pub(crate) struct Service<H> {
    /// What comes before HTTP.
    pub(crate) handshake: H,
    /// The answers. They find who asks as [`ConnectInfo`].
    pub(crate) router: Router,
    /// How long a connection may be without a whole head of a request.
    pub(crate) idle: Duration,
    /// How long what is being answered may take when the server is to end.
    pub(crate) drain: Duration,
}

/// Serves a router without TLS until `cancel`; then what is being answered has `drain` to end, and the task ends with it. A connection may be
/// without a request for `idle`. An answer that comes in pieces has ten seconds for each to be taken.
pub async fn serve_router(
    address: SocketAddr,
    router: Router,
    (idle, drain): (Duration, Duration),
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let service = Service {
        handshake: Plain,
        router,
        idle,
        drain,
    };
    serve(address, service, cancel).await
}

/// Serves until `cancel`; then what is being answered is finished. The task ends when that is done.
pub(crate) async fn serve<H: Handshake>(
    address: SocketAddr,
    service: Service<H>,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let bind = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    let task = tokio::spawn(async move {
        let shutdown = GracefulShutdown::new();
        let accepting = accept(&listener, &service, &shutdown);
        let _ = cancel.run_until_cancelled(accepting).await;
        drop(listener);
        let _ = timeout(service.drain, shutdown.shutdown()).await;
    });
    Ok((bound, task))
}

async fn accept<H: Handshake>(listener: &TcpListener, service: &Service<H>, shutdown: &GracefulShutdown) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                tokio::spawn(serve_one(stream, peer, service.clone(), shutdown.watcher(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn serve_one<H: Handshake>(
    stream: TcpStream,
    peer: SocketAddr,
    service: Service<H>,
    shutdown: Watcher,
    _place: OwnedSemaphorePermit,
) {
    // Whoever does not finish the handshake hears nothing of us; nor do probes of the port.
    let Ok(Ok(stream)) = timeout(HANDSHAKE_DEADLINE, service.handshake.shake(stream)).await else {
        tracing::debug!("a handshake of TLS was not finished");
        return;
    };
    let router = service.router.layer(Extension(ConnectInfo(peer)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(service.idle)
        .max_buf_size(BUFFER)
        .serve_connection(
            TokioIo::new(Hurried::new(stream, WRITE_DEADLINE)),
            TowerToHyperService::new(router),
        );
    if let Err(error) = shutdown.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
pub(crate) mod tests;
