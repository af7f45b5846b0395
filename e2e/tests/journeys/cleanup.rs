//! Releases are deleted: everything that was applied goes, and nothing else.

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{self, ConditionType},
    labels,
};
use e2e::{
    Journey, eventually,
    journey::{SOON, status},
    releases::StackSource,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::journey;

fn classes(journey: &Journey) -> Api<DynamicObject> {
    journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass")
}

async fn merge(api: &Api<DynamicObject>, name: &str, patch: Value) -> Result<DynamicObject> {
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

/// Nothing carries the marks of these releases any more, and the releases themselves are gone.
async fn leave_nothing(journey: &Journey, tags: &[String]) -> Result<()> {
    for tag in tags {
        journey.gone::<ClusterStackRelease>(tag).await?;
        assert_eq!(journey.marked(tag).await?, Vec::<String>::new());
    }
    Ok(())
}

/// A stack of two usable releases.
async fn two_releases(journey: &mut Journey) -> Result<[String; 2]> {
    let tags = [
        journey.releases.publish_harbor("v1", "v1")?,
        journey.releases.publish_harbor("v2", "v2")?,
    ];
    journey.operate().await?;
    journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
    journey.usable("harbor", "v1, v2").await?;
    Ok(tags)
}

/// The stack is deleted while the operator is away; the garbage collector marks its releases.
async fn deleted_meanwhile(journey: &Journey, tags: &[String]) -> Result<()> {
    journey.delete::<ClusterStack>("harbor").await?;
    for tag in tags {
        let marked = |release: &ClusterStackRelease| release.metadata.deletion_timestamp.is_some();
        journey.until_release(tag, "its deletion", marked).await?;
        assert!(!journey.marked(tag).await?.is_empty());
    }
    Ok(())
}

#[test]
fn a_deleted_stack_leaves_nothing() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        journey.delete::<ClusterStack>("harbor").await?;
        leave_nothing(journey, &tags).await
    })
}

#[test]
fn a13_a_deletion_during_a_restart_with_an_empty_disk_leaves_nothing() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        journey.kill_operator().await?;
        for tag in &tags {
            journey.releases.unpublish(tag)?;
        }
        deleted_meanwhile(journey, &tags).await?;
        journey.operate().await?;
        leave_nothing(journey, &tags).await
    })
}

#[test]
fn a13_a_deletion_leaves_nothing_though_the_inventory_was_lost() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        journey.kill_operator().await?;
        for tag in &tags {
            journey.releases.unpublish(tag)?;
            let wiped = Patch::Merge(json!({ "status": null }));
            journey
                .api::<ClusterStackRelease>()
                .patch_status(tag, &PatchParams::default(), &wiped)
                .await?;
        }
        deleted_meanwhile(journey, &tags).await?;
        journey.operate().await?;
        leave_nothing(journey, &tags).await
    })
}

#[test]
fn a_lost_inventory_is_rebuilt_by_looking_and_no_object_is_written() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        let before = status(&journey.release_ready(&tags[0]).await?).resources;
        journey.kill_operator().await?;
        let wiped = Patch::Merge(json!({ "status": null }));
        journey
            .api::<ClusterStackRelease>()
            .patch_status(&tags[0], &PatchParams::default(), &wiped)
            .await?;
        let objects = versions_of_objects(journey).await?;
        journey.operate().await?;
        let after = status(&journey.release_ready(&tags[0]).await?).resources;
        assert_eq!(after, before);
        assert_eq!(versions_of_objects(journey).await?, objects);
        Ok(())
    })
}

/// Names and resource versions of the classes and machine templates.
async fn versions_of_objects(journey: &Journey) -> Result<Vec<(String, Option<String>)>> {
    let mut found = Vec::new();
    for (api_version, kind) in [
        ("cluster.x-k8s.io/v1beta1", "ClusterClass"),
        ("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate"),
    ] {
        for object in journey.objects(api_version, kind).list(&ListParams::default()).await? {
            found.push((object.name_any(), object.resource_version()));
        }
    }
    anyhow::ensure!(!found.is_empty(), "nothing is there");
    Ok(found)
}

/// The message of a release that goes.
fn said(release: &ClusterStackRelease) -> String {
    let conditions = status(release).conditions;
    let applied = conditions::find(&conditions, ConditionType::HelmChartApplied);
    applied
        .and_then(|condition| condition.message.clone())
        .unwrap_or_default()
}

#[test]
fn the_inventory_names_an_object_until_it_is_really_gone() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        let [one, _] = &tags;
        let templates = journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerClusterTemplate");
        let held = format!("{one}-cluster");
        merge(
            &templates,
            &held,
            json!({ "metadata": { "finalizers": ["example.com/hold"] } }),
        )
        .await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let last = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            rows.len() == 1
                && rows[0].kind == "DockerClusterTemplate"
                && said(release) == format!("deleting DockerClusterTemplate {held}")
        };
        journey
            .until_release(one, "nothing but the template left", last)
            .await?;
        merge(&templates, &held, json!({ "metadata": { "finalizers": null } })).await?;
        leave_nothing(journey, &tags[..1]).await
    })
}

