//! What a Cluster goes through without another version of Kubernetes, act after act, on the oldest Cluster API and with a class of another namespace
//! (A9, A10, A12, A16).

use anyhow::{Result, ensure};
use crds::ClusterStackRelease;
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    hooks::Hook,
    journey::{SOON, status},
    shim::cluster,
};
use kube::Api;
use serde_json::json;

use crate::{
    changed::is_put_right,
    faulty::is_mended,
    ground::{CLUSTER, Scope, answers, course_of},
    upgraded::{waits_and_does_the_rest, without_its_service},
};

const KUBERNETES: &str = "v1.35.0";

/// All versions of the stack in a namespace without Clusters; the answer is their classes, once they can be used.
async fn classes(journey: &Journey, namespace: &str) -> Result<[String; 4]> {
    let releases = &journey.releases;
    let tags = [
        releases.publish_quay("v2", "v2")?,
        releases.publish_quay("v3", "v3")?,
        releases.publish_quay("v2", "v4")?,
        releases.publish_stack(&without_its_service()?.path(), "v5")?,
    ];
    let stack = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
        "metadata": { "name": "quay", "namespace": namespace },
        "spec": {
            "provider": "shim", "name": "quay", "kubernetesVersion": "1.35", "versions": ["v2", "v3", "v4", "v5"],
            "autoSubscribe": false, "noProvider": true,
        },
    });
    journey.apply(stack).await?;
    let api = Api::<ClusterStackRelease>::namespaced(journey.client.clone(), namespace);
    eventually(SOON, "all classes to be usable", async || {
        for tag in &tags {
            let told = status(&api.get(tag).await?);
            ensure!(told.ready, "{tag}: {told:#?}");
        }
        Ok(())
    })
    .await?;
    Ok(tags)
}

/// A16 with the hooks called, and in it A12, A10 and A9.
#[test]
fn a9_a10_a12_a16_a_cluster_with_a_class_of_another_namespace_is_put_right_mended_and_upgraded_on_1_10() -> Result<()> {
    course_of(Scope::All, Release::V1_10, async |journey, ground| {
        let elsewhere = journey.another_namespace().await?;
        let [first, faulty, next, last] = classes(journey, &elsewhere).await?;
        let mut web = cluster(CLUSTER, &first, KUBERNETES, 1);
        web["spec"]["topology"]["classNamespace"] = elsewhere.as_str().into();
        journey.apply(web).await?;
        ground.complete(journey, &first, "v2").await?;
        let asked = answers(journey, Hook::BeforeClusterCreate, "go-on").await?;
        ensure!(asked > 0.0, "Cluster API has not asked");

        is_put_right(journey, ground, (&first, "v2")).await?;
        is_mended(journey, ground, &faulty, (&next, "v4")).await?;
        waits_and_does_the_rest(journey, ground, &last).await
    })
}
