//! The one way to the API server: every request is paced, counted, one of a few at a time, and ends by a deadline and within a size.
//!
//! kube's own retry is off: it can hold one call for minutes, and a requeue with backoff is our retry.

mod connections;
mod fencing;
mod limits;
mod pacing;
mod patience;
mod reach;
mod request;
mod traffic;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderValue, Request, Response};
use kube::client::{Body, Client, ClientBuilder};
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use tower::{BoxError, Service};

pub use self::connections::CONNECTIONS;
pub use self::limits::{DISCOVERY_LIMIT, OBJECT_LIMIT, OutOfBounds, REQUEST_DEADLINE, WATCH_START_DEADLINE};
pub use self::traffic::{RequestLabels, Traffic};

pub(crate) use self::limits::LimitsLayer;
pub(crate) use self::reach::ReachLayer;

use self::connections::ConnectionsLayer;
use self::fencing::FencingLayer;
use self::pacing::PacingLayer;
use self::patience::PatienceLayer;
use self::traffic::TrafficLayer;
use crate::lease::Fence;

/// How to reach the API server, and how hard to push it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// A kubeconfig file. `None`: `$KUBECONFIG`, the service account of the pod, `~/.kube/config`, as kubectl looks.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than its current one.
    pub context: Option<String>,
    /// Requests a second that are sustained; 0 or less is no limit. Watches and leases have no part in it.
    pub qps: f64,
    /// Requests that may go at once before `qps` takes hold.
    pub burst: u32,
    /// Sent with every request; also the name in the API server's audit log.
    pub user_agent: String,
    /// Writes pass only while it is open.
    pub fence: Fence,
}

/// There is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is missing, broken, or has no such context.
    #[error("unable to use the kubeconfig{}; check the file and its current context", named(path.as_deref()))]
    ReadKubeconfig {
        /// The file that was named, if one was.
        path: Option<PathBuf>,
        /// Why.
        #[source]
        source: Box<KubeconfigError>,
    },
    /// Neither a kubeconfig nor a service account was found.
    #[error("found neither a kubeconfig nor the service account of a pod; name a kubeconfig file")]
    FindCluster(#[source] InClusterError),
    /// The user agent cannot be an HTTP header.
    #[error("unable to send {user_agent:?} as the user agent")]
    UserAgent {
        /// What was asked for.
        user_agent: String,
        /// Why.
        #[source]
        source: http::header::InvalidHeaderValue,
    },
    /// Certificates, keys or the address of the cluster are unusable.
    #[error("unable to build a client from the kubeconfig")]
    Build(#[source] Box<kube::Error>),
}

/// Chooses the TLS implementation for the process. Call it first thing in `main` and once in every test process.
///
/// With two providers compiled in, rustls otherwise refuses at the first handshake rather than at start.
pub fn install_crypto() {
    // An error means that a provider is installed already, which is what we want.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Builds the client; nothing is sent yet.
pub async fn connect(options: &ClientOptions, traffic: &Traffic) -> Result<Client, ConnectError> {
    let mut config = load(options).await?;
    let user_agent = HeaderValue::from_str(&options.user_agent).map_err(|source| ConnectError::UserAgent {
        user_agent: options.user_agent.clone(),
        source,
    })?;
    config.headers.push((USER_AGENT, user_agent));
    config.default_retry = false;
    let bounds = Bounds {
        fence: options.fence.clone(),
        reach: ReachLayer::new(&config.cluster_url),
        traffic: traffic.clone(),
        connections: CONNECTIONS,
        qps: options.qps,
        burst: options.burst,
    };
    let builder = ClientBuilder::try_from(config).map_err(|source| ConnectError::Build(Box::new(source)))?;
    Ok(bounds.around(builder))
}

/// What holds for every request of one client.
pub(crate) struct Bounds {
    /// Writes pass only while it is open.
    pub(crate) fence: Fence,
    /// Who tells that the API server cannot be reached.
    pub(crate) reach: ReachLayer,
    /// Where requests are counted.
    pub(crate) traffic: Traffic,
    /// Requests under way at once, as long as they are answered soon. Watches come on top.
    pub(crate) connections: usize,
    /// As in [`ClientOptions`].
    pub(crate) qps: f64,
    /// As in [`ClientOptions`].
    pub(crate) burst: u32,
}

impl Bounds {
    /// The client whose requests go to what `builder` has.
    pub(crate) fn around<S, B>(self, builder: ClientBuilder<S>) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        // Inside out: what waits for its turn is neither counted yet nor under its deadline, and what has waited may have waited too long to be written.
        builder
            .with_layer(&FencingLayer::new(self.fence))
            .with_layer(&LimitsLayer)
            .with_layer(&self.reach)
            .with_layer(&TrafficLayer::new(self.traffic.clone()))
            .with_layer(&ConnectionsLayer::new(self.connections))
            .with_layer(&PacingLayer::new(self.qps, self.burst))
            .with_layer(&PatienceLayer::new(self.traffic))
            .build()
    }
}

async fn load(options: &ClientOptions) -> Result<Config, ConnectError> {
    let choice = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    let wrap = |source| ConnectError::ReadKubeconfig {
        path: options.kubeconfig.clone().or_else(named_by_environment),
        source: Box::new(source),
    };
    if let Some(path) = &options.kubeconfig {
        let kubeconfig = Kubeconfig::read_from(path).map_err(wrap)?;
        return Config::from_custom_kubeconfig(kubeconfig, &choice).await.map_err(wrap);
    }
    match Config::from_kubeconfig(&choice).await {
        Ok(config) => Ok(config),
        Err(source) if options.context.is_some() || named_by_environment().is_some() => Err(wrap(source)),
        Err(_) => Config::incluster().map_err(ConnectError::FindCluster),
    }
}

fn named_by_environment() -> Option<PathBuf> {
    std::env::var_os("KUBECONFIG")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

fn named(path: Option<&Path>) -> String {
    path.map(|path| format!(" {}", path.display())).unwrap_or_default()
}

#[cfg(test)]
mod tests;
