//! The watches and drivers of a process that may work.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use crds::{ClusterStack, ClusterStackRelease, labels};
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, reflector};
use kube::{Api, Client, Resource, ResourceExt};
use operator_kit::events::Events;
use operator_kit::lease::Tenure;
use operator_kit::objects::{Marked, ObjectWatches};
use operator_kit::record::{RecordLimits, Recorder};
use operator_kit::telemetry::{Gate, Readiness};
use operator_kit::watch_log::WatchLog;
use operator_kit::watching::watching;
use serde::de::DeserializeOwned;
use sourcing::Connector;
use tokio_util::sync::CancellationToken;

use crate::args::Args;
use crate::census::Census;
use crate::charts::Charts;
use crate::clock::Clock;
use crate::clusters::ClusterSight;
use crate::context::Context;
use crate::freshest::Freshest;
use crate::heard::{release_events, stack_events};
use crate::latecomers::Latecomers;
use crate::leftovers::Leftovers;
use crate::looking::Looking;
use crate::metrics::{Metrics, Outcome, Supply, Work};
use crate::objects::{Memories, Place};
use crate::providers::Providers;
use crate::release::{Claims, LiveMarks};
use crate::sources::{Cache, CacheOptions, SourceOptions, Sources};
use crate::stack::StackMemories;
use crate::surroundings::look_around;
use crate::tasks::{Task, Tasks};
use crate::triggers::{self, News, Triggers};

/// Memory for rendered charts that may be asked for again soon.
const RENDER_CACHE_BYTES: usize = 1 << 20;

/// What `--record` keeps.
const RECORD_LIMITS: RecordLimits = RecordLimits {
    files: 100_000,
    bytes: 2 << 30,
};

/// A panic in one reconcile is a bug; the object is looked at again after this long, the others go on.
const AFTER_PANIC: Duration = Duration::from_mins(1);

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
    let (stack_store, stack_writer) = store();
    let (release_store, release_writer) = store();
    tidings.census.count(&stack_store, &release_store);
    let own = Own {
        stacks: Freshest::new(stack_store.clone()),
        releases: Freshest::by(release_store.clone(), handles_of_release),
    };
    let (triggers, queues) = Triggers::new();
    let sight = sight.unwrap_or_else(|| ClusterSight::start(&client, &tidings.readiness, &stop));
    let context = assemble(args, &client, sight, &tidings, own, &triggers, &stop)?;
    tidings.supply.tell_of(&context);
    let (following, waking, told) = (Arc::clone(&context), triggers.clone(), tidings.clone());
    tidings.tasks.start(Task::Triggers, stop.clone(), move || {
        triggers::follow_shards(Arc::clone(&following), waking.clone(), told.clone())
    });
    let stacks = reflector(stack_writer, watch::<ClusterStack>(args, &client, &tidings.readiness));
    let stack_events = stack_events(&context, &triggers, stacks);
    let releases = reflector(
        release_writer,
        watch::<ClusterStackRelease>(args, &client, &tidings.readiness),
    );
    let release_events = release_events(&context, &triggers, releases);
    let stacks = Driver {
        events: stack_events,
        store: stack_store,
        queue: queues.stacks,
        concurrency: args.clusterstack_concurrency.unwrap_or(args.concurrency),
        work: tidings.metrics.stacks.clone(),
        reconcile: |stack, context| reconcile(stack.as_ref(), context, crate::stack::reconcile),
    };
    let releases = Driver {
        events: release_events,
        store: release_store,
        queue: queues.releases,
        concurrency: args.clusterstackrelease_concurrency.unwrap_or(args.concurrency),
        work: tidings.metrics.releases.clone(),
        reconcile: |release, context| reconcile(release.as_ref(), context, crate::release::reconcile),
    };
    let work = async {
        tokio::join!(
            stacks.run(&context, &stop).boxed(),
            releases.run(&context, &stop).boxed(),
            stop.run_until_cancelled(announce(&context, &tidings.watches))
        )
    };
    // Drivers that still wait for their first list have nothing to finish, and would not notice the end.
    let idle = async {
        stop.cancelled().await;
        if context.stacks.is_listed() && context.releases.is_listed() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = work => {}
        () = idle => {}
    }
    Ok(())
}

/// Says that the process is ready when our own kinds have been listed.
async fn announce(context: &Context, watches: &Gate) {
    tokio::join!(context.stacks.listed(), context.releases.listed());
    watches.open();
    tracing::info!(
        stacks = context.stacks.watched().len(),
        releases = context.releases.watched().len(),
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
    let ClusterSight {
        discovery,
        crds,
        clusters,
        notices: cluster_notices,
    } = sight;
    let here = args.scope.namespace.as_str();
    let marked = Marked::by_anybody(labels::PART_OF, here);
    let (objects, object_notices) = ObjectWatches::new(client.clone(), discovery.clone(), marked, stop.clone());
    let (leftovers, left_behind) = Leftovers::start(client.clone(), discovery.clone(), &crds, here, stop.clone());
    let (providers, provider_changes) =
        Providers::new(client.clone(), discovery.clone(), crds.clone(), here, stop.clone());
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
        clusters,
        leftovers,
        providers,
        sources,
        charts: Charts::new(RENDER_CACHE_BYTES, tidings.metrics.clone(), triggers.of_releases()),
        stacks: own.stacks,
        releases: own.releases,
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
        clusters: cluster_notices,
        leftovers: left_behind,
        providers: provider_changes,
        sources: source_changes,
        crds,
    };
    triggers::follow(&context, &tidings.tasks, triggers, stop, news);
    Ok(context)
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

/// What came of one reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing was done: the object is in a shard of another process.
    NotOurs,
    /// When to look again without a change, if that is known.
    Done(Option<Duration>),
}

