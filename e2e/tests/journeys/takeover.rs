//! The Go operator goes, and ours takes its place: what that one left behind stays as it is and becomes ours.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, labels};
use e2e::{
    AuditEvent, Journey, eventually,
    journey::{SOON, status},
    oracle::fields_of,
    predecessor::{APPLIER, MANAGER, applied_by_the_predecessor, left_by_the_predecessor, manager, owners},
    releases::corpus,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{journey, oracle};

const CLASS: &str = "cluster.x-k8s.io/v1beta1";

/// An object of a file, in the journey's namespace, with the fields' owners as they were.
async fn load(journey: &Journey, object: &Value) -> Result<DynamicObject> {
    let mut fresh = object.clone();
    let recorded = fresh["metadata"]["managedFields"].take();
    for added_by_the_server in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
    ] {
        fresh["metadata"]
            .as_object_mut()
            .context("no metadata")?
            .remove(added_by_the_server);
    }
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let api = journey.objects(text("/apiVersion"), text("/kind"));
    let name = text("/metadata/name");
    let created = api
        .create(&PostParams::default(), &serde_json::from_value(fresh)?)
        .await;
    created.with_context(|| format!("failed to load {} {name}", text("/kind")))?;
    if object.get("status").is_some_and(|status| status != &json!({})) {
        let status = json!({ "status": object["status"] });
        api.patch_status(name, &manager(MANAGER), &Patch::Merge(status)).await?;
    }
    let owners = json!({ "metadata": { "managedFields": recorded } });
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(owners)).await?)
}

/// Loads the recorded installation; the answer holds what was applied, by kind and name.
async fn load_recorded(journey: &Journey, folder: &Path) -> Result<BTreeMap<String, DynamicObject>> {
    let read = |file: &str| -> Result<String> {
        Ok(fs::read_to_string(folder.join(file))?.replace("fleet", &journey.namespace))
    };
    let items = |text: &str| -> Result<Vec<Value>> {
        let list: Value = serde_yaml::from_str(text)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    };
    let mut releases = read("clusterstackreleases.yaml")?;
    for stack in items(&read("clusterstacks.yaml")?)? {
        let created = load(journey, &stack).await?;
        let uid = stack["metadata"]["uid"].as_str().context("no uid")?;
        releases = releases.replace(uid, &created.uid().context("no uid")?);
    }
    for other in items(&releases)?.into_iter().chain(items(&read("clusters.yaml")?)?) {
        load(journey, &other).await?;
    }
    let mut applied = BTreeMap::new();
    for file in [
        "clusterclasses.yaml",
        "dockerclustertemplates.yaml",
        "dockermachinetemplates.yaml",
        "images.openstack.k-orc.cloud.yaml",
        "kubeadmconfigtemplates.yaml",
        "kubeadmcontrolplanetemplates.yaml",
        "openstackclustertemplates.yaml",
        "openstackmachinetemplates.yaml",
    ] {
        for object in items(&read(file)?)? {
            let loaded = load(journey, &object).await?;
            let kind = object["kind"].as_str().unwrap_or_default();
            applied.insert(format!("{kind} {}", loaded.name_any()), loaded);
        }
    }
    Ok(applied)
}

/// An object is the one it was, nothing in it is another, and who owned its fields by apply are we.
fn is_taken_over(name: &str, before: &DynamicObject, now: &DynamicObject) -> Result<()> {
    ensure!(now.uid() == before.uid(), "{name} is another object");
    ensure!(
        now.data == before.data,
        "{name} is otherwise: {:#} {:#}",
        before.data,
        now.data
    );
    ensure!(
        now.metadata.generation == before.metadata.generation,
        "{name} was changed"
    );
    ensure!(
        owners(now) == [(labels::FIELD_MANAGER, "Apply")],
        "{name} is owned by {:?}",
        owners(now)
    );
    let (had, has) = (fields_of(before, APPLIER)?, fields_of(now, labels::FIELD_MANAGER)?);
    ensure!(had == has, "{name}: {had:#} {has:#}");
    Ok(())
}

