//! Class and Kubernetes version of a Cluster are changed together: the hooks hold Cluster API back until the add-ons are ready for it (A6, A8, F2, F5, F7, F8,
//! F10, F12, F14). And a class alone is changed: for one with the same add-ons (A6), and for one whose first stage takes long (A9, F5).

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon,
    cluster_addon::{StagePhase, name_for},
    labels,
};
use e2e::{
    Journey,
    cluster_api::Release,
    eventually,
    hooks::Hook,
    journey::SOON,
    releases::StackSource,
    shim::{Hold, cluster},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    ground::{
        CLUSTER, Ground, answered_again, class, control_plane, course, each_of_run, on_the_newest, phases, release_of,
        set_topology, status, until_addon, until_cluster,
    },
    reshaped, stack,
    values::change_cluster,
};

/// The kind of control planes here.
pub(crate) const CONTROL_PLANE: &str = "ShimControlPlane";

/// What happens to the operator at every station of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Fair,
    /// It is killed, and what it wrote into the status of the ClusterAddon is lost.
    Deadly,
}

impl Weather {
    async fn strike(self, journey: &mut Journey) -> Result<()> {
        if self == Self::Fair {
            return Ok(());
        }
        journey.kill_operator().await?;
        let nothing = Patch::Merge(json!({ "status": null }));
        let wiped = journey
            .api::<ClusterAddon>()
            .patch_status(&name_for(CLUSTER), &PatchParams::default(), &nothing)
            .await;
        wiped.context("failed to empty the status")?;
        journey.operate().await
    }
}

/// The Pods of the network are lost, and nothing brings others up.
pub(crate) async fn lose_the_network(ground: &mut Ground) -> Result<()> {
    ground.without_kubelets();
    let pods: Api<Pod> = Api::namespaced(ground.workload.client(), "kube-system");
    let all = ListParams::default().labels("app=cluster-addon-network");
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete_collection(&at_once, &all).await.map(drop)?;
    Ok(())
}

/// A6, A8, F2, F5, F7, F12 and F14.
fn both_together(release: Release, weather: Weather) -> Result<()> {
    course(release, async |journey, ground| {
        let [old, new] = [class(journey, "v1", "v1").await?, class(journey, "v2", "v2").await?];
        let web = ground.web();
        web.hold(Hold::Machines);
        journey.apply(cluster(CLUSTER, &old, "v1.34.0", 1)).await?;
        let waits = |status: &_| phases(status).first() == Some(&("network", StagePhase::WaitingForPostCondition));
        until_addon(journey, "the network to be waited for", waits).await?;
        weather.strike(journey).await?;
        web.release(Hold::Machines);
        ground.complete(journey, &old, "v1").await?;
        is_marked(journey, labels::STAGE_CREATED).await?;
        let client = ground.workload.client();
        let before = stack::uids(&client, "v1").await?;

        lose_the_network(ground).await?;
        web.hold(Hold::Upgrade);
        set_topology(journey, &new, "v1.35.0").await?;
        is_held_back(journey, ground).await?;
        weather.strike(journey).await?;
        is_held_back(journey, ground).await?;
        if weather == Weather::Deadly {
            is_given_up_and_begun_again(journey, ground, [&old, &new]).await?;
        }

        ground.with_kubelets().await?;
        eventually(SOON, "the control plane to be told the new version", async || {
            let plane = control_plane(journey, CONTROL_PLANE).await?;
            ensure!(plane.data["spec"]["version"] == "v1.35.0", "{:#}", plane.data);
            Ok(())
        })
        .await?;
        weather.strike(journey).await?;
        let waits = |status: &_| phases(status) == [("network", StagePhase::Done), ("lighthouse", StagePhase::Pending)];
        until_addon(journey, "the stage after the upgrade to be next", waits).await?;
        is_half_way(ground).await?;

        web.release(Hold::Upgrade);
        let addon = ground.complete(journey, &new, "v2").await?;
        let version = status(&addon).applied.and_then(|applied| applied.kubernetes_version);
        assert_eq!(version.as_deref(), Some("v1.35.0"));
        is_marked(journey, labels::STAGE_UPGRADED).await?;
        stack::are_the_same(&before, &stack::uids(&client, "v2").await?)?;
        ground.looks_write_nothing(journey, "upgraded").await
    })
}

