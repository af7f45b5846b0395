//! What to do about one object that is wanted.

use std::fmt::Write;

use crds::policy::DriftPolicy;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::{ApplyReason, ObjectAction};
use super::inventory::Inventoried;
use super::observed::{Attempt, Belongs, Failure, Holder, Intent, ObjectObserved, Read, Seen, Standing};
use super::set::{ObjectSet, OwnerKind};
use super::terminating::terminating;
use crate::contest::{contested_until, tell};
use crate::health;
use crate::next::{Next, rests_until, retry_delay_seconds};
use crate::object_key::ObjectKey;
use crate::stored_data::is_definition;

/// A look that fails says nothing about the object; from this many in a row on it is told.
const TOLD_LOOKS: u32 = 3;

/// How soon to look again at a release that holds an object and has not said yet what it applied.
const HOLDER_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// An object with another owner's mark, which no watch shows, is read this often: nothing else tells when it is given up.
const FOREIGN_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// What the decision about one object came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sync {
    /// What to do now, if anything.
    pub action: Option<ObjectAction>,
    /// Where the object stands.
    pub state: SyncState,
    /// When time alone would change the decision.
    pub next: Next,
}

/// Where one object stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncState {
    /// The live object holds the intent.
    Synced,
    /// The live object differs, and the drift policy says to leave it.
    Drifted {
        /// What differs and who did it.
        message: String,
    },
    /// Somebody deleted it, and the drift policy says to leave it so.
    Missing {
        /// That this is so.
        message: String,
    },
    /// This process has not looked yet, or is about to look: what the status said before still stands.
    Unverified,
    /// A newer release of the same stack has it, in another form than this one wants: it is that one's to keep in line.
    Superseded {
        /// Which.
        release: String,
    },
    /// It is in the form that a newer release gave it, which is gone: going back would lose stored data.
    Outgrown {
        /// What would be lost.
        message: String,
    },
    /// Another release holds it and has not said (again) what it applied: what the status said before still stands.
    Held {
        /// Which.
        release: String,
    },
    /// A write is under way or about to be; the row keeps what it said before.
    Pending,
    /// The API server does not serve the kind.
    KindMissing,
    /// It cannot be brought in line.
    Failed {
        /// The API server's words, or ours.
        message: String,
    },
    /// Somebody keeps undoing what we write.
    Contested {
        /// Who.
        message: String,
    },
}

/// Decides about one object that is wanted.
pub(super) fn decide(
    set: &ObjectSet<'_>,
    key: &ObjectKey,
    intent: &Intent,
    object: &ObjectObserved,
    now: Timestamp,
) -> Sync {
    let inventoried = set.inventoried(key);
    if !object.served {
        return Sync::still(SyncState::KindMissing);
    }
    if !object.watched {
        return Sync::still(SyncState::Unverified);
    }
    if let Some(holder) = &object.holder
        && !object.seen.as_ref().is_some_and(|seen| seen.ours)
        && holder.outranks(Some(&intent.digest))
    {
        return superseded(holder);
    }
    if let Some(wait) = refused(intent, object, inventoried, now).or_else(|| failed_look(object, now)) {
        return wait;
    }
    match &object.seen {
        Some(seen) if !seen.ours => match &object.holder {
            Some(holder) => held(key, intent, object, inventoried, holder, now),
            None => strayed(key, object, inventoried, now),
        },
        Some(seen) if seen.deleting => terminating(key, object, now),
        Some(seen) if is_restored(intent, object, seen) => {
            // Nothing differs; without it a field that a later rendering drops would stay, and the object when the owner goes.
            Sync::act(ObjectAction::apply(key, ApplyReason::Restore, false))
        }
        Some(seen) => marked(set, key, intent, object, seen, now),
        None => unmarked(set, key, intent, object, now),
    }
}

/// A newer release of the stack has the object.
pub(super) fn superseded(holder: &Holder) -> Sync {
    let release = holder.place();
    Sync::still(SyncState::Superseded { release })
}

/// The wait after the intent was refused, while it lasts. What this owner had applied and a newer one has changed since is nobody's mistake.
pub(super) fn refused(
    intent: &Intent,
    object: &ObjectObserved,
    inventoried: Inventoried<'_>,
    now: Timestamp,
) -> Option<Sync> {
    let failure = object.memory.failure.as_ref()?;
    let retry_at = retry_at(failure, now)?;
    let same = matches!(&failure.tried, Attempt::Intent { digest } if *digest == intent.digest);
    let was_ours = inventoried == Inventoried::Applied(&intent.digest);
    let changed_hands = object.seen.as_ref().is_some_and(|seen| !seen.ours);
    let state = if failure.loses_data && was_ours && changed_hands {
        SyncState::Outgrown {
            message: format!("stays in the form that a newer release gave it: {}", failure.message),
        }
    } else {
        SyncState::Failed {
            message: failure.message.clone(),
        }
    };
    same.then(|| Sync::until(state, retry_at))
}

