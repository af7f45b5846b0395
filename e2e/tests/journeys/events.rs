//! What `kubectl describe` shows below Events: what happened, once.

use anyhow::{Result, ensure};
use crds::ClusterStackRelease;
use e2e::{
    Journey, eventually,
    journey::{SOON, USER, status},
};
use kube::{
    Resource,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde_json::json;

use crate::journey;

/// Waits until an object has an event for which `holds`, and returns all of the object.
pub(crate) async fn told<K>(
    journey: &Journey,
    object: &K,
    what: &str,
    holds: impl Fn(&(String, String, String)) -> bool,
) -> Result<Vec<(String, String, String)>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    eventually(SOON, format!("the event {what}"), async || {
        let events = journey.events_of(object).await?;
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
            journey.ask_release(&two, word).await?;
            journey.ask_stack("harbor", word).await?;
            journey.restart_operator().await?;
        }
        let mut again = journey.events_of(&stack).await?;
        again.sort();
        assert_eq!(again, events);
        let release = journey.release_ready(&two).await?;
        assert_eq!(journey.events_of(&release).await?, []);
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
            let release = journey.ask_release(&tag, word).await?;
            ensure!(!status(&release).ready, "it is broken");
            journey.restart_operator().await?;
        }
        assert_eq!(journey.events_of(&release).await?, events);
        assert_eq!(events.len(), 1, "{events:#?}");
        Ok(())
    })
}
