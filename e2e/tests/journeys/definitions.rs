//! Releases that bring CRDs, and what is stored under these.

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, conditions::ConditionType, labels};
use e2e::{
    Journey, eventually,
    journey::{SOON, status},
    releases::StackSource,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::{
    apply::{row, said},
    journey,
};

/// A kind of the journey's own, whose objects have a size.
const SIZED: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crates.{{ .Release.Namespace }}.example.com
spec:
  group: {{ .Release.Namespace }}.example.com
  scope: Namespaced
  names:
    kind: Crate
    plural: crates
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size:
                  type: string
";

/// One field more than that.
const COLORED: &str = "
                color:
                  type: string
";

/// Our own stack with this CRD among its objects; the answer is the release's tag.
fn publish(journey: &Journey, definition: &str, version: &str) -> Result<String> {
    let source = StackSource::harbor("v1")?;
    source.write("cluster-class/templates/crate.yaml", definition)?;
    journey.releases.publish_stack(&source.path(), version)
}

#[test]
fn a_crd_that_would_lose_stored_data_is_refused_until_a_person_approves_it() -> Result<()> {
    journey(async |journey| {
        let colored = format!("{}{}", SIZED.trim_end(), COLORED);
        let old = publish(journey, &colored, "v1")?;
        let new = publish(journey, SIZED, "v2")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.release_ready(&old).await?;
        let group = format!("{}.example.com", journey.namespace);
        let spec = json!({ "size": "large", "color": "red" });
        journey
            .apply(json!({
                "apiVersion": format!("{group}/v1"), "kind": "Crate",
                "metadata": { "name": "apples" }, "spec": spec,
            }))
            .await?;
        let crates = journey.objects(&format!("{group}/v1"), "Crate");

        // The CRD outlives the release that brought it, and the next one takes it over.
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&old).await?;
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let refused = |release: &ClusterStackRelease| approval(release).is_some();
        let release = journey.until_release(&new, "refused", refused).await?;
        let name = format!("crates.{group}");
        let error = row(&status(&release), "CustomResourceDefinition", &name)?.error.clone();
        let words = "this change of the CRD would lose stored data: v1.spec.color would be dropped. ";
        assert!(error.starts_with(words), "{error}");
        assert_eq!(crates.get("apples").await?.data["spec"], spec);

        let digest = approval(&release).context("a digest")?;
        journey
            .annotate::<ClusterStackRelease>(&new, labels::APPROVE_DATA_LOSS, Some(&digest))
            .await?;
        journey.release_ready(&new).await?;
        let dropped = async || {
            let live = crates.get("apples").await.map_err(|error| error.to_string())?;
            let left = live.data["spec"].clone();
            if left == json!({ "size": "large" }) {
                Ok(())
            } else {
                Err(left.to_string())
            }
        };
        eventually(SOON, "the field to be gone", dropped).await
    })
}

/// How often the API server has stored another form of the CRD of this journey, who has it and whether it has colors.
async fn form(journey: &Journey) -> Result<(Option<i64>, Option<String>, bool)> {
    let definitions = Api::<CustomResourceDefinition>::all(journey.client.clone());
    let live = definitions
        .get(&format!("crates.{}.example.com", journey.namespace))
        .await?;
    let schema = serde_json::to_string(&live.spec.versions)?;
    let mark = live.labels().get(labels::PART_OF).cloned();
    Ok((live.metadata.generation, mark, schema.contains("color")))
}