/// The wait after a look that failed, while it lasts.
pub(super) fn failed_look(object: &ObjectObserved, now: Timestamp) -> Option<Sync> {
    let failure = object.memory.failure.as_ref()?;
    let retry_at = retry_at(failure, now)?;
    let state = if failure.attempts < TOLD_LOOKS {
        SyncState::Unverified
    } else {
        SyncState::Failed {
            message: failure.message.clone(),
        }
    };
    (failure.tried == Attempt::Look).then(|| Sync::until(state, retry_at))
}

/// Whether it has failed so often to look at the object, or to delete it, that nobody waits until it is known how it is. One that changes faster than it
/// is read fails as a deletion does.
pub(super) fn is_unreadable(object: &ObjectObserved) -> bool {
    let memory = &object.memory;
    let fails = |failure: &Failure| {
        matches!(failure.tried, Attempt::Look | Attempt::Deletion) && failure.attempts >= TOLD_LOOKS
    };
    memory.read.is_none() && memory.failure.as_ref().is_some_and(fails)
}

/// When what failed may be tried again; `None` when it may be by now.
pub(super) fn retry_at(failure: &Failure, now: Timestamp) -> Option<Timestamp> {
    let delay = SignedDuration::from_secs(retry_delay_seconds(failure.attempts));
    rests_until(failure.at, delay, now)
}

/// The watch shows the object with another release's mark. Two releases may want the same object; where they want it to be the same, the one whose
/// mark it carries keeps it in line, and the other takes it over when that one goes. Where they do not, and both are of one stack, the newer one
/// takes it at once.
fn held(
    key: &ObjectKey,
    intent: &Intent,
    object: &ObjectObserved,
    inventoried: Inventoried<'_>,
    holder: &Holder,
    now: Timestamp,
) -> Sync {
    let release = holder.place();
    let Some(digest) = &holder.digest else {
        let soon = now.saturating_add(HOLDER_INTERVAL).unwrap_or(Timestamp::MAX);
        return Sync::until(SyncState::Held { release }, soon);
    };
    if *digest == intent.digest
        && let Some(seen) = &object.seen
    {
        return settled(key, object, seen, now);
    }
    if holder.standing == Standing::Older {
        return strayed(key, object, inventoried, now);
    }
    let message = format!(
        "the object belongs to release {release}, which wants it otherwise; put the version into its name, as the class has it, or make it the same in both"
    );
    Sync::still(SyncState::Failed { message })
}

/// The object has a mark that no owner answers for (the owner is gone, or somebody changed the mark), or that of an older release of the stack. Whatever the drift policy, somebody has to have it.
fn strayed(key: &ObjectKey, object: &ObjectObserved, inventoried: Inventoried<'_>, now: Timestamp) -> Sync {
    match inventoried {
        Inventoried::Applied(_) => {
            let message = format!("the label {} was changed", crds::labels::PART_OF);
            let adopt = ObjectAction::apply(key, ApplyReason::Adopt, true);
            contested(object, &message, now).unwrap_or_else(|| Sync::act(adopt))
        }
        // What a release left behind is managed by us and can be taken without force; what is somebody else's shows as a conflict.
        Inventoried::No | Inventoried::Named => Sync::act(ObjectAction::apply(key, ApplyReason::Adopt, false)),
    }
}

/// Whether the object, when it was looked at last, held the intent in fields that are not ours.
fn is_restored(intent: &Intent, object: &ObjectObserved, seen: &Seen) -> bool {
    let verified = object.memory.verified.as_ref();
    verified
        .is_some_and(|verified| !verified.owned && verified.intent == intent.digest && verified.trigger == seen.trigger)
}

