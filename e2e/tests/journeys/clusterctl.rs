//! Stacks and clusters go to another management cluster by `clusterctl move`, with Cluster API's own manager in both.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use crds::{ClusterStack, ClusterStackRelease, ClusterStackReleaseStatus, labels, resource::Resource};
use e2e::{
    Journey,
    cluster_api::{Clusterctl, Manager},
    eventually,
    journey::{SOON, journey, status},
    oracle::fields_of,
};
use kube::{
    Resource as _, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::replay;

const CLUSTER_API: &str = "cluster.x-k8s.io/v1beta1";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta1";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The cluster in every journey here.
const CLUSTER: &str = "web";
const STACK: &str = "harbor";

/// Objects by kind and name.
type Objects = BTreeMap<String, DynamicObject>;

/// Both versions of our stack are usable, and a cluster of the first one is ready.
async fn inhabit(journey: &mut Journey) -> Result<[String; 2]> {
    let tags = [
        journey.releases.publish_harbor("v1", "v1")?,
        journey.releases.publish_harbor("v2", "v2")?,
    ];
    journey.operate().await?;
    journey.stack(STACK, json!({ "versions": ["v1", "v2"] })).await?;
    journey.usable(STACK, "v1, v2").await?;
    let cluster = json!({
        "apiVersion": CLUSTER_API, "kind": "Cluster", "metadata": { "name": CLUSTER },
        "spec": { "topology": { "class": tags[0], "version": "v1.34.0", "controlPlane": { "replicas": 1 } } },
    });
    journey.apply(cluster).await?;
    cluster_ready(journey).await?;
    for tag in &tags {
        owned_by_their_class(journey, tag).await?;
    }
    Ok(tags)
}

/// Plays the providers, of which none is here, and waits until Cluster API finds the cluster ready.
async fn cluster_ready(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    let nothing = |what: &str| anyhow::anyhow!("no {what}");
    eventually(SOON, "the cluster to be ready", async || {
        let cluster = clusters.get(CLUSTER).await?;
        let name = |part: &str| {
            let name = cluster.data.pointer(&format!("/spec/{part}/name"));
            name.and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| nothing(part))
        };
        let endpoint = json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } } });
        let infrastructure = journey.objects(INFRASTRUCTURE, "DockerCluster");
        let merge = PatchParams::default();
        let named = name("infrastructureRef")?;
        infrastructure.patch(&named, &merge, &Patch::Merge(endpoint)).await?;
        let ready = json!({ "status": { "ready": true } });
        infrastructure
            .patch_status(&named, &merge, &Patch::Merge(ready))
            .await?;
        let ready = json!({ "status": {
            "ready": true, "initialized": true, "version": "v1.34.0",
            "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "unavailableReplicas": 0,
        } });
        let control_planes = journey.objects(CONTROL_PLANE, "KubeadmControlPlane");
        let named = name("controlPlaneRef")?;
        control_planes
            .patch_status(&named, &merge, &Patch::Merge(ready))
            .await?;
        let is = |what: &str| cluster.data.pointer(&format!("/status/{what}")) == Some(&json!(true));
        ensure!(
            is("infrastructureReady") && is("controlPlaneReady"),
            "{:#}",
            cluster.data["status"]
        );
        Ok(())
    })
    .await
}

/// Waits until Cluster API has made a class the owner of its templates.
async fn owned_by_their_class(journey: &Journey, tag: &str) -> Result<()> {
    eventually(SOON, format!("the class {tag} to own its templates"), async || {
        for (name, object) in journey.inventory(tag).await? {
            let object = object.with_context(|| format!("{name} is not there"))?;
            let owned = object
                .owner_references()
                .iter()
                .any(|owner| owner.kind == "ClusterClass");
            ensure!(owned || name.starts_with("ClusterClass "), "{name} has no owner");
        }
        Ok(())
    })
    .await
}

