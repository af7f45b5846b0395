//! Charts that name other namespaces than that of their stack.

use anyhow::Result;
use crds::{ClusterStackRelease, conditions::ConditionType};
use e2e::{
    Journey,
    journey::{USER, status},
    releases::StackSource,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{apply::said, journey};

/// Our own stack with an object that names a namespace; the answer is its tag.
fn publish(journey: &Journey, version: &str, namespace: &str) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    let map = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\n  namespace: {namespace}\ndata: {{ from: ours }}\n"
    );
    source.write("cluster-class/templates/map.yaml", &map)?;
    journey.releases.publish_stack(&source.path(), version)
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
        let tag = publish(journey, "v1", &tenant)?;
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
        let mended = publish(journey, "v2", &own)?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.release_ready(&mended).await?;
        Ok(())
    })
}
