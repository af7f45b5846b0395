//! A process that stands for a Lease: what it may do before it holds one, how it waits, and what ends it. How Leases are held is [`crate::lease`]'s.

use std::future::{Future, pending};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lease::{Clock, Fence, Leadership, LeaseOptions, Loss, Tenure, Timing, elect};

/// The namespace of a Lease where none is named.
const NAMESPACE: &str = "default";

/// The process may not work, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// Nobody stands for it any more.
    #[error("the election ended")]
    Stand,
    /// A Lease was held and is not any more.
    #[error("lost the Lease {0}; another replica may be working now")]
    Hold(Loss),
    /// What was held may still be held.
    #[error("the election ended abnormally")]
    Leave(#[source] JoinError),
}

/// What may be worked on and written: nothing before a Lease is held, where Leases decide. `shards` is how many there are of them; `None` where none
/// decides.
pub fn permits(shards: Option<u16>) -> (Tenure, Fence) {
    match shards {
        Some(shards) => (Tenure::of(shards), Fence::shut(Clock::since_boot())),
        None => (Tenure::of_everything(), Fence::default()),
    }
}

/// What this process stands with, under a name of its own. `namespace` may be empty; `members` is the annotation of those that share shards.
pub(crate) fn candidacy(namespace: &str, name: &str, lease_duration: Duration, members: &'static str) -> LeaseOptions {
    LeaseOptions {
        namespace: if namespace.is_empty() { NAMESPACE } else { namespace }.to_owned(),
        name: name.to_owned(),
        identity: identity(),
        timing: Timing::of(lease_duration),
        members,
    }
}

/// The name of the machine: of the Pod, in a cluster.
pub fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

/// Unique among replicas and restarts: a host name may come back, a start time on it does not.
fn identity() -> String {
    let started = Timestamp::now().as_millisecond();
    format!("{}_{}_{started}", host(), std::process::id())
}

/// From the candidacy until everything is let go.
#[derive(Debug)]
pub struct Standing {
    leadership: watch::Receiver<Leadership>,
    election: JoinHandle<()>,
    leave: CancellationToken,
    stop: CancellationToken,
}

impl Standing {
    /// Stands for election, until it is left or the process is to stop: nothing is taken any more then, and what has nothing running is let go while the
    /// rest ends.
    pub fn begin(
        client: Client,
        options: LeaseOptions,
        tenure: Tenure,
        fence: Fence,
        stop: &CancellationToken,
    ) -> Self {
        let (namespace, name) = (options.namespace.clone(), options.name.clone());
        let leave = stop.child_token();
        let (leadership, election) = elect(client, options, tenure, fence, leave.clone());
        tracing::info!(namespace, name, "standing for election by the Lease");
        Self {
            leadership,
            election,
            leave,
            stop: stop.clone(),
        }
    }

    /// Waits until this process leads, and does `meanwhile` until then; `None` when it was to stop before.
    pub async fn lead(mut self, meanwhile: impl Future<Output = ()>) -> Result<Option<Self>, StandingError> {
        let waiting = async {
            meanwhile.await;
            pending::<()>().await;
        };
        tokio::select! {
            // Who is to end ends the election too, so that both are known at once.
            biased;
            () = self.stop.cancelled() => {}
            led = led(&mut self.leadership) => {
                led?;
                tracing::info!("leading");
                return Ok(Some(self));
            }
            () = waiting => {}
        }
        self.leave().await.map(|()| None)
    }

    /// Works as long as this process leads, and lets everything go when the work has ended. When a Lease is lost, `fenced` is cancelled, the work may go on
    /// for as long as `grace` to close what it has open, and the process has to end: whatever it still had in flight must not race with the next.
    pub async fn work<E>(
        mut self,
        work: impl Future<Output = Result<(), E>>,
        fenced: &CancellationToken,
        grace: Duration,
    ) -> Result<(), E>
    where
        E: From<StandingError>,
    {
        let mut work = Box::pin(work);
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            lost = self.lost() => {
                fenced.cancel();
                // Another process may be working: what comes of this is nobody's any more.
                let _ = timeout(grace, work).await;
                return Err(lost.into());
            }
        };
        self.leave().await?;
        outcome
    }

    /// Returns when a Lease was lost, and says why. An election that ends because the process is to end loses nothing.
    async fn lost(&mut self) -> StandingError {
        loop {
            if let Leadership::Lost(loss) = &*self.leadership.borrow_and_update() {
                return StandingError::Hold(loss.clone());
            }
            if self.leadership.changed().await.is_err() {
                if self.stop.is_cancelled() {
                    pending::<()>().await;
                }
                return StandingError::Stand;
            }
        }
    }

    /// Lets everything go that is held.
    async fn leave(self) -> Result<(), StandingError> {
        self.leave.cancel();
        self.election.await.map_err(StandingError::Leave)
    }
}

