//! One real control plane: etcd, API server and controllers as processes of their own, in a folder of their own.
//!
//! Any number run side by side: one takes a single TCP port (the API server's), the rest are files. What may be done in
//! it is decided by its callers; RBAC is on.

mod access;
mod clients;
mod credentials;
mod dump;
mod folder;
mod programs;
mod template;

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::Value;

pub(crate) use self::{access::write_kubeconfig, credentials::CA_CERTIFICATE};
pub use self::{
    access::{Access, Identity},
    clients::ClientAuthority,
    dump::FailureDump,
    folder::Folder,
};
use crate::{AuditLog, Lab, Metrics, Process, definitions, eventually, use_one_cryptography};

/// Three to five seconds on an idle machine; several may start at once on two busy cores.
const READY_DEADLINE: Duration = Duration::from_mins(2);
/// For a person at a terminal, who waits for nothing here.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);
/// Somebody else may take a port between our look and the API server's; five times in a row means something else.
const PORT_ATTEMPTS: usize = 5;
/// Below the range from which Linux takes ports for outgoing connections, so that only servers compete for them.
const PORTS: std::ops::Range<u64> = 20_000..32_000;

/// What a control plane is to be like; the default suits a test.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub struct Options {
    /// Where its files live; a temporary folder when absent. Either is removed when the control plane stops.
    pub folder: Option<PathBuf>,
    /// Has every CRD of [`definitions`] before its controllers start. The garbage collector looks for kinds at its start, and
    /// then every 30 seconds: until it knows a kind, what is owned outlives its owner.
    pub crds: bool,
    /// Of these, none of the real providers of Cluster API, which are half of all and two thirds of their bytes: for tests that play providers.
    pub played_providers: bool,
    /// Also runs the scheduler and the controllers of Deployments, Jobs and their like; without nodes, Pods stay pending.
    pub workloads: bool,
    /// Serves there instead of on loopback, and has what a kubelet asks for.
    pub serving: Option<Serving>,
    /// The audit log has what was sent, too; it grows by megabytes a second under load.
    pub audit_bodies: bool,
    /// Also knows users by certificates, see [`ControlPlane::know_clients_of`].
    pub certificates: bool,
}

impl Options {
    /// The CRDs that are there from the beginning.
    fn definitions(&self, lab: &Lab) -> Result<Vec<Value>> {
        match (self.crds, self.played_providers) {
            (false, _) => Ok(Vec::new()),
            (true, false) => definitions::all(lab),
            (true, true) => definitions::without_providers(lab),
        }
    }
}

/// Where the control plane of a node serves, so that Pods find it at the address that Kubernetes gives them.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The first of `services`, and an address of this machine.
    pub address: Ipv4Addr,
    /// The addresses of Services, in the notation of networks.
    pub services: String,
}

/// The port that Pods take it to serve on.
const PORT_OF_SERVICE: u16 = 443;

/// A running control plane. Dropped, it is gone: processes and files. See [`ControlPlane::failure_dump`].
pub struct ControlPlane {
    // In the order in which they have to go; the folder last.
    controllers: Vec<Process>,
    api_server: Process,
    etcd: Process,
    access: Access,
    client: Client,
    folder: Folder,
}

