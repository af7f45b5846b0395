//! Performs the actions of a release's plan, and remembers what came of them. Decides nothing.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use crds::{ClusterStackRelease, labels};
use futures::future::join_all;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::apply::{AppliedObject, ApplyOptions, apply};
use operator_kit::comparison::compare;
use operator_kit::delete::{Deletion, Version, delete};
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use operator_kit::objects::Seen;
use operator_kit::read::read;
use operator_kit::takeover::{Rename, relieve, take_over};
use planning::release::{ApplyReason, Attempt, Belongs, Drifted, Failure, Read, ReleaseAction, Step, Verified};
use planning::stored_data::is_definition;
use tracing::Instrument;

use super::adoption::keep_what_is_there;
use super::bodies::{Bodies, Unprepared};
use super::definition::{Unchanged, without_loss};
use super::live::{belongs, is_mover, is_owned, judged, other_managers};
use super::marks::{FOREIGN, is_elsewhere, left_behind};
use super::memory::ReleaseMemory;
use super::observe::{Sight, lock, sight};
use super::own::{write_status, writes_itself};
use super::provider;
use super::refusal::refusal;
use crate::context::Context;
use crate::spans::{acting, failed};

/// How many requests of one release are under way at once.
const SIDE_BY_SIDE: usize = 8;

/// How many reversals are remembered; the plan looks at three.
const REVERSALS: usize = 4;

/// One pass over the steps of one plan.
pub(crate) struct Pass<'a> {
    pub(crate) context: &'a Context,
    pub(crate) part_of: &'a str,
    pub(crate) memory: &'a Mutex<ReleaseMemory>,
    pub(crate) sight: &'a Sight,
}

/// What became of the release object itself.
pub(crate) enum Outcome {
    /// It is as in the last answer.
    Current(Arc<ClusterStackRelease>),
    /// It could not be written, because somebody else did or it is gone: the watch will tell, and this pass is over.
    Refused {
        /// Why.
        message: String,
    },
    /// The bodies of its objects take long to render: it is woken when they are there.
    Awaited(Arc<ClusterStackRelease>),
}

/// An action that failed. What concerns one object is remembered in its memory; this is for the log.
pub(super) struct Failed(pub(super) String);

