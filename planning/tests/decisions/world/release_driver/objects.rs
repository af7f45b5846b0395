//! What the driver of a release does to single objects, and what it remembers of them.

use std::collections::BTreeSet;

use crds::labels;
use jiff::Timestamp;
use planning::object_key::ObjectKey;
use planning::objects::{ApplyReason, Attempt, Drifted, Failure, HealthSeen, ObjectMemory, Read, Verified};

use super::observe::{body_digest, has_generation};
use crate::world::faults::Outcome;
use crate::world::live::{Body, Live};
use crate::world::marks::{belongs, marked};
use crate::world::{Remembered, World};

impl World {
    fn body(&self, tag: &str, key: &ObjectKey) -> Body {
        self.store
            .get(tag)
            .and_then(|files| files.objects.get(key))
            .cloned()
            .unwrap_or_default()
    }

    fn memory(&mut self, tag: &str, key: &ObjectKey) -> &mut ObjectMemory {
        &mut self
            .process
            .objects
            .entry((tag.to_owned(), key.clone()))
            .or_default()
            .memory
    }

    pub(super) fn apply_object(&mut self, tag: &str, key: &ObjectKey, why: ApplyReason, force: bool) -> Outcome<()> {
        let body = self.body(tag, key);
        let intent = body_digest(&body);
        self.check_application(tag, key, force);
        if why == ApplyReason::Announced && self.api.objects.contains_key(key) {
            return match self.read_object(tag, key) {
                Outcome::Done(()) => Outcome::Failed("the object is there already".to_owned()),
                failed => failed,
            };
        }
        if matches!(why, ApplyReason::Create | ApplyReason::Announced) {
            let memory = self.memory(tag, key);
            memory.verified = None;
            memory.drifted = None;
        }
        let full = marked(tag, &body);
        let outcome = self.write(Some(key), |api| {
            let applied = api.apply(key, &full, labels::FIELD_MANAGER, force)?;
            if let Some(live) = api.objects.get_mut(key) {
                live.relieve(&full, labels::MOVER_FIELD_MANAGER);
            }
            Ok(applied)
        });
        let now = self.now;
        match outcome {
            Outcome::Done(live) => {
                let memory = self.memory(tag, key);
                memory.verified = Some(Verified {
                    intent,
                    trigger: live.trigger(has_generation(key)),
                    owned: true,
                });
                memory.drifted = None;
                memory.failure = None;
                memory.foreign_manager = None;
                memory.health = Some(health(&live, now));
                if matches!(why, ApplyReason::Correct | ApplyReason::Adopt) {
                    memory.reversals.push(now);
                }
                self.process
                    .objects
                    .entry((tag.to_owned(), key.clone()))
                    .or_default()
                    .read_at = Some(live.resource_version);
                self.memory(tag, key).read = None;
                Outcome::Done(())
            }
            Outcome::Failed(words) => self.fail(tag, key, Attempt::Intent { digest: intent }, words),
            Outcome::Crashed => Outcome::Crashed,
        }
    }

    fn fail(&mut self, tag: &str, key: &ObjectKey, tried: Attempt, message: String) -> Outcome<()> {
        let at = self.now;
        let memory = self.memory(tag, key);
        let attempts = memory
            .failure
            .as_ref()
            .filter(|failure| failure.tried == tried)
            .map_or(0, |failure| failure.attempts)
            + 1;
        memory.read = None;
        memory.failure = Some(Failure {
            tried,
            loses_data: message.contains("lose stored data"),
            message: message.clone(),
            attempts,
            at,
        });
        Outcome::Failed(message)
    }

