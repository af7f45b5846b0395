//! The certificate of a server, followed while it changes on disk.
//!
//! Files are looked at every other second rather than watched: that sees a renamed `..data`, a replaced file and a storage that tells of
//! no change alike. A new pair is used from the next connection on; those that stand go on with theirs. A pair that cannot be used leaves
//! the one before in use.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;

use super::files::{CertificateError, Folder, Pair, Usable};
use crate::failure::chain;
use crate::telemetry::Gate;

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The certificate in use. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Certificates {
    current: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
}

impl Certificates {
    fn set(&self, certified: CertifiedKey) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One series of each gauge.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    server: &'static str,
}

/// When certificates end, and whether newer ones wait that cannot be used. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Expiries {
    not_after: Family<ServerLabel, Gauge>,
    refused: Family<ServerLabel, Gauge>,
}

impl Expiries {
    /// Registered as `tls_certificate_expiry_timestamp_seconds` and `tls_certificate_refused`, below the registry's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let expiries = Self::default();
        registry.register(
            "tls_certificate_expiry_timestamp_seconds",
            "When the certificate that a server uses ends, in seconds since 1970",
            expiries.not_after.clone(),
        );
        registry.register(
            "tls_certificate_refused",
            "1 while the certificate on disk cannot be used by a server",
            expiries.refused.clone(),
        );
        expiries
    }
}

/// Follows `tls.crt` and `tls.key` of a folder until `cancel`. The gate is open while there is a certificate that has not ended; it says
/// why there is none, and that a newer one cannot be used. `server` names the server in logs and metrics.
pub fn follow(
    server: &'static str,
    directory: PathBuf,
    gate: Gate,
    expiries: &Expiries,
    cancel: CancellationToken,
) -> Certificates {
    let (certificates, folder) = (Certificates::default(), Folder::new(directory));
    let mut keeper = Keeper::new(server, certificates.clone(), gate, expiries);
    let following = async move {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            keeper.look(folder.read().await, Timestamp::now());
        }
    };
    tokio::spawn(cancel.run_until_cancelled_owned(following));
    certificates
}

/// What is known of the files of one server.
pub(super) struct Keeper {
    server: &'static str,
    certificates: Certificates,
    gate: Gate,
    not_after: Gauge,
    refused: Gauge,
    /// The pair in use, and when it ends.
    used: Option<(Pair, Timestamp)>,
    /// Why the files could not be used at the last look.
    fault: Option<String>,
    /// Whether that was told.
    told: bool,
}

impl Keeper {
    pub(super) fn new(server: &'static str, certificates: Certificates, gate: Gate, expiries: &Expiries) -> Self {
        let label = ServerLabel { server };
        Self {
            server,
            certificates,
            gate,
            not_after: expiries.not_after.get_or_create_owned(&label),
            refused: expiries.refused.get_or_create_owned(&label),
            used: None,
            fault: None,
            told: false,
        }
    }

    /// Takes what is on disk now.
    pub(super) fn look(&mut self, found: Result<Pair, CertificateError>, now: Timestamp) {
        let unchanged = match (&found, &self.used) {
            (Ok(pair), Some((used, _))) => pair == used,
            _ => false,
        };
        if unchanged {
            self.well();
        } else {
            match found.and_then(|pair| Ok((pair.usable()?, pair))) {
                Ok((usable, pair)) => self.take(usable, pair),
                Err(error) => self.doubt(chain(&error)),
            }
        }
        self.tell(now);
    }

    fn take(&mut self, usable: Usable, pair: Pair) {
        let Usable { certified, not_after } = usable;
        tracing::info!(server = self.server, %not_after, "certificate in use");
        self.certificates.set(certified);
        self.not_after.set(not_after.as_second());
        self.used = Some((pair, not_after));
        self.well();
    }

    fn well(&mut self) {
        self.fault = None;
        self.told = false;
        self.refused.set(0);
    }

    /// Told when it is seen twice: whoever writes one file after the other leaves a pair that does not match for a moment.
    fn doubt(&mut self, fault: String) {
        let again = self.fault.as_ref() == Some(&fault);
        if again && !self.told {
            let server = self.server;
            self.told = true;
            self.refused.set(1);
            if self.used.is_some() {
                tracing::warn!(
                    server,
                    fault,
                    "the certificate on disk cannot be used; the one before stays in use"
                );
            } else {
                tracing::warn!(server, fault, "there is no certificate to serve with; waiting for one");
            }
        } else if !again {
            self.told = false;
        }
        self.fault = Some(fault);
    }

    fn tell(&self, now: Timestamp) {
        match (&self.used, &self.fault) {
            (None, Some(fault)) => self.gate.close_for(fault),
            (None, None) => self.gate.close(),
            (Some((_, end)), _) if *end <= now => {
                self.gate
                    .close_for(&format!("the certificate ended at {end}; renew it"));
            }
            (Some((_, end)), Some(fault)) if self.told => self.gate.open_but(&format!(
                "the certificate on disk cannot be used, the one before stays in use until {end}: {fault}"
            )),
            (Some(_), _) => self.gate.open(),
        }
    }
}
