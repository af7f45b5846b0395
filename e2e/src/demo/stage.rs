//! Where it plays: a cluster, with CRDs, a namespace and the operator; everything is taken back at the end.
//!
//! A cluster of our own goes as a whole. In one that was there before, only what the demo itself added goes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use e2e::{
    ControlPlane, Identity, Lab, Metrics, Operator, OperatorOptions, Options, definitions,
    kubelet::{self, Kind, Kubelet},
    provider_operator::{Destination, ProviderOptions},
    use_one_cryptography, workers,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use tempfile::TempDir;

use super::{given::Given, images::Images, screen::Screen, text::count};
use crate::arguments::DemoProvider;

pub(super) struct Stage {
    lab: Lab,
    folder: TempDir,
    namespace: String,
    cluster: Option<Cluster>,
    operator: Option<Operator>,
    images: Option<Arc<Images>>,
    provider_operator: Option<Operator>,
}

enum Cluster {
    Own(Box<ControlPlane>),
    /// One of our own whose Pods run.
    WithPods(Kubelet),
    Given(Given),
}

impl Cluster {
    fn own(&self) -> Option<&ControlPlane> {
        match self {
            Self::Own(control_plane) => Some(control_plane),
            Self::WithPods(kubelet) => Some(kubelet.control_plane()),
            Self::Given(_) => None,
        }
    }
}

impl Stage {
    pub(super) fn empty(namespace: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stackwright-demo-").tempdir();
        Ok(Self {
            lab: Lab::load()?,
            folder: folder.context("failed to make a folder")?,
            namespace: namespace.to_owned(),
            cluster: None,
            operator: None,
            images: None,
            provider_operator: None,
        })
    }

    /// Brings up a cluster; `runs_pods` where it is to run Pods, if it is ours.
    pub(super) async fn build(
        &mut self,
        kubeconfig: Option<&Path>,
        runs_pods: bool,
        screen: &mut Screen,
    ) -> Result<()> {
        use_one_cryptography();
        let definitions = definitions::all(&self.lab)?;
        if let Some(path) = kubeconfig {
            let mut given = Given::reach(path).await?;
            let absent = given.absent(definitions).await?;
            let what = match absent.len() {
                0 => "the cluster has every CRD already".to_owned(),
                number => format!("installing the {} that the cluster lacks", count(number, "CRD")),
            };
            let client = given.client.clone();
            // Remembered first: a part of them may be there when this is interrupted.
            given.added.clone_from(&absent);
            self.cluster = Some(Cluster::Given(given));
            screen.step(&what, definitions::install(&client, &absent)).await?;
            if runs_pods {
                screen.say("No image is built here: nodes of this cluster have no image of the operator that Jobs could be made of.");
            }
        } else if runs_pods {
            let kubelet = start_kubelet(screen).await?;
            let client = self
                .cluster
                .insert(Cluster::WithPods(kubelet))
                .own()
                .map(ControlPlane::client);
            let client = client.context("there is no cluster")?;
            let what = format!("installing {}", count(definitions.len(), "CRD"));
            screen.step(&what, definitions::install(&client, &definitions)).await?;
        } else {
            let start = ControlPlane::start(Options {
                crds: true,
                ..Options::default()
            });
            let number = count(definitions.len(), "CRD");
            let what = format!("starting etcd, kube-apiserver, kube-controller-manager; installing {number}");
            let control_plane = screen.step(&what, start).await?;
            self.cluster = Some(Cluster::Own(Box::new(control_plane)));
        }
        self.make_namespace().await
    }

