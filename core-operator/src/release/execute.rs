//! Performs the actions of a release's plan, and remembers what came of them. Decides nothing.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use crds::{ClusterStackRelease, labels};
use futures::future::join_all;
use kube::ResourceExt;
use operator_kit::apply::{ApplyOptions, apply};
use operator_kit::comparison::compare;
use operator_kit::delete::{Deletion, Version, delete};
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use operator_kit::objects::Seen;
use operator_kit::takeover::{Rename, relieve, take_over};
use planning::release::{ApplyReason, Attempt, Belongs, Drifted, Read, ReleaseAction, Step, Verified};
use planning::stored_data::is_definition;
use tracing::Instrument;

use super::adoption::keep_what_is_there;
use super::bodies::{Bodies, Unprepared};
use super::definition::without_loss;
use super::live::{is_mover, is_owned, judged, other_managers};
use super::marks::{FOREIGN, left_behind};
use super::memory::ReleaseMemory;
use super::observe::{Sight, lock, sight};
use super::own::{write_status, writes_itself};
use super::provider;
use super::refusal::{NOT_KEPT, is_marked, refusal};
use crate::context::Context;
use crate::spans::{acting, failed};

/// How many requests of one release are under way at once.
const SIDE_BY_SIDE: usize = 8;

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
            self.forget_form(key);
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
            Ok(applied) if !is_marked(&applied, self.part_of) => Err(self.refused(key, digest, NOT_KEPT)),
            Ok(applied) => {
                if why == ApplyReason::Restore || applied.owners.iter().any(is_mover) {
                    self.relieve(key).await?;
                }
                self.applied(key, digest, &applied).await;
                if matches!(why, ApplyReason::Correct | ApplyReason::Adopt) {
                    self.reversed(key);
                }
                Ok(())
            }
            Err(error) => Err(self.refused(key, digest, &refusal(&error))),
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
        let changes = lock(self.memory).changes(key);
        let Some(live) = self.look(key).await? else {
            lock(self.memory).remember_read(key, changes, Read::Absent);
            return Ok(());
        };
        let now = self.context.now();
        let found = serde_json::to_value(&live).unwrap_or_default();
        let difference = compare(&wanted, &found);
        let Some(seen) = Seen::of(&live.metadata, labels::PART_OF) else {
            return Ok(());
        };
        let trigger = sight(&seen, self.part_of).trigger;
        self.context.objects.note(self.part_of, key, seen).await;
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
        answer.map_err(|error| self.remember_failure(key, Attempt::Deletion, &chain(&error)))?;
        self.forget_form(key);
        let mut memory = lock(self.memory);
        let object = memory.objects.entry(key.clone()).or_default();
        object.read = None;
        object.failure = None;
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
