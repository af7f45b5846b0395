//! Holds the Leases of a process: decides again after each answer, and sends for what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use kube::client::Client;
use planning::election::{Candidate, Handover, Offers, Step, Timing};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::calls::{Calls, LAST_WORDS};
use super::desk::{Desk, Done, Errands, next, send};
use super::fence::Fence;
use super::group::Group;
use super::slot::{Slot, Terms, Trouble};
use super::tenure::Tenure;
use super::{Leadership, LeaseOptions, Loss};

/// Stands for the group where troubles are counted.
const GROUP: usize = usize::MAX;

pub(super) struct Elector {
    /// Absent where there is one Lease for everything.
    group: Option<Desk<Group>>,
    shards: Vec<Desk<Slot>>,
    joining: Errands<Group>,
    asking: Errands<Slot>,
    /// Who takes part, as the group was seen last.
    members: BTreeSet<String>,
    /// Free shards that are this process's share.
    taking: BTreeSet<u16>,
    /// Shards in which nothing may begin, so that they can be let go.
    giving: BTreeSet<u16>,
    handover: Handover,
    offers: Offers,
    /// Something may be worked on, as was published last.
    works: bool,
    /// The process is to end.
    leaving: bool,
    /// The group was left, or that was tried.
    left: bool,
    identity: String,
    name: String,
    timing: Timing,
    tenure: Tenure,
    fence: Fence,
    leadership: watch::Sender<Leadership>,
    /// The Leases of which a call failed, as long as that is so.
    troubled: BTreeSet<usize>,
}

impl Elector {
    pub(super) fn new(
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
        let terms = Terms {
            api,
            timing,
            clock: clock.clone(),
            calls: Calls::default(),
        };
        let slot = |name: String, identity: String| Slot::new(terms.clone(), name, identity);
        let count = tenure.count();
        let names = (0..count).map(|shard| shard_lease(&name, shard, count));
        let shards = names.map(|name| Desk::new(slot(name, identity.clone()))).collect();
        let group = (count > 1).then(|| {
            // All that members must agree on, so that who does not is no member.
            let common = format!("{count} shards, {} s", timing.lease_duration.as_secs());
            let (slot, me) = (slot(name.clone(), common), identity.clone());
            Desk::new(Group::new(slot, members, me, timing.lease_duration, clock))
        });
        Self {
            group,
            shards,
            joining: Errands::default(),
            asking: Errands::default(),
            members: BTreeSet::new(),
            taking: BTreeSet::new(),
            giving: BTreeSet::new(),
            handover: Handover::default(),
            offers: Offers::default(),
            works: false,
            leaving: false,
            left: false,
            identity,
            name,
            timing,
            tenure,
            fence,
            leadership,
            troubled: BTreeSet::new(),
        }
    }

    pub(super) async fn run(mut self, leave: CancellationToken) {
        let mut last_words: Option<Instant> = None;
        loop {
            if let Some(loss) = self.loss() {
                // What has run out by the clock may have been renewed; nothing is written before that is known, because the fence has the same clock.
                let end = *last_words.get_or_insert_with(|| Instant::now() + LAST_WORDS);
                if loss.holder.is_none() && self.hears(end).await {
                    continue;
                }
                self.fence.set(None);
                self.close();
                self.leadership.send_replace(Leadership::Lost(loss));
                return;
            }
            last_words = None;
            self.plan();
            self.publish();
            self.send_out();
            if self.is_done() {
                break;
            }
            let rest = self.rest();
            tokio::select! {
                done = next(&mut self.asking) => self.back(done),
                done = next(&mut self.joining) => self.group_back(done),
                () = sleep(rest) => {}
                () = self.tenure.pass_ended(), if !self.giving.is_empty() => {}
                () = leave.cancelled(), if !self.leaving => self.begin_to_leave(),
            }
        }
        let mut shards = self.shards.iter();
        if shards.any(|desk| self.is_named(desk))
            || self
                .group
                .as_ref()
                .is_some_and(|group| group.is_held() && group.has_failed())
        {
            tracing::info!("failed to release the lease; it runs out by itself");
        }
    }

    fn now(&self) -> Duration {
        self.fence.clock().now()
    }

    /// Whether an answer came, to whatever, of those that are waited for.
    async fn hears(&mut self, end: Instant) -> bool {
        if self.asking.is_empty() && self.joining.is_empty() {
            return false;
        }
        tokio::select! {
            Ok(done) = timeout_at(end, next(&mut self.asking)) => self.back(done),
            Ok(done) = timeout_at(end, next(&mut self.joining)) => self.group_back(done),
            else => return false,
        }
        true
    }

    fn shards(&self) -> impl Iterator<Item = (u16, &Desk<Slot>)> {
        (0..).zip(&self.shards)
    }

