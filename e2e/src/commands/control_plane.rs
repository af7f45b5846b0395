//! `lab control-plane`: a control plane for people, in the background.
//!
//! `up` starts this program once more as `serve`, which holds the control plane like any test does; `down` asks it to end.
//! That one runs is known by the lock on its folder, never by a process id alone.

use std::{
    ffi::OsString,
    fs::{self, File},
    future::ready,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crds::ClusterStack;
use e2e::{
    ControlPlane, Lab, Options,
    control_plane::Folder,
    definitions, eventually,
    process::{tail_of, terminate},
};
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{ControlPlaneCommand, Furnishing, Place};

/// Longer than the control plane waits for itself, so that its own words are what is shown.
const UP_DEADLINE: Duration = Duration::from_mins(3);
const DOWN_DEADLINE: Duration = Duration::from_secs(30);

/// Written last: holds the process id of `serve`.
const READY: &str = "ready";

impl Place {
    fn ready(&self) -> PathBuf {
        self.dir.join(READY)
    }

    fn ensure_in_use(&self) -> Result<()> {
        ensure!(
            Folder::is_in_use(&self.dir)?,
            "no control plane runs in {}: start one with `cargo xtask control-plane up --crds`",
            self.dir.display()
        );
        Ok(())
    }

    fn kubeconfig(&self) -> Result<PathBuf> {
        self.dir
            .join("kubeconfig")
            .canonicalize()
            .context("the control plane has no kubeconfig")
    }

    /// Beside the folder, because it has to outlive it.
    fn log(&self) -> PathBuf {
        self.dir.with_extension("log")
    }
}

pub(crate) async fn run(command: ControlPlaneCommand) -> Result<()> {
    match command {
        ControlPlaneCommand::Up { place, furnishing } => up(&place, furnishing).await,
        ControlPlaneCommand::Down(place) => down(&place).await,
        ControlPlaneCommand::Kubeconfig(place) => {
            place.ensure_in_use()?;
            say(&place.kubeconfig()?.display().to_string());
            Ok(())
        }
        ControlPlaneCommand::Kubectl { place, arguments } => kubectl(&place, &arguments),
        ControlPlaneCommand::Serve { place, furnishing } => serve(&place, furnishing).await,
    }
}

/// Becomes kubectl, so that its terminal, signals and exit code are the caller's.
fn kubectl(place: &Place, arguments: &[OsString]) -> Result<()> {
    place.ensure_in_use()?;
    let mut command = Command::new(Lab::load()?.controlplane);
    command
        .arg("kubectl")
        .args(arguments)
        .env("KUBECONFIG", place.kubeconfig()?);
    Err(command.exec()).context("failed to start kubectl")
}

async fn up(place: &Place, furnishing: Furnishing) -> Result<()> {
    let mut serving = if Folder::is_in_use(&place.dir)? {
        None
    } else {
        Some(start_serving(place, furnishing)?)
    };
    let waited = eventually(UP_DEADLINE, "the control plane to be ready", || {
        ready(match serving.as_mut().map(Child::try_wait).transpose() {
            Ok(Some(Some(status))) => Ok(Err(anyhow!("the control plane ended with {status}"))),
            Ok(_) if place.ready().exists() => Ok(Ok(())),
            Ok(_) => Err("it is starting"),
            Err(error) => Ok(Err(error.into())),
        })
    });
    waited
        .await
        .and_then(|outcome| outcome)
        .with_context(|| format!("{}\n(from {})", tail_of(&place.log()), place.log().display()))?;
    let client = client(place).await?;
    if furnishing.crds && serving.is_none() {
        definitions::install(&client, &definitions::all(&Lab::load()?)?).await?;
    }
    let kubeconfig = place.kubeconfig()?;
    say(&format!(
        "A control plane runs in {}\n\n  \
         export KUBECONFIG={}\n  kubectl get namespaces\n\n\
         audit.jsonl there has every request, *.log what its programs say. `down` stops it and removes all of it.",
        place.dir.display(),
        kubeconfig.display()
    ));
    if !knows_cluster_stacks(&client).await? {
        say(
            "\nIt has no CRDs, so it knows neither ClusterStacks nor ClusterClasses. The same command with --crds installs them, also now.",
        );
    }
    Ok(())
}

async fn knows_cluster_stacks(client: &Client) -> Result<bool> {
    let stacks = Api::<ClusterStack>::all(client.clone());
    match stacks.list_metadata(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(true),
        // The answer to a path that nobody serves is no object of the API, so it has a code only.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).context("failed to ask for ClusterStacks"),
    }
}

async fn client(place: &Place) -> Result<Client> {
    e2e::use_one_cryptography();
    let kubeconfig = Kubeconfig::read_from(place.kubeconfig()?).context("failed to read the kubeconfig")?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.context("failed to use the kubeconfig")?).context("failed to make a client")
}

