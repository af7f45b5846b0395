//! Two replicas of the operator: one leads and does the work, and whichever Cluster API reaches gives the answers (A8, F8).

use anyhow::{Context, Result, ensure};
use crds::{ClusterAddon, cluster_addon::name_for, labels};
use e2e::{
    Journey, Operator, OperatorOptions, eventually,
    hooks::{Hook, Recorder, extension_configs},
    journey::SOON,
    lapse::lapse,
    shim::{Hold, cluster},
};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    ground::{CLUSTER, answers_of, class, control_plane, extension_of, on_the_newest, set_topology},
    upgraded::{CONTROL_PLANE, is_held_back, lose_the_network},
};

/// Instead of the operator that runs there are two that stand for election; the answer is the second, which does not lead.
async fn replicas(journey: &mut Journey) -> Result<Operator> {
    journey.kill_operator().await?;
    let elected = [
        "--leader-elect=true".to_owned(),
        format!("--leader-elect-namespace={}", journey.namespace),
    ];
    journey.options.flags.extend(elected.map(Into::into));
    journey.operate().await?;
    let mut flags = journey.options.flags.clone();
    flags.retain(|flag| !flag.to_string_lossy().starts_with("--hook-port"));
    flags.push("--hook-port=0".into());
    let options = OperatorOptions {
        flags,
        record: Some(journey.folder().join("decisions-of-the-second")),
        log: journey.folder().join("second.log"),
        ..journey.options.clone()
    };
    let mut second = Operator::start(journey.lab(), &options)?;
    second.ready().await?;
    Ok(second)
}

/// Tells Cluster API that whoever listens on this port answers, and returns when it has asked there.
async fn answered_by(journey: &Journey, port: u16) -> Result<()> {
    let configurations = extension_configs(&journey.client);
    let address = json!({ "spec": { "clientConfig": { "url": format!("https://127.0.0.1:{port}") } } });
    let (how, what) = (PatchParams::default(), Patch::Merge(address));
    let patched = configurations.patch(extension_of(journey), &how, &what).await;
    patched.context("failed to name another address")?;
    Recorder::discovered(&journey.client, extension_of(journey))
        .await
        .map(drop)
}

#[test]
fn a8_f8_a_replica_that_does_not_lead_answers_the_hooks_and_carries_a_held_upgrade_to_its_end_when_the_leader_dies()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let mut second = replicas(journey).await?;
        answered_by(journey, second.hook_port().await?).await?;
        let [old, new] = [class(journey, "v1", "v1").await?, class(journey, "v2", "v2").await?];
        journey.apply(cluster(CLUSTER, &old, "v1.34.0", 1)).await?;
        ground.complete(journey, &old, "v1").await?;

        lose_the_network(ground).await?;
        set_topology(journey, &new, "v1.35.0").await?;
        is_held_back(journey, ground).await?;
        let noted = format!("{}@v1.35.0@{new}", Hook::BeforeClusterUpgrade.name());
        let is_noted = |addon: &ClusterAddon| addon.annotations().get(labels::HOOK_CALLED) == Some(&noted);
        journey
            .until(&name_for(CLUSTER), "the call to be noted", is_noted)
            .await?;
        let held = answers_of(&mut second, Hook::BeforeClusterUpgrade, "hold").await?;
        let by_the_leader = answers_of(journey.operator()?, Hook::BeforeClusterUpgrade, "hold").await?;
        ensure!(held > 0.0 && by_the_leader == 0.0, "{held} and {by_the_leader}");

        let leader = journey.operator()?.process_id().context("the leader does not run")?;
        journey.kill_operator().await?;
        lapse(journey, leader).await?;
        is_held_back(journey, ground).await?;
        ground.web().hold(Hold::Upgrade);
        ground.with_kubelets().await?;
        eventually(SOON, "the control plane to be told the new version", async || {
            let plane = control_plane(journey, CONTROL_PLANE).await?;
            ensure!(plane.data["spec"]["version"] == "v1.35.0", "{:#}", plane.data);
            Ok(())
        })
        .await?;
        ground.web().release(Hold::Upgrade);
        ground.complete(journey, &new, "v2").await?;
        second.check()
    })
}
