//! Puts the operator together and takes it apart: client, servers, leadership, drivers, shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use crds::labels;
use jiff::Timestamp;
use kube::Client;
use operator_kit::client::{ClientOptions, Traffic, connect};
use operator_kit::lease::{Clock, Fence, Leadership, LeaseOptions, Tenure, Timing, elect};
use operator_kit::telemetry::{self, LogLevel, Readiness, init_logging, registry, serve_health, serve_metrics};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, LogFormat};
use crate::metrics::Metrics;
use crate::operator::{Ends, Tidings, operate};

/// How long everything but transfers may take to end once the process was asked to stop.
const FINISH: Duration = Duration::from_secs(10);

/// How long deeds may take to end once another process leads.
const FENCED: Duration = Duration::from_secs(2);

/// Runs until the process is asked to stop; an error means that it could not work, or may no longer.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let format = match args.log_format {
        LogFormat::Json => telemetry::LogFormat::Json,
        LogFormat::Text => telemetry::LogFormat::Text,
    };
    let log_level = init_logging(format, &args.log_level, None)?;
    work(&args, &log_level).await?;
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
        user_agent: format!("stackwright-provider-operator/{}", env!("CARGO_PKG_VERSION")),
        fence: fence.clone(),
    };
    let client = connect(&options, &traffic).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone(), args.drain + FINISH));
    let readiness = Readiness::default();
    let tidings = Tidings {
        watches: readiness.gate("watches of image and release objects"),
        readiness: readiness.clone(),
        metrics: Metrics::register(&mut registry),
        tenure,
    };
    let servers = CancellationToken::new();
    #[cfg(feature = "filestore")]
    let images = serve_images(args, &stop).await?;
    tell(args, registry, readiness, log_level, &servers).await?;
    let outcome = if args.leader_elect {
        lead(args, client, tidings, fence, &stop).await
    } else {
        let fenced = CancellationToken::new();
        Box::pin(operate(args, client, tidings, Ends { stop, fenced })).await
    };
    servers.cancel();
    #[cfg(feature = "filestore")]
    images.ended().await;
    outcome
}

/// Begins to give images to who fetches them. Also while another replica leads: what is published is the same for all who have the directory.
#[cfg(feature = "filestore")]
async fn serve_images(args: &Args, stop: &CancellationToken) -> anyhow::Result<ImageServer> {
    let cancel = stop.child_token();
    let Some(address) = args.clouds.serve_filestore.0 else {
        return Ok(ImageServer { cancel, task: None });
    };
    let stores = args.clouds.filestores().map_err(anyhow::Error::msg)?;
    let (address, task) = crate::image_server::serve(address, &stores, args.drain, cancel.clone()).await?;
    listening("images", address);
    let task = Some(task);
    Ok(ImageServer { cancel, task })
}

/// The server of images, if there is one.
#[cfg(feature = "filestore")]
struct ImageServer {
    cancel: CancellationToken,
    task: Option<tokio::task::JoinHandle<()>>,
}

#[cfg(feature = "filestore")]
impl ImageServer {
    /// Whoever is fetching an image has the patience of the process; that has begun when the process was asked to stop.
    async fn ended(self) {
        self.cancel.cancel();
        if let Some(task) = self.task {
            let _ = task.await;
        }
    }
}

/// What may be worked on and written: nothing before a Lease is held, where a Lease decides.
fn permits(args: &Args) -> (Tenure, Fence) {
    if args.leader_elect {
        (Tenure::of(1), Fence::shut(Clock::since_boot()))
    } else {
        (Tenure::of_everything(), Fence::default())
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
        let (address, _) = serve_metrics(address, Arc::new(registry), servers.clone()).await?;
        listening("metrics", address);
    }
    if let Some(address) = args.health_probe_bind_address.0 {
        let (address, _) = serve_health(address, readiness, Some(log_level.clone()), servers.clone()).await?;
        listening("health", address);
    }
    Ok(())
}

fn listening(what: &str, address: SocketAddr) {
    tracing::info!(%address, "{what} endpoint is up");
}

fn introduce(args: &Args) {
    let or_all = |text: &str| if text.is_empty() { "all" } else { text }.to_owned();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        providers = args.providers.join(","),
        source = args.usual.source().map(|usual| usual.to_string()).unwrap_or_default(),
        releases = %args.usual.release_dir().display(),
        namespace = or_all(&args.namespace),
        watch_filter = or_all(&args.watch_filter),
        leader_election = args.leader_elect,
        "provider-operator"
    );
    let without_effect = args.later.given();
    if !without_effect.is_empty() {
        tracing::warn!(
            flags = without_effect.join(" "),
            "flags of the Go provider that have no effect in this version"
        );
    }
}

/// Waits for leadership and works while it lasts. A process that lost it ends: whatever it still had in flight must not race with the next.
async fn lead(
    args: &Args,
    client: Client,
    tidings: Tidings,
    fence: Fence,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let options = LeaseOptions {
        namespace: args.lease_namespace(),
        name: args.lease_name(),
        identity: identity(),
        timing: Timing::of(args.lease_duration),
        members: labels::MEMBERS,
    };
    // Who is to end takes nothing any more. The Lease is let go when nothing runs, transfers included.
    let election = stop.child_token();
    let (mut leadership, standing) = elect(client.clone(), options, tidings.tenure.clone(), fence, election.clone());
    // A standby is ready too: it is there to take over.
    tidings.watches.open();
    let (namespace, name) = (args.lease_namespace(), args.lease_name());
    tracing::info!(namespace, name, "standing for election by the Lease");
    tokio::select! {
        // Who is to end ends the election too, so that both are known at once.
        biased;
        () = stop.cancelled() => {
            standing.await.context("the election ended abnormally")?;
            return Ok(());
        }
        led = led(&mut leadership) => {
            led.context("the election ended")?;
            tidings.watches.close();
            tracing::info!("leading");
        }
    }
    let ends = Ends {
        stop: stop.child_token(),
        fenced: CancellationToken::new(),
    };
    let mut working = Box::pin(operate(args, client, tidings, ends.clone()));
    let outcome = tokio::select! {
        outcome = &mut working => outcome,
        lost = lost(&mut leadership, stop) => {
            ends.fenced.cancel();
            // It cannot write any more; what it has open in clouds is closed before the next process can mind.
            let _ = tokio::time::timeout(FENCED, working).await;
            return Err(lost);
        }
    };
    election.cancel();
    standing.await.context("the election ended abnormally")?;
    outcome
}

/// Returns when the Lease was lost, and says why. An election that ends because the process is to end loses nothing.
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

/// Unique among replicas and restarts: a host name may come back, a start time on it does not.
fn identity() -> String {
    let started = Timestamp::now().as_millisecond();
    format!("{}_{}_{started}", host(), std::process::id())
}

/// The name of the Pod, in a cluster.
pub(crate) fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

async fn stop_on_signal(stop: CancellationToken, patience: Duration) {
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
        () = tokio::time::sleep(patience) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("gave up what was still being done; the next process finds out and goes on");
    std::process::exit(1);
}
