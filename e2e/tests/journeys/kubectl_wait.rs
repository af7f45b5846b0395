//! What `kubectl wait` makes of our objects: it ends for success and for failure, and never for what was true of an earlier spec.

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find, is_true},
};
use e2e::{
    Journey,
    cosign::Cosign,
    journey::status,
    releases::{StackSource, harbor_tag},
};
use serde_json::json;

use crate::{
    journey,
    node_images::{provider_operator, two_images_one_of_them_wrong},
    signed::{signed_list, trust, verified},
};

/// Renders in the namespace in which releases are tried when they are made, and nowhere else.
const BROKEN: &str = r#"{{ if ne .Release.Namespace "default" }}{{ fail "never" }}{{ end }}"#;

/// The condition for which a wait is to end, and the one for which it must not.
const READY: [ConditionType; 2] = [ConditionType::Ready, ConditionType::Stalled];
const STALLED: [ConditionType; 2] = [ConditionType::Stalled, ConditionType::Ready];

/// Both objects: the stack, and the release that it takes. A reason is that of the condition waited for.
async fn both(journey: &Journey, tag: &str, conditions: [ConditionType; 2], reason: Option<&str>) -> Result<()> {
    journey
        .kubectl_waits(&format!("clusterstackrelease/{tag}"), conditions)
        .await?;
    journey.kubectl_waits("clusterstack/harbor", conditions).await?;
    let Some(reason) = reason else { return Ok(()) };
    let release = journey.api::<ClusterStackRelease>().get(tag).await?;
    let stack = journey.api::<ClusterStack>().get("harbor").await?;
    for found in [
        status(&release).conditions,
        stack.status.context("a status")?.conditions,
    ] {
        let condition = find(&found, conditions[0]).context("the condition")?;
        ensure!(condition.reason.as_deref() == Some(reason), "{condition:?}");
    }
    Ok(())
}

#[test]
fn kubectl_wait_ends_for_what_becomes_ready_and_for_what_never_will() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/broken.yaml", BROKEN)?;
        journey.releases.publish_stack(&source.path(), "v2")?;
        journey.releases.publish_harbor("v2", "v3")?;
        journey.operate().await?;
        let failed = Some("RenderFailed");
        for (version, conditions, reason) in [("v1", READY, None), ("v2", STALLED, failed), ("v3", READY, None)] {
            journey.stack("harbor", json!({ "versions": [version] })).await?;
            both(journey, &harbor_tag(version), conditions, reason).await?;
        }
        Ok(())
    })
}

#[test]
fn kubectl_wait_ends_for_a_release_that_is_signed_wrongly() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let cosign = Cosign::new(journey.lab(), &journey.folder().join("cosign"))?;
        trust(journey, &[&cosign.key("ours")?]).await?;
        let folder = journey.releases.folder_of(&tag);
        signed_list(&cosign, &folder)?;
        let images = folder.join("node-images.yaml");
        let content = std::fs::read(&images)?;
        std::fs::write(&images, [content.as_slice(), b"# changed\n"].concat())?;
        journey.operate().await?;
        journey.stack("harbor", verified("Require", None)).await?;
        both(journey, &tag, STALLED, Some("VerificationFailed")).await?;
        std::fs::write(&images, content)?;
        let is_ready = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status.is_some_and(|status| is_true(&status.conditions, ConditionType::Ready))
        };
        journey.until_stack("harbor", "ready", is_ready).await?;
        both(journey, &tag, READY, None).await
    })
}

#[test]
fn kubectl_wait_ends_for_images_that_come_and_for_those_that_never_will() -> Result<()> {
    // The operator of providers alone: there are no decisions to make again.
    e2e::journey::journey(async |journey| {
        let (_server, releases) = two_images_one_of_them_wrong(journey).await?;
        let mut provider = provider_operator(journey).await?;
        provider.ready().await?;
        for ((tag, image), conditions) in releases.iter().zip([READY, STALLED]) {
            let release = json!({
                "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "FileStoreClusterStackRelease",
                "metadata": { "name": tag }, "spec": {},
            });
            journey.apply(release).await?;
            for object in [
                format!("filestorenodeimagerelease/{image}"),
                format!("filestoreclusterstackrelease/{tag}"),
            ] {
                journey.kubectl_waits(&object, conditions).await?;
            }
        }
        Ok(())
    })
}