    /// The Lease that was lost, if one was. Who works on no shard loses nothing with the group.
    fn loss(&self) -> Option<Loss> {
        let now = self.now();
        let count = self.tenure.count();
        let mut shards = self.shards().map(|(shard, desk)| (shard, desk.candidate()));
        let lost = shards.find(|(_, candidate)| candidate.step(now) == Step::Resign);
        if let Some((shard, candidate)) = lost {
            return Some(self.loss_of(shard_lease(&self.name, shard, count), candidate));
        }
        let group = self.group.as_ref()?.candidate();
        (self.works && group.step(now) == Step::Resign).then(|| self.loss_of(self.name.clone(), group))
    }

    fn loss_of(&self, lease: String, candidate: &Candidate) -> Loss {
        let is_over = candidate.valid_until().is_none_or(|end| end <= self.now());
        let holder = || candidate.holder().unwrap_or_default().to_owned();
        Loss {
            lease,
            holder: (!is_over).then(holder),
            renew_deadline: self.timing.renew_deadline,
        }
    }

    /// Decides what to take and what to give, so that each member has its share.
    fn plan(&mut self) {
        let now = self.now();
        self.taking.clear();
        if self.leaving {
            self.giving = (0..self.tenure.count()).collect();
            return;
        }
        self.giving.clear();
        if !self.is_admitted(now) {
            // A shard that came too late: nobody begins without the others.
            self.giving = (0..self.tenure.count()).collect();
            return self.forget_group(now);
        }
        let holders: Vec<Option<String>> = self.shards.iter().map(|desk| self.holder(desk, now)).collect();
        let holders: Vec<Option<&str>> = holders.iter().map(Option::as_deref).collect();
        let patience = self.timing.renew_deadline;
        let share = self
            .offers
            .share(&self.identity, &self.members, &holders, (now, patience));
        // Let go in vain, or our own write whose answer was lost.
        let named = self.shards().filter(|(_, desk)| !desk.is_held() && self.is_named(desk));
        let named: Vec<u16> = named.map(|(shard, _)| shard).collect();
        let (given, kept) = named.split_at(share.give.min(named.len()));
        let held = self.shards().filter(|(_, desk)| desk.is_held());
        let held: BTreeMap<u16, bool> = held.map(|(shard, _)| (shard, self.tenure.is_idle(shard))).collect();
        // Who takes a shard now must not find in it later what left here before.
        let give = if self.fence.awaits_writes() {
            0
        } else {
            share.give - given.len()
        };
        self.giving = self.handover.shut(give, &held, now, patience);
        self.giving.extend(given);
        self.taking = share.take;
        self.taking.extend(kept);
    }

    fn is_admitted(&self, now: Duration) -> bool {
        let end = |group: &Desk<Group>| group.candidate().valid_until();
        self.group
            .as_ref()
            .is_none_or(|group| end(group).is_some_and(|end| now < end))
    }

    /// Who was no member for too long becomes one like a newcomer. Nothing is held then.
    fn forget_group(&mut self, now: Duration) {
        if let Some(group) = self.group.as_mut().and_then(Desk::lease)
            && group.slot.candidate.step(now) == Step::Resign
        {
            group.slot.candidate.released();
        }
    }

    /// `None` where nobody holds it.
    fn holder(&self, desk: &Desk<Slot>, now: Duration) -> Option<String> {
        let candidate = desk.candidate();
        if desk.is_held() || self.is_named(desk) {
            return Some(self.identity.clone());
        }
        // Not known is not free.
        let holder = || candidate.holder().unwrap_or_default().to_owned();
        (!candidate.is_free(now)).then(holder)
    }