/// Waits until the release with this tag has the CRD.
async fn held_by(journey: &Journey, tag: &str, colored: bool) -> Result<()> {
    let mark = labels::part_of("ClusterStackRelease", &journey.namespace, tag);
    eventually(SOON, &format!("the CRD to be that of {tag}"), async || {
        let (_, found, has_colors) = form(journey).await?;
        anyhow::ensure!(found.as_ref() == Some(&mark), "it is that of {found:?}, not {mark}");
        anyhow::ensure!(has_colors == colored, "its colors: {has_colors}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Two releases that bring the CRD in two forms, both ready, the older one in use and an object of the kind stored. The answer is their tags.
async fn two_forms(journey: &mut Journey) -> Result<[String; 2]> {
    let colored = format!("{}{}", SIZED.trim_end(), COLORED);
    let old = publish(journey, SIZED, "v1")?;
    let new = publish(journey, &colored, "v2")?;
    journey.operate().await?;
    journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
    journey.release_ready(&old).await?;
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "web" },
        "spec": { "topology": { "class": old, "version": "v1.34.0" } },
    });
    journey.apply(cluster).await?;
    let apples = json!({
        "apiVersion": format!("{}.example.com/v1", journey.namespace), "kind": "Crate",
        "metadata": { "name": "apples" }, "spec": { "size": "large" },
    });
    journey.apply(apples).await?;
    journey.stack("harbor", json!({ "versions": ["v1", "v2"] })).await?;
    journey.usable("harbor", "v1, v2").await?;
    held_by(journey, &new, true).await?;
    Ok([old, new])
}

/// Whether a release is ready and says that the other one has the CRD.
fn handed_over(release: &ClusterStackRelease, to: &str) -> bool {
    let status = status(release);
    let mut rows = status.resources.iter();
    let row = rows.find(|row| row.kind == "CustomResourceDefinition");
    let (reason, message) = said(&status, ConditionType::HelmChartApplied);
    status.ready
        && row.is_some_and(|row| row.superseded_by == to && row.error.is_empty())
        && reason == "InNewerForm"
        && message.contains(to)
}

#[test]
fn the_newest_release_of_a_stack_has_a_crd_that_two_bring_and_nobody_fights_over_it() -> Result<()> {
    journey(async |journey| {
        let [old, new] = two_forms(journey).await?;
        let handed = |release: &ClusterStackRelease| handed_over(release, &new);
        journey.until_release(&old, "handing the CRD over", handed).await?;
        let before = form(journey).await?;
        for (round, tag) in [(1, &old), (2, &new), (3, &old)] {
            journey.ask_release(tag, &format!("round {round}")).await?;
        }
        journey.restart_operator().await?;
        for tag in [&new, &old] {
            journey.ask_release(tag, "after the restart").await?;
        }
        assert_eq!(form(journey).await?, before);
        journey.until_release(&old, "still ready", handed).await?;

        // When the older one goes, the CRD and what is stored under it stay.
        journey.stack("harbor", json!({ "versions": ["v2"] })).await?;
        let clusters = journey.objects("cluster.x-k8s.io/v1beta1", "Cluster");
        clusters.delete("web", &DeleteParams::default()).await?;
        journey.gone::<ClusterStackRelease>(&old).await?;
        journey.release_ready(&new).await?;
        assert_eq!(form(journey).await?, before);
        let crates = journey.objects(&format!("{}.example.com/v1", journey.namespace), "Crate");
        assert_eq!(crates.get("apples").await?.data["spec"], json!({ "size": "large" }));
        Ok(())
    })
}

#[test]
fn without_the_newest_release_a_crd_stays_whole_and_a_person_may_have_the_older_form_back() -> Result<()> {
    journey(async |journey| {
        let [old, new] = two_forms(journey).await?;
        let (generation, ..) = form(journey).await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.delete::<ClusterStackRelease>(&new).await?;
        journey.gone::<ClusterStackRelease>(&new).await?;
        let kept = |release: &ClusterStackRelease| {
            let (reason, message) = said(&status(release), ConditionType::HelmChartApplied);
            let told = reason == "InNewerForm" && message.contains("v1.spec.color would be dropped");
            told && status(release).ready && approval(release).is_some()
        };
        let release = journey.until_release(&old, "ready with the newer form", kept).await?;
        let (unchanged, _, colored) = form(journey).await?;
        assert_eq!((unchanged, colored), (generation, true));

        let digest = approval(&release).context("a digest")?;
        journey
            .annotate::<ClusterStackRelease>(&old, labels::APPROVE_DATA_LOSS, Some(&digest))
            .await?;
        held_by(journey, &old, false).await?;
        let own_again = |release: &ClusterStackRelease| {
            let (reason, _) = said(&status(release), ConditionType::HelmChartApplied);
            status(release).ready && reason.is_empty()
        };
        journey.until_release(&old, "with its own form", own_again).await?;
        Ok(())
    })
}

/// What the status says `approve-data-loss` has to be.
fn approval(release: &ClusterStackRelease) -> Option<String> {
    let (_, message) = said(&status(release), ConditionType::HelmChartApplied);
    let (_, digest) = message.split_once(&format!("{}=", labels::APPROVE_DATA_LOSS))?;
    Some(
        digest
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == ':')
            .collect(),
    )
}
