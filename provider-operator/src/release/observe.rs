//! Gathers everything that one plan about a release object is made from: the object, its files, the objects of images. Asks the API server alone, and changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crds::labels;
use crds::providers::Provider;
use crds::providers::image_status::{NodeImageStatus, ProviderReleaseStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use planning::node_image::{Files, ImageView, OwnerView, ReleaseObserved, normal_spec};

use super::files::files;
use super::memory::{ReleaseMemory, lock};
use crate::context::{Context, Served};
use crate::kinds::{spec_of, status_of};

/// Looks at one release object.
pub(super) async fn observe(
    context: &Context,
    served: &Served,
    release: &DynamicObject,
    memory: &Mutex<ReleaseMemory>,
) -> ReleaseObserved {
    let deleting = release.metadata.deletion_timestamp.is_some();
    let requested_at = release.annotations().get(labels::REQUESTED_AT).cloned();
    if lock(memory).hear(requested_at.as_ref())
        && let Ok(tag) = release.name_any().parse()
    {
        context.supply.request(&tag);
    }
    // What goes asks for nothing.
    let files = if deleting {
        Files::NotRead
    } else {
        files(context, served, release).await
    };
    let status: ProviderReleaseStatus = status_of(release);
    let memory = lock(memory);
    let is_ours = |finalizer: &String| finalizer == labels::PROVIDER_RELEASE_FINALIZER;
    ReleaseObserved {
        provider: served.kind.provider(),
        name: release.name_any(),
        uid: release.uid().unwrap_or_default(),
        generation: release.metadata.generation.unwrap_or_default(),
        deleting,
        finalizer: release.finalizers().iter().any(is_ours),
        paused: release.annotations().contains_key(labels::PAUSED),
        moved: release.annotations().contains_key(labels::DELETE_FOR_MOVE),
        requested_at,
        moved_images: moved_images(context, served, release),
        listed: served.images.is_listed(),
        objects: objects(served, release, &files),
        files,
        failures: memory.failures.clone(),
        status,
        status_written_at: memory.written_at,
    }
}

/// Objects of images that went to another management cluster, and until when that is remembered.
fn moved_images(context: &Context, served: &Served, release: &DynamicObject) -> BTreeMap<String, Timestamp> {
    let now = context.clock.wall();
    let moved = served.images.moved_from(&release.namespace().unwrap_or_default());
    let until = |left| now.checked_add(left).unwrap_or(now);
    moved.into_iter().map(|(name, left)| (name, until(left))).collect()
}

/// The objects of images that the release owns, and those of the names that it wants.
fn objects(served: &Served, release: &DynamicObject, files: &Files) -> BTreeMap<String, ImageView> {
    let uid = release.uid().unwrap_or_default();
    let wanted: BTreeSet<&str> = match files {
        Files::Ready { images, .. } => images.iter().map(|image| image.name.as_str()).collect(),
        _ => BTreeSet::new(),
    };
    let images = served.images.all_in(&release.namespace().unwrap_or_default());
    let concerned = images.iter().filter(|image| {
        let owns = image.owner_references().iter().any(|owner| owner.uid == uid);
        owns || wanted.contains(image.name_any().as_str())
    });
    let views = concerned.map(|image| (image.name_any(), view(served, image)));
    views.collect()
}

/// One object of an image, as releases see it.
fn view(served: &Served, image: &DynamicObject) -> ImageView {
    let release_kind = served.kind.definition().release_kind;
    let is_release = |owner: &&OwnerReference| {
        owner.kind == release_kind && owner.api_version.split('/').next() == Some(crds::PROVIDER_GROUP)
    };
    let owners = image.owner_references();
    let normal = normal(served.kind.provider(), image);
    let status: NodeImageStatus = status_of(image);
    let view = ImageView {
        uid: image.uid().unwrap_or_default(),
        version: image.resource_version().unwrap_or_default(),
        deleting: image.metadata.deletion_timestamp.is_some(),
        owners: owners
            .iter()
            .filter(is_release)
            .map(|owner| OwnerView {
                uid: owner.uid.clone(),
                name: owner.name.clone(),
            })
            .collect(),
        foreign: owners.iter().any(|owner| !is_release(&owner)),
        spec: normal.spec,
        content: normal.content,
        ..ImageView::default()
    };
    view.with_status(&status, image.metadata.generation.unwrap_or_default())
}

/// What cannot be read is like nothing that is wanted.
fn normal(provider: Provider, image: &DynamicObject) -> planning::node_image::NormalSpec {
    normal_spec(provider, &spec_of(image)).unwrap_or_default()
}
