//! One Lease at the API server: looks at it and writes it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use planning::election::{Candidate, Sighting, Step, Timing};
use tokio::time::timeout;

use super::clock::Clock;
use crate::failure::chain;

/// What is said of a call without an answer.
const TOO_LATE: &str = "no answer in time";

/// What went wrong, for the log.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) what: &'static str,
    pub(super) error: String,
}

/// A Lease and what a process has to do with it.
pub(super) struct Slot {
    api: Api<Lease>,
    name: String,
    identity: String,
    timing: Timing,
    clock: Clock,
    pub(super) candidate: Candidate,
    lease: Lease,
    /// Whether `lease` is what our own last write left, so that another look is not needed before the next.
    pub(super) certain: bool,
}

impl Slot {
    pub(super) fn new(api: Api<Lease>, name: String, identity: String, timing: Timing, clock: Clock) -> Self {
        Self {
            candidate: Candidate::new(identity.clone(), timing),
            lease: Lease::default(),
            certain: false,
            api,
            name,
            identity,
            timing,
            clock,
        }
    }

    /// Whether this process holds it, or it is only in its name.
    pub(super) fn is_ours(&self) -> bool {
        self.candidate.valid_until().is_some() || self.candidate.holder() == Some(&self.identity)
    }

    pub(super) fn step(&self) -> Step {
        self.candidate.step(self.clock.now())
    }

    fn patience(&self) -> Duration {
        self.candidate.patience(self.clock.now())
    }

    /// An annotation as it was seen last.
    pub(super) fn annotation(&self, key: &str) -> Option<&String> {
        self.lease.metadata.annotations.as_ref()?.get(key)
    }

    pub(super) async fn look(&mut self) -> Result<(), Trouble> {
        let what = "failed to read the lease";
        match timeout(self.patience(), self.api.get_opt(&self.name)).await {
            Ok(Ok(lease)) => {
                self.saw(lease.unwrap_or_default());
                Ok(())
            }
            Ok(Err(error)) => Err(Trouble {
                what,
                error: chain(&error),
            }),
            Err(_) => Err(Trouble {
                what,
                error: TOO_LATE.to_owned(),
            }),
        }
    }

    fn saw(&mut self, lease: Lease) {
        let sighting = Sighting {
            version: lease.metadata.resource_version.clone(),
            holder: holder_of(&lease).map(str::to_owned),
            promised: promised_of(&lease),
        };
        self.candidate.saw(sighting, self.clock.now());
        self.lease = lease;
    }

    /// Takes or renews it. False when somebody was faster, which is no failure: the next look tells who.
    pub(super) async fn write(&mut self) -> Result<bool, Trouble> {
        let claim = claim_on(&self.lease, self);
        let sent = self.clock.now();
        let written = self.put(claim).await?;
        if written {
            self.candidate.wrote(sent);
        }
        Ok(written)
    }

    /// Lets it go. False when somebody was faster.
    pub(super) async fn release(&mut self) -> Result<bool, Trouble> {
        self.candidate.released();
        let mut lease = self.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        self.put(lease).await
    }

    /// Changes an annotation of what is written next.
    pub(super) fn annotate(&mut self, key: &str, value: String) {
        let annotations = self.lease.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value);
    }

    /// Writes it as it is here, without renewing it. False when somebody was faster.
    pub(super) async fn store(&mut self) -> Result<bool, Trouble> {
        self.put(self.lease.clone()).await
    }

    async fn put(&mut self, lease: Lease) -> Result<bool, Trouble> {
        let what = "failed to write the lease";
        self.certain = false;
        let params = PostParams::default();
        let write = async {
            if lease.metadata.resource_version.is_some() {
                self.api.replace(&self.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            }
        };
        match timeout(self.patience(), write).await {
            Ok(Ok(lease)) => {
                self.saw(lease);
                self.certain = true;
                Ok(true)
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                tracing::debug!(name = self.name, "the lease changed under us");
                Ok(false)
            }
            Ok(Err(error)) => Err(Trouble {
                what,
                error: chain(&error),
            }),
            Err(_) => Err(Trouble {
                what,
                error: TOO_LATE.to_owned(),
            }),
        }
    }
}

/// The lease as it is with us as its holder.
fn claim_on(lease: &Lease, slot: &Slot) -> Lease {
    let now = Timestamp::now();
    let before = lease.spec.clone().unwrap_or_default();
    let is_ours = holder_of(lease) == Some(&slot.identity);
    let promised = slot.timing.lease_duration.as_secs();
    let spec = LeaseSpec {
        holder_identity: Some(slot.identity.clone()),
        lease_duration_seconds: Some(i32::try_from(promised).unwrap_or(i32::MAX)),
        acquire_time: if is_ours {
            before.acquire_time
        } else {
            Some(MicroTime(now))
        },
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(
            before
                .lease_transitions
                .unwrap_or(-1)
                .saturating_add(i32::from(!is_ours)),
        ),
        ..before
    };
    let metadata = ObjectMeta {
        name: Some(slot.name.clone()),
        ..lease.metadata.clone()
    };
    Lease {
        metadata,
        spec: Some(spec),
    }
}

fn holder_of(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|holder| !holder.is_empty())
}

fn promised_of(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(
        seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or_default(),
    )
}
