//! The watches and drivers of a process that may work.

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::Context as _;
use crds::cluster_addon::ClusterAddon;
use crds::{ClusterStack, ClusterStackRelease, labels};
use futures::channel::mpsc::UnboundedReceiver;
use futures::{FutureExt, Stream, StreamExt};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::reflector;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use operator_kit::events::Events;
use operator_kit::lease::Tenure;
use operator_kit::objects::{Marked, ObjectWatches};
use operator_kit::record::{RecordLimits, Recorder};
use operator_kit::telemetry::{Gate, Readiness};
use operator_kit::watch_log::WatchLog;
use operator_kit::watching::watching;
use operator_kit::workload;
use serde::de::DeserializeOwned;
use sourcing::Connector;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::addon::{self, Addons, ClusterPlace};
use crate::args::Args;
use crate::census::Census;
use crate::charts::{Charts, Woken};
use crate::clock::Clock;
use crate::clusters::ClusterSight;
use crate::context::Context;
use crate::driver::{Driver, reconcile};
use crate::freshest::Freshest;
use crate::heard::{addon_events, release_events, stack_events};
use crate::leftovers::Leftovers;
use crate::looking::Looking;
use crate::metrics::{Metrics, Supply};
use crate::objects::{Memories, Place};
use crate::providers::Providers;
use crate::release::{Claims, LiveMarks};
use crate::sources::{Cache, CacheOptions, SourceOptions, Sources};
use crate::stack::StackMemories;
use crate::surroundings::look_around;
use crate::tasks::{Task, Tasks};
use crate::triggers::{self, News, Queues, Triggers};
use crate::workloads::{Outside, Workloads};

/// What `--record` keeps.
const RECORD_LIMITS: RecordLimits = RecordLimits {
    files: 100_000,
    bytes: 2 << 30,
};

/// Of our own kinds per page: with the inventory of a large release one has some ten kilobytes.
const PAGE_SIZE: u32 = 100;

/// What the process tells of its work from outside.
#[derive(Clone)]
pub(crate) struct Tidings {
    /// The first lists of our own kinds, which have to be there before it calls itself ready.
    pub(crate) watches: Gate,
    /// Closed too where a right is missing without which nothing can be done.
    pub(crate) readiness: Readiness,
    /// Counts our own kinds.
    pub(crate) census: Census,
    /// Counts the work.
    pub(crate) metrics: Metrics,
    /// Counts what the work is done with.
    pub(crate) supply: Supply,
    /// Starts tasks that must not end.
    pub(crate) tasks: Tasks,
    /// Open, with a remark as long as no shard is held.
    pub(crate) shards: Gate,
    /// What may be worked on.
    pub(crate) tenure: Tenure,
    /// What the ways to workload clusters are made with.
    pub(crate) workloads: Outside,
}

impl Tidings {
    /// Says where it is to be seen whether there are shards to work on. Who has none is ready too: it is there to take over.
    pub(crate) fn tell_shards(&self) {
        if self.tenure.count() > 1 && self.tenure.watch().borrow().is_empty() {
            self.shards.open_but("none is held; others work on them");
        } else {
            self.shards.open();
        }
    }
}

/// Works until `stop`. `sight` is the watch of Clusters, if one was begun already.
pub(crate) async fn operate(
    args: &Args,
    client: Client,
    tidings: Tidings,
    sight: Option<ClusterSight>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let surroundings = look_around(args.clone(), client.clone());
    tokio::spawn(stop.clone().run_until_cancelled_owned(surroundings));
    let (own, writers) = own(args);
    tidings.census.count(
        &writers.stacks.as_reader(),
        &writers.releases.as_reader(),
        own.addons.as_ref().map(|(_, store)| store),
    );
    let (triggers, queues) = Triggers::new();
    let sight = sight.unwrap_or_else(|| ClusterSight::start(&client, args.keeps(), &tidings.readiness, &stop));
    let context = assemble(args, &client, sight, &tidings, own, &triggers, &stop)?;
    tidings.supply.tell_of(&context);
    let (following, waking, told) = (Arc::clone(&context), triggers.clone(), tidings.clone());
    tidings.tasks.start(Task::Triggers, stop.clone(), move || {
        triggers::follow_shards(Arc::clone(&following), waking.clone(), told.clone())
    });
    let driven = drive(args, &client, &tidings, &context, &triggers, (writers, queues), &stop);
    tokio::join!(
        driven.boxed(),
        stop.run_until_cancelled(announce(&context, &tidings.watches))
    );
    Ok(())
}