    pub(super) fn check_object(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let body = self.body(tag, key);
        let intent = body_digest(&body);
        let live = match self.look(tag, key) {
            Ok(Some(live)) => live,
            Ok(None) => {
                self.memory(tag, key).read = Some(Read::Absent);
                return Outcome::Done(());
            }
            Err(outcome) => return outcome,
        };
        let Ok(dry) = self.api.dry_run(key, &marked(tag, &body), labels::FIELD_MANAGER, true) else {
            return Outcome::Done(());
        };
        let fields = live.differences(&dry);
        let managers: BTreeSet<String> = fields
            .iter()
            .filter_map(|field| live.fields.get(field))
            .flat_map(|field| field.managers.clone())
            .filter(|manager| manager != labels::FIELD_MANAGER)
            .collect();
        let now = self.now;
        let trigger = live.trigger(has_generation(key));
        let owned = live.is_managed_by(labels::FIELD_MANAGER);
        let memory = self.memory(tag, key);
        memory.failure = None;
        memory.health = Some(health(&live, now).after(memory.health.as_ref()));
        if fields.is_empty() {
            memory.verified = Some(Verified { intent, trigger, owned });
            memory.drifted = None;
            memory.foreign_manager = None;
        } else {
            memory.verified = None;
            memory.foreign_manager = managers.first().cloned();
            memory.drifted = Some(Drifted {
                intent,
                trigger,
                fields,
                managers: managers.into_iter().collect(),
            });
        }
        Outcome::Done(())
    }

    /// Reads an object, or remembers the API server's words.
    fn look(&mut self, tag: &str, key: &ObjectKey) -> Result<Option<Live>, Outcome<()>> {
        if let Some(words) = self.faults.unreadable.get(&key.to_string()).cloned() {
            return Err(self.fail(tag, key, Attempt::Look, words));
        }
        let memory = self.memory(tag, key);
        memory.failure.take_if(|failure| failure.tried == Attempt::Look);
        Ok(self.api.objects.get(key).cloned())
    }

    pub(super) fn read_object(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let live = match self.look(tag, key) {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        let now = self.now;
        let read = live.as_ref().map_or(Read::Absent, |live| Read::Found {
            uid: live.uid.clone(),
            resource_version: live.resource_version.to_string(),
            belongs: belongs(tag, live),
            keep: live.is_kept(),
            deleting: live.deleting,
            at: now,
        });
        let memory = self.memory(tag, key);
        if matches!(read, Read::Found { deleting: true, .. }) {
            memory.verified = None;
            memory.drifted = None;
        }
        memory.read = Some(read);
        let before = memory.health.take();
        memory.health = live.as_ref().map(|live| health(live, now).after(before.as_ref()));
        Outcome::Done(())
    }

    pub(super) fn take_over(&mut self, tag: &str, key: &ObjectKey) -> Outcome<()> {
        let outcome = self.write(Some(key), |api| {
            api.change(key, |live| {
                for field in live.fields.values_mut() {
                    if field.managers.remove(labels::PREDECESSOR_FIELD_MANAGER) {
                        field.managers.insert(labels::FIELD_MANAGER.to_owned());
                    }
                }
            });
            Ok(())
        });
        match outcome {
            Outcome::Failed(words) => {
                let digest = body_digest(&self.body(tag, key));
                self.fail(tag, key, Attempt::Intent { digest }, words)
            }
            done => {
                self.memory(tag, key).read = None;
                done
            }
        }
    }

    pub(super) fn delete_object(&mut self, tag: &str, key: &ObjectKey, (uid, version): (&str, &str)) -> Outcome<()> {
        self.check_deletion(tag, key, uid);
        match self.write(Some(key), |api| {
            api.delete(key, uid, version);
            Ok(())
        }) {
            Outcome::Failed(words) => self.fail(tag, key, Attempt::Deletion, words),
            Outcome::Done(()) => {
                let Remembered { memory, .. } = self.process.objects.entry((tag.to_owned(), key.clone())).or_default();
                memory.failure = None;
                memory.read = None;
                memory.verified = None;
                memory.drifted = None;
                Outcome::Done(())
            }
            Outcome::Crashed => Outcome::Crashed,
        }
    }
}

fn health(live: &Live, at: Timestamp) -> HealthSeen {
    let (state, message) = live.health.clone();
    HealthSeen {
        state,
        message,
        resource_version: live.resource_version.to_string(),
        at,
        reads: 0,
    }
}
