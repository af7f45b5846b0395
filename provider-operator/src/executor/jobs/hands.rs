//! The calls of the API server about Jobs and what belongs to them: made, noted, ended, asked for. What follows from an answer, others decide.

use std::fmt::Debug;
use std::time::Duration;

use crds::labels;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::{Client, Error, Resource};
use operator_kit::failure::chain;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error as ThisError;
use tokio::time::{self, Instant};

use super::known::{Known, Stage, is_owned};
use super::{access, names};
use crate::objects::ObjectId;
use crate::worker::WorkPlan;

/// How long an earlier Job may be in the way of the next one.
const CLEARING: Duration = Duration::from_mins(1);
/// Between two looks whether it is gone.
const PAUSE: Duration = Duration::from_millis(500);
/// Most Pods of one Job that are asked for: each but the last was driven from its node.
const PODS: u32 = 20;

/// Asks the API server.
#[derive(Clone)]
pub(super) struct Hands(pub(super) Client);

/// A Job could not be made.
#[derive(Debug, ThisError)]
pub(super) enum Refusal {
    /// A right is missing.
    #[error("the API server does not allow it: {0}")]
    Forbidden(String),
    /// A quota is used up, a policy is against it, or the namespace goes.
    #[error("the API server does not take it: {0}")]
    Barred(String),
    /// What users gave is not possible.
    #[error("the API server finds it wrong: {0}")]
    Invalid(String),
    /// Something of the name is not ours.
    #[error("{kind} {name} is there and is not of this object; delete it")]
    Strange {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An earlier one of the name does not go.
    #[error("the earlier Job {0} is still being deleted")]
    Lingers(String),
    /// Nobody waits for it any more.
    #[error("it was stopped")]
    Stopped,
    /// No answer, or none that says anything.
    #[error("failed to make a Job: {0}")]
    Failed(String),
}

impl Hands {
    /// Service account, role and binding, where they are not there.
    pub(super) async fn allow(&self, object: &ObjectId) -> Result<(), Refusal> {
        let [account, role, binding] = access::access(object);
        self.make_if_missing::<ServiceAccount>(object, account).await?;
        self.make_if_missing::<Role>(object, role).await?;
        self.make_if_missing::<RoleBinding>(object, binding).await
    }

    /// Takes them away, where they are the object's. What cannot be deleted goes with the object.
    pub(super) async fn disallow(&self, object: &ObjectId) {
        // Without the binding the others mean nothing.
        let gone = [
            self.take_away::<RoleBinding>(object).await.err(),
            self.take_away::<Role>(object).await.err(),
            self.take_away::<ServiceAccount>(object).await.err(),
        ];
        for error in gone
            .iter()
            .flatten()
            .filter(|error| !matches!(code(error), Some(404 | 409)))
        {
            tracing::debug!(%object, error = chain(error), "unable to take back what a Job was allowed");
        }
    }

    /// Something of the name that is not the object's stays as it is.
    async fn take_away<K>(&self, object: &ObjectId) -> Result<(), Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let (api, name) = (self.api::<K>(object), names::access(object));
        let there = api.get_metadata_opt(&name).await?;
        let Some(there) = there.filter(|there| is_owned(there, object)) else {
            return Ok(());
        };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: there.metadata.uid,
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        api.delete(&name, &params).await.map(drop)
    }

    /// Makes the Job of this plan, or finds that it is there; gives its identity. `is_wanted`: whether somebody still waits for it.
    pub(super) async fn make(
        &self,
        plan: &WorkPlan,
        job: &Value,
        is_wanted: impl Fn() -> bool,
    ) -> Result<String, Refusal> {
        let object = &plan.object;
        let job: Job = typed(job.clone())?;
        let api = self.api::<Job>(object);
        let name = job.metadata.name.clone().unwrap_or_default();
        let end = Instant::now() + CLEARING;
        loop {
            if !is_wanted() {
                return Err(Refusal::Stopped);
            }
            match api.create(&PostParams::default(), &job).await {
                Ok(made) => return Ok(made.metadata.uid.unwrap_or_default()),
                Err(error) if code(&error) == Some(409) => {}
                Err(error) => return Err(refusal(&error)),
            }
            let Some(there) = api.get_opt(&name).await.map_err(|error| refusal(&error))? else {
                continue;
            };
            if !is_owned(&there, object) {
                let kind = Job::kind(&()).into_owned();
                return Err(Refusal::Strange { kind, name });
            }
            if let Some(known) = Known::of(&there).filter(|known| does(known, plan)) {
                return Ok(known.uid);
            }
            if Instant::now() > end {
                return Err(Refusal::Lingers(name));
            }
            if there.metadata.deletion_timestamp.is_none() {
                let uid = there.metadata.uid.unwrap_or_default();
                let asked = self.delete(object, &name, &uid).await;
                asked.map_err(|error| refusal(&error))?;
            }
            time::sleep(PAUSE).await;
        }
    }