/// F14: the annotation of the Go operator says whether the add-ons are as creation made them, or were upgraded since.
async fn is_marked(journey: &Journey, stage: &str) -> Result<()> {
    let says = |addon: &ClusterAddon| {
        let said = addon.annotations().get(labels::CLUSTER_ADDON_STAGE);
        said.is_some_and(|said| said == stage)
    };
    let what = format!("the add-ons to be marked as {stage}");
    journey.until(&name_for(CLUSTER), &what, says).await.map(drop)
}

/// Lets Cluster API take an earlier Kubernetes version, which it refuses otherwise although the control plane has not left it.
const ANY_VERSION: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";

/// A8, F8: an upgrade that is held back is given up, and asked for once more. The Go operator remembered the class of the first call, and took the second upgrade
/// to it for done.
async fn is_given_up_and_begun_again(journey: &mut Journey, ground: &mut Ground, [old, new]: [&str; 2]) -> Result<()> {
    let any_version = json!({ "metadata": { "annotations": { ANY_VERSION: "" } } });
    change_cluster(journey, any_version).await?;
    set_topology(journey, old, "v1.34.0").await?;
    // As soon as there is a network again, what is still wanted goes on.
    until_addon(journey, "the first class to be wanted again", |status| {
        let target = status.target.as_ref();
        target.is_some_and(|target| target.cluster_stack == old)
    })
    .await?;
    ground.with_kubelets().await?;
    ground.complete(journey, old, "v1").await?;

    lose_the_network(ground).await?;
    set_topology(journey, new, "v1.35.0").await?;
    is_held_back(journey, ground).await?;
    answered_again(journey, Hook::BeforeClusterUpgrade, "hold").await?;
    is_held_back(journey, ground).await
}

/// Before the upgrade of Kubernetes the new network has to be ready, which it is not; the Cluster says in our words what holds it up.
pub(crate) async fn is_held_back(journey: &Journey, ground: &Ground) -> Result<()> {
    let waits = [
        ("network", StagePhase::WaitingForPostCondition),
        ("lighthouse", StagePhase::Pending),
    ];
    until_addon(journey, "the new network to be waited for", |status| {
        phases(status) == waits
            && status
                .hook
                .as_ref()
                .is_some_and(|hook| hook.name == "BeforeClusterUpgrade")
    })
    .await?;
    until_cluster(journey, "the Cluster to say what holds it up", |cluster| {
        let said = cluster["status"].to_string();
        ["BeforeClusterUpgrade", "network"]
            .iter()
            .all(|word| said.contains(word))
    })
    .await?;
    is_half_way(ground).await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["spec"]["version"] == "v1.34.0", "{:#}", plane.data);
    Ok(())
}

/// The first stage has done its work and the second has not begun; what leaves the add-ons is there until all is done.
async fn is_half_way(ground: &Ground) -> Result<()> {
    let there = stack::ours(&ground.workload.client(), &ground.home).await?;
    for trace in [
        "ConfigMap kube-system/cluster-addon-network",
        "ConfigMap kube-system/cluster-addon-routes",
    ] {
        ensure!(there.contains(trace), "{trace} is not among {there:#?}");
    }
    let service = "Service quay/cluster-addon-lighthouse";
    ensure!(!there.contains(service), "{service} is among {there:#?}");
    Ok(())
}

#[test]
fn a8_f2_f5_f7_f12_f14_class_and_kubernetes_are_upgraded_together_and_cluster_api_waits_for_the_add_ons_on_1_10()
-> Result<()> {
    both_together(Release::V1_10, Weather::Fair)
}

#[test]
fn a8_f2_f5_f7_f12_f14_class_and_kubernetes_are_upgraded_together_and_cluster_api_waits_for_the_add_ons_on_1_12()
-> Result<()> {
    both_together(Release::V1_12, Weather::Fair)
}

#[test]
fn a8_f2_f5_f7_f12_f14_class_and_kubernetes_are_upgraded_together_and_cluster_api_waits_for_the_add_ons_on_1_13()
-> Result<()> {
    both_together(Release::V1_13, Weather::Fair)
}

#[test]
fn a8_f2_f5_f7_f12_f14_class_and_kubernetes_are_upgraded_together_and_cluster_api_waits_for_the_add_ons_on_1_14()
-> Result<()> {
    both_together(Release::V1_14, Weather::Fair)
}

/// A8, F8: the restart in the middle, and a second upgrade to the same class. Losing the whole status costs time only. F10: a hook is called for a ClusterAddon
/// that names no release before.
#[test]
fn a8_f8_f10_an_operator_that_is_killed_and_loses_its_status_at_every_station_comes_to_the_same_end_by_a_second_upgrade_to_a_class()
-> Result<()> {
    each_of_run(|release| both_together(release, Weather::Deadly))
}

