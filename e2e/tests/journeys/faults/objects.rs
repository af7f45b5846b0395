//! Objects that share a name, objects that other people write to as well, and objects that the API server refuses.

use anyhow::{Context, Result};
use crds::{
    ClusterStack, ClusterStackRelease,
    conditions::{ConditionType, find},
    labels,
    resource::SyncStatus,
};
use e2e::{
    Journey,
    audit::{AuditEvents, Mark},
    eventually,
    journey::{SOON, status},
    releases::StackSource,
};
use jiff::SignedDuration;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::journey;

/// Installs a kind whose spec has this schema.
pub(super) async fn install_kind(journey: &Journey, group: &str, kind: &str, spec: Value) -> Result<()> {
    let plural = format!("{}s", kind.to_lowercase());
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    });
    journey.apply_for_all(crd).await.map(drop)
}

/// Four objects with the same name: two kinds of every cluster, and one kind of two groups that are not installed.
const TWINS: &str = r"
apiVersion: v1
kind: ConfigMap
metadata:
  name: twin
data:
  from: config
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: twin
---
apiVersion: rivers.example.com/v1
kind: Raft
metadata:
  name: twin
spec:
  planks: 7
---
apiVersion: lakes.example.com/v1
kind: Raft
metadata:
  name: twin
spec:
  planks: 9
";

#[test]
fn f4_objects_of_one_name_are_kept_apart_by_group_and_kind() -> Result<()> {
    journey(async |journey| {
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/twins.yaml", TWINS)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        for missing in ["lakes.example.com", "rivers.example.com"] {
            let waits = |release: &ClusterStackRelease| {
                let conditions = status(release).conditions;
                let applied = find(&conditions, ConditionType::HelmChartApplied);
                applied.is_some_and(|condition| {
                    condition.reason.as_deref() == Some("KindNotFound")
                        && condition.message.as_deref().unwrap_or_default().contains(missing)
                })
            };
            let release = journey
                .until_release(&tag, &format!("waiting for {missing}"), waits)
                .await?;
            assert!(!status(&release).ready);
            let planks = json!({ "type": "object", "properties": { "planks": { "type": "integer" } } });
            install_kind(journey, missing, "Raft", planks).await?;
        }
        let release = journey.release_ready(&tag).await?;
        let twins: Vec<_> = status(&release)
            .resources
            .into_iter()
            .filter(|row| row.name == "twin")
            .collect();
        assert_eq!(twins.len(), 4, "{twins:#?}");
        assert!(
            twins.iter().all(|row| row.status == Some(SyncStatus::Synced)),
            "{twins:#?}"
        );
        assert_eq!(
            journey.objects("v1", "ConfigMap").get("twin").await?.data["data"]["from"],
            "config"
        );
        journey.objects("v1", "ServiceAccount").get("twin").await?;
        for (group, planks) in [("rivers.example.com", 7), ("lakes.example.com", 9)] {
            let rafts = journey.objects(&format!("{group}/v1"), "Raft");
            assert_eq!(rafts.get("twin").await?.data["spec"]["planks"], planks);
            rafts.delete("twin", &DeleteParams::default()).await?;
            eventually(SOON, "the raft to be back", async || rafts.get("twin").await).await?;
        }
        journey.delete::<ClusterStack>("harbor").await?;
        journey.gone::<ClusterStackRelease>(&tag).await?;
        assert_eq!(journey.marked(&tag).await?, Vec::<String>::new());
        Ok(())
    })
}

fn templates(journey: &Journey) -> Api<DynamicObject> {
    journey.objects("infrastructure.cluster.x-k8s.io/v1beta1", "DockerMachineTemplate")
}

/// The fields of an object that a manager owns.
fn owned_by(object: &DynamicObject, manager: &str) -> String {
    let entries = object
        .managed_fields()
        .iter()
        .filter(|entry| entry.manager.as_deref() == Some(manager));
    entries.map(|entry| json!(entry.fields_v1).to_string()).collect()
}

