//! Writes objects as a plan says: applies, dry runs, takeovers, deletions.

use std::borrow::Cow;

use crds::labels;
use kube::ResourceExt;
use operator_kit::apply::ApplyOptions;
use operator_kit::comparison::compare;
use operator_kit::delete::{Deletion, Version};
use operator_kit::failure::chain;
use operator_kit::object::{ObjectKey, json_of};
use operator_kit::takeover::{Rename, relieve, take_over};
use planning::objects::{ApplyReason, Attempt, Drifted, Read, Verified};
use planning::stored_data::is_definition;

use super::bodies::Bodies;
use super::execute::{Failed, Pass};
use super::live::{is_mover, is_owned, judged, other_managers};
use super::memory::lock;
use super::observe::sight;
use super::owner::Owner;
use super::refusal::{NOT_KEPT, is_marked, refusal};

impl<O: Owner> Pass<'_, O> {
    fn options<'k>(&'k self, key: &'k ObjectKey, force: bool, dry_run: bool) -> ApplyOptions<'k> {
        ApplyOptions {
            field_manager: labels::FIELD_MANAGER,
            force,
            dry_run,
            namespace: self.owner.namespace_of(key),
            only_new: false,
        }
    }

    pub(super) async fn apply(
        &self,
        owner: &O::Object,
        key: &ObjectKey,
        why: ApplyReason,
        force: bool,
        bodies: Option<&Bodies>,
    ) -> Result<(), Failed> {
        let (digest, body) = self.intent(key, bodies)?;
        let options = self.options(key, force, false);
        let mut body = Cow::Borrowed(body);
        if why == ApplyReason::Adopt {
            let left = self.left_behind(key).await;
            left.map_err(|message| self.refused(key, digest, &message))?;
        }
        if is_definition(&key.group_kind()) {
            // None is ever deleted, so that there is nothing to mark.
            let bound = self.without_loss(owner, (key, why), &body, &options).await;
            body = Cow::Owned(bound.map_err(|unchanged| self.unchanged(key, digest, &unchanged))?);
        }
        let answer = match why {
            ApplyReason::Create if !is_definition(&key.group_kind()) => {
                self.make(owner, key, digest, &body, &options).await?
            }
            ApplyReason::Announced => self.make_announced(key, &body, &options).await?,
            ApplyReason::Create
            | ApplyReason::Update
            | ApplyReason::Correct
            | ApplyReason::Restore
            | ApplyReason::Adopt => {
                let applying = self.place.apply(&body, &options);
                self.metrics.applied(applying).await
            }
        };
        match answer {
            Ok(applied) if !is_marked(&applied, self.part_of) => Err(self.refused(key, digest, NOT_KEPT)),
            Ok(applied) => {
                if why == ApplyReason::Restore || applied.owners.iter().any(is_mover) {
                    self.relieve(key).await?;
                }
                self.applied(key, digest, applied).await;
                if matches!(why, ApplyReason::Correct | ApplyReason::Adopt) {
                    self.reversed(key);
                }
                Ok(())
            }
            Err(error) => Err(self.refused(key, digest, &refusal(self.owner.kind(), &error))),
        }
    }

    /// A dry run; where its answer differs from what the watch shows, the live object is read and compared.
    pub(super) async fn check(&self, key: &ObjectKey, bodies: Option<&Bodies>) -> Result<(), Failed> {
        let (digest, body) = self.intent(key, bodies)?;
        let options = self.options(key, true, true);
        let dry_run = match self.place.apply(body, &options).await {
            Ok(dry_run) => dry_run,
            Err(error) => return Err(self.refused(key, digest, &refusal(self.owner.kind(), &error))),
        };
        let (wanted, owners) = (json_of(dry_run.live), dry_run.owners);
        let changes = lock(self.memory).changes(key);
        let Some(live) = self.look(key).await? else {
            lock(self.memory).remember_read(key, changes, Read::Absent);
            return Ok(());
        };
        let now = self.clock.now();
        let form = self.in_form_of_rendering(key, &live).await?;
        let Some(seen) = self.place.objects.sight(key, &live.metadata) else {
            return Ok(());
        };
        let (owned, managers) = (is_owned(&live), other_managers(&live));
        let version = live.resource_version().unwrap_or_default();
        let found = json_of(live);
        let difference = compare(&wanted, form.as_ref().unwrap_or(&found));
        let health = judged(&found, version, now);
        drop((wanted, form, found));
        let trigger = sight(&seen, self.part_of).trigger;
        self.place.objects.note(self.part_of, key, seen).await;
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        object.failure = None;
        object.health = Some(health.after(object.health.as_ref()));
        if difference.is_empty() {
            object.foreign_manager = owners.first().map(|owner| owner.manager.clone());
            object.verified = Some(Verified {
                intent: digest.to_owned(),
                trigger,
                owned,
            });
            object.drifted = None;
        } else {
            object.verified = None;
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

    pub(super) async fn take_over(&self, owner: &O::Object, wanted: &ObjectKey) -> Result<(), Failed> {
        let ours = [Rename {
            from: labels::PREDECESSOR_FIELD_MANAGER,
            operation: "Apply",
            subresource: None,
            to: labels::FIELD_MANAGER,
        }];
        let taken = take_over(&self.place.client, &self.place.discovery, wanted, &ours).await;
        let taken = match taken {
            Ok(_) => self.owner.take_over_status(owner).await,
            Err(error) => Err(chain(&error)),
        };
        taken.map_err(|message| self.remember_failure(wanted, self.intent_of(wanted), &message))?;
        self.read(wanted).await
    }

    /// What we have applied is ours alone, and not also of clusterctl, which made the object here.
    async fn relieve(&self, key: &ObjectKey) -> Result<(), Failed> {
        let (mover, ours) = (labels::MOVER_FIELD_MANAGER, labels::FIELD_MANAGER);
        let relieved = relieve(&self.place.client, &self.place.discovery, key, mover, ours).await;
        relieved
            .map(drop)
            .map_err(|error| self.remember_failure(key, self.intent_of(key), &chain(&error)))
    }

    pub(super) async fn delete(&self, key: &ObjectKey, read: Version<'_>) -> Result<(), Failed> {
        let before = self.place.objects.get(key);
        let answer = self.place.delete(key, read).await;
        if let (Ok(Deletion::Gone), Some(before)) = (&answer, before) {
            self.forget(key, &before).await;
        }
        answer.map_err(|error| self.remember_failure(key, Attempt::Deletion, &chain(&error)))?;
        self.forget_form(key);
        let mut memory = lock(self.memory);
        let object = memory.of(key);
        object.read = None;
        object.failure = None;
        Ok(())
    }
}
