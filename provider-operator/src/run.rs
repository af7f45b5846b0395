//! Puts the operator together and takes it apart: client, servers, leadership, drivers, shutdown.

use std::future::pending;
use std::time::Duration;

use crds::labels;
use jiff::Timestamp;
use kube::Client;
use operator_kit::client::{ClientOptions, Traffic, connect};
use operator_kit::lease::Fence;
use operator_kit::process::{Endpoints, Standing, permits, stop_on_signal, until_stopped};
use operator_kit::telemetry::{LogLevel, Readiness, registry};
use tokio_util::sync::CancellationToken;

use crate::PROGRAM;
use crate::args::{Args, Listing};
use crate::metrics::Metrics;
use crate::operator::{Ends, Tidings, operate};
use crate::sweeper::{self, Left};

/// How long everything but transfers may take to end once the process was asked to stop.
const FINISH: Duration = Duration::from_secs(10);

/// How long deeds may take to close what they have open in clouds once another process leads: it cannot mind by then.
const FENCED: Duration = Duration::from_secs(2);

/// Runs until the process is asked to stop; an error means that it could not work, or may no longer.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let log_level = args.log.install(None)?;
    until_stopped(&log_level, None, work(&args, &log_level)).await
}

/// Lists orphans, and deletes those that may go where that is asked for.
pub(crate) async fn list(args: &Args, listing: Listing) -> anyhow::Result<Left> {
    let traffic = Traffic::register(&mut registry());
    let client = connect(&client_options(args, Fence::default()), &traffic).await?;
    let owner = sweeper::owner(args, &client).await?;
    sweeper::list(args, &client, &owner, listing.is_deleting, Timestamp::now()).await
}

fn client_options(args: &Args, fence: Fence) -> ClientOptions {
    args.requests
        .options(args.kubeconfig.clone(), PROGRAM.user_agent(), fence)
}

/// Works until the process is asked to stop.
async fn work(args: &Args, log_level: &LogLevel) -> anyhow::Result<()> {
    introduce(args);
    let mut registry = registry();
    let traffic = Traffic::register(&mut registry);
    let (tenure, fence) = permits(args.lease.leader_elect.then_some(1));
    tenure.register(&mut registry);
    let client = connect(&client_options(args, fence.clone()), &traffic).await?;
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
    let endpoints = Endpoints {
        metrics: args.metrics_bind_address,
        health: args.health_probe_bind_address,
    };
    endpoints.serve(registry, readiness, log_level, &servers).await?;
    let outcome = if args.lease.leader_elect {
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
    operator_kit::process::listening("images", address);
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

fn introduce(args: &Args) {
    tracing::info!(
        version = PROGRAM.version,
        providers = args.providers.join(","),
        source = args.usual.source().map(|usual| usual.to_string()).unwrap_or_default(),
        releases = %args.usual.release_dir().display(),
        namespace = args.scope.told_namespace(),
        watch_filter = args.scope.told_watch_filter(),
        leader_election = args.lease.leader_elect,
        "provider-operator"
    );
}

/// Waits for leadership and works while it lasts.
async fn lead(
    args: &Args,
    client: Client,
    tidings: Tidings,
    fence: Fence,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let options = args.lease.candidacy(&args.lease_name(), labels::MEMBERS);
    // The Lease is let go when nothing runs, transfers included.
    let standing = Standing::begin(client.clone(), options, tidings.tenure.clone(), fence, stop);
    // A standby is ready too: it is there to take over.
    tidings.watches.open();
    let Some(standing) = standing.lead(pending()).await? else {
        return Ok(());
    };
    tidings.watches.close();
    let ends = Ends {
        stop: stop.child_token(),
        fenced: CancellationToken::new(),
    };
    let fenced = ends.fenced.clone();
    let working = Box::pin(operate(args, client, tidings, ends));
    standing.work(working, &fenced, FENCED).await
}
