//! A core operator as a process of its own: started, killed and started again as a user would find it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::Value;

use crate::{Ended, Lab, Metrics, Process, built::Program, eventually};

/// Two busy cores start several at once.
const READY_DEADLINE: Duration = Duration::from_mins(1);
/// What its log says of its hook server.
const HOOKS_ARE_UP: &str = "hook endpoint is up";
/// The operator drains for five seconds at most.
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// How an operator is started.
#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// Which build of it.
    pub program: Program,
    /// Whom it talks to and as whom.
    pub kubeconfig: PathBuf,
    /// The namespace it looks after; all when empty.
    pub namespace: String,
    /// The directory of releases.
    pub release_dir: PathBuf,
    /// Where it stores its decisions, if it does.
    pub record: Option<PathBuf>,
    /// Further flags; later ones win.
    pub flags: Vec<OsString>,
    /// The file that its log is appended to.
    pub log: PathBuf,
}

impl OperatorOptions {
    /// Its command line, for whoever changes the environment and starts it with [`Operator::start_as`].
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(self.program.path()?);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--namespace").arg(&self.namespace);
        command.arg("--local").arg("--release-dir").arg(&self.release_dir);
        // Port 0: the system chooses, and the log says which.
        command.args([
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
        ]);
        if let Some(folder) = &self.record {
            command.arg("--record").arg(folder);
        }
        if !self
            .flags
            .iter()
            .any(|flag| flag.to_string_lossy().starts_with("--leader-elect"))
        {
            command.arg("--leader-elect=false");
        }
        command.args(&self.flags);
        Ok(command)
    }
}

/// What lets an operator read from servers of this machine, and keep what it read in this folder.
pub fn sources_of_this_machine(cache: &Path) -> Vec<OsString> {
    let mut folder = OsString::from("--cache-dir=");
    folder.push(cache);
    vec![
        "--allow-plain-http".into(),
        "--allow-source-network=127.0.0.0/8".into(),
        folder,
    ]
}

/// A running operator. Dropped, it is killed.
#[derive(Debug)]
pub struct Operator {
    process: Process,
    /// Where the log of this start begins: a log is appended to by every start.
    log_start: u64,
}

impl Operator {
    /// Starts one without waiting for anything.
    pub fn start(lab: &Lab, options: &OperatorOptions) -> Result<Self> {
        Self::start_as(lab, &options.command()?, &options.log)
    }

    /// The same with a command line and an environment that somebody else wrote.
    pub fn start_as(lab: &Lab, command: &Command, log: &Path) -> Result<Self> {
        let log_start = fs::metadata(log).map_or(0, |file| file.len());
        let process = Process::start(lab, "core-operator", command, log)?;
        Ok(Self { process, log_start })
    }

    /// Returns when it calls itself ready: its watches are there, or it stands by for the Lease.
    pub async fn ready(&mut self) -> Result<()> {
        let url = self.health_url("/readyz").await?;
        let ready = async || match get(&url).await? {
            (StatusCode::OK, _) => Ok(()),
            (status, text) => Err(anyhow!("{url} answered {status}: {text}")),
        };
        let waited = eventually(READY_DEADLINE, "the operator to be ready", ready).await;
        waited.with_context(|| self.process.tail())
    }

    /// What its health endpoint answers to this path, status and text.
    pub async fn health(&mut self, path: &str) -> Result<(StatusCode, String)> {
        get(&self.health_url(path).await?).await
    }

    /// What its health endpoint answers when `body` is put to this path.
    pub async fn put_to_health(&mut self, path: &str, body: &'static str) -> Result<(StatusCode, String)> {
        let request = Request::put(self.health_url(path).await?).body(Full::from(body))?;
        answer_to(request).await
    }

    async fn health_url(&mut self, path: &str) -> Result<String> {
        let address = self.address_of("health endpoint is up").await?;
        Ok(format!("http://{address}{path}"))
    }

    /// Its own metrics, as of now.
    pub async fn metrics(&mut self) -> Result<Metrics> {
        Metrics::parse(&self.metrics_page().await?)
    }

    /// Where its metrics are.
    pub async fn metrics_url(&mut self) -> Result<String> {
        let address = self.address_of("metrics endpoint is up").await?;
        Ok(format!("http://{address}/metrics"))
    }

    /// The page that [`Operator::metrics`] reads.
    pub async fn metrics_page(&mut self) -> Result<String> {
        let (status, text) = get(&self.metrics_url().await?).await?;
        ensure!(status.is_success(), "the metrics endpoint answered {status}: {text}");
        Ok(text)
    }

