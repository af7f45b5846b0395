//! The endpoints that every operator has: metrics and health.

use std::net::SocketAddr;
use std::sync::Arc;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use crate::flags::Address;
use crate::serving::ServeError;
use crate::telemetry::{LogLevel, Readiness, serve_health, serve_metrics};

/// Where the process tells about itself.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    /// Where `/metrics` is served, if anywhere.
    pub metrics: Address,
    /// Where `/healthz`, `/readyz` and `/loglevel` are served, if anywhere.
    pub health: Address,
}

impl Endpoints {
    /// Begins to serve, until `cancel`.
    pub async fn serve(
        self,
        registry: Registry,
        readiness: Readiness,
        log_level: &LogLevel,
        cancel: &CancellationToken,
    ) -> Result<(), ServeError> {
        if let Some(address) = self.metrics.0 {
            let (address, _) = serve_metrics(address, Arc::new(registry), cancel.clone()).await?;
            listening("metrics", address);
        }
        if let Some(address) = self.health.0 {
            let (address, _) = serve_health(address, readiness, Some(log_level.clone()), cancel.clone()).await?;
            listening("health", address);
        }
        Ok(())
    }
}

/// Says in the log that an endpoint is up, and where.
pub fn listening(what: &str, address: SocketAddr) {
    tracing::info!(%address, "{what} endpoint is up");
}