/// The watch shows the object with our mark.
pub(super) fn marked(
    set: &ObjectSet<'_>,
    key: &ObjectKey,
    intent: &Intent,
    object: &ObjectObserved,
    seen: &Seen,
    now: Timestamp,
) -> Sync {
    let (memory, policy, inventoried) = (&object.memory, set.drift, set.inventoried(key));
    if let Some(verified) = &memory.verified {
        if verified.intent != intent.digest {
            return Sync::act(ObjectAction::apply(key, ApplyReason::Update, true));
        }
        if verified.trigger == seen.trigger {
            return settled(key, object, seen, now);
        }
    }
    if policy == DriftPolicy::Ignore && inventoried == Inventoried::Applied(&intent.digest) {
        // Fields are not looked at; health is.
        return settled(key, object, seen, now);
    }
    match &memory.drifted {
        // In a fight nobody looks at what the other side writes.
        Some(drift)
            if drift.intent == intent.digest
                && (drift.trigger == seen.trigger || contested_until(&object.memory.reversals, now).is_some()) =>
        {
            let message = drift_message(set.owner, &drift.fields, &drift.managers);
            match policy {
                DriftPolicy::Correct => put_back(key, object, true, &message, now),
                // Its health matters although its fields are left.
                DriftPolicy::Warn => Sync {
                    state: SyncState::Drifted { message },
                    ..settled(key, object, seen, now)
                },
                // Looked at only because the inventory was lost.
                DriftPolicy::Ignore => settled(key, object, seen, now),
            }
        }
        _ if matches!(inventoried, Inventoried::Applied(applied) if applied != intent.digest) => {
            Sync::act(ObjectAction::apply(key, ApplyReason::Update, true))
        }
        _ => Sync::look(ObjectAction::Check { key: key.clone() }),
    }
}

/// Nothing has to be written; only the health may still have to be looked at.
pub(super) fn settled(key: &ObjectKey, object: &ObjectObserved, seen: &Seen, now: Timestamp) -> Sync {
    if !health::matters(&key.group_kind()) {
        return Sync::still(SyncState::Synced);
    }
    let Some(last) = &object.memory.health else {
        return Sync {
            action: Some(ObjectAction::Read { key: key.clone() }),
            state: SyncState::Synced,
            next: Next::Await,
        };
    };
    if last.resource_version == seen.resource_version {
        return Sync::still(SyncState::Synced);
    }
    match last.rests_until(now) {
        Some(due) => Sync::until(SyncState::Synced, due),
        None => Sync {
            action: Some(ObjectAction::Read { key: key.clone() }),
            state: SyncState::Synced,
            next: Next::Await,
        },
    }
}

/// No watch shows the object with a mark: it is new, gone, unmarked or somebody else's.
fn unmarked(set: &ObjectSet<'_>, key: &ObjectKey, intent: &Intent, object: &ObjectObserved, now: Timestamp) -> Sync {
    let (policy, inventoried) = (set.drift, set.inventoried(key));
    if inventoried == Inventoried::No {
        // Never ours: taken without force, so that an object of somebody else shows as a conflict.
        return Sync::act(ObjectAction::apply(key, ApplyReason::Create, false));
    }
    let Some(read) = &object.memory.read else {
        if is_only_announced(key, object, inventoried) {
            return Sync::act(ObjectAction::apply(key, ApplyReason::Announced, false));
        }
        return Sync::look(ObjectAction::Read { key: key.clone() });
    };
    match read {
        // The status may have had no time to say that it was made: who takes it away at once is met as who does later.
        Read::Absent if inventoried == Inventoried::Named && object.memory.verified.is_none() => {
            Sync::act(ObjectAction::apply(key, ApplyReason::Create, false))
        }
        Read::Absent if policy == DriftPolicy::Correct => put_back(key, object, false, "the object was deleted", now),
        // The policy leaves what was applied: who wants it otherwise by now makes it, as what was only changed is written then.
        Read::Absent if is_to_change(inventoried, intent, object) => {
            Sync::act(ObjectAction::apply(key, ApplyReason::Create, false))
        }
        Read::Absent => Sync::still(SyncState::Missing {
            message: format!("the object was deleted; with drift {policy} it is not made again"),
        }),
        Read::Found { deleting: true, .. } => terminating(key, object, now),
        Read::Found { belongs, at, .. } => match belongs {
            Belongs::Predecessor => Sync::act(ObjectAction::TakeOver { key: key.clone() }),
            Belongs::OtherOwner if !set.shows_others => strayed(key, object, inventoried, now),
            Belongs::OtherOwner | Belongs::Stranger => foreign(set, key, *at, now),
            Belongs::Nobody => Sync::act(ObjectAction::apply(key, ApplyReason::Create, false)),
            Belongs::Us if inventoried == Inventoried::Named => {
                Sync::act(ObjectAction::apply(key, ApplyReason::Update, true))
            }
            // Whatever the drift policy: without the label no watch shows what becomes of the object.
            Belongs::Us => {
                let message = format!("the label {} was removed", crds::labels::PART_OF);
                put_back(key, object, true, &message, now)
            }
        },
    }
}

