//! Versions are listed, dropped, followed and used.

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, ClusterStackStatus, conditions, labels, resource::SyncStatus};
use e2e::{
    Journey, eventually,
    journey::{SOON, status},
    releases::{Releases, harbor_tag},
};
use kube::ResourceExt;
use serde_json::json;

use crate::journey;

/// A user's Cluster with this class.
async fn cluster(journey: &Journey, namespace: &str, name: &str, topology: serde_json::Value) -> Result<()> {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "topology": topology },
    });
    journey.apply(cluster).await.map(drop)
}

async fn delete_cluster(journey: &Journey, namespace: &str, name: &str) -> Result<()> {
    let kind = journey
        .objects("cluster.x-k8s.io/v1beta1", "Cluster")
        .resource_url()
        .to_owned();
    let path = kind.replace(&journey.namespace, namespace);
    let request = http::Request::delete(format!("{path}/{name}")).body(Vec::new())?;
    journey.client.request::<serde_json::Value>(request).await?;
    Ok(())
}

#[test]
fn a1_one_listed_version_becomes_usable() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let stack = journey.usable("harbor", "v1").await?;
        assert_eq!(
            stack
                .status
                .as_ref()
                .and_then(|status| status.latest_release.as_deref()),
            Some("docker-harbor-1-34-v1 | v1.34.0")
        );
        let release = journey.release_ready(&tag).await?;
        assert_eq!(release.finalizers(), [labels::RELEASE_FINALIZER]);
        let [owner] = release.owner_references() else {
            anyhow::bail!("one owner expected: {release:?}")
        };
        assert_eq!(
            (owner.kind.as_str(), Some(&owner.uid)),
            ("ClusterStack", stack.metadata.uid.as_ref())
        );
        let status = status(&release);
        assert_eq!(status.kubernetes_version.as_deref(), Some("v1.34.0"));
        assert_eq!(status.resources.len(), 7, "{:#?}", status.resources);
        assert!(
            status
                .resources
                .iter()
                .all(|row| row.status == Some(SyncStatus::Synced)),
            "{:#?}",
            status.resources
        );
        for (name, object) in journey.inventory(&tag).await? {
            let object = object.with_context(|| format!("{name} is not there"))?;
            assert_eq!(
                object.labels().get(labels::INSTANCE).map(String::as_str),
                Some(labels::INSTANCE_OWNED)
            );
            let managers: Vec<_> = object
                .managed_fields()
                .iter()
                .map(|entry| entry.manager.as_deref())
                .collect();
            assert_eq!(managers, [Some(labels::FIELD_MANAGER)], "{name}");
        }
        Ok(())
    })
}

#[test]
fn a2_f1_a_dropped_version_goes_with_all_its_objects_and_the_other_stays_untouched() -> Result<()> {
    journey(async |journey| {
        let (one, two) = (
            journey.releases.publish_harbor("v1", "v1")?,
            journey.releases.publish_harbor("v2", "v2")?,
        );
        journey.operate().await?;
        // The greater version is dropped, which is also the latest one that is ready: it must go for an explicit wish only.
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        let before = journey.inventory(&two).await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.gone::<ClusterStackRelease>(&one).await?;
        assert_eq!(journey.marked(&one).await?, Vec::<String>::new());
        journey.usable("harbor", "v2").await?;
        assert_eq!(journey.inventory(&two).await?, before);
        Ok(())
    })
}

#[test]
fn a_listed_version_that_the_source_does_not_have_yet_is_taken_when_it_appears() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1").await?;
        let waits = |release: &ClusterStackRelease| {
            let conditions = status(release).conditions;
            conditions::find(&conditions, conditions::ConditionType::ClusterStackReleaseDownloaded)
                .is_some_and(|condition| condition.reason.as_deref() == Some("ReleaseAssetsNotDownloadedYet"))
        };
        journey
            .until_release(&harbor_tag("v2"), "waiting for its files", waits)
            .await?;
        // The source is asked every five minutes; its file watch tells at once.
        journey.releases.publish_harbor("v2", "v2")?;
        let stack = journey.usable("harbor", "v1, v2").await?;
        let latest = stack.status.and_then(|status| status.latest_release);
        assert_eq!(latest.as_deref(), Some("docker-harbor-1-34-v2 | v1.34.0"));
        Ok(())
    })
}