#[test]
fn f27_people_with_kubectl_are_told_from_the_operator_and_keep_what_they_added() -> Result<()> {
    journey(async |journey| {
        let tag = journey.installed().await?;
        let worker = format!("{tag}-worker");
        let before = templates(journey).get(&worker).await?;
        let image = before.data["spec"]["template"]["spec"]["customImage"].clone();
        assert_eq!(owned_by(&before, labels::PREDECESSOR_FIELD_MANAGER), "");
        let theirs = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerMachineTemplate",
            "metadata": { "labels": { "example.com/cost-centre": "17" } },
            "spec": { "template": { "spec": { "bootstrapped": true, "customImage": "registry.example.com/theirs" } } },
        });
        templates(journey)
            .patch(&worker, &PatchParams::apply("kubectl").force(), &Patch::Apply(theirs))
            .await?;
        let after = eventually(SOON, "the image to be back", async || {
            let now = templates(journey).get(&worker).await?;
            anyhow::ensure!(
                now.data["spec"]["template"]["spec"]["customImage"] == image,
                "{:?}",
                now.data
            );
            Ok::<_, anyhow::Error>(now)
        })
        .await?;
        assert_eq!(
            after.labels().get("example.com/cost-centre").map(String::as_str),
            Some("17")
        );
        assert_eq!(after.data["spec"]["template"]["spec"]["bootstrapped"], true);
        let (ours, theirs) = (owned_by(&after, labels::FIELD_MANAGER), owned_by(&after, "kubectl"));
        assert!(
            ours.contains("customImage") && !ours.contains("bootstrapped") && !ours.contains("cost-centre"),
            "{ours}"
        );
        assert!(
            !theirs.contains("customImage") && theirs.contains("bootstrapped"),
            "{theirs}"
        );
        Ok(())
    })
}

/// Eight rules that an object can break at once, so that their order in the API server's words can change.
fn strict() -> Value {
    let fields = ["one", "two", "three", "four", "five", "six", "seven", "eight"];
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|field| ((*field).to_owned(), json!({ "type": "string", "minLength": 1 })))
        .collect();
    json!({ "type": "object", "properties": properties })
}

const FAULTY: &str = r#"
apiVersion: rules.example.com/v1
kind: Strict
metadata:
  name: faulty
spec: { one: "", two: "", three: "", four: "", five: "", six: "", seven: "", eight: "" }
---
apiVersion: rules.example.com/v1
kind: Strict
metadata:
  name: mistyped
spec: { one: 1, two: 2, three: 3, four: 4, five: 5, six: 6, seven: 7, eight: 8 }
"#;

/// The attempts to write one of the objects that are refused.
async fn attempts(journey: &Journey, mark: Mark) -> Result<AuditEvents> {
    let of_the_kind =
        |event: &e2e::audit::AuditEvent| event.object.as_ref().is_some_and(|object| object.name == "faulty");
    Ok(journey.requests_since(mark).await?.writes().filter(of_the_kind))
}

#[test]
fn f35_an_object_that_is_refused_is_tried_ever_more_rarely_and_told_once() -> Result<()> {
    journey(async |journey| {
        install_kind(journey, "rules.example.com", "Strict", strict()).await?;
        let source = StackSource::harbor("v1")?;
        source.write("cluster-class/templates/faulty.yaml", FAULTY)?;
        let tag = journey.releases.publish_stack(&source.path(), "v1")?;
        let start = journey.mark().await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        let refused = |release: &ClusterStackRelease| {
            let rows = status(release).resources;
            let mut told = rows
                .iter()
                .filter(|row| row.kind == "Strict")
                .map(|row| row.error.as_str());
            let others = rows.iter().filter(|row| row.kind != "Strict");
            told.all(|error| error.contains("spec.one") && error.contains("spec.eight"))
                && rows.len() == 9
                && others.clone().all(|row| row.status == Some(SyncStatus::Synced))
        };
        journey.until_release(&tag, "told what is refused", refused).await?;
        let told = journey.mark().await?;
        // What has nothing to do with the object is no reason to try it again.
        for word in 0..5 {
            journey
                .annotate::<ClusterStackRelease>(&tag, "example.com/word", Some(&word.to_string()))
                .await?;
        }
        let seen = eventually(SOON, "the fifth attempt", async || {
            let attempts = attempts(journey, start).await?;
            anyhow::ensure!(attempts.len() >= 5, "{} attempts", attempts.len());
            Ok::<_, anyhow::Error>(attempts)
        })
        .await?;
        let gaps: Vec<SignedDuration> = seen
            .windows(2)
            .map(|pair| pair[1].received.duration_since(pair[0].received))
            .collect();
        for (number, gap) in gaps.iter().enumerate() {
            let least = SignedDuration::from_secs(1 << number);
            assert!(*gap >= least, "attempts {gaps:?} apart");
        }
        let written = journey.requests_since(told).await?.writes().filter(|event| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.resource == "clusterstackreleases")
        });
        assert!(written.is_empty(), "{written:#?}");
        // The rules change, and the object is taken without anybody's help.
        install_kind(
            journey,
            "rules.example.com",
            "Strict",
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        )
        .await?;
        journey.release_ready(&tag).await.context("the object is allowed now")?;
        Ok(())
    })
}
