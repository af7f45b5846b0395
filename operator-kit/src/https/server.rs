//! Accepts connections of TLS and serves a router on them. Whoever opens one and is silent does not keep it.
//!
//! HTTP/1.1 alone: that is what the API server speaks with webhooks, and a server of HTTP/2 is code that nobody would use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificates;
use crate::telemetry::{ServeError, Serving};

/// Most connections at once. The API server keeps a few; more wait until one ends.
const CONNECTIONS: usize = 256;

/// From the first byte of a connection to the last of its handshake.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);

/// How long a connection may be without a request. Longer than Go's clients keep one that they do not use (90 s), so that they are the ones
/// to close it and no request meets a connection that we just closed.
const IDLE_DEADLINE: Duration = Duration::from_mins(2);

/// What is being answered when the server is to end may take this long.
const DRAIN: Duration = Duration::from_secs(2);

/// After an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// Where and with which certificate.
pub struct ServerOptions {
    /// Port 0 lets the system choose.
    pub address: SocketAddr,
    /// The one that it has now; as long as there is none, handshakes fail.
    pub certificates: Certificates,
}

/// Serves `router` over TLS until `cancel`; then what is being answered is finished. The task ends when that is done.
pub async fn serve_https(
    options: ServerOptions,
    router: Router,
    cancel: CancellationToken,
) -> Result<Serving, ServeError> {
    let ServerOptions { address, certificates } = options;
    let bind = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).await.map_err(bind)?;
    let bound = listener.local_addr().map_err(bind)?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let task = tokio::spawn(async move {
        let shutdown = GracefulShutdown::new();
        let accepting = accept(&listener, &acceptor, &router, &shutdown);
        let _ = cancel.run_until_cancelled(accepting).await;
        drop(listener);
        let _ = timeout(DRAIN, shutdown.shutdown()).await;
    });
    Ok((bound, task))
}

async fn accept(listener: &TcpListener, acceptor: &TlsAcceptor, router: &Router, shutdown: &GracefulShutdown) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = serve_one(stream, acceptor.clone(), router.clone(), shutdown.watcher(), place);
                tokio::spawn(connection);
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn serve_one(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    router: Router,
    shutdown: Watcher,
    _place: OwnedSemaphorePermit,
) {
    // Whoever does not finish the handshake hears nothing of us; nor do probes of the port.
    let Ok(Ok(stream)) = timeout(HANDSHAKE_DEADLINE, acceptor.accept(stream)).await else {
        tracing::debug!("a handshake of TLS was not finished");
        return;
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_DEADLINE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = shutdown.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
