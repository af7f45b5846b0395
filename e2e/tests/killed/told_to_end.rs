//! What is under way ends when the process is asked to end, when something else is wanted, and when nothing is: soon, and so that nothing is lost or left.

use std::time::Duration;

use anyhow::{Result, ensure};
use crds::providers::openstack::OpenStackNodeImageRelease;
use e2e::{
    Ended, eventually,
    journey::SOON,
    stage::{DISK, Stage, on_stage, small},
};
use http::Method;
use openstack_lab::source::{Article, sha256, sha512};
use serde_json::json;

/// A second for what may end by itself.
const DRAIN: &str = "--drain=1s";
/// From SIGTERM to the end, on a busy machine. What is under way would end never: the source holds it for as long as the process runs.
const END: Duration = Duration::from_mins(1);
/// Longer than the test waits: who comes next leads because the Lease was let go.
const ELECTED: [&str; 2] = ["--leader-elect=true", "--lease-duration=10m"];
/// Where the source has what stands still half-way.
const HELD: &str = "/held.qcow2";

/// Has the source give half of a disk, until it is let go.
fn hold(stage: &Stage<'_>, disk: &[u8]) {
    stage
        .source
        .put(HELD, Article::of(disk.to_vec()).held_at(disk.len() / 2));
}

/// Waits until the cloud takes one image; the answer is its id.
async fn taken(stage: &Stage<'_>, status: &str) -> Result<String> {
    let id = stage.cloud.one().await?;
    stage.cloud.becomes(&id, status).await?;
    Ok(id)
}

/// Starts an operator that takes part in leader election and does not wait for transfers.
async fn operate(stage: &mut Stage<'_>) -> Result<()> {
    let namespace = format!("--leader-elect-namespace={}", stage.journey.namespace);
    let [elect, lease] = ELECTED;
    stage.operate_with(&[elect, lease, &namespace, DRAIN]).await
}

#[test]
fn a_process_that_is_asked_to_end_in_an_upload_leaves_an_empty_record_to_the_next() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        hold(stage, &disk);
        stage.want("ubuntu", HELD, json!({})).await?;
        operate(stage).await?;
        let id = taken(stage, "saving").await?;
        ensure!(stage.stop_within(END).await? == Ended::Status(0));
        stage.cloud.becomes(&id, "queued").await?;
        stage.source.let_go();
        operate(stage).await?;
        let status = stage.ready("ubuntu").await?;
        ensure!(status.attempt == Some(1), "{status:?}");
        ensure!(status.image.is_some_and(|image| image.id == id), "it is another record");
        let image = stage.cloud.image(&id).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

#[test]
fn a_process_that_is_asked_to_end_leaves_an_import_to_the_cloud() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        hold(stage, &disk);
        let changes = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("ubuntu", HELD, changes).await?;
        operate(stage).await?;
        let id = taken(stage, "importing").await?;
        ensure!(stage.stop_within(END).await? == Ended::Status(0));
        stage.source.let_go();
        operate(stage).await?;
        ensure!(stage.id("ubuntu").await? == id, "it is another record");
        let imports = stage.proxy.count(&Method::POST, "/import");
        ensure!(imports == 1, "{imports} imports were begun");
        Ok(vec![id])
    })
}

#[test]
fn an_upload_ends_when_another_image_is_wanted() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(2);
        stage.source.put(DISK, Article::of(disk.clone()));
        hold(stage, &small(1));
        stage.want("ubuntu", HELD, json!({})).await?;
        stage.operate().await?;
        let first = taken(stage, "saving").await?;
        // The source still holds the first one.
        stage.want("ubuntu", DISK, json!({})).await?;
        let id = stage.id("ubuntu").await?;
        ensure!(id != first, "one image of two contents");
        let image = stage.cloud.image(&id).await?;
        ensure!(image["os_hash_value"] == sha512(&disk).as_str(), "{image}");
        Ok(vec![id])
    })
}

#[test]
fn an_upload_and_an_import_end_when_nobody_wants_their_images() -> Result<()> {
    on_stage(async |stage| {
        let disk = small(1);
        hold(stage, &disk);
        let by_import = json!({ "image": { "digest": sha256(&disk) }, "transfer": { "via": "ServerSide" } });
        stage.want("sent", HELD, json!({})).await?;
        stage.want("fetched", HELD, by_import).await?;
        stage.operate().await?;
        eventually(SOON, "both to be under way", async || {
            let images = stage.cloud.images().await?;
            let is = |status: &str| images.iter().any(|image| image["status"] == status);
            ensure!(is("saving") && is("importing"), "{images:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        for name in ["sent", "fetched"] {
            stage.journey.delete::<OpenStackNodeImageRelease>(name).await?;
        }
        for name in ["sent", "fetched"] {
            stage.journey.gone::<OpenStackNodeImageRelease>(name).await?;
        }
        stage.cloud.holds(&[]).await?;
        // What the cloud still fetches comes to nothing.
        stage.source.let_go();
        Ok(Vec::new())
    })
}
