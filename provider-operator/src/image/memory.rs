//! What this process remembers of one image object: what it has seen in the cloud and at the source, and whether that still says anything, and how it came
//! to the cloud last. Nothing of it survives a restart, and nothing has to. Decides nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planning::image::{
    Abilities, Amended, Cloud, Deed, DeedName, Done, Drift, Failure, FailureClass, Form, Op, OpState, RecordSeen,
    RecordState, Sight, Source, Unshown, look_again,
};
use provider_plugin::{Attempt, ImageId, Subject};

use super::seen::Motions;
use crate::identity::Connection;
use crate::objects::ObjectId;
use crate::worker::Found;

/// What is asked for. What was seen for something else may be otherwise now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Basis {
    /// Of the content.
    pub(super) key: String,
    pub(super) generation: i64,
    pub(super) identity: Option<String>,
    pub(super) request: Option<String>,
    pub(super) adopt: Option<String>,
    /// Whether all of it is to go, whatever others have.
    pub(super) goes: bool,
}

/// How long it is enough to look at the image that is had: what another process may have left beside it is in nobody's way.
const LISTED_AGAIN: Duration = Duration::from_hours(1);

/// How long what could not be taken over from another installation is left alone: a look comes then in time before that one deletes it, half an hour after it
/// has seen it without its object.
const HELD_AGAIN: Duration = Duration::from_mins(15);

/// A deed that was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Begun {
    basis: Basis,
    /// What it is to bring in line.
    drift: Vec<Drift>,
    /// Whether it looks for images of others too.
    looks_for_others: bool,
    /// Whether it sees no more than the image that is had.
    sees_one: bool,
}

/// What is remembered of one object.
pub(super) struct ImageMemory {
    pub(super) cloud: Sight<Cloud>,
    pub(super) source: Sight<Source>,
    pub(super) abilities: Option<Abilities>,
    pub(super) amended: Option<Amended>,
    /// What was done last and no look has shown yet.
    pub(super) unshown: Option<Unshown>,
    /// The last record that was made, and of which attempt: a list need not show it.
    made: Option<(Attempt, ImageId)>,
    /// The image before that one, until it is discarded: status forgets it when another content is wanted, and there are lists that do not show it.
    before: Option<ImageId>,
    /// When what another installation holds could not be taken over.
    not_held: Option<Duration>,
    /// Whether something was taken over from another installation, since something else was asked for.
    has_held: bool,
    /// Whether that one took it back, and is left with it: the object is there as well as here.
    is_contested: bool,
    /// The last way to the cloud that there was.
    pub(super) connection: Option<Arc<Connection>>,
    /// How often in a row its status could not be written.
    pub(super) refusals: u32,
    /// Whether there was no way to the cloud when it was to be looked at.
    is_shut: bool,
    motions: Motions,
    basis: Basis,
    begun: Option<Begun>,
    /// The end of a Job that was taken last.
    taken: Option<Op>,
    /// When everything of the object was looked for last, and found.
    listed: Option<Duration>,
}

impl Default for ImageMemory {
    fn default() -> Self {
        Self {
            cloud: Sight::Unseen,
            source: Sight::Unseen,
            abilities: None,
            amended: None,
            unshown: None,
            made: None,
            before: None,
            not_held: None,
            has_held: false,
            is_contested: false,
            connection: None,
            refusals: 0,
            is_shut: false,
            motions: Motions::default(),
            basis: Basis::default(),
            begun: None,
            taken: None,
            listed: None,
        }
    }
}

impl ImageMemory {
    /// With which version of the Secret the cloud was asked last.
    pub(super) fn identity(&self) -> Option<&String> {
        self.basis.identity.as_ref()
    }

    /// What is asked for now. If it is something else than before, what was seen says nothing any more.
    pub(super) fn hear(&mut self, basis: Basis) {
        if self.basis != basis {
            self.cloud = outdated(&self.cloud);
            self.source = Sight::Unseen;
            self.not_held = None;
            self.has_held = false;
            self.is_contested = false;
            self.basis = basis;
        }
    }

    /// Whether a look has to find images of others: it need not where ours is there, which is most of the time, and costs a call; and where ours is to go,
    /// theirs must not be in its way.
    pub(super) fn looks_for_others(&self) -> bool {
        !self.basis.goes && !matches!(&self.cloud, Sight::Seen { value, .. } if has_verified(value, &self.basis.key))
    }

    /// Whether a look needs to see no more than the image that is noted down: a while ago that was all there was, it was as it must be, and nothing
    /// happened since.
    pub(super) fn needs_only(&self, recorded: Option<&ImageId>, now: Duration) -> bool {
        let Sight::Seen {
            value: Cloud { records, others },
            fresh: true,
            ..
        } = &self.cloud
        else {
            return false;
        };
        let is_all = |id: &ImageId| {
            let [record] = records.as_slice() else { return false };
            record.id == id.0 && others.is_empty() && is_verified(record, &self.basis.key)
        };
        let is_recent = self
            .listed
            .is_some_and(|listed| now.saturating_sub(listed) < LISTED_AGAIN);
        is_recent && recorded.is_some_and(is_all)
    }

