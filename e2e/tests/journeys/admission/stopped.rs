//! The operator is down: whatever is not about taking or changing a class of ours passes.

use anyhow::{Result, ensure};
use crds::{ClusterStack, ClusterStackRelease};
use e2e::{Journey, eventually, journey::SOON};
use serde_json::{Value, json};

use super::asked::Answer;
use super::{CLASS, VERSION, addon, addons, classic, cluster, clusters, guarded, installed, releases, stacks};
use crate::journey;

/// A namespace in which there is one of everything, and no operator any more.
async fn left_alone(journey: &mut Journey) -> Result<()> {
    guarded(journey, &[]).await?;
    installed(journey).await?;
    let api = clusters(journey);
    for wanted in [
        cluster("ours", CLASS, VERSION),
        cluster("foreign", "quick-start", "v1.30.0"),
        classic("classic"),
    ] {
        let created = api.create(&wanted).await?;
        ensure!(created.accepted(), "{created:?}");
    }
    ensure!(
        addons(journey)
            .create(&addon("addon", &journey.namespace))
            .await?
            .accepted()
    );
    let topology = json!({ "spec": { "topology": { "class": "quick-start" } } });
    ensure!(!api.try_merge("ours", &topology).await?.accepted(), "it is guarded");
    journey.kill_operator().await
}

fn passes(what: &str, answer: &Answer) -> Result<()> {
    ensure!(answer.accepted(), "{what}: {answer:?}");
    Ok(())
}

fn topology(key: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    json!({ "spec": { "topology": { key: value } } })
}

#[test]
fn f28_without_the_operator_nobody_takes_or_changes_a_class_of_ours() -> Result<()> {
    journey(async |journey| {
        left_alone(journey).await?;
        let api = clusters(journey);
        let refused = [
            ("creation", api.create(&cluster("new", CLASS, VERSION)).await?),
            (
                "another class",
                api.merge("ours", &topology("class", "docker-harbor-1-35-v1")).await?,
            ),
            (
                "another version",
                api.merge("ours", &topology("version", "v1.34.1")).await?,
            ),
            (
                "the class of somebody else",
                api.merge("ours", &topology("class", "quick-start")).await?,
            ),
            (
                "from the class of somebody else",
                api.merge("foreign", &topology("class", CLASS)).await?,
            ),
        ];
        for (what, answer) in refused {
            let words = "failed calling webhook \"validation.cluster.cluster.x-k8s.io\"";
            ensure!(
                answer.code == 500 && answer.message.contains(words),
                "{what}: {answer:?}"
            );
        }
        Ok(())
    })
}

#[test]
fn f28_without_the_operator_the_clusters_of_others_are_written_as_ever() -> Result<()> {
    journey(async |journey| {
        left_alone(journey).await?;
        let api = clusters(journey);
        passes(
            "a foreign Cluster",
            &api.create(&cluster("new", "quick-start", "v1.30.0")).await?,
        )?;
        passes(
            "a Cluster named a bit like ours",
            &api.create(&cluster("like", "docker-harbor-1-34", "v1.30.0")).await?,
        )?;
        passes("a classic Cluster", &api.create(&classic("old")).await?)?;
        for (key, value) in [
            ("version", "v1.31.0"),
            ("class", "slow-start"),
            ("classNamespace", "default"),
        ] {
            passes(key, &api.merge("foreign", &topology(key, value)).await?)?;
        }
        passes(
            "a class for a classic one",
            &api.merge("classic", &topology_of("quick-start")).await?,
        )?;
        for name in ["foreign", "classic", "new"] {
            passes("deletion", &api.delete(name).await?)?;
        }
        Ok(())
    })
}

fn topology_of(class: &str) -> Value {
    json!({ "spec": { "topology": { "class": class, "version": "v1.30.0" } } })
}

