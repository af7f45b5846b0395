//! What an operator looks after: one namespace or all, everything or what has a label.

use anyhow::{Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    AuditEvent, Journey, eventually,
    journey::{SOON, journey},
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::STACK;

/// A stack of version v1 in this namespace.
async fn stack(journey: &Journey, namespace: &str, name: &str, filter: Option<&str>) -> Result<()> {
    let labels: Value = filter.map_or(json!({}), |value| json!({ labels::WATCH_FILTER: value }));
    let stack = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false,
            "noProvider": true, "versions": ["v1"],
        },
    });
    journey.apply(stack).await.map(drop)
}

/// Waits until the release is ready in this namespace, and looked after by whom the label names.
async fn ready(journey: &Journey, namespace: &str, tag: &str, filter: Option<&str>) -> Result<ClusterStackRelease> {
    let releases: Api<ClusterStackRelease> = Api::namespaced(journey.client.clone(), namespace);
    eventually(SOON, format!("{tag} in {namespace} for {filter:?}"), async || {
        let release = releases.get(tag).await?;
        let is_ready = release.status.as_ref().is_some_and(|status| status.ready);
        let named = release.labels().get(labels::WATCH_FILTER).map(String::as_str);
        ensure!(
            is_ready && named == filter,
            "{:?} {:?}",
            release.metadata.labels,
            release.status
        );
        Ok(release)
    })
    .await
}

#[test]
fn an_operator_of_all_namespaces_with_a_filter_installs_what_is_labelled_and_touches_nothing_else() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let (here, there) = (journey.namespace.clone(), journey.another_namespace().await?);
        journey.options.namespace = String::new();
        journey.options.flags.push(format!("--watch-filter={here}").into());
        stack(journey, &here, STACK, Some(&here)).await?;
        stack(journey, &there, STACK, Some(&here)).await?;
        stack(journey, &here, "unlabelled", None).await?;
        stack(journey, &there, "of-others", Some("others")).await?;
        let before = journey.mark().await?;
        journey.operate().await?;
        let first = ready(journey, &here, &tag, Some(&here)).await?;
        let second = ready(journey, &there, &tag, Some(&here)).await?;
        ensure!(first.uid() != second.uid(), "one release for two namespaces");

        // What goes in one namespace goes there alone.
        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        let kept = ready(journey, &there, &tag, Some(&here)).await?;
        ensure!(kept.uid() == second.uid(), "made again");

        let asked = journey.requests_since(before).await?;
        let touched = asked.iter().filter(|event| event.is_write()).find(|event| {
            let is_other = |name: &str| event.request_uri.contains(&format!("/clusterstacks/{name}"));
            is_other("unlabelled") || is_other("of-others")
        });
        ensure!(touched.is_none(), "{touched:?}");
        Ok(())
    })
}

/// Whether a request of an operator of this namespace reaches beyond it: not what has no namespace, nor the Clusters, which use a class from
/// elsewhere too.
fn reaches_beyond(event: &AuditEvent, namespace: &str) -> bool {
    let Some(object) = &event.object else { return false };
    if !object.namespace.is_empty() {
        return object.namespace != namespace;
    }
    let kinds = ["customresourcedefinitions", "clusters"];
    let looks = matches!(event.verb.as_str(), "list" | "watch");
    let everywhere = looks && kinds.contains(&object.resource.as_str());
    let own_namespace = object.resource == "namespaces" && object.name == namespace;
    !everywhere && !own_namespace
}

#[test]
fn f32_an_operator_of_one_namespace_asks_for_no_other_but_for_clusters() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let (here, there) = (journey.namespace.clone(), journey.another_namespace().await?);
        ensure!(journey.options.namespace == here, "journeys have one namespace");
        stack(journey, &there, STACK, None).await?;
        let before = journey.mark().await?;
        journey.operate().await?;
        stack(journey, &here, STACK, None).await?;
        ready(journey, &here, &tag, None).await?;
        journey.ask_stack(STACK, "now").await?;
        journey.restart_operator().await?;
        journey.delete::<ClusterStack>(STACK).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;

        let asked = journey.requests_since(before).await?;
        ensure!(asked.iter().any(AuditEvent::is_write), "nothing was done");
        let beyond: Vec<&AuditEvent> = asked.iter().filter(|event| reaches_beyond(event, &here)).collect();
        ensure!(beyond.is_empty(), "{beyond:#?}");
        let releases: Api<ClusterStackRelease> = Api::namespaced(journey.client.clone(), &there);
        ensure!(
            releases.get_opt(&tag).await?.is_none(),
            "the stack in {there} was looked after"
        );
        Ok(())
    })
}

#[test]
fn releases_follow_the_label_of_their_stack_from_one_operator_to_another() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let here = journey.namespace.clone();
        journey.operate().await?;
        stack(journey, &here, STACK, None).await?;
        let made = ready(journey, &here, &tag, None).await?;
        // The operator that sees everything gives the label on.
        stack(journey, &here, STACK, Some("first")).await?;
        ready(journey, &here, &tag, Some("first")).await?;

        journey.kill_operator().await?;
        stack(journey, &here, STACK, Some("second")).await?;
        journey.options.flags.push("--watch-filter=second".into());
        journey.operate().await?;
        let taken = ready(journey, &here, &tag, Some("second")).await?;
        ensure!(taken.uid() == made.uid(), "made again");
        let is_usable = |stack: &ClusterStack| {
            stack
                .status
                .as_ref()
                .is_some_and(|status| status.usable_versions.as_deref() == Some("v1"))
        };
        journey.until_stack(STACK, "usable again", is_usable).await?;
        Ok(())
    })
}
