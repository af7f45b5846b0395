//! What is watched where watches are dear, and what is listed now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::named::Names;
use super::{Inner, Running, watch};
use crate::discovery::Resolved;
use crate::object::GroupKind;
use crate::watching::Pace;

/// How many watches there may be.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Watches at once. They go to kinds that matter, then to single objects that somebody waits for, then to other kinds; among these to whoever asks first. What is
    /// beyond is listed, or read.
    pub watches: usize,
    /// From the end of a list to the next one of the same kind.
    pub list_pause: Duration,
    /// Of which kinds the watch matters more than any other: when there are no more, they get that of something else.
    pub matters: fn(&GroupKind) -> bool,
    /// How many watches there are, of all that share it.
    pub count: Gauge,
}

/// Whose watch is asked for, the lesser ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claim {
    /// That of a kind.
    Kind,
    /// That of an object that somebody waits for.
    Name,
    /// That of a kind that matters.
    KindThatMatters,
}

/// A watch, as long as it is counted.
#[derive(Debug)]
pub struct Counted(Gauge);

impl Counted {
    /// One more.
    pub fn begin(count: &Gauge) -> Self {
        count.inc();
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Inner {
    /// Follows a kind from now on, as well as that may be. False where it is not followed yet, and nobody says how it is served.
    pub(super) fn follow(self: &Arc<Self>, kind: &GroupKind, served: Option<Resolved>) -> bool {
        let mut running = self.running();
        let mut names = self.names();
        let known = running.get_mut(kind).map(|known| {
            known.asked = Instant::now();
            (known.resolved.clone(), known.is_watched)
        });
        match (known, served) {
            (Some((_, true)), _) => true,
            (Some((resolved, false)), _) => {
                if self.makes_room((&mut running, &mut names), self.claim_of(kind)) {
                    self.begin(&mut running, kind, resolved, true);
                }
                true
            }
            (None, Some(resolved)) => {
                let is_watched = self.makes_room((&mut running, &mut names), self.claim_of(kind));
                self.begin(&mut running, kind, resolved, is_watched);
                true
            }
            (None, None) => false,
        }
    }

    fn claim_of(&self, kind: &GroupKind) -> Claim {
        match &self.budget {
            Some(budget) if !(budget.matters)(kind) => Claim::Kind,
            _ => Claim::KindThatMatters,
        }
    }

    /// Whether there may be one more watch. Where there are no more, that of the least claim is ended, if it is less than this one.
    pub(super) fn makes_room(
        self: &Arc<Self>,
        (running, names): (&mut HashMap<GroupKind, Running>, &mut Names),
        claim: Claim,
    ) -> bool {
        let Some(budget) = &self.budget else { return true };
        let watched = || running.iter().filter(|(_, running)| running.is_watched);
        if watched().count() + names.watched() < budget.watches {
            return true;
        }
        let lesser = watched()
            .filter(|(kind, _)| claim > Claim::Kind && self.claim_of(kind) == Claim::Kind)
            .min_by(|(one, _), (other, _)| one.cmp(other))
            .map(|(kind, running)| (kind.clone(), running.resolved.clone()));
        if let Some((lesser, resolved)) = lesser {
            self.begin(running, &lesser, resolved, false);
            return true;
        }
        let is_given_up = claim > Claim::Name && names.give_up_watch();
        if is_given_up {
            self.begin_reading(names);
        }
        is_given_up
    }

    /// Begins to follow a kind, also one that was followed the other way: what is known of it stays, and its first list tells what changed in
    /// between.
    fn begin(
        self: &Arc<Self>,
        running: &mut HashMap<GroupKind, Running>,
        kind: &GroupKind,
        resolved: Resolved,
        is_watched: bool,
    ) {
        let end = self.cancel.child_token();
        if let Some(known) = running.get_mut(kind) {
            known.end.cancel();
            known.is_watched = is_watched;
            known.end = end.clone();
        } else {
            let begun = Running {
                resolved: resolved.clone(),
                is_watched,
                synced: false,
                trouble: None,
                asked: Instant::now(),
                end: end.clone(),
            };
            running.insert(kind.clone(), begun);
        }
        let (pace, counted) = match &self.budget {
            Some(budget) if is_watched => (Pace::Watch, Some(Counted::begin(&budget.count))),
            Some(budget) => (Pace::Lists(budget.list_pause), None),
            None => (Pace::Watch, None),
        };
        let (inner, kind) = (Arc::clone(self), kind.clone());
        tokio::spawn(async move {
            watch::run(inner, kind, (resolved, pace), end).await;
            drop(counted);
        });
    }
}
