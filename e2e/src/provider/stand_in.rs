//! An operator of a provider in the process of a test: it keeps the contract with the core operator, or breaks one row of it on purpose.
//!
//! It has no cloud. An image is an object of its kind, and is unusable while a file of the test is there.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use crds::{PROVIDER_GROUP, VERSION, labels};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::interval};

use crate::{Journey, eventually, journey::SOON};

/// How often it looks at everything.
const TICK: Duration = Duration::from_millis(100);
const FINALIZER: &str = "stand-in.example.com/images";
const IMAGE: &str = "stand-in-image-v1";
/// Field manager of what it writes.
const STAND_IN: &str = "stand-in";

/// A row of the contract that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// M1: there is no kind of templates.
    NoTemplate,
    /// M2: a template has other fields.
    FlatTemplate,
    /// M3: what has no owner when it is seen first is never worked on.
    OwnerFirst,
    /// M4: the readiness is a word.
    ReadyIsAWord,
    /// M5: it notes something in the spec.
    WritesSpec,
    /// M6: it writes how often it looked.
    Heartbeat,
    /// M7: once ready is always ready.
    ReadyForEver,
    /// M8: it never lets go.
    NeverLetsGo,
    /// M9: it takes owner references for its own.
    DropsOwners,
    /// M10: of two releases the newer one is ready.
    OnlyOne,
    /// S1: it does not say how far it is.
    NoProgress,
    /// S2: it is ready without a condition that says so.
    NoCondition,
    /// S3: each release has an image of its own.
    OwnImages,
    /// S4: whatever is pinned is used.
    AnyDigest,
    /// S5: nobody knows what its status is about.
    NoGeneration,
    /// S6: what cannot succeed is worked on for ever.
    NeverStalled,
    /// S7: its kinds do not say which contract they are written for.
    NoLabel,
}

impl Lie {
    /// All of them, in the order of the rows.
    pub const ALL: [Self; 17] = [
        Self::NoTemplate,
        Self::FlatTemplate,
        Self::OwnerFirst,
        Self::ReadyIsAWord,
        Self::WritesSpec,
        Self::Heartbeat,
        Self::ReadyForEver,
        Self::NeverLetsGo,
        Self::DropsOwners,
        Self::OnlyOne,
        Self::NoProgress,
        Self::NoCondition,
        Self::OwnImages,
        Self::AnyDigest,
        Self::NoGeneration,
        Self::NeverStalled,
        Self::NoLabel,
    ];
}

/// A running one. Ends when it is dropped.
pub struct StandIn {
    /// The kind of its release objects.
    pub kind: String,
    /// While this file is there, its image is unusable.
    pub breaking: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StandIn {
    /// Installs its kinds, and starts one for a namespace.
    ///
    /// # Errors
    /// The kinds could not be installed.
    pub async fn start(journey: &Journey, namespace: &str, lie: Option<Lie>) -> Result<Self> {
        let prefix = install(journey, lie).await?;
        let kind = format!("{prefix}ClusterStackRelease");
        let api = |kind: &str| Api::namespaced_with(journey.client.clone(), namespace, &resource(kind));
        let breaking = journey.folder().join(format!("{namespace}.broken"));
        let mut work = Work {
            releases: api(&kind),
            images: api(&format!("{prefix}NodeImageRelease")),
            image_kind: resource(&format!("{prefix}NodeImageRelease")),
            release_kind: resource(&kind),
            breaking: breaking.clone(),
            lie,
            ignored: BTreeSet::new(),
            known: BTreeSet::new(),
            looks: 0,
        };
        let task = tokio::spawn(async move {
            let mut ticks = interval(TICK);
            loop {
                ticks.tick().await;
                // What fails is tried again at the next look.
                let _ = work.look().await;
            }
        });
        Ok(Self { kind, breaking, task })
    }
}

/// Its kinds; the answer is how their names begin. They are there for all namespaces: those that are wrong have names of their own.
async fn install(journey: &Journey, lie: Option<Lie>) -> Result<&'static str> {
    let prefix = match lie {
        Some(Lie::NoTemplate) => "Bare",
        Some(Lie::FlatTemplate) => "Flat",
        Some(Lie::NoLabel) => "Unlabelled",
        _ => "StandIn",
    };
    let kind = format!("{prefix}ClusterStackRelease");
    let labels = if lie == Some(Lie::NoLabel) {
        json!({})
    } else {
        json!({ labels::CONTRACT_V1ALPHA1: VERSION })
    };
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let flat = json!({ "type": "object", "properties": { "size": { "type": "string" } } });
    install_kind(journey, &kind, &labels, &anything).await?;
    install_kind(journey, &format!("{prefix}NodeImageRelease"), &labels, &anything).await?;
    let template = match lie {
        Some(Lie::NoTemplate) => return Ok(prefix),
        Some(Lie::FlatTemplate) => &flat,
        _ => &anything,
    };
    install_kind(journey, &format!("{kind}Template"), &labels, template).await?;
    Ok(prefix)
}

