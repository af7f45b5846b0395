//! A stack without `clusteraddon.yaml`: one chart, whose parts are the charts of the stack with stages (A6, A8, F2, F7).

use std::fs;

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, cluster_addon::StagePhase};
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    hooks::Hook,
    journey::SOON,
    releases::StackSource,
    shim::{Hold, cluster},
};
use serde_json::json;

use crate::{
    faulty::cannot_be_rendered,
    ground::{
        CLUSTER, Ground, answers, control_plane, course, phases, release_of, set_topology, status, until_cluster,
    },
    stack::{self, ONLY},
};

const CONTROL_PLANE: &str = "ShimControlPlane";

/// The values that the charts of the stack with stages make for themselves, each under its name.
const VALUES: &str = r#"values: |
  network:
    podCIDR: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 | quote }}
    apiServer: "{{ .Cluster.spec.controlPlaneEndpoint.host }}:{{ .Cluster.spec.controlPlaneEndpoint.port }}"
  lighthouse:
    cluster: {{ .Cluster.metadata.name | quote }}
    region: {{ .InfraCluster.spec.region | quote }}
    flavor: {{ .ControlPlane.spec.flavor | quote }}
"#;

/// The stack of a version with its charts as the parts of one.
pub(crate) fn of_one_chart(version: &str) -> Result<StackSource> {
    const PARTS: [&str; 2] = ["network", "lighthouse"];
    let source = StackSource::quay(version)?;
    source.remove("clusteraddon.yaml")?;
    let charts = source.path().join("cluster-addon/charts");
    fs::create_dir_all(&charts).context("failed to make a folder")?;
    let minor = if version == "v1" { "1-34" } else { "1-35" };
    for part in PARTS {
        source.remove(&format!("cluster-addon/{part}/overwrite.yaml"))?;
        let from = source.path().join("cluster-addon").join(part);
        fs::rename(&from, charts.join(part)).with_context(|| format!("failed to move {part}"))?;
    }
    let parts = PARTS
        .map(|part| format!("- {{ name: {part}, version: 0.1.0 }}\n"))
        .concat();
    let chart = format!(
        "apiVersion: v2\nname: shim-quay-{minor}-cluster-addon\ntype: application\nversion: v0\ndependencies:\n{parts}"
    );
    source.write("cluster-addon/Chart.yaml", &chart)?;
    source.write("cluster-addon-values.yaml", VALUES)?;
    Ok(source)
}

/// That stack as a class; the answer is its name.
async fn class(journey: &Journey, source: &str, version: &str) -> Result<String> {
    let tag = journey.releases.publish_stack(&of_one_chart(source)?.path(), version)?;
    release_of(journey, &tag, source, version).await?;
    Ok(tag)
}

/// Waits until the Cluster has all that this version brings, of the only stage that there is.
async fn complete(journey: &Journey, ground: &Ground, class: &str, version: &str) -> Result<ClusterAddon> {
    let objects = stack::of_one_chart(version);
    let addon = ground.complete_with(journey, class, version, &objects).await?;
    assert_eq!(phases(&status(&addon)), [(ONLY, StagePhase::Done)]);
    Ok(addon)
}

