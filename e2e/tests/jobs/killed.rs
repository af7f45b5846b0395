//! Who brings an image by a Job is killed between two instructions: the program that sends, in its container, and the operator; or the Pod is told to end, by
//! somebody who empties its node and by somebody who deletes it. The image is in the cloud in the end, once, and nothing else of ours is.

use std::{fs, process::Command};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::{eventually, kubelet::processes_with};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, EvictParams},
};
use serde_json::Value;

use crate::{
    clouds::Scene,
    everywhere,
    place::{PATIENCE, SHARED, Wish},
    really,
};

/// The process of the program that sends: that of its Pod which was told to, whatever else runs on the machine.
async fn sender(wish: &Wish<'_>) -> Result<u32> {
    eventually(PATIENCE, "the program that sends", async || {
        let pods = wish.pods().await?;
        let uids: Vec<String> = pods.iter().filter_map(ResourceExt::uid).collect();
        let is_of_pod = |id: &u32| {
            let groups = fs::read_to_string(format!("/proc/{id}/cgroup")).unwrap_or_default();
            uids.iter().any(|uid| groups.contains(uid.as_str()))
        };
        let all: Vec<u32> = processes_with("worker").into_iter().filter(is_of_pod).collect();
        match all.as_slice() {
            [one] => anyhow::Ok(*one),
            other => anyhow::bail!("{other:?} in the Pods {uids:?}"),
        }
    })
    .await
}

/// The identities of the Jobs that are there.
async fn uids(wish: &Wish<'_>) -> Result<Vec<String>> {
    Ok(wish.jobs().await?.iter().filter_map(ResourceExt::uid).collect())
}

/// The image is there, once.
async fn arrives_once(scene: &Scene<'_>, wish: &Wish<'_>) -> Result<Value> {
    let status = wish.ready().await?;
    scene.holds(&[status["image"]["id"].as_str().context("an id")?]).await?;
    Ok(status)
}

#[test]
fn a_program_that_is_killed_while_it_sends_is_followed_by_another_and_the_image_comes_once() -> Result<()> {
    really(async |place| {
        let Some(scene) = Scene::set(place, "struck").await? else {
            return Ok(());
        };
        let wish = scene.wish_for(SHARED, "struck", true).await?;
        wish.moves().await?;
        let first = uids(&wish).await?;
        let killed = Command::new("kill")
            .args(["-KILL", &sender(&wish).await?.to_string()])
            .status()?;
        ensure!(killed.success(), "it could not be killed: {killed}");
        wish.failure("ended with code 137 and left no word of ours").await?;
        scene.source.let_go();
        arrives_once(&scene, &wish).await?;
        let last = uids(&wish).await?;
        ensure!(last.len() == 1 && last != first, "{last:?} after {first:?}");
        wish.delete().await?;
        scene.holds(&[]).await
    })
}

#[test]
fn a_job_goes_on_while_its_operator_is_killed_and_the_next_one_finds_it() -> Result<()> {
    really(async |place| {
        let Some(scene) = Scene::set(place, "orphaned").await? else {
            return Ok(());
        };
        let label = "killed";
        let wish = scene.wish_for(label, "orphaned", true).await?;
        let operator = place.operate("killed", "orphaned", label).await?;
        let half = wish.moves().await?;
        let (jobs, program) = (uids(&wish).await?, sender(&wish).await?);
        operator.kill().await?;
        let operator = place.operate("killed", "orphaned", label).await?;
        ensure!(sender(&wish).await? == program, "the program was ended");

        // And once more, so that the Job ends while nobody looks.
        operator.kill().await?;
        scene.source.let_go();
        wish.ended_with("worker", 0).await?;
        let _operator = place.operate("killed", "orphaned", label).await?;
        let status = arrives_once(&scene, &wish).await?;
        let last = uids(&wish).await?;
        ensure!(last == jobs && jobs.len() == 1, "{last:?} instead of {jobs:?}");
        ensure!(status["attempt"] == half["attempt"], "{status:#}");
        wish.delete().await?;
        scene.holds(&[]).await
    })
}

/// The Pod that sends, and the Pods beside which it is.
async fn sending(wish: &Wish<'_>) -> Result<(Pod, Api<Pod>)> {
    let pods = wish.pods().await?;
    let [pod] = <[Pod; 1]>::try_from(pods).map_err(|pods| anyhow!("{} Pods send", pods.len()))?;
    Ok((pod, Api::namespaced(wish.place.client.clone(), wish.name)))
}

/// Waits until this Pod is gone and another one is in its place.
async fn followed(wish: &Wish<'_>, pod: &Pod) -> Result<()> {
    eventually(PATIENCE, "another Pod", async || {
        let pods = wish.pods().await?;
        let is_other = |other: &Pod| other.uid() != pod.uid();
        ensure!(
            pods.len() == 1 && pods.iter().all(is_other),
            "{:?} after {}",
            pods.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
            pod.name_any()
        );
        anyhow::Ok(())
    })
    .await
}

/// The image is there, was sent once, and goes.
async fn arrives_and_goes(scene: &Scene<'_>, wish: &Wish<'_>) -> Result<Value> {
    let status = arrives_once(scene, wish).await?;
    ensure!(scene.sent() == 1, "it was sent {} times", scene.sent());
    wish.delete().await?;
    scene.holds(&[]).await?;
    Ok(status)
}

#[test]
fn a_pod_that_is_evicted_while_it_sends_is_followed_by_another_of_its_job_and_the_image_comes_once() -> Result<()> {
    everywhere(async |place| {
        let Some(scene) = Scene::set(place, "evicted").await? else {
            return Ok(());
        };
        let wish = scene.wish_for(SHARED, "evicted", true).await?;
        let half = wish.moves().await?;
        let (jobs, (pod, pods)) = (uids(&wish).await?, sending(&wish).await?);
        pods.evict(&pod.name_any(), &EvictParams::default()).await?;
        followed(&wish, &pod).await?;
        let last = uids(&wish).await?;
        ensure!(last == jobs && jobs.len() == 1, "{last:?} instead of {jobs:?}");
        scene.source.let_go();
        let status = arrives_and_goes(&scene, &wish).await?;
        // Whoever empties a node does no harm to an attempt.
        ensure!(
            status["attempt"] == half["attempt"] && status["lastFailure"].is_null(),
            "{status:#}"
        );
        Ok(())
    })
}

#[test]
fn a_pod_that_is_deleted_while_it_sends_is_followed_by_that_of_another_job_and_the_image_comes_once() -> Result<()> {
    everywhere(async |place| {
        let Some(scene) = Scene::set(place, "deleted").await? else {
            return Ok(());
        };
        let wish = scene.wish_for(SHARED, "deleted", true).await?;
        wish.moves().await?;
        let (jobs, (pod, pods)) = (uids(&wish).await?, sending(&wish).await?);
        pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        followed(&wish, &pod).await?;
        let last = uids(&wish).await?;
        ensure!(last.len() == 1 && last != jobs, "{last:?} after {jobs:?}");
        scene.source.let_go();
        arrives_and_goes(&scene, &wish).await.map(drop)
    })
}
