//! Puts the operator together and takes it apart: client, servers, leadership, watches, drivers, shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crds::labels;
use jiff::Timestamp;
use kube::Client;
use operator_kit::client::{ClientOptions, Traffic, connect};
use operator_kit::lease::{Clock, Fence, Leadership, LeaseOptions, Tenure, Timing, elect};
use operator_kit::telemetry::{self, LogLevel, Readiness, Traces, init_logging, registry, serve_health, serve_metrics};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, LogFormat};
use crate::census::Census;
use crate::clusters::ClusterSight;
use crate::metrics::{Metrics, Supply};
use crate::operator::{Tidings, operate};
use crate::tasks::Tasks;
use crate::webhooks::{self, Facts, Tally};

/// How long the drivers may take to finish what they are doing once the process was asked to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs until the process is asked to stop; an error means that it could not work, or may no longer.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let format = match args.log_format {
        LogFormat::Json => telemetry::LogFormat::Json,
        LogFormat::Text => telemetry::LogFormat::Text,
    };
    let traces = traces(&args)?;
    let log_level = init_logging(format, &args.log_level, traces.as_ref())?;
    let outcome = work(&args, &log_level).await;
    if let Some(traces) = traces {
        // What led to an end with an error is what somebody looks for.
        traces.end().await;
    }
    outcome?;
    tracing::info!("stopped");
    // The connections end with the process, and nobody needs to hear that of each watch.
    log_level.set("off")?;
    Ok(())
}

/// Works until the process is asked to stop.
async fn work(args: &Args, log_level: &LogLevel) -> anyhow::Result<()> {
    introduce(args);
    let mut registry = registry();
    let traffic = Traffic::register(&mut registry);
    let (tenure, fence) = permits(args);
    tenure.register(&mut registry);
    let options = ClientOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: None,
        qps: f64::from(args.qps),
        burst: args.burst,
        user_agent: format!("stackwright-core-operator/{}", env!("CARGO_PKG_VERSION")),
        fence: fence.clone(),
    };
    let client = connect(&options, &traffic).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let readiness = Readiness::default();
    let tally = Tally::register(&mut registry);
    let tidings = Tidings {
        watches: readiness.gate("watches of ClusterStacks and ClusterStackReleases"),
        shards: readiness.open_gate("shards"),
        readiness: readiness.clone(),
        census: Census::register(&mut registry, &tenure),
        metrics: Metrics::register(&mut registry),
        supply: Supply::register(&mut registry),
        tasks: Tasks::register(&mut registry),
        tenure,
    };
    let servers = CancellationToken::new();
    tell(args, registry, readiness, log_level, &servers).await?;
    let asked = connect(&unhindered(options), &traffic).await?;
    let webhooks = answer(args, &client, asked, &tidings.readiness, tally, &servers).await?;
    let (sight, answering) = webhooks.unzip();
    let outcome = if args.leader_elect {
        lead(args, client, tidings, fence, sight, &stop).await
    } else {
        operate(args, client, tidings, sight, stop).await
    };
    servers.cancel();
    outcome?;
    if let Some(answering) = answering {
        answering.await.context("the webhooks ended abnormally")?;
    }
    Ok(())
}

/// The way of spans to a collector, where there is one.
fn traces(args: &Args) -> anyhow::Result<Option<Traces>> {
    let collector = args.otlp_endpoint.0.as_ref();
    let start = |collector| Traces::start(collector, "core-operator", env!("CARGO_PKG_VERSION"));
    collector.map(start).transpose().context("failed to prepare for traces")
}

/// What may be worked on and written: nothing before a Lease is held, where Leases decide.
fn permits(args: &Args) -> (Tenure, Fence) {
    if args.leader_elect {
        (Tenure::of(args.shards), Fence::shut(Clock::since_boot()))
    } else {
        (Tenure::of_everything(), Fence::default())
    }
}

/// Without --qps and Lease: whoever waits for an answer of the webhooks does not wait behind the operator's work, nor for its turn.
fn unhindered(options: ClientOptions) -> ClientOptions {
    ClientOptions {
        qps: 0.0,
        fence: Fence::default(),
        ..options
    }
}

/// Begins to serve metrics and health.
async fn tell(
    args: &Args,
    registry: Registry,
    readiness: Readiness,
    log_level: &LogLevel,
    servers: &CancellationToken,
) -> anyhow::Result<()> {
    if let Some(address) = args.metrics_bind_address.0 {
        listening(
            "metrics",
            serve_metrics(address, Arc::new(registry), servers.clone()).await?.0,
        );
    }
    if let Some(address) = args.health_probe_bind_address.0 {
        let health = serve_health(address, readiness, Some(log_level.clone()), servers.clone()).await?;
        listening("health", health.0);
    }
    Ok(())
}

