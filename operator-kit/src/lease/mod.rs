//! Divides the work among replicas by Leases, after the protocol of client-go's leader election: one Lease for everything, or one for each shard.
//!
//! Clocks are never compared: a replica takes a Lease over when *it* has not seen it change for as long as the holder promised. What may be written is
//! bounded by the [`Fence`], what is worked on by the [`Tenure`]. Who lost a Lease against its will must stop at once; the usual way is to end the
//! process.
//!
//! With several shards all replicas that agree on the number hold the Lease of the usual name together, and list themselves in it. A replica with
//! another number, or one that knows no shards, waits until the last of them has let it go or fallen silent: nothing is worked on under two numbers at
//! the same time.

mod calls;
mod clock;
mod desk;
mod elector;
mod fence;
mod group;
mod slot;
mod tenure;

use std::fmt;
use std::time::Duration;

use kube::client::Client;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use planning::election::Timing;

pub use self::calls::LEASE_CALLS;
pub use self::clock::Clock;
pub use self::fence::Fence;
pub use self::tenure::{Held, Pass, Tenure};

use self::elector::Elector;

/// Which Lease, and under which name to hold it.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// Where the Leases live.
    pub namespace: String,
    /// The Lease's name, one per set of replicas. Those of shards are called `<name>-shard-<n>-of-<count>`.
    pub name: String,
    /// Unique per process, also across restarts of one pod: a process must never take its predecessor for itself.
    pub identity: String,
    /// How patient everybody is; replicas that share shards must agree.
    pub timing: Timing,
    /// The annotation of the Lease with the list of replicas that share shards.
    pub members: &'static str,
}

/// Where this process stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Others work, or it is not known yet.
    Standby {
        /// Who does, where one is known.
        holder: Option<String>,
    },
    /// This process works, on everything or on some shards: the [`Tenure`] tells which.
    Leading,
    /// This process held a Lease and lost it. Final.
    Lost(Loss),
}

/// How a Lease was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Its name.
    pub lease: String,
    /// Who has it now, where that was seen. Otherwise it was not renewed in time.
    pub holder: Option<String>,
    /// How long it is held without being renewed.
    pub renew_deadline: Duration,
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lease,
            holder,
            renew_deadline,
        } = self;
        match holder {
            Some(holder) if holder.is_empty() => write!(out, "{lease} was let go by somebody else"),
            Some(holder) => write!(out, "{lease} is held by {holder}"),
            None => write!(
                out,
                "{lease} was not renewed for {renew_deadline:?}: the API server did not answer, or this process or its machine stood still"
            ),
        }
    }
}

/// Stands for election until `leave`; then nothing is taken any more, nothing new may begin, and each Lease is released as soon as nothing runs under
/// it, so that the next holder need not wait.
///
/// The task ends when everything is released, or when a Lease was lost.
pub fn elect(
    client: Client,
    options: LeaseOptions,
    tenure: Tenure,
    fence: Fence,
    leave: CancellationToken,
) -> (watch::Receiver<Leadership>, JoinHandle<()>) {
    let (leadership, receiver) = watch::channel(Leadership::Standby { holder: None });
    let elector = Elector::new(client, options, tenure, fence, leadership);
    (receiver, tokio::spawn(elector.run(leave)))
}

#[cfg(test)]
mod tests;
