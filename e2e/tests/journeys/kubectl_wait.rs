//! What `kubectl wait` makes of our objects: it ends for success and for failure, and never for what was true of an earlier spec.

use std::fmt;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{
    Journey,
    cosign::Cosign,
    releases::{StackSource, harbor_tag},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    journey,
    signed::{signed_list, trust, verified},
};

/// Renders in the namespace in which releases are tried when they are made, and nowhere else.
const BROKEN: &str = r#"{{ if ne .Release.Namespace "default" }}{{ fail "never" }}{{ end }}"#;

/// Which of two waits ends, and the reason that its condition then gives.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// `kubectl wait --for=condition=Ready`.
    Ready,
    /// `kubectl wait --for=condition=Stalled`.
    Stalled { reason: String },
}

/// Whether `kubectl wait --for=condition=TYPE` ends with this object: the condition is True, and the status is not about an older generation. That
/// is how `k8s.io/kubectl/pkg/cmd/wait` has it.
fn is_met<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == type_)?;
    let generation = object["metadata"]["generation"].as_i64()?;
    let observed = [condition, &object["status"]]
        .into_iter()
        .find_map(|place| place["observedGeneration"].as_i64());
    let is_old = observed.is_some_and(|observed| observed < generation);
    (condition["status"] == "True" && !is_old).then_some(condition)
}

fn ended(object: &impl Serialize) -> Option<Ended> {
    let object = serde_json::to_value(object).ok()?;
    let stalled = is_met(&object, "Stalled").map(|condition| Ended::Stalled {
        reason: condition["reason"].as_str().unwrap_or_default().to_owned(),
    });
    let ready = is_met(&object, "Ready").map(|_| Ended::Ready);
    assert!(stalled.is_none() || ready.is_none(), "both: {object:#}");
    stalled.or(ready)
}

/// Waits as two shells would, one for success and one for failure, until either ends.
async fn wait<K>(journey: &Journey, name: &str) -> Result<Ended>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let object = journey
        .until::<K>(name, "one of two waits to end", |object| ended(object).is_some())
        .await?;
    ended(&object).context("found above")
}

/// Both objects: the stack, and the release that it takes.
async fn both(journey: &Journey, tag: &str, expected: Ended) -> Result<()> {
    let release = wait::<ClusterStackRelease>(journey, tag).await?;
    ensure!(release == expected, "the wait for the release ended with {release:?}");
    let stack = wait::<ClusterStack>(journey, "harbor").await?;
    ensure!(stack == expected, "the wait for the stack ended with {stack:?}");
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
        let stalled = || Ended::Stalled {
            reason: "RenderFailed".to_owned(),
        };
        for (version, expected) in [("v1", Ended::Ready), ("v2", stalled()), ("v3", Ended::Ready)] {
            journey.stack("harbor", json!({ "versions": [version] })).await?;
            both(journey, &harbor_tag(version), expected).await?;
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
        let stalled = Ended::Stalled {
            reason: "VerificationFailed".to_owned(),
        };
        both(journey, &tag, stalled).await?;
        std::fs::write(&images, content)?;
        let is_ready = |stack: &ClusterStack| ended(stack) == Some(Ended::Ready);
        journey.until_stack("harbor", "ready", is_ready).await?;
        both(journey, &tag, Ended::Ready).await
    })
}
