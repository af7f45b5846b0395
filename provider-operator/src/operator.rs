//! The controllers of the providers that are served: watches, drivers, and what wakes them. Ends when told to, after everything that is under way.

mod ends;
mod executors;
mod wakes;

use std::sync::Arc;

use anyhow::Context as _;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, Stream, StreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store, reflector};
use kube::runtime::watcher::{self, Event};
use operator_kit::events::Events;
use operator_kit::failure::words_of_watch;
use operator_kit::lease::{Pass, Tenure};
use operator_kit::record::{RecordLimits, Recorder};
use operator_kit::telemetry::{Gate, Readiness};
use operator_kit::watch_log::WatchLog;
use operator_kit::watching::watching;
use provider_plugin::OwnerId;
use sourcing::Connector;
use tokio_util::sync::CancellationToken;

pub(crate) use self::ends::Ends;
use self::ends::drained;
use self::executors::executors;
use self::wakes::{Keep, keeps, of_image, of_release, wakes_releases};
use crate::args::Args;
use crate::clock::{Clock, Steady};
use crate::context::{Context, Served, Settings};
use crate::driver::{Driver, Gone, Reconcile, changed};
use crate::executor::jobs::Jobs;
use crate::identity::{Connections, Secrets};
use crate::image_files::ImageFiles;
use crate::kinds::Kind;
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::owner::owner;
use crate::supply::Supply;
use crate::sweeper::{self, Scopes};
use crate::{image, release};

/// Of our own kinds per page: the status of one has some kilobytes.
const PAGE_SIZE: u32 = 200;

/// Who makes events.
const CONTROLLER: &str = "clusterstack.x-k8s.io/provider-operator";

/// What the process tells of its work from outside.
#[derive(Clone)]
pub(crate) struct Tidings {
    /// The first lists of our own kinds, which have to be there before it calls itself ready.
    pub(crate) watches: Gate,
    /// Closed too where a right or a definition is missing without which nothing can be done.
    pub(crate) readiness: Readiness,
    pub(crate) metrics: Metrics,
    /// What may be worked on.
    pub(crate) tenure: Tenure,
}

/// Works until told to end.
pub(crate) async fn operate(args: &Args, client: Client, tidings: Tidings, ends: Ends) -> anyhow::Result<()> {
    // Kept to the end of the last transfer, so that the Lease is.
    let Some(pass) = ends.stop.run_until_cancelled(entered(&tidings.tenure)).await else {
        return Ok(());
    };
    let asking = owner(args, &client, &tidings.readiness);
    let Some(owner) = ends.stop.run_until_cancelled(asking).await.transpose()? else {
        return Ok(());
    };
    tracing::info!(
        installation = owner.as_str(),
        "images are marked with the name of this installation"
    );
    let (served, feeds) = served(args)?;
    let (context, jobs) = assemble(args, &client, &tidings, owner, &served)?;
    tidings.metrics.count(&served);
    let keep = keeps(&served, &context);
    let drivers = served.iter().zip(feeds).flat_map(|(served, feed)| {
        let watched = Watched {
            args,
            client: &client,
            tidings: &tidings,
            context: &context,
            served,
            keep: &keep,
        };
        watched.drivers(feed, &ends.stop)
    });
    let drivers: Vec<BoxFuture<'static, ()>> = drivers.collect();
    let listed = announce(&served, &tidings.watches);
    let work = async { tokio::join!(join_all(drivers), ends.stop.run_until_cancelled(listed)) };
    // Drivers that still wait for their first list have nothing to finish, and would not notice the end.
    let idle = async {
        ends.stop.cancelled().await;
        if served
            .iter()
            .all(|served| served.images.is_listed() && served.releases.is_listed())
        {
            std::future::pending::<()>().await;
        }
    };
    let working = async {
        tokio::select! {
            _ = work => {}
            () = idle => {}
        }
    };
    let sweeping = sweeping(args, &context, &served, &ends);
    let following = followed(args, jobs, &served, &tidings.readiness, &ends.stop);
    tokio::join!(
        working.boxed(),
        drained(context.executor.as_ref(), args.drain, &ends),
        sweeping.boxed(),
        following.boxed()
    );
    drop(pass);
    Ok(())
}

/// Looks for orphans until nothing new is to begin, or nothing may go on.
fn sweeping(
    args: &Args,
    context: &Arc<Context>,
    served: &[Arc<Served>],
    ends: &Ends,
) -> impl Future<Output = ()> + use<> {
    let sweeps = sweeper::run(Arc::clone(context), served.to_vec(), scopes(args));
    let (stop, fenced) = (ends.stop.clone(), ends.fenced.clone());
    async move {
        stop.run_until_cancelled(fenced.run_until_cancelled(sweeps)).await;
    }
}

