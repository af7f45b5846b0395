//! What is watched where watches are dear, and what is listed now and then; and how much is remembered of what nobody here has a hand in.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::named::Names;
use super::seen::Seen;
use super::{Inner, Running, watch};
use crate::discovery::Resolved;
use crate::object::{GroupKind, ObjectKey};
use crate::watching::Pace;

/// Bytes of all texts that are kept of an object. Names have at most 253, and a dozen owners are many.
const LARGEST: usize = 4 << 10;

/// How many watches there may be, and how much is remembered of what they show.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Watches at once. They go to kinds that matter, then to single objects that somebody waits for, then to other kinds; among these to whoever asks first. What is
    /// beyond is listed, or read.
    pub watches: usize,
    /// Objects of ours that are remembered, of all kinds together. A kind that has more of them is not listed to its end, and is tried again after the pause between
    /// two lists; [`Trouble`](super::Trouble) tells that.
    pub objects: usize,
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

/// Why what an API server shows is not remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    /// There are more objects than may be.
    #[error(
        "the API server shows more than {most} objects as those of one owner; look what made them, and whether it is one"
    )]
    Objects {
        /// So many may be.
        most: usize,
    },
    /// One is larger than may be.
    #[error(
        "the API server shows an object whose name and owners have more than {LARGEST} bytes; look whether it is one"
    )]
    Object,
}

impl Inner {
    /// Whether what is seen of an object is too much to be remembered; `listed` are in the same list.
    pub(super) fn excess(&self, key: &ObjectKey, seen: Option<&Seen>, listed: usize) -> Option<Excess> {
        let most = self.budget.as_ref()?.objects;
        let is_new = || {
            let store = self.store();
            seen.is_some() && store.len() >= most && store.get(key).is_none()
        };
        if key.name.len() + key.namespace.len() + seen.map_or(0, Seen::size) > LARGEST {
            Some(Excess::Object)
        } else {
            (listed >= most || is_new()).then_some(Excess::Objects { most })
        }
    }

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
