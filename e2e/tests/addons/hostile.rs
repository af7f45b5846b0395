//! Releases, Clusters, kubeconfigs and API servers of clusters that want what is not theirs, all at once before one operator: each is told of where its
//! owner looks, none gets anything, and the honest cluster beside them does not notice (F36).

mod bait;
mod bombs;
mod honest;
mod kubeconfigs;
mod memory;
mod published;
mod releases;
mod servers;

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use crds::{
    ClusterAddonStatus,
    conditions::{ConditionType, find},
};
use e2e::{
    ControlPlane, Journey, Operator, Options,
    hostile_server::{HostileServer, Reply},
    journey::journey,
    planted::Planted,
    shim::Workload,
    usage::Usage,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};

use self::{
    bait::Bait,
    honest::{HONEST, Honest},
    releases::Releases,
    servers::Attacker,
};
use crate::{
    by_hand::{ByHand, says, until_status},
    ground::status,
};

/// What is in files, Secrets, kubeconfigs and the environment, and may be nowhere else.
const CANARY: &str = "salamis-480-before-plataea-479";
/// How the chart writes it that changes it on the way.
const SHOUTED: &str = "SALAMIS-480-BEFORE-PLATAEA-479";
/// The variable in the environment of the operator that has it.
const VARIABLE: &str = "STACKWRIGHT_TREASURE";
const STACK: &str = "harbor";
const SPY: &str = "spy";

/// The most that the operator may ever have resident, in MiB: a build for debugging, with all of them at once.
const MOST_MEMORY: f64 = 400.0;

/// The most time of processors that it may have used when all of them are told: a build for debugging. What is stopped is not tried again at once.
const MOST_WORK: Duration = Duration::from_mins(4);

/// Everything that the operator writes here and may not write a secret into.
const WRITTEN: [(&str, &str); 7] = [
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterStack"),
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterStackRelease"),
    ("clusterstack.x-k8s.io/v1alpha1", "ClusterAddon"),
    ("cluster.x-k8s.io/v1beta1", "Cluster"),
    ("v1", "ConfigMap"),
    ("events.k8s.io/v1", "Event"),
    ("coordination.k8s.io/v1", "Lease"),
];

/// A cluster with something wrong, and how that is told.
struct Attack {
    cluster: String,
    /// Instead of the honest one.
    class: Option<String>,
    /// Instead of a good one.
    kubeconfig: Option<Vec<u8>>,
    secret_type: &'static str,
    /// What is otherwise in the spec of its Cluster.
    spec: Value,
    condition: ConditionType,
    reason: Option<&'static str>,
    /// One of these is said.
    words: Vec<String>,
}

impl Default for Attack {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            class: None,
            kubeconfig: None,
            secret_type: "cluster.x-k8s.io/secret",
            spec: json!({}),
            condition: ConditionType::HelmChartTemplated,
            reason: None,
            words: Vec::new(),
        }
    }
}

impl Attack {
    async fn bring(&self, journey: &Journey, honest: &ByHand) -> Result<()> {
        let attack = ByHand {
            secret_type: self.secret_type,
            spec: self.spec.clone(),
            ..ByHand::new(
                &self.cluster,
                self.class.as_ref().unwrap_or(&honest.class),
                self.kubeconfig.as_ref().unwrap_or(&honest.kubeconfig),
            )
        };
        attack.bring(journey).await.map(drop)
    }

    async fn is_told(&self, journey: &Journey) -> Result<()> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let is_told = |status: &ClusterAddonStatus| {
            let found = find(&status.conditions, self.condition);
            let reason = found.and_then(|found| found.reason.as_deref());
            !status.ready
                && says(status, self.condition, &words)
                && self.reason.is_none_or(|wanted| reason == Some(wanted))
        };
        let what = format!("{} to be told with {words:?}", self.condition.as_str());
        until_status(journey, &self.cluster, &what, is_told).await.map(drop)
    }
}

/// References of Clusters to what is no part of a cluster.
fn references(elsewhere: &str) -> Vec<Attack> {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "treasure" });
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": "treasure" });
    let neighbour = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster", "name": "treasure", "namespace": elsewhere,
    });
    let referring = |name: &str, field: &str, reference: Value, words: &str| Attack {
        cluster: name.to_owned(),
        spec: json!({ field: reference }),
        words: vec![words.to_owned()],
        ..Attack::default()
    };
    vec![
        referring(
            "refers-to-a-secret",
            "controlPlaneRef",
            secret.clone(),
            "names Secret of the group \"\"",
        ),
        referring(
            "rests-on-a-secret",
            "infrastructureRef",
            secret,
            "names Secret of the group \"\"",
        ),
        referring(
            "refers-to-a-role",
            "controlPlaneRef",
            role,
            "of the group \"rbac.authorization.k8s.io\"",
        ),
        referring(
            "neighbour",
            "infrastructureRef",
            neighbour,
            "names an object in the namespace",
        ),
    ]
}

