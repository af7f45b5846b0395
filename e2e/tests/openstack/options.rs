//! What people choose of an image besides its bytes, as it is in a real Glance in the end: in the words of our own files and of those of others.

use anyhow::{Context, Result, ensure};
use crds::conditions::{ConditionStatus, ConditionType, find};
use crds::labels;
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    eventually,
    journey::SOON,
    stage::{Cloud, DISK, IMAGE_OBJECT, Stage, on_stage, on_stage_as, small, tag},
};
use openstack_lab::{
    facts::Visitor,
    source::{Article, sha256, sha512},
};
use serde_json::{Value, json};

/// Waits until these fields of an image have these values, and its tags are these in whatever order.
async fn is_so(stage: &Stage<'_>, id: &str, fields: &Value) -> Result<()> {
    eventually(SOON, "what is chosen to be so in the cloud", async || {
        let image = stage.cloud.image(id).await?;
        for (field, wanted) in fields.as_object().into_iter().flatten() {
            let found = sorted(&image[field]);
            ensure!(found == sorted(wanted), "{field} is {found} and not {wanted}");
        }
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// A list in an order that does not depend on who gave it.
fn sorted(value: &Value) -> Value {
    let Some(list) = value.as_array() else {
        return value.clone();
    };
    let mut list = list.clone();
    list.sort_by_key(Value::to_string);
    Value::Array(list)
}

#[test]
fn what_is_chosen_of_an_image_is_so_in_the_cloud_and_follows_the_choice() -> Result<()> {
    const CHOSEN: &str = "5e1ec7ed-0000-4000-8000-000000000001";
    on_stage(async |stage| {
        stage.source.put(DISK, Article::of(small(1)));
        let choice =
            |options: Value| json!({ "image": { "createOpts": options }, "transfer": { "stores": ["store-b"] } });
        let first = json!({ "id": CHOSEN, "os_hidden": true, "visibility": "shared", "tags": ["nodes", "old"] });
        stage.want("ubuntu", DISK, choice(first)).await?;
        stage.operate().await?;
        let id = stage.id("ubuntu").await?;
        ensure!(id == CHOSEN, "it is {id}");
        let made = json!({
            "status": "active", "os_hidden": true, "visibility": "shared", "tags": ["stackwright", "nodes", "old"],
            "stores": "store-b",
        });
        is_so(stage, &id, &made).await?;

        let second = json!({ "id": CHOSEN, "os_hidden": false, "visibility": "private", "tags": ["nodes"] });
        stage.want("ubuntu", DISK, choice(second)).await?;
        let amended = json!({
            "os_hidden": false, "visibility": "private", "tags": ["stackwright", "nodes"], "stores": "store-b",
        });
        is_so(stage, &id, &amended).await?;

        // Ids are given once, whoever has them.
        let taken = json!({ "image": { "createOpts": { "id": CHOSEN } } });
        stage.want("debian", DISK, taken).await?;
        let status = stage.ready("debian").await?;
        let other = status.image.context("an image")?.id;
        ensure!(
            other != CHOSEN && status.attempt == Some(2),
            "{other} at {:?}",
            status.attempt
        );
        Ok(vec![id, other])
    })
}

/// Anybody may have put it there: its name says nothing, its id and its bytes do.
#[test]
fn an_image_that_another_project_gives_to_everybody_is_used_by_its_bytes_or_its_id_and_not_by_its_name() -> Result<()> {
    const BY_NAME: &str = "by-its-name";
    const BY_BYTES: &str = "by-its-bytes";
    const BY_ID: &str = "by-its-id";
    on_stage_as("demo", async |stage| {
        let site = stage.site().clone();
        let visitor = Visitor::new(&site).await?;
        let neighbour = Cloud(visitor.tenant("other").await?);
        let disk = small(3);
        let mut theirs = Vec::new();
        for name in [BY_NAME, BY_BYTES, BY_ID] {
            let id = neighbour.uploaded(name, &disk).await?;
            neighbour.set(&id, "visibility", "community").await?;
            theirs.push(id);
        }
        stage.source.put(DISK, Article::of(small(1)));
        stage.want(BY_NAME, DISK, json!({ "policy": "IfMissing" })).await?;
        let digest = format!("sha512:{}", sha512(&disk));
        let with_digest = json!({ "policy": "IfMissing", "image": { "digest": digest } });
        stage.want(BY_BYTES, DISK, with_digest).await?;
        stage.want(BY_ID, DISK, json!({})).await?;
        let journey = stage.journey;
        journey
            .annotate::<OpenStackNodeImageRelease>(BY_ID, labels::ADOPT_IMAGE, Some(&theirs[2]))
            .await?;
        stage.operate().await?;
        let ours = stage.ready(BY_NAME).await?.image.context("an image")?;
        ensure!(!theirs.contains(&ours.id) && !ours.adopted, "{ours:?}");
        for (name, theirs, verified) in [
            (BY_BYTES, &theirs[1], (ConditionStatus::True, None)),
            (BY_ID, &theirs[2], (ConditionStatus::Unknown, Some("Unverifiable"))),
        ] {
            let status = stage.ready(name).await?;
            let image = status.image.as_ref().context("an image")?;
            ensure!(image.id == *theirs && image.adopted, "{image:?}");
            let told = find(&status.conditions, ConditionType::Verified).context("Verified")?;
            ensure!((told.status, told.reason.as_deref()) == verified, "{name}: {told:?}");
            stage.delete(name).await?;
        }
        for id in &theirs {
            let image = neighbour.image(id).await?;
            ensure!(
                image["status"] == "active",
                "somebody else's image was touched: {image}"
            );
            neighbour.delete(id).await?;
        }
        Ok(vec![ours.id])
    })
}

#[test]
fn an_image_in_the_shape_of_the_resource_controller_comes_with_all_that_is_said_of_it() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        stage.source.put(DISK, Article::of(disk.clone()));
        let digest = sha256(&disk);
        let image = json!([{ "image": { "resource": {
            "name": "ubuntu", "visibility": "private", "tags": ["capi"], "protected": true,
            "properties": {
                "architecture": "x86_64", "hypervisorType": "qemu", "minDiskGB": 20, "minMemoryMB": 2048,
                "hardware": { "cpuCores": 2, "diskBus": "scsi", "qemuGuestAgent": true, "rngModel": "virtio" },
                "operatingSystem": { "distro": "ubuntu", "version": "22.04" },
            },
            "content": { "diskFormat": "qcow2", "download": {
                "url": stage.source.url(DISK),
                "hash": { "algorithm": "sha256", "value": digest.trim_start_matches("sha256:") },
            } },
        } } }]);
        // JSON is YAML.
        stage.publish_image("v1", &format!("  {image}\n"))?;
        stage.want_release(&tag("v1")).await?;
        stage.operate().await?;
        stage.release_is(&tag("v1"), true).await?;
        let id = stage.id(IMAGE_OBJECT).await?;
        let expected = json!({
            "status": "active", "name": "ubuntu", "visibility": "private", "tags": ["stackwright", "capi"],
            "protected": true,
            "disk_format": "qcow2", "container_format": "bare", "min_disk": 20, "min_ram": 2048,
            "architecture": "x86_64", "hypervisor_type": "qemu", "hw_cpu_cores": "2", "hw_disk_bus": "scsi",
            "hw_qemu_guest_agent": "true", "hw_rng_model": "virtio", "os_distro": "ubuntu", "os_version": "22.04",
            "os_hash_value": sha512(&disk), "cs_verified": digest,
        });
        is_so(stage, &id, &expected).await?;
        Ok(vec![id])
    })
}