/// A6, A8, A10, F2, F7: and what is faulty holds Kubernetes back, until somebody gives the Cluster another class.
fn one_stage(release: Release) -> Result<()> {
    course(release, async |journey, ground| {
        let [old, new] = [class(journey, "v1", "v1").await?, class(journey, "v2", "v2").await?];
        let same = with_the_same_add_ons(journey).await?;
        let faulty = class(journey, "v3", "v4").await?;
        journey.apply(cluster(CLUSTER, &old, "v1.34.0", 1)).await?;
        complete(journey, ground, &old, "v1").await?;
        let client = ground.workload.client();
        let before = stack::uids(&client, "v1").await?;
        let mark = ground.workload.audit_log().mark().await?;

        let web = ground.web();
        web.hold(Hold::Upgrade);
        set_topology(journey, &faulty, "v1.35.0").await?;
        is_held_back(journey).await?;
        stack::stands(&client, &ground.home, &stack::of_one_chart("v1")).await?;

        set_topology(journey, &new, "v1.35.0").await?;
        // Before the control plane has become what it shall be.
        complete(journey, ground, &new, "v2").await?;
        plane_is_asked(journey).await?;
        web.release(Hold::Upgrade);
        until_cluster(journey, "Cluster API to be done", |cluster| {
            cluster["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|condition| condition["type"] == "TopologyReconciled" && condition["status"] == "True")
        })
        .await?;
        complete(journey, ground, &new, "v2").await?;
        stack::are_the_same(&before, &stack::uids(&client, "v2").await?)?;
        only_the_settings_went(&ground.written_since(mark).await?)?;

        ground.looks_write_nothing(journey, "upgraded").await?;
        let mark = ground.workload.audit_log().mark().await?;
        set_topology(journey, &same, "v1.35.0").await?;
        complete(journey, ground, &same, "v2").await?;
        next_kubernetes_has_the_same_add_ons(journey, ground).await?;
        let written = ground.written_since(mark).await?;
        ensure!(written.is_empty(), "{written:#?}");
        Ok(())
    })
}

/// F7: Cluster API asks before it upgrades Kubernetes, and there is nothing to do that the answer would wait for.
async fn next_kubernetes_has_the_same_add_ons(journey: &mut Journey, ground: &Ground) -> Result<()> {
    const KUBERNETES: &str = "v1.36.0";
    let source = of_one_chart("v2")?;
    source.replace("csctl.yaml", "1.35", "1.36")?;
    source.replace("cluster-class/Chart.yaml", "1-35", "1-36")?;
    source.replace("cluster-addon/Chart.yaml", "1-35", "1-36")?;
    let class = journey.releases.publish_stack(&source.path(), "v2")?;
    let spec = json!({ "provider": "shim", "name": "quay", "kubernetesVersion": "1.36", "versions": ["v2"] });
    journey.stack("quay-1-36", spec).await?;
    journey.release_ready(&class).await?;
    let before = answers(journey, Hook::BeforeClusterUpgrade, "go-on").await?;
    set_topology(journey, &class, KUBERNETES).await?;
    let addon = complete(journey, ground, &class, "v2").await?;
    let version = status(&addon).applied.and_then(|applied| applied.kubernetes_version);
    ensure!(version.as_deref() == Some(KUBERNETES), "{version:?}");
    eventually(SOON, "the control plane to have the new version", async || {
        let plane = control_plane(journey, CONTROL_PLANE).await?;
        ensure!(plane.data["status"]["version"] == KUBERNETES, "{:#}", plane.data);
        Ok(())
    })
    .await?;
    let after = answers(journey, Hook::BeforeClusterUpgrade, "go-on").await?;
    ensure!(after > before, "it was let go on {after} times, {before} before");
    Ok(())
}

/// The class after the second has other workers. The answer is its name.
async fn with_the_same_add_ons(journey: &Journey) -> Result<String> {
    let source = of_one_chart("v2")?;
    source.replace("cluster-class/values.yaml", "large", "huge")?;
    let tag = journey.releases.publish_next(&source.path())?;
    release_of(journey, &tag, "v2", "v3").await?;
    Ok(tag)
}

/// The ConfigMap of the network has another name from the second version on.
fn only_the_settings_went(written: &[String]) -> Result<()> {
    let deleted: Vec<&String> = written.iter().filter(|write| write.starts_with("delete")).collect();
    let (namespace, name) = stack::settings("v1");
    let settings = format!("/namespaces/{namespace}/configmaps/{name}");
    ensure!(
        matches!(&deleted[..], [only] if only.contains(&settings)),
        "{deleted:#?}"
    );
    Ok(())
}

/// The chart cannot be rendered, which the Cluster says in our words; Kubernetes is not upgraded.
async fn is_held_back(journey: &Journey) -> Result<()> {
    cannot_be_rendered(journey).await?;
    until_cluster(journey, "the Cluster to say what holds it up", |cluster| {
        let said = cluster["status"].to_string();
        ["BeforeClusterUpgrade", ONLY].iter().all(|word| said.contains(word))
    })
    .await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["spec"]["version"] == "v1.34.0", "{:#}", plane.data);
    Ok(())
}

/// Cluster API was let go on, although the control plane has not reached the version.
async fn plane_is_asked(journey: &Journey) -> Result<()> {
    eventually(SOON, "the control plane to be told the new version", async || {
        let plane = control_plane(journey, CONTROL_PLANE).await?;
        ensure!(plane.data["spec"]["version"] == "v1.35.0", "{:#}", plane.data);
        ensure!(plane.data["status"]["version"] == "v1.34.0", "{:#}", plane.data);
        Ok(())
    })
    .await
}

#[test]
fn a6_a8_f2_f7_a_stack_of_one_chart_is_upgraded_before_kubernetes_is_and_only_what_is_gone_from_it_goes_on_1_10()
-> Result<()> {
    one_stage(Release::V1_10)
}

#[test]
fn a6_a8_f2_f7_a_stack_of_one_chart_is_upgraded_before_kubernetes_is_and_only_what_is_gone_from_it_goes_on_1_14()
-> Result<()> {
    one_stage(Release::V1_14)
}