#[test]
fn a_recorded_installation_of_the_go_operator_becomes_ours_and_no_field_changes() -> Result<()> {
    let Some(corpus) = corpus() else { return Ok(()) };
    journey(async |journey| {
        let mut tags = vec!["docker-scs-1-30-v1", "docker-scs-1-30-v0-sha-d2lgujm"];
        tags.extend([
            "openstack-scs-1-32-v1",
            "openstack-scs-1-32-v3",
            "openstack-scs-1-32-v4",
        ]);
        for tag in &tags {
            journey.releases.publish(&corpus.join("releases").join(tag))?;
        }
        let mut left_behind = load_recorded(journey, &corpus.join("takeover")).await?;
        let releases = journey
            .api::<ClusterStackRelease>()
            .list(&kube::api::ListParams::default())
            .await?;
        assert_eq!(releases.items.len(), tags.len());
        journey.operate().await?;
        for (stack, usable) in [
            ("docker", "v1"),
            ("docker-custom", "v0-sha.d2lgujm"),
            ("openstack", "v1, v3, v4"),
        ] {
            let current = |stack: &ClusterStack| {
                stack
                    .status
                    .as_ref()
                    .is_some_and(|status| status.observed_generation == stack.metadata.generation)
            };
            journey.until_stack(stack, "looked at", current).await?;
            journey.usable(stack, usable).await?;
        }
        for before in &releases {
            let tag = before.name_any();
            let ours = |release: &ClusterStackRelease| {
                let rows = status(release).resources;
                status(release).ready && !rows.is_empty() && rows.iter().all(|row| !row.digest.is_empty())
            };
            let release = journey.until_release(&tag, "taken over", ours).await?;
            assert_eq!(release.uid(), before.uid());
            let managers: Vec<_> = release
                .managed_fields()
                .iter()
                .filter_map(|entry| entry.manager.clone())
                .collect();
            let status_managers = release
                .managed_fields()
                .iter()
                .filter(|entry| entry.subresource.is_some());
            let status_managers: Vec<_> = status_managers.filter_map(|entry| entry.manager.as_deref()).collect();
            assert_eq!(status_managers, [labels::STATUS_FIELD_MANAGER], "{managers:?}");
            for (name, now) in journey.inventory(&tag).await? {
                let now = now.with_context(|| format!("{name} is gone"))?;
                // Two releases share an image: the second look finds it compared.
                if let Some(before) = left_behind.remove(&name) {
                    is_taken_over(&name, &before, &now)?;
                }
            }
        }
        // What the Go operator forgot when it deleted a release is nobody's: it is told, and stays as it was.
        let leaked = "openstack-scs-1-32-v2";
        let told = |stack: &ClusterStack| orphans(stack).get(leaked).is_some_and(Option::is_some);
        let stack = journey.until_stack("openstack", "tells of what is left", told).await?;
        let listed = stack.status.and_then(|status| status.orphans).context("no orphans")?;
        assert_eq!(
            (listed.count, listed.classes[0].objects.len()),
            (1, left_behind.len() - 1)
        );
        assert_eq!(left_behind.len(), 6, "{:?}", left_behind.keys());
        for (name, before) in left_behind {
            let kind = name.split(' ').next().unwrap_or_default();
            let api_version = before
                .types
                .as_ref()
                .map(|types| types.api_version.as_str())
                .unwrap_or_default();
            let now = journey.objects(api_version, kind).get(&before.name_any()).await?;
            assert_eq!(now.resource_version(), before.resource_version(), "{name}");
        }
        // And now they go with their release, which they did not before.
        journey.delete::<ClusterStack>("docker").await?;
        journey.gone::<ClusterStackRelease>("docker-scs-1-30-v1").await?;
        assert_eq!(journey.marked("docker-scs-1-30-v1").await?, Vec::<String>::new());
        assert!(
            journey
                .objects(CLASS, "ClusterClass")
                .get_opt("docker-scs-1-30-v1")
                .await?
                .is_none()
        );
        Ok(())
    })
}