    async fn make_namespace(&mut self) -> Result<()> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(self.namespace.clone());
        let made = Api::all(self.client()?)
            .create(&PostParams::default(), &namespace)
            .await;
        made.with_context(|| {
            format!(
                "failed to make the namespace {0}: when it is there, choose another with --namespace",
                self.namespace
            )
        })?;
        if let Some(Cluster::Given(given)) = &mut self.cluster {
            given.namespaced = true;
        }
        Ok(())
    }

    /// Starts what gives and what takes node images, where there are to be any.
    pub(super) async fn make_images(&mut self, provider: DemoProvider, screen: &mut Screen) -> Result<()> {
        let what = match provider {
            DemoProvider::None => return Ok(()),
            DemoProvider::Filestore => "making two node images and a slow web server that has them",
            DemoProvider::Openstack => "making two node images and a slow web server; starting Keystone and Glance",
        };
        let watched = screen.is_live();
        let host = self.kubelet().map(Kubelet::host);
        let make = Images::make(provider, self.folder.path(), watched, host);
        self.images = screen.step(what, make).await?.map(Arc::new);
        Ok(())
    }

    /// Starts the operators with this directory of releases, and returns when they are ready.
    pub(super) async fn operate(&mut self, release_dir: &Path, screen: &mut Screen) -> Result<()> {
        let options = OperatorOptions {
            program: e2e::built::Program::CoreOperator,
            kubeconfig: self.kubeconfig_for("core-operator").await?,
            namespace: self.namespace.clone(),
            release_dir: release_dir.to_owned(),
            record: None,
            flags: Vec::new(),
            log: self.log(),
        };
        let operator = self.operator.insert(Operator::start(&self.lab, &options)?);
        screen.step("starting core-operator", operator.ready()).await?;
        let Some(images) = &self.images else { return Ok(()) };
        let options = ProviderOptions {
            kubeconfig: self.kubeconfig_for("provider-operator").await?,
            namespace: self.namespace.clone(),
            release_dir: release_dir.to_owned(),
            folder: self.folder.path().join("provider"),
            destination: images.directory().map_or(Destination::OpenStack, |directory| {
                Destination::FileStore(directory.to_owned())
            }),
            // Nobody waits at the end of the demo for an image that goes with it.
            flags: vec!["--drain=0s".into()],
        };
        let operator = self.start_provider_operator(options, images)?;
        let operator = self.provider_operator.insert(operator);
        screen.step("starting provider-operator", operator.ready()).await
    }

    fn start_provider_operator(&self, mut options: ProviderOptions, images: &Images) -> Result<Operator> {
        let Some(kubelet) = self.kubelet() else {
            return options.start(&self.lab);
        };
        workers::import(kubelet)?;
        options.flags.extend(workers::flags(images.directory()));
        options
            .flags
            .push(format!("--allow-cloud-network={}/32", kubelet.host()).into());
        let Some(directory) = images.directory() else {
            return options.start(&self.lab);
        };
        let folder = options.folder.clone();
        fs::create_dir_all(&folder).context("failed to make a folder for the operator")?;
        let kubeconfig = folder.join("kubeconfig");
        fs::copy(&options.kubeconfig, &kubeconfig).context("failed to hand over a kubeconfig")?;
        options.kubeconfig.clone_from(&kubeconfig);
        let (kind, command) = (kubelet.kind(), options.command()?);
        // Those who go through it need not see what is in it.
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o711))
            .context("failed to open a folder")?;
        for path in [&kubeconfig, &folder, directory] {
            workers::give_to_jobs(kind, path)?;
        }
        Operator::start_as(&self.lab, &workers::as_jobs(kind, command), &options.log())
    }

    /// How one of the operators reaches the cluster. In one of our own each is somebody else, so that one can be told from the other.
    async fn kubeconfig_for(&self, operator: &str) -> Result<PathBuf> {
        let Some(control_plane) = self.cluster()?.own() else {
            return self.kubeconfig();
        };
        let operator = Identity::User {
            name: operator.to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        control_plane.kubeconfig_for(&operator).await
    }

    /// For what belongs to the demo alone.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The operator's log.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.path().join("core-operator.log")
    }

    pub(super) fn kubeconfig(&self) -> Result<PathBuf> {
        Ok(match self.cluster()? {
            Cluster::Own(control_plane) => control_plane.kubeconfig_path(),
            Cluster::WithPods(kubelet) => kubelet.control_plane().kubeconfig_path(),
            Cluster::Given(given) => given.kubeconfig.clone(),
        })
    }

    /// Every request that was made, where the API server is ours.
    pub(super) fn audit_log(&self) -> Option<PathBuf> {
        let own = self.cluster.as_ref().and_then(Cluster::own)?;
        Some(own.folder().join("audit.jsonl"))
    }

    pub(super) fn client(&self) -> Result<Client> {
        Ok(match self.cluster()? {
            Cluster::Own(control_plane) => control_plane.client(),
            Cluster::WithPods(kubelet) => kubelet.control_plane().client(),
            Cluster::Given(given) => given.client.clone(),
        })
    }

    /// What runs Pods, where it is ours.
    pub(super) fn kubelet(&self) -> Option<&Kubelet> {
        match &self.cluster {
            Some(Cluster::WithPods(kubelet)) => Some(kubelet),
            _ => None,
        }
    }

    /// The node images, where there are any.
    pub(super) fn images(&self) -> Option<&Arc<Images>> {
        self.images.as_ref()
    }

    /// Fails when an operator has ended, which none does by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        let operators = self.operator.iter_mut().chain(&mut self.provider_operator);
        operators.into_iter().try_for_each(Operator::check)
    }

    /// What each operator counts.
    pub(super) async fn metrics(&mut self) -> Result<Vec<Metrics>> {
        let mut all = Vec::new();
        for operator in self.operator.iter_mut().chain(&mut self.provider_operator) {
            all.push(operator.metrics().await?);
        }
        Ok(all)
    }

    fn cluster(&self) -> Result<&Cluster> {
        self.cluster.as_ref().context("there is no cluster")
    }

    /// Keeps the folder for those who want to know what went wrong, with the logs and objects of a cluster of our own. The answer
    /// is false when there is nothing to know yet.
    pub(super) async fn keep_evidence(&mut self) -> bool {
        if self.operator.is_none() {
            return false;
        }
        self.folder.disable_cleanup(true);
        if let Some(control_plane) = self.cluster.as_ref().and_then(Cluster::own) {
            let dump = control_plane.failure_dump();
            // Half of it is better than none, and the failure itself is what has to be told.
            let _ = dump.write(&self.folder.path().join("state")).await;
            dump.call_off();
        }
        true
    }

    /// Ends what runs and removes what was made.
    pub(super) async fn clear(&mut self, screen: &mut Screen) -> Result<()> {
        match self.cluster.take() {
            Some(Cluster::Given(given)) => {
                let operators = [self.operator.take(), self.provider_operator.take()];
                let provider = self.images.as_ref().map(|images| images.provider());
                let operators = operators.into_iter().flatten().collect();
                let restored = given.restore(&self.namespace, operators, provider);
                let restored = screen
                    .step("removing what the demo added to the cluster", restored)
                    .await;
                restored.with_context(|| format!("look at the namespace {}: not all is removed", self.namespace))
            }
            own => {
                for operator in [self.operator.take(), self.provider_operator.take()]
                    .into_iter()
                    .flatten()
                {
                    operator.stop().await?;
                }
                match own {
                    Some(Cluster::Own(control_plane)) => control_plane.stop().await,
                    Some(Cluster::WithPods(kubelet)) => {
                        // What listens at an address of the node goes before it.
                        self.images = None;
                        kubelet.stop().await
                    }
                    Some(Cluster::Given(_)) | None => Ok(()),
                }
            }
        }
    }
}

/// Starts what runs Pods, the real thing where this machine can, and tells which it is and why.
async fn start_kubelet(screen: &mut Screen) -> Result<Kubelet> {
    let (kind, mut reason) = kubelet::best()?;
    if kind == Kind::Real {
        let what = "starting a control plane and a node: kubelet, containerd and runc";
        match screen.step(what, Kubelet::start(Kind::Real)).await {
            Ok(node) => {
                screen.say("Pods run on that node, in containers, because this machine can hold one.");
                return Ok(node);
            }
            Err(error) => reason = Some(format!("the node did not start: {error:#}")),
        }
    }
    let what = "starting a control plane and a stand-in of the kubelet";
    let stand_in = screen.step(what, Kubelet::start(Kind::StandIn)).await?;
    let reason = reason.unwrap_or_default();
    screen.say(&format!(
        "Pods run as processes of this machine and in no containers, because it has no node: {reason}"
    ));
    Ok(stand_in)
}
