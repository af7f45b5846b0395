//! Objects as the Go provider leaves them, and its images: the objects are taken as they are, and the images where somebody asks for that.

use anyhow::{Context, Result, ensure};
use crds::providers::openstack::{OpenStackClusterStackRelease, OpenStackNodeImageRelease};
use e2e::stage::{API_VERSION, DISK, IMAGE, IMAGE_OBJECT, SECRET, Stage, message_of, on_stage, small, tag};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use openstack_lab::source::Article;
use serde_json::{Value, json};

/// The field manager of the Go provider, after the name of its program.
const MANAGER: &str = "manager";

/// Conditions as it writes them when all is well, `Ready` first.
fn conditions(types: &[&str]) -> Value {
    let all = ["Ready"].iter().chain(types);
    let condition =
        |type_: &&str| json!({ "type": type_, "status": "True", "lastTransitionTime": "2025-01-29T12:00:00Z" });
    all.map(condition).collect()
}

/// One release with one image, both ready, without finalizers.
async fn left_by_the_go_provider(stage: &Stage<'_>, tag: &str) -> Result<()> {
    let identity = json!({ "kind": "Secret", "name": SECRET });
    let release = json!({
        "apiVersion": API_VERSION, "kind": "OpenStackClusterStackRelease", "metadata": { "name": tag },
        "spec": { "identityRef": identity },
    });
    stage.journey.apply(release).await?;
    let releases: Api<OpenStackClusterStackRelease> = stage.journey.api();
    let uid = releases.get(tag).await?.uid().context("a uid")?;
    let image = json!({
        "apiVersion": API_VERSION, "kind": "OpenStackNodeImageRelease",
        "metadata": { "name": IMAGE_OBJECT, "ownerReferences": [{
            "apiVersion": API_VERSION, "kind": "OpenStackClusterStackRelease", "name": tag, "uid": uid,
        }] },
        "spec": {
            "identityRef": identity,
            "image": { "url": stage.source.url(DISK), "createOpts": {
                "name": IMAGE, "disk_format": "qcow2", "container_format": "bare", "visibility": "private",
            } },
        },
    });
    stage.journey.apply(image).await?;
    let as_it = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let assets = ["ClusterStackReleaseAssetsReady", "OpenStackNodeImageReleasesReady"];
    let status = Patch::Merge(json!({ "status": { "ready": true, "conditions": conditions(&assets) } }));
    releases.patch_status(tag, &as_it, &status).await?;
    let cloud = [
        "CloudAvailable",
        "OpenStackImageActive",
        "OpenStackImageImportStarted",
        "OpenStackImageServiceClientAvailable",
    ];
    let status = Patch::Merge(json!({ "status": { "ready": true, "conditions": conditions(&cloud) } }));
    let images: Api<OpenStackNodeImageRelease> = stage.journey.api();
    images.patch_status(IMAGE_OBJECT, &as_it, &status).await?;
    Ok(())
}

#[test]
fn what_the_go_provider_left_is_taken_over_with_its_image_where_the_release_says_so() -> Result<()> {
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        stage.publish("v1")?;
        let tag = tag("v1");
        let theirs = stage.cloud.uploaded(IMAGE, &small(1)).await?;
        left_by_the_go_provider(stage, &tag).await?;
        stage.operate().await?;
        // It does not say of its images whose they are.
        let status = stage.not_ready(IMAGE_OBJECT, "ImageNameTaken").await?;
        ensure!(message_of(&status).contains(&theirs), "{status:?}");

        let releases: Api<OpenStackClusterStackRelease> = stage.journey.api();
        let policy = Patch::Merge(json!({ "spec": { "policy": "IfMissing" } }));
        releases.patch(&tag, &PatchParams::default(), &policy).await?;
        let image = stage.ready(IMAGE_OBJECT).await?.image.context("an image")?;
        ensure!(image.id == theirs && image.adopted, "{image:?}");
        stage.release_is(&tag, true).await?;

        stage.delete_release(&tag).await?;
        stage.journey.gone::<OpenStackNodeImageRelease>(IMAGE_OBJECT).await?;
        let image = stage.cloud.image(&theirs).await?;
        ensure!(image["status"] == "active", "it was not made by us: {image}");
        Ok(Vec::new())
    })
}
