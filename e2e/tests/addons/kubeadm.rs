//! The life of a Cluster whose control plane is one of kubeadm: the real providers do what the shim plays elsewhere, and make their machines of memory (A8, F13).
//!
//! Cluster API 1.12 alone: the docker provider of later minors is not published as a module, and only a run on everything has these managers. The API
//! server of the workload cluster is a fake that the docker provider plays, see `e2e/stacks/docker-yard`. Nobody who reads a watch by lines understands those
//! that it serves, of indented JSON; so a look is asked for while a stage waits for an object there, and at no other time: whatever else wakes the operator is
//! told by the real API server, or by Cluster API.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddon, ClusterAddonStatus,
    cluster_addon::{StagePhase, StageProgress, name_for},
    conditions::{ConditionType, is_true},
    labels,
};
use e2e::{
    Journey,
    cluster_api::{Manager, Provider, Release},
    eventually,
    hooks::Hook,
    journey::journey,
    shim::cluster,
};
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

use crate::ground::{
    CLUSTER, CLUSTER_API, answers, ask, control_plane, operate, phases, set_topology, status, subscribe, until_cluster,
};

const RELEASE: Release = Release::V1_12;
const PROVIDERS: [Provider; 4] = [
    Provider::Core,
    Provider::KubeadmBootstrap,
    Provider::KubeadmControlPlane,
    Provider::Docker,
];
const CONTROL_PLANE: &str = "KubeadmControlPlane";
/// What is made of a Cluster and goes with it. Secrets and templates are left to the garbage collector, which does not run here.
const PARTS: [(&str, &str); 6] = [
    ("cluster.x-k8s.io/v1beta1", "MachineDeployment"),
    ("cluster.x-k8s.io/v1beta1", "Machine"),
    ("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfig"),
    ("controlplane.cluster.x-k8s.io/v1beta1", CONTROL_PLANE),
    ("infrastructure.cluster.x-k8s.io/v1beta1", "DevCluster"),
    ("infrastructure.cluster.x-k8s.io/v1beta1", "DevMachine"),
];
/// Of a Cluster on each of its parts.
const OF_CLUSTER: &str = "cluster.x-k8s.io/cluster-name=web";
/// The first connection of Cluster API comes before the kubeconfig, and the second one half a minute later; a control plane needs some of them.
const SLOW: Duration = Duration::from_mins(5);

/// A version of the stack as a class; the answer is its name.
async fn class(journey: &Journey, version: &str) -> Result<String> {
    let tag = journey.releases.publish_yard(version, version)?;
    subscribe(journey, ("docker", "yard"), &tag, (version, version)).await?;
    Ok(tag)
}