#[test]
fn what_a_class_needs_stays_until_the_class_is_really_gone() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        let [one, _] = &tags;
        merge(
            &classes(journey),
            one,
            json!({ "metadata": { "finalizers": ["example.com/hold"] } }),
        )
        .await?;
        let before = journey.marked(one).await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let goes = |release: &ClusterStackRelease| said(release).contains(&format!("ClusterClass {one}"));
        journey.until_release(one, "the class about to go", goes).await?;
        // The answer to a wish shows that it has been looked at since.
        journey.ask_release(one, "later").await?;
        assert_eq!(journey.marked(one).await?, before);
        merge(&classes(journey), one, json!({ "metadata": { "finalizers": null } })).await?;
        leave_nothing(journey, &tags[..1]).await
    })
}

/// Objects that a release may render and must not delete, and one that it must.
const GUARDED: &str = r"
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Release.Namespace }}-extra
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crates.{{ .Release.Namespace }}.example.com
spec:
  group: {{ .Release.Namespace }}.example.com
  names: { kind: Crate, plural: crates }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: { openAPIV3Schema: { type: object } }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: kept
  annotations: { helm.sh/resource-policy: keep }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: given-away
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ordinary
";

#[test]
fn namespaces_kinds_and_what_is_kept_or_another_owners_outlive_their_release() -> Result<()> {
    journey(async |journey| {
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/guarded.yaml", GUARDED)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        assert_eq!(status(&release).resources.len(), 12);
        journey.kill_operator().await?;
        let maps = journey.objects("v1", "ConfigMap");
        merge(
            &maps,
            "given-away",
            json!({ "metadata": { "labels": { labels::PART_OF: "somebody-else" } } }),
        )
        .await?;
        deleted_meanwhile(journey, std::slice::from_ref(&tag)).await?;
        journey.operate().await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        let extra = format!("{}-extra", journey.namespace);
        let crd = format!("crates.{}.example.com", journey.namespace);
        let mut left = journey.marked(&tag).await?;
        left.retain(|name| *name != format!("Namespace {extra}") && *name != format!("CustomResourceDefinition {crd}"));
        assert_eq!(left, ["ConfigMap kept"]);
        assert!(maps.get_opt("given-away").await?.is_some());
        assert!(maps.get_opt("ordinary").await?.is_none());
        Ok(())
    })
}

#[test]
fn an_object_of_two_releases_stays_until_the_last_of_them_goes() -> Result<()> {
    journey(async |journey| {
        for version in ["v1", "v2"] {
            let source = StackSource::harbor(version)?;
            let shared = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\ndata: { same: everywhere }\n";
            source.write("cluster-class/templates/shared.yaml", shared)?;
            journey.releases.publish_stack(&source.path(), version)?;
        }
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.usable("harbor", "v1").await?;
        let maps = journey.objects("v1", "ConfigMap");
        let uid = maps.get("shared").await?.uid();
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.usable("harbor", "v1, v2").await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let tags = ["v1", "v2"].map(e2e::releases::harbor_tag);
        journey.gone::<ClusterStackRelease>(&tags[0]).await?;
        let mark = labels::part_of("ClusterStackRelease", &journey.namespace, &tags[1]);
        eventually(SOON, "the object to be the second release's", async || {
            let shared = maps.get("shared").await?;
            anyhow::ensure!(
                shared.labels().get(labels::PART_OF) == Some(&mark),
                "{:?}",
                shared.metadata
            );
            anyhow::ensure!(shared.uid() == uid, "it is another one");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        journey.delete::<ClusterStack>("harbor").await?;
        leave_nothing(journey, &tags[1..]).await?;
        assert!(maps.get_opt("shared").await?.is_none());
        Ok(())
    })
}

#[test]
fn a3_a_release_in_use_that_somebody_deletes_stays_whole_until_its_last_cluster_is_gone() -> Result<()> {
    journey(async |journey| {
        let tags = two_releases(journey).await?;
        let [one, _] = &tags;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web" },
            "spec": { "topology": { "class": one, "version": "v1.34.0" } },
        });
        journey.apply(cluster).await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let before = journey.inventory(one).await?;
        journey.delete::<ClusterStackRelease>(one).await?;
        let explained = |release: &ClusterStackRelease| {
            let conditions = status(release).conditions;
            conditions::find(&conditions, ConditionType::Reconciling).is_some_and(|condition| {
                condition.reason.as_deref() == Some("InUse")
                    && condition
                        .message
                        .as_deref()
                        .is_some_and(|message| message.contains("/web"))
            })
        };
        let release = journey
            .until_release(one, "named the Cluster that holds it", explained)
            .await?;
        assert_eq!(release.finalizers(), [labels::RELEASE_FINALIZER]);
        assert_eq!(journey.inventory(one).await?, before);
        let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters
            .delete("web", &kube::api::DeleteParams::default())
            .await
            .context("failed to delete the Cluster")?;
        leave_nothing(journey, &tags[..1]).await
    })
}