    /// The record of this attempt, if it was made by this process.
    fn made(&self, attempt: Attempt) -> Option<ImageId> {
        let (_, id) = self.made.as_ref().filter(|(made, _)| *made == attempt)?;
        Some(id.clone())
    }

    /// What a look asks for by its id: what status names, what was made last, and what was before, of which no more than two are known.
    pub(super) fn known(&mut self, recorded: Option<ImageId>, attempt: Attempt) -> [Option<ImageId>; 2] {
        let made = self.made(attempt);
        if recorded.is_some() && recorded != made {
            self.before.clone_from(&recorded);
        }
        let first = recorded.or_else(|| made.clone());
        let is_other = |id: &ImageId| first.as_ref() != Some(id);
        let second = made.filter(is_other).or_else(|| self.before.clone().filter(is_other));
        [first, second]
    }

    /// Whether a look takes over what another installation holds: not at once again where that did not work, and no more where that one took it back, or the
    /// two would take it from each other at each look.
    pub(super) fn holds(&self, now: Duration) -> bool {
        let rests = self
            .not_held
            .is_some_and(|failed| now.saturating_sub(failed) < HELD_AGAIN);
        !rests && !self.is_contested
    }

    /// How taking over went.
    fn note_hold(&mut self, is_held: bool, now: Duration) {
        self.not_held = (!is_held).then_some(now);
        self.is_contested |= is_held && self.has_held;
        self.has_held |= is_held;
    }

