//! One service as a process that does not outlive this one. Its standard input is its lifeline: this process holds the other end, and when that
//! is closed, by a kill, a drop or the end of this process, the service ends at once; see the end of [`super::configuration`].

use std::{
    fs::File,
    hash::{BuildHasher, RandomState},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use http::Method;
use tokio::{
    net::TcpStream,
    time::{self, Instant},
};
use url::Url;

use super::{Installed, configuration::Plan};
use crate::client::{Client, whole};

/// How long a service may take to be ready on a machine with much to do, and to be gone.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How long a drop waits for the last process.
const LAST_MOMENT: Duration = Duration::from_secs(5);
/// Below those that systems give to outgoing connections.
const PORTS: std::ops::Range<u64> = 12_000..20_000;

/// A running service. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct Server {
    installed: Installed,
    plan: Plan,
    child: Child,
    lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts it and returns when it answers.
    pub(super) async fn start(installed: &Installed, plan: &Plan, client: &Client) -> Result<Self> {
        let mut child = spawn(installed, plan)?;
        let mut server = Self {
            installed: installed.clone(),
            plan: plan.clone(),
            lifeline: child.stdin.take(),
            child,
        };
        server.until_ready(client).await?;
        Ok(server)
    }

    /// Ends it by SIGKILL, and returns when nobody listens any more.
    pub(super) async fn kill(&mut self) -> Result<()> {
        self.lifeline = None;
        let end = Instant::now() + PATIENCE;
        // The process that answers is a child of ours; it has the port for as long as it lives.
        while TcpStream::connect((self.plan.address, self.plan.port)).await.is_ok() {
            if Instant::now() > end {
                bail!("{} did not end", self.plan.name);
            }
            time::sleep(LOOK).await;
        }
        let name = self.plan.name;
        self.child
            .wait()
            .with_context(|| format!("failed to wait for {name}"))?;
        Ok(())
    }

    /// Starts it again at the same place.
    pub(super) async fn start_again(&mut self, client: &Client) -> Result<()> {
        self.child = spawn(&self.installed, &self.plan)?;
        self.lifeline = self.child.stdin.take();
        self.until_ready(client).await
    }

    async fn until_ready(&mut self, client: &Client) -> Result<()> {
        let name = self.plan.name;
        let url = Url::parse(&self.plan.ready).with_context(|| format!("the URL of {name}"))?;
        let end = Instant::now() + PATIENCE;
        let logs = self.plan.folder.with_file_name(format!("{name}*.log"));
        loop {
            let answer = client.send(Method::GET, &url, &[], whole("")).await;
            let seen = match answer {
                Ok(reply) if reply.status.is_success() => return Ok(()),
                Ok(reply) => format!("it answers {}", reply.status),
                Err(error) => format!("{error:#}"),
            };
            let ended = self
                .child
                .try_wait()
                .with_context(|| format!("failed to look after {name}"))?;
            if let Some(status) = ended {
                bail!(
                    "{name} ended at its start ({status}); see {}:\n{}",
                    logs.display(),
                    self.said()
                );
            }
            if Instant::now() > end {
                bail!("{name} is not ready: {seen}; see {}:\n{}", logs.display(), self.said());
            }
            time::sleep(LOOK).await;
        }
    }

    /// What its programs had to say, for the folder may be gone when somebody looks.
    fn said(&self) -> String {
        let logs = ["server.log", "output.log"].map(|end| {
            let path = self.plan.folder.with_file_name(format!("{}-{end}", self.plan.name));
            std::fs::read_to_string(path).unwrap_or_default()
        });
        logs.concat()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.lifeline = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What answers is a child of that process and ends a moment later. Until then it may write into its folder.
        let address = SocketAddr::from((self.plan.address, self.plan.port));
        let end = Instant::now() + LAST_MOMENT;
        while std::net::TcpStream::connect_timeout(&address, LAST_MOMENT).is_ok() && Instant::now() < end {
            thread::sleep(LOOK);
        }
    }
}

/// Programs of the environment carry the path that it had when it was made, so that the server is begun by its name.
fn spawn(installed: &Installed, plan: &Plan) -> Result<Child> {
    let name = plan.name;
    let path = plan.folder.with_file_name(format!("{name}-output.log"));
    let output = File::create(&path).with_context(|| format!("failed to make {}", path.display()))?;
    let errors = output.try_clone().context("failed to share a log")?;
    Command::new(installed.python())
        .args(["-m", "gunicorn"])
        .current_dir(&plan.folder)
        .env(plan.variable, &plan.folder)
        // What they remember of the environment is for no other.
        .env("XDG_CACHE_HOME", plan.folder.join("cache"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("failed to start {name}"))
}

/// A port of this address that nobody listens on yet.
pub(super) fn free_port(address: Ipv4Addr) -> Result<u16> {
    for attempt in 0..1_000_u32 {
        // Random, so that processes that start at the same time do not walk the same way.
        let random = RandomState::new().hash_one(attempt);
        let port = u16::try_from(PORTS.start + random % (PORTS.end - PORTS.start))?;
        if TcpListener::bind((address, port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("found no free port between {} and {}", PORTS.start, PORTS.end)
}
