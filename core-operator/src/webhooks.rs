//! The validating webhooks: what the API server asks over HTTPS is answered by a verdict of `planning`, from what is seen of the world. On every
//! replica, whether it leads or not: the API server does not know which one does.

mod facts;
mod request;
mod review;

use std::net::Ipv6Addr;
use std::path::PathBuf;

use operator_kit::https::{Expiries, ServerOptions, follow, serve_https};
use operator_kit::serving::{ServeError, Serving};
use operator_kit::telemetry::Readiness;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

pub(crate) use self::facts::Facts;
use crate::args::{Args, DEFAULT_WEBHOOK_CERT_DIR};
use crate::certificates;

/// What webhooks count. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    expiries: Expiries,
    requests: Family<RequestLabels, Counter>,
}

/// One series of the counter of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    kind: &'static str,
    verdict: &'static str,
}

impl Tally {
    pub(crate) fn register(registry: &mut Registry, expiries: Expiries) -> Self {
        let tally = Self {
            expiries,
            requests: Family::default(),
        };
        registry.register(
            "stackwright_admission_requests",
            "Requests that the API server asked about, by kind and verdict",
            tally.requests.clone(),
        );
        tally
    }

    fn count(&self, kind: &'static str, verdict: &'static str) {
        self.requests.get_or_create(&RequestLabels { kind, verdict }).inc();
    }
}

/// The folder of the certificate: the one that was named, else the usual one if it is there; `None` where webhooks are not wanted.
pub(crate) async fn directory(args: &Args) -> Option<PathBuf> {
    certificates::directory("webhooks", args.webhook_cert_dir.as_deref(), DEFAULT_WEBHOOK_CERT_DIR).await
}

/// Begins to serve on `--webhook-port`, until `stop`.
pub(crate) async fn serve(
    args: &Args,
    directory: PathBuf,
    facts: Facts,
    readiness: &Readiness,
    tally: Tally,
    stop: CancellationToken,
) -> Result<Serving, ServeError> {
    let gate = readiness.gate("certificate of the webhooks");
    let options = ServerOptions {
        address: (Ipv6Addr::UNSPECIFIED, args.webhook_port).into(),
        certificates: follow("webhooks", directory, gate, &tally.expiries, stop.clone()),
    };
    serve_https(options, review::router(facts, tally), stop).await
}