fn classes(journey: &Journey) -> Api<DynamicObject> {
    journey.objects(CLASS, "ClusterClass")
}

#[test]
fn what_the_predecessor_owned_and_the_release_lacks_goes_and_what_others_own_stays() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        left_by_the_predecessor(journey, &tag).await?;
        let foreign = json!({ "metadata": { "labels": { "example.com/team": "infrastructure" } } });
        classes(journey)
            .patch(&tag, &manager("somebody"), &Patch::Merge(foreign))
            .await?;
        let before = classes(journey).get(&tag).await?;
        let config = journey.objects("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate");
        let config = config.get(&format!("{tag}-worker")).await?;
        assert_eq!(config.data.pointer("/spec/template/spec/verbosity"), Some(&json!(5)));
        journey.operate().await?;
        let ours = |release: &ClusterStackRelease| {
            status(release).ready && status(release).resources.iter().all(|row| !row.digest.is_empty())
        };
        journey.until_release(&tag, "taken over", ours).await?;
        oracle::agrees_but_for(journey, &tag, &["example.com/team"]).await?;
        let class = classes(journey).get(&tag).await?;
        assert_eq!((class.uid(), &class.data), (before.uid(), &before.data));
        for (name, now) in journey.inventory(&tag).await? {
            let now = now.with_context(|| format!("{name} is gone"))?;
            assert!(
                !now.annotations().contains_key("example.com/dropped"),
                "{name}: {now:#?}"
            );
            let verbosity = now.data.pointer("/spec/template/spec/verbosity");
            assert_eq!(verbosity, None, "{name}");
        }
        assert_eq!(
            owners(&class),
            [(labels::FIELD_MANAGER, "Apply"), ("somebody", "Update")]
        );
        assert_eq!(
            class.labels().get("example.com/team").map(String::as_str),
            Some("infrastructure")
        );
        Ok(())
    })
}

#[test]
fn owners_are_renamed_once_and_a_second_start_writes_nothing_but_what_it_is_asked_for() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        left_by_the_predecessor(journey, &tag).await?;
        let begun = journey.mark().await?;
        journey.operate().await?;
        let ours = |release: &ClusterStackRelease| {
            status(release).ready && status(release).resources.iter().all(|row| !row.digest.is_empty())
        };
        journey.until_release(&tag, "taken over", ours).await?;
        journey.ask_release(&tag, "first").await?;
        journey.ask_stack("harbor", "first").await?;
        let taken_over = journey.inventory(&tag).await?;
        let is_rename = |event: &AuditEvent| {
            let body = event.body.as_deref().unwrap_or_default();
            // Who takes over another object at the same time finds it done, and is refused.
            event.is_write() && event.code == 200 && body.contains(r#""path":"/metadata/managedFields""#)
        };
        let renamed = journey.requests_since(begun).await?.filter(is_rename);
        let mut names: Vec<_> = renamed.iter().filter_map(|event| event.object.clone()).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        ensure!(
            all >= taken_over.len() && names.len() == all,
            "not once each: {renamed:#?}"
        );

        let again = journey.mark().await?;
        journey.restart_operator().await?;
        journey.ask_release(&tag, "second").await?;
        journey.ask_stack("harbor", "second").await?;
        let writes = journey.requests_since(again).await?.writes();
        let answers = |event: &AuditEvent| {
            let object = event.object.as_ref();
            object.is_some_and(|object| object.subresource == "status")
        };
        ensure!(writes.len() == 2 && writes.iter().all(answers), "{writes:#?}");
        for (name, now) in journey.inventory(&tag).await? {
            let (now, before) = (now.with_context(|| format!("{name} is gone"))?, &taken_over[&name]);
            let before = before.as_ref().with_context(|| format!("{name} was gone"))?;
            ensure!(
                now.resource_version() == before.resource_version(),
                "{name} was written again"
            );
            ensure!(
                owners(&now) == [(labels::FIELD_MANAGER, "Apply")],
                "{name}: {:?}",
                owners(&now)
            );
        }
        Ok(())
    })
}

