//! Objects of other people, also odd ones, in the same management cluster.

use anyhow::Result;
use crds::{ClusterStack, ClusterStackRelease, conditions};
use e2e::{Journey, journey::status};
use kube::api::{Patch, PatchParams};
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
fn f21_no_patch_of_our_own_objects_ends_the_process() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
        let patches: [Value; 8] = [
            json!({ "spec": { "noProvider": false, "providerRef": { "kind": "Nothing" } } }),
            json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "a/b/c", "kind": "XTemplate", "name": "x" } } }),
            json!({ "spec": { "noProvider": false, "providerRef": { "apiVersion": "v1", "kind": "Secret", "name": "" } } }),
            json!({ "spec": { "noProvider": true, "providerRef": null } }),
            json!({ "spec": { "source": { "directory": { "path": "nowhere" } } } }),
            json!({ "spec": { "source": null } }),
            json!({ "spec": { "versions": ["v1", "v999999999999999999999999999999"] } }),
            json!({ "spec": { "versions": ["v1"] } }),
        ];
        for patch in &patches {
            // Refused by the API server or not: the process has to live.
            let _ = journey
                .api::<ClusterStack>()
                .patch("harbor", &PatchParams::default(), &Patch::Merge(patch))
                .await;
        }
        let release_patches = [
            json!({ "spec": { "providerRef": { "kind": "Nothing" } } }),
            json!({ "spec": { "providerRef": null, "policy": null, "source": { "directory": { "path": "nowhere" } } } }),
            json!({ "metadata": { "annotations": { crds::labels::CONTAINS_GROUP_KINDS: ",,.,Secret,a.b.c," } } }),
            json!({ "metadata": { "finalizers": ["example.com/somebody"] } }),
            json!({ "metadata": { "finalizers": null } }),
        ];
        for patch in &release_patches {
            let _ = journey
                .api::<ClusterStackRelease>()
                .patch(&tag, &PatchParams::default(), &Patch::Merge(patch))
                .await;
        }
        let odd = json!({ "status": {
            "ready": true, "usableVersions": "nonsense", "resources": [{ "kind": "", "name": "" }, { "group": "a", "kind": "B" }],
        } });
        let _ = journey
            .api::<ClusterStackRelease>()
            .patch_status(&tag, &PatchParams::default(), &Patch::Merge(&odd))
            .await;
        works(journey).await?;
        let release = journey.release_ready(&tag).await?;
        assert!(
            release.spec.policy.is_some(),
            "the stack's word came back: {release:#?}"
        );
        Ok(())
    })
}

#[test]
fn f21_a_stack_that_gets_and_loses_its_provider_says_so_on_its_releases() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&tag).await?;
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
