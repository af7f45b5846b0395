//! The managers of Cluster API as processes of their own.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use http::StatusCode;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Provider, Release, kubeconfig_for,
    manifests::{Manifests, Serving},
};
use crate::{
    ControlPlane, Journey, Lab, Process,
    control_plane::free_port,
    definitions, eventually, operator,
    process::{Ended, SELDOM_COLLECTED},
    webhooks::Certificates,
};

/// Some seconds on an idle machine; several may start at once on two busy cores.
const READY_DEADLINE: Duration = Duration::from_mins(2);
/// A manager that leads nobody and has nothing to do may take half a minute to end by itself.
const STOP_DEADLINE: Duration = Duration::from_secs(3);
/// Somebody else may take a port between our look and the manager's; five times in a row means something else.
const PORT_ATTEMPTS: usize = 5;
/// The namespace of managers that are to find nothing. Nobody makes it.
const NOWHERE: &str = "webhooks-only";

/// A manager of Cluster API. Dropped, it is killed.
#[derive(Debug)]
pub struct Manager {
    process: Process,
}

impl Manager {
    /// Starts the manager of a provider for the whole control plane, and returns when it reconciles, defaults, checks and
    /// converts. Its CRDs take the place of those of the same names that are installed.
    ///
    /// Topologies and runtime extensions are on. It may ask the API server as often as it likes: with its own limit of 20 requests a
    /// second, that would be what a test waits for.
    pub async fn start(control_plane: &ControlPlane, provider: Provider, release: Release) -> Result<Self> {
        Self::serve(control_plane, provider, release, &[]).await
    }

    /// The same, but it reconciles nothing: somebody else plays the controller, on exactly the real API.
    pub async fn start_idle(control_plane: &ControlPlane, provider: Provider, release: Release) -> Result<Self> {
        Self::serve(control_plane, provider, release, &["--namespace", NOWHERE]).await
    }

    /// Starts that of the core in 1.10 on the CRDs that a journey has. It reconciles, but nobody asks its webhooks: what is written is neither
    /// defaulted nor checked.
    pub async fn without_webhooks(journey: &Journey) -> Result<Self> {
        let launch = Launch::prepare(journey.control_plane(), Provider::Core, Release::V1_10).await?;
        let process = Process::start(&launch.lab, &launch.name, &launch.command, &launch.log)?;
        Ok(Self { process })
    }

    async fn serve(control_plane: &ControlPlane, provider: Provider, release: Release, flags: &[&str]) -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::serve_once(control_plane, provider, release, flags).await {
                Err(error) if attempt < PORT_ATTEMPTS && format!("{error:#}").contains("address already in use") => {
                    attempt += 1;
                }
                outcome => return outcome.with_context(|| format!("failed to start {provider:?} of {release}")),
            }
        }
    }

    async fn serve_once(
        control_plane: &ControlPlane,
        provider: Provider,
        release: Release,
        flags: &[&str],
    ) -> Result<Self> {
        let client = control_plane.client();
        let mut launch = Launch::prepare(control_plane, provider, release).await?;
        launch.command.args(flags);
        let serving = Serving {
            certificates: &launch.certificates,
            port: launch.webhook_port,
        };
        let config = &launch.lab.manager(&launch.name)?.config;
        let manifests = Manifests::read(config, provider.label(), &serving)?;
        // A manager that starts before its kinds are served ends.
        definitions::install(&client, &manifests.definitions).await?;
        let process = Process::start(&launch.lab, &launch.name, &launch.command, &launch.log)?;
        let mut manager = Self { process };
        manager.ready(launch.health_port).await?;
        for configuration in &manifests.webhooks {
            configure(&client, configuration).await?;
        }
        if provider == Provider::Core {
            webhooks_are_asked(&client).await?;
        }
        provider.announce(release);
        Ok(manager)
    }

    async fn ready(&mut self, port: u16) -> Result<()> {
        let url = format!("http://127.0.0.1:{port}/readyz");
        let waited = eventually(READY_DEADLINE, format!("{} to be ready", self.process.name()), || {
            let ended = self.process.ended();
            let url = url.clone();
            async move {
                // A dead manager is the outcome, not something to wait for.
                if let Some(ended) = ended? {
                    return Ok(Err(anyhow!("it {ended}")));
                }
                match operator::get(&url).await? {
                    (StatusCode::OK, _) => Ok(Ok(())),
                    (status, text) => Err(anyhow!("{url} answered {status}: {text}")),
                }
            }
        })
        .await;
        waited.and_then(|ready| ready).with_context(|| self.process.tail())
    }

    /// Ends it, as Kubernetes does or by force, and returns how it ended.
    pub async fn stop(mut self) -> Result<Ended> {
        match self.process.terminate(STOP_DEADLINE).await {
            Ok(ended) => Ok(ended),
            Err(_) => self.process.kill9().await,
        }
    }

    /// The file that receives what it says.
    pub fn log(&self) -> &Path {
        self.process.log()
    }
}

