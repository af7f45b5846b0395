//! A Cluster is deleted: what has to be done before is done, and nothing holds it up that cannot be done (A7, F13, F15).

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, cluster_addon::name_for, labels};
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    journey::SOON,
    releases::StackSource,
    shim::{Hold, Workload, cluster},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    ground::{
        CLUSTER, CLUSTER_API, Ground, class, control_plane, course, on_the_newest, release_of, status, until_addon,
        until_cluster,
    },
    reshaped::{KEPT, LOGBOOK, NOTE, STAGES, form_of_logbook, is_forgotten, logbook},
    stack::{self, Expected},
    values::region,
};

pub(crate) async fn ask_for_the_end(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    let deleted = clusters.delete(CLUSTER, &DeleteParams::default()).await;
    deleted.map(drop).context("failed to delete the Cluster")
}

/// Waits until the Cluster says that its deletion is held up, in these words of ours. Before 1.12 Cluster API says that of no deletion.
pub(crate) async fn says_what_holds_it_up(journey: &Journey, ground: &Ground, words: &str) -> Result<()> {
    if ground.release < Release::V1_12 {
        return Ok(());
    }
    until_cluster(journey, &format!("the Cluster to say {words}"), |cluster| {
        cluster["status"].to_string().contains(words)
    })
    .await
}

/// Neither the Cluster nor its ClusterAddon is left.
pub(crate) async fn both_are_gone(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SOON, "the Cluster to be gone", async || {
        match clusters.get_opt(CLUSTER).await? {
            None => Ok(()),
            Some(cluster) => anyhow::bail!("{:#}", cluster.data["status"]),
        }
    })
    .await?;
    journey.gone::<ClusterAddon>(&name_for(CLUSTER)).await
}

/// F13, F15: the lighthouse is taken away while everything else is there, and the rest goes with the cluster.
fn stages_run_before(release: Release) -> Result<()> {
    course(release, async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let web = ground.web();
        web.hold(Hold::Deletion);
        ask_for_the_end(journey).await?;
        eventually(SOON, "Cluster API to be told that it may delete", async || {
            let cluster = journey.objects(CLUSTER_API, "Cluster").get(CLUSTER).await?;
            ensure!(
                cluster.annotations().contains_key(labels::OK_TO_DELETE),
                "{:#}",
                cluster.data["status"]
            );
            Ok(())
        })
        .await?;
        let there = stack::ours(&ground.workload.client(), &ground.home).await?;
        for trace in [
            "ConfigMap quay/cluster-addon-lighthouse",
            "Mooring quay/cluster-addon-lighthouse",
        ] {
            ensure!(!there.contains(trace), "{trace} is among {there:#?}");
        }
        for trace in ["Deployment kube-system/cluster-addon-network", "Namespace /quay"] {
            ensure!(there.contains(trace), "{trace} is not among {there:#?}");
        }
        web.release(Hold::Deletion);
        both_are_gone(journey).await
    })
}

#[test]
fn a7_f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_10()
-> Result<()> {
    stages_run_before(Release::V1_10)
}

#[test]
fn a7_f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_12()
-> Result<()> {
    stages_run_before(Release::V1_12)
}

#[test]
fn a7_f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_13()
-> Result<()> {
    stages_run_before(Release::V1_13)
}

#[test]
fn a7_f13_f15_a_cluster_that_is_deleted_waits_for_its_last_stages_and_takes_its_cluster_addon_along_on_1_14()
-> Result<()> {
    stages_run_before(Release::V1_14)
}

/// Nobody can take anything away there; whoever deletes the Cluster is told so, and how to go on without.
#[test]
fn f15_a_cluster_whose_api_server_is_away_says_what_holds_it_up_and_goes_when_somebody_says_so() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let class = class(journey, "v1", "v1").await?;
        journey.apply(cluster(CLUSTER, &class, "v1.34.0", 1)).await?;
        ground.complete(journey, &class, "v1").await?;
        let away = Workload::away(ground.workload.access()).await?;
        ground.web().serve(&away);
        ask_for_the_end(journey).await?;
        let way_round = format!("BeforeClusterDelete@{class}");
        says_what_holds_it_up(journey, ground, &way_round).await?;
        journey
            .annotate::<ClusterAddon>(&name_for(CLUSTER), labels::SKIP_HOOK, Some(&way_round))
            .await?;
        both_are_gone(journey).await
    })
}

/// A load balancer, which is called after the cluster: whoever asks what to delete without the values of the cluster looks for another one.
const BEACON: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Values.cluster }}-beacon
  namespace: quay
spec:
  type: LoadBalancer
  ports:
  - port: 80
";
/// Its place.
const BEACON_OF_CLUSTER: (&str, &str) = ("quay", "web-beacon");
/// What a cloud keeps a Service with that has a load balancer.
const CLEANUP: &str = "service.kubernetes.io/load-balancer-cleanup";
const KUBERNETES: &str = "v1.35.0";

