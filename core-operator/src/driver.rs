//! Drives the reconciles of one kind: who is looked at, how many at once, when again, and what that counts.

use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use kube::runtime::Controller;
use kube::runtime::controller::{self, Action, Config};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::latecomers::Latecomers;
use crate::metrics::{Outcome, Work};

/// A panic in one reconcile is a bug; the object is looked at again after this long, the others go on.
pub(crate) const AFTER_PANIC: Duration = Duration::from_mins(1);

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

/// One reconcile of an object, by what does it for a namespace and a name.
pub(crate) fn reconcile<K, F, R>(object: &K, context: Arc<Context>, reconcile: F) -> BoxFuture<'static, Look>
where
    K: Resource,
    F: FnOnce(Arc<Context>, String, String) -> R,
    R: Future<Output = Look> + Send + 'static,
{
    reconcile(context, object.namespace().unwrap_or_default(), object.name_any()).boxed()
}

/// What one driver is fed with and what it does.
pub(crate) struct Driver<K, S>
where
    K: Resource<DynamicType = ()> + 'static,
{
    pub(crate) events: S,
    pub(crate) store: Store<K>,
    pub(crate) queue: UnboundedReceiver<ObjectRef<K>>,
    pub(crate) concurrency: u16,
    pub(crate) work: Work,
    pub(crate) reconcile: Reconcile<K>,
    /// Whether somebody keeps silent for whom a look at an object waits.
    pub(crate) keeps_silent: fn(&K, &Context) -> bool,
}

/// What a driver does with an object.
pub(crate) type Reconcile<K> = fn(Arc<K>, Arc<Context>) -> BoxFuture<'static, Look>;

impl<K, S> Driver<K, S>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    S: Stream<Item = watcher::Result<K>> + Send + 'static,
{
    /// Runs until `stop`, and lets reconciles that are under way finish.
    pub(crate) async fn run(self, context: &Arc<Context>, stop: &CancellationToken) {
        let Self {
            events,
            store,
            queue,
            concurrency,
            work,
            reconcile,
            keeps_silent,
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
                let look = counted(work, Arc::clone(&object), Arc::clone(&context), reconcile).boxed();
                let again = late.look(whose, look, || keeps_silent(&object, &context)).await;
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
