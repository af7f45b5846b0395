//! What a test makes on somebody's cluster, and how all of it is taken away again, whatever the operator under test does.

use std::{fmt::Display, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use futures::future::join_all;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions,
    },
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::US;
use crate::eventually;

/// A namespace without anything in it goes in a moment, and its controllers may be busy.
const NAMESPACE_DEADLINE: Duration = Duration::from_mins(1);
/// What is left is freed by force after that.
const FORCE_DEADLINE: Duration = Duration::from_secs(20);

/// Something that was made.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    resource: ApiResource,
    name: String,
    uid: String,
}

/// A namespace, and everything of the test in it.
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) namespace: String,
    /// The namespace was made for this.
    is_ours: bool,
    /// Locked while something is made.
    made: Arc<Mutex<Vec<Made>>>,
}

impl Ground {
    /// In this namespace, or in one that is made for the test.
    pub(super) async fn enter(client: Client, namespace: Option<&str>) -> Result<Self> {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let (namespace, is_ours) = if let Some(name) = namespace {
            let there = namespaces.get_opt(name).await;
            if there.context("unable to ask for the namespace")?.is_none() {
                bail!("there is no namespace {name}; make it, with what the kind needs besides, such as a Secret");
            }
            (name.to_owned(), false)
        } else {
            let wanted = Namespace {
                metadata: ObjectMeta {
                    generate_name: Some(format!("{US}-")),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            };
            let made = namespaces.create(&PostParams::default(), &wanted).await;
            (made.context("unable to make a namespace")?.name_any(), true)
        };
        Ok(Self {
            client,
            namespace,
            is_ours,
            made: Arc::default(),
        })
    }

    /// Objects of a kind in the namespace.
    pub(super) fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, resource)
    }

    /// Makes an object that must not be there yet. What is begun is noted, also when nobody waits for it any more.
    pub(super) async fn make(&self, resource: &ApiResource, object: &DynamicObject) -> Result<DynamicObject> {
        let (api, made) = (self.api(resource), Arc::clone(&self.made));
        let (resource, object) = (resource.clone(), object.clone());
        let namespace = self.namespace.clone();
        let making = tokio::spawn(async move {
            let mut noted = made.lock().await;
            let params = PostParams {
                field_manager: Some(US.to_owned()),
                ..PostParams::default()
            };
            let made = api.create(&params, &object).await.map_err(|error| {
                let (kind, name) = (&resource.kind, object.name_any());
                match error {
                    kube::Error::Api(status) if status.code == 409 => anyhow::anyhow!(
                        "there is a {kind} {name} in the namespace {namespace} already, which is somebody's; use another namespace"
                    ),
                    error => anyhow::Error::new(error).context(format!("unable to make the {kind} {name}")),
                }
            })?;
            noted.push(Made {
                resource,
                name: made.name_any(),
                uid: made.uid().unwrap_or_default(),
            });
            Ok(made)
        });
        making.await.context("the making ended abnormally")?
    }

    /// An object that stands for an owner: the operator under test must not care what it is.
    pub(super) async fn owner(&self) -> Result<OwnerReference> {
        let resource = ApiResource::erase::<ConfigMap>(&());
        let mut object = DynamicObject::new("", &resource);
        object.metadata.name = None;
        object.metadata.generate_name = Some(format!("{US}-"));
        let made = self.make(&resource, &object).await?;
        Ok(OwnerReference {
            api_version: resource.api_version,
            kind: resource.kind,
            name: made.name_any(),
            uid: made.uid().unwrap_or_default(),
            ..OwnerReference::default()
        })
    }

    /// Adds owners to an object as the core operator does: by an apply of these entries alone.
    pub(super) async fn own(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        owners: &[OwnerReference],
    ) -> Result<()> {
        let (name, uid) = (object.name_any(), object.uid());
        let body = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            // Gone in between, it must not come back as a husk.
            "metadata": { "name": name, "uid": uid, "ownerReferences": owners },
        });
        let params = PatchParams {
            field_manager: Some(format!("{US}-owner")),
            ..PatchParams::default()
        };
        let applied = self.api(resource).patch(&name, &params, &Patch::Apply(&body)).await;
        applied
            .map(drop)
            .with_context(|| format!("unable to give {name} its owners"))
    }

    /// Asks for the deletion of exactly this object; what is gone is no error.
    pub(super) async fn delete(&self, resource: &ApiResource, name: &str, uid: &str) -> Result<()> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                ..Preconditions::default()
            }),
            ..DeleteParams::background()
        };
        match self.api(resource).delete(name, &params).await {
            Ok(_) => Ok(()),
            // Another one is there, or none.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("unable to delete the {} {name}", resource.kind)),
        }
    }

    /// Waits until exactly this object is gone.
    pub(super) async fn gone(
        &self,
        resource: &ApiResource,
        (name, uid): (&str, &str),
        deadline: Duration,
    ) -> Result<()> {
        let api = self.api(resource);
        let look = async || match api.get_opt(name).await {
            Ok(Some(object)) if object.uid().as_deref() == Some(uid) => Err(held_by(&object)),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        eventually(deadline, format!("{name} to be gone"), look).await
    }

    /// Takes all finalizers off an object that does not go, and waits until it is gone.
    pub(super) async fn force(&self, resource: &ApiResource, (name, uid): (&str, &str)) -> Result<()> {
        self.delete(resource, name, uid).await?;
        let free = Patch::Merge(json!({ "metadata": { "uid": uid, "finalizers": Value::Null } }));
        let freed = self.api(resource).patch(name, &PatchParams::default(), &free).await;
        match freed {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {}
            Err(error) => return Err(error).with_context(|| format!("unable to take the finalizers off {name}")),
        }
        self.gone(resource, (name, uid), FORCE_DEADLINE).await
    }

    /// Takes everything away that the test made, and the image objects that the operator under test made for it. The answer is what had to be taken
    /// from the operator by force, in words for people: it may have left something in its cloud.
    pub(super) async fn clear(&self, image: Option<&ApiResource>, deadline: Duration) -> Result<Vec<String>> {
        let made = self.made.lock().await.clone();
        let mut forced = Vec::new();
        for one in &made {
            self.delete(&one.resource, &one.name, &one.uid).await?;
        }
        let goes = made.iter().map(|one| self.goes(one, deadline));
        for outcome in join_all(goes).await {
            forced.extend(outcome?);
        }
        if let Some(resource) = image {
            let uids: Vec<&str> = made.iter().map(|one| one.uid.as_str()).collect();
            forced.extend(self.clear_images(resource, &uids, deadline).await?);
        }
        if self.is_ours {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let deleted = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
            deleted.with_context(|| format!("unable to delete the namespace {}", self.namespace))?;
            let look = async || match namespaces.get_opt(&self.namespace).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it is there".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            let what = format!("the namespace {} to be gone", self.namespace);
            eventually(NAMESPACE_DEADLINE, what, look).await?;
        }
        Ok(forced)
    }

    async fn goes(&self, one: &Made, deadline: Duration) -> Result<Option<String>> {
        let Made { resource, name, uid } = one;
        if self.gone(resource, (name, uid), deadline).await.is_ok() {
            return Ok(None);
        }
        self.force(resource, (name, uid)).await?;
        Ok(Some(told(resource, name)))
    }

    async fn clear_images(&self, resource: &ApiResource, owners: &[&str], deadline: Duration) -> Result<Vec<String>> {
        let api = self.api(resource);
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.with_context(|| format!("unable to list {}", resource.plural))?;
        let is_of_the_test = |image: &&DynamicObject| {
            let references = image.owner_references();
            !references.is_empty() && references.iter().all(|owner| owners.contains(&owner.uid.as_str()))
        };
        let images: Vec<Made> = listed
            .items
            .iter()
            .filter(is_of_the_test)
            .map(|image| Made {
                resource: resource.clone(),
                name: image.name_any(),
                uid: image.uid().unwrap_or_default(),
            })
            .collect();
        let mut forced = Vec::new();
        for image in &images {
            self.delete(resource, &image.name, &image.uid).await?;
            forced.extend(self.goes(image, deadline).await?);
        }
        Ok(forced)
    }
}

fn told(resource: &ApiResource, name: impl Display) -> String {
    format!("{} {name}", resource.kind)
}

fn held_by(object: &DynamicObject) -> String {
    match object.finalizers() {
        [] => "it is there and has no finalizer".to_owned(),
        finalizers => format!("it is held by {}", finalizers.join(", ")),
    }
}
