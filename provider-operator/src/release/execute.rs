//! Performs the actions of a plan about a release object, and remembers what came of them. Each write names the version that was seen. Decides nothing.

use std::sync::{Arc, Mutex};

use crds::labels;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use operator_kit::failure::{chain, words_of};
use operator_kit::finalizer::{self, Marking};
use planning::node_image::ReleaseAction;
use serde_json::{Value, json};

use super::memory::{ReleaseMemory, lock};
use crate::context::{Context, Served};
use crate::kinds::with;

/// What became of the release object.
pub(super) enum Executed {
    /// It is like this now.
    Current(Arc<DynamicObject>),
    /// It is gone.
    Gone,
}

/// Performs all actions. One that fails stops none.
pub(super) async fn execute(
    context: &Context,
    served: &Served,
    release: &Arc<DynamicObject>,
    memory: &Mutex<ReleaseMemory>,
    actions: &[ReleaseAction],
) -> Executed {
    let mut current = Arc::clone(release);
    for action in actions {
        let pass = Pass {
            context,
            served,
            release: &current,
        };
        let outcome = pass.perform(action).await;
        let (namespace, name) = (release.namespace(), release.name_any());
        if let Err(error) = &outcome {
            let subject = action.subject();
            tracing::debug!(namespace, name, subject, error, "an action failed");
        }
        let now = context.clock.wall();
        lock(memory).acted(
            action.subject(),
            outcome.as_ref().map(|_| ()).map_err(Clone::clone),
            now,
        );
        match outcome {
            Ok(Some(newer)) if matches!(action, ReleaseAction::RemoveFinalizer) => {
                if newer.finalizers().is_empty() {
                    served.releases.forget(&newer);
                    return Executed::Gone;
                }
                served.releases.note(newer.clone());
                current = Arc::new(newer);
            }
            Ok(Some(newer)) => {
                served.releases.note(newer.clone());
                current = Arc::new(newer);
            }
            Ok(None) | Err(_) => {}
        }
    }
    Executed::Current(current)
}

struct Pass<'a> {
    context: &'a Context,
    served: &'a Served,
    release: &'a Arc<DynamicObject>,
}

impl Pass<'_> {
    /// Performs one action; gives the release object where that was written.
    async fn perform(&self, action: &ReleaseAction) -> Result<Option<DynamicObject>, String> {
        let api = self.served.release_api(&self.context.client, &self.namespace());
        let ours = labels::PROVIDER_RELEASE_FINALIZER;
        let release = self.release.as_ref();
        match action {
            ReleaseAction::AddFinalizer => {
                match finalizer::mark(&api, release, ours, &[], labels::FIELD_MANAGER).await {
                    Ok(Marking::Kept(marked)) => Ok(Some(*marked)),
                    Ok(Marking::Changed(_)) => Err("a policy takes the finalizer away again".to_owned()),
                    Err(error) => Err(chain(&error)),
                }
            }
            ReleaseAction::RemoveFinalizer => {
                let removed = finalizer::remove(&api, release, ours, labels::FIELD_MANAGER).await;
                removed.map(Some).map_err(|error| chain(&error))
            }
            ReleaseAction::CreateImage { name, spec } => self.create(name, spec).await.map(|()| None),
            ReleaseAction::AdoptImage { name, version } => {
                let adopted = |mut owners: Vec<OwnerReference>| {
                    owners.push(self.owner());
                    owners
                };
                self.owners(name, version, adopted).await.map(|()| None)
            }
            ReleaseAction::DropOwner { name, version } => {
                let uid = self.release.uid();
                let dropped = |mut owners: Vec<OwnerReference>| {
                    owners.retain(|owner| Some(&owner.uid) != uid.as_ref());
                    owners
                };
                self.owners(name, version, dropped).await.map(|()| None)
            }
            ReleaseAction::UpdateImage { name, version, spec } => self.update(name, version, spec).await.map(|()| None),
            ReleaseAction::DeleteImage { name, uid, version } => self.delete(name, uid, version).await.map(|()| None),
        }
    }

    fn namespace(&self) -> String {
        self.release.namespace().unwrap_or_default()
    }

    /// The release as an owner: one of several, of whom none controls the object.
    fn owner(&self) -> OwnerReference {
        let resource = self.served.releases.resource();
        OwnerReference {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            name: self.release.name_any(),
            uid: self.release.uid().unwrap_or_default(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    async fn create(&self, name: &str, spec: &Value) -> Result<(), String> {
        let mut image = DynamicObject::new(name, self.served.images.resource()).within(&self.namespace());
        image.metadata.owner_references = Some(vec![self.owner()]);
        // Whoever looks after the release looks after its images.
        let label = self.release.labels().get(labels::WATCH_FILTER);
        image.metadata.labels = label.map(|value| [(labels::WATCH_FILTER.to_owned(), value.clone())].into());
        with(&mut image, "spec", spec.clone());
        let params = PostParams {
            dry_run: false,
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        };
        let api = self.served.image_api(&self.context.client, &self.namespace());
        let created = api.create(&params, &image).await.map_err(|error| words_of(&error))?;
        self.served.images.note(created);
        Ok(())
    }

    /// The image object as it was seen.
    fn seen(&self, name: &str, version: &str) -> Result<Arc<DynamicObject>, String> {
        let image = self.served.images.get(&self.namespace(), name);
        let image = image.filter(|image| image.resource_version().as_deref() == Some(version));
        image.ok_or_else(|| "the object changed in between".to_owned())
    }

    async fn owners(
        &self,
        name: &str,
        version: &str,
        change: impl FnOnce(Vec<OwnerReference>) -> Vec<OwnerReference>,
    ) -> Result<(), String> {
        let image = self.seen(name, version)?;
        let owners = change(image.owner_references().to_vec());
        let patch = json!({ "metadata": { "resourceVersion": version, "ownerReferences": owners } });
        let params = PatchParams {
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.served.image_api(&self.context.client, &self.namespace());
        let written = api.patch(name, &params, &Patch::Merge(&patch)).await;
        self.served.images.note(written.map_err(|error| words_of(&error))?);
        Ok(())
    }

    /// Gives an object this spec and no other: also what is not in it any more goes.
    async fn update(&self, name: &str, version: &str, spec: &Value) -> Result<(), String> {
        let mut image = DynamicObject::clone(self.seen(name, version)?.as_ref());
        with(&mut image, "spec", spec.clone());
        let params = PostParams {
            dry_run: false,
            field_manager: Some(labels::FIELD_MANAGER.to_owned()),
        };
        let api = self.served.image_api(&self.context.client, &self.namespace());
        let written = api
            .replace(name, &params, &image)
            .await
            .map_err(|error| words_of(&error))?;
        self.served.images.note(written);
        Ok(())
    }

    async fn delete(&self, name: &str, uid: &str, version: &str) -> Result<(), String> {
        let image = self.seen(name, version)?;
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
            }),
            ..DeleteParams::default()
        };
        let api = self.served.image_api(&self.context.client, &self.namespace());
        match api.delete(name, &params).await {
            // Finalizers keep it for a while.
            Ok(answer) => {
                match answer.left() {
                    Some(going) if going.metadata.name.is_some() => self.served.images.note(going),
                    _ => self.served.images.forget(&image),
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(words_of(&error)),
        }
    }
}