#[test]
fn a_stack_may_name_a_directory_below_the_operators_which_need_not_be_there_yet() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        let source = json!({ "directory": { "path": "teams/harbor" } });
        journey
            .stack("harbor", json!({ "autoSubscribe": true, "source": source }))
            .await?;
        let tells = |stack: &ClusterStack| {
            let conditions = stack
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            conditions::find(conditions, conditions::ConditionType::Ready)
                .is_some_and(|ready| ready.status == conditions::ConditionStatus::False)
        };
        journey
            .until_stack("harbor", "told that nothing is there", tells)
            .await?;
        let team = Releases::at(&journey.releases.root().join("teams/harbor"))?;
        let tag = team.publish_harbor("v2", "v2")?;
        journey.usable("harbor", "v2").await?;
        let release = journey.release_ready(&tag).await?;
        assert_eq!(serde_json::to_value(&release.spec.source)?, source);
        let from = status(&release).assets.map(|assets| assets.source).unwrap_or_default();
        assert!(from.ends_with("releases/teams/harbor/cluster-stacks"), "{from}");
        Ok(())
    })
}

#[test]
fn a3_a_version_in_use_stays_until_its_last_cluster_is_gone() -> Result<()> {
    journey(async |journey| {
        let (one, _) = (
            journey.releases.publish_harbor("v1", "v1")?,
            journey.releases.publish_harbor("v2", "v2")?,
        );
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        let namespace = journey.namespace.clone();
        let topology = json!({ "class": one, "version": "v1.34.0" });
        cluster(journey, &namespace, "web", topology).await?;
        stays_while_used(journey, &one, json!([])).await?;
        delete_cluster(journey, &namespace, "web").await?;
        journey.gone::<ClusterStackRelease>(&one).await?;
        assert_eq!(journey.marked(&one).await?, Vec::<String>::new());
        Ok(())
    })
}

#[test]
fn a3_f17_a_hash_release_in_use_stays_although_class_and_object_are_spelled_differently() -> Result<()> {
    journey(async |journey| {
        let hash = journey.releases.publish_harbor("v1", "v0-sha.abc")?;
        assert_eq!(hash, harbor_tag("v0-sha.abc"));
        journey.releases.publish_harbor("v2", "v0-sha.def")?;
        journey.operate().await?;
        let channel = json!({ "channel": "custom", "versions": ["v0-sha.abc", "v0-sha.def"] });
        journey.stack("harbor", channel).await?;
        journey.usable("harbor", "v0-sha.abc, v0-sha.def").await?;
        let namespace = journey.namespace.clone();
        let topology = json!({ "class": "docker-harbor-1-34-v0-sha.abc", "version": "v1.34.0" });
        cluster(journey, &namespace, "web", topology).await?;
        let seen = journey.mark().await?;
        journey
            .stack("harbor", json!({ "channel": "custom", "versions": ["v0-sha.def"] }))
            .await?;
        // Used by nobody, and not among the versions: it takes the same way.
        settled(journey).await?;
        assert!(
            journey
                .api::<ClusterStackRelease>()
                .get(&hash)
                .await?
                .metadata
                .deletion_timestamp
                .is_none()
        );
        let deletions = journey
            .requests_since(seen)
            .await?
            .filter(|event| event.verb == "delete");
        assert!(deletions.is_empty(), "{deletions:#?}");
        delete_cluster(journey, &namespace, "web").await?;
        journey.gone::<ClusterStackRelease>(&hash).await?;
        assert_eq!(journey.marked(&hash).await?, Vec::<String>::new());
        Ok(())
    })
}

#[test]
fn a3_a_class_used_from_another_namespace_is_in_use() -> Result<()> {
    journey(async |journey| {
        let one = journey.releases.publish_harbor("v1", "v1")?;
        journey.releases.publish_harbor("v2", "v2")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        let tenant = journey.another_namespace().await?;
        let topology = json!({ "class": one, "classNamespace": journey.namespace, "version": "v1.34.0" });
        cluster(journey, &tenant, "web", topology).await?;
        stays_while_used(journey, &one, json!(["v2"])).await?;
        delete_cluster(journey, &tenant, "web").await?;
        journey.gone::<ClusterStackRelease>(&one).await?;
        Ok(())
    })
}

