//! Releases that go: all that they brought goes with them, nothing that is in use goes, and one that cannot go stops no other.

use std::fs;

use anyhow::Result;
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find},
};
use e2e::{
    eventually,
    journey::{SOON, status},
    releases::{FAILS_IN_USE, StackSource},
};
use kube::api::DeleteParams;
use serde_json::json;

use super::Policy;
use crate::journey;

#[test]
fn f16_a_newest_release_that_never_was_ready_survives_an_outage_of_the_source() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "autoSubscribe": true })).await?;
        journey.usable("harbor", "v1").await?;
        // Not ready, not listed in the spec, not in use: only the source says that it is wanted.
        let failing = StackSource::harbor("v1")?;
        failing.write("cluster-class/templates/region.yaml", FAILS_IN_USE)?;
        let two = journey.releases.publish_stack(&failing.path(), "v2")?;
        let failed = |release: &ClusterStackRelease| {
            find(&status(release).conditions, ConditionType::HelmChartTemplated).is_some()
        };
        let before = journey.until_release(&two, "failing", failed).await?;
        let (place, away) = (journey.releases.folder_of(""), journey.folder().join("away"));
        fs::rename(&place, &away)?;
        journey.restart_operator().await?;
        let unreachable = |stack: &ClusterStack| {
            let conditions = stack
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            find(conditions, ConditionType::ReleasesSynced)
                .is_some_and(|condition| condition.reason.as_deref() == Some("FailedToSync"))
        };
        journey
            .until_stack("harbor", "told that the source is silent", unreachable)
            .await?;
        fs::rename(&away, &place)?;
        journey
            .until_stack("harbor", "told that it is back", |stack| !unreachable(stack))
            .await?;
        let after = journey.until_release(&two, "failing as before", failed).await?;
        assert_eq!(after.metadata.uid, before.metadata.uid);
        assert!(after.metadata.deletion_timestamp.is_none());
        Ok(())
    })
}

#[test]
fn f17_the_deletion_of_a_stack_leaves_a_hash_release_until_its_last_cluster_is_gone() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v0-sha.abc")?;
        journey.operate().await?;
        journey
            .stack("harbor", json!({ "channel": "custom", "versions": ["v0-sha.abc"] }))
            .await?;
        journey.release_ready(&tag).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web" },
            "spec": { "topology": { "class": "docker-harbor-1-34-v0-sha.abc", "version": "v1.34.0" } },
        });
        journey.apply(cluster).await?;
        let objects = journey.inventory(&tag).await?;
        journey.delete::<ClusterStack>("harbor").await?;
        let waits = |release: &ClusterStackRelease| {
            let conditions = status(release).conditions;
            let applied = find(&conditions, ConditionType::HelmChartApplied);
            let message = applied
                .and_then(|condition| condition.message.as_deref())
                .unwrap_or_default();
            release.metadata.deletion_timestamp.is_some() && message.contains(&format!("{}/web", journey.namespace))
        };
        journey.until_release(&tag, "told who uses it", waits).await?;
        assert_eq!(journey.inventory(&tag).await?, objects);
        let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters.delete("web", &DeleteParams::default()).await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        assert_eq!(journey.marked(&tag).await?, Vec::<String>::new());
        Ok(())
    })
}

#[test]
fn f19_a_deletion_that_is_denied_stops_no_other_and_ends_when_it_is_allowed() -> Result<()> {
    journey(async |journey| {
        let tags: Vec<String> = ["v1", "v2", "v3"]
            .iter()
            .map(|version| journey.releases.publish_harbor("v1", version))
            .collect::<Result<_>>()?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        let releases = journey.api::<ClusterStackRelease>();
        let policy = Policy {
            journey,
            group: "clusterstack.x-k8s.io",
            resource: "clusterstackreleases",
            verb: "DELETE",
        };
        policy
            .allows(&format!("oldObject.metadata.name != '{}'", tags[0]))
            .await?;
        eventually(SOON, "the policy to be heeded", async || {
            match releases
                .delete(
                    &tags[0],
                    &DeleteParams {
                        dry_run: true,
                        ..DeleteParams::default()
                    },
                )
                .await
            {
                Err(kube::Error::Api(refusal)) => Ok(refusal),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
        journey.stack("harbor", json!({ "versions": ["v3"] })).await?;
        journey.gone::<ClusterStackRelease>(&tags[1]).await?;
        journey.release_ready(&tags[2]).await?;
        assert!(releases.get(&tags[0]).await?.metadata.deletion_timestamp.is_none());
        policy.allows("true").await?;
        journey.gone::<ClusterStackRelease>(&tags[0]).await?;
        assert_eq!(journey.marked(&tags[0]).await?, Vec::<String>::new());
        journey.usable("harbor", "v3").await?;
        Ok(())
    })
}

#[test]
fn f19_a_release_with_an_impossible_name_goes_when_it_is_deleted() -> Result<()> {
    journey(async |journey| {
        journey.operate().await?;
        let odd = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": "not-a-release" }, "spec": {},
        });
        journey.apply(odd).await?;
        let marked = |release: &ClusterStackRelease| release.metadata.finalizers.is_some() && release.status.is_some();
        journey.until_release("not-a-release", "looked at", marked).await?;
        journey.delete::<ClusterStackRelease>("not-a-release").await?;
        journey.gone::<ClusterStackRelease>("not-a-release").await
    })
}

#[test]
fn f22_a_release_is_cleaned_up_although_its_files_are_gone() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        assert_eq!(journey.marked(&tag).await?.len(), 7);
        // Another node, an empty disk.
        journey.kill_operator().await?;
        fs::remove_dir_all(journey.releases.root())?;
        journey.delete::<ClusterStack>("harbor").await?;
        journey.operate().await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        assert_eq!(journey.marked(&tag).await?, Vec::<String>::new());
        Ok(())
    })
}
