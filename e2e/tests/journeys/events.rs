//! What `kubectl describe` shows below Events: what happened, once.

use anyhow::{Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    Journey, eventually,
    journey::{SOON, USER, status},
};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Resource,
    api::{ListParams, Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde_json::json;

use crate::{asking::reconcile_now, journey};

/// The events of an object as `kubectl describe` asks for them: type, reason and message.
pub(crate) async fn described<K>(journey: &Journey, object: &K) -> Result<Vec<(String, String, String)>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    let meta = object.meta();
    let selector = format!(
        "involvedObject.name={},involvedObject.namespace={},involvedObject.kind={},involvedObject.uid={}",
        meta.name.as_deref().unwrap_or_default(),
        journey.namespace,
        K::kind(&()),
        meta.uid.as_deref().unwrap_or_default(),
    );
    let events = Api::<Event>::namespaced(journey.client.clone(), &journey.namespace);
    let mut found = Vec::new();
    for event in events.list(&ListParams::default().fields(&selector)).await? {
        ensure!(event.event_time.is_some(), "no age: {event:?}");
        ensure!(
            event.reporting_component.as_deref() == Some("clusterstack.x-k8s.io/core-operator"),
            "{event:?}"
        );
        let reason = event.reason.clone().unwrap_or_default();
        ensure!(
            include_str!("../../../docs/reference/operating.md").contains(&format!("| `{reason}` |")),
            "docs/reference/operating.md does not explain {reason}"
        );
        found.push((
            event.type_.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default(),
        ));
    }
    Ok(found)
}

/// Waits until an object has an event for which `holds`, and returns all of the object.
async fn told<K>(
    journey: &Journey,
    object: &K,
    what: &str,
    holds: impl Fn(&(String, String, String)) -> bool,
) -> Result<Vec<(String, String, String)>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    eventually(SOON, format!("the event {what}"), async || {
        let events = described(journey, object).await?;
        ensure!(events.iter().any(&holds), "{events:#?}");
        Ok::<_, anyhow::Error>(events)
    })
    .await
}

#[test]
fn a_stack_tells_which_releases_it_made_and_deleted_once() -> Result<()> {
    journey(async |journey| {
        let (one, two) = (
            journey.releases.publish_harbor("v1", "v1")?,
            journey.releases.publish_harbor("v2", "v2")?,
        );
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        let stack = journey.usable("harbor", "v1, v2").await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.gone::<ClusterStackRelease>(&one).await?;
        let normal = |reason: &str, message: String| ("Normal".to_owned(), reason.to_owned(), message);
        let deleted = normal("ClusterStackReleaseDeleted", format!("deleted {one}"));
        let mut events = told(journey, &stack, "of the deletion", |event| *event == deleted).await?;
        events.sort();
        let created = normal("ClusterStackReleaseCreated", format!("created {one}, {two}"));
        assert_eq!(events, [created, deleted]);
        // Nothing happened since, whatever is asked or started again.
        for word in ["once", "twice"] {
            reconcile_now(journey, &two, word).await?;
            journey
                .annotate::<ClusterStack>("harbor", labels::REQUESTED_AT, Some(word))
                .await?;
            let answered = |stack: &ClusterStack| {
                stack
                    .status
                    .as_ref()
                    .and_then(|status| status.last_handled_reconcile_at.as_deref())
                    == Some(word)
            };
            journey.until_stack("harbor", "the request answered", answered).await?;
            journey.restart_operator().await?;
        }
        let mut again = described(journey, &stack).await?;
        again.sort();
        assert_eq!(again, events);
        let release = journey.release_ready(&two).await?;
        assert_eq!(described(journey, &release).await?, []);
        Ok(())
    })
}

#[test]
fn what_was_put_back_is_told_with_the_field_and_who_had_changed_it() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        let templates = journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate");
        let patch =
            json!({ "spec": { "template": { "spec": { "customImage": "registry.example.com/somebody:else" } } } });
        let params = PatchParams {
            field_manager: Some(USER.to_owned()),
            ..PatchParams::default()
        };
        templates
            .patch(&format!("{tag}-worker"), &params, &Patch::Merge(patch))
            .await?;
        let corrected = (
            "Normal".to_owned(),
            "DriftCorrected".to_owned(),
            format!(
                "put back DockerMachineTemplate {tag}-worker which differs from the release at /spec/template/spec/customImage, changed by {USER}"
            ),
        );
        told(journey, &release, "of the correction", |event| *event == corrected).await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        classes.delete(&tag, &kube::api::DeleteParams::default()).await?;
        let made_again = format!("put back ClusterClass {tag} which was deleted");
        let events = told(journey, &release, "of the deletion", |event| event.2 == made_again).await?;
        assert_eq!(events.len(), 2, "{events:#?}");
        Ok(())
    })
}

#[test]
fn what_is_wrong_with_a_release_is_a_warning_and_told_once() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.releases.edit(&tag, |folder| {
            Ok(std::fs::write(folder.join("metadata.yaml"), "broken: [")?)
        })?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let exists = |_: &ClusterStackRelease| true;
        let release = journey.until_release(&tag, "made", exists).await?;
        let broken = |event: &(String, String, String)| {
            event.0 == "Warning" && event.1 == "IssueWithReleaseAssets" && event.2.contains("metadata.yaml")
        };
        let events = told(journey, &release, "of the broken file", broken).await?;
        for word in ["once", "twice"] {
            let release = reconcile_now(journey, &tag, word).await?;
            ensure!(!status(&release).ready, "it is broken");
            journey.restart_operator().await?;
        }
        assert_eq!(described(journey, &release).await?, events);
        assert_eq!(events.len(), 1, "{events:#?}");
        Ok(())
    })
}