/// The stack with that in its lighthouse, as this version; the last stage says how long it may take, if anything is said. The answer is its class.
async fn with_a_beacon(journey: &Journey, version: &str, timeout: &str) -> Result<String> {
    let source = StackSource::quay("v2")?;
    let note = std::fs::read_to_string(source.path().join(NOTE)).context("failed to read the lighthouse")?;
    source.write(NOTE, &format!("{note}{BEACON}"))?;
    source.write(LOGBOOK, KEPT)?;
    source.replace(
        STAGES,
        "    action: delete\n",
        &format!("    action: delete\n{timeout}"),
    )?;
    let tag = journey.releases.publish_stack(&source.path(), version)?;
    release_of(journey, &tag, "v2", version).await?;
    Ok(tag)
}

/// What the Cluster takes values from, for all of its charts.
const VALUES: &str = "lights";

/// The Cluster gets its add-ons, and a cloud takes the beacon in.
async fn has_a_beacon(journey: &Journey, ground: &Ground, class: &str, version: &str) -> Result<Api<Service>> {
    journey.apply(region("Secret", VALUES, "north", true)).await?;
    let mut web = cluster(CLUSTER, class, KUBERNETES, 1);
    web["metadata"]["annotations"] = json!({ labels::VALUES_FROM: format!("secret/{VALUES}") });
    journey.apply(web).await?;
    let beacon = json!({ "spec": { "type": "LoadBalancer" } });
    let beacon = Expected::new(("v1", "Service"), BEACON_OF_CLUSTER, "lighthouse", beacon);
    let wanted = [stack::expected(version), vec![beacon, logbook()]].concat();
    ground.complete_with(journey, class, version, &wanted).await?;
    let services: Api<Service> = Api::namespaced(ground.workload.client(), BEACON_OF_CLUSTER.0);
    kept_by(&services, &[CLEANUP]).await?;
    Ok(services)
}

/// Somebody deletes the Cluster together with what it takes values from.
async fn both_are_deleted(journey: &Journey) -> Result<()> {
    journey.delete::<Secret>(VALUES).await?;
    ask_for_the_end(journey).await
}

/// The deletion of the Cluster waits, and says for what.
async fn waits_for_the_beacon(journey: &Journey, ground: &Ground, services: &Api<Service>) -> Result<()> {
    let what = deleting_the_beacon();
    until_addon(journey, "the stage to say which object holds it up", |status| {
        let message = status.stages.first().and_then(|stage| stage.message.as_deref());
        message.is_some_and(|message| message.contains(&what)) && is_forgotten(status)
    })
    .await?;
    let beacon = services.get(BEACON_OF_CLUSTER.1).await?;
    ensure!(beacon.metadata.deletion_timestamp.is_some(), "{:?}", beacon.metadata);
    let there = stack::ours(&ground.workload.client(), &ground.home).await?;
    let mooring = "Mooring quay/cluster-addon-lighthouse";
    ensure!(!there.contains(mooring), "{mooring} is among {there:#?}");
    let plane = control_plane(journey, "ShimControlPlane").await?;
    ensure!(plane.metadata.deletion_timestamp.is_none(), "{:?}", plane.metadata);
    Ok(())
}

fn deleting_the_beacon() -> String {
    format!(
        "deleting ConfigMap cluster-addon-lighthouse; Service {}",
        BEACON_OF_CLUSTER.1
    )
}

/// Somebody gives the beacon these finalizers.
async fn kept_by(services: &Api<Service>, finalizers: &[&str]) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let patched = services
        .patch(BEACON_OF_CLUSTER.1, &PatchParams::default(), &patch)
        .await;
    patched.map(drop).context("failed to write finalizers")
}

/// F13: not only has it to be asked for that it goes, it has to be gone; its name is one that only the values of the cluster know. What says that it is to
/// be kept holds nothing up. Nor does it matter that the values go with the Cluster: who has made some goes on with them, and who begins anew by what the status says.
#[test]
fn f13_a_cluster_that_is_deleted_waits_until_its_load_balancer_is_gone_and_for_no_longer_than_its_stages_may_take()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let patient = with_a_beacon(journey, "v4", "").await?;
        let hasty = with_a_beacon(journey, "v5", "    timeout: 30s\n").await?;
        let client = ground.workload.client();
        let services = has_a_beacon(journey, ground, &patient, "v4").await?;
        journey.kill_operator().await?;
        both_are_deleted(journey).await?;
        journey.operate().await?;
        waits_for_the_beacon(journey, ground, &services).await?;
        says_what_holds_it_up(journey, ground, &deleting_the_beacon()).await?;
        kept_by(&services, &[]).await?;
        both_are_gone(journey).await?;
        let left = services.get_opt(BEACON_OF_CLUSTER.1).await?;
        ensure!(left.is_none(), "{left:#?}");
        let logbook = form_of_logbook(&client).await?;

        // Another cluster of the name finds what was kept.
        let services = has_a_beacon(journey, ground, &hasty, "v5").await?;
        both_are_deleted(journey).await?;
        waits_for_the_beacon(journey, ground, &services).await?;
        let addon = journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?;
        let deadline = status(&addon).hook.and_then(|hook| hook.deadline);
        let deadline = deadline.context("the wait has no end")?.0;
        both_are_gone(journey).await?;
        ensure!(Timestamp::now() >= deadline, "it went before {deadline}");
        let left = services.get(BEACON_OF_CLUSTER.1).await?;
        ensure!(left.finalizers() == [CLEANUP], "{:?}", left.metadata);
        let now = form_of_logbook(&client).await?;
        ensure!(now == logbook, "{now:?} instead of {logbook:?}");
        Ok(())
    })
}