/// What the controllers of Cluster API write, and what people change besides class and version.
#[test]
fn f28_without_the_operator_clusters_of_ours_live_and_go() -> Result<()> {
    journey(async |journey| {
        left_alone(journey).await?;
        let api = clusters(journey);
        let reference =
            |kind: &str| json!({ "apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "ours" });
        let writes = [
            (
                "finalizers",
                json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] } }),
            ),
            (
                "labels",
                json!({ "metadata": { "labels": { "topology.cluster.x-k8s.io/owned": "", "team": "a" } } }),
            ),
            (
                "annotations",
                json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } }),
            ),
            (
                "controlPlaneRef",
                json!({ "spec": { "controlPlaneRef": reference("KubeadmControlPlane") } }),
            ),
            (
                "infrastructureRef",
                json!({ "spec": { "infrastructureRef": reference("DockerCluster") } }),
            ),
            (
                "endpoint",
                json!({ "spec": { "controlPlaneEndpoint": { "host": "10.0.0.1", "port": 6443 } } }),
            ),
            ("replicas", topology("controlPlane", json!({ "replicas": 3 }))),
            (
                "variables",
                topology("variables", json!([{ "name": "a", "value": "b" }])),
            ),
            ("paused", json!({ "spec": { "paused": true } })),
        ];
        for (what, patch) in writes {
            passes(what, &api.merge("ours", &patch).await?)?;
        }
        let phase = json!({ "status": { "phase": "Provisioned", "infrastructureReady": true } });
        passes("status", &api.merge("ours/status", &phase).await?)?;
        passes("deletion", &api.delete("ours").await?)?;
        // Whoever gives a Cluster up may leave whatever behind.
        let last = json!({ "metadata": { "finalizers": null }, "spec": { "topology": { "version": "v1.34.1" } } });
        passes("the last finalizer", &api.merge("ours", &last).await?)?;
        let left = journey.objects(super::CLUSTER_API, "Cluster");
        eventually(SOON, "the Cluster to be gone", async || {
            match left.get_opt("ours").await? {
                None => Ok(()),
                Some(cluster) => Err(anyhow::anyhow!("{cluster:?}")),
            }
        })
        .await
    })
}

#[test]
fn f28_without_the_operator_our_own_kinds_are_edited_and_deleted() -> Result<()> {
    journey(async |journey| {
        left_alone(journey).await?;
        let (stacks, releases, addons) = (
            stacks(journey),
            releases(&journey.client, &journey.namespace),
            addons(journey),
        );
        let label = json!({ "metadata": { "labels": { "team": "a" } } });
        passes("label of a stack", &stacks.merge("harbor", &label).await?)?;
        passes(
            "versions of a stack",
            &stacks
                .merge("harbor", &json!({ "spec": { "versions": ["v1", "v2"] } }))
                .await?,
        )?;
        passes("label of a release", &releases.merge(CLASS, &label).await?)?;
        passes("label of an add-on", &addons.merge("addon", &label).await?)?;
        passes(
            "hook of an add-on",
            &addons.merge("addon", &json!({ "spec": { "hook": "x" } })).await?,
        )?;
        passes("deletion of an add-on", &addons.delete("addon").await?)?;
        // A Cluster uses both. Nobody is asked, and nothing is lost: the release waits with its finalizer until an operator has looked.
        passes("deletion of a release", &releases.delete(CLASS).await?)?;
        passes("deletion of a stack", &stacks.delete("harbor").await?)?;
        journey.gone::<ClusterStack>("harbor").await?;
        let release: ClusterStackRelease = journey.api().get(CLASS).await?;
        ensure!(release.metadata.deletion_timestamp.is_some());
        journey.operate().await?;
        let waits = |release: &ClusterStackRelease| {
            let status = e2e::journey::status(release);
            let mut conditions = status.conditions.iter();
            conditions.any(|condition| condition.reason.as_deref() == Some("InUse"))
        };
        journey.until_release(CLASS, "in use", waits).await?;
        let objects = journey.marked(CLASS).await?;
        ensure!(!objects.is_empty(), "nothing is left");
        // The new process has other webhooks; the Cluster is none of theirs.
        passes("deletion of the Cluster", &clusters(journey).delete("ours").await?)?;
        journey.gone::<ClusterStackRelease>(CLASS).await
    })
}