/// Runs the drivers until `stop`.
async fn drive(
    args: &Args,
    client: &Client,
    tidings: &Tidings,
    context: &Arc<Context>,
    triggers: &Triggers,
    (writers, queues): (Writers, Queues),
    stop: &CancellationToken,
) {
    let store = writers.stacks.as_reader();
    let stacks = reflector(writers.stacks, watch::<ClusterStack>(args, client, &tidings.readiness));
    let stacks = Driver {
        events: stack_events(context, triggers, stacks),
        store,
        queue: queues.stacks,
        concurrency: args.clusterstack_concurrency.unwrap_or(args.concurrency),
        work: tidings.metrics.stacks.clone(),
        reconcile: |stack, context| reconcile(stack.as_ref(), context, crate::stack::reconcile),
        keeps_silent: |_, _| false,
    };
    let store = writers.releases.as_reader();
    let releases = reflector(
        writers.releases,
        watch::<ClusterStackRelease>(args, client, &tidings.readiness),
    );
    let releases = Driver {
        events: release_events(context, triggers, releases),
        store,
        queue: queues.releases,
        concurrency: args.clusterstackrelease_concurrency.unwrap_or(args.concurrency),
        work: tidings.metrics.releases.clone(),
        reconcile: |release, context| reconcile(release.as_ref(), context, crate::release::reconcile),
        keeps_silent: |_, _| false,
    };
    let addons = writers.addons.map(|writer| {
        let concurrency = args.clusteraddon_concurrency.unwrap_or(args.concurrency);
        look_after_clusters(tidings, context, triggers, queues.clusters, concurrency, stop);
        let store = writer.as_reader();
        let addons = reflector(writer, watch::<ClusterAddon>(args, client, &tidings.readiness));
        Driver {
            events: addon_events(context, triggers, addons),
            store,
            queue: queues.addons,
            concurrency,
            work: tidings.metrics.addons.clone(),
            reconcile: |addon, context| reconcile(addon.as_ref(), context, addon::reconcile),
            keeps_silent: addon::keeps_silent,
        }
    });
    let addons = async {
        if let Some(addons) = addons {
            addons.run(context, stop).await;
        }
    };
    let others = async { tokio::join!(stacks.run(context, stop).boxed(), releases.run(context, stop).boxed()) };
    let are_others_listed = || context.stacks.is_listed() && context.releases.is_listed();
    let are_addons_listed = || context.addons.as_ref().is_none_or(|addons| addons.objects.is_listed());
    tokio::join!(
        unless_idle(others, are_others_listed, stop),
        unless_idle(addons.boxed(), are_addons_listed, stop)
    );
}

/// Drivers that still wait for their first list have nothing to finish, and would not notice the end.
async fn unless_idle<T>(driving: impl Future<Output = T>, is_listed: impl Fn() -> bool, stop: &CancellationToken) {
    let idle = async {
        stop.cancelled().await;
        if is_listed() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = driving => {}
        () = idle => {}
    }
}

/// Begins to look after Clusters that have no ClusterAddon.
fn look_after_clusters(
    tidings: &Tidings,
    context: &Arc<Context>,
    triggers: &Triggers,
    queue: UnboundedReceiver<ClusterPlace>,
    concurrency: u16,
    stop: &CancellationToken,
) {
    let (context, triggers) = (Arc::clone(context), triggers.clone());
    tidings
        .tasks
        .start_with(Task::Making, stop.clone(), queue, move |queue| {
            addon::make(Arc::clone(&context), triggers.clone(), queue, usize::from(concurrency))
        });
}

