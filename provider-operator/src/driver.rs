//! Feeds a reconciler with the objects of one kind: those that the watch shows, those that others wake, and those whose time has come. A reconcile that panics
//! takes nothing else down. Decides nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use futures::future::{BoxFuture, ready};
use futures::{Stream, StreamExt};
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::{self, Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use tokio_util::sync::CancellationToken;

use crate::metrics::{Metrics, Outcome};

/// An object whose reconcile panicked is left alone for so long, the others go on.
const AFTER_PANIC: Duration = Duration::from_mins(1);

/// What came of one reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing was done: this process does not lead.
    NotOurs,
    /// When to look again without a change, if that is known.
    Done(Option<Duration>),
}

/// What a driver does with an object of this namespace and name.
pub(crate) type Reconcile = Arc<dyn Fn(String, String) -> BoxFuture<'static, Look> + Send + Sync>;

/// What is done about an object that is not there any more.
pub(crate) type Gone = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The driver of one kind.
pub(crate) struct Driver<S> {
    pub(crate) resource: ApiResource,
    /// The objects that changed, as [`changed`] gives them.
    pub(crate) events: S,
    pub(crate) store: Store<DynamicObject>,
    pub(crate) queue: UnboundedReceiver<ObjectRef<DynamicObject>>,
    pub(crate) concurrency: u16,
    pub(crate) metrics: Metrics,
    pub(crate) reconcile: Reconcile,
    pub(crate) gone: Gone,
}

impl<S> Driver<S>
where
    S: Stream<Item = watcher::Result<DynamicObject>> + Send + 'static,
{
    /// Runs until `stop`, and lets reconciles that are under way finish.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let Self {
            resource,
            events,
            store,
            queue,
            concurrency,
            metrics,
            reconcile,
            gone,
        } = self;
        let kind = resource.kind.clone();
        let guarded = move |object: Arc<DynamicObject>, _: Arc<()>| {
            let reconciling = counted(metrics.clone(), kind.clone(), object, Arc::clone(&reconcile));
            async move {
                let again = reconciling.await;
                Ok(again.map_or_else(Action::await_change, Action::requeue))
            }
        };
        Controller::for_stream_with(events, store, resource)
            .with_config(Config::default().concurrency(concurrency))
            .reconcile_on(queue)
            .graceful_shutdown_on(stop.cancelled_owned())
            .run(guarded, |_, error: &Infallible, _| match *error {}, Arc::new(()))
            .for_each(|done| {
                if let Err(controller::Error::ObjectNotFound(object)) = done {
                    gone(object.namespace.as_deref().unwrap_or_default(), &object.name);
                }
                ready(())
            })
            .await;
    }
}

/// One reconcile, and when to look again.
async fn counted(metrics: Metrics, kind: String, object: Arc<DynamicObject>, reconcile: Reconcile) -> Option<Duration> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    // One object must never take the process down, whatever is in it.
    let done = tokio::spawn(reconcile(namespace.clone(), name.clone())).await;
    match done {
        Ok(Look::NotOurs) => None,
        Ok(Look::Done(again)) => {
            metrics.reconciled(
                &kind,
                if again.is_some() {
                    Outcome::Again
                } else {
                    Outcome::Settled
                },
            );
            again
        }
        Err(error) => {
            tracing::error!(kind, namespace, name, %error, "a reconcile ended abnormally");
            metrics.reconciled(&kind, Outcome::Panicked);
            Some(AFTER_PANIC)
        }
    }
}

/// Passes on the objects that changed one by one; `take` is told everything first. The store of a watch takes a list as a whole, when it has ended (kube-runtime
/// 5.0): so whoever is in a list is woken by its end, by whoever `take` tells.
pub(crate) fn changed<S>(
    events: S,
    mut take: impl FnMut(&Event<DynamicObject>) + Send + 'static,
) -> impl Stream<Item = watcher::Result<DynamicObject>> + Send + 'static
where
    S: Stream<Item = watcher::Result<Event<DynamicObject>>> + Send + 'static,
{
    let object = move |event: watcher::Result<Event<DynamicObject>>| {
        let event = match event {
            Ok(event) => event,
            Err(error) => return Some(Err(error)),
        };
        take(&event);
        match event {
            Event::Apply(object) => Some(Ok(object)),
            Event::Init | Event::InitApply(_) | Event::InitDone | Event::Delete(_) => None,
        }
    };
    events.map(object).filter_map(ready)
}
