//! Performs one step about an image. What is written is written before what follows from it, at the version that was read. Decides nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crds::labels;
use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_kit::failure::chain;
use operator_kit::finalizer::{self, Marking};
use operator_kit::telemetry::log_refusal;
use planning::image::{Deed, Failure, Form, ImagePolicy, Step, StopReason, Told};
use provider_plugin::{ImageId, Pinned, Reach, Subject};

use super::memory::{ImageMemory, lock};
use super::observe::Case;
use super::status::{Written, write};
use crate::context::{Context, Served};
use crate::executor::Order;
use crate::executor::jobs::JobOrder;
use crate::objects::ObjectId;
use crate::source::Files;
use crate::worker::document::SumsOfDocument;
use crate::worker::{ContentSpec, WorkPlan};

/// One pass over one object.
pub(super) struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) served: &'a Served,
    pub(super) id: &'a ObjectId,
    pub(super) memory: &'a Mutex<ImageMemory>,
    pub(super) case: &'a Case,
}

/// What became of a step.
pub(super) enum Performed {
    /// The object is like this now.
    Current(Arc<DynamicObject>),
    /// It is gone.
    Gone,
    /// It could not be written; it is tried again after this time, unless a watch tells before.
    Refused(Duration),
}

impl Pass<'_> {
    /// Performs the step.
    pub(super) async fn perform(&self, step: &Step, told: &Told) -> Performed {
        match step {
            Step::Claim => return self.claim().await,
            Step::Finish { left_behind } => return self.finish(told, left_behind).await,
            // Also when nothing can be written: what is under way must end.
            Step::Stop(why) => self.context.executor.stop(self.id, *why),
            _ => {}
        }
        let current = match write(self, told).await {
            Written::Current(current) => current,
            Written::Gone => {
                self.served.images.forget(&self.case.object);
                self.context.executor.stop(self.id, StopReason::Deleted);
                return Performed::Gone;
            }
            Written::Refused(pause) => return Performed::Refused(pause),
        };
        match step {
            Step::Settle(_) => self.context.executor.forget(self.id),
            Step::Do { deed, form } => self.begin(deed, *form).await,
            _ => {}
        }
        Performed::Current(current)
    }

    /// Begins a deed, or notes why it cannot even be asked for.
    async fn begin(&self, deed: &Deed, form: Form) {
        let now = || self.context.clock.now().steady;
        let Case { asked, cloud, .. } = self.case;
        let connection = match &cloud.connection {
            Ok(connection) => Arc::clone(connection),
            Err(failure) => return lock(self.memory).refuse(failure, now()),
        };
        let Some(image) = &asked.image else { return };
        let job = (form == Form::Job).then(|| Box::new(self.job()));
        // A Job opens them itself.
        let files = if job.is_none() {
            self.files(deed).await
        } else {
            Ok(None)
        };
        let (files, pinned) = match files {
            Ok(files) => files.unzip(),
            Err(failure) => return lock(self.memory).refuse_source(&failure, now()),
        };
        let mut image = image.clone();
        self.limit(&mut image.subject, deed, now());
        let plan = WorkPlan {
            object: self.id.clone(),
            deed: deed.clone(),
            image,
            holder: self.context.owner.clone(),
            goes: self.case.wanted.deleting.is_some(),
            holds: lock(self.memory).holds(now()),
            content: ContentSpec {
                pinned: asked.content.pinned.clone().or(pinned.flatten()),
                ..asked.content.clone()
            },
        };
        tracing::debug!(object = %self.id, deed = ?deed.name(), "begins");
        self.context.executor.begin(Order {
            plan,
            connection,
            files,
            job,
        });
    }

    /// Says how much has to be seen, and notes that the deed begins.
    fn limit(&self, subject: &mut Subject, deed: &Deed, now: Duration) {
        let wanted = &self.case.wanted;
        let goes = wanted.deleting.is_some();
        let by_name = wanted.policy != ImagePolicy::Create && wanted.adopt.is_none();
        let is_asked_for = !goes && (by_name || wanted.adopt.is_some());
        if goes {
            subject.adopt = None;
        }
        let mut memory = lock(self.memory);
        if *deed == Deed::Look {
            let kept = &self.case.kept;
            let is_noted = kept.attempt > 0 && kept.key.as_ref() == Some(&wanted.key);
            subject.attempt = is_noted.then_some(kept.attempt);
            [subject.recorded, subject.made] = memory.known(subject.recorded.take(), kept.attempt);
        }
        let is_all = |id: Option<&ImageId>| wanted.adopt.is_none() && memory.needs_only(id, now);
        if is_all(subject.made.as_ref()) {
            subject.recorded = subject.made.take();
        }
        subject.only_recorded = is_all(subject.recorded.as_ref());
        subject.look_for_others = !subject.only_recorded && (is_asked_for || memory.looks_for_others());
        subject.reach = match deed {
            // Anybody can fill this list, so that it is read only where one of it would be used.
            Deed::Look if wanted.may_use_given() => Reach::Everybody,
            // Whoever is not named by his name cannot fill the list with it.
            Deed::Look if !by_name => Reach::BesideOurs,
            _ => Reach::Shown,
        };
        memory.begin(deed, subject);
    }

    /// What a Job needs beside the deed.
    fn job(&self) -> JobOrder {
        let Some(wish) = &self.case.wish else {
            return JobOrder::default();
        };
        let content = wish.content();
        JobOrder {
            shape: wish.wishes().job.clone().unwrap_or_default(),
            build: content.build.clone(),
            sums: content.sums.as_ref().map(|sums| SumsOfDocument {
                url: sums.url.clone(),
                name: sums.name.clone(),
            }),
            secret: wish.secret().map(str::to_owned),
        }
    }

    /// The files that a deed reads, if it reads any.
    async fn files(&self, deed: &Deed) -> Result<Option<(Files, Option<Pinned>)>, Failure> {
        let Some(wish) = &self.case.wish else {
            return Ok(None);
        };
        if !matches!(deed, Deed::Probe | Deed::Transfer { .. } | Deed::Import { .. }) || wish.url().is_empty() {
            return Ok(None);
        }
        let Context { files, supply, .. } = self.context;
        files.of(self.served, supply, &self.case.object, wish).await.map(Some)
    }

    /// The finalizer and whose the image is, before anything is made.
    async fn claim(&self) -> Performed {
        let object = &self.case.object;
        let api = self
            .served
            .image_api(&self.context.client, &object.namespace().unwrap_or_default());
        // The owner that images are marked with stays, and so does one that is noted already.
        let noted = [(labels::IMAGE_OWNER, self.case.asked.owner.as_str())];
        let read = object.as_ref();
        match finalizer::mark(&api, read, labels::NODE_IMAGE_FINALIZER, &noted, labels::FIELD_MANAGER).await {
            Ok(Marking::Kept(claimed)) => {
                self.served.images.note(DynamicObject::clone(&claimed));
                Performed::Current(Arc::from(claimed))
            }
            Ok(Marking::Changed(claimed)) => {
                self.served.images.note(*claimed);
                Performed::Refused(self.refused("a policy takes the finalizer or the owner away again"))
            }
            Err(error) => Performed::Refused(self.refused(&chain(&error))),
        }
    }

    /// Lets the object go.
    async fn finish(&self, told: &Told, left_behind: &[String]) -> Performed {
        let object = &self.case.object;
        let api = self
            .served
            .image_api(&self.context.client, &object.namespace().unwrap_or_default());
        let read = object.as_ref();
        match finalizer::remove(&api, read, labels::NODE_IMAGE_FINALIZER, labels::FIELD_MANAGER).await {
            Ok(_) => {
                super::status::publish(self, &told.notes);
                self.served.images.forget(object);
                self.context.executor.forget(self.id);
                tracing::info!(object = %self.id, left_behind = left_behind.join(", "), "gone");
                Performed::Gone
            }
            Err(error) => Performed::Refused(self.refused(&chain(&error))),
        }
    }

    /// How long until the next try, after the object could not be written.
    pub(super) fn refused(&self, message: &str) -> Duration {
        let mut memory = lock(self.memory);
        memory.refusals = memory.refusals.saturating_add(1);
        let kind = self.served.kind.definition().image_kind;
        log_refusal(kind, self.case.object.as_ref(), memory.refusals, message);
        let pause = planning::next::retry_delay_seconds(memory.refusals);
        Duration::from_secs(pause.unsigned_abs())
    }
}
