//! Scenario A5: every rule of the contract, with its exact message.

use anyhow::{Result, ensure};
use crds::ClusterStackRelease;
use e2e::journey::{SOON, status};
use e2e::{Journey, eventually};
use kube::api::DeleteParams;
use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};

use super::asked::Answer;
use super::{CLASS, VERSION, addon, addons, classic, cluster, clusters, guarded, installed, releases, stacks};
use crate::journey;

const OF_CLUSTERS: &str = "validation.cluster.cluster.x-k8s.io";
const OF_STACKS: &str = "validation.clusterstack.clusterstack.x-k8s.io";
const OF_RELEASES: &str = "validation.clusterstackrelease.clusterstack.x-k8s.io";
/// A finalizer of this test.
const HELD: &str = "e2e.stackwright.dev/held";
const OF_ADDONS: &str = "validation.clusteraddon.clusterstack.x-k8s.io";

fn denied(webhook: &str, code: u16, message: &str) -> Answer {
    Answer {
        code,
        message: format!("admission webhook {webhook:?} denied the request: {message}"),
        warnings: Vec::new(),
    }
}

fn passed(code: u16, warnings: &[String]) -> Answer {
    Answer {
        code,
        message: String::new(),
        warnings: warnings.to_vec(),
    }
}

fn with_warning(mut answer: Answer, warning: String) -> Answer {
    answer.warnings.push(warning);
    answer
}

fn missing(tag: &str) -> String {
    format!(
        "cannot validate clusterClass and Kubernetes version. Getting clusterStackRelease object failed: clusterclass does not exist: \
         clusterstackreleases.clusterstack.x-k8s.io \"{tag}\" not found"
    )
}

fn same(what: &str, answer: &Answer, expected: &Answer) -> Result<()> {
    ensure!(answer == expected, "{what}: {answer:#?} instead of {expected:#?}");
    Ok(())
}

#[test]
fn a5_new_clusters_have_the_kubernetes_version_of_their_release() -> Result<()> {
    journey(async |journey| {
        guarded(journey, &[]).await?;
        installed(journey).await?;
        // A release that nobody works on has no version.
        let unfinished = "docker-harbor-1-34-v9";
        let paused = json!({
            "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStackRelease",
            "metadata": { "name": unfinished, "annotations": { "cluster.x-k8s.io/paused": "" } }, "spec": {},
        });
        journey.apply(paused).await?;
        let mismatch = |class: &str, got: &str| {
            let detail = format!("clusterClass {class} expects Kubernetes version {VERSION}, but got {got}");
            denied(
                OF_CLUSTERS,
                403,
                &format!("spec.topology.version: Invalid value: {got:?}: {detail}"),
            )
        };
        let manually = format!(
            "no Kubernetes version set in status of clusterStackRelease object. Cannot validate Kubernetes version. \
             Check out the ClusterStackReleaseObject {}/{unfinished} manually",
            journey.namespace
        );
        let hash = ("docker-harbor-1-34-v0-sha.abc", "docker-harbor-1-34-v0-sha-abc");
        let table = [
            (cluster("web", CLASS, VERSION), passed(201, &[])),
            (cluster("web", CLASS, "v1.34.1"), mismatch(CLASS, "v1.34.1")),
            (cluster("web", CLASS, "1.34.0"), mismatch(CLASS, "1.34.0")),
            (
                cluster("web", "docker-harbor-1-34-v2", VERSION),
                passed(201, &[missing("docker-harbor-1-34-v2")]),
            ),
            (cluster("web", hash.0, VERSION), passed(201, &[missing(hash.1)])),
            (cluster("web", unfinished, VERSION), passed(201, &[manually])),
            // No rule is about these.
            (cluster("web", "quick-start", "v1.99.0"), passed(201, &[])),
            (cluster("web", "docker-harbor-1-34", "v1.99.0"), passed(201, &[])),
            (classic("web"), passed(201, &[])),
        ];
        for (wanted, expected) in table {
            let answer = clusters(journey).try_create(&wanted).await?;
            same(&wanted.to_string(), &answer, &expected)?;
        }
        Ok(())
    })
}