/// Follows what becomes of Jobs, where there are any.
async fn followed(
    args: &Args,
    jobs: Option<Jobs>,
    served: &[Arc<Served>],
    readiness: &Readiness,
    stop: &CancellationToken,
) {
    let Some(jobs) = jobs else { return };
    let providers = served.iter().map(|served| served.kind.provider()).collect();
    jobs.follow(args.scope.namespace.clone(), providers, readiness.clone(), stop.clone())
        .await;
}

/// What is searched for orphans.
fn scopes(args: &Args) -> Scopes {
    Scopes {
        namespace: args.scope.namespace.clone(),
        watch_filter: args.scope.watch_filter.clone(),
        with_verified: args.clouds.sweep_verified,
    }
}

/// Waits until this process may work.
async fn entered(tenure: &Tenure) -> Pass {
    let mut held = tenure.watch();
    loop {
        if let Some(pass) = tenure.enter(0) {
            return pass;
        }
        if held.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// By what one kind's driver is fed.
struct Feed {
    writer: Writer<DynamicObject>,
    store: Store<DynamicObject>,
    queue: UnboundedReceiver<ObjectRef<DynamicObject>>,
}

impl Feed {
    fn of(resource: &ApiResource) -> (Self, Objects, crate::context::Waker) {
        let writer = Writer::new(resource.clone());
        let store = writer.as_reader();
        let (wakes, queue) = unbounded();
        let objects = Objects::new(store.clone(), resource.clone());
        (Self { writer, store, queue }, objects, wakes)
    }
}

/// Those of each provider: of images, of releases.
type Feeds = Vec<[Feed; 2]>;

/// The providers that are served, and by what their drivers are fed.
fn served(args: &Args) -> anyhow::Result<(Vec<Arc<Served>>, Feeds)> {
    let registry = args.registry(None).map_err(anyhow::Error::msg)?;
    let kinds = registry.names().filter_map(Kind::of);
    Ok(kinds
        .map(|kind| {
            let (served, feeds) = fed(kind);
            (Arc::new(served), feeds)
        })
        .unzip())
}

/// One kind that is served, with the feeds of its images and of its releases.
fn fed(kind: &'static Kind) -> (Served, [Feed; 2]) {
    let (of_images, images, wakes_images) = Feed::of(&kind.images());
    let (of_releases, releases, wakes_releases) = Feed::of(&kind.releases());
    let served = Served {
        kind,
        images,
        releases,
        wakes_images,
        wakes_releases,
    };
    (served, [of_images, of_releases])
}

/// Makes the handles.
fn assemble(
    args: &Args,
    client: &Client,
    tidings: &Tidings,
    owner: OwnerId,
    served: &[Arc<Served>],
) -> anyhow::Result<(Arc<Context>, Option<Jobs>)> {
    let network = args
        .download
        .network()
        .context("failed to prepare for remote sources")?;
    let registry = args.registry(Some(&network)).map_err(anyhow::Error::msg)?;
    let steady = Steady::start();
    let usual = args.usual.source()?;
    let root = args.usual.release_dir().to_owned();
    let connector = Arc::new(Connector::new(client.clone(), network.clone(), usual, root));
    let executors = executors(args, client, steady, served)?;
    let jobs = executors.jobs.clone();
    let clock = Clock::start(steady);
    let asking = executors.in_process.clone();
    let supply = Supply::new(connector, &args.download, clock, wakes_releases(served));
    let context = Arc::new(Context {
        client: client.clone(),
        clock,
        tenure: tidings.tenure.clone(),
        connections: Connections::new(registry.clone(), args.clouds.addresses())
            .counted(tidings.metrics.clouds().clone()),
        registry,
        secrets: Secrets::new(client.clone()),
        executor: Arc::new(executors),
        asking,
        owner,
        settings: Settings {
            force_finalize_after: args.clouds.force_finalize_after,
            force_finalize_in_use: args.clouds.force_finalize_in_use,
            import_patience: args.clouds.import_patience(),
        },
        images: image::Memories::default(),
        releases: release::Memories::default(),
        supply,
        files: ImageFiles::new(client.clone(), &network),
        events: Events::start(client.clone(), CONTROLLER, "provider-operator"),
        recorder: recorder(args)?,
        metrics: tidings.metrics.clone(),
    });
    Ok((context, jobs))
}

fn recorder(args: &Args) -> anyhow::Result<Option<Recorder>> {
    let open = |directory: &std::path::PathBuf| Recorder::open(directory, RecordLimits::default());
    args.record
        .as_ref()
        .map(open)
        .transpose()
        .context("--record cannot be used")
}

/// Says that the process is ready when our own kinds have been listed.
async fn announce(served: &[Arc<Served>], watches: &Gate) {
    for served in served {
        served.images.listed().await;
        served.releases.listed().await;
    }
    watches.open();
    let count = |objects: fn(&Served) -> &Objects| -> usize {
        let counts = served.iter().map(|served| objects(served).watched_now().len());
        counts.sum()
    };
    tracing::info!(
        images = count(|served| &served.images),
        releases = count(|served| &served.releases),
        "at work"
    );
}

/// What one kind's driver does.
struct Driving<T> {
    /// What becomes of what the watch tells.
    take: T,
    reconcile: Reconcile,
    gone: Gone,
}

/// One provider, about to be watched.
struct Watched<'a> {
    args: &'a Args,
    client: &'a Client,
    tidings: &'a Tidings,
    context: &'a Arc<Context>,
    served: &'a Arc<Served>,
    /// Says which releases there are, whenever that may have changed.
    keep: &'a Keep,
}

impl Watched<'_> {
    /// The drivers of its two kinds.
    fn drivers(&self, [images, releases]: [Feed; 2], stop: &CancellationToken) -> [BoxFuture<'static, ()>; 2] {
        let provider = self.served.kind.provider();
        let (told, context, served) = self.handles();
        let of_images = Driving {
            take: move |event: &Event<DynamicObject>| of_image(&told, event),
            reconcile: Arc::new(move |namespace, name| {
                image::reconcile(Arc::clone(&context), Arc::clone(&served), namespace, name).boxed()
            }),
            gone: {
                let context = Arc::clone(self.context);
                Arc::new(move |namespace, name| image::gone(&context, provider, namespace, name))
            },
        };
        let (told, context, served) = self.handles();
        let keep = Arc::clone(self.keep);
        let of_releases = Driving {
            take: move |event: &Event<DynamicObject>| {
                of_release(&told, event);
                if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
                    keep();
                }
            },
            reconcile: Arc::new(move |namespace, name| {
                release::reconcile(Arc::clone(&context), Arc::clone(&served), namespace, name).boxed()
            }),
            gone: {
                let context = Arc::clone(self.context);
                Arc::new(move |namespace, name| release::gone(&context, provider, namespace, name))
            },
        };
        let resources = (self.served.images.resource(), self.served.releases.resource());
        [
            self.driver(resources.0, images, of_images, stop),
            self.driver(resources.1, releases, of_releases, stop),
        ]
    }

    fn handles(&self) -> (Arc<Served>, Arc<Context>, Arc<Served>) {
        let served = || Arc::clone(self.served);
        (served(), Arc::clone(self.context), served())
    }

    fn driver<T>(
        &self,
        resource: &ApiResource,
        feed: Feed,
        driving: Driving<T>,
        stop: &CancellationToken,
    ) -> BoxFuture<'static, ()>
    where
        T: FnMut(&Event<DynamicObject>) + Send + 'static,
    {
        let Feed { writer, store, queue } = feed;
        let Driving { take, reconcile, gone } = driving;
        let driver = Driver {
            resource: resource.clone(),
            events: changed(self.events(writer, resource), take),
            store,
            queue,
            concurrency: self.args.concurrency,
            metrics: self.tidings.metrics.clone(),
            reconcile,
            gone,
        };
        driver.run(stop.clone()).boxed()
    }

    /// The watch of one of our kinds, whose store has what it tells.
    fn events(
        &self,
        writer: Writer<DynamicObject>,
        resource: &ApiResource,
    ) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Send + use<> {
        let api: Api<DynamicObject> = if self.args.scope.namespace.is_empty() {
            Api::all_with(self.client.clone(), resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.args.scope.namespace, resource)
        };
        let filter = match self.args.scope.watch_filter.as_str() {
            "" => String::new(),
            value => format!("{}={value}", crds::labels::WATCH_FILTER),
        };
        let readiness = &self.tidings.readiness;
        let mut log = WatchLog::essential(&resource.kind, readiness);
        let gate = readiness.open_gate(&format!("the definition of {}", resource.kind));
        let heard = watching(api, &filter, PAGE_SIZE).inspect(move |event| {
            log.heard(event);
            defined(&gate, event);
        });
        reflector(writer, heard.map(|event| event.map(without_managers)))
    }
}

/// Whether the API server knows the kind at all.
fn defined(gate: &Gate, event: &watcher::Result<Event<DynamicObject>>) {
    match event {
        // Told before the API server is asked.
        Ok(Event::Init) => {}
        Ok(_) => gate.open(),
        Err(
            watcher::Error::InitialListFailed(kube::Error::Api(status))
            | watcher::Error::WatchStartFailed(kube::Error::Api(status)),
        ) if status.code == 404 => {
            gate.close_for("the API server does not serve it; install the definitions of the provider");
        }
        Err(error) => tracing::trace!(error = words_of_watch(error), "a watch was interrupted"),
    }
}

/// Half of an object's bytes, and nobody here reads them.
fn without_managers(event: Event<DynamicObject>) -> Event<DynamicObject> {
    let without = |mut object: DynamicObject| {
        object.metadata.managed_fields = None;
        object
    };
    match event {
        Event::Apply(object) => Event::Apply(without(object)),
        Event::InitApply(object) => Event::InitApply(without(object)),
        Event::Delete(object) => Event::Delete(without(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}
