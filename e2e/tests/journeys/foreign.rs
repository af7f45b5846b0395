//! Objects of other people, also odd ones, in the same management cluster.

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, conditions};
use e2e::{
    Journey, eventually,
    journey::{SOON, USER, status},
    operator::sources_of_this_machine,
    releases::StackSource,
    web::IndexServer,
};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::journey;

/// Clusters that have nothing to do with cluster stacks, as far as the API server lets them in.
async fn foreign_clusters(journey: &Journey, namespace: &str) -> Result<usize> {
    let specs = [
        json!({}),
        json!({ "paused": true }),
        json!({ "topology": { "class": "somebody-elses", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "docker-harbor-1-34", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "docker-harbor-1-34-v0-sha.", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "-", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "ß-ü-1-34-v1", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "docker-harbor-1-34-v99999999999999999999999999", "version": "v1.34.0" } }),
        json!({ "topology": { "class": "docker-harbor-1-34-v1", "classNamespace": "nowhere", "version": "v1.34.0" } }),
        json!({ "controlPlaneRef": { "kind": "KubeadmControlPlane", "name": "classic" } }),
        json!({ "topology": { "class": "x".repeat(250), "version": "nonsense" } }),
    ];
    let mut admitted = 0;
    for (number, spec) in specs.iter().enumerate() {
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": { "name": format!("foreign-{number}"), "namespace": namespace },
            "spec": spec,
        });
        // What the CRD refuses cannot hurt.
        admitted += usize::from(journey.apply(cluster).await.is_ok());
    }
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "foreign-0-kubeconfig", "namespace": namespace },
        "stringData": { "value": "neither: [yaml" },
    });
    journey.apply(kubeconfig).await?;
    Ok(admitted)
}

#[test]
fn a17_f21_clusters_of_other_people_neither_stop_nor_crash_the_operator() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let namespace = journey.namespace.clone();
        let admitted = foreign_clusters(journey, &namespace).await?;
        assert!(admitted >= 8, "only {admitted} were admitted");
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        // Once more while it runs, and once more at its start.
        let tenant = journey.another_namespace().await?;
        foreign_clusters(journey, &tenant).await?;
        journey.restart_operator().await?;
        journey.stack("harbor", json!({ "versions": [] })).await?;
        works(journey).await
    })
}

/// The operator is the process that was started, and does its work.
async fn works(journey: &mut Journey) -> Result<()> {
    let tag = journey.releases.publish_harbor("v1", "v0-sha.works")?;
    journey
        .stack("works", json!({ "channel": "custom", "versions": ["v0-sha.works"] }))
        .await?;
    journey.release_ready(&tag).await?;
    journey.operator()?.check()
}

#[test]
fn f21_a_stack_that_gets_and_loses_its_provider_says_so_on_its_releases() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        let reference = json!({
            "apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "NowhereClusterStackReleaseTemplate", "name": "none",
        });
        journey
            .stack(
                "harbor",
                json!({ "versions": ["v1"], "noProvider": false, "providerRef": reference }),
            )
            .await?;
        let refers = |release: &ClusterStackRelease| {
            release.spec.provider_ref.is_some()
                && conditions::find(
                    &status(release).conditions,
                    conditions::ConditionType::ProviderClusterStackReleaseReady,
                )
                .is_some_and(|condition| condition.reason.as_deref() == Some("KindNotFound"))
        };
        journey.until_release(&tag, "waiting for the kind", refers).await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey
            .until_release(&tag, "without provider", |release| {
                release.spec.provider_ref.is_none() && status(release).ready
            })
            .await?;
        assert_eq!(status(&release).resources.len(), 7);
        Ok(())
    })
}

/// A class chart with one `ConfigMap` more.
fn with_map() -> Result<StackSource> {
    let source = StackSource::harbor("v1")?;
    source.write(
        "cluster-class/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\ndata: { from: ours }\n",
    )?;
    Ok(source)
}