/// Says that the process is ready when our own kinds have been listed.
async fn announce(context: &Context, watches: &Gate) {
    context.listed().await;
    watches.open();
    tracing::info!(
        stacks = context.stacks.watched().len(),
        releases = context.releases.watched().len(),
        addons = context.addons.as_ref().map(|addons| addons.objects.watched().len()),
        "at work"
    );
}

/// By what a release is looked for: its stack does, and others that name the same objects.
fn handles_of_release(release: &ClusterStackRelease) -> Vec<String> {
    let of_stacks = crate::stack::handles(release).into_iter();
    of_stacks.chain(crate::release::handles(release)).collect()
}

/// The objects of our own kinds.
struct Own {
    stacks: Freshest<ClusterStack>,
    releases: Freshest<ClusterStackRelease>,
    /// Where add-ons are looked after.
    addons: Option<(Freshest<ClusterAddon>, Store<ClusterAddon>)>,
}

/// What fills them.
struct Writers {
    stacks: Writer<ClusterStack>,
    releases: Writer<ClusterStackRelease>,
    addons: Option<Writer<ClusterAddon>>,
}

fn own(args: &Args) -> (Own, Writers) {
    let (stacks, stack_writer) = store();
    let (releases, release_writer) = store();
    let (addons, addon_writer) = args.cluster_addons.then(store).unzip();
    let own = Own {
        stacks: Freshest::new(stacks),
        releases: Freshest::by(releases, handles_of_release),
        addons: addons.map(|store| (Freshest::new(Store::clone(&store)), store)),
    };
    let writers = Writers {
        stacks: stack_writer,
        releases: release_writer,
        addons: addon_writer,
    };
    (own, writers)
}

/// Makes the handles, and starts what turns their news into triggers.
fn assemble(
    args: &Args,
    client: &Client,
    sight: ClusterSight,
    tidings: &Tidings,
    own: Own,
    triggers: &Triggers,
    stop: &CancellationToken,
) -> anyhow::Result<Arc<Context>> {
    let (discovery, crds) = (sight.discovery, sight.crds);
    let here = args.scope.namespace.as_str();
    let marked = Marked::by_anybody(labels::PART_OF, here);
    let (objects, object_notices) = ObjectWatches::new(client.clone(), discovery.clone(), marked, stop.clone());
    let (leftovers, left_behind) = Leftovers::start(client.clone(), discovery.clone(), &crds, here, stop.clone());
    let (providers, provider_changes) =
        Providers::new(client.clone(), discovery.clone(), crds.clone(), here, stop.clone());
    let woken = triggers.of_addons();
    let new_addons = |(objects, _)| Addons::new(objects, client, (&discovery, &crds), &args.scope, woken, stop);
    let (addons, part_changes) = own.addons.map(new_addons).unzip();
    let (workloads, workload_news) = workloads(args, client, tidings, stop)?.unzip();
    let (sources, source_changes) = Sources::new(source_options(args, client, &tidings.tasks)?, stop.clone());
    let context = Arc::new(Context {
        management: Place {
            client: client.clone(),
            discovery,
            crds: crds.clone(),
            objects,
        },
        clock: Clock::start(),
        tenure: tidings.tenure.clone(),
        clusters: sight.clusters,
        leftovers,
        providers,
        sources,
        charts: charts(args, tidings, triggers),
        stacks: own.stacks,
        releases: own.releases,
        addons,
        workloads,
        memories: Memories::default(),
        claims: Claims::default(),
        live_marks: LiveMarks::of(here),
        stack_memories: StackMemories::default(),
        looking: Looking::new(stop.clone()),
        events: Events::start(client.clone(), "clusterstack.x-k8s.io/core-operator", "core-operator"),
        recorder: recorder(args)?,
        metrics: tidings.metrics.clone(),
    });
    let news = News {
        objects: object_notices,
        clusters: sight.notices,
        leftovers: left_behind,
        providers: provider_changes,
        parts: part_changes,
        workloads: workload_news,
        sources: source_changes,
        crds,
    };
    triggers::follow(&context, &tidings.tasks, triggers, stop, news);
    Ok(context)
}