/// What nobody may read, where the operator may read it.
async fn treasures(journey: &Journey, workload: &ControlPlane, elsewhere: &str) -> Result<()> {
    let secret = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "treasure", "namespace": namespace },
            "stringData": { "password": CANARY },
        })
    };
    journey.apply(secret(&journey.namespace)).await?;
    journey.apply(secret(elsewhere)).await?;
    journey
        .apply(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster",
            "metadata": { "name": "treasure", "namespace": elsewhere, "annotations": { "treasure": CANARY } }, "spec": {},
        }))
        .await?;
    let own: Secret = serde_json::from_value(secret("kube-system"))?;
    let secrets: Api<Secret> = Api::namespaced(workload.client(), "kube-system");
    secrets.create(&PostParams::default(), &own).await?;
    Ok(())
}

/// Starts the operator with the canary in its environment.
async fn operate(journey: &Journey, flags: &[&str]) -> Result<Operator> {
    let mut options = journey.options.clone();
    options.flags.push("--log-level=debug".into());
    options.flags.extend(flags.iter().map(OsString::from));
    let mut command = options.command()?;
    command.env(VARIABLE, CANARY);
    let mut operator = Operator::start_as(journey.lab(), &command, &options.log)?;
    operator.ready().await?;
    Ok(operator)
}

