//! Elects one leader among replicas by a Lease, after the protocol of client-go's leader election.
//!
//! Clocks are never compared: a replica takes a lease over when *it* has not seen it change for as long as the holder
//! promised. Who loses leadership must stop writing at once; the usual way is to end the process.

mod protocol;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::protocol::{Sighting, Step, next};
use crate::failure::chain;

pub use self::protocol::Timing;

/// Which lease, and under which name to hold it.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Where the Lease lives.
    pub namespace: String,
    /// The Lease's name, one per set of replicas.
    pub name: String,
    /// Unique per process, also across restarts of one pod: a process must never take its predecessor for itself.
    pub identity: String,
    /// How patient everybody is; all replicas should agree.
    pub timing: Timing,
}

/// Where this process stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else leads, or it is not known yet.
    Standby {
        /// The leader, where one is known.
        holder: Option<String>,
    },
    /// This process leads.
    Leading,
    /// This process led and does no longer. Final.
    Lost,
}

/// Stands for election until `cancel`; then a held lease is released, so that the next leader need not wait.
///
/// The task ends after the release, or when leadership was lost.
pub fn elect(
    client: Client,
    options: LeaseOptions,
    cancel: CancellationToken,
) -> (watch::Receiver<Leadership>, JoinHandle<()>) {
    let (leadership, receiver) = watch::channel(Leadership::Standby { holder: None });
    let api = Api::namespaced(client, &options.namespace);
    let candidate = Candidate {
        api,
        options,
        leadership,
        seen: None,
        certain: false,
        renewed: None,
        troubled: false,
    };
    (receiver, tokio::spawn(candidate.run(cancel)))
}

struct Candidate {
    api: Api<Lease>,
    options: LeaseOptions,
    leadership: watch::Sender<Leadership>,
    seen: Option<Seen>,
    /// Whether `seen` is what our own last write left, so that another look is not needed before the next.
    certain: bool,
    /// When our last successful write was sent; only while leading.
    renewed: Option<Instant>,
    /// A call of the last round failed, and that was said.
    troubled: bool,
}

/// What is said of a call without an answer.
const TOO_LATE: &str = "no answer in time";

struct Seen {
    /// Without a resourceVersion: there is no lease.
    lease: Lease,
    /// When this state was seen first.
    since: Instant,
}

impl Candidate {
    async fn run(mut self, cancel: CancellationToken) {
        loop {
            match cancel.run_until_cancelled(self.round()).await {
                Some(true) => {}
                Some(false) => return,
                None => return self.release().await,
            }
        }
    }

    /// One look or write and the wait after it; false when leadership was lost.
    async fn round(&mut self) -> bool {
        let mut well = self.certain || self.look().await;
        match self.step() {
            Step::Write => well &= self.write().await,
            Step::Wait => {}
            Step::Resign => {
                self.renewed = None;
                self.leadership.send_replace(Leadership::Lost);
                return false;
            }
        }
        self.troubled &= !well;
        self.publish();
        sleep(self.patience().min(self.options.timing.retry_period)).await;
        true
    }

    fn step(&self) -> Step {
        let sighting = self.seen.as_ref().map(|seen| Sighting {
            holder: holder_of(&seen.lease),
            promised: promised_of(&seen.lease),
            unchanged_for: seen.since.elapsed(),
        });
        next(
            sighting,
            self.renewed.map(|renewed| renewed.elapsed()),
            &self.options.identity,
            self.options.timing,
        )
    }

    /// How long a call or a pause may last: a leader must notice in time that it is none.
    fn patience(&self) -> Duration {
        let deadline = self.options.timing.renew_deadline;
        self.renewed
            .map_or(deadline, |renewed| deadline.saturating_sub(renewed.elapsed()))
    }

    /// False when it failed.
    async fn look(&mut self) -> bool {
        match timeout(self.patience(), self.api.get_opt(&self.options.name)).await {
            Ok(Ok(lease)) => {
                self.saw(lease.unwrap_or_default());
                return true;
            }
            Ok(Err(error)) => self.failed("failed to read the lease", &chain(&error)),
            Err(_) => self.failed("failed to read the lease", TOO_LATE),
        }
        false
    }

    fn saw(&mut self, lease: Lease) {
        let version = lease.metadata.resource_version.as_deref();
        if self
            .seen
            .as_ref()
            .is_none_or(|seen| seen.lease.metadata.resource_version.as_deref() != version)
        {
            self.seen = Some(Seen {
                lease,
                since: Instant::now(),
            });
        }
    }

    /// False when it failed; that somebody was faster is no failure.
    async fn write(&mut self) -> bool {
        let Some(seen) = &self.seen else { return true };
        let claim = claim_on(&seen.lease, &self.options, Timestamp::now());
        let sent = Instant::now();
        match timeout(self.patience(), self.put(&claim)).await {
            Ok(Ok(lease)) => {
                self.saw(lease);
                self.renewed = Some(sent);
                self.certain = true;
                return true;
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                // The next look tells who was faster.
                tracing::debug!("the lease changed under us");
                self.certain = false;
                return true;
            }
            Ok(Err(error)) => self.failed("failed to write the lease", &chain(&error)),
            Err(_) => self.failed("failed to write the lease", TOO_LATE),
        }
        self.certain = false;
        false
    }

    /// Tried again in seconds, so that only the first failure is said aloud until a round goes without one.
    fn failed(&mut self, what: &str, error: &str) {
        if std::mem::replace(&mut self.troubled, true) {
            tracing::debug!(error, "{what}");
        } else {
            tracing::warn!(error, "{what}; it is tried again by itself");
        }
    }

    async fn put(&self, lease: &Lease) -> kube::Result<Lease> {
        let params = PostParams::default();
        if lease.metadata.resource_version.is_some() {
            self.api.replace(&self.options.name, &params, lease).await
        } else {
            self.api.create(&params, lease).await
        }
    }

    fn publish(&self) {
        let now = if self.renewed.is_some() {
            Leadership::Leading
        } else {
            let holder = self.seen.as_ref().and_then(|seen| holder_of(&seen.lease));
            Leadership::Standby {
                holder: holder.map(str::to_owned),
            }
        };
        self.leadership.send_if_modified(|state| {
            let changed = *state != now;
            *state = now;
            changed
        });
    }

    /// Lets the lease go. Best effort: without it the others wait for as long as we promised.
    async fn release(&self) {
        let (Some(_), Some(seen)) = (self.renewed, &self.seen) else {
            return;
        };
        let mut lease = seen.lease.clone();
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        if !matches!(timeout(self.patience(), self.put(&lease)).await, Ok(Ok(_))) {
            tracing::info!("failed to release the lease; it runs out by itself");
        }
    }
}

/// The lease as it is with us as its holder.
fn claim_on(lease: &Lease, options: &LeaseOptions, now: Timestamp) -> Lease {
    let before = lease.spec.clone().unwrap_or_default();
    let is_ours = holder_of(lease) == Some(&options.identity);
    let spec = LeaseSpec {
        holder_identity: Some(options.identity.clone()),
        lease_duration_seconds: Some(i32::try_from(options.timing.lease_duration.as_secs()).unwrap_or(i32::MAX)),
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
        name: Some(options.name.clone()),
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

#[cfg(test)]
mod tests;
