//! Releases that bring CRDs, and what is stored under these.

use anyhow::{Context, Result};
use crds::{ClusterStack, ClusterStackRelease, conditions::ConditionType, labels};
use e2e::{
    Journey, eventually,
    journey::{SOON, status},
    releases::StackSource,
};
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