/// The objects with these kinds and names, which have to be there.
async fn made(journey: &Journey, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Objects> {
    let mut made = Objects::new();
    for name in names {
        let name = name.as_ref();
        let (kind, name) = name.split_once(' ').context("kind and name")?;
        let group = match kind {
            "ClusterStack" | "ClusterStackRelease" => "clusterstack.x-k8s.io/v1alpha1",
            "ClusterClass" => CLUSTER_API,
            "KubeadmControlPlaneTemplate" => CONTROL_PLANE,
            "KubeadmConfigTemplate" => "bootstrap.cluster.x-k8s.io/v1beta1",
            _ => INFRASTRUCTURE,
        };
        let object = journey.objects(group, kind).get(name).await;
        let object = object.with_context(|| format!("{kind} {name} was not moved"))?;
        made.insert(format!("{kind} {name}"), object);
    }
    Ok(made)
}

/// Everything of the stack: it, its releases, their objects.
async fn of_the_stack(journey: &Journey, tags: &[String]) -> Result<Objects> {
    let mut names = vec![format!("ClusterStack {STACK}")];
    for tag in tags {
        names.push(format!("ClusterStackRelease {tag}"));
        names.extend(journey.inventory(tag).await?.into_keys());
    }
    made(journey, names).await
}

/// The inventory of a release.
async fn inventory(journey: &Journey, tag: &str) -> Result<Vec<Resource>> {
    let release = journey.api::<ClusterStackRelease>().get(tag).await?;
    Ok(status(&release).resources)
}

/// Waits until everything of the stack and the cluster is ready.
async fn all_ready(journey: &Journey, tags: &[String]) -> Result<()> {
    journey.usable(STACK, "v1, v2").await?;
    for tag in tags {
        journey.release_ready(tag).await?;
    }
    cluster_ready(journey).await
}

/// Refuses an object in which clusterctl owns what we apply: a field that is dropped later would stay.
fn is_ours(name: &str, object: &DynamicObject) -> Result<()> {
    let ours = fields_of(object, labels::FIELD_MANAGER)?;
    ensure!(ours.get("f:spec").is_some(), "{name}: we own {ours:#}");
    let entries = object.managed_fields().iter();
    let movers = entries.filter(|entry| entry.manager.as_deref() == Some(labels::MOVER_FIELD_MANAGER));
    for entry in movers.filter(|entry| entry.subresource.is_none()) {
        let theirs = serde_json::to_value(&entry.fields_v1)?;
        ensure!(!overlap(&ours, &theirs), "{name}: {theirs:#} beside {ours:#}");
    }
    Ok(())
}

/// Whether a field is in both sets.
fn overlap(ours: &Value, theirs: &Value) -> bool {
    let fields = ours.as_object().into_iter().flatten();
    let leaf = |below: &Value| below == &json!({});
    fields
        .filter_map(|(name, below)| Some((below, theirs.get(name)?)))
        .any(|(below, theirs)| leaf(below) || overlap(below, theirs))
}

/// What a provider keeps with a release: an object that only its owner tells of.
async fn owned_by_a_release(journey: &Journey, tag: &str) -> Result<()> {
    let release = journey.api::<ClusterStackRelease>().get(tag).await?;
    let owner = release.owner_ref(&()).context("it has no uid")?;
    let progress = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "progress", "ownerReferences": [owner] }, "data": { "image": "uploaded" },
    });
    journey.apply(progress).await.map(drop)
}

/// The stack and the cluster are ready. Everything of the stack is as it was elsewhere, is the very object that was `moved`, and is ours.
async fn have_arrived(journey: &Journey, tags: &[String], left: &Objects, moved: &Objects) -> Result<()> {
    all_ready(journey, tags).await?;
    for (name, now) in made(journey, left.keys()).await? {
        assert_eq!(now.uid(), moved[&name].uid(), "{name} was made anew");
        assert_eq!(now.data["spec"], left[&name].data["spec"], "{name} is otherwise");
        assert_eq!(
            now.metadata.generation, moved[&name].metadata.generation,
            "{name} was changed"
        );
        if !name.starts_with("ClusterStack") {
            is_ours(&name, &now)?;
        }
    }
    Ok(())
}

