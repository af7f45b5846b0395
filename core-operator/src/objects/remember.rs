//! What is remembered of what became of an object: the next plan rests on it.

use kube::ResourceExt;
use operator_kit::apply::AppliedObject;
use operator_kit::object::{ObjectKey, json_of};
use planning::objects::{Attempt, Failure, Verified};

use super::definition::Unchanged;
use super::execute::{Failed, Pass};
use super::live::{is_mover, judged};
use super::memory::lock;
use super::observe::sight;
use super::owner::Owner;

/// How many reversals are remembered; the plan looks at three.
const REVERSALS: usize = 4;

impl<O: Owner> Pass<'_, O> {
    /// Remembers what the API server stored, before its watch tells.
    pub(super) async fn applied(&self, key: &ObjectKey, digest: &str, applied: AppliedObject) {
        let now = self.clock.now();
        let AppliedObject { live, owners } = applied;
        let seen = self.place.objects.sight(key, &live.metadata);
        let version = live.resource_version().unwrap_or_default();
        let health = judged(&json_of(live), version, now);
        let trigger = seen.as_ref().map(|seen| sight(seen, self.part_of).trigger);
        if let Some(seen) = seen {
            self.place.objects.note(self.part_of, key, seen).await;
        }
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        object.verified = trigger.map(|trigger| Verified {
            intent: digest.to_owned(),
            trigger,
            owned: true,
        });
        object.drifted = None;
        object.read = None;
        object.failure = None;
        let others = owners.iter().filter(|owner| !is_mover(owner));
        object.foreign_manager = others.map(|owner| owner.manager.clone()).next();
        object.health = Some(health);
    }

    /// Forgets what an object was like that is going or is to be made: that is told of one that others take away while it is wanted, and this one is
    /// made whatever the drift policy.
    pub(super) fn forget_form(&self, key: &ObjectKey) {
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        object.verified = None;
        object.drifted = None;
    }

    pub(super) fn reversed(&self, key: &ObjectKey) {
        let now = self.clock.now();
        let mut memory = lock(self.memory);
        let reversals = &mut memory.of(key).reversals;
        reversals.push(now);
        if reversals.len() > REVERSALS {
            reversals.remove(0);
        }
    }

    /// Remembers that an object was refused, in the API server's words.
    pub(super) fn refused(&self, key: &ObjectKey, digest: &str, message: &str) -> Failed {
        let tried = Attempt::Intent {
            digest: digest.to_owned(),
        };
        self.remember_failure(key, tried, message)
    }

    /// That an object is another owner's. Where the watches show it, what becomes of it is decided anew; otherwise it is remembered here.
    pub(super) fn foreign(&self, key: &ObjectKey, digest: &str) -> Failed {
        let message = self.owner.kind().foreign();
        if self.place.objects.shows_others() {
            return Failed(format!("{key}: {message}"));
        }
        self.refused(key, digest, &message)
    }

    /// Remembers that a CRD could not be changed, and whether only because of what is stored under it.
    pub(super) fn unchanged(&self, key: &ObjectKey, digest: &str, unchanged: &Unchanged) -> Failed {
        let (message, loses_data) = match unchanged {
            Unchanged::Refused(message) => (message, false),
            Unchanged::LosesData(message) => (message, true),
            Unchanged::Foreign => return self.foreign(key, digest),
        };
        let failed = self.refused(key, digest, message);
        let mut memory = lock(self.memory);
        if let Some(failure) = &mut memory.of(key).failure {
            failure.loses_data = loses_data;
        }
        failed
    }

    /// Until when it is not tried again is the plan's business.
    pub(super) fn remember_failure(&self, key: &ObjectKey, tried: Attempt, message: &str) -> Failed {
        let (now, message) = (self.clock.now(), self.owner.told(message));
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        let attempts = object
            .failure
            .as_ref()
            .filter(|failure| failure.tried == tried)
            .map_or(0, |failure| failure.attempts);
        object.read = None;
        object.failure = Some(Failure {
            tried,
            message: message.clone(),
            loses_data: false,
            attempts: attempts + 1,
            at: now,
        });
        Failed(format!("{key}: {message}"))
    }
}