    /// Lets be worked on what is held, for as long as it is certain.
    fn publish(&mut self) {
        let works = self.is_admitted(self.now()) && self.shards.iter().any(Desk::is_held);
        self.works = works;
        let group = self.group.iter().map(Desk::candidate);
        let all = self.shards.iter().map(Desk::candidate).chain(group);
        let end = all.filter_map(Candidate::valid_until).min();
        self.fence.set(end.filter(|_| works));
        for (shard, desk) in self.shards() {
            if desk.is_held() && !self.giving.contains(&shard) {
                self.tenure.open(shard);
            } else {
                self.tenure.close(shard);
            }
        }
        let now = if works {
            Leadership::Leading
        } else {
            let group = self.group.as_ref().filter(|_| !self.is_admitted(self.now()));
            let other = self.shards.first().filter(|_| self.group.is_none());
            let candidate = group.map(Desk::candidate).or(other.map(Desk::candidate));
            Leadership::Standby {
                holder: candidate.and_then(Candidate::holder).map(str::to_owned),
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

    /// Sends for everything that is to be done now.
    fn send_out(&mut self) {
        let now = self.now();
        let due = now.saturating_add(self.timing.retry_period);
        let errands: Vec<Option<Errand>> = self
            .shards()
            .map(|(shard, desk)| self.errand(shard, desk, now))
            .collect();
        for (index, (errand, desk)) in errands.into_iter().zip(&mut self.shards).enumerate() {
            let Some(errand) = errand else { continue };
            if errand == Errand::Give
                && let Some(slot) = desk.lease()
            {
                slot.candidate.released();
            }
            if let Some(slot) = desk.away(errand == Errand::Look, due) {
                send(&self.asking, index, errand.run(slot));
            }
        }
        self.send_group(now, due);
        let well = |desk: &usize| match self.shards.get(*desk) {
            Some(desk) => desk.is_well(),
            None => self.group.as_ref().is_none_or(Desk::is_well),
        };
        self.troubled.retain(|desk| !well(desk));
    }

    fn errand(&self, shard: u16, desk: &Desk<Slot>, now: Duration) -> Option<Errand> {
        let gives = self.giving.contains(&shard);
        if desk.is_held() || gives && self.is_named(desk) {
            // What was let go in vain when the process is to end runs out by itself.
            let is_over = self.leaving && desk.has_failed() && !desk.is_held();
            if gives && self.tenure.is_idle(shard) && desk.is_ready(now) && !is_over {
                return Some(Errand::Give);
            }
            return (desk.is_held() && desk.is_due(now)).then_some(Errand::Renew);
        }
        if self.leaving {
            return None;
        }
        // Before the next look, which may be due by now: who is answered slowly must not look for ever.
        if self.taking.contains(&shard) && desk.is_ready(now) {
            return Some(Errand::Take);
        }
        desk.is_due(now).then_some(Errand::Look)
    }

    fn send_group(&mut self, now: Duration, due: Duration) {
        let leaves = self.leaving && self.is_free();
        let leaving = self.leaving;
        let Some(desk) = &mut self.group else { return };
        // Not while it joins.
        let Some(due_now) = desk.due().map(|due| now >= due) else {
            return;
        };
        if leaves && !desk.is_held() {
            self.left = true;
        }
        if self.left || !leaves && !due_now {
            return;
        }
        self.left = leaves;
        let Some(mut group) = desk.away(false, due) else { return };
        send(&self.joining, GROUP, async move {
            let outcome = if leaves {
                group.leave().await
            } else {
                group.join(leaving).await
            };
            (group, outcome)
        });
    }

    fn back(&mut self, done: Done<Slot>) {
        self.tell(done.desk, done.outcome.as_ref().err());
        if let Some(desk) = self.shards.get_mut(done.desk) {
            desk.back(done);
        }
    }

    fn group_back(&mut self, done: Done<Group>) {
        self.tell(done.desk, done.outcome.as_ref().err());
        if let Some(desk) = &mut self.group {
            desk.back(done);
            self.members = desk.lease().map(|group| group.living()).unwrap_or_default();
        }
    }

    /// Tried again in seconds, so that only the first failure is said aloud until all goes well.
    fn tell(&mut self, desk: usize, trouble: Option<&Trouble>) {
        let Some(Trouble { what, error }) = trouble else { return };
        if self.troubled.is_empty() {
            tracing::warn!(error, "{what}; it is tried again by itself");
        } else {
            tracing::debug!(error, "{what}");
        }
        self.troubled.insert(desk);
    }

    /// Nothing new begins from now on, and others may count without this process.
    fn begin_to_leave(&mut self) {
        self.leaving = true;
        if let Some(group) = &mut self.group {
            group.hurry();
        }
    }

    /// Whether it is in the name of this process, held or not.
    fn is_named(&self, desk: &Desk<Slot>) -> bool {
        desk.candidate().holder() == Some(&self.identity)
    }

    /// Whether no shard is held any more, nor about to be.
    fn is_free(&self) -> bool {
        let is_tried = |desk: &Desk<Slot>| self.is_named(desk) && !desk.has_failed();
        let mut shards = self.shards.iter();
        shards.all(|desk| desk.is_quiet() && !desk.is_held() && !is_tried(desk))
    }

    /// Whether everything was let go that can be.
    fn is_done(&self) -> bool {
        let has_left = self
            .group
            .as_ref()
            .is_none_or(|group| self.left && group.due().is_some());
        self.leaving && self.is_free() && has_left
    }

    /// Until something is due, or runs out: a holder must notice in time that it is none.
    fn rest(&self) -> Duration {
        let now = self.now();
        let group = self
            .group
            .iter()
            .flat_map(|desk| [desk.due(), desk.candidate().valid_until()]);
        let shards = self
            .shards
            .iter()
            .flat_map(|desk| [desk.due(), desk.candidate().valid_until()]);
        let moments = group.chain(shards).flatten();
        let next = moments.filter(|moment| *moment > now).min();
        let rest = next.map_or(self.timing.retry_period, |next| next.saturating_sub(now));
        rest.min(self.timing.retry_period)
    }
}

/// What is done about the Lease of a shard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errand {
    Look,
    Take,
    Renew,
    Give,
}

impl Errand {
    async fn run(self, mut slot: Slot) -> (Slot, Result<(), Trouble>) {
        let outcome = match self {
            Self::Look => slot.look().await,
            Self::Take => slot.take().await,
            Self::Renew => slot.renew().await,
            Self::Give => slot.give().await,
        };
        (slot, outcome)
    }
}

/// What the Lease of a shard is called; with one for everything it has the usual name.
fn shard_lease(name: &str, shard: u16, count: u16) -> String {
    if count == 1 {
        name.to_owned()
    } else {
        format!("{name}-shard-{shard}-of-{count}")
    }
}