/// The workload cluster, by the kubeconfig that its control plane made.
async fn workload(journey: &Journey) -> Result<Client> {
    let secrets: Api<Secret> = Api::namespaced(journey.client.clone(), &journey.namespace);
    let secret = secrets.get(&format!("{CLUSTER}-kubeconfig")).await?;
    let value = secret.data.and_then(|mut data| data.remove("value"));
    let text = String::from_utf8(value.context("the Secret has no kubeconfig")?.0)?;
    let config = Config::from_custom_kubeconfig(Kubeconfig::from_yaml(&text)?, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// What is said of the add-ons, for which nobody has asked.
async fn told(journey: &Journey) -> Result<ClusterAddonStatus> {
    let addon = journey.api::<ClusterAddon>().get(&name_for(CLUSTER)).await?;
    Ok(status(&addon))
}

/// The same after a look, now.
async fn looked(journey: &Journey) -> Result<ClusterAddonStatus> {
    ask(journey, &Timestamp::now().to_string()).await?;
    told(journey).await
}

/// Says how many Pods of the DNS are ready, as a kubelet and a controller would.
async fn ready_dns(workload: &Client, count: i32) -> Result<()> {
    // Of one in memory, not everything that a Deployment must have is there.
    let kind = ApiResource::erase::<Deployment>(&());
    let deployments: Api<DynamicObject> = Api::namespaced_with(workload.clone(), "kube-system", &kind);
    let status = Patch::Merge(json!({ "status": { "readyReplicas": count } }));
    let patched = deployments.patch("coredns", &PatchParams::default(), &status).await;
    patched.map(drop).context("failed to tell how the DNS is")
}

/// The ClusterAddon comes by itself to where it waits for the DNS, of which it says what it saw.
async fn waits_for_dns(journey: &Journey, stages: &[(&str, StagePhase)], hook: Hook) -> Result<()> {
    eventually(SLOW, format!("the stages of {hook:?} to be begun"), async || {
        let told = told(journey).await?;
        ensure!(phases(&told) == stages, "{:#?}", told.stages);
        Ok(())
    })
    .await?;
    eventually(SLOW, format!("the DNS to be waited for by {hook:?}"), async || {
        let told = looked(journey).await?;
        ensure!(phases(&told) == stages, "{:#?}", told.stages);
        let waiting = |stage: &&StageProgress| stage.phase == StagePhase::WaitingForPostCondition;
        let waiting = told.stages.iter().find(waiting).context("no stage waits")?;
        ensure!(waiting.hook.as_deref() == Some(&*hook.name()), "{waiting:#?}");
        let message = waiting.message.as_deref().unwrap_or_default();
        ensure!(message.contains("dns.status.readyReplicas"), "{message}");
        ensure!(!told.ready, "{told:#?}");
        Ok(())
    })
    .await
}

/// What the stage of a chart waits for in the cluster is there, and it is seen.
async fn goes_on(journey: &Journey, chart: &str) -> Result<()> {
    eventually(SLOW, format!("the stage of {chart} to be done"), async || {
        let told = looked(journey).await?;
        let is_done = |stage: &StageProgress| stage.name == chart && stage.phase == StagePhase::Done;
        ensure!(told.stages.iter().any(is_done), "{:#?}", told.stages);
        Ok(())
    })
    .await
}

/// The moment of the stage of a chart has come, without anybody asking.
async fn begins(journey: &Journey, chart: &str) -> Result<()> {
    eventually(SLOW, format!("the stage of {chart} to begin"), async || {
        let told = told(journey).await?;
        let has_begun = |stage: &StageProgress| stage.name == chart && stage.phase != StagePhase::Pending;
        ensure!(told.stages.iter().any(has_begun), "{:#?}", told.stages);
        Ok(())
    })
    .await
}

/// All add-ons of a class are there, for this Kubernetes version, and the cluster is one that answers. Nobody asks for it.
async fn complete(journey: &Journey, class: &str, kubernetes: &str) -> Result<()> {
    eventually(SLOW, format!("the add-ons of {class} to be complete"), async || {
        let told = told(journey).await?;
        ensure!(told.ready, "not ready: {told:#?}");
        let applied = told.applied.clone().context("nothing is applied")?;
        let version = applied.kubernetes_version.as_deref();
        ensure!(
            (&*applied.cluster_stack, version) == (class, Some(kubernetes)),
            "{applied:?}"
        );
        ensure!(
            is_true(&told.conditions, ConditionType::ClusterReady),
            "{:#?}",
            told.conditions
        );
        let open = told.stages.iter().filter(|stage| stage.phase != StagePhase::Done);
        ensure!(open.count() == 0, "{:#?}", told.stages);
        Ok(())
    })
    .await
}

/// Cluster API has asked each of these, and was told to go on.
async fn let_go(journey: &mut Journey, hooks: &[Hook]) -> Result<()> {
    for hook in hooks {
        ensure!(answers(journey, *hook, "go-on").await? > 0.0, "{hook:?}");
    }
    Ok(())
}

/// Every machine has this version, and those of another one are gone.
async fn all_rolled(journey: &Journey, version: &str) -> Result<()> {
    let machines = journey.objects(CLUSTER_API, "Machine");
    eventually(SLOW, format!("all machines to be of {version}"), async || {
        let machines = machines.list(&ListParams::default().labels(OF_CLUSTER)).await?.items;
        let versions: Vec<&str> = machines
            .iter()
            .filter_map(|machine| machine.data["spec"]["version"].as_str())
            .collect();
        ensure!(versions == [version; 2], "{versions:?}");
        let running = machines
            .iter()
            .all(|machine| machine.data["status"]["phase"] == "Running");
        ensure!(running, "not all of them run");
        Ok(())
    })
    .await
}

/// The Cluster and its ClusterAddon are gone, and with them everything that was made of it.
async fn nothing_is_left(journey: &Journey) -> Result<()> {
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SLOW, "the Cluster to be gone", async || {
        match clusters.get_opt(CLUSTER).await? {
            None => Ok(()),
            Some(cluster) => anyhow::bail!("{:#}", cluster.data["status"]),
        }
    })
    .await?;
    journey.gone::<ClusterAddon>(&name_for(CLUSTER)).await?;
    let of_cluster = ListParams::default().labels(OF_CLUSTER);
    for (api_version, kind) in PARTS {
        let left = journey.objects(api_version, kind).list(&of_cluster).await?.items;
        let left: Vec<_> = left.into_iter().map(|object| object.name_any()).collect();
        ensure!(left.is_empty(), "{kind}: {left:?}");
    }
    Ok(())
}

/// The Cluster gets its first add-ons, the last of which waits for the DNS.
async fn is_made(journey: &mut Journey, class: &str) -> Result<Client> {
    journey.apply(cluster(CLUSTER, class, "v1.34.0", 1)).await?;
    let stages = [
        ("network", StagePhase::Done),
        ("names", StagePhase::WaitingForPostCondition),
    ];
    waits_for_dns(journey, &stages, Hook::AfterControlPlaneInitialized).await?;
    let workload = workload(journey).await?;
    ready_dns(&workload, 1).await?;
    goes_on(journey, "names").await?;
    complete(journey, class, "v1.34.0").await?;
    all_rolled(journey, "v1.34.0").await?;
    let_go(
        journey,
        &[Hook::BeforeClusterCreate, Hook::AfterControlPlaneInitialized],
    )
    .await?;
    Ok(workload)
}

/// Class and Kubernetes version change together: the control plane is held back until the DNS is ready, and what comes after it waits for it.
async fn is_upgraded(journey: &mut Journey, workload: &Client, class: &str) -> Result<()> {
    ready_dns(workload, 0).await?;
    set_topology(journey, class, "v1.35.0").await?;
    let stages = [
        ("names", StagePhase::WaitingForPostCondition),
        ("network", StagePhase::Pending),
    ];
    waits_for_dns(journey, &stages, Hook::BeforeClusterUpgrade).await?;
    until_cluster(journey, "the Cluster to say what holds it up", |cluster| {
        let said = cluster["status"].to_string();
        ["BeforeClusterUpgrade", "names", "readyReplicas"]
            .iter()
            .all(|word| said.contains(word))
    })
    .await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["spec"]["version"] == "v1.34.0", "{:#}", plane.data);
    ensure!(answers(journey, Hook::BeforeClusterUpgrade, "hold").await? > 0.0);

    ready_dns(workload, 1).await?;
    goes_on(journey, "names").await?;
    begins(journey, "network").await?;
    // It waits for the proxy.
    goes_on(journey, "network").await?;
    complete(journey, class, "v1.35.0").await?;
    let plane = control_plane(journey, CONTROL_PLANE).await?;
    ensure!(plane.data["status"]["version"] == "v1.35.0", "{:#}", plane.data);
    all_rolled(journey, "v1.35.0").await?;
    let of_upgrade = [
        Hook::BeforeClusterUpgrade,
        Hook::BeforeControlPlaneUpgrade,
        Hook::AfterControlPlaneUpgrade,
        Hook::BeforeWorkersUpgrade,
        Hook::AfterWorkersUpgrade,
        Hook::AfterClusterUpgrade,
    ];
    let clusters = journey.objects(CLUSTER_API, "Cluster");
    eventually(SLOW, "Cluster API to owe no hook", async || {
        let owed = clusters
            .get(CLUSTER)
            .await?
            .annotations()
            .get(labels::PENDING_HOOKS)
            .cloned();
        ensure!(owed.is_none(), "{owed:?}");
        Ok(())
    })
    .await?;
    let_go(journey, &of_upgrade).await
}

#[test]
fn a8_f13_a_cluster_of_kubeadm_gets_its_add_ons_is_upgraded_in_step_with_them_and_goes_on_1_12() -> Result<()> {
    journey(async |here| {
        here.elsewhere(async |journey| {
            let mut managers = Vec::new();
            for provider in PROVIDERS {
                managers.push(Manager::start(journey.control_plane(), provider, RELEASE).await?);
            }
            operate(journey).await?;
            let [old, new] = [class(journey, "v1").await?, class(journey, "v2").await?];
            let workload = is_made(journey, &old).await?;
            is_upgraded(journey, &workload, &new).await?;
            let clusters = journey.objects(CLUSTER_API, "Cluster");
            clusters.delete(CLUSTER, &DeleteParams::default()).await?;
            nothing_is_left(journey).await?;
            let_go(journey, &[Hook::BeforeClusterDelete]).await
        })
        .await
    })
}
