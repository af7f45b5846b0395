//! One Lease at the API server: looks at it and writes it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use planning::election::{Candidate, Sighting, Step, Timing};

use super::calls::{Calls, Purpose, Wait};
use super::clock::Clock;
use crate::failure::chain;

/// How often a write is tried anew at once when somebody was faster.
const ATTEMPTS: u32 = 3;

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
    calls: Calls,
    pub(super) candidate: Candidate,
    lease: Lease,
    /// Whether `lease` is what our own last write left, so that another look is not needed before the next.
    certain: bool,
    /// What was sent last to hold the Lease, and when: it may have been taken although no answer told so.
    claim: Option<(Lease, Duration)>,
}

/// What all Leases of a process have in common.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) api: Api<Lease>,
    pub(super) timing: Timing,
    pub(super) clock: Clock,
    pub(super) calls: Calls,
}

impl Slot {
    pub(super) fn new(terms: Terms, name: String, identity: String) -> Self {
        let Terms {
            api,
            timing,
            clock,
            calls,
        } = terms;
        Self {
            candidate: Candidate::new(identity.clone(), timing),
            lease: Lease::default(),
            certain: false,
            claim: None,
            api,
            name,
            identity,
            timing,
            clock,
            calls,
        }
    }

    /// An annotation as it was seen last.
    pub(super) fn annotation(&self, key: &str) -> Option<&String> {
        self.lease.metadata.annotations.as_ref()?.get(key)
    }

    /// Renews it, where it is held and still ours.
    pub(super) async fn renew(&mut self) -> Result<(), Trouble> {
        for attempt in 0..ATTEMPTS {
            let looked = if self.certain { Ok(()) } else { self.look().await };
            // The earlier of two writes of ours was taken.
            if attempt > 0 && self.claim.is_none() {
                return Ok(());
            }
            // Also after a look that failed: the last one may still be true.
            let written = match self.candidate.step(self.clock.now()) {
                Step::Write => self.write().await?,
                Step::Wait | Step::Resign => true,
            };
            looked?;
            if written {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes it, and looks who has it when somebody was faster.
    pub(super) async fn take(&mut self) -> Result<(), Trouble> {
        if self.write().await? {
            return Ok(());
        }
        self.look().await
    }

    /// Lets it go. Where somebody else wrote it since, that is tried as long as it is ours.
    pub(super) async fn give(&mut self) -> Result<(), Trouble> {
        self.candidate.released();
        for _ in 0..ATTEMPTS {
            if self.release().await? {
                break;
            }
            // A renewal of ours may have been under way.
            self.look_to(Purpose::Keep).await?;
            self.candidate.released();
            if self.candidate.holder() != Some(&self.identity) {
                break;
            }
        }
        Ok(())
    }

    pub(super) async fn look(&mut self) -> Result<(), Trouble> {
        self.look_to(self.keep_or(Purpose::Look)).await
    }

    async fn look_to(&mut self, purpose: Purpose) -> Result<(), Trouble> {
        let what = "failed to read the lease";
        let (api, name) = (&self.api, &self.name);
        match self.ask(purpose, move || api.get_opt(name)).await {
            Some(Ok(lease)) => {
                self.saw(lease.unwrap_or_default());
                Ok(())
            }
            Some(Err(error)) => Err(Trouble {
                what,
                error: chain(&error),
            }),
            None => Err(Trouble {
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
        let now = self.clock.now();
        self.candidate.saw(sighting, now);
        if let Some((_, sent)) = self.claim.take_if(|(claim, _)| is_as_claimed(&lease, claim)) {
            self.candidate.wrote(sent, now);
        }
        self.lease = lease;
    }

    /// Takes or renews it. False when somebody was faster, or an earlier write of ours, which is no failure: the next look tells who.
    pub(super) async fn write(&mut self) -> Result<bool, Trouble> {
        let claim = claim_on(&self.lease, self);
        self.claim = Some((claim.clone(), self.clock.now()));
        let written = self.put(claim, self.keep_or(Purpose::Take)).await?;
        if let Some(sent) = written {
            self.claim = None;
            self.candidate.wrote(sent, self.clock.now());
        }
        Ok(written.is_some())
    }

    /// Writes it without a holder. False when somebody was faster.
    pub(super) async fn release(&mut self) -> Result<bool, Trouble> {
        self.candidate.released();
        self.claim = None;
        let mut lease = self.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        Ok(self.put(lease, Purpose::Keep).await?.is_some())
    }

    /// Changes an annotation of what is written next.
    pub(super) fn annotate(&mut self, key: &str, value: String) {
        let annotations = self.lease.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value);
    }

    /// Writes it as it is here, without renewing it. False when somebody was faster.
    pub(super) async fn store(&mut self) -> Result<bool, Trouble> {
        Ok(self.put(self.lease.clone(), Purpose::Keep).await?.is_some())
    }

    /// When the call left that was taken; none when somebody was faster. It may be sent several times: all of them name the version that was seen, so
    /// that one is taken and the others are refused.
    async fn put(&mut self, lease: Lease, purpose: Purpose) -> Result<Option<Duration>, Trouble> {
        let what = "failed to write the lease";
        self.certain = false;
        let (api, name, params, lease, clock) = (&self.api, &self.name, &PostParams::default(), &lease, &self.clock);
        let write = move || async move {
            let sent = clock.now();
            let answer = if lease.metadata.resource_version.is_some() {
                api.replace(name, params, lease).await
            } else {
                api.create(params, lease).await
            };
            (answer, sent)
        };
        match self.ask(purpose, write).await {
            Some((Ok(lease), sent)) => {
                self.saw(lease);
                self.certain = true;
                Ok(Some(sent))
            }
            Some((Err(kube::Error::Api(status)), _)) if status.code == 409 => {
                tracing::debug!(name, "the lease changed under us");
                Ok(None)
            }
            Some((Err(error), _)) => Err(Trouble {
                what,
                error: chain(&error),
            }),
            None => Err(Trouble {
                what,
                error: TOO_LATE.to_owned(),
            }),
        }
    }

    async fn ask<F: Future>(&self, purpose: Purpose, call: impl Fn() -> F) -> Option<F::Output> {
        let wait = Wait {
            patience: self.candidate.patience(self.clock.now()),
            pause: self.timing.retry_period,
        };
        self.calls.first(purpose, wait, call).await
    }

    /// To keep it, where it is held.
    fn keep_or(&self, other: Purpose) -> Purpose {
        match self.candidate.valid_until() {
            Some(_) => Purpose::Keep,
            None => other,
        }
    }
}

/// Whether a lease is what a claim made of it.
fn is_as_claimed(lease: &Lease, claim: &Lease) -> bool {
    lease.spec == claim.spec && lease.metadata.annotations == claim.metadata.annotations
}

/// The lease as it is with us as its holder.
fn claim_on(lease: &Lease, slot: &Slot) -> Lease {
    // As exact as it is stored, so that it is known again.
    let now = Timestamp::from_microsecond(Timestamp::now().as_microsecond()).unwrap_or_default();
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
