//! One cluster-scoped object that stacks of two namespaces bring.

use anyhow::Result;
use crds::{ClusterStack, ClusterStackRelease, conditions::ConditionType, labels};
use e2e::{
    Journey, Operator, OperatorOptions, eventually,
    journey::{SOON, status},
    releases::StackSource,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{apply::said, journey};

/// Our own stack with a CRD of the journey whose kind has this short name; the answer is the release's tag.
fn publish(journey: &Journey, short: &str, version: &str) -> Result<String> {
    let group = format!("{}.example.com", journey.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("barrels.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "Barrel", "plural": "barrels", "shortNames": [short] },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let source = StackSource::harbor("v1")?;
    source.write("cluster-class/templates/barrel.yaml", &definition.to_string())?;
    journey.releases.publish_stack(&source.path(), version)
}

/// Has the operator look after all namespaces, and there only after what is of this journey.
fn look_everywhere(journey: &mut Journey) {
    journey.options.namespace = String::new();
    let filter = format!("--watch-filter={}", journey.namespace);
    journey.options.flags.push(filter.into());
}

/// A stack of this version.
async fn stack(journey: &Journey, namespace: &str, version: &str) -> Result<()> {
    let stack = json!({
        "apiVersion": "clusterstack.x-k8s.io/v1alpha1", "kind": "ClusterStack",
        "metadata": {
            "name": "harbor", "namespace": namespace, "labels": { labels::WATCH_FILTER: journey.namespace },
        },
        "spec": {
            "provider": "docker", "name": "harbor", "kubernetesVersion": "1.34",
            "autoSubscribe": false, "noProvider": true, "versions": [version],
        },
    });
    journey.apply(stack).await.map(drop)
}

fn definitions(journey: &Journey) -> (Api<CustomResourceDefinition>, String) {
    let name = format!("barrels.{}.example.com", journey.namespace);
    (Api::all(journey.client.clone()), name)
}

/// Waits until the CRD carries the mark of the release in this namespace and has this short name.
async fn held_by(journey: &Journey, (namespace, tag): (&str, &str), short: &str) -> Result<()> {
    let (definitions, name) = definitions(journey);
    let mark = labels::part_of("ClusterStackRelease", namespace, tag);
    eventually(SOON, "the CRD to have changed hands", async || {
        let live = definitions.get(&name).await?;
        anyhow::ensure!(live.labels().get(labels::PART_OF) == Some(&mark), "{:?}", live.labels());
        let shorts = live.spec.names.short_names.unwrap_or_default();
        anyhow::ensure!(shorts == [short], "{shorts:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Waits for what a release of the other namespace says.
async fn until_there(
    journey: &Journey,
    (namespace, tag): (&str, &str),
    what: &str,
    holds: impl Fn(&ClusterStackRelease) -> bool,
) -> Result<()> {
    let releases = Api::<ClusterStackRelease>::namespaced(journey.client.clone(), namespace);
    eventually(SOON, what, async || {
        let found = releases.get(tag).await?;
        anyhow::ensure!(holds(&found), "{:#?}", found.status);
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[test]
fn a_release_of_another_namespace_waits_for_a_shared_object_and_has_it_when_the_holder_goes() -> Result<()> {
    journey(async |journey| {
        look_everywhere(journey);
        let here = journey.namespace.clone();
        let there = journey.another_namespace().await?;
        let first = publish(journey, "bar", "v1")?;
        let second = publish(journey, "brl", "v2")?;
        journey.operate().await?;
        stack(journey, &here, "v1").await?;
        journey.release_ready(&first).await?;
        held_by(journey, (&here, &first), "bar").await?;

        // It wants another form, and is told whose the object is.
        stack(journey, &there, "v2").await?;
        let place = format!("{here}/{first}");
        let refused = |release: &ClusterStackRelease| {
            let (_, message) = said(&status(release), ConditionType::HelmChartApplied);
            !status(release).ready && message.contains(&place)
        };
        until_there(journey, (&there, &second), "the other to be told the holder", refused).await?;
        held_by(journey, (&here, &first), "bar").await?;

        // Nobody asks it to look again, and the object itself does not change when its holder lets go.
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&first).await?;
        held_by(journey, (&there, &second), "brl").await?;
        let ready = |release: &ClusterStackRelease| status(release).ready;
        until_there(journey, (&there, &second), "the other to be ready", ready).await
    })
}

/// Each of the two knows of the other's release only what the object tells that carries its mark.
#[test]
fn f32_of_two_operators_of_one_namespace_each_the_second_leaves_an_object_to_the_release_of_the_first() -> Result<()> {
    journey(async |journey| {
        let here = journey.namespace.clone();
        let there = journey.another_namespace().await?;
        anyhow::ensure!(journey.options.namespace == here, "journeys have one namespace");
        let first = publish(journey, "bar", "v1")?;
        let second = publish(journey, "brl", "v2")?;
        journey.operate().await?;
        let options = OperatorOptions {
            namespace: there.clone(),
            record: Some(journey.folder().join("decisions-of-the-second")),
            log: journey.folder().join("second.log"),
            ..journey.options.clone()
        };
        let mut other = Operator::start(journey.lab(), &options)?;
        other.ready().await?;
        stack(journey, &here, "v1").await?;
        journey.release_ready(&first).await?;
        held_by(journey, (&here, &first), "bar").await?;
        let (definitions, name) = definitions(journey);
        let before = definitions.get(&name).await?;

        stack(journey, &there, "v2").await?;
        let refused = |release: &ClusterStackRelease| {
            let (_, message) = said(&status(release), ConditionType::HelmChartApplied);
            !status(release).ready && message.contains("the object belongs to another release")
        };
        until_there(journey, (&there, &second), "the second to leave it", refused).await?;
        journey.ask_release(&first, "look").await?;
        let after = definitions.get(&name).await?;
        anyhow::ensure!(
            after.spec == before.spec && after.labels() == before.labels(),
            "{after:#?}"
        );
        anyhow::ensure!(status(&journey.api::<ClusterStackRelease>().get(&first).await?).ready);

        // Nothing tells the second operator that the first release is gone but another look.
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&first).await?;
        held_by(journey, (&there, &second), "brl").await?;
        let ready = |release: &ClusterStackRelease| status(release).ready;
        until_there(journey, (&there, &second), "the second to be ready", ready).await?;
        other.kill().await
    })
}

#[test]
fn what_two_namespaces_want_alike_is_kept_in_line_by_the_one_that_stays() -> Result<()> {
    journey(async |journey| {
        look_everywhere(journey);
        let here = journey.namespace.clone();
        let there = journey.another_namespace().await?;
        let tag = publish(journey, "bar", "v1")?;
        journey.operate().await?;
        stack(journey, &here, "v1").await?;
        journey.release_ready(&tag).await?;
        stack(journey, &there, "v1").await?;
        let ready = |release: &ClusterStackRelease| status(release).ready;
        until_there(journey, (&there, &tag), "the other to be ready", ready).await?;
        held_by(journey, (&here, &tag), "bar").await?;

        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        held_by(journey, (&there, &tag), "bar").await?;
        let (definitions, name) = definitions(journey);
        let edit: Value = json!({ "spec": { "names": { "shortNames": ["theirs"] } } });
        definitions
            .patch(&name, &PatchParams::default(), &Patch::Merge(edit))
            .await?;
        held_by(journey, (&there, &tag), "bar").await?;

        // A kind outlives all releases that brought it: there may be objects of it.
        let stacks = Api::<ClusterStack>::namespaced(journey.client.clone(), &there);
        stacks.delete("harbor", &DeleteParams::default()).await?;
        let releases = Api::<ClusterStackRelease>::namespaced(journey.client.clone(), &there);
        eventually(SOON, "the release to be gone", async || {
            anyhow::ensure!(releases.get_opt(&tag).await?.is_none(), "{tag} is there");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let kept = definitions.get(&name).await?;
        anyhow::ensure!(kept.metadata.deletion_timestamp.is_none(), "{kept:#?}");
        Ok(())
    })
}