#[test]
fn a5_clusters_change_their_class_within_a_stack_and_one_minor_at_a_time() -> Result<()> {
    journey(async |journey| {
        guarded(journey, &[]).await?;
        installed(journey).await?;
        let api = clusters(journey);
        for (name, class) in [("web", CLASS), ("foreign", "quick-start")] {
            let created = api.create(&cluster(name, class, VERSION)).await?;
            ensure!(created.accepted(), "{created:?}");
        }
        let refused = |class: &str, detail: &str| {
            let fault = format!("spec.topology.class: Invalid value: {class:?}: {detail}");
            let message = format!("Cluster.cluster.x-k8s.io \"web\" is invalid: {fault}");
            with_warning(denied(OF_CLUSTERS, 422, &message), missing(class))
        };
        let minors =
            |got: &str| format!("kubernetes version must be the same or higher by one. Got {got}, want 1-34 or 1-35");
        let form = "expected a clusterclass of form <provider>-<clusterStackName>-<kubernetesVersion>-<clusterStackVersion> but got quick-start: \
                    invalid format: \"quick-start\" is not of the form <provider>-<name>-<major>-<minor>-<version>";
        let provider = "provider name must not change. Got openstack, want docker";
        let name = "cluster stack name must not change. Got scs, want harbor";
        let table = [
            (
                "docker-harbor-1-34-v2",
                passed(200, &[missing("docker-harbor-1-34-v2")]),
            ),
            (
                "docker-harbor-1-35-v1",
                passed(200, &[missing("docker-harbor-1-35-v1")]),
            ),
            (
                "docker-harbor-1-36-v1",
                refused("docker-harbor-1-36-v1", &minors("1-36")),
            ),
            (
                "docker-harbor-1-33-v1",
                refused("docker-harbor-1-33-v1", &minors("1-33")),
            ),
            (
                "openstack-harbor-1-34-v1",
                refused("openstack-harbor-1-34-v1", provider),
            ),
            ("docker-scs-1-34-v1", refused("docker-scs-1-34-v1", name)),
            ("quick-start", denied(OF_CLUSTERS, 403, form)),
        ];
        for (class, expected) in table {
            let patch = json!({ "spec": { "topology": { "class": class } } });
            same(class, &api.try_merge("web", &patch).await?, &expected)?;
        }
        let version = json!({ "spec": { "topology": { "version": "v1.34.9" } } });
        let detail = format!("clusterClass {CLASS} expects Kubernetes version {VERSION}, but got v1.34.9");
        let mismatch = denied(
            OF_CLUSTERS,
            403,
            &format!("spec.topology.version: Invalid value: \"v1.34.9\": {detail}"),
        );
        same("another version", &api.try_merge("web", &version).await?, &mismatch)?;
        same(
            "a foreign Cluster",
            &api.try_merge("foreign", &version).await?,
            &passed(200, &[]),
        )?;
        let adopted = api
            .try_merge("foreign", &json!({ "spec": { "topology": { "class": CLASS } } }))
            .await?;
        same("a foreign class before", &adopted, &denied(OF_CLUSTERS, 403, form))
    })
}

#[test]
fn a_class_whose_release_is_being_deleted_is_given_to_nobody() -> Result<()> {
    journey(async |journey| {
        guarded(journey, &[]).await?;
        installed(journey).await?;
        let (api, of_releases) = (clusters(journey), releases(&journey.client, &journey.namespace));
        let other = api.create(&cluster("other", "docker-harbor-1-34-v2", VERSION)).await?;
        ensure!(other.accepted(), "{other:?}");
        // It is being deleted for as long as somebody holds it.
        let holds = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
        let release: ClusterStackRelease = journey.api().get(CLASS).await?;
        let mut held = release.metadata.finalizers.unwrap_or_default();
        held.push(HELD.to_owned());
        ensure!(of_releases.merge(CLASS, &holds(json!(held))).await?.accepted());
        ensure!(of_releases.delete(CLASS).await?.accepted());

        let detail = format!(
            "clusterClass {CLASS} comes from clusterStackRelease {}/{CLASS}, which is being deleted. Take a class of another release, \
             or try again when this one has been deleted and is there anew",
            journey.namespace
        );
        let goes = denied(
            OF_CLUSTERS,
            403,
            &format!("spec.topology.class: Invalid value: {CLASS:?}: {detail}"),
        );
        let back = "cluster stack version goes back. Got v1, had v2".to_owned();
        let take = json!({ "spec": { "topology": { "class": CLASS } } });
        let new = cluster("web", CLASS, VERSION);
        same("a new Cluster", &api.try_create(&new).await?, &goes)?;
        let taken = api.try_merge("other", &take).await?;
        same("another class before", &taken, &with_warning(goes.clone(), back))?;
        let labels = json!({ "metadata": { "labels": { "team": "a" } } });
        same("a label", &api.try_merge("other", &labels).await?, &passed(200, &[]))?;

        // The operator has done its part.
        let is_done =
            |release: &ClusterStackRelease| release.metadata.finalizers.as_deref() == Some(&[HELD.to_owned()]);
        journey.until_release(CLASS, "held by us alone", is_done).await?;
        same("a new Cluster without the objects", &api.try_create(&new).await?, &goes)?;
        ensure!(of_releases.merge(CLASS, &holds(json!([]))).await?.accepted());
        Ok(())
    })
}