impl ControlPlane {
    /// Starts one and returns when it is ready for every request.
    ///
    /// When a program dies or is not ready in time, the error carries the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        let lab = Lab::load()?;
        use_one_cryptography();
        let mut attempt = 1;
        loop {
            let port = match options.serving {
                Some(_) => PORT_OF_SERVICE,
                None => free_port()?,
            };
            match Self::start_on(&lab, &options, port).await {
                Err(error) if attempt < PORT_ATTEMPTS && format!("{error:#}").contains("address already in use") => {
                    attempt += 1;
                }
                outcome => return outcome.context("failed to start a control plane"),
            }
        }
    }

    async fn start_on(lab: &Lab, options: &Options, port: u16) -> Result<Self> {
        let folder = match &options.folder {
            Some(path) => Folder::at(path)?,
            None => Folder::temporary()?,
        };
        let definitions = options.definitions(lab)?;
        if !definitions.is_empty() {
            template::fill(lab, options, &definitions, folder.path()).await?;
        }
        let mut started = Self::serve(lab, options, folder, port).await?;
        definitions::are_served(&started.client, &definitions).await?;
        for (name, command) in programs::controllers(lab, started.folder.path(), options) {
            let log = started.folder.path().join(format!("{name}.log"));
            started.controllers.push(Process::start_lifelined(name, command, &log)?);
        }
        Ok(started)
    }

    /// One without controllers, on what etcd has in this folder.
    async fn serve(lab: &Lab, options: &Options, folder: Folder, port: u16) -> Result<Self> {
        let access = credentials::write(folder.path(), port, options)?;
        access
            .write_kubeconfig(&folder.path().join("kubeconfig"), &Identity::Admin)
            .await?;
        let start = |(name, command): (&'static str, _)| {
            Process::start_lifelined(name, command, &folder.path().join(format!("{name}.log")))
        };
        let etcd = start(programs::etcd(lab, folder.path()))?;
        let api_server = start(programs::api_server(lab, folder.path(), port, options))?;
        let client = access.client(&Identity::Admin).await?;
        let mut started = Self {
            controllers: Vec::new(),
            api_server,
            etcd,
            access,
            client,
            folder,
        };
        started.ready().await?;
        Ok(started)
    }

    async fn ready(&mut self) -> Result<()> {
        let client = self.client.clone();
        let waited = eventually(READY_DEADLINE, "the API server to be ready", || {
            let alive = self.check();
            let client = client.clone();
            async move {
                // A dead program is the outcome, not something to wait for.
                if alive.is_ok() {
                    client.request_text(get("/readyz")?).await?;
                    // Made by the API server itself, a moment after it calls itself ready.
                    Api::<Namespace>::all(client).get("default").await?;
                }
                Ok::<_, anyhow::Error>(alive)
            }
        })
        .await;
        waited.with_context(|| self.api_server.tail())?
    }

    /// Stops everything and removes the folder; dropping does the same without saying what failed.
    pub async fn stop(mut self) -> Result<()> {
        for program in self.programs() {
            program.kill9().await?;
        }
        self.folder.remove()
    }

    /// A client that may do everything; its user agent is `e2e`.
    ///
    /// It lives in the runtime in which the control plane was started. A test with a runtime of its own, beside a control
    /// plane that several tests share, takes a new one from [`ControlPlane::client_for`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client for somebody else.
    pub async fn client_for(&self, identity: &Identity) -> Result<Client> {
        self.access.client(identity).await
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Writes a kubeconfig for somebody else into this control plane's folder and returns its path.
    pub async fn kubeconfig_for(&self, identity: &Identity) -> Result<PathBuf> {
        let path = self.folder.path().join(format!("kubeconfig-{}", identity.file_name()));
        self.access.write_kubeconfig(&path, identity).await?;
        Ok(path)
    }

    /// Address and credentials.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// The folder with its data and logs; tests may put files of their own there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Installs every CRD of [`definitions`], and returns when objects of all of them can be written.
    pub async fn install_crds(&self) -> Result<()> {
        definitions::install(&self.client, &definitions::all(&Lab::load()?)?).await
    }

    /// Returns when one of the programs has ended, which none does by itself: the answer says which, and why.
    pub async fn broken(&mut self) -> anyhow::Error {
        loop {
            if let Err(dead) = self.check() {
                return dead;
            }
            tokio::time::sleep(HEALTH_INTERVAL).await;
        }
    }

    /// Refuses a control plane of which a program has ended.
    fn check(&mut self) -> Result<()> {
        for program in self.programs() {
            if let Some(ended) = program.ended()? {
                return Err(anyhow!("{} {ended}", program.name()).context(program.tail()));
            }
        }
        Ok(())
    }

    /// In the order in which they have to go.
    fn programs(&mut self) -> impl Iterator<Item = &mut Process> {
        self.controllers
            .iter_mut()
            .chain([&mut self.api_server, &mut self.etcd])
    }

    /// Every request that the API server answered since its start.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::new(self.folder.path().join(programs::AUDIT_LOG), self.client())
    }

    /// The API server's own metrics, as of now.
    pub async fn metrics(&self) -> Result<Metrics> {
        let text = self
            .client
            .request_text(get("/metrics")?)
            .await
            .context("failed to read the API server's metrics")?;
        Metrics::parse(&text)
    }

    /// A guard that dumps this control plane unless the test passes.
    ///
    /// Declare it after the control plane, and call it off in the test's last line:
    ///
    /// ```no_run
    /// # async fn journey() -> anyhow::Result<()> {
    /// let control_plane = e2e::ControlPlane::start(e2e::Options::default()).await?;
    /// let dump = control_plane.failure_dump();
    /// // … the journey, with `?` and `assert!` …
    /// dump.call_off();
    /// # Ok(()) }
    /// ```
    pub fn failure_dump(&self) -> FailureDump {
        FailureDump::new(self.access.clone(), self.folder.path())
    }
}

/// A request without body to the API server.
pub(crate) fn get(path: &str) -> Result<http::Request<Vec<u8>>> {
    http::Request::get(path)
        .body(Vec::new())
        .with_context(|| format!("{path:?} is not a path"))
}

/// A port that nobody listens on yet.
pub(crate) fn free_port() -> Result<u16> {
    use std::hash::{BuildHasher, RandomState};
    for attempt in 0..1_000_u32 {
        // Random, so that processes that start at the same time do not walk the same way.
        let random = RandomState::new().hash_one(attempt);
        let port = u16::try_from(PORTS.start + random % (PORTS.end - PORTS.start))?;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("found no free port between {} and {}", PORTS.start, PORTS.end)
}