/// Drops a release from the list and shows that it is left alone.
async fn stays_while_used(journey: &Journey, tag: &str, versions: serde_json::Value) -> Result<()> {
    journey.stack("harbor", json!({ "versions": versions })).await?;
    settled(journey).await?;
    let release = journey.api::<ClusterStackRelease>().get(tag).await?;
    assert!(release.metadata.deletion_timestamp.is_none(), "{release:#?}");
    assert!(status(&release).ready, "{release:#?}");
    Ok(())
}

/// Waits until the operator has dealt with the present spec of the stack.
async fn settled(journey: &Journey) -> Result<ClusterStack> {
    let wanted = journey.api::<ClusterStack>().get("harbor").await?.metadata.generation;
    let holds = |stack: &ClusterStack| {
        stack.status.as_ref().is_some_and(|status| {
            let done = conditions::find(&status.conditions, conditions::ConditionType::Reconciling).is_none();
            status.observed_generation == wanted && done
        })
    };
    journey
        .until_stack("harbor", "an answer to the present spec", holds)
        .await
}

#[test]
fn a14_f18_the_tenth_alpha_is_newer_than_the_ninth_and_a_new_one_is_taken_at_once() -> Result<()> {
    journey(async |journey| {
        for version in ["v1-alpha.9", "v1-alpha.10"] {
            journey.releases.publish_harbor("v1", version)?;
        }
        journey.operate().await?;
        journey
            .stack("harbor", json!({ "channel": "alpha", "autoSubscribe": true }))
            .await?;
        let stack = journey.usable("harbor", "v1-alpha.10").await?;
        let status = stack.status.context("a status")?;
        assert_eq!(
            status.latest_release.as_deref(),
            Some("docker-harbor-1-34-v1-alpha.10 | v1.34.0")
        );
        let available: Vec<_> = status
            .available
            .iter()
            .map(|release| release.version.as_str())
            .collect();
        assert_eq!(available, ["v1-alpha.10", "v1-alpha.9"]);
        journey.releases.publish_harbor("v2", "v1-alpha.11")?;
        // The one before it goes when nobody needs it any more.
        journey.usable("harbor", "v1-alpha.11").await?;
        journey.gone::<ClusterStackRelease>(&harbor_tag("v1-alpha.10")).await?;
        Ok(())
    })
}

#[test]
fn a14_the_custom_channel_follows_everything_but_stable() -> Result<()> {
    journey(async |journey| {
        for version in ["v2-beta.1", "v1-alpha.10", "v3"] {
            journey.releases.publish_harbor("v1", version)?;
        }
        journey.operate().await?;
        journey
            .stack("harbor", json!({ "channel": "custom", "autoSubscribe": true }))
            .await?;
        journey.usable("harbor", "v2-beta.1").await?;
        Ok(())
    })
}

#[test]
fn a14_hash_releases_of_a_directory_have_no_order_so_only_listed_ones_are_taken_and_the_status_says_so() -> Result<()> {
    journey(async |journey| {
        for version in ["v0-sha.abc", "v0-sha.def"] {
            journey.releases.publish_harbor("v1", version)?;
        }
        journey.operate().await?;
        let spec = json!({ "channel": "sha", "autoSubscribe": true, "versions": ["v0-sha.def"] });
        journey.stack("harbor", spec).await?;
        let stack = journey.usable("harbor", "v0-sha.def").await?;
        let status = stack.status.context("a status")?;
        assert_eq!(status.available_count, Some(2));
        assert!(
            journey
                .api::<ClusterStackRelease>()
                .get_opt(&harbor_tag("v0-sha.abc"))
                .await?
                .is_none()
        );
        Ok(())
    })
}

#[test]
fn f16_a_newest_release_that_is_not_ready_survives_an_outage_of_the_source() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "autoSubscribe": true })).await?;
        journey.usable("harbor", "v1").await?;
        // The newest one is there, and broken: not ready, not listed in the spec, not in use.
        let two = journey.releases.publish_harbor("v2", "v2")?;
        journey.release_ready(&two).await?;
        journey.releases.edit(&two, |folder| {
            Ok(std::fs::write(folder.join("metadata.yaml"), "broken: [")?)
        })?;
        journey
            .until_release(&two, "not ready", |release| !status(release).ready)
            .await?;
        let next = |stack: &ClusterStack| {
            let next = stack.status.as_ref().and_then(|status| status.next_release.as_deref());
            next == Some(two.as_str())
        };
        journey.until_stack("harbor", "named as the next release", next).await?;
        let uid = journey.api::<ClusterStackRelease>().get(&two).await?.metadata.uid;
        let (place, away) = (journey.releases.folder_of(""), journey.folder().join("away"));
        std::fs::rename(&place, &away)?;
        journey.restart_operator().await?;
        let unreachable = |stack: &ClusterStack| {
            let conditions = stack
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            conditions::find(conditions, conditions::ConditionType::ReleasesSynced)
                .is_some_and(|condition| condition.reason.as_deref() == Some("FailedToSync"))
        };
        journey
            .until_stack("harbor", "ReleasesSynced False", unreachable)
            .await?;
        assert_eq!(journey.api::<ClusterStackRelease>().get(&two).await?.metadata.uid, uid);
        std::fs::rename(&away, &place)?;
        journey
            .until_stack("harbor", "ReleasesSynced True", |stack| !unreachable(stack))
            .await?;
        assert_eq!(journey.api::<ClusterStackRelease>().get(&two).await?.metadata.uid, uid);
        Ok(())
    })
}