#[test]
fn a_copy_of_our_class_belongs_to_whoever_made_it() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        let mut copy = classes.get(&tag).await?;
        // As `kubectl get -o yaml`, an editor and `kubectl create` make it: with all labels.
        copy.metadata = ObjectMeta {
            name: Some("mine".to_owned()),
            labels: copy.metadata.labels,
            annotations: copy.metadata.annotations,
            ..ObjectMeta::default()
        };
        classes.create(&PostParams::default(), &copy).await?;
        journey.ask_release(&tag, "now").await?;
        journey.restart_operator().await?;
        journey.release_ready(&tag).await?;
        classes.get("mine").await?;
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        classes
            .get("mine")
            .await
            .map(drop)
            .context("the copy went with the release")
    })
}

#[test]
fn what_took_the_place_of_an_object_of_ours_is_told_and_stays_when_the_release_goes() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_stack(&with_map()?.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        journey.kill_operator().await?;
        let maps = journey.objects("v1", "ConfigMap");
        maps.delete("map", &DeleteParams::default()).await?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map" }, "data": { "from": "theirs" },
        });
        let theirs = journey.apply(theirs).await?;
        journey.operate().await?;
        let told = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            let row = rows.iter().find(|row| row.kind == "ConfigMap" && row.name == "map");
            row.is_some_and(|row| row.error.contains(USER) && row.error.contains(".data.from"))
                && !status(release).ready
        };
        journey
            .until_release(&tag, "told whose it is and which field", told)
            .await?;
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        let left = maps.get("map").await.context("it went with the release")?;
        assert_eq!(left.resource_version(), theirs.resource_version());
        Ok(())
    })
}

#[test]
fn an_inventory_that_names_objects_of_others_deletes_none_of_them() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "theirs", "labels": { "app": "web" } },
        });
        journey.apply(theirs).await?;
        let mut rows: Vec<Value> = status(&release).resources.iter().map(|row| json!(row)).collect();
        rows.push(json!({ "version": "v1", "kind": "ConfigMap", "namespace": journey.namespace, "name": "theirs" }));
        rows.push(json!({ "version": "v1", "kind": "Namespace", "name": "kube-public" }));
        let patch = json!({ "status": { "resources": rows } });
        let releases = journey.api::<ClusterStackRelease>();
        releases
            .patch_status(&tag, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        let forgotten = |release: &ClusterStackRelease| status(release).resources.len() == 7;
        journey
            .until_release(&tag, "forgetting what is not its own", forgotten)
            .await?;
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        journey
            .objects("v1", "ConfigMap")
            .get("theirs")
            .await
            .context("their object is gone")?;
        let spaces = Api::<Namespace>::all(journey.client.clone());
        assert!(spaces.get("kube-public").await?.metadata.deletion_timestamp.is_none());
        Ok(())
    })
}

#[test]
fn a_release_of_another_stack_is_left_to_it() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("first", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        journey
            .stack("second", json!({ "versions": ["v1"], "drift": "Warn" }))
            .await?;
        let told = |stack: &ClusterStack| {
            let conditions = stack
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice())
                .unwrap_or_default();
            conditions::find(conditions, conditions::ConditionType::ClusterStackReleasesSynced).is_some_and(
                |condition| {
                    condition.reason.as_deref() == Some("ReleaseOwnedByOtherStack")
                        && condition.message.as_deref().unwrap_or_default().contains("first")
                },
            )
        };
        journey.until_stack("second", "told whose the release is", told).await?;
        let left = journey.api::<ClusterStackRelease>().get(&tag).await?;
        assert_eq!(
            (&left.spec, &left.metadata.owner_references),
            (&release.spec, &release.metadata.owner_references)
        );
        // It goes with its own stack, and then the other one may have it.
        journey.delete::<ClusterStack>("first").await?;
        let taken = |release: &ClusterStackRelease| {
            release.owner_references().iter().any(|owner| owner.name == "second") && status(release).ready
        };
        journey.until_release(&tag, "made for the other stack", taken).await?;
        Ok(())
    })
}

/// Reason and message of what a stack says of its releases.
fn releases_synced(stack: &ClusterStack) -> (String, String) {
    let conditions = stack.status.clone().unwrap_or_default().conditions;
    let found = conditions::find(&conditions, conditions::ConditionType::ClusterStackReleasesSynced);
    let text = |field: Option<&String>| field.cloned().unwrap_or_default();
    (
        text(found.and_then(|condition| condition.reason.as_ref())),
        text(found.and_then(|condition| condition.message.as_ref())),
    )
}