impl Pass<'_> {
    /// Performs the steps in order.
    pub(crate) async fn run(&self, release: Arc<ClusterStackRelease>, steps: &[Step]) -> Outcome {
        let mut current = release;
        let mut bodies: Option<Bodies> = None;
        let mut sure = false;
        for step in steps {
            match self.prepare(step, &current, &mut sure, &mut bodies).await {
                Ok(()) => {}
                Err(Unprepared::Refused(Failed(message))) => return Outcome::Refused { message },
                Err(Unprepared::Awaited) => return Outcome::Awaited(current),
            }
            let release = Arc::clone(&current);
            let mut answers: Vec<Result<Option<ClusterStackRelease>, Failed>> = Vec::new();
            for actions in step.actions.chunks(SIDE_BY_SIDE) {
                let performing = actions
                    .iter()
                    .map(|action| acted(action, self.perform(&release, action, bodies.as_ref())));
                answers.extend(join_all(performing).await);
            }
            let mut refused = None;
            for answer in answers {
                match answer {
                    Ok(Some(newer)) => {
                        // Written at the version that was read: it was the newest.
                        sure |= newer.metadata.resource_version != release.metadata.resource_version
                            && newer.metadata.deletion_timestamp.is_none();
                        self.context.releases.note(newer.clone());
                        current = Arc::new(newer);
                    }
                    Ok(None) => {}
                    Err(Failed(message)) => {
                        // What lasts is in the conditions, and told with them.
                        tracing::debug!(
                            namespace = release.namespace(),
                            name = release.name_any(),
                            error = message,
                            "an action failed"
                        );
                        refused = Some(message);
                    }
                }
            }
            if let Some(message) = refused.filter(|_| step.gate) {
                return if writes_itself(step) {
                    Outcome::Refused { message }
                } else {
                    Outcome::Current(current)
                };
            }
        }
        Outcome::Current(current)
    }

    async fn perform(
        &self,
        release: &Arc<ClusterStackRelease>,
        action: &ReleaseAction,
        bodies: Option<&Bodies>,
    ) -> Result<Option<ClusterStackRelease>, Failed> {
        match action {
            ReleaseAction::Mark { group_kinds } => self.mark(release, group_kinds).await.map(Some),
            ReleaseAction::ControlProvider { uid } => provider::control(self.context, release, uid, self.memory)
                .await
                .map(|()| None)
                .map_err(Failed),
            ReleaseAction::RecordInventory { status } => write_status(self.context, release, status)
                .await
                .map(Some)
                .map_err(Failed),
            ReleaseAction::Apply { key, why, force } => {
                self.apply(release, key, *why, *force, bodies).await.map(|()| None)
            }
            ReleaseAction::Check { key } => self.check(key, bodies).await.map(|()| None),
            ReleaseAction::Read { key } => self.read(key).await.map(|()| None),
            ReleaseAction::TakeOver { key } => self.take_over(release, key).await.map(|()| None),
            ReleaseAction::Delete {
                key,
                uid,
                resource_version,
            } => self.delete(key, Version { uid, resource_version }).await.map(|()| None),
            ReleaseAction::RemoveFinalizer => self.remove_finalizer(release).await.map(Some),
        }
    }

    fn options(&self, force: bool, dry_run: bool) -> ApplyOptions<'_> {
        ApplyOptions {
            field_manager: labels::FIELD_MANAGER,
            force,
            dry_run,
            namespace: &self.sight.observed.namespace,
            known_version: None,
        }
    }

    async fn apply(
        &self,
        release: &ClusterStackRelease,
        key: &ObjectKey,
        why: ApplyReason,
        force: bool,
        bodies: Option<&Bodies>,
    ) -> Result<(), Failed> {
        let (digest, body) = self.intent(key, bodies)?;
        let options = self.options(force, false);
        let mut body = Cow::Borrowed(body);
        if why == ApplyReason::Adopt {
            let left = left_behind(self.context, key).await;
            left.map_err(|message| self.refused(key, digest, &message))?;
        }
        if is_definition(&key.group_kind()) {
            // None is ever deleted, so that there is nothing to mark.
            let bound = without_loss(self.context, release, (key, why), &body, &options).await;
            body = Cow::Owned(bound.map_err(|unchanged| self.unchanged(key, digest, &unchanged))?);
        } else if why == ApplyReason::Create {
            let kept = keep_what_is_there(self.context, release, self.part_of, key, &body).await;
            match kept.map_err(|message| self.refused(key, digest, &message))? {
                Some(Belongs::OtherOwner) => return Err(Failed(format!("{key}: {FOREIGN}"))),
                // No fields conflict where both want the same, and the Go operator's would be kept for ever.
                Some(Belongs::Predecessor) => self.take_over(release, key).await?,
                _ => {}
            }
        }
        let applying = apply(&self.context.client, &self.context.discovery, &body, &options);
        match self.context.metrics.applied(applying).await {
            Ok(applied) => {
                if why == ApplyReason::Restore || applied.owners.iter().any(is_mover) {
                    self.relieve(key).await?;
                }
                self.applied(key, digest, &applied);
                if matches!(why, ApplyReason::Correct | ApplyReason::Adopt) {
                    self.reversed(key);
                }
                Ok(())
            }
            Err(error) => Err(self.refused(key, digest, &refusal(&error))),
        }
    }

    /// Remembers what the API server stored, before its watch tells.
    fn applied(&self, key: &ObjectKey, digest: &str, applied: &AppliedObject) {
        let now = self.context.now();
        let live = serde_json::to_value(&applied.live).unwrap_or_default();
        let seen = Seen::of(&applied.live.metadata, labels::PART_OF);
        let trigger = seen.as_ref().map(|seen| sight(seen, self.part_of).trigger);
        if let Some(seen) = seen {
            self.context.objects.note(key, seen);
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

    fn reversed(&self, key: &ObjectKey) {
        let now = self.context.now();
        let mut memory = lock(self.memory);
        let reversals = &mut memory.objects.entry(key.clone()).or_default().reversals;
        reversals.push(now);
        if reversals.len() > REVERSALS {
            reversals.remove(0);
        }
    }

    /// A dry run; where its answer differs from what the watch shows, the live object is read and compared.
    async fn check(&self, key: &ObjectKey, bodies: Option<&Bodies>) -> Result<(), Failed> {
        let (digest, body) = self.intent(key, bodies)?;
        let options = self.options(true, true);
        let dry_run = match apply(&self.context.client, &self.context.discovery, body, &options).await {
            Ok(dry_run) => dry_run,
            Err(error) => return Err(self.refused(key, digest, &refusal(&error))),
        };
        let wanted = serde_json::to_value(&dry_run.live).unwrap_or_default();
        let Some(live) = self.look(key).await? else {
            lock(self.memory).objects.entry(key.clone()).or_default().read = Some(Read::Absent);
            return Ok(());
        };
        let now = self.context.now();
        let found = serde_json::to_value(&live).unwrap_or_default();
        let difference = compare(&wanted, &found);
        let Some(seen) = Seen::of(&live.metadata, labels::PART_OF) else {
            return Ok(());
        };
        let trigger = sight(&seen, self.part_of).trigger;
        self.context.objects.note(key, seen);
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        object.failure = None;
        object.health = Some(judged(&found, &live, now));
        if difference.is_empty() {
            object.foreign_manager = dry_run.owners.first().map(|owner| owner.manager.clone());
            object.verified = Some(Verified {
                intent: digest.to_owned(),
                trigger,
                owned: is_owned(&live),
            });
            object.drifted = None;
        } else {
            object.verified = None;
            let managers = other_managers(&live);
            object.foreign_manager = managers.first().cloned();
            object.drifted = Some(Drifted {
                intent: digest.to_owned(),
                trigger,
                fields: difference.pointers,
                managers,
            });
        }
        Ok(())
    }

    /// Remembers that an object was refused, in the API server's words.
    fn refused(&self, key: &ObjectKey, digest: &str, message: &str) -> Failed {
        let tried = Attempt::Intent {
            digest: digest.to_owned(),
        };
        self.remember_failure(key, tried, message)
    }

    /// Remembers that a CRD could not be changed, and whether only because of what is stored under it.
    fn unchanged(&self, key: &ObjectKey, digest: &str, unchanged: &Unchanged) -> Failed {
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

    async fn read(&self, key: &ObjectKey) -> Result<(), Failed> {
        let live = self.look(key).await?;
        let belongs = match &live {
            Some(live) => self.whose(key, live).await?,
            None => Belongs::Nobody,
        };
        let now = self.context.now();
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        match live {
            None => {
                object.read = Some(Read::Absent);
                object.verified = None;
                object.health = None;
            }
            Some(live) => {
                let found = serde_json::to_value(&live).unwrap_or_default();
                object.health = Some(judged(&found, &live, now));
                object.read = Some(Read::Found {
                    uid: live.uid().unwrap_or_default(),
                    resource_version: live.resource_version().unwrap_or_default(),
                    belongs,
                    keep: live.annotations().get(labels::RESOURCE_POLICY).map(String::as_str)
                        == Some(labels::RESOURCE_POLICY_KEEP),
                    deleting: live.metadata.deletion_timestamp.is_some(),
                    at: now,
                });
            }
        }
        Ok(())
    }

    /// Whose an object is; of one with another release's mark, whether that is there though it is not watched.
    async fn whose(&self, key: &ObjectKey, live: &DynamicObject) -> Result<Belongs, Failed> {
        match (belongs(live, self.part_of), live.labels().get(labels::PART_OF)) {
            (Belongs::OtherOwner, Some(mark)) => match is_elsewhere(self.context, key, mark).await {
                Ok(true) => Ok(Belongs::Stranger),
                Ok(false) => Ok(Belongs::OtherOwner),
                Err(message) => Err(self.remember_failure(key, Attempt::Look, &message)),
            },
            (belongs, _) => Ok(belongs),
        }
    }

    /// Reads the object, and remembers that this failed or no longer does.
    async fn look(&self, key: &ObjectKey) -> Result<Option<DynamicObject>, Failed> {
        let before = self.context.objects.get(key);
        let context = self.context;
        match read(&context.client, &context.discovery, &context.crds, key).await {
            Ok(live) => {
                let marked = |live: &DynamicObject| Seen::of(&live.metadata, labels::PART_OF).is_some();
                if let Some(before) = before.filter(|_| !live.as_ref().is_some_and(marked)) {
                    self.forget(key, &before).await;
                }
                let mut memory = lock(self.memory);
                let object = memory.objects.entry(key.clone()).or_default();
                object.failure.take_if(|failure| failure.tried == Attempt::Look);
                Ok(live)
            }
            Err(error) => Err(self.remember_failure(key, Attempt::Look, &chain(&error))),
        }
    }

    /// Forgets a sight of what is gone, or has lost its mark: the watch may be behind. Of a kind that is not served nothing is known: its objects come back with it.
    async fn forget(&self, key: &ObjectKey, before: &Seen) {
        if let Ok(Some(_)) = self.context.discovery.resolve_kind(&key.group_kind()).await {
            self.context.objects.note_absent(key, before);
        }
    }

    async fn take_over(&self, release: &ClusterStackRelease, wanted: &ObjectKey) -> Result<(), Failed> {
        let ours = [Rename {
            from: labels::PREDECESSOR_FIELD_MANAGER,
            operation: "Apply",
            subresource: None,
            to: labels::FIELD_MANAGER,
        }];
        let status = [Rename {
            from: labels::PREDECESSOR_STATUS_FIELD_MANAGER,
            operation: "Update",
            subresource: Some("status"),
            to: labels::STATUS_FIELD_MANAGER,
        }];
        let own = ObjectKey::new(
            crds::GROUP,
            "ClusterStackRelease",
            release.namespace().unwrap_or_default(),
            release.name_any(),
        );
        for (key, renames) in [(wanted, &ours), (&own, &status)] {
            let taken = take_over(&self.context.client, &self.context.discovery, key, renames).await;
            taken.map_err(|error| self.remember_failure(wanted, self.intent_of(wanted), &chain(&error)))?;
        }
        self.read(wanted).await
    }

    /// What we have applied is ours alone, and not also of clusterctl, which made the object here.
    async fn relieve(&self, key: &ObjectKey) -> Result<(), Failed> {
        let (mover, ours) = (labels::MOVER_FIELD_MANAGER, labels::FIELD_MANAGER);
        let relieved = relieve(&self.context.client, &self.context.discovery, key, mover, ours).await;
        relieved
            .map(drop)
            .map_err(|error| self.remember_failure(key, self.intent_of(key), &chain(&error)))
    }

    async fn delete(&self, key: &ObjectKey, read: Version<'_>) -> Result<(), Failed> {
        let before = self.context.objects.get(key);
        let context = self.context;
        let answer = delete(&context.client, &context.discovery, &context.crds, key, read).await;
        if let (Ok(Deletion::Gone), Some(before)) = (&answer, before) {
            self.forget(key, &before).await;
        }
        lock(self.memory).objects.entry(key.clone()).or_default().read = None;
        answer.map_err(|error| self.remember_failure(key, Attempt::Deletion, &chain(&error)))?;
        lock(self.memory).objects.entry(key.clone()).or_default().failure = None;
        Ok(())
    }
}

/// Does one action within a span.
async fn acted<T>(action: &ReleaseAction, performing: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let span = acting(action);
    let done = performing.instrument(span.clone()).await;
    if let Err(Failed(message)) = &done {
        failed(&span, message);
    }
    done
}