#[test]
fn f19_a_release_with_an_impossible_name_and_a_version_that_is_nowhere_stop_nothing() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v7"] })).await?;
        let owner = journey.api::<ClusterStack>().get("harbor").await?;
        let odd = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": "not-a-release", "ownerReferences": [{
                "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
                "name": "harbor", "uid": owner.metadata.uid,
            }] },
            "spec": {},
        });
        journey.apply(odd).await?;
        let stack = journey.usable("harbor", "v1").await?;
        journey.release_ready(&tag).await?;
        let summary = stack.status.map(|status| status.summary).unwrap_or_default();
        let missing = summary
            .iter()
            .find(|release| release.name == "v7")
            .context("v7 in the summary")?;
        assert!(!missing.ready);
        let broken = |release: &ClusterStackRelease| {
            let conditions = status(release).conditions;
            conditions::find(&conditions, conditions::ConditionType::ClusterStackReleaseDownloaded)
                .and_then(|condition| condition.message.clone())
                .is_some_and(|message| message.contains("no release tag"))
        };
        journey
            .until_release("not-a-release", "told that its name is no tag", broken)
            .await?;
        Ok(())
    })
}

#[test]
fn f20_a_stack_that_is_ready_is_not_written_again_and_its_lists_are_sorted() -> Result<()> {
    journey(async |journey| {
        for version in ["v1", "v2", "v10"] {
            journey.releases.publish_harbor("v1", version)?;
        }
        journey.operate().await?;
        journey
            .stack("harbor", json!({ "versions": ["v10", "v2", "v1"] }))
            .await?;
        journey.usable("harbor", "v1, v2, v10").await?;
        let stack = settled(journey).await?;
        let names: Vec<_> = stack
            .status
            .iter()
            .flat_map(|status| &status.summary)
            .map(|release| release.name.as_str())
            .collect();
        assert_eq!(names, ["v1", "v2", "v10"]);
        let mark = journey.mark().await?;
        // An event that wakes the stack and changes nothing.
        journey
            .annotate::<ClusterStack>("harbor", "example.com/note", Some("hello"))
            .await?;
        journey.ask_stack("harbor", "now").await?;
        let writes = journey.writes_since(mark).await?;
        assert_eq!(writes.len(), 1, "the answer itself: {writes:#?}");
        // Another process, whose maps have another order, finds nothing to write either.
        let before = journey.api::<ClusterStack>().get("harbor").await?.status;
        let mark = journey.mark().await?;
        journey.restart_operator().await?;
        let after = journey.ask_stack("harbor", "again").await?.status;
        let writes = journey.writes_since(mark).await?;
        assert_eq!(writes.len(), 1, "the answer itself: {writes:#?}");
        let lists = |status: Option<ClusterStackStatus>| {
            let status = status.unwrap_or_default();
            (status.summary, status.usable_versions, status.available)
        };
        assert_eq!(lists(after), lists(before));
        // And a listed version that goes is taken out of the latest release.
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let latest = |stack: &ClusterStack| {
            stack
                .status
                .as_ref()
                .and_then(|status| status.latest_release.as_deref())
                .is_some_and(|latest| latest.contains("v10"))
        };
        eventually(SOON, "v10 to stay the latest that is ready", async || {
            let stack = journey.api::<ClusterStack>().get("harbor").await?;
            anyhow::ensure!(latest(&stack), "{stack:?}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        journey.gone::<ClusterStackRelease>(&harbor_tag("v2")).await?;
        Ok(())
    })
}