/// The stack goes with everything that is its own, once no cluster uses it.
async fn goes_without_a_trace(journey: &Journey, tags: &[String]) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    clusters.delete(CLUSTER, &DeleteParams::default()).await?;
    journey.delete::<ClusterStack>(STACK).await?;
    for tag in tags {
        journey.gone::<ClusterStackRelease>(tag).await?;
        assert_eq!(journey.marked(tag).await?, Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn what_clusterctl_moves_is_found_again_and_nothing_is_made_anew() -> Result<()> {
    journey(async |here| {
        here.elsewhere(async |from| {
            let _manager = Manager::without_webhooks(from).await?;
            let tags = inhabit(from).await?;
            owned_by_a_release(from, &tags[0]).await?;
            let left = of_the_stack(from, &tags).await?;
            let mut before = Vec::new();
            for tag in &tags {
                before.push(inventory(from, tag).await?);
            }
            let clusterctl = Clusterctl::of(from)?;
            clusterctl.save(from)?;
            from.elsewhere(async |to| {
                let _manager = Manager::without_webhooks(to).await?;
                clusterctl.restore(to)?;
                let moved = made(to, left.keys()).await?;
                let release = to.api::<ClusterStackRelease>().get(&tags[0]).await?;
                assert_eq!(
                    status(&release),
                    ClusterStackReleaseStatus::default(),
                    "status came along"
                );
                let progress = to.objects("v1", "ConfigMap").get("progress").await?;
                assert_eq!(progress.owner_references()[0].uid, release.uid().unwrap_or_default());
                let arrived = to.mark().await?;
                to.operate().await?;
                have_arrived(to, &tags, &left, &moved).await?;
                for (tag, before) in tags.iter().zip(&before) {
                    assert_eq!(&inventory(to, tag).await?, before);
                }
                let requests = to.requests_since(arrived).await?;
                let made_or_deleted = requests.filter(|event| {
                    let object = event.object.as_ref();
                    object.is_some_and(|object| object.api_group.ends_with("x-k8s.io"))
                        && matches!(event.verb.as_str(), "create" | "delete")
                });
                ensure!(made_or_deleted.is_empty(), "{made_or_deleted:#?}");
                goes_without_a_trace(to, &tags).await?;
                replay::every_decision_again(&to.decisions())
            })
            .await?;
            // Files are a copy: who made them works on.
            all_ready(from, &tags).await?;
            replay::every_decision_again(&from.decisions())
        })
        .await
    })
}

#[test]
fn a_move_without_files_leaves_nothing_behind_although_operators_work_on_both_sides() -> Result<()> {
    journey(async |here| {
        here.elsewhere(async |from| {
            let _manager = Manager::without_webhooks(from).await?;
            let tags = inhabit(from).await?;
            let left = of_the_stack(from, &tags).await?;
            let clusterctl = Clusterctl::of(from)?;
            from.elsewhere(async |to| {
                let _manager = Manager::without_webhooks(to).await?;
                to.operate().await?;
                clusterctl.transfer(from, to)?;
                all_ready(to, &tags).await?;
                let moved = made(to, left.keys()).await?;
                have_arrived(to, &tags, &left, &moved).await?;
                for tag in &tags {
                    from.gone::<ClusterStackRelease>(tag).await?;
                    eventually(SOON, format!("nothing of {tag} to be left"), async || {
                        let left = from.marked(tag).await?;
                        ensure!(left.is_empty(), "{left:?}");
                        Ok(())
                    })
                    .await?;
                }
                goes_without_a_trace(to, &tags).await?;
                replay::every_decision_again(&to.decisions())
            })
            .await?;
            replay::every_decision_again(&from.decisions())
        })
        .await
    })
}
