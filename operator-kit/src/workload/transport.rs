//! The wire to one workload cluster: TLS to the server that its kubeconfig names, and to no address where no cluster is.
//!
//! Not kube's own: a name is looked up here, so that what it stands for is looked at before anything connects; nothing is unpacked; and of what an
//! idle connection keeps in memory there is as little as may be, because each watch has one.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt, DynBody};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tower::util::BoxService;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use super::addresses::Addresses;
use super::discretion::discreet;
use super::kubeconfig::Access;
use super::names::Names;
use super::owner::CONNECTIONS;

/// Until there is a connection.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// Until there is TLS on it.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// After so long without a word the other side is asked whether it is there, and given up after as long again.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How long a connection without a request is kept for the next one. As many are kept as there are requests at once: who is busy with a cluster sends some
/// side by side again and again, and TLS costs both sides more than most answers.
const IDLE: Duration = Duration::from_secs(15);

/// What requests to one cluster go through, whatever is behind it.
pub type Transport = BoxService<Request<Body>, Response<Box<DynBody>>, BoxError>;

/// The certificate, the key or the authority of a kubeconfig cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of the kubeconfig cannot be used for TLS; write another kubeconfig")]
pub struct DialError(#[source] Box<kube::Error>);

impl From<kube::Error> for DialError {
    fn from(error: kube::Error) -> Self {
        Self(Box::new(error))
    }
}

/// Makes wires. There is one for the network; tests have their own.
pub trait Dial: Send + Sync {
    /// Prepares the way to a cluster; nothing is sent yet.
    fn dial(&self, access: &Access) -> Result<Transport, DialError>;
}

/// A wire of whatever answers.
pub fn transport<S, B>(service: S) -> Transport
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let boxed = |body: B| Box::new(body.map_err(Into::into)) as Box<DynBody>;
    let service = service.map_err(Into::into);
    BoxService::new(service.map_response(move |answer: Response<B>| answer.map(boxed)))
}

/// A wire of a client, as an API server in memory gives one.
pub fn through(client: kube::Client) -> Transport {
    transport(service_fn(move |request| {
        let client = client.clone();
        async move { client.send(request).await }
    }))
}

/// The network.
pub(super) struct Network {
    pub(super) addresses: Addresses,
    pub(super) user_agent: HeaderValue,
    /// Those of all clusters.
    pub(super) names: Names,
}

impl Dial for Network {
    fn dial(&self, access: &Access) -> Result<Transport, DialError> {
        let mut config = access.config();
        config.headers.push((USER_AGENT, self.user_agent.clone()));
        let mut tls = config.rustls_client_config()?;
        // Tickets are kept for every server that gives some, and a watch lives for minutes.
        tls.resumption = Resumption::disabled();
        let connector = self.connector(tls, config.tls_server_name.as_deref());
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(CONNECTIONS)
            .build(connector);
        let client = client.map_err(BoxError::from);
        let client = config.base_uri_layer().layer(client);
        let client = config.extra_headers_layer()?.layer(client);
        let wire = match config.auth_layer()? {
            Some(authentication) => transport(authentication.layer(client)),
            None => transport(client),
        };
        Ok(match config.auth_info.token {
            Some(token) => discreet(wire, token),
            None => wire,
        })
    }
}

impl Network {
    fn connector(&self, tls: rustls::ClientConfig, server_name: Option<&str>) -> Connector {
        let mut http = HttpConnector::new_with_resolver(Lookup {
            names: self.names.clone(),
            addresses: self.addresses,
        });
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_DEADLINE));
        http.set_keepalive(Some(KEEPALIVE));
        http.set_keepalive_interval(Some(KEEPALIVE / 3));
        http.set_keepalive_retries(Some(3));
        let fixed = server_name.and_then(|name| ServerName::try_from(name.to_owned()).ok());
        let names: Arc<dyn ResolveServerName + Send + Sync> = match fixed {
            Some(name) => Arc::new(FixedServerNameResolver::new(name)),
            None => Arc::new(DefaultServerNameResolver::default()),
        };
        Connector(HttpsConnector::new(http, tls, true, names))
    }
}

/// Makes connections, each by a deadline: what nobody waits for any more would go on for ever.
#[derive(Clone)]
struct Connector(HttpsConnector<HttpConnector<Lookup>>);

impl Service<http::Uri> for Connector {
    type Response = <HttpsConnector<HttpConnector<Lookup>> as Service<http::Uri>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, server: http::Uri) -> Self::Future {
        let connecting = self.0.call(server);
        Box::pin(async move {
            let connected = timeout(CONNECT_DEADLINE + HANDSHAKE_DEADLINE, connecting).await;
            connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }
}

/// Looks names up as the system does, and passes no address where no cluster is.
#[derive(Clone)]
struct Lookup {
    names: Names,
    addresses: Addresses,
}

impl Service<Name> for Lookup {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (names, addresses) = (self.names.clone(), self.addresses);
        Box::pin(async move {
            let host = name.as_str();
            let found = names.look_up(host).await?;
            for address in &found {
                if let Some(kind) = addresses.refusal(address.ip()) {
                    let words = format!("{host} is at {}, which is {kind}; no cluster is there", address.ip());
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
                }
            }
            Ok(found.into_iter())
        })
    }
}

#[cfg(test)]
mod tests;