/// Starts `serve` so that it outlives this process, its terminal and what is typed there.
fn start_serving(place: &Place, furnishing: Furnishing) -> Result<Child> {
    if let Some(parent) = place.log().parent() {
        fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    }
    let log = File::create(place.log()).with_context(|| format!("failed to write {}", place.log().display()))?;
    let program = std::env::current_exe().context("failed to find this program")?;
    let mut command = Command::new(program);
    command.args(["control-plane", "serve", "--dir"]).arg(&place.dir);
    let Furnishing {
        crds,
        workloads,
        audit_bodies,
    } = furnishing;
    command
        .args(crds.then_some("--crds"))
        .args(workloads.then_some("--workloads"))
        .args(audit_bodies.then_some("--audit-bodies"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .process_group(0);
    command
        .spawn()
        .context("failed to start this program in the background")
}

async fn serve(place: &Place, furnishing: Furnishing) -> Result<()> {
    let mut terminated = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to listen for Ctrl-C")?;
    // Heard and not acted upon: the terminal of whoever called `up` may close.
    let _hung_up = signal(SignalKind::hangup()).context("failed to listen for SIGHUP")?;
    let mut control_plane = tokio::select! {
        started = start(place, furnishing) => started?,
        _ = terminated.recv() => return Ok(()),
        _ = interrupted.recv() => return Ok(()),
    };
    tokio::select! {
        broken = control_plane.broken() => Err(broken),
        _ = terminated.recv() => control_plane.stop().await,
        _ = interrupted.recv() => control_plane.stop().await,
    }
}

async fn start(place: &Place, furnishing: Furnishing) -> Result<ControlPlane> {
    let control_plane = ControlPlane::start(Options {
        serving: None,
        folder: Some(place.dir.clone()),
        crds: furnishing.crds,
        played_providers: false,
        workloads: furnishing.workloads,
        audit_bodies: furnishing.audit_bodies,
        certificates: false,
    })
    .await?;
    say(&control_plane.kubeconfig_path().display().to_string());
    let ready = place.ready();
    fs::write(&ready, std::process::id().to_string())
        .with_context(|| format!("failed to write {}", ready.display()))?;
    Ok(control_plane)
}

async fn down(place: &Place) -> Result<()> {
    if !Folder::is_in_use(&place.dir)? {
        say(&format!("no control plane runs in {}", place.dir.display()));
        return Ok(());
    }
    let ready = place.ready();
    let Ok(text) = fs::read_to_string(&ready) else {
        bail!(
            "the control plane in {} is not ready yet: try again in a moment",
            place.dir.display()
        );
    };
    let id = text
        .parse()
        .with_context(|| format!("{} holds no process id", ready.display()))?;
    terminate(id).context("failed to ask the control plane to end")?;
    eventually(
        DOWN_DEADLINE,
        "the control plane to end",
        async || match Folder::is_in_use(&place.dir) {
            Ok(false) if !place.dir.exists() => Ok(()),
            Ok(false) => Err(anyhow!("its folder is being removed")),
            Ok(true) => Err(anyhow!("it runs")),
            Err(error) => Err(error),
        },
    )
    .await?;
    remove_log(&place.log());
    Ok(())
}

/// What a control plane that ended well said is of no use.
fn remove_log(log: &Path) {
    let _ = fs::remove_file(log);
}

#[expect(clippy::print_stdout, reason = "what this program is asked for")]
fn say(text: &str) {
    println!("{text}");
}
