//! Divides the work among replicas by Leases, after the protocol of client-go's leader election: one Lease for everything, or one for each shard.
//!
//! Clocks are never compared: a replica takes a Lease over when *it* has not seen it change for as long as the holder promised. What may be written is
//! bounded by the [`Fence`], what is worked on by the [`Tenure`]. Who lost a Lease against its will must stop at once; the usual way is to end the
//! process.
//!
//! With several shards all replicas that agree on the number hold the Lease of the usual name together, and list themselves in it. A replica with
//! another number, or one that knows no shards, waits until the last of them has let it go or fallen silent: nothing is worked on under two numbers at
//! the same time.

mod clock;
mod fence;
mod group;
mod slot;
mod tenure;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use kube::client::Client;
use planning::election::{Step, share};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

pub use planning::election::Timing;

pub use self::clock::Clock;
pub use self::fence::Fence;
pub use self::tenure::{Held, Pass, Tenure};

use self::group::Group;
use self::slot::{Slot, Trouble};

/// How often letting a Lease go is tried.
const ATTEMPTS: u32 = 2;

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
    Lost,
}

/// Stands for election until `cancel`; then what is held is released, so that the next holder need not wait. Nothing may run in any shard by then.
///
/// The task ends after the release, or when a Lease was lost.
pub fn elect(
    client: Client,
    options: LeaseOptions,
    tenure: Tenure,
    fence: Fence,
    cancel: CancellationToken,
) -> (watch::Receiver<Leadership>, JoinHandle<()>) {
    let (leadership, receiver) = watch::channel(Leadership::Standby { holder: None });
    let elector = Elector::new(client, options, tenure, fence, leadership);
    (receiver, tokio::spawn(elector.run(cancel)))
}

struct Elector {
    /// Absent where there is one Lease for everything.
    group: Option<Group>,
    shards: Vec<Slot>,
    /// Shards that are held and not wanted any more.
    giving: BTreeSet<u16>,
    identity: String,
    retry_period: Duration,
    tenure: Tenure,
    fence: Fence,
    leadership: watch::Sender<Leadership>,
    /// A call of the last round failed, and that was said.
    troubled: bool,
}

impl Elector {
    fn new(
        client: Client,
        options: LeaseOptions,
        tenure: Tenure,
        fence: Fence,
        leadership: watch::Sender<Leadership>,
    ) -> Self {
        let LeaseOptions {
            namespace,
            name,
            identity,
            timing,
            members,
        } = options;
        let api: Api<Lease> = Api::namespaced(client, &namespace);
        let clock = fence.clock().clone();
        let slot = |name: String, identity: String| Slot::new(api.clone(), name, identity, timing, clock.clone());
        let count = tenure.count();
        let (group, shards) = if count == 1 {
            (None, vec![slot(name, identity.clone())])
        } else {
            // All that members must agree on, so that who does not is no member.
            let common = format!("{count} shards, {} s", timing.lease_duration.as_secs());
            let group = Group::new(
                slot(name.clone(), common),
                members,
                identity.clone(),
                timing.lease_duration,
                clock.clone(),
            );
            let shards = (0..count).map(|shard| slot(format!("{name}-shard-{shard}-of-{count}"), identity.clone()));
            (Some(group), shards.collect())
        };
        Self {
            group,
            shards,
            giving: BTreeSet::new(),
            identity,
            retry_period: timing.retry_period,
            tenure,
            fence,
            leadership,
            troubled: false,
        }
    }

    async fn run(mut self, cancel: CancellationToken) {
        loop {
            match cancel.run_until_cancelled(self.round()).await {
                Some(true) => {}
                Some(false) => return,
                None => return self.leave().await,
            }
        }
    }

    /// Looks, writes, and the wait after them; false when a Lease was lost.
    async fn round(&mut self) -> bool {
        let mut troubles = self.keep().await;
        if !self.has_lost() && self.is_admitted() {
            troubles.extend(self.divide().await);
        }
        if self.has_lost() {
            self.fence.set(None);
            self.close();
            self.leadership.send_replace(Leadership::Lost);
            return false;
        }
        self.tell(troubles);
        self.publish();
        sleep(self.patience().min(self.retry_period)).await;
        true
    }

    /// Renews what is held and looks at the rest, all at once: one call that hangs must not cost the other Leases.
    async fn keep(&mut self) -> Vec<Trouble> {
        let group = async {
            match &mut self.group {
                Some(group) => group.join().await.err(),
                None => None,
            }
        };
        let shards = join_all(self.shards.iter_mut().map(keep));
        let (group, shards) = tokio::join!(group, shards);
        group.into_iter().chain(shards.into_iter().flatten()).collect()
    }

    fn is_admitted(&self) -> bool {
        self.group.as_ref().is_none_or(Group::is_joined)
    }

