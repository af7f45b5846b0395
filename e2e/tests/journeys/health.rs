//! What applied objects say of themselves decides whether a release is ready, in both directions.

use anyhow::{Result, ensure};
use crds::{ClusterStackRelease, conditions::ConditionType, resource::Health};
use e2e::{Journey, journey::status};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    apply::{CRATE, crate_kind, publish_with, row, said},
    journey,
};

/// Somebody's controller says this about an object.
async fn says(objects: &Api<DynamicObject>, name: &str, conditions: Value) -> Result<()> {
    let patch = json!({ "status": { "conditions": conditions } });
    objects
        .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// Waits until a release is not ready because of an object, and the stack says so too.
async fn unready_over(journey: &Journey, tag: &str, kind: &str, name: &str, health: Health, words: &str) -> Result<()> {
    let told = |release: &ClusterStackRelease| {
        let status = status(release);
        let (reason, message) = said(&status, ConditionType::HelmChartApplied);
        // Before all objects were looked at, the condition says that.
        let is_told = reason == "ObjectsNotHealthy" && message.contains(words) && message.contains(name);
        !status.ready && is_told && row(&status, kind, name).is_ok_and(|row| row.health == Some(health))
    };
    journey.until_release(tag, words, told).await?;
    journey.usable("harbor", "").await?;
    Ok(())
}

#[test]
fn a_release_is_ready_while_the_objects_of_a_kind_nobody_knows_are() -> Result<()> {
    journey(async |journey| {
        let tag = publish_with(journey, CRATE)?;
        journey.apply_for_all(crate_kind(journey)).await?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        // An object without conditions has nothing to say.
        journey.usable("harbor", "v1").await?;
        let crates = journey.objects(&format!("{}.example.com/v1", journey.namespace), "Crate");
        let not_yet = json!([{ "type": "Ready", "status": "False", "reason": "Packing", "message": "3 of 5 apples" }]);
        says(&crates, "apples", not_yet).await?;
        unready_over(journey, &tag, "Crate", "apples", Health::InProgress, "3 of 5 apples").await?;
        let stalled =
            json!([{ "type": "Stalled", "status": "True", "reason": "Broken", "message": "the crate has no bottom" }]);
        says(&crates, "apples", stalled).await?;
        unready_over(
            journey,
            &tag,
            "Crate",
            "apples",
            Health::Failed,
            "the crate has no bottom",
        )
        .await?;
        says(&crates, "apples", json!([{ "type": "Ready", "status": "True" }])).await?;
        journey.usable("harbor", "v1").await?;
        Ok(())
    })
}

#[test]
fn a_class_whose_variables_do_not_work_is_not_usable_until_they_do() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.usable("harbor", "v1").await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        let at = "2026-11-21T00:00:00Z";
        let variables = |status: &str, message: &str| {
            json!([{ "type": "VariablesReconciled", "status": status, "severity": "Error", "reason": "VariableDiscoveryFailed",
                "message": message, "lastTransitionTime": at }])
        };
        says(&classes, &tag, variables("False", "no runtime extension answers")).await?;
        unready_over(
            journey,
            &tag,
            "ClusterClass",
            &tag,
            Health::Failed,
            "no runtime extension answers",
        )
        .await?;
        says(&classes, &tag, variables("True", "all variables are known")).await?;
        journey.usable("harbor", "v1").await?;
        Ok(())
    })
}

#[test]
fn a_release_is_ready_while_the_workloads_of_its_class_chart_are_available() -> Result<()> {
    journey(async |journey| {
        let template = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: helper
spec:
  selector: { matchLabels: { app: helper } }
  template:
    metadata: { labels: { app: helper } }
    spec: { containers: [{ name: helper, image: registry.example.com/helper }] }
";
        let tag = publish_with(journey, template)?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        // No controller of workloads runs here: we say what it would.
        let deployments = journey.objects("apps/v1", "Deployment");
        let replicas = |ready: u32| {
            let status = json!({
                "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
                "conditions": [{ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" }],
            });
            Patch::Merge(json!({ "status": status }))
        };
        unready_over(
            journey,
            &tag,
            "Deployment",
            "helper",
            Health::InProgress,
            "0 of 1 replicas",
        )
        .await?;
        deployments
            .patch_status("helper", &PatchParams::default(), &replicas(1))
            .await?;
        journey.usable("harbor", "v1").await?;
        deployments
            .patch_status("helper", &PatchParams::default(), &replicas(0))
            .await?;
        unready_over(
            journey,
            &tag,
            "Deployment",
            "helper",
            Health::InProgress,
            "0 of 1 replicas are available",
        )
        .await
    })
}

#[test]
fn status_writes_cause_no_checks_few_reads_at_first_and_then_one_in_ten_seconds_at_most() -> Result<()> {
    journey(async |journey| {
        let tag = journey.releases.publish_harbor("v1", "v1")?;
        journey.operate().await?;
        journey.stack("harbor", json!({ "versions": ["v1"] })).await?;
        journey.usable("harbor", "v1").await?;
        let classes = journey.objects("cluster.x-k8s.io/v1beta1", "ClusterClass");
        let mark = journey.mark().await?;
        let begin = std::time::Instant::now();
        for number in 0..50 {
            let at = format!("2026-11-21T00:00:{number:02}Z");
            let progress = json!([{ "type": "VariablesReconciled", "status": "True", "lastTransitionTime": at }]);
            says(&classes, &tag, progress).await?;
        }
        // Answered after the last of them was seen.
        journey.ask_release(&tag, "now").await?;
        let events = journey.requests_since(mark).await?;
        // After 0.1 s, 0.2 s and so on up to 6.4 s since the object was written, and then every ten.
        let most = 7 + begin.elapsed().as_secs() / 10 + 1;
        let of_classes = events.filter(|event| {
            event
                .object
                .as_ref()
                .is_some_and(|object| object.resource == "clusterclasses")
                && event.verb != "watch"
        });
        ensure!(of_classes.iter().all(|event| event.verb == "get"), "{of_classes:#?}");
        ensure!(
            of_classes.len() as u64 <= most,
            "{} reads instead of {most}",
            of_classes.len()
        );
        Ok(())
    })
}