    /// A deed begins. Only looking leaves everything as it was.
    pub(super) fn begin(&mut self, deed: &Deed, subject: &Subject) {
        let drift = match (&self.cloud, deed) {
            (Sight::Seen { value, .. }, Deed::Amend { id }) => {
                let record = value.records.iter().find(|record| record.id == *id);
                record.map(|record| record.drift.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        self.begun = Some(Begun {
            basis: self.basis.clone(),
            drift,
            looks_for_others: subject.look_for_others,
            sees_one: subject.only_recorded,
        });
        if !only_looks(deed.name()) {
            self.cloud = outdated(&self.cloud);
        }
    }

    /// What was made, and what is gone.
    fn note_records(&mut self, deed: &Deed, done: Option<&Done>) {
        match (deed, done) {
            (Deed::Create { attempt, .. }, Some(Done::Created { id } | Done::Ours { id })) => {
                let made = self.made.replace((*attempt, ImageId(id.clone())));
                let other = made.map(|(_, made)| made).filter(|made| made.0 != *id);
                self.before = other.or(self.before.take());
            }
            (Deed::Discard { id, .. }, Some(_)) => {
                self.before.take_if(|before| before.0 == *id);
                self.made.take_if(|(_, made)| made.0 == *id);
            }
            _ => {}
        }
    }

    /// Takes what a deed that has ended found out. Says whether that was news: it is taken once.
    pub(super) fn end(&mut self, op: &Op, found: &Found, now: Duration) -> bool {
        let OpState::Ended { outcome, .. } = &op.state else {
            return false;
        };
        let is_job = op.form == Form::Job;
        let begun = match self.begun.take() {
            Some(begun) => begun,
            // A Job goes on without whoever began it: one that was only found has an end too.
            None if is_job && self.taken.as_ref() != Some(op) => Begun::default(),
            None => return false,
        };
        if is_job {
            self.taken = Some(op.clone());
        }
        self.unshown = Unshown::after(self.unshown.take(), op, now);
        self.note_records(&op.deed, outcome.as_ref().ok());
        let is_current = begun.basis == self.basis;
        if let Some(abilities) = &found.abilities {
            self.abilities = Some(abilities.clone());
        }
        if let Some(is_held) = found.held {
            self.note_hold(is_held, now);
        }
        let failure = outcome.as_ref().err();
        match &op.deed {
            Deed::Look => self.looked(&begun, is_current, failure, found, now),
            Deed::Probe => {
                self.source = match (failure, &found.source) {
                    (None, Some(source)) => Sight::Seen {
                        value: source.clone(),
                        at: now,
                        fresh: is_current,
                    },
                    (Some(failure), _) if is_current && !is_stopped(failure) => {
                        failed(&self.source, failure, &self.basis.key, now)
                    }
                    _ => Sight::Unseen,
                };
            }
            deed => {
                if let (Deed::ReadBack { id, .. }, Some(read)) = (deed, &found.read_back) {
                    self.motions.read(id, read.clone());
                }
                if deed.name() == DeedName::Amend {
                    self.amended = Some(Amended {
                        drift: begun.drift,
                        at: now,
                        refused: failure.filter(|failure| !is_stopped(failure)).cloned(),
                    });
                }
                if failure.is_some_and(is_of_source) {
                    self.source = Sight::Unseen;
                }
                self.cloud = outdated(&self.cloud);
            }
        }
        true
    }

    /// There is a way to the cloud. Where there was none, the cloud itself has not failed at anything.
    pub(super) fn opened(&mut self, connection: &Arc<Connection>) {
        if std::mem::take(&mut self.is_shut) {
            self.cloud = Sight::Unseen;
        }
        self.connection = Some(Arc::clone(connection));
    }

    fn looked(&mut self, begun: &Begun, is_current: bool, failure: Option<&Failure>, found: &Found, now: Duration) {
        self.cloud = match (failure, &found.observed) {
            (None, Some(observed)) => {
                let value = self.motions.see(observed, found.looked.as_ref(), now);
                let unshown = self.unshown.take();
                self.unshown = unshown.and_then(|unshown| unshown.unless_shown(&value));
                // Where ours is gone, those of others count.
                let is_enough = begun.looks_for_others || begun.basis.goes || has_verified(&value, &begun.basis.key);
                if !begun.sees_one {
                    self.listed = Some(now);
                }
                Sight::Seen {
                    value,
                    at: now,
                    fresh: is_current && is_enough,
                }
            }
            (Some(failure), _) if is_current && !is_stopped(failure) => {
                failed(&self.cloud, failure, &self.basis.key, now)
            }
            _ => outdated(&self.cloud),
        };
    }

    /// The cloud cannot even be asked.
    pub(super) fn refuse(&mut self, failure: &Failure, now: Duration) {
        self.cloud = failed(&self.cloud, failure, &self.basis.key, now);
        self.is_shut = true;
    }
}

impl ImageMemory {
    /// The source cannot even be asked. What is wrong with it may be right the next time.
    pub(super) fn refuse_source(&mut self, failure: &Failure, now: Duration) {
        self.source = failed(&self.source, failure, &self.basis.key, now);
    }
}

/// Whether the image is there that is wanted: one of another content may have another name.
fn has_verified(cloud: &Cloud, key: &str) -> bool {
    cloud.records.iter().any(|record| is_verified(record, key))
}

fn is_verified(record: &RecordSeen, key: &str) -> bool {
    record.key == key && record.verified.is_some() && record.state == RecordState::Whole
}

fn only_looks(deed: DeedName) -> bool {
    matches!(deed, DeedName::Look | DeedName::Probe)
}

fn is_stopped(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::Stopped { .. })
}

fn is_of_source(failure: &Failure) -> bool {
    matches!(
        failure.class,
        FailureClass::SourceGone
            | FailureClass::SourceBroken
            | FailureClass::SourceMismatch
            | FailureClass::SourceNotAnImage
            | FailureClass::SourceChanged
            | FailureClass::DigestUnknown
    )
}

/// The same, of which something may have changed since.
fn outdated<T: Clone>(sight: &Sight<T>) -> Sight<T> {
    match sight {
        Sight::Seen { value, at, fresh: _ } => Sight::Seen {
            value: value.clone(),
            at: *at,
            fresh: false,
        },
        Sight::Unseen | Sight::Failed { .. } => Sight::Unseen,
    }
}

fn failed<T>(before: &Sight<T>, failure: &Failure, key: &str, now: Duration) -> Sight<T> {
    let (since, count) = match before {
        Sight::Failed { since, count, .. } => (*since, count.saturating_add(1)),
        Sight::Unseen | Sight::Seen { .. } => (now, 1),
    };
    Sight::Failed {
        failure: failure.clone(),
        since,
        count,
        next: now + look_again(failure, key, count),
    }
}

/// The memories of all objects. A memory is one object's in one life of it.
#[derive(Default)]
pub(crate) struct Memories(Mutex<HashMap<ObjectId, Arc<Mutex<ImageMemory>>>>);

impl Memories {
    pub(super) fn of(&self, object: &ObjectId) -> Arc<Mutex<ImageMemory>> {
        Arc::clone(self.lock().entry(object.clone()).or_default())
    }

    /// The objects of this place that are remembered, but for the one with this uid.
    pub(super) fn others(&self, place: &ObjectId) -> Vec<ObjectId> {
        let is_other = |known: &&ObjectId| {
            (known.provider, &known.namespace, &known.name) == (place.provider, &place.namespace, &place.name)
                && known.uid != place.uid
        };
        self.lock().keys().filter(is_other).cloned().collect()
    }

    pub(super) fn forget(&self, object: &ObjectId) {
        self.lock().remove(object);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectId, Arc<Mutex<ImageMemory>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A memory is never held across a wait.
pub(super) fn lock(memory: &Mutex<ImageMemory>) -> MutexGuard<'_, ImageMemory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