#[test]
fn after_the_takeover_kubectl_is_a_manager_like_any_other() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        left_by_the_predecessor(journey, &tag).await?;
        journey.operate().await?;
        let ours = |release: &ClusterStackRelease| {
            status(release).ready && status(release).resources.iter().all(|row| !row.digest.is_empty())
        };
        journey.until_release(&tag, "taken over", ours).await?;
        let worker = format!("{tag}-worker");
        let templates = journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate");
        let applied = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerMachineTemplate",
            "metadata": { "name": worker, "annotations": { "example.com/note": "by hand" } },
            "spec": { "template": { "spec": { "customImage": "registry.example.com/by:hand" } } },
        });
        templates
            .patch(&worker, &PatchParams::apply(APPLIER).force(), &Patch::Apply(applied))
            .await?;
        eventually(SOON, "our field to be back and the other to be kubectl's", async || {
            let now = templates.get(&worker).await?;
            let image = now
                .data
                .pointer("/spec/template/spec/customImage")
                .and_then(Value::as_str);
            ensure!(image != Some("registry.example.com/by:hand"), "{image:?}");
            ensure!(
                now.annotations().contains_key("example.com/note"),
                "the annotation is gone"
            );
            ensure!(owners(&now).contains(&(APPLIER, "Apply")), "{:?}", owners(&now));
            Ok::<_, anyhow::Error>(())
        })
        .await
    })
}

#[test]
fn latest_release_that_is_no_more_goes_from_the_status() -> Result<()> {
    journey(async |journey| {
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let stacks = journey.objects("clusterstack.x-k8s.io/v1alpha1", "ClusterStack");
        let left = json!({ "status": {
            "latestRelease": "docker-harbor-1-34-v9 | v1.34.0", "usableVersions": "v9",
            "summary": [{ "name": "v9", "ready": true, "phase": "done" }],
        } });
        stacks
            .patch_status("harbor", &manager(MANAGER), &Patch::Merge(left))
            .await?;
        journey.operate().await?;
        let current = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status.is_some_and(|status| status.observed_generation == stack.metadata.generation)
        };
        journey.until_stack("harbor", "looked at", current).await?;
        // As it is stored, not as our types read it.
        let stored = stacks.get("harbor").await?;
        let status = &stored.data["status"];
        assert_eq!(
            (status.get("latestRelease"), status.get("usableVersions")),
            (None, None),
            "{status:#}"
        );
        Ok(())
    })
}

/// Marks an object as one that is never deleted, or takes the mark away.
async fn keep(journey: &Journey, object: &DynamicObject, kept: bool) -> Result<()> {
    let types = object.types.clone().context("no kind")?;
    let policy = kept.then_some(labels::RESOURCE_POLICY_KEEP);
    let mark = json!({ "metadata": { "annotations": { labels::RESOURCE_POLICY: policy } } });
    let api = journey.objects(&types.api_version, &types.kind);
    api.patch(&object.name_any(), &manager("somebody"), &Patch::Merge(mark))
        .await?;
    Ok(())
}

/// The digests of the orphans that a stack tells of, with the names of their classes.
fn orphans(stack: &ClusterStack) -> BTreeMap<String, Option<String>> {
    let orphans = stack.status.iter().filter_map(|status| status.orphans.as_ref());
    let classes = orphans.flat_map(|orphans| &orphans.classes);
    classes
        .map(|class| (class.name.clone(), class.digest.clone()))
        .collect()
}