#[test]
fn a5_what_clusters_use_is_not_deleted_until_they_are_gone() -> Result<()> {
    journey(async |journey| {
        let elsewhere = journey.another_namespace().await?;
        guarded(journey, &[&elsewhere]).await?;
        installed(journey).await?;
        let api = clusters(journey);
        for (name, class) in [("b", CLASS), ("a", CLASS), ("foreign", "quick-start")] {
            let created = api.create(&cluster(name, class, VERSION)).await?;
            ensure!(created.accepted(), "{created:?}");
        }
        let mut far = cluster("far", CLASS, VERSION);
        far["metadata"]["namespace"] = json!(elsewhere);
        far["spec"]["topology"]["classNamespace"] = json!(journey.namespace);
        journey.apply(far).await?;
        let names = format!("a, b, {elsewhere}/far");
        let in_use = |webhook, kind: &str| {
            let message = format!("can't delete {kind} as there are clusters using it: [{names:?}]");
            denied(webhook, 400, &message)
        };
        let api_of_releases = releases(&journey.client, &journey.namespace);
        // The operator hears of Clusters a moment after us.
        eventually(SOON, "all Clusters to be known", async || {
            let answer = stacks(journey).delete("harbor").await?;
            same("the stack", &answer, &in_use(OF_STACKS, "ClusterStack"))
        })
        .await?;
        same(
            "the release",
            &api_of_releases.delete(CLASS).await?,
            &in_use(OF_RELEASES, "ClusterStackRelease"),
        )?;
        let release: ClusterStackRelease = journey.api().get(CLASS).await?;
        ensure!(release.metadata.deletion_timestamp.is_none() && status(&release).ready);

        for name in ["a", "b"] {
            ensure!(api.delete(name).await?.accepted(), "{name}");
        }
        let far: Api<DynamicObject> = Api::namespaced_with(journey.client.clone(), &elsewhere, &resource_of_clusters());
        far.delete("far", &DeleteParams::default()).await?;
        // At once, whether the watch has told it or not.
        ensure!(stacks(journey).delete("harbor").await?.accepted());
        journey.gone::<ClusterStackRelease>(CLASS).await
    })
}

fn resource_of_clusters() -> kube::api::ApiResource {
    kube::api::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
        "cluster.x-k8s.io",
        "v1beta1",
        "Cluster",
    ))
}

#[test]
fn a5_stacks_and_add_ons_are_refused_by_their_definitions_and_where_those_cannot_by_the_operator() -> Result<()> {
    journey(async |journey| {
        guarded(journey, &[]).await?;
        let stack = |spec: Value| {
            let mut whole =
                json!({ "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34", "autoSubscribe": false });
            for (key, value) in spec.as_object().into_iter().flatten() {
                whole[key] = value.clone();
            }
            json!({ "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack", "metadata": { "name": "new" }, "spec": whole })
        };
        let creations = [
            (
                stack(json!({ "noProvider": true, "versions": ["v1", "v1.0"] })),
                "invalid version: invalid version string v1.0",
            ),
            (
                stack(json!({})),
                "empty provider ref, even though noProvider mode is turned off",
            ),
        ];
        for (wanted, words) in creations {
            let answer = stacks(journey).try_create(&wanted).await?;
            ensure!(answer.code == 422 && answer.message.contains(words), "{answer:?}");
        }
        journey.stack("harbor", json!({ "versions": [] })).await?;
        for (field, value) in [
            ("provider", "openstack"),
            ("name", "scs"),
            ("channel", "custom"),
            ("kubernetesVersion", "1.35"),
        ] {
            let answer = stacks(journey)
                .try_merge("harbor", &json!({ "spec": { field: value } }))
                .await?;
            let words = format!("spec.{field}: Invalid value: {value:?}: field is immutable");
            let other = format!("spec.{field}: Invalid value: field is immutable");
            ensure!(answer.code == 422, "{answer:?}");
            ensure!(
                answer.message.contains(&words) || answer.message.contains(&other),
                "{answer:?}"
            );
        }
        add_ons(journey).await
    })
}

async fn add_ons(journey: &Journey) -> Result<()> {
    let (api, own) = (addons(journey), journey.namespace.as_str());
    ensure!(api.create(&addon("addon", own)).await?.accepted());
    let merge = |reference: Value| json!({ "spec": { "clusterRef": reference } });
    let by_definition = [
        (merge(json!({ "name": "other" })), "field is immutable"),
        (merge(json!({ "kind": "Pod" })), "kind must be cluster"),
        (merge(json!({ "name": null })), "must not be empty"),
    ];
    for (patch, words) in by_definition {
        let answer = api.try_merge("addon", &patch).await?;
        ensure!(answer.code == 422 && answer.message.contains(words), "{answer:?}");
    }
    let fault = "spec.clusterRef.namespace: Invalid value: \"elsewhere\": cluster and clusterAddon need to be in same namespace";
    let expected = denied(
        OF_ADDONS,
        422,
        &format!("ClusterAddon.clusterstack.x-k8s.io \"addon\" is invalid: {fault}"),
    );
    let moved = api
        .try_merge("addon", &merge(json!({ "namespace": "elsewhere" })))
        .await?;
    same("another namespace", &moved, &expected)?;
    // What the Go operator edits by hand to repair stays editable.
    let repaired = api
        .merge(
            "addon",
            &json!({ "spec": { "hook": "BeforeClusterUpgrade", "version": "v2" } }),
        )
        .await?;
    same("a repair", &repaired, &passed(200, &[]))
}
