//! The kubeconfig of a Cluster is written anew: with other credentials, in the middle of a stage and when all are over, or of another API server. The operator
//! that runs takes the new one.

use std::{collections::BTreeSet, mem};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{AddonVersion, StagePhase},
    conditions::{ConditionStatus, ConditionType, find},
};
use e2e::{
    ControlPlane, Journey, Options,
    audit::Mark,
    control_plane::ClientAuthority,
    eventually,
    journey::SOON,
    shim::{Hold, Workload, cluster},
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::Time};
use kube::Api;

use crate::{
    changed::{change_the_agent, delete_the_note},
    ground::{CLUSTER, Ground, OPERATOR, ask, class, on_the_newest, phases, status, until_addon},
    stack,
};

/// The workload cluster with a kubeconfig that names an administrator of this name, with a certificate of this authority.
pub(crate) async fn told(ground: &Ground, authority: &ClientAuthority, name: &str) -> Result<Workload> {
    let access = ground.workload.access();
    Workload::at(access)
        .await?
        .told_by(&authority.kubeconfig(access, name)?)
}

/// From now on the kubeconfig of the Cluster is that one.
async fn tell(ground: &Ground, authority: &ClientAuthority, name: &str) -> Result<()> {
    ground.web().serve(&told(ground, authority, name).await?);
    Ok(())
}

/// From now on the API server knows users of these authorities, and those of the other no more.
async fn revoke(ground: &Ground, other: &ClientAuthority, known: &[&ClientAuthority]) -> Result<()> {
    ground.workload.know_clients_of(known)?;
    let access = ground.workload.access();
    let first = known.first().context("nobody is known")?;
    let [stranger, friend] = [
        other.client(access, "anybody").await?,
        first.client(access, "anybody").await?,
    ];
    eventually(SOON, "the API server to know the one and not the other", async || {
        Api::<Namespace>::all(friend.clone()).get("default").await?;
        match Api::<Namespace>::all(stranger.clone()).get("default").await {
            Err(kube::Error::Api(refusal)) if refusal.code == 401 => Ok(()),
            other => anyhow::bail!("{other:?}"),
        }
    })
    .await
}

/// An object is changed and one is deleted.
async fn meddle(ground: &Ground) -> Result<()> {
    let client = ground.workload.client();
    change_the_agent(&client).await?;
    delete_the_note(&client).await
}

/// In whose names the operator wrote there since then.
async fn writers(ground: &Ground, mark: Mark) -> Result<BTreeSet<String>> {
    let events = ground.workload.audit_log().since(mark).await?;
    let accepted = events.of_agent(OPERATOR).writes().filter(|event| event.code < 300);
    Ok(accepted.iter().map(|event| event.user.clone()).collect())
}

/// The first stage has done its work, and what it waits for has not come.
fn is_waiting(status: &ClusterAddonStatus) -> bool {
    phases(status).first() == Some(&("network", StagePhase::WaitingForPostCondition))
}

/// What the add-ons are to be, and how long the first stage may take on the way there.
fn until_when(addon: &ClusterAddon) -> (Option<AddonVersion>, Option<Time>) {
    let mut status = status(addon);
    (status.target.take(), status.stages.swap_remove(0).deadline)
}

/// The Cluster is made, and while its first stage waits, the credentials are renewed: the stage goes on by the new ones, in the time that it had. The third
/// authority is one that is not used yet.
async fn in_the_middle_of_a_stage(
    journey: &Journey,
    ground: &Ground,
    class: &str,
    [first, second, third]: [&ClientAuthority; 3],
) -> Result<()> {
    let web = ground.web();
    web.hold(Hold::Machines);
    let begun = ground.workload.audit_log().mark().await?;
    journey.apply(cluster(CLUSTER, class, "v1.34.0", 1)).await?;
    let addon = until_addon(journey, "the network to be waited for", is_waiting).await?;
    let before = until_when(&addon);
    let writers = writers(ground, begun).await?;
    ensure!(writers.iter().eq(["first"]), "{writers:?} wrote");

    tell(ground, second, "second").await?;
    revoke(ground, first, &[second, third]).await?;
    let renewed = ground.workload.audit_log().mark().await?;
    ask(journey, "renewed").await?;
    let addon = until_addon(journey, "the network to be waited for still", is_waiting).await?;
    let after = until_when(&addon);
    // What values are made of may just then have come to the Cluster: with another target the stage begins anew.
    let is_same = before.0 == after.0;
    ensure!(
        before.1.is_some() && (before.1 == after.1) == is_same,
        "{after:?} instead of {before:?}"
    );
    web.release(Hold::Machines);
    is_put_right_by(journey, ground, class, renewed, "second").await
}

/// What somebody changed is put back in this name alone.
async fn is_put_right_by(journey: &Journey, ground: &Ground, class: &str, mark: Mark, name: &str) -> Result<()> {
    ground.complete(journey, class, "v1").await?;
    let writers = writers(ground, mark).await?;
    ensure!(writers.iter().eq([name]), "{writers:?} wrote");
    Ok(())
}

/// The Cluster has moved: everything is brought there, and nothing is written where it was.
async fn follows(journey: &Journey, ground: &mut Ground, class: &str) -> Result<()> {
    let options = Options {
        workloads: true,
        ..Options::default()
    };
    let other = ControlPlane::start(options).await?;
    ground.without_kubelets();
    let left = mem::replace(&mut ground.workload, other);
    ground.with_kubelets().await?;
    let mark = left.audit_log().mark().await?;
    ground.web().serve(&Workload::at(ground.workload.access()).await?);
    ground.complete(journey, class, "v1").await?;
    let written = left.audit_log().since(mark).await?.of_agent(OPERATOR).writes();
    ensure!(written.is_empty(), "{written:#?}");
    let there = stack::ours(&left.client(), &ground.home).await?;
    ensure!(!there.is_empty(), "it is left as it was");
    Ok(())
}

#[test]
fn a_kubeconfig_that_is_renewed_in_the_middle_of_a_stage_or_later_or_names_another_api_server_is_taken_by_the_operator_that_runs()
-> Result<()> {
    on_the_newest(async |journey, ground| {
        let [first, second, third, fourth] = [
            ClientAuthority::new()?,
            ClientAuthority::new()?,
            ClientAuthority::new()?,
            ClientAuthority::new()?,
        ];
        ground.workload.know_clients_of(&[&first, &second, &third])?;
        tell(ground, &first, "first").await?;
        let class = class(journey, "v1", "v1").await?;
        let process = journey.operator()?.process_id().context("no operator runs")?;
        in_the_middle_of_a_stage(journey, ground, &class, [&first, &second, &third]).await?;

        tell(ground, &third, "third").await?;
        revoke(ground, &second, &[&third]).await?;
        let mark = ground.workload.audit_log().mark().await?;
        meddle(ground).await?;
        is_put_right_by(journey, ground, &class, mark, "third").await?;

        let mark = ground.workload.audit_log().mark().await?;
        revoke(ground, &third, &[&fourth]).await?;
        meddle(ground).await?;
        until_addon(journey, "the refusal to be told", |status| {
            let reached = find(&status.conditions, ConditionType::ClusterReady);
            reached.is_some_and(|reached| reached.status == ConditionStatus::False)
        })
        .await?;
        tell(ground, &fourth, "fourth").await?;
        is_put_right_by(journey, ground, &class, mark, "fourth").await?;

        follows(journey, ground, &class).await?;
        let now = journey.operator()?.process_id();
        ensure!(now == Some(process), "another operator runs");
        Ok(())
    })
}
