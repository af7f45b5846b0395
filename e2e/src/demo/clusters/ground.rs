//! Where it plays: a management cluster with Cluster API and the operator, and the API server of the one workload cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use e2e::{
    ControlPlane, Identity, Lab, Operator, OperatorOptions, Options,
    built::Program,
    cluster_api::{Manager, Provider, Release},
    hooks::Recorder,
    kwok::Kwok,
    releases::Releases,
    shim::{Contract, PlayedCluster, Shim, Workload, install},
    use_one_cryptography,
    webhooks::Certificates,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use tempfile::TempDir;

use super::super::screen::Screen;

/// The name of the Cluster.
pub(super) const CLUSTER: &str = "web";
/// The name under which Cluster API knows the operator.
const EXTENSION: &str = "core-operator";
/// The workload cluster is on this machine here.
const LOOPBACK: &str = "--allow-workload-loopback";

/// Dropped, all of it ends, in this order.
pub(super) struct Ground {
    operator: Operator,
    kwok: Option<Kwok>,
    shim: Shim,
    _manager: Manager,
    workload: ControlPlane,
    management: ControlPlane,
    namespace: String,
    pub(super) releases: Releases,
    folder: TempDir,
}

impl Ground {
    pub(super) async fn build(namespace: &str, screen: &mut Screen) -> Result<Self> {
        use_one_cryptography();
        let lab = Lab::load()?;
        let folder = tempfile::Builder::new().prefix("stackwright-demo-").tempdir();
        let folder = folder.context("failed to make a folder")?;
        let releases = Releases::at(&folder.path().join("releases"))?;
        let what = "starting a management cluster: etcd, kube-apiserver, kube-controller-manager, our CRDs";
        let management = screen.step(what, management(namespace)).await?;
        let what = format!("starting {}, and what plays its provider", Release::V1_14);
        let manager = Manager::start(&management, Provider::Core, Release::V1_14);
        let manager = screen.step(&what, manager).await?;
        let what = "starting the API server of a workload cluster, its controllers, and kwok";
        let starting = ControlPlane::start(Options {
            workloads: true,
            ..Options::default()
        });
        let workload = screen.step(what, starting).await?;
        let kwok = Some(Kwok::start(&workload).await?);
        let served = Workload::at(workload.access()).await?;
        let shim = Shim::start(management.access(), &served).await?;
        let operating = operate(&lab, &management, folder.path(), namespace, &releases);
        let what = "starting core-operator; Cluster API asks it which hooks it answers";
        let operator = screen.step(what, operating).await?;
        Ok(Self {
            operator,
            kwok,
            shim,
            _manager: manager,
            workload,
            management,
            namespace: namespace.to_owned(),
            releases,
            folder,
        })
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Of the management cluster.
    pub(super) fn client(&self) -> Client {
        self.management.client()
    }

    pub(super) fn workload_client(&self) -> Client {
        self.workload.client()
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.management.kubeconfig_path()
    }

    pub(super) fn workload_kubeconfig(&self) -> PathBuf {
        self.workload.kubeconfig_path()
    }

    /// The operator's log.
    pub(super) fn log(&self) -> PathBuf {
        log(self.folder.path())
    }

    /// What the provider does with the Cluster.
    pub(super) fn web(&self) -> PlayedCluster {
        self.shim.cluster(&self.namespace, CLUSTER)
    }

    /// From now on no Pod becomes ready.
    pub(super) fn stop_kubelets(&mut self) {
        self.kwok = None;
    }

    /// Pods become ready again.
    pub(super) async fn start_kubelets(&mut self) -> Result<()> {
        self.kwok = Some(Kwok::start(&self.workload).await?);
        Ok(())
    }

    /// Fails when the operator has ended, which it does not by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        self.operator.check()
    }

    /// Keeps the folder for those who want to know what went wrong, with logs and objects of both clusters.
    pub(super) async fn keep_evidence(&mut self) {
        self.folder.disable_cleanup(true);
        for (name, control_plane) in [("management", &self.management), ("workload", &self.workload)] {
            let dump = control_plane.failure_dump();
            // Half of it is better than none, and the failure itself is what has to be told.
            let _ = dump.write(&self.folder.path().join("state").join(name)).await;
            dump.call_off();
        }
    }

    /// Ends what runs.
    pub(super) async fn clear(self) -> Result<()> {
        let Self {
            operator,
            kwok,
            shim,
            _manager: manager,
            workload,
            management,
            ..
        } = self;
        operator.stop().await?;
        drop((kwok, shim, manager));
        workload.stop().await?;
        management.stop().await
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("core-operator.log")
}

/// With our CRDs, the provider's, and the namespace. Those of Cluster API come with its manager.
async fn management(namespace: &str) -> Result<ControlPlane> {
    let control_plane = ControlPlane::start(Options {
        crds: true,
        played_providers: true,
        ..Options::default()
    })
    .await?;
    let client = control_plane.client();
    install(&client, &Contract::ALL).await?;
    let mut object = Namespace::default();
    object.metadata.name = Some(namespace.to_owned());
    let made = Api::all(client).create(&PostParams::default(), &object).await;
    made.with_context(|| format!("failed to make the namespace {namespace}"))?;
    Ok(control_plane)
}

async fn operate(
    lab: &Lab,
    management: &ControlPlane,
    folder: &Path,
    namespace: &str,
    releases: &Releases,
) -> Result<Operator> {
    let certificates = Certificates::at(&folder.join("hooks"))?;
    let identity = Identity::User {
        name: "core-operator".to_owned(),
        groups: vec!["system:masters".to_owned()],
    };
    let mut flags = certificates.hook_flags();
    flags.push(LOOPBACK.into());
    let options = OperatorOptions {
        program: Program::CoreOperator,
        kubeconfig: management.kubeconfig_for(&identity).await?,
        namespace: namespace.to_owned(),
        release_dir: releases.root().to_owned(),
        record: None,
        flags,
        log: log(folder),
    };
    let mut operator = Operator::start(lab, &options)?;
    operator.ready().await?;
    let port = operator.hook_port().await?;
    let client = management.client();
    certificates.extend(&client, EXTENSION, port, namespace).await?;
    Recorder::discovered(&client, EXTENSION).await?;
    Ok(operator)
}