#[test]
fn what_the_predecessor_leaked_is_told_and_goes_only_when_somebody_allows_it() -> Result<()> {
    journey(async |journey| {
        journey.releases.publish_harbor("v1", "v1")?;
        let leaked = journey.releases.publish_harbor("v2", "v2")?;
        let (left, _) = applied_by_the_predecessor(journey, &leaked).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
            "metadata": { "name": "web" }, "spec": { "topology": { "class": leaked, "version": "v1.34.0" } },
        });
        journey.apply(cluster).await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.usable("harbor", "v1").await?;
        let used = |stack: &ClusterStack| orphans(stack) == BTreeMap::from([(leaked.clone(), None)]);
        journey
            .until_stack("harbor", "tells of what is left and used", used)
            .await?;
        let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters.delete("web", &kube::api::DeleteParams::default()).await?;
        let free = |stack: &ClusterStack| orphans(stack).get(&leaked).is_some_and(Option::is_some);
        let stack = journey
            .until_stack("harbor", "tells of what is left and free", free)
            .await?;
        for (name, before) in &left {
            let types = before.types.clone().context("no kind")?;
            let now = journey
                .objects(&types.api_version, &types.kind)
                .get(&before.name_any())
                .await?;
            assert_eq!(now.resource_version(), before.resource_version(), "{name} was touched");
        }
        let marked = left
            .values()
            .find(|object| object.name_any().ends_with("-worker"))
            .context("no template")?;
        keep(journey, marked, true).await?;
        let digest = orphans(&stack).remove(&leaked).flatten().context("no digest")?;
        journey
            .annotate::<ClusterStack>("harbor", labels::APPROVE_ORPHANS, Some(&digest))
            .await?;
        let kept = |stack: &ClusterStack| {
            let told = stack.status.iter().filter_map(|status| status.orphans.as_ref());
            let mut classes = told.flat_map(|orphans| &orphans.classes);
            classes.any(|class| {
                class
                    .message
                    .as_deref()
                    .is_some_and(|text| text.contains("is to be kept"))
            })
        };
        journey.until_stack("harbor", "tells why nothing goes", kept).await?;
        for (name, before) in &left {
            let types = before.types.clone().context("no kind")?;
            let api = journey.objects(&types.api_version, &types.kind);
            let now = api.get(&before.name_any()).await?;
            assert!(now.metadata.deletion_timestamp.is_none(), "{name} goes");
        }
        keep(journey, marked, false).await?;
        for (name, before) in &left {
            let types = before.types.clone().context("no kind")?;
            let api = journey.objects(&types.api_version, &types.kind);
            eventually(SOON, format!("{name} to be gone"), async || {
                let found = api.get_opt(&before.name_any()).await?;
                ensure!(found.is_none(), "{found:?}");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        journey
            .until_stack("harbor", "tells of nothing", |stack| orphans(stack).is_empty())
            .await?;
        journey.release_ready("docker-harbor-1-34-v1").await?;
        Ok(())
    })
}

#[test]
fn leaked_objects_are_part_of_their_release_again_when_the_version_comes_back() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        let (left, _) = applied_by_the_predecessor(journey, &tag).await?;
        journey.releases.publish_harbor("v1", "v2")?;
        journey.operate().await?;
        // With another release at work its objects are watched before it comes back, so that it may apply at once.
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        journey.usable("harbor", "v2").await?;
        let told = |stack: &ClusterStack| orphans(stack).contains_key(&tag);
        journey.until_stack("harbor", "tells of what is left", told).await?;
        journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
        journey.release_ready(&tag).await?;
        journey
            .until_stack("harbor", "tells of nothing", |stack| orphans(stack).is_empty())
            .await?;
        for (name, now) in journey.inventory(&tag).await? {
            let now = now.with_context(|| format!("{name} is gone"))?;
            assert_eq!(now.uid(), left.get(&name).context("another object")?.uid(), "{name}");
            assert_eq!(owners(&now), [(labels::FIELD_MANAGER, "Apply")], "{name}");
        }
        oracle::agrees(journey, &tag).await
    })
}