impl Look {
    /// What to do next, and as what it counts, if it does.
    fn outcome(self) -> (Option<Duration>, Option<Outcome>) {
        match self {
            Self::NotOurs => (None, None),
            Self::Done(None) => (None, Some(Outcome::Settled)),
            Self::Done(Some(delay)) => (Some(delay), Some(Outcome::Again)),
        }
    }
}

fn reconcile<K, F, R>(object: &K, context: Arc<Context>, reconcile: F) -> BoxFuture<'static, Look>
where
    K: Resource,
    F: FnOnce(Arc<Context>, String, String) -> R,
    R: Future<Output = Look> + Send + 'static,
{
    reconcile(context, object.namespace().unwrap_or_default(), object.name_any()).boxed()
}

/// What one driver is fed with and what it does.
struct Driver<K, S>
where
    K: Resource<DynamicType = ()> + 'static,
{
    events: S,
    store: Store<K>,
    queue: UnboundedReceiver<ObjectRef<K>>,
    concurrency: u16,
    work: Work,
    reconcile: Reconcile<K>,
}

/// What a driver does with an object.
type Reconcile<K> = fn(Arc<K>, Arc<Context>) -> BoxFuture<'static, Look>;

impl<K, S> Driver<K, S>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    S: Stream<Item = watcher::Result<K>> + Send + 'static,
{
    /// Runs until `stop`, and lets reconciles that are under way finish.
    async fn run(self, context: &Arc<Context>, stop: &CancellationToken) {
        let Self {
            events,
            store,
            queue,
            concurrency,
            work,
            reconcile,
        } = self;
        let events = events.inspect(triggered_by_watch(&work));
        let queue = queue.inspect(triggered_by_others(&work));
        let (due, again) = unbounded();
        let latecomers = Latecomers::new(due, stop.clone());
        let (doing, late) = (work.clone(), latecomers.clone());
        let guarded = move |object: Arc<K>, context: Arc<Context>| {
            let (work, late) = (doing.clone(), late.clone());
            async move {
                let whose = ObjectRef::from_obj(object.as_ref());
                let again = late
                    .look(whose, counted(work, object, context, reconcile).boxed())
                    .await;
                Ok(again.map_or_else(Action::await_change, Action::requeue))
            }
        };
        Controller::for_stream(events, store)
            .with_config(Config::default().concurrency(concurrency))
            .reconcile_on(queue)
            .reconcile_on(again)
            .graceful_shutdown_on(stop.clone().cancelled_owned())
            .run(guarded, |_, error: &Infallible, _| match *error {}, Arc::clone(context))
            .for_each(|done| {
                if let Err(controller::Error::ObjectNotFound(gone)) = done {
                    work.forgotten(gone.namespace.as_deref(), &gone.name);
                }
                std::future::ready(())
            })
            .await;
        latecomers.finish().await;
    }
}

/// One reconcile, and when to look again.
async fn counted<K>(work: Work, object: Arc<K>, context: Arc<Context>, reconcile: Reconcile<K>) -> Option<Duration>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let begun = work.begun(object.namespace().as_deref(), &object.name_any());
    // One object must never take the process down, whatever is in it.
    let done = tokio::spawn(reconcile(Arc::clone(&object), context)).await;
    let (again, outcome) = match done {
        Ok(look) => look.outcome(),
        Err(error) => {
            tracing::error!(name = %object.name_any(), %error, "a reconcile ended abnormally");
            (Some(AFTER_PANIC), Some(Outcome::Panicked))
        }
    };
    if let Some(outcome) = outcome {
        work.ended(&begun, outcome);
    }
    again
}

/// Notes what the watch shows: each object that it shows is looked at.
fn triggered_by_watch<K: Resource>(work: &Work) -> impl FnMut(&watcher::Result<K>) + Send + use<K> {
    let work = work.clone();
    move |event| {
        if let Ok(object) = event {
            work.triggered(object.namespace().as_deref(), &object.name_any());
        }
    }
}

/// Notes what other objects, and sources, have looked at.
fn triggered_by_others<K: Resource<DynamicType = ()>>(work: &Work) -> impl FnMut(&ObjectRef<K>) + Send + use<K> {
    let work = work.clone();
    move |reference| work.triggered(reference.namespace.as_deref(), &reference.name)
}
