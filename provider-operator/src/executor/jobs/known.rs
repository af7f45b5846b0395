//! A Job as the API server shows it: whose it is, what it does and how far it is. Believes what was written by us alone: a Job is ours when the object
//! owns it, its name follows from the object, and it says what it does in our words. Asks nobody.

use crds::providers::{DEFINITIONS, Provider};
use crds::{PROVIDER_GROUP, labels};
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;

use super::names;
use crate::objects::ObjectId;
use crate::worker::WorkPlan;
use crate::worker::document::Document;

/// A Job of ours.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// What it does, and for which object.
    pub(super) plan: WorkPlan,
    /// Its name.
    pub(super) name: String,
    /// Its identity.
    pub(super) uid: String,
    /// How far it is.
    pub(super) stage: Stage,
    /// Whether the status of the object says how it ended.
    pub(super) is_noted: bool,
}

/// How far a Job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for a node, or builds.
    Begins,
    /// The container that sends runs.
    Sends,
    /// It is being deleted.
    Goes,
    /// It is over.
    Over(Over),
}

/// How a Job is over, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Over {
    /// Whether its containers ended well.
    pub(super) is_complete: bool,
    /// Why it failed, as one word: `DeadlineExceeded`.
    pub(super) reason: String,
    /// And in a sentence.
    pub(super) message: String,
}

impl Known {
    /// What the Job says of itself; `None` when it is none of ours.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let template = job.spec.as_ref()?.template.metadata.as_ref()?;
        let told = template.annotations.as_ref()?.get(labels::PLAN)?;
        let document = Document::read(told).ok()?;
        let plan = document.plan();
        let object = &plan.object;
        let is_in_place = job.namespace().as_ref() == Some(&object.namespace)
            && job.name_any() == names::job(object, document.attempt())
            && job.labels().get(labels::JOB_OF) == Some(&names::label(object));
        if !is_in_place || !is_owned(job, object) {
            return None;
        }
        Some(Self {
            name: job.name_any(),
            uid: job.uid()?,
            stage: stage(job),
            is_noted: job.annotations().contains_key(labels::NOTED),
            plan,
        })
    }
}

/// Whether the object owns it.
pub(super) fn is_owned<K: ResourceExt>(made: &K, object: &ObjectId) -> bool {
    made.owner_references().iter().any(|owner| {
        owner.uid == object.uid
            && owner.kind == object.provider.definition().image_kind
            && owner.api_version.split('/').next() == Some(PROVIDER_GROUP)
    })
}

/// The provider whose object owns it, before anything else of it is read.
pub(super) fn provider_of(job: &Job) -> Option<Provider> {
    let owners = job.owner_references();
    let of = |kind: &str| DEFINITIONS.iter().find(|definition| definition.image_kind == kind);
    owners
        .iter()
        .find_map(|owner| of(&owner.kind))
        .map(|definition| definition.provider)
}

fn stage(job: &Job) -> Stage {
    let status = job.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let holds = |type_: &str| {
        conditions
            .iter()
            .find(|condition| condition.type_ == type_ && condition.status == "True")
    };
    if let Some(condition) = holds("Complete").or_else(|| holds("Failed")) {
        return Stage::Over(Over {
            is_complete: condition.type_ == "Complete",
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
        });
    }
    if job.metadata.deletion_timestamp.is_some() {
        return Stage::Goes;
    }
    // The container that sends has nothing to wait for, so that its Pod is ready when it runs.
    match status.ready {
        Some(ready) if ready > 0 => Stage::Sends,
        _ => Stage::Begins,
    }
}
