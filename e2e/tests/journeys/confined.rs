//! Charts that name other namespaces than that of their stack.

use anyhow::Result;
use crds::{ClusterStackRelease, conditions::ConditionType};
use e2e::{
    Journey,
    journey::{USER, status},
    releases::StackSource,
};
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{apply::said, journey};

/// Our own stack with one template more; the answer is its tag.
fn publish(journey: &Journey, version: &str, template: &str) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    source.write("cluster-class/templates/more.yaml", template)?;
    journey.releases.publish_stack(&source.path(), version)
}

/// An object that names a namespace.
fn map(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\n  namespace: {namespace}\ndata: {{ from: ours }}\n"
    )
}

/// A kind, and an object of it that names a namespace.
fn kind_and_object(group: &str, namespace: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: quays.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{ kind: Quay, plural: quays, singular: quay, listKind: QuayList }}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{ openAPIV3Schema: {{ type: object }} }}
---
apiVersion: {group}/v1
kind: Quay
metadata:
  name: quay
  namespace: {namespace}
"
    )
}

/// Whether the release is refused, and the object named.
fn is_refused(release: &ClusterStackRelease, object: &str) -> bool {
    let status = status(release);
    let (reason, message) = said(&status, ConditionType::ClusterStackReleaseDownloaded);
    let (stalled, _) = said(&status, ConditionType::Stalled);
    let named = message.contains(object) && message.contains("leave metadata.namespace out");
    !status.ready && reason == "IssueWithReleaseAssets" && stalled == "BrokenRelease" && named
}

#[test]
fn a_chart_that_reaches_into_another_namespace_is_refused_and_nothing_of_it_is_applied() -> Result<()> {
    journey(async |journey| {
        let tenant = journey.another_namespace().await?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map", "namespace": tenant },
            "data": { "from": "theirs" },
        });
        let theirs = journey.apply(theirs).await?;
        let tag = publish(journey, "v1", &map(&tenant))?;
        let object = format!("ConfigMap {tenant}/map");
        let refused = |release: &ClusterStackRelease| is_refused(release, &object);
        let before = journey.mark().await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey
            .until_release(&tag, "refused, with its object named", refused)
            .await?;
        journey.restart_operator().await?;
        let release = journey.ask_release(&tag, "look").await?;
        assert!(refused(&release), "{:#?}", status(&release));
        assert_eq!(status(&release).resources, []);
        assert_eq!(journey.marked(&tag).await?, [""; 0]);
        let asked = journey.requests_since(before).await?;
        let there = asked.iter().find(|event| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.namespace == tenant)
        });
        assert!(there.is_none(), "{there:?}");
        let maps: Api<ConfigMap> = Api::namespaced(journey.client.clone(), &tenant);
        let left = maps.get("map").await?;
        assert_eq!(left.resource_version(), theirs.resource_version());
        assert!(
            left.managed_fields()
                .iter()
                .all(|entry| entry.manager.as_deref() == Some(USER))
        );

        // A chart may say where it is.
        let own = journey.namespace.clone();
        let mended = publish(journey, "v2", &map(&own))?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.release_ready(&mended).await?;
        Ok(())
    })
}

#[test]
fn a_chart_that_brings_a_kind_and_puts_an_object_of_it_elsewhere_is_refused_before_the_kind_is_there() -> Result<()> {
    journey(async |journey| {
        let tenant = journey.another_namespace().await?;
        let group = format!("{tenant}.example.org");
        let tag = publish(journey, "v1", &kind_and_object(&group, &tenant))?;
        let object = format!("Quay {tenant}/quay");
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey
            .until_release(&tag, "refused, with its object named", |release| {
                is_refused(release, &object)
            })
            .await?;
        assert_eq!(status(&release).resources, []);
        assert_eq!(journey.marked(&tag).await?, [""; 0]);
        let definitions: Api<CustomResourceDefinition> = Api::all(journey.client.clone());
        assert!(definitions.get_opt(&format!("quays.{group}")).await?.is_none());
        Ok(())
    })
}
