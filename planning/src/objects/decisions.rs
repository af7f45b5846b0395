//! What becomes of all objects of an owner: of those that are wanted, and then of those that nobody wants any more.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::observed::ObjectObserved;
use super::prune::{Fate, fate, within_limit};
use super::set::ObjectSet;
use super::sync::{Sync, decide};
use crate::next::Next;
use crate::object_key::{GroupKind, ObjectKey};

/// What was decided about the objects, before it becomes steps and a status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions {
    /// Objects that are wanted.
    pub wanted: BTreeMap<ObjectKey, Sync>,
    /// Objects that have to go or are let go.
    pub leftovers: BTreeMap<ObjectKey, Fate>,
    /// Objects that stay as they are, and in the inventory: leftovers that wait for others or for an approval, and what the owner holds back.
    pub held: BTreeSet<ObjectKey>,
    /// The approval that leftovers wait for, where that is all they wait for.
    pub asked: Option<Asked>,
    /// Leftovers that somebody has approved to delete, of which the status does not say so yet.
    pub approved: BTreeSet<ObjectKey>,
}

/// An approval that somebody has to give before as many objects go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What `approve-prune` has to say.
    pub digest: String,
    /// How many objects would go.
    pub objects: usize,
}

impl Decisions {
    /// Whether all that is wanted is as it is to be, or is left otherwise for good.
    pub fn is_settled(&self) -> bool {
        self.wanted.values().all(|sync| sync.state.is_settled())
    }

    /// Whether nothing is left to do of what has to go.
    pub fn is_over(&self) -> bool {
        self.leftovers.values().all(Fate::is_over)
    }

    /// The kinds of what is wanted.
    pub fn group_kinds(&self) -> BTreeSet<GroupKind> {
        self.wanted.keys().map(ObjectKey::group_kind).collect()
    }

    /// When time alone changes what was decided.
    pub fn next(&self) -> Next {
        let wanted = self.wanted.values().map(|sync| sync.next);
        let leftovers = self.leftovers.values().map(Fate::next);
        wanted.chain(leftovers).fold(Next::Await, Next::sooner)
    }
}

impl ObjectSet<'_> {
    /// What becomes of the objects of an owner that may install them: those that are wanted are brought in line, and leftovers go once all of them are,
    /// since what replaces a leftover has to stand before that goes. Nothing at all without intents.
    pub fn installation(&self, now: Timestamp) -> Decisions {
        let Some(intents) = self.intents else {
            return Decisions::default();
        };
        let (held, stale) = self.parted(|key| !intents.contains_key(key));
        let installed = Decisions {
            wanted: self.syncs(now),
            ..Decisions::default()
        };
        let mut decisions = if installed.is_settled() {
            Decisions {
                wanted: installed.wanted,
                ..within_limit(self, self.fates(stale, now))
            }
        } else {
            Decisions {
                held: stale,
                ..installed
            }
        };
        decisions.held.extend(held);
        decisions
    }

    /// How each object that is wanted and not held back is, and what brings it in line. Nothing without intents.
    pub fn syncs(&self, now: Timestamp) -> BTreeMap<ObjectKey, Sync> {
        let nothing = ObjectObserved::default();
        let intents = self.intents.into_iter().flatten();
        intents
            .filter(|(key, _)| !self.held.contains(*key))
            .map(|(key, intent)| {
                let object = self.objects.get(key).unwrap_or(&nothing);
                (key.clone(), decide(self, key, intent, object, now))
            })
            .collect()
    }

    /// What becomes of the objects of an owner that wants none any more: all go that are not held back, however many, the last wave first.
    pub fn removal(&self, now: Timestamp) -> Decisions {
        let (held, going) = self.parted(|_| true);
        Decisions {
            leftovers: self.fates(going, now),
            held,
            ..Decisions::default()
        }
    }

    /// What becomes of the objects while nothing is known of what has to be known: all stay.
    pub fn untouched(&self) -> Decisions {
        Decisions {
            held: self.objects.keys().cloned().collect(),
            ..Decisions::default()
        }
    }

    /// The objects that are held back, as far as anything is known of them, and those of the others that are meant.
    fn parted(&self, is_meant: impl Fn(&ObjectKey) -> bool) -> (BTreeSet<ObjectKey>, BTreeSet<ObjectKey>) {
        let (mut held, mut meant) = (BTreeSet::new(), BTreeSet::new());
        for (key, object) in self.objects {
            if self.held.contains(key) {
                if object.is_ours() || self.row(key).is_some() {
                    held.insert(key.clone());
                }
            } else if is_meant(key) {
                meant.insert(key.clone());
            }
        }
        (held, meant)
    }

    fn fates(&self, keys: BTreeSet<ObjectKey>, now: Timestamp) -> BTreeMap<ObjectKey, Fate> {
        let nothing = ObjectObserved::default();
        keys.into_iter()
            .map(|key| {
                let object = self.objects.get(&key).unwrap_or(&nothing);
                let fate = if self.is_out_of_reach(&key) {
                    Fate::LeftAlone
                } else {
                    fate(&key, object, self.inventoried(&key), now)
                };
                (key, fate)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