/// Begins to answer the API server, on replicas that do not lead too, where there is a folder for the certificate.
async fn answer(
    args: &Args,
    client: &Client,
    asked: Client,
    readiness: &Readiness,
    tally: Tally,
    servers: &CancellationToken,
) -> anyhow::Result<Option<(ClusterSight, JoinHandle<()>)>> {
    let Some(directory) = webhooks::directory(args).await else {
        return Ok(None);
    };
    let sight = ClusterSight::start(client, readiness, servers);
    let facts = Facts::new(asked, &sight);
    let (address, answering) = webhooks::serve(args, directory, facts, readiness, tally, servers.clone()).await?;
    listening("webhook", address);
    Ok(Some((sight, answering)))
}

fn introduce(args: &Args) {
    let or_all = |text: &str| if text.is_empty() { "all" } else { text }.to_owned();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        source = args.usual.source().map(|usual| usual.to_string()).unwrap_or_default(),
        releases = %args.usual.release_dir().display(),
        namespace = or_all(&args.namespace),
        watch_filter = or_all(&args.watch_filter),
        leader_election = args.leader_elect,
        shards = args.shards,
        "core-operator"
    );
    let without_effect = args.later.given();
    if !without_effect.is_empty() {
        tracing::warn!(
            flags = without_effect.join(" "),
            "flags of the Go operator that have no effect in this version"
        );
    }
}

fn listening(what: &str, address: SocketAddr) {
    tracing::info!(%address, "{what} endpoint is up");
}

/// Waits for leadership and works while it lasts. A process that lost it ends: whatever it still had in flight must not race with the next.
async fn lead(
    args: &Args,
    client: Client,
    tidings: Tidings,
    fence: Fence,
    mut sight: Option<ClusterSight>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let options = LeaseOptions {
        namespace: lease_namespace(args),
        name: args.leader_elect_name.clone(),
        identity: identity(),
        timing: Timing::of(args.lease_duration),
        members: labels::MEMBERS,
    };
    // Who is to end takes nothing any more, and lets go what has nothing running while the rest ends.
    let election = stop.child_token();
    let (mut leadership, standing) = elect(client.clone(), options, tidings.tenure.clone(), fence, election.clone());
    // A standby is ready too: it is there to take over.
    tidings.watches.open();
    tidings.tell_shards();
    tracing::info!(
        namespace = lease_namespace(args),
        name = args.leader_elect_name,
        "standing for election by the Lease"
    );
    let standby = async {
        match &mut sight {
            Some(sight) => sight.stand_by().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // Who is to end ends the election too, so that both are known at once.
        biased;
        () = stop.cancelled() => {
            standing.await.context("the election ended abnormally")?;
            return Ok(());
        }
        () = standby => {}
        led = led(&mut leadership) => {
            led.context("the election ended")?;
            tidings.watches.close();
            tracing::info!("leading");
        }
    }
    let work = stop.child_token();
    let working = operate(args, client, tidings, sight, work.clone());
    tokio::pin!(working);
    let outcome = tokio::select! {
        outcome = &mut working => outcome,
        lost = lost(&mut leadership, stop) => {
            work.cancel();
            return Err(lost);
        }
    };
    election.cancel();
    standing.await.context("the election ended abnormally")?;
    outcome
}

/// Returns when a Lease was lost, and says why. An election that ends because the process is to end loses nothing.
async fn lost(leadership: &mut watch::Receiver<Leadership>, stop: &CancellationToken) -> anyhow::Error {
    loop {
        if let Leadership::Lost(loss) = &*leadership.borrow_and_update() {
            return anyhow!("lost the Lease {loss}; another replica may be working now");
        }
        if leadership.changed().await.is_err() {
            if stop.is_cancelled() {
                std::future::pending::<()>().await;
            }
            return anyhow!("the election ended");
        }
    }
}

/// Returns when this process leads, or did, and says whom it waits for.
async fn led(leadership: &mut watch::Receiver<Leadership>) -> Result<(), watch::error::RecvError> {
    loop {
        match &*leadership.borrow_and_update() {
            Leadership::Leading | Leadership::Lost(_) => return Ok(()),
            Leadership::Standby { holder: Some(holder) } => {
                tracing::info!(holder, "standing by; another replica holds the Lease");
            }
            Leadership::Standby { holder: None } => {}
        }
        leadership.changed().await?;
    }
}

fn lease_namespace(args: &Args) -> String {
    if args.leader_elect_namespace.is_empty() {
        "default".to_owned()
    } else {
        args.leader_elect_namespace.clone()
    }
}

/// Unique among replicas and restarts: a host name may come back, a start time on it does not.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!(
        "{}_{}_{}",
        host.trim(),
        std::process::id(),
        Timestamp::now().as_millisecond()
    )
}

async fn stop_on_signal(stop: CancellationToken) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("signals cannot be received; stop the process by force");
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    stop.cancel();
    // Whoever asks twice does not want to wait.
    tokio::select! {
        () = tokio::time::sleep(DRAIN) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("gave up what was still being written; the next process finds out and goes on");
    std::process::exit(1);
}