    /// Takes and gives shards, so that each member has its share.
    async fn divide(&mut self) -> Vec<Trouble> {
        let now = self.fence.clock().now();
        let members = self.group.as_ref().map(Group::living).unwrap_or_default();
        let holder = |slot: &'_ Slot| -> Option<String> {
            if slot.is_ours() {
                return Some(self.identity.clone());
            }
            let holder = slot.candidate.holder().filter(|_| !slot.candidate.is_free(now));
            // Not known is not free.
            let unknown = (!slot.candidate.is_free(now)).then(String::new);
            holder.map(str::to_owned).or(unknown)
        };
        let holders: Vec<Option<String>> = self.shards.iter().map(holder).collect();
        let holders: Vec<Option<&str>> = holders.iter().map(Option::as_deref).collect();
        let share = share(&self.identity, &members, &holders);
        self.giving = share.give;
        let (giving, tenure) = (&self.giving, &self.tenure);
        let calls = (0..).zip(&mut self.shards).map(async |(shard, slot)| {
            if giving.contains(&shard) {
                tenure.close(shard);
                // What runs there goes on under the Lease, which is kept until it has ended.
                if tenure.is_idle(shard) {
                    return slot.release().await.err();
                }
            } else if share.take.contains(&shard) || slot.is_ours() && slot.candidate.valid_until().is_none() {
                return slot.write().await.err();
            }
            None
        });
        join_all(calls).await.into_iter().flatten().collect()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let group = self.group.as_ref().map(|group| &group.slot);
        self.shards.iter().chain(group)
    }

    fn has_lost(&self) -> bool {
        let now = self.fence.clock().now();
        self.slots().any(|slot| slot.candidate.step(now) == Step::Resign)
    }

    /// How long a call or a pause may last: a holder must notice in time that it is none.
    fn patience(&self) -> Duration {
        let now = self.fence.clock().now();
        let patience = self.slots().map(|slot| slot.candidate.patience(now));
        patience.min().unwrap_or_default()
    }

    /// Tried again in seconds, so that only the first failure is said aloud until a round goes without one.
    fn tell(&mut self, troubles: Vec<Trouble>) {
        let well = troubles.is_empty();
        for Trouble { what, error } in troubles {
            if std::mem::replace(&mut self.troubled, true) {
                tracing::debug!(error, "{what}");
            } else {
                tracing::warn!(error, "{what}; it is tried again by itself");
            }
        }
        self.troubled &= !well;
    }

    /// Lets be worked on what is held, for as long as it is certain.
    fn publish(&self) {
        let held: Vec<bool> = self
            .shards
            .iter()
            .map(|slot| slot.candidate.valid_until().is_some())
            .collect();
        let works = held.contains(&true);
        let ends = self.slots().filter_map(|slot| slot.candidate.valid_until());
        self.fence.set(ends.min().filter(|_| works));
        for (shard, held) in (0..).zip(held) {
            if held && !self.giving.contains(&shard) {
                self.tenure.open(shard);
            } else {
                self.tenure.close(shard);
            }
        }
        let now = if works {
            Leadership::Leading
        } else {
            let other = self.group.as_ref().map_or(&self.shards[..], |_| &[]).first();
            let group = self.group.as_ref().filter(|group| !group.is_joined());
            let slot = group.map(|group| &group.slot).or(other);
            Leadership::Standby {
                holder: slot.and_then(|slot| slot.candidate.holder()).map(str::to_owned),
            }
        };
        self.leadership.send_if_modified(|state| {
            let changed = *state != now;
            *state = now;
            changed
        });
    }

    fn close(&self) {
        for shard in 0..self.tenure.count() {
            self.tenure.close(shard);
        }
    }

    /// Lets everything go. Best effort: without it the others wait for as long as we promised.
    async fn leave(&mut self) {
        self.close();
        self.fence.set(None);
        let releases = join_all(self.shards.iter_mut().map(let_go)).await;
        let left = match &mut self.group {
            Some(group) => group.leave().await.is_ok(),
            None => true,
        };
        if !left || releases.contains(&false) {
            tracing::info!("failed to release the lease; it runs out by itself");
        }
    }
}

/// Renews a shard's Lease that is held, and looks at any other.
async fn keep(slot: &mut Slot) -> Option<Trouble> {
    let held = slot.candidate.valid_until().is_some();
    let looked = if held && slot.certain {
        Ok(())
    } else {
        slot.look().await
    };
    if !held {
        return looked.err();
    }
    // Also after a look that failed: the last one may still be true.
    let renewed = match slot.step() {
        Step::Write => slot.write().await.map(drop),
        Step::Wait | Step::Resign => Ok(()),
    };
    looked.err().or(renewed.err())
}

/// False when it could not be let go.
async fn let_go(slot: &mut Slot) -> bool {
    if slot.candidate.valid_until().is_none() {
        return true;
    }
    for _ in 0..ATTEMPTS {
        match slot.release().await {
            Ok(true) => return true,
            // A renewal of ours may have been under way.
            Ok(false) if slot.look().await.is_ok() && slot.is_ours() => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests;
