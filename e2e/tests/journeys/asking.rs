//! What users ask of the operator by annotation.

use anyhow::Result;
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    journey::status,
    prune::{asks_to_prune, extras_left},
};
use serde_json::json;

use crate::journey;

/// What our own stack consists of.
const OWN_OBJECTS: usize = 7;

#[test]
fn a_request_to_reconcile_is_answered_in_the_status_of_stack_and_release() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        for word in ["2026-11-21T12:00:00Z", "again"] {
            journey.ask_release(&tag, word).await?;
            journey.ask_stack("harbor", word).await?;
        }
        Ok(())
    })
}

#[test]
fn a_paused_release_is_left_alone_until_the_pause_ends() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        journey
            .annotate::<ClusterStackRelease>(&tag, labels::PAUSED, Some(""))
            .await?;
        let mark = journey.mark().await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        classes.delete(&tag, &kube::api::DeleteParams::default()).await?;
        // The stack is not paused: it answers after it has seen everything that was written before.
        journey.ask_stack("harbor", "now").await?;
        let classes_written = |events: e2e::audit::AuditEvents| {
            events.writes().filter(|event| {
                event
                    .object
                    .as_ref()
                    .is_some_and(|object| object.resource == "clusterclasses")
            })
        };
        assert!(classes_written(journey.requests_since(mark).await?).is_empty());
        assert!(classes.get_opt(&tag).await?.is_none());
        journey
            .annotate::<ClusterStackRelease>(&tag, labels::PAUSED, None)
            .await?;
        e2e::eventually(e2e::journey::SOON, "the class to be back", async || {
            classes.get(&tag).await
        })
        .await?;
        Ok(())
    })
}

#[test]
fn a_paused_stack_creates_nothing_until_the_pause_ends() -> Result<()> {
    journey(async |journey| {
        let (one, two) = (
            journey.releases.publish_harbor("v1", "v1")?,
            journey.releases.publish_harbor("v2", "v2")?,
        );
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&one).await?;
        journey
            .annotate::<ClusterStack>("harbor", labels::PAUSED, Some(""))
            .await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        // Another stack of the same operator shows that time has passed for it.
        journey.stack("other", json!({ "versions": ["v9"] })).await?;
        journey
            .until_stack("other", "looked at", |stack: &ClusterStack| stack.status.is_some())
            .await?;
        assert!(journey.api::<ClusterStackRelease>().get_opt(&two).await?.is_none());
        journey.annotate::<ClusterStack>("harbor", labels::PAUSED, None).await?;
        journey.release_ready(&two).await?;
        Ok(())
    })
}

#[test]
fn a_suspended_stack_deletes_nothing_until_it_goes_on() -> Result<()> {
    journey(async |journey| {
        let one = journey.releases.publish_harbor("v1", "v1")?;
        journey.releases.publish_harbor("v2", "v2")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        journey
            .stack("harbor", json!({ "versions": ["v2"], "suspend": true }))
            .await?;
        // Another stack of the same operator shows that time has passed for it.
        journey
            .stack("other", json!({ "versions": ["v9"], "kubernetesVersion": "1.33" }))
            .await?;
        journey
            .until_stack("other", "looked at", |stack: &ClusterStack| stack.status.is_some())
            .await?;
        let release = journey.api::<ClusterStackRelease>().get(&one).await?;
        assert!(release.metadata.deletion_timestamp.is_none());
        journey
            .stack("harbor", json!({ "versions": ["v2"], "suspend": false }))
            .await?;
        journey.gone::<ClusterStackRelease>(&one).await
    })
}

#[test]
fn an_edit_that_drops_many_releases_needs_no_approval() -> Result<()> {
    journey(async |journey| {
        let versions: Vec<String> = (1..=12).map(|number| format!("v{number}")).collect();
        let mut tags = Vec::new();
        for version in &versions {
            tags.push(journey.releases.publish_harbor("v1", version)?);
        }
        journey.operate().await?;
        journey
            .stack("harbor", json!({ "versions": versions, "pruneLimit": 1 }))
            .await?;
        let (mark, begin) = (journey.mark().await?, std::time::Instant::now());
        journey.usable("harbor", &versions.join(", ")).await?;
        let of_the_stack = journey.requests_since(mark).await?;
        let of_the_stack = of_the_stack.filter(|event| event.request_uri.contains("/clusterstacks/"));
        let seconds = begin.elapsed().as_secs() + 1;
        assert!(
            of_the_stack.writes().len() as u64 <= seconds + 1,
            "its status is written too often"
        );
        journey
            .stack("harbor", json!({ "versions": ["v12"], "pruneLimit": 1 }))
            .await?;
        for tag in &tags[..11] {
            journey.gone::<ClusterStackRelease>(tag).await?;
        }
        journey.usable("harbor", "v12").await?;
        Ok(())
    })
}

#[test]
fn a_large_prune_waits_for_the_approval_that_the_status_names() -> Result<()> {
    journey(async |journey| {
        let asking = asks_to_prune(journey, 15, 1).await?;
        asking.approve(journey).await?;
        // One approval is enough for both kinds, though they do not go at once and are too many each.
        let release = asking.pruned(journey, OWN_OBJECTS + 2).await?;
        assert_eq!(status(&release).approved_prune, None, "it is done");
        assert_eq!(extras_left(journey).await?, [1, 1]);
        Ok(())
    })
}
