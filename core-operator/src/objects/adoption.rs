//! Objects that were there before an owner asked for them: they are shared from then on, and their makers keep them.

use crds::events::Happening;
use crds::labels;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use operator_kit::apply::{AppliedObject, ApplyError, ApplyOptions};
use operator_kit::events::EventType;
use operator_kit::failure::chain;
use operator_kit::object::ObjectKey;
use planning::objects::Belongs;
use serde_json::{Value, json};

use super::execute::{Failed, Pass};
use super::live::{belongs, other_managers, was_moved_here};
use super::owner::Owner;
use super::refusal::refusal;

/// The mark is a statement of its own, so that the next apply of the object does not take it back.
const KEEP_FIELD_MANAGER: &str = "stackwright-keep";

/// What is there before the first apply of an object.
enum There {
    /// Nothing.
    Nothing,
    /// What another owner has made. What becomes of it is for the next decision.
    Anothers,
    /// What the Go operator has made.
    Predecessors,
    /// What is ours, or shared from now on.
    Free,
}

impl<O: Owner> Pass<'_, O> {
    /// Makes an object where there is none. One that is there is never held for one of ours, whatever happens in between: the API server itself refuses to
    /// touch it, and it is marked before the owner's first apply.
    pub(super) async fn make(
        &self,
        owner: &O::Object,
        key: &ObjectKey,
        digest: &str,
        body: &Value,
        options: &ApplyOptions<'_>,
    ) -> Result<Result<AppliedObject, ApplyError>, Failed> {
        match self.make_new(key, body, options).await {
            Err(ApplyError::AlreadyThere) => {}
            made => return Ok(made),
        }
        let kept = self.keep_what_is_there(owner, key, body).await;
        match kept.map_err(|message| self.refused(key, digest, &message))? {
            There::Anothers => return Err(self.foreign(key, digest)),
            // No fields conflict where both want the same, and the Go operator's would be kept for ever.
            There::Predecessors => self.take_over(owner, key).await?,
            There::Nothing | There::Free => {}
        }
        let applying = self.place.apply(body, options);
        Ok(self.metrics.applied(applying).await)
    }

    /// Makes an object that the inventory has named, and that nobody has looked for, where there is none. One that is there may be ours, made before the
    /// process ended: it is looked at, and what becomes of it is decided anew.
    pub(super) async fn make_announced(
        &self,
        key: &ObjectKey,
        body: &Value,
        options: &ApplyOptions<'_>,
    ) -> Result<Result<AppliedObject, ApplyError>, Failed> {
        match self.make_new(key, body, options).await {
            Err(ApplyError::AlreadyThere) => {
                self.read(key).await?;
                // What follows in the plan rests on it, and the next plan knows of it.
                Err(Failed(format!("{key}: {}", ApplyError::AlreadyThere)))
            }
            made => Ok(made),
        }
    }

    /// Makes an object, and changes none that is there: that is [`ApplyError::AlreadyThere`].
    async fn make_new(
        &self,
        key: &ObjectKey,
        body: &Value,
        options: &ApplyOptions<'_>,
    ) -> Result<AppliedObject, ApplyError> {
        self.forget_form(key);
        let only_new = ApplyOptions {
            only_new: true,
            ..*options
        };
        let making = self.place.apply(body, &only_new);
        self.metrics.applied(making).await
    }

    /// Marks an object that is there, so that it stays when the owner goes, and says so.
    async fn keep_what_is_there(&self, owner: &O::Object, key: &ObjectKey, body: &Value) -> Result<There, String> {
        let place = self.place;
        let found = place.read(key).await;
        let Some(live) = found.map_err(|error| chain(&error))? else {
            return Ok(There::Nothing);
        };
        if self.is_anothers(key, &live).await? {
            return Ok(There::Anothers);
        }
        match belongs(&live, self.part_of) {
            Belongs::Predecessor => return Ok(There::Predecessors),
            Belongs::Us | Belongs::OtherOwner => return Ok(There::Free),
            Belongs::Nobody | Belongs::Stranger if was_moved_here(&live, self.part_of) => return Ok(There::Free),
            Belongs::Nobody | Belongs::Stranger => {}
        }
        let mark = json!({
            "apiVersion": live.types.as_ref().map(|types| &types.api_version),
            "kind": key.kind,
            "metadata": {
                "name": key.name,
                // Gone in between, it must not come back as a husk.
                "uid": live.metadata.uid,
                "annotations": {labels::RESOURCE_POLICY: labels::RESOURCE_POLICY_KEEP},
            },
        });
        let options = ApplyOptions {
            field_manager: KEEP_FIELD_MANAGER,
            force: false,
            dry_run: false,
            namespace: self.owner.namespace_of(key),
            only_new: false,
        };
        let rehearsal = ApplyOptions {
            field_manager: labels::FIELD_MANAGER,
            dry_run: true,
            ..options
        };
        // What conflicts is not shared, and told without a trace on the object.
        place
            .apply(body, &rehearsal)
            .await
            .map_err(|error| refusal(self.owner.kind(), &error))?;
        place
            .apply(&mark, &options)
            .await
            .map_err(|error| format!("unable to mark an object that was there before, so it is left alone: {error}"))?;
        self.tell_shared(owner, key, &live);
        Ok(There::Free)
    }

    fn tell_shared(&self, owner: &O::Object, key: &ObjectKey, live: &DynamicObject) {
        let (kind, name, others) = (&key.kind, &key.name, other_managers(live).join(", "));
        let whose = self.owner.kind();
        let message = format!("{kind} {name} was there before, written by {others}; it stays when the {whose} goes");
        let (about, events) = (owner.object_ref(&()), self.events);
        events.publish(about, EventType::Normal, Happening::ObjectShared, &message);
    }

    /// Whether an object that is to be made is another owner's, which made it before the watch showed it. Then it is noted: what becomes of it is decided
    /// anew. Of one that the watch will not show the mark itself has to tell, by whether its owner is there.
    pub(super) async fn is_anothers(&self, key: &ObjectKey, live: &DynamicObject) -> Result<bool, String> {
        let belongs = belongs(live, self.part_of);
        let Some(mark) = live.labels().get(labels::PART_OF) else {
            return Ok(false);
        };
        if !matches!(belongs, Belongs::OtherOwner | Belongs::Stranger) {
            return Ok(false);
        }
        if !self.place.objects.shows_others() {
            return self.owner.is_elsewhere(key, mark).await;
        }
        let is_anothers = belongs == Belongs::OtherOwner;
        if let Some(seen) = self.place.objects.sight(key, &live.metadata).filter(|_| is_anothers) {
            self.place.objects.note(self.part_of, key, seen).await;
        }
        Ok(is_anothers)
    }

    /// Refuses where the owner is there whose mark an object carries, or where nobody can tell. What becomes of the objects of owners that are watched
    /// has been decided before.
    pub(super) async fn left_behind(&self, key: &ObjectKey) -> Result<(), String> {
        let Some(seen) = self.place.objects.get(key) else {
            return Ok(());
        };
        if self.owner.is_elsewhere(key, &seen.part_of).await? {
            return Err(self.owner.kind().foreign());
        }
        Ok(())
    }
}
