//! Which kinds are watched where watches are dear, and which are listed now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::{Inner, Running, watch};
use crate::discovery::Resolved;
use crate::object::GroupKind;
use crate::watching::Pace;

/// How many watches there may be.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Kinds that are watched at once: the first ones that are asked for, and those that matter before others. What is beyond is listed.
    pub watches: usize,
    /// From the end of a list to the next one of the same kind.
    pub list_pause: Duration,
    /// Of which kinds the watch matters more than that of others: when there are no more, they get that of another one.
    pub matters: fn(&GroupKind) -> bool,
    /// How many watches there are, of all that share it.
    pub count: Gauge,
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
        let known = running.get_mut(kind).map(|known| {
            known.asked = Instant::now();
            (known.resolved.clone(), known.is_watched)
        });
        match (known, served) {
            (Some((_, true)), _) => true,
            (Some((resolved, false)), _) => {
                if self.makes_room(&mut running, kind) {
                    self.begin(&mut running, kind, resolved, true);
                }
                true
            }
            (None, Some(resolved)) => {
                let is_watched = self.makes_room(&mut running, kind);
                self.begin(&mut running, kind, resolved, is_watched);
                true
            }
            (None, None) => false,
        }
    }

    /// Whether a kind may be watched. Where there are no more watches, one that matters takes that of one which does not.
    fn makes_room(self: &Arc<Self>, running: &mut HashMap<GroupKind, Running>, kind: &GroupKind) -> bool {
        let Some(budget) = &self.budget else { return true };
        let watched = || running.iter().filter(|(_, running)| running.is_watched);
        if watched().count() < budget.watches {
            return true;
        }
        let lesser = watched()
            .map(|(kind, _)| kind)
            .filter(|kind| !(budget.matters)(kind))
            .min();
        let Some(lesser) = lesser.filter(|_| (budget.matters)(kind)).cloned() else {
            return false;
        };
        let resolved = running.get(&lesser).map(|running| running.resolved.clone());
        if let Some(resolved) = resolved {
            self.begin(running, &lesser, resolved, false);
        }
        true
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