/// Whether nothing but the inventory tells of an object, which names it before it is made: nearly always there is none, so that a look would be in vain.
/// A CRD is looked at in any case before it is written.
fn is_only_announced(key: &ObjectKey, object: &ObjectObserved, inventoried: Inventoried<'_>) -> bool {
    let memory = &object.memory;
    let is_known = memory.verified.is_some() || memory.drifted.is_some();
    inventoried == Inventoried::Named && !is_known && !is_definition(&key.group_kind())
}

/// Whether the owner wants another form of the object than the one that was applied last, as far as the status or this process knows.
fn is_to_change(inventoried: Inventoried<'_>, intent: &Intent, object: &ObjectObserved) -> bool {
    let verified = object.memory.verified.as_ref();
    matches!(inventoried, Inventoried::Applied(applied) if applied != intent.digest)
        && verified.is_none_or(|verified| verified.intent != intent.digest)
}

/// The object carries the mark of somebody who is there.
fn foreign(set: &ObjectSet<'_>, key: &ObjectKey, read_at: Timestamp, now: Timestamp) -> Sync {
    let state = SyncState::Failed {
        message: set.owner.foreign(),
    };
    if set.shows_others {
        return Sync::still(state);
    }
    match rests_until(read_at, FOREIGN_INTERVAL, now) {
        Some(due) => Sync::until(state, due),
        None => Sync {
            action: Some(ObjectAction::Read { key: key.clone() }),
            state,
            next: Next::Await,
        },
    }
}

/// The live object is known to differ from what we applied: put back, or left after too many times.
fn put_back(key: &ObjectKey, object: &ObjectObserved, force: bool, message: &str, now: Timestamp) -> Sync {
    let correct = ObjectAction::apply(key, ApplyReason::Correct, force);
    contested(object, message, now).unwrap_or_else(|| Sync::act(correct))
}

/// The end of a fight, for a while.
fn contested(object: &ObjectObserved, message: &str, now: Timestamp) -> Option<Sync> {
    let until = contested_until(&object.memory.reversals, now)?;
    let message = tell(message, until);
    Some(Sync::until(SyncState::Contested { message }, until))
}

/// Says what differs and who did it, in stable words.
pub(super) fn drift_message(owner: OwnerKind, fields: &[String], managers: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut message = format!(
        "differs from the {owner} at {}",
        fields.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")
    );
    if fields.len() > SHOWN {
        let _ = write!(message, " and {} more", fields.len() - SHOWN);
    }
    if !managers.is_empty() {
        let _ = write!(message, ", changed by {}", managers.join(", "));
    }
    message
}

impl SyncState {
    /// Whether nothing about the object is left to do for this owner. Of one that somebody deleted, and that the drift policy leaves so, nothing is.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::Synced
            | Self::Drifted { .. }
            | Self::Missing { .. }
            | Self::Superseded { .. }
            | Self::Outgrown { .. } => true,
            Self::Unverified
            | Self::Held { .. }
            | Self::Pending
            | Self::KindMissing
            | Self::Failed { .. }
            | Self::Contested { .. } => false,
        }
    }
}

impl Sync {
    pub(super) fn is_apply(&self) -> bool {
        self.action.as_ref().is_some_and(ObjectAction::is_apply)
    }

    /// Whether the object will not stand when this plan has been performed. An apply holds the later waves by failing.
    pub(super) fn holds_later_waves(&self) -> bool {
        match self.state {
            SyncState::KindMissing | SyncState::Failed { .. } | SyncState::Unverified | SyncState::Held { .. } => true,
            SyncState::Pending => !self.is_apply(),
            SyncState::Synced
            | SyncState::Drifted { .. }
            | SyncState::Superseded { .. }
            | SyncState::Outgrown { .. }
            | SyncState::Missing { .. }
            | SyncState::Contested { .. } => false,
        }
    }

    pub(super) fn still(state: SyncState) -> Self {
        Self {
            action: None,
            state,
            next: Next::Await,
        }
    }

    pub(super) fn until(state: SyncState, at: Timestamp) -> Self {
        Self {
            action: None,
            state,
            next: Next::At(at),
        }
    }

    pub(super) fn look(action: ObjectAction) -> Self {
        Self {
            action: Some(action),
            state: SyncState::Unverified,
            next: Next::Await,
        }
    }

    fn act(action: ObjectAction) -> Self {
        Self {
            action: Some(action),
            state: SyncState::Pending,
            next: Next::Await,
        }
    }
}
