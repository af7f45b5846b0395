//! Serves a router over TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::certificate::Certificates;
use crate::serving::{DRAIN, ServeError, Service, Serving, serve};

/// How long a connection may be without a request. Longer than Go's clients keep one that they do not use (90 s), so that they are the ones
/// to close it and no request meets a connection that we just closed.
const IDLE_DEADLINE: Duration = Duration::from_mins(2);

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
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let service = Service {
        handshake: TlsAcceptor::from(Arc::new(config)),
        router,
        idle: IDLE_DEADLINE,
        drain: DRAIN,
    };
    serve(address, service, cancel).await
}