/// A6: the second class has other workers and the same add-ons.
#[test]
fn a6_a_class_with_the_same_add_ons_writes_nothing_to_the_workload_cluster() -> Result<()> {
    on_the_newest(async |journey, ground| {
        let first = class(journey, "v2", "v2").await?;
        let source = StackSource::quay("v2")?;
        source.replace("cluster-class/values.yaml", "large", "huge")?;
        let second = journey.releases.publish_next(&source.path())?;
        release_of(journey, &second, "v2", "v3").await?;
        journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
        ground.complete(journey, &first, "v2").await?;
        ground.looks_write_nothing(journey, "before").await?;
        let mark = ground.workload.audit_log().mark().await?;
        set_topology(journey, &second, "v1.35.0").await?;
        ground.complete(journey, &second, "v2").await?;
        let written = ground.written_since(mark).await?;
        ensure!(written.is_empty(), "{written:#?}");
        Ok(())
    })
}

/// How long the Go operator asked before it took a stage that still waits for done.
const PATIENCE_OF_THE_GO_OPERATOR: SignedDuration = SignedDuration::from_secs(20);

/// A9, F5: and what the release no longer has goes when all of them are done, not before; but what says that it is to be kept stays.
#[test]
fn a9_f5_an_upgrade_of_the_same_kubernetes_waits_for_its_first_stage_for_as_long_as_it_takes_and_then_does_the_rest()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let source = StackSource::quay("v2")?;
        source.write(reshaped::LOGBOOK, reshaped::KEPT)?;
        let first = journey.releases.publish_stack(&source.path(), "v2")?;
        release_of(journey, &first, "v2", "v2").await?;
        let second = journey.releases.publish_next(&without_its_service()?.path())?;
        release_of(journey, &second, "v2", "v3").await?;
        journey.apply(cluster(CLUSTER, &first, "v1.35.0", 1)).await?;
        let wanted = [stack::expected("v2"), vec![reshaped::logbook()]].concat();
        ground.complete_with(journey, &first, "v2", &wanted).await?;
        let logbook = reshaped::form_of_logbook(&ground.workload.client()).await?;
        waits_and_does_the_rest(journey, ground, &second).await?;
        let addon = journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?;
        reshaped::is_left(&ground.workload.client(), &status(&addon), &logbook).await
    })
}

/// The stack of `v2` with another agent and without its Service.
pub(crate) fn without_its_service() -> Result<StackSource> {
    let source = StackSource::quay("v2")?;
    source.replace(reshaped::NOTE, reshaped::SERVICE, "")?;
    source.replace(reshaped::AGENT, stack::image("v2"), stack::image("v3"))?;
    Ok(source)
}

/// The Cluster, which has a version of `v2`, is given a class of that source while no Pod becomes ready.
pub(crate) async fn waits_and_does_the_rest(journey: &Journey, ground: &mut Ground, class: &str) -> Result<()> {
    let client = ground.workload.client();
    let service = "Service quay/cluster-addon-lighthouse";
    lose_the_network(ground).await?;
    set_topology(journey, class, "v1.35.0").await?;
    eventually(SOON * 2, "the first stage to wait for long", async || {
        let addon = journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?;
        let told = status(&addon);
        let stage = told.stages.first().context("no stage")?;
        let since = stage.since.as_ref().context("it does not wait")?.0;
        ensure!(stage.phase == StagePhase::WaitingForPostCondition, "{told:#?}");
        ensure!(
            Timestamp::now().duration_since(since) > PATIENCE_OF_THE_GO_OPERATOR,
            "{since}"
        );
        ensure!(!told.ready && told.applied != told.target, "{told:#?}");
        Ok(())
    })
    .await?;
    let there = stack::ours(&client, &ground.home).await?;
    ensure!(there.contains(service), "nothing goes before all is done: {there:#?}");

    ground.with_kubelets().await?;
    until_addon(journey, "all stages to be done", |told| {
        told.ready && told.applied == told.target && told.stages.iter().all(|stage| stage.phase == StagePhase::Done)
    })
    .await?;
    let there = stack::ours(&client, &ground.home).await?;
    ensure!(!there.contains(service), "{there:#?}");
    ground.looks_write_nothing(journey, "upgraded").await
}