    /// Asks for the end of this very Job; says whether it is gone already. It has its name until its Pods are gone: asked for in the background, even after
    /// somebody else has asked for it in the foreground, it would free the name at once, and a Pod whose node does not answer would go on.
    pub(super) async fn delete(&self, object: &ObjectId, name: &str, uid: &str) -> Result<bool, Error> {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Foreground),
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.api::<Job>(object).delete(name, &params).await {
            Ok(_) => Ok(false),
            // Another one has its name.
            Err(error) if matches!(code(&error), Some(404 | 409)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Whether this very Job is still there.
    pub(super) async fn is_there(&self, object: &ObjectId, name: &str, uid: &str) -> Result<bool, Error> {
        let there = self.api::<Job>(object).get_metadata_opt(name).await?;
        Ok(there.is_some_and(|there| there.metadata.uid.as_deref() == Some(uid)))
    }

    /// Writes on a Job that its end is known.
    pub(super) async fn note(&self, object: &ObjectId, name: &str, uid: &str) -> Result<(), Error> {
        let patch = json!({ "metadata": { "uid": uid, "annotations": { labels::NOTED: "true" } } });
        let api = self.api::<Job>(object);
        match api
            .patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if matches!(code(&error), Some(404 | 409 | 422)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The Pods with the label of the object.
    pub(super) async fn pods(&self, object: &ObjectId) -> Result<Vec<Pod>, Error> {
        let label = format!("{}={}", labels::JOB_OF, names::label(object));
        let params = ListParams::default().labels(&label).limit(PODS);
        Ok(self.api::<Pod>(object).list(&params).await?.items)
    }

    async fn make_if_missing<K>(&self, object: &ObjectId, made: Value) -> Result<(), Refusal>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let api = self.api::<K>(object);
        match api.create(&PostParams::default(), &typed(made)?).await {
            Ok(_) => return Ok(()),
            Err(error) if code(&error) == Some(409) => {}
            Err(error) => return Err(refusal(&error)),
        }
        let name = names::access(object);
        match api.get_opt(&name).await.map_err(|error| refusal(&error))? {
            Some(there) if !is_owned(&there, object) => Err(Refusal::Strange {
                kind: K::kind(&()).into_owned(),
                name,
            }),
            // The garbage collector may take what has just gone; the next try makes it.
            Some(_) | None => Ok(()),
        }
    }

    fn api<K>(&self, object: &ObjectId) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.0.clone(), &object.namespace)
    }
}

/// Whether a Job that is there does what is asked for, and can still do it.
fn does(known: &Known, plan: &WorkPlan) -> bool {
    let can = matches!(known.stage, Stage::Begins | Stage::Sends) && !known.is_noted;
    can && known.plan.deed == plan.deed && known.plan.image.subject.key == plan.image.subject.key
}

fn typed<K: DeserializeOwned>(made: Value) -> Result<K, Refusal> {
    serde_json::from_value(made).map_err(|error| Refusal::Invalid(error.to_string()))
}

fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Api(status) if status.code == 403 && is_of_rights(&status.message) => {
            Refusal::Forbidden(status.message.clone())
        }
        Error::Api(status) if status.code == 403 => Refusal::Barred(status.message.clone()),
        Error::Api(status) if matches!(status.code, 400 | 422) => Refusal::Invalid(status.message.clone()),
        error => Refusal::Failed(chain(error)),
    }
}

/// Whether these are the words for a missing right, or for rights that nobody without them gives: others refuse with the same code, and give no other.
fn is_of_rights(words: &str) -> bool {
    words.contains(" cannot ") && words.contains(" resource \"")
        || words.contains("attempting to grant RBAC permissions")
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16, words: &str) -> Refusal {
        refusal(&Error::Api(Box::new(
            Status::failure(words, "Forbidden").with_code(code),
        )))
    }

    #[test]
    fn a_missing_right_is_told_from_whatever_else_the_api_server_does_not_take() {
        for words in [
            "jobs.batch is forbidden: User \"system:serviceaccount:operators:images\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"fleet\"",
            "roles.rbac.authorization.k8s.io \"img-1\" is forbidden: user \"system:serviceaccount:operators:images\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:",
        ] {
            assert!(
                matches!(refused(403, words), Refusal::Forbidden(told) if told == words),
                "{words}"
            );
        }
        for words in [
            "jobs.batch \"img-1\" is forbidden: exceeded quota: small, requested: count/jobs.batch=1, used: count/jobs.batch=2, limited: count/jobs.batch=2",
            "jobs.batch \"img-1\" is forbidden: unable to create new content in namespace fleet because it is being terminated",
            "admission webhook \"strict.example.org\" denied the request: no Jobs on Fridays",
        ] {
            assert!(
                matches!(refused(403, words), Refusal::Barred(told) if told == words),
                "{words}"
            );
        }
        // The operator itself is not known.
        assert!(matches!(refused(401, "Unauthorized"), Refusal::Failed(_)));
    }
}
