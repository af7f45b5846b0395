//! What is remembered of what became of an object: the next plan rests on it.

use crds::labels;
use operator_kit::apply::AppliedObject;
use operator_kit::object::ObjectKey;
use operator_kit::objects::Seen;
use planning::release::{Attempt, Failure, Verified};

use super::definition::Unchanged;
use super::execute::{Failed, Pass};
use super::live::{is_mover, judged};
use super::marks::FOREIGN;
use super::observe::{lock, sight};

/// How many reversals are remembered; the plan looks at three.
const REVERSALS: usize = 4;

impl Pass<'_> {
    /// Remembers what the API server stored, before its watch tells.
    pub(super) async fn applied(&self, key: &ObjectKey, digest: &str, applied: &AppliedObject) {
        let now = self.context.now();
        let live = serde_json::to_value(&applied.live).unwrap_or_default();
        let seen = Seen::of(&applied.live.metadata, labels::PART_OF);
        let trigger = seen.as_ref().map(|seen| sight(seen, self.part_of).trigger);
        if let Some(seen) = seen {
            self.context.objects.note(self.part_of, key, seen).await;
        }
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        object.verified = trigger.map(|trigger| Verified {
            intent: digest.to_owned(),
            trigger,
            owned: true,
        });
        object.drifted = None;
        object.read = None;
        object.failure = None;
        let others = applied.owners.iter().filter(|owner| !is_mover(owner));
        object.foreign_manager = others.map(|owner| owner.manager.clone()).next();
        object.health = Some(judged(&live, &applied.live, now));
    }

    /// Forgets what an object was like that is going or is to be made: that is told of one that others take away while it is wanted, and this one is
    /// made whatever the drift policy.
    pub(super) fn forget_form(&self, key: &ObjectKey) {
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        object.verified = None;
        object.drifted = None;
    }

    pub(super) fn reversed(&self, key: &ObjectKey) {
        let now = self.context.now();
        let mut memory = lock(self.memory);
        let reversals = &mut memory.objects.entry(key.clone()).or_default().reversals;
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

    /// Remembers that a CRD could not be changed, and whether only because of what is stored under it.
    pub(super) fn unchanged(&self, key: &ObjectKey, digest: &str, unchanged: &Unchanged) -> Failed {
        let (message, loses_data) = match unchanged {
            Unchanged::Refused(message) => (message, false),
            Unchanged::LosesData(message) => (message, true),
            Unchanged::Foreign => return Failed(format!("{key}: {FOREIGN}")),
        };
        let failed = self.refused(key, digest, message);
        let mut memory = lock(self.memory);
        if let Some(failure) = memory.objects.get_mut(key).and_then(|object| object.failure.as_mut()) {
            failure.loses_data = loses_data;
        }
        failed
    }

    /// Until when it is not tried again is the plan's business.
    pub(super) fn remember_failure(&self, key: &ObjectKey, tried: Attempt, message: &str) -> Failed {
        let now = self.context.now();
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        let attempts = object
            .failure
            .as_ref()
            .filter(|failure| failure.tried == tried)
            .map_or(0, |failure| failure.attempts);
        object.read = None;
        object.failure = Some(Failure {
            tried,
            message: message.to_owned(),
            loses_data: false,
            attempts: attempts + 1,
            at: now,
        });
        Failed(format!("{key}: {message}"))
    }
}
