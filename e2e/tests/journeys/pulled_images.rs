//! Node images that are in a container registry already: a release is usable while a real registry has them, by tag and digest, and is not without.

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{Condition, ConditionStatus, ConditionType, find},
    labels,
    providers::{docker::DockerNodeImageRelease, image_status::NodeImageStatus},
};
use e2e::{
    Journey, eventually,
    journey::{SOON, status},
    provider_operator::{Destination, ProviderOptions},
    registry::{PASSWORD, Registry},
    releases::StackSource,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::json;

use super::journey;

const STACK: &str = "harbor";
const API_VERSION: &str = "infrastructure.clusterstack.x-k8s.io/v1alpha1";
/// The repository of the image.
const NODES: &str = "nodes/harbor";
const PULL: &str = "pull";

#[test]
fn a_release_is_usable_while_the_registry_has_its_node_image_and_leaves_it_there() -> Result<()> {
    journey(async |journey| {
        let registry = registry(journey).await?;
        push(journey, &registry, "v1")?;
        let digest = registry.digest(NODES, "v1")?;
        registry.offer(NODES, false)?;
        let reference = format!("{}:v1", registry.repository(NODES));
        let source = StackSource::harbor("v1")?;
        let images = format!(
            "apiVersion: node-images.clusterstack.x-k8s.io/v1alpha1\ndockerImages:\n- reference: {reference}\n  digest: {digest}\n"
        );
        source.write("node-images.yaml", &images)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        journey.operate().await?;
        apply_stack(journey).await?;
        let mut provider = ProviderOptions::of(journey, Destination::Docker)
            .await?
            .start(journey.lab())?;
        provider.ready().await?;
        let name = until(journey, "told that it is missing", |_, status| {
            is(status, ConditionType::Ready, "ImageNotFound", &reference)
        })
        .await?;
        ensure!(
            !status(&journey.api::<ClusterStackRelease>().get(&tag).await?).ready,
            "usable without its image"
        );

        registry.offer(NODES, true)?;
        look(journey, &name, "it is there").await?;
        journey.release_ready(&tag).await?;
        until(journey, "verified by its digest", |_, status| {
            let image = status.image.as_ref();
            let id = image.map(|image| image.id.as_str());
            let verified = find(&status.conditions, ConditionType::Verified);
            status.ready
                && id == Some(&format!("{}@{digest}", registry.repository(NODES)))
                && image.is_some_and(|image| image.source_digest.as_ref() == Some(&digest))
                && verified.is_some_and(|verified| verified.status == ConditionStatus::True)
        })
        .await?;

        registry.offer(NODES, false)?;
        look(journey, &name, "it is gone").await?;
        until(journey, "told that it is gone", |_, status| {
            is(status, ConditionType::Ready, "ImageNotFound", &reference)
        })
        .await?;
        journey
            .until_release(&tag, "waiting for its provider again", |release| {
                let waits = |condition: &Condition| {
                    condition.type_ == "ProviderClusterStackReleaseReady" && condition.status == ConditionStatus::False
                };
                status(release).conditions.iter().any(waits)
            })
            .await?;
        registry.offer(NODES, true)?;
        look(journey, &name, "it is back").await?;
        journey.release_ready(&tag).await?;

        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        nothing_is_left(journey).await?;
        ensure!(
            registry.digest(NODES, "v1")? == digest,
            "somebody else's image was touched"
        );
        Ok(())
    })
}

#[test]
fn a_tag_that_was_moved_is_not_the_image_that_was_trusted() -> Result<()> {
    // The provider alone: nobody decides about releases.
    e2e::journey::journey(async |journey| {
        let registry = registry(journey).await?;
        push(journey, &registry, "v1")?;
        let first = registry.digest(NODES, "v1")?;
        let _provider = ProviderOptions::of(journey, Destination::Docker)
            .await?
            .start(journey.lab())?;
        apply_image(journey, &registry, PULL).await?;
        let name = until(journey, "used", |_, status| {
            let image = status.image.as_ref().filter(|_| status.ready);
            image.is_some_and(|image| image.source_digest.as_ref() == Some(&first))
        })
        .await?;
        push(journey, &registry, "v1 again")?;
        let second = registry.digest(NODES, "v1")?;
        ensure!(first != second, "the tag was not moved");
        look(journey, &name, "it was moved").await?;
        until(journey, "told that it is another one", |_, status| {
            !status.ready && is(status, ConditionType::Ready, "SourceMismatch", &second)
        })
        .await?;
        // Its user says that it is meant.
        let reference = format!("{}:v1", registry.repository(NODES));
        let spec = json!({ "pullSecretRef": { "name": PULL }, "image": { "reference": reference, "digest": second } });
        image(journey, spec).await?;
        until(journey, "used", |_, status| {
            let image = status.image.as_ref().filter(|_| status.ready);
            image.is_some_and(|image| image.source_digest.as_ref() == Some(&second))
        })
        .await?;
        Ok(())
    })
}

#[test]
fn a_registry_that_refuses_is_told_without_the_password_and_asked_again_with_another() -> Result<()> {
    // The provider alone: nobody decides about releases.
    e2e::journey::journey(async |journey| {
        let registry = registry(journey).await?;
        push(journey, &registry, "v1")?;
        let mut wrong = registry.pull_secret("wrong")?;
        let logins = wrong["stringData"][".dockerconfigjson"].as_str().context("logins")?;
        wrong["stringData"][".dockerconfigjson"] = logins.replace(PASSWORD, "canary-mistake").into();
        journey.apply(wrong).await?;
        let provider = ProviderOptions::of(journey, Destination::Docker)
            .await?
            .start(journey.lab())?;
        // Who names no Secret asks as anybody, and trusts what everybody trusts.
        let reference = format!("{}:v1", registry.repository(NODES));
        image(journey, json!({ "image": { "reference": reference } })).await?;
        until(journey, "asked for by anybody", |_, status| {
            is(status, ConditionType::CloudAvailable, "CloudUnavailable", "certificate")
        })
        .await?;
        apply_image(journey, &registry, "wrong").await?;
        until(journey, "refused", |object, status| {
            let told = serde_json::to_string(object).unwrap_or_default();
            is(status, ConditionType::CloudAvailable, "CredentialsRejected", "") && !told.contains("canary")
        })
        .await?;
        apply_image(journey, &registry, PULL).await?;
        until(journey, "used", |_, status| status.ready).await?;
        provider.kill().await?;
        let log = fs::read_to_string(journey.folder().join("provider/provider-operator.log"))?;
        ensure!(!log.contains("canary"), "a password is in the log");
        Ok(())
    })
}

/// A registry, and the Secret that opens it.
async fn registry(journey: &Journey) -> Result<Registry> {
    let registry = Registry::start(journey.lab(), &journey.folder().join("registry")).await?;
    journey.apply(registry.pull_secret(PULL)?).await?;
    Ok(registry)
}

/// Something under the tag of the image; other words are another image.
fn push(journey: &Journey, registry: &Registry, words: &str) -> Result<()> {
    let folder = journey.folder().join("node");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("node"), words)?;
    registry.push(&folder, NODES, "v1")
}

