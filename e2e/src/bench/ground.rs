//! Where a benchmark happens: a control plane of its own, or one that somebody else runs; namespaces, the audit log, and cleaning up.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use crds::ClusterStackRelease;
use e2e::{
    AuditLog, ControlPlane, Lab, Options,
    operator::{Operator, OperatorOptions},
    releases::Releases,
};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tempfile::TempDir;

/// How the API server knows the operator in its audit log.
pub(super) const OPERATOR_AGENT: &str = "stackwright-core-operator";
/// The lab's control planes keep it beside their kubeconfig.
const AUDIT_LOG: &str = "audit.jsonl";
/// Requests at once while cleaning up.
const CLEANERS: usize = 32;

/// A control plane, and a folder for what the benchmark needs beside it.
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) audit: AuditLog,
    kubeconfig: PathBuf,
    lab: Lab,
    folder: TempDir,
    /// Absent when it is somebody else's: then namespaces are removed one by one.
    control_plane: Option<ControlPlane>,
}

impl Ground {
    /// A control plane of this benchmark's own, or the one of the given kubeconfig.
    pub(super) async fn find(kubeconfig: Option<&Path>) -> Result<Self> {
        let lab = Lab::load()?;
        let folder = tempfile::Builder::new()
            .prefix("stackwright-bench-")
            .tempdir()
            .context("failed to make a folder")?;
        if let Some(kubeconfig) = kubeconfig {
            return Self::existing(kubeconfig, lab, folder).await;
        }
        let control_plane = ControlPlane::start(Options {
            crds: true,
            audit_bodies: true,
            ..Options::default()
        })
        .await?;
        Ok(Self {
            client: control_plane.client(),
            audit: control_plane.audit_log(),
            kubeconfig: control_plane.kubeconfig_path(),
            lab,
            folder,
            control_plane: Some(control_plane),
        })
    }

    async fn existing(kubeconfig: &Path, lab: Lab, folder: TempDir) -> Result<Self> {
        let audit = kubeconfig.with_file_name(AUDIT_LOG);
        ensure!(
            audit.is_file(),
            "requests are counted by the API server's audit log, and {} is not there: use the kubeconfig of `cargo xtask control-plane up --audit-bodies`",
            audit.display()
        );
        e2e::use_one_cryptography();
        let read =
            Kubeconfig::read_from(kubeconfig).with_context(|| format!("unable to read {}", kubeconfig.display()))?;
        let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
            .await
            .with_context(|| format!("unable to use {}", kubeconfig.display()))?;
        config.default_retry = false;
        let client = Client::try_from(config).context("failed to make a client")?;
        Ok(Self {
            audit: AuditLog::new(audit, client.clone()),
            client,
            kubeconfig: kubeconfig.to_owned(),
            lab,
            folder,
            control_plane: None,
        })
    }

    /// A folder for the releases of one run, and for its log.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a namespace with a name that nobody has.
    pub(super) async fn namespace(&self, stem: &str) -> Result<String> {
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some(format!("bench-{stem}-"));
        let created = Api::<Namespace>::all(self.client.clone())
            .create(&PostParams::default(), &namespace)
            .await;
        Ok(created.context("failed to make a namespace")?.name_any())
    }

    /// Starts an operator for one namespace, and returns when it is ready.
    pub(super) async fn operate(&self, namespace: &str, releases: &Releases, flags: Vec<OsString>) -> Result<Operator> {
        let mut operator = self.start(namespace, releases, flags)?;
        operator.ready().await?;
        Ok(operator)
    }

    /// Starts an operator for one namespace, without waiting for anything.
    pub(super) fn start(&self, namespace: &str, releases: &Releases, flags: Vec<OsString>) -> Result<Operator> {
        let options = OperatorOptions {
            program: e2e::built::Program::CoreOperator,
            kubeconfig: self.kubeconfig.clone(),
            namespace: namespace.to_owned(),
            release_dir: releases.root().to_owned(),
            record: None,
            flags,
            log: self.folder().join("core-operator.log"),
        };
        Operator::start(&self.lab, &options)
    }

    /// Whom operators talk to, and as whom.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Programs of others.
    pub(super) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Leaves nothing behind. Dropping does the same where the control plane is our own.
    pub(super) async fn clean_up(self, namespaces: &[String]) -> Result<()> {
        if let Some(control_plane) = self.control_plane {
            return control_plane.stop().await;
        }
        for namespace in namespaces {
            release_all(&self.client, namespace).await?;
            Api::<Namespace>::all(self.client.clone())
                .delete(namespace, &DeleteParams::default())
                .await
                .with_context(|| format!("failed to delete the namespace {namespace}"))?;
        }
        Ok(())
    }
}

/// Takes the finalizers off, because no operator will: the objects go with their namespace.
async fn release_all(client: &Client, namespace: &str) -> Result<()> {
    let releases: Api<ClusterStackRelease> = Api::namespaced(client.clone(), namespace);
    let listed = releases
        .list_metadata(&ListParams::default())
        .await
        .context("failed to list the releases")?;
    let free = json!({ "metadata": { "finalizers": null } });
    stream::iter(listed)
        .map(Ok)
        .try_for_each_concurrent(CLEANERS, async |release| {
            releases
                .patch_metadata(&release.name_any(), &PatchParams::default(), &Patch::Merge(&free))
                .await
                .map(drop)
                .context("failed to take off a finalizer")
        })
        .await
}

/// What has an operator stand for election, with a Lease in this namespace.
pub(super) fn elected(namespace: &str) -> Vec<OsString> {
    vec![
        "--leader-elect=true".into(),
        format!("--leader-elect-namespace={namespace}").into(),
    ]
}

/// The commit that the programs were built from, as far as the checkout tells; `-dirty` when files differ from it, apart from the pages that a
/// benchmark before this one has recorded.
pub(super) fn commit() -> String {
    let ask = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        let answer = git.args(arguments).current_dir(e2e::lab::workspace()).output().ok()?;
        let said = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        answer.status.success().then_some(said)
    };
    let commit = ask(&["rev-parse", "--short=12", "HEAD"]);
    let changed = ask(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        ":!docs/benchmarks*",
    ]);
    match commit.zip(changed) {
        Some((commit, changed)) if changed.is_empty() => commit,
        Some((commit, _)) => format!("{commit}-dirty"),
        None => "unknown".to_owned(),
    }
}

/// The machine as its kernel describes it; no names.
#[derive(Debug, serde::Serialize)]
pub(super) struct Machine {
    pub(super) cpu_model: String,
    pub(super) cores: usize,
    pub(super) memory_gib: f64,
    pub(super) kernel: String,
    /// Runnable processes on average over the minute before the benchmark: on an idle machine near zero.
    pub(super) load_before: f64,
}

impl Machine {
    pub(super) fn look() -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| format!("failed to read {path}"));
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo")?, "MemTotal").unwrap_or_default();
        let memory: f64 = memory
            .trim_end_matches(" kB")
            .parse()
            .context("unable to read the size of the memory")?;
        let load = read("/proc/loadavg")?;
        Ok(Self {
            cpu_model: field(&read("/proc/cpuinfo")?, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: e2e::usage::rounded(memory / f64::from(1 << 20), 1),
            kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            load_before: load
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or_default(),
        })
    }
}