/// Returns when this process leads, or did, and says whom it waits for.
async fn led(leadership: &mut watch::Receiver<Leadership>) -> Result<(), StandingError> {
    loop {
        match &*leadership.borrow_and_update() {
            Leadership::Leading | Leadership::Lost(_) => return Ok(()),
            Leadership::Standby { holder: Some(holder) } => {
                tracing::info!(holder, "standing by; another replica holds the Lease");
            }
            Leadership::Standby { holder: None } => {}
        }
        leadership.changed().await.map_err(|_| StandingError::Stand)?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::told::Told;

    const SOON: Duration = Duration::from_secs(1);

    /// Somebody who stands as long as nobody makes it leave, and what is told of its leadership.
    fn standing() -> (Standing, watch::Sender<Leadership>, CancellationToken) {
        let (told, leadership) = watch::channel(Leadership::Standby { holder: None });
        let stop = CancellationToken::new();
        let leave = stop.child_token();
        let left = leave.clone();
        let standing = Standing {
            leadership,
            election: tokio::spawn(async move { left.cancelled().await }),
            leave,
            stop: stop.clone(),
        };
        (standing, told, stop)
    }

    fn loss() -> Loss {
        Loss {
            lease: "one".to_owned(),
            holder: Some("other".to_owned()),
            renew_deadline: SOON,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_does_something_meanwhile_until_it_leads() {
        let (standing, told, _stop) = standing();
        let log = Told::begin();
        let did = Arc::new(AtomicBool::new(false));
        let doing = Arc::clone(&did);
        let lead = standing.lead(async move { doing.store(true, Ordering::Relaxed) });
        let mut lead = std::pin::pin!(lead);
        assert!(timeout(SOON, &mut lead).await.is_err());
        assert!(did.load(Ordering::Relaxed));
        let holder = Some("other".to_owned());
        told.send_replace(Leadership::Standby { holder });
        assert!(timeout(SOON, &mut lead).await.is_err());
        told.send_replace(Leadership::Leading);
        let leading = lead.await.unwrap().unwrap();
        let log = log.lines().join("\n");
        assert!(log.contains("holder=\"other\"") && log.contains("leading"), "{log}");
        leading.leave().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_to_stop_does_not_lead() {
        let (standing, told, stop) = standing();
        told.send_replace(Leadership::Leading);
        stop.cancel();
        assert!(standing.lead(pending()).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_lost_is_named_with_who_has_it() {
        let (mut standing, told, _stop) = standing();
        told.send_replace(Leadership::Leading);
        assert!(timeout(SOON, standing.lost()).await.is_err());
        told.send_replace(Leadership::Lost(loss()));
        let words = standing.lost().await.to_string();
        assert_eq!(
            words,
            "lost the Lease one is held by other; another replica may be working now"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_election_that_ends_loses_something_unless_the_process_is_to_end() {
        let (mut alone, told, _stop) = standing();
        drop(told);
        assert!(matches!(alone.lost().await, StandingError::Stand));
        assert!(matches!(alone.lead(pending()).await, Err(StandingError::Stand)));
        let (mut ending, told, stop) = standing();
        stop.cancel();
        drop(told);
        assert!(timeout(SOON, ending.lost()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ends_lets_the_lease_go_and_tells_what_came_of_it() {
        let fenced = CancellationToken::new();
        let (done, _told, _stop) = standing();
        let worked = done.work(async { Ok::<_, StandingError>(()) }, &fenced, SOON).await;
        assert!(worked.is_ok());
        let (failed, _told, _stop) = standing();
        let worked = failed.work(async { Err(StandingError::Stand) }, &fenced, SOON).await;
        assert!(matches!(worked, Err(StandingError::Stand)));
        assert!(!fenced.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_with_its_lease_and_may_close_what_it_has_open() {
        let (standing, told, _stop) = standing();
        let fenced = CancellationToken::new();
        let closed = AtomicBool::new(false);
        let work = async {
            fenced.cancelled().await;
            closed.store(true, Ordering::Relaxed);
            pending().await
        };
        told.send_replace(Leadership::Lost(loss()));
        let worked: Result<(), StandingError> = standing.work(work, &fenced, SOON).await;
        assert!(matches!(worked, Err(StandingError::Hold(_))));
        assert!(closed.load(Ordering::Relaxed));
    }

    #[test]
    fn nothing_may_be_written_before_a_lease_is_held_where_leases_decide() {
        assert!(!permits(Some(1)).1.is_open());
        assert!(permits(None).1.is_open());
    }

    #[test]
    fn a_candidate_has_a_namespace_and_a_name_of_its_own() {
        let of = |namespace| candidacy(namespace, "lease", SOON, "members");
        assert_eq!(of("").namespace, "default");
        assert_eq!(of("fleet").namespace, "fleet");
        let pid = std::process::id().to_string();
        assert!(of("").identity.starts_with(&host()) && of("").identity.contains(&pid));
    }
}