async fn apply_stack(journey: &Journey) -> Result<()> {
    const TEMPLATE: &str = "DockerClusterStackReleaseTemplate";
    let spec = json!({ "template": { "spec": { "pullSecretRef": { "name": PULL } } } });
    journey
        .apply(json!({ "apiVersion": API_VERSION, "kind": TEMPLATE, "metadata": { "name": "images" }, "spec": spec }))
        .await?;
    let provider = json!({ "apiVersion": API_VERSION, "kind": TEMPLATE, "name": "images" });
    let spec = json!({ "versions": ["v1"], "noProvider": false, "providerRef": provider });
    journey.stack(STACK, spec).await
}

/// An image without a digest, of no release, opened by this Secret.
async fn apply_image(journey: &Journey, registry: &Registry, secret: &str) -> Result<()> {
    let reference = format!("{}:v1", registry.repository(NODES));
    image(
        journey,
        json!({ "pullSecretRef": { "name": secret }, "image": { "reference": reference } }),
    )
    .await
}

async fn image(journey: &Journey, spec: serde_json::Value) -> Result<()> {
    let image = json!({
        "apiVersion": API_VERSION, "kind": "DockerNodeImageRelease", "metadata": { "name": "node" }, "spec": spec,
    });
    journey.apply(image).await.map(drop)
}

/// Asks for another look.
async fn look(journey: &Journey, name: &str, word: &str) -> Result<()> {
    journey
        .annotate::<DockerNodeImageRelease>(name, labels::REQUESTED_AT, Some(word))
        .await
}

fn is(status: &NodeImageStatus, type_: ConditionType, reason: &str, words: &str) -> bool {
    find(&status.conditions, type_).is_some_and(|condition| {
        condition.status == ConditionStatus::False
            && condition.reason.as_deref() == Some(reason)
            && condition
                .message
                .as_deref()
                .is_some_and(|message| message.contains(words))
    })
}

/// Waits until the only image object is so; the answer is its name.
async fn until(
    journey: &Journey,
    what: &str,
    so: impl Fn(&DockerNodeImageRelease, &NodeImageStatus) -> bool,
) -> Result<String> {
    let objects: Api<DockerNodeImageRelease> = journey.api();
    eventually(SOON, &format!("the image to be {what}"), async || {
        let listed = objects.list(&ListParams::default()).await;
        let listed = listed.map_err(|error| error.to_string())?.items;
        let [object] = listed.as_slice() else {
            return Err(format!("{} objects", listed.len()));
        };
        match &object.status {
            Some(status) if so(object, status) => Ok(object.name_any()),
            status => Err(format!("{status:?}")),
        }
    })
    .await
}

async fn nothing_is_left(journey: &Journey) -> Result<()> {
    let objects: Api<DockerNodeImageRelease> = journey.api();
    eventually(SOON, "the object of the image to be gone", async || {
        let listed = objects.list(&ListParams::default()).await;
        match listed.map_err(|error| error.to_string())?.items.len() {
            0 => Ok(()),
            left => Err(format!("{left} objects")),
        }
    })
    .await
}