/// The ways to the clusters whose add-ons are looked after.
fn workloads(
    args: &Args,
    client: &Client,
    tidings: &Tidings,
    stop: &CancellationToken,
) -> anyhow::Result<Option<(Workloads, mpsc::Receiver<workload::News>)>> {
    if !args.cluster_addons {
        return Ok(None);
    }
    Workloads::new(client.clone(), &args.workloads, tidings.workloads.clone(), stop).map(Some)
}

fn charts(args: &Args, tidings: &Tidings, triggers: &Triggers) -> Charts {
    let woken = Woken {
        releases: triggers.of_releases(),
        addons: args.cluster_addons.then(|| triggers.of_addons()),
    };
    let cache_bytes = usize::try_from(args.render_cache_max_bytes).unwrap_or(usize::MAX);
    Charts::new(cache_bytes, tidings.metrics.clone(), woken)
}

fn source_options(args: &Args, client: &Client, tasks: &Tasks) -> anyhow::Result<SourceOptions> {
    let network = args
        .download
        .network()
        .context("failed to prepare for remote sources")?;
    let (usual, root) = (args.usual.source()?, args.usual.release_dir().to_owned());
    Ok(SourceOptions {
        rescan: args.rescan_interval,
        connector: Arc::new(Connector::new(client.clone(), network, usual, root)),
        cache: Arc::new(Cache::new(CacheOptions {
            directory: args.download.cache_dir.clone(),
            max_bytes: args.download.cache_max_bytes,
        })),
        trusted_root: args.trusted_root_file.clone(),
        tasks: tasks.clone(),
    })
}

fn recorder(args: &Args) -> anyhow::Result<Option<Recorder>> {
    let open = |directory: &std::path::PathBuf| Recorder::open(directory, RECORD_LIMITS);
    args.record
        .as_ref()
        .map(open)
        .transpose()
        .context("--record cannot be used")
}

/// The watch of one of our kinds. An object that cannot be read is reported and passed over: it must not stop the others.
fn watch<K>(
    args: &Args,
    client: &Client,
    readiness: &Readiness,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
{
    let api: Api<DeserializeGuard<K>> = if args.scope.namespace.is_empty() {
        Api::all(client.clone())
    } else {
        Api::namespaced(client.clone(), &args.scope.namespace)
    };
    let filter = match args.scope.watch_filter.as_str() {
        "" => String::new(),
        value => format!("{}={value}", labels::WATCH_FILTER),
    };
    let mut log = WatchLog::essential(K::kind(&()), readiness);
    let heard = watching(api, &filter, PAGE_SIZE).inspect(move |event| log.heard(event));
    heard.filter_map(|event| async move { event.map(readable).transpose() })
}

fn readable<K: Resource<DynamicType = ()> + Clone>(event: Event<DeserializeGuard<K>>) -> Option<Event<K>> {
    let read = |guard: DeserializeGuard<K>| match guard.0 {
        Ok(mut object) => {
            // Half of an object's bytes, and nobody here reads them.
            object.meta_mut().managed_fields = None;
            Some(object)
        }
        Err(invalid) => {
            let place = format!(
                "{}/{}",
                invalid.metadata.namespace.unwrap_or_default(),
                invalid.metadata.name.unwrap_or_default()
            );
            tracing::warn!(object = place, error = %invalid.error, "unable to read an object");
            None
        }
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(guard) => Event::InitApply(read(guard)?),
        Event::Apply(guard) => Event::Apply(read(guard)?),
        Event::Delete(guard) => Event::Delete(read(guard)?),
    })
}