#[test]
fn of_two_stacks_that_claim_one_tag_from_two_sources_the_second_says_so_and_touches_nothing() -> Result<()> {
    journey(async |journey| {
        // Other bytes under the same tag, on a web server.
        let server = IndexServer::start().await?;
        let tag = journey.releases.publish_harbor("v2", "v1")?;
        server.publish(&journey.releases.folder_of(&tag))?;
        journey.releases.publish_harbor("v1", "v1")?;
        let cache = journey.folder().join("cache");
        journey.options.flags.extend(sources_of_this_machine(&cache));
        journey.operate().await?;
        journey.stack("first", json!({ "versions": ["v1"] })).await?;
        let release = journey.release_ready(&tag).await?;
        let objects = journey.inventory(&tag).await?;

        let spec = json!({ "versions": ["v1"], "drift": "Warn", "interval": "10s", "source": server.source() });
        journey.stack("second", spec).await?;
        let told = |stack: &ClusterStack| {
            let (reason, message) = releases_synced(stack);
            reason == "ReleaseOwnedByOtherStack" && message.contains("first")
        };
        journey.until_stack("second", "told whose the release is", told).await?;
        journey.ask_stack("second", "look").await?;
        journey.restart_operator().await?;
        let stack = journey.ask_stack("second", "look again").await?;
        assert!(told(&stack), "{:?}", releases_synced(&stack));
        let left = journey.ask_release(&tag, "look").await?;
        assert_eq!(
            (&left.metadata.uid, &left.spec, &left.metadata.owner_references),
            (&release.metadata.uid, &release.spec, &release.metadata.owner_references)
        );
        assert_eq!(status(&left).assets, status(&release).assets);
        assert_eq!(journey.inventory(&tag).await?, objects);

        // Once the first has let go, the second has its own bytes under the tag.
        journey.delete::<ClusterStack>("first").await?;
        let taken = |found: &ClusterStackRelease| {
            let assets = status(found).assets.unwrap_or_default();
            let other_bytes = Some(&assets.digest) != status(&release).assets.as_ref().map(|assets| &assets.digest);
            let owned = found.owner_references().iter().any(|owner| owner.name == "second");
            status(found).ready && owned && other_bytes && found.metadata.uid != release.metadata.uid
        };
        journey.until_release(&tag, "made for the other stack", taken).await?;
        Ok(())
    })
}

#[test]
fn an_object_that_was_there_before_is_shared_not_taken_and_outlives_the_release() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_stack(&with_map()?.path(), "v1")?;
        let theirs = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map" }, "data": { "also": "theirs" },
        });
        let theirs = journey.apply(theirs).await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let maps = journey.objects("v1", "ConfigMap");
        assert_eq!(
            maps.get("map").await?.data["data"],
            json!({ "also": "theirs", "from": "ours" })
        );
        let events = journey.api::<Event>();
        eventually(SOON, "an event that names the object and its maker", async || {
            let list = events.list(&ListParams::default()).await?;
            let mut notes = list.items.iter().filter_map(|event| event.note.as_deref());
            let told = notes.any(|note| note.contains("ConfigMap map was there before") && note.contains(USER));
            anyhow::ensure!(told, "{:#?}", list.items);
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        // Its own objects go, also after a restart and a correction.
        maps.patch(
            "map",
            &PatchParams::default(),
            &Patch::Merge(json!({ "data": { "from": "somebody" } })),
        )
        .await?;
        eventually(SOON, "the field to be back", async || {
            let data = maps.get("map").await?.data["data"].clone();
            anyhow::ensure!(data["from"] == "ours", "{data}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        journey.restart_operator().await?;
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        assert_eq!(journey.marked(&tag).await?, ["ConfigMap map"]);
        let left = maps.get("map").await?;
        assert_eq!(
            (left.metadata.uid, &left.data["data"]["also"]),
            (theirs.metadata.uid, &json!("theirs"))
        );
        Ok(())
    })
}