/// A manager that is about to be started.
struct Launch {
    lab: Lab,
    /// Of the provider and the minor.
    name: String,
    command: Command,
    log: PathBuf,
    certificates: Certificates,
    webhook_port: u16,
    health_port: u16,
}

impl Launch {
    async fn prepare(control_plane: &ControlPlane, provider: Provider, release: Release) -> Result<Self> {
        let lab = Lab::load()?;
        let name = format!("{}@{}", provider.name(), release.minor());
        let (webhook_port, health_port) = (free_port()?, free_port()?);
        // The port keeps attempts apart.
        let folder = control_plane.folder().join(format!("{name}-{webhook_port}"));
        let certificates = Certificates::at(&folder)?;
        let mut command = Command::new(&lab.manager(&name)?.program);
        command
            .envs([SELDOM_COLLECTED])
            .arg("--kubeconfig")
            .arg(kubeconfig_for(control_plane, provider.label()).await?)
            .arg("--webhook-cert-dir")
            .arg(&folder)
            .args(["--webhook-port", &webhook_port.to_string()])
            .args(["--health-addr", &format!("127.0.0.1:{health_port}")])
            .args(["--diagnostics-address", "127.0.0.1:0", "--insecure-diagnostics"])
            .args(["--feature-gates", provider.feature_gates()])
            .args(["--kube-api-qps", "1000", "--kube-api-burst", "2000"]);
        if provider == Provider::Docker {
            // Its servers in memory have ports of their own choice: each manager gets an address of its own of this machine.
            let [high, low] = webhook_port.to_be_bytes();
            command.env("POD_IP", Ipv4Addr::new(127, 0, high, low).to_string());
        }
        Ok(Self {
            log: control_plane.folder().join(format!("{name}.log")),
            lab,
            name,
            command,
            certificates,
            webhook_port,
            health_port,
        })
    }
}

async fn configure(client: &Client, configuration: &Value) -> Result<()> {
    let configuration =
        DynamicObject::deserialize(configuration).context("a configuration of webhooks is no object")?;
    let types = configuration.types.as_ref().context("it has no kind")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let name = configuration.metadata.name.as_deref().context("it has no name")?;
    let api = Api::<DynamicObject>::all_with(client.clone(), &kind);
    let applied = api
        .patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(&configuration))
        .await;
    applied.map(drop).with_context(|| format!("failed to configure {name}"))
}

/// It takes the API server a moment to hear of webhooks, and of those that default and those that check not at the same time: returns when it asks
/// both. Nothing is stored.
///
/// A health check of machines is about nothing else that has to be there. (A Cluster is about its class, for which a webhook waits for seconds.)
pub async fn webhooks_are_asked(client: &Client) -> Result<()> {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck");
    let api = Api::<DynamicObject>::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let probe = async |selector: Value| {
        let check = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineHealthCheck", "metadata": { "name": "probe" },
            "spec": {
                "clusterName": "probe", "selector": selector,
                "unhealthyConditions": [{ "type": "Ready", "status": "False", "timeout": "5m" }],
            },
        });
        let created = api.create(&dry, &serde_json::from_value(check)?).await;
        created.map_err(anyhow::Error::from)
    };
    eventually(READY_DEADLINE, "the webhooks of Cluster API to be asked", async || {
        let check = probe(json!({ "matchLabels": { "probe": "" } })).await?;
        let label = check.labels().get("cluster.x-k8s.io/cluster-name").cloned();
        ensure!(
            label.as_deref() == Some("probe"),
            "nobody defaults: the label is {label:?}"
        );
        let taken = probe(json!({})).await;
        ensure!(taken.is_err(), "nobody checks: a selector without labels is taken");
        Ok(())
    })
    .await
}
