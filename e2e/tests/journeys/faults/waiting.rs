//! What a release waits for is told by a watch; nobody asks for it again and again.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};
use crds::{
    ClusterStackRelease,
    conditions::{ConditionType, find},
};
use e2e::{Journey, journey::status, releases::StackSource};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::objects::install_kind;
use crate::journey;

const FERRY: &str = "apiVersion: ferries.example.com/v1\nkind: Ferry\nmetadata:\n  name: ferry\nspec: {}\n";

/// When the operator wants to look again at each of its objects without being told, by its last decisions.
fn next_looks(journey: &Journey) -> Result<BTreeMap<String, Value>> {
    let mut files = fs::read_dir(journey.decisions())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    let mut next = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "json"))
    {
        let decision: Value = serde_json::from_slice(&fs::read(file)?)?;
        let observed = &decision["observed"];
        let name = observed["tag"].as_str().or_else(|| observed["name"].as_str());
        next.insert(
            name.context("a decision is about an object")?.to_owned(),
            decision["plan"]["next"].clone(),
        );
    }
    Ok(next)
}

/// Whether a condition of a release has this reason.
fn says(release: &ClusterStackRelease, type_: ConditionType, reason: &str) -> bool {
    find(&status(release).conditions, type_).is_some_and(|condition| condition.reason.as_deref() == Some(reason))
}

#[test]
fn f35_what_is_awaited_is_told_by_a_watch_and_asked_for_by_nobody() -> Result<()> {
    journey(async |journey| {
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/ferry.yaml", FERRY)?;
        let one = journey.releases.publish_stack(&source.path(), "v1")?;
        let two = journey.releases.publish_harbor("v2", "v2")?;
        let three = journey.releases.publish_harbor("v1", "v3")?;
        journey.releases.unpublish(&two)?;
        journey.operate().await?;
        // The first waits for a kind, the second for its files, the third for the end of the last Cluster that uses it, and its add-ons for a kubeconfig.
        journey
            .stack("harbor", json!({ "versions": ["v1", "v2", "v3"] }))
            .await?;
        journey.release_ready(&three).await?;
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web" },
            "spec": { "topology": { "class": three, "version": "v1.34.0" } },
        });
        journey.apply(cluster).await?;
        journey.delete::<ClusterStackRelease>(&three).await?;
        journey
            .until_release(&one, "waiting for a kind", |release| {
                says(release, ConditionType::HelmChartApplied, "KindNotFound")
            })
            .await?;
        journey
            .until_release(&two, "waiting for its files", |release| {
                says(
                    release,
                    ConditionType::ClusterStackReleaseDownloaded,
                    "ReleaseAssetsNotDownloadedYet",
                )
            })
            .await?;
        journey
            .until_release(&three, "waiting for a Cluster", |release| {
                says(release, ConditionType::Reconciling, "InUse")
            })
            .await?;
        journey.ask_stack("harbor", "first").await?;
        let start = journey.mark().await?;
        for word in ["second", "third"] {
            journey.ask_stack("harbor", word).await?;
        }
        let asked = journey.requests_since(start).await?.reads_other_than_watch();
        // Discovery is read when CRDs change, and other journeys change theirs.
        let asked = asked.filter(|event| event.object.is_some());
        assert!(asked.is_empty(), "{asked:#?}");
        let next = next_looks(journey)?;
        assert_eq!(
            next.keys().map(String::as_str).collect::<Vec<_>>(),
            ["cluster-addon-web", &one, &two, &three, "harbor"]
        );
        assert!(next.values().all(|next| next == "Await"), "{next:#?}");

        install_kind(journey, "ferries.example.com", "Ferry", json!({ "type": "object" })).await?;
        journey.release_ready(&one).await?;
        journey.releases.publish_harbor("v2", "v2")?;
        journey.release_ready(&two).await?;
        let old = journey.api::<ClusterStackRelease>().get(&three).await?.metadata.uid;
        journey
            .objects("cluster.x-k8s.io/v1beta1", "Cluster")
            .delete("web", &DeleteParams::default())
            .await?;
        // It is listed, so it comes back.
        let again = |release: &ClusterStackRelease| release.metadata.uid != old && status(release).ready;
        journey.until_release(&three, "made again", again).await?;
        Ok(())
    })
}
