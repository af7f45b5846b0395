//! Puts the operator together and takes it apart: client, servers, leadership, watches, drivers, shutdown.

use std::time::Duration;

use anyhow::Context as _;
use crds::labels;
use kube::Client;
use operator_kit::client::{ClientOptions, Traffic, connect};
use operator_kit::flags::warn_of_flags_without_effect;
use operator_kit::https::Expiries;
use operator_kit::lease::Fence;
use operator_kit::process::{Endpoints, Standing, listening, permits, stop_on_signal, until_stopped};
use operator_kit::telemetry::{LogLevel, Readiness, Traces, registry};
use operator_kit::workload::WorkloadMetrics;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::PROGRAM;
use crate::args::Args;
use crate::census::Census;
use crate::clusters::ClusterSight;
use crate::hooks;
use crate::metrics::{Metrics, Supply};
use crate::operator::{Tidings, operate};
use crate::tasks::Tasks;
use crate::webhooks::{self, Facts};

/// How long the drivers may take to finish what they are doing once the process was asked to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs until the process is asked to stop; an error means that it could not work, or may no longer.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let traces = traces(&args)?;
    let log_level = args.log.install(traces.as_ref())?;
    Box::pin(until_stopped(&log_level, traces, work(&args, &log_level))).await
}

/// Works until the process is asked to stop.
async fn work(args: &Args, log_level: &LogLevel) -> anyhow::Result<()> {
    introduce(args);
    let mut registry = registry();
    let traffic = Traffic::register(&mut registry);
    let (tenure, fence) = permits(args.lease.leader_elect.then_some(args.shards));
    tenure.register(&mut registry);
    let options = args
        .requests
        .options(args.kubeconfig.clone(), PROGRAM.user_agent(), fence.clone());
    let client = connect(&options, &traffic).await?;
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone(), DRAIN));
    let readiness = Readiness::default();
    let tallies = Tallies::register(args, &mut registry);
    let tidings = Tidings {
        watches: readiness.gate("watches of ClusterStacks and ClusterStackReleases"),
        shards: readiness.open_gate("shards"),
        readiness: readiness.clone(),
        census: Census::register(&mut registry, &tenure),
        metrics: Metrics::register(&mut registry),
        supply: Supply::register(&mut registry),
        tasks: Tasks::register(&mut registry),
        tenure,
        fence: fence.clone(),
        workloads: if args.cluster_addons {
            WorkloadMetrics::register(&mut registry)
        } else {
            WorkloadMetrics::default()
        },
    };
    let servers = CancellationToken::new();
    let endpoints = Endpoints {
        metrics: args.metrics_bind_address,
        health: args.health_probe_bind_address,
    };
    endpoints.serve(registry, readiness, log_level, &servers).await?;
    let asked = connect(&unhindered(options), &traffic).await?;
    let (sight, answering) = answer(args, &client, asked, &tidings.readiness, tallies, &servers).await?;
    let outcome = if args.lease.leader_elect {
        lead(args, client, tidings, fence, sight, &stop).await
    } else {
        operate(args, client, tidings, sight, stop).await
    };
    servers.cancel();
    outcome?;
    for server in answering {
        server.await.context("a server ended abnormally")?;
    }
    Ok(())
}

/// The way of spans to a collector, where there is one.
fn traces(args: &Args) -> anyhow::Result<Option<Traces>> {
    let collector = args.otlp_endpoint.0.as_ref();
    let start = |collector| Traces::start(collector, PROGRAM.name, PROGRAM.version);
    collector.map(start).transpose().context("failed to prepare for traces")
}

/// Without --qps and Lease: whoever waits for an answer of webhooks or hooks does not wait behind the operator's work, nor for its turn.
fn unhindered(options: ClientOptions) -> ClientOptions {
    ClientOptions {
        qps: 0.0,
        fence: Fence::default(),
        ..options
    }
}

/// What the servers count that answer others.
struct Tallies {
    expiries: Expiries,
    webhooks: webhooks::Tally,
    hooks: Option<hooks::Tally>,
}

impl Tallies {
    fn register(args: &Args, registry: &mut Registry) -> Self {
        let expiries = Expiries::register(registry);
        Self {
            webhooks: webhooks::Tally::register(registry, expiries.clone()),
            hooks: args.cluster_addons.then(|| hooks::Tally::register(registry)),
            expiries,
        }
    }
}

/// Begins to answer the API server and Cluster API, on replicas that do not lead too, where there are folders for the certificates.
async fn answer(
    args: &Args,
    client: &Client,
    asked: Client,
    readiness: &Readiness,
    tallies: Tallies,
    servers: &CancellationToken,
) -> anyhow::Result<(Option<ClusterSight>, Vec<JoinHandle<()>>)> {
    let (of_webhooks, of_hooks) = (webhooks::directory(args).await, hooks::directory(args).await);
    let mut answering = Vec::new();
    if of_webhooks.is_none() && of_hooks.is_none() {
        return Ok((None, answering));
    }
    let sight = ClusterSight::start(client, args.keeps(), readiness, servers);
    if let Some(directory) = of_webhooks {
        let facts = Facts::new(asked.clone(), &sight);
        let tally = tallies.webhooks;
        let (address, serving) = webhooks::serve(args, directory, facts, readiness, tally, servers.clone()).await?;
        listening("webhook", address);
        answering.push(serving);
    }
    if let (Some(directory), Some(tally)) = (of_hooks, tallies.hooks) {
        let surroundings = hooks::Surroundings {
            client: asked,
            sight: &sight,
            readiness,
            expiries: &tallies.expiries,
            tally,
        };
        let (address, serving) = hooks::serve(args, directory, surroundings, servers.clone()).await?;
        listening("hook", address);
        answering.push(serving);
    }
    Ok((Some(sight), answering))
}

fn introduce(args: &Args) {
    tracing::info!(
        version = PROGRAM.version,
        source = args.usual.source().map(|usual| usual.to_string()).unwrap_or_default(),
        releases = %args.usual.release_dir().display(),
        namespace = args.scope.told_namespace(),
        watch_filter = args.scope.told_watch_filter(),
        leader_election = args.lease.leader_elect,
        shards = args.shards,
        cluster_addons = args.cluster_addons,
        "core-operator"
    );
    warn_of_flags_without_effect(&args.without_effect(), "Go operator");
}

/// Waits for leadership and works while it lasts.
async fn lead(
    args: &Args,
    client: Client,
    tidings: Tidings,
    fence: Fence,
    mut sight: Option<ClusterSight>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let options = args.lease.candidacy(&args.lease.leader_elect_name, labels::MEMBERS);
    let standing = Standing::begin(client.clone(), options, tidings.tenure.clone(), fence, stop);
    // A standby is ready too: it is there to take over.
    tidings.watches.open();
    tidings.tell_shards();
    let standby = async {
        if let Some(sight) = &mut sight {
            sight.stand_by().await;
        }
    };
    let Some(standing) = standing.lead(standby).await? else {
        return Ok(());
    };
    tidings.watches.close();
    let ends = stop.child_token();
    let working = Box::pin(operate(args, client, tidings, sight, ends.clone()));
    standing.work(working, &ends, Duration::ZERO).await
}