/// Everything that is told anywhere, by where.
async fn told(journey: &Journey, operator: &mut Operator, workload: &ControlPlane) -> Result<Vec<(String, String)>> {
    let mut told = Vec::new();
    for (api_version, kind) in WRITTEN {
        let objects = journey.objects(api_version, kind).list(&ListParams::default()).await;
        let objects = objects.with_context(|| format!("failed to list {kind}"))?;
        told.push((kind.to_owned(), serde_json::to_string_pretty(&objects.items)?));
    }
    let secrets = journey.objects("v1", "Secret").list(&ListParams::default()).await?;
    let is_planted = |secret: &DynamicObject| {
        let name = secret.name_any();
        name == "treasure" || name.ends_with("-kubeconfig")
    };
    let others: Vec<_> = secrets.items.iter().filter(|secret| !is_planted(secret)).collect();
    told.push(("Secrets".to_owned(), serde_json::to_string_pretty(&others)?));
    let notes: Api<ConfigMap> = Api::all(workload.client());
    let notes = notes.list(&ListParams::default()).await?;
    told.push((
        "the workload cluster".to_owned(),
        serde_json::to_string_pretty(&notes.items)?,
    ));
    told.push(("metrics".to_owned(), operator.metrics_page().await?));
    for path in ["/healthz", "/readyz"] {
        told.push((path.to_owned(), operator.health(path).await?.1));
    }
    let log = fs::read_to_string(operator.log()).context("failed to read the log")?;
    told.push(("the log".to_owned(), log));
    for decision in files_below(&journey.decisions())? {
        let text = fs::read_to_string(&decision).with_context(|| format!("failed to read {}", decision.display()))?;
        told.push((decision.display().to_string(), text));
    }
    Ok(told)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let path = entry.context("failed to list decisions")?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// What may be told nowhere: the canary, in either form, and the credentials of the honest cluster.
fn planted(workload: &Workload) -> Result<Planted> {
    let kubeconfig: Value = serde_yaml::from_str(workload.kubeconfig())?;
    let token = kubeconfig.pointer("/users/0/user/token").and_then(Value::as_str);
    let mut planted = Planted::default();
    for secret in [CANARY, SHOUTED, token.context("a kubeconfig has a token")?] {
        planted.plant(secret);
    }
    Ok(planted)
}

/// All of them, and what they are aimed at.
struct Scene {
    served: Workload,
    bait: Bait,
    /// Nobody has a reason to ask it.
    decoy: HostileServer,
    honest: Honest,
    spy: ByHand,
    versions: Vec<String>,
    attacks: Vec<Attack>,
    attackers: Vec<Attacker>,
}

impl Scene {
    async fn set(journey: &Journey) -> Result<Self> {
        let workload = ControlPlane::start(Options::default()).await?;
        let served = Workload::at(workload.access()).await?;
        let elsewhere = journey.another_namespace().await?;
        treasures(journey, &workload, &elsewhere).await?;
        let bait = Bait::lay(&journey.folder().join("bait"), CANARY)?;
        let decoy = HostileServer::start(|_| Reply::answer("200 OK", &[], b"")).await?;
        let Releases {
            honest,
            spy,
            looker,
            mut attacks,
            versions,
        } = releases::publish(journey, &bait)?;
        attacks.extend(kubeconfigs::refused(served.kubeconfig(), &bait, &decoy.place())?);
        attacks.push(kubeconfigs::beyond_its_rights(&workload, &looker).await?);
        attacks.extend(references(&elsewhere));
        let good = served.kubeconfig().as_bytes();
        Ok(Self {
            spy: ByHand::new(SPY, &spy, good),
            attackers: servers::start(&decoy.place()).await?,
            honest: Honest::at(workload, &honest, &served),
            served,
            bait,
            decoy,
            versions,
            attacks,
        })
    }

    fn all(&self) -> impl Iterator<Item = &Attack> {
        let of_servers = self.attackers.iter().map(|attacker| &attacker.attack);
        self.attacks.iter().chain(of_servers)
    }

    /// All attack, and each server keeps whoever asked it waiting, or has answered.
    async fn attack(&self, journey: &Journey) -> Result<()> {
        try_join_all(self.all().map(|attack| attack.bring(journey, &self.honest.cluster))).await?;
        servers::are_asked(&self.attackers).await
    }

    /// Both are complete; the spy brought nothing home.
    async fn is_served(&self, journey: &Journey) -> Result<()> {
        self.honest.is_complete(journey).await?;
        self.spy.bring(journey).await?;
        until_status(journey, &self.spy.name, "ready", |status| status.ready).await?;
        let spoils = self.honest.note(&format!("{SPY}-spoils")).await?;
        ensure!(spoils.len() == 7, "it has not asked for everything: {spoils:?}");
        for (asked, given) in spoils {
            ensure!(
                ["", "{}", "[]", "null"].contains(&given.trim()),
                "it was given {given:?} for {asked}"
            );
        }
        Ok(())
    }

    /// Nothing was run, opened, asked or told that should not be, and not much was used.
    async fn nothing_was_gained(&self, journey: &Journey, operator: &mut Operator) -> Result<()> {
        let usage = Usage::of(operator.process_id().context("it runs")?)?;
        eprintln!("{usage:?}");
        ensure!(usage.peak_mib < MOST_MEMORY && usage.cpu < MOST_WORK, "{usage:?}");
        ensure!(self.decoy.asked() == 0, "somebody was led astray");
        let opened = self.bait.opened()?;
        ensure!(opened.is_empty(), "{opened:?} was opened");
        let planted = planted(&self.served)?;
        for (place, text) in told(journey, operator, &self.honest.workload).await? {
            let told = planted.told_in(&text);
            ensure!(told.is_none(), "{place} tells a secret: {told:?}");
        }
        operator.check()
    }
}

async fn no_more_than_the_honest_gets_anything(journey: &mut Journey) -> Result<()> {
    let journey: &Journey = journey;
    let scene = Scene::set(journey).await?;
    let mut operator = operate(journey, &["--allow-workload-loopback"]).await?;
    journey.stack(STACK, json!({ "versions": scene.versions })).await?;
    for ready in [&scene.honest.cluster, &scene.spy] {
        journey.release_ready(&ready.class).await?;
    }
    scene.attack(journey).await?;
    scene.is_served(journey).await?;
    scene.honest.is_served_until_told(journey, scene.all()).await?;
    scene.nothing_was_gained(journey, &mut operator).await?;
    operator.kill().await?;

    // Without the flag that tests need, the machine itself is no place for a cluster. What is there stays.
    let operator = operate(journey, &[]).await?;
    let words = ["is at an address where no cluster is"];
    let told = until_status(journey, HONEST, "its kubeconfig refused", |status| {
        says(status, ConditionType::ClusterReady, &words)
    })
    .await?;
    ensure!(!status(&told).resources.is_empty(), "{told:?}");
    operator.kill().await?;
    scene.honest.note(&format!("{HONEST}-note")).await.map(drop)
}

#[test]
fn f36_hostile_releases_clusters_kubeconfigs_and_servers_get_nothing_and_the_honest_cluster_beside_them_is_served()
-> Result<()> {
    journey(no_more_than_the_honest_gets_anything)
}