    /// What its server of images answers to this path, status and bytes.
    pub async fn images(&mut self, path: &str) -> Result<(StatusCode, Bytes)> {
        let address = self.address_of("images endpoint is up").await?;
        bytes_of(Request::get(format!("http://{address}{path}")).body(Full::default())?).await
    }

    /// The port of its webhooks.
    pub async fn webhook_port(&mut self) -> Result<u16> {
        self.port_of("webhook endpoint is up").await
    }

    /// The port of its hook server.
    pub async fn hook_port(&mut self) -> Result<u16> {
        self.port_of(HOOKS_ARE_UP).await
    }

    async fn port_of(&mut self, message: &str) -> Result<u16> {
        port_in(&self.address_of(message).await?)
    }

    /// The address in the log line with this message.
    async fn address_of(&mut self, message: &str) -> Result<String> {
        let found = eventually(READY_DEADLINE, format!("the log line {message:?}"), || {
            let found = match self.process.ended() {
                Ok(None) => Ok(self
                    .logged(message)
                    .and_then(|line| Some(line["address"].as_str()?.to_owned()))),
                Ok(Some(ended)) => Err(anyhow!("the operator {ended}")),
                Err(error) => Err(error),
            };
            std::future::ready(found.transpose().ok_or("it is not there"))
        });
        let found = found.await;
        found
            .with_context(|| self.process.tail())?
            .with_context(|| self.process.tail())
    }

    /// The first line of this start's log with this message, fields beside it.
    fn logged(&self, message: &str) -> Option<Value> {
        let text = fs::read(self.process.log()).ok()?;
        let text = text.get(usize::try_from(self.log_start).ok()?..)?;
        lines_with(text, message).next()
    }

    /// The log of every start with the same file.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// The process id of the operator itself, for readers of `/proc`.
    pub fn process_id(&self) -> Option<u32> {
        self.process.command_id()
    }

    /// Fails when it has ended, which it does not do by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.process.ended()? {
            None => Ok(()),
            Some(ended) => bail!("the operator {ended}; {}", self.process.tail()),
        }
    }

    /// Waits until it ends by itself, and returns how.
    pub async fn ended(&mut self, deadline: Duration) -> Result<Ended> {
        self.process.wait(deadline).await
    }

    /// Runs beside what it is needed for: returns only when it ends by itself, which is a failure, with the end of its log.
    pub async fn runs_on(&mut self, deadline: Duration) -> Result<()> {
        self.ended(deadline).await?;
        self.check()
    }

    /// Ends it as Kubernetes does, and returns how it ended.
    pub async fn stop(mut self) -> Result<Ended> {
        self.process.terminate(STOP_DEADLINE).await
    }

    /// The same; fails if that takes longer.
    pub async fn stop_within(mut self, deadline: Duration) -> Result<Ended> {
        self.process.terminate(deadline).await
    }

    /// Stops it between two instructions, until [`Operator::wake`].
    pub fn pause(&self) -> Result<()> {
        self.process.pause()
    }

    /// Lets it run on.
    pub fn wake(&self) -> Result<()> {
        self.process.wake()
    }

    /// Ends it by SIGKILL.
    pub async fn kill(mut self) -> Result<()> {
        self.process.kill9().await.map(drop)
    }
}

/// The lines of a log with this message, fields beside it.
fn lines_with(text: &[u8], message: &str) -> impl DoubleEndedIterator<Item = Value> {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(move |line| line["message"] == message)
}

fn port_in(address: &str) -> Result<u16> {
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    port.with_context(|| format!("{address:?} has no port"))
}

/// The port of the hook server that was the last to begin among those of all operators with this log. Whose it was may be dead.
pub(crate) fn last_hook_port(log: &Path) -> Result<u16> {
    let text = fs::read(log).with_context(|| format!("failed to read {}", log.display()))?;
    let line = lines_with(&text, HOOKS_ARE_UP).next_back();
    let line = line.context("nobody has answered hooks yet")?;
    port_in(line["address"].as_str().unwrap_or_default())
}

/// What is answered there over plain HTTP, status and text.
pub(crate) async fn get(url: &str) -> Result<(StatusCode, String)> {
    answer_to(Request::get(url).body(Full::default())?).await
}

async fn answer_to(request: Request<Full<Bytes>>) -> Result<(StatusCode, String)> {
    let (status, body) = bytes_of(request).await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn bytes_of(request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
    let url = request.uri().to_string();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let answer = client
        .request(request)
        .await
        .with_context(|| format!("failed to ask {url}"))?;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .with_context(|| format!("failed to read {url}"))?
        .to_bytes();
    Ok((status, body))
}