async fn install_kind(journey: &Journey, kind: &str, labels: &Value, spec: &Value) -> Result<()> {
    let plural = format!("{}s", kind.to_lowercase());
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{PROVIDER_GROUP}"), "labels": labels },
        "spec": {
            "group": PROVIDER_GROUP, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": VERSION, "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": spec, "status": anything },
                } },
            }],
        },
    });
    journey.apply_for_all(definition).await?;
    let objects = Api::<DynamicObject>::all_with(journey.client.clone(), &resource(kind));
    let list = async || objects.list(&ListParams::default()).await.map(drop);
    eventually(SOON, format!("{kind} to be served"), list).await
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(PROVIDER_GROUP, VERSION, kind))
}

struct Work {
    releases: Api<DynamicObject>,
    images: Api<DynamicObject>,
    release_kind: ApiResource,
    image_kind: ApiResource,
    breaking: PathBuf,
    lie: Option<Lie>,
    /// Objects that had no owner when they were seen first.
    ignored: BTreeSet<String>,
    known: BTreeSet<String>,
    looks: u64,
}

impl Work {
    fn tells(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    async fn look(&mut self) -> Result<()> {
        self.looks += 1;
        let releases = self.releases.list(&ListParams::default()).await?.items;
        let newest = releases
            .iter()
            .filter_map(|release| release.metadata.creation_timestamp.clone())
            .max();
        for release in &releases {
            let is_undone = self.tells(Lie::OnlyOne) && release.metadata.creation_timestamp < newest;
            self.work_on(release, is_undone).await?;
        }
        Ok(())
    }

    async fn work_on(&mut self, release: &DynamicObject, is_undone: bool) -> Result<()> {
        let (name, uid) = (release.name_any(), release.uid().unwrap_or_default());
        if self.known.insert(uid.clone()) && release.owner_references().is_empty() {
            self.ignored.insert(uid.clone());
        }
        if self.tells(Lie::OwnerFirst) && self.ignored.contains(&uid) {
            return Ok(());
        }
        if release.metadata.deletion_timestamp.is_some() {
            if self.tells(Lie::NeverLetsGo) {
                return Ok(());
            }
            self.let_image_go(&name, &uid).await?;
            // What is brought for the next release is whole again. Nobody may have broken anything.
            let _ = fs::remove_file(&self.breaking);
            return self.patch(&name, json!({ "metadata": { "finalizers": null } })).await;
        }
        if release.finalizers().is_empty() {
            return self
                .patch(&name, json!({ "metadata": { "finalizers": [FINALIZER] } }))
                .await;
        }
        if self.tells(Lie::WritesSpec) && release.data["spec"]["noted"].is_null() {
            self.patch(&name, json!({ "spec": { "noted": true } })).await?;
        }
        if self.tells(Lie::DropsOwners) && !release.owner_references().is_empty() {
            self.patch(&name, json!({ "metadata": { "ownerReferences": null } }))
                .await?;
        }
        let status = self.status(release, is_undone);
        let had = release.data.get("status").cloned().unwrap_or_default();
        if status != had {
            let body = Patch::Merge(json!({ "status": status }));
            self.releases.patch_status(&name, &params(), &body).await?;
        }
        if had.is_null() {
            self.own_image(&name, &uid).await?;
        }
        Ok(())
    }

    /// First that it works, then that it has worked.
    fn status(&self, release: &DynamicObject, is_undone: bool) -> Value {
        let is_broken = self.breaking.exists() && !self.tells(Lie::ReadyForEver);
        let is_begun = !release.data["status"].is_null();
        let is_other = release.annotations().contains_key(labels::DIGEST) && !self.tells(Lie::AnyDigest);
        let is_ready = is_begun && !is_broken && !is_undone && !is_other;
        let reason = if is_ready { "ImagesReady" } else { "Working" };
        let condition = |type_: &str, is: bool| json!({ "type": type_, "status": if is { "True" } else { "False" }, "reason": reason, "message": "so it is" });
        let mut conditions = vec![condition("Stalled", is_other && !self.tells(Lie::NeverStalled))];
        if !self.tells(Lie::NoCondition) {
            conditions.push(condition("Ready", is_ready));
        }
        let mut status = json!({
            "ready": is_ready, "phase": if is_ready { "Ready" } else { "Working" }, "message": "one image",
            "progress": { "done": u8::from(is_ready), "total": 1, "unit": "images" },
            "observedGeneration": release.metadata.generation,
            "conditions": conditions,
        });
        let untold = match self.lie {
            Some(Lie::NoProgress) => Some("progress"),
            Some(Lie::NoGeneration) => Some("observedGeneration"),
            _ => None,
        };
        if let (Some(field), Some(fields)) = (untold, status.as_object_mut()) {
            fields.remove(field);
        }
        if self.tells(Lie::ReadyIsAWord) {
            status["ready"] = json!(if is_ready { "yes" } else { "no" });
        }
        if self.tells(Lie::Heartbeat) {
            status["looks"] = json!(self.looks);
        }
        status
    }

    async fn patch(&self, name: &str, body: Value) -> Result<()> {
        let patched = self.releases.patch(name, &params(), &Patch::Merge(body)).await;
        patched.map(drop).context("failed to patch")
    }

    fn owner(&self, name: &str, uid: &str) -> Value {
        let kind = &self.release_kind;
        json!({ "apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": uid })
    }

    /// The name of the image of a release.
    fn image(&self, release: &str) -> String {
        if self.tells(Lie::OwnImages) {
            format!("{IMAGE}-of-{release}")
        } else {
            IMAGE.to_owned()
        }
    }

    async fn own_image(&self, name: &str, uid: &str) -> Result<()> {
        let own = self.image(name);
        let Some(image) = self.images.get_opt(&own).await? else {
            let mut image = DynamicObject::new(&own, &self.image_kind).data(json!({ "spec": {} }));
            image.metadata.owner_references = Some(vec![serde_json::from_value(self.owner(name, uid))?]);
            self.images.create(&PostParams::default(), &image).await?;
            return Ok(());
        };
        let mut owners = serde_json::to_value(image.owner_references())?;
        if let Some(owners) = owners.as_array_mut() {
            owners.push(self.owner(name, uid));
        }
        let body = Patch::Merge(json!({ "metadata": { "ownerReferences": owners } }));
        self.images.patch(&own, &params(), &body).await?;
        Ok(())
    }

    async fn let_image_go(&self, name: &str, uid: &str) -> Result<()> {
        let own = self.image(name);
        let Some(image) = self.images.get_opt(&own).await? else {
            return Ok(());
        };
        let mut owners = image.owner_references().to_vec();
        owners.retain(|owner| owner.uid != uid);
        if owners.is_empty() {
            self.images.delete(&own, &DeleteParams::default()).await?;
        } else {
            let body = Patch::Merge(json!({ "metadata": { "ownerReferences": owners } }));
            self.images.patch(&own, &params(), &body).await?;
        }
        Ok(())
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(STAND_IN.to_owned()),
        ..PatchParams::default()
    }
}
