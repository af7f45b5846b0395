//! What became of objects, version by version: a watch that remembers. Reads and decides nothing.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, timeout},
};

/// Right after a kind or a namespace is made the API server may not list it yet.
const BEGIN_DEADLINE: Duration = Duration::from_secs(30);

/// An object as it was at one time.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// The object; of one that is gone, its last state.
    pub(super) object: DynamicObject,
    /// Whether it is gone with this.
    pub(super) is_gone: bool,
    /// When it was seen.
    pub(super) at: Instant,
}

impl Version {
    /// Whether it is a version of the object of this identity.
    pub(super) fn is_of(&self, uid: &str) -> bool {
        self.object.metadata.uid.as_deref() == Some(uid)
    }
}

/// All versions of the objects of one kind in one namespace that were seen, the first ones first. Ends its watch when it is dropped.
pub(super) struct History {
    versions: watch::Receiver<Vec<Arc<Version>>>,
    task: JoinHandle<()>,
}

impl History {
    /// Begins to watch, and returns once the objects that are there have been seen.
    pub(super) async fn begin(api: Api<DynamicObject>, resource: &ApiResource) -> Result<Self> {
        let (sender, versions) = watch::channel(Vec::new());
        let (ready, listed) = watch::channel(false);
        let watching = watcher::watcher(api, watcher::Config::default())
            .default_backoff()
            .boxed();
        let task = tokio::spawn(remember(watching, sender, ready));
        let history = Self { versions, task };
        let mut listed = listed;
        let begun = timeout(BEGIN_DEADLINE, listed.wait_for(|is_listed| *is_listed)).await;
        begun
            .ok()
            .and_then(Result::ok)
            .with_context(|| format!("unable to watch {}: the API server does not list them", resource.plural))?;
        Ok(history)
    }

    /// All versions until now.
    pub(super) fn versions(&self) -> Vec<Arc<Version>> {
        self.versions.borrow().clone()
    }

    /// The versions of one object until now.
    pub(super) fn of(&self, uid: &str) -> Vec<Arc<Version>> {
        let versions = self.versions.borrow();
        versions.iter().filter(|version| version.is_of(uid)).cloned().collect()
    }

    /// Waits for a version that is as asked, and returns the first one; `None` when none came in time.
    pub(super) async fn until(&self, deadline: Duration, is: impl Fn(&Version) -> bool) -> Option<Arc<Version>> {
        let mut versions = self.versions.clone();
        let find = |versions: &Vec<Arc<Version>>| versions.iter().find(|version| is(version)).cloned();
        let waited = timeout(deadline, versions.wait_for(|versions| find(versions).is_some())).await;
        let found = waited.ok()?.ok()?;
        find(&found)
    }

    /// Waits until the last version of one object is as asked; whether it came to that.
    pub(super) async fn until_last(&self, deadline: Duration, uid: &str, is: impl Fn(&Version) -> bool) -> bool {
        let mut versions = self.versions.clone();
        let holds = |versions: &Vec<Arc<Version>>| {
            let last = versions.iter().rfind(|version| version.is_of(uid));
            last.is_some_and(|last| is(last))
        };
        let waited = timeout(deadline, versions.wait_for(holds)).await;
        waited.is_ok_and(|waited| waited.is_ok())
    }

    /// Waits for as long without any version of which `counts` holds; the answer is the last one when that was not to be had in time.
    pub(super) async fn rests(
        &self,
        rest: Duration,
        deadline: Duration,
        counts: impl Fn(&Version) -> bool,
    ) -> Result<(), Arc<Version>> {
        let end = Instant::now() + deadline;
        let mut versions = self.versions.clone();
        let count = |versions: &[Arc<Version>]| versions.iter().filter(|version| counts(version)).count();
        loop {
            let before = count(&versions.borrow_and_update());
            let more = timeout(rest, versions.wait_for(|versions| count(versions) > before)).await;
            let Ok(Ok(found)) = more else { return Ok(()) };
            let last = found.iter().rfind(|version| counts(version)).cloned();
            drop(found);
            if let Some(last) = last
                && Instant::now() + rest > end
            {
                return Err(last);
            }
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn remember(
    watching: impl futures::Stream<Item = watcher::Result<Event<DynamicObject>>>,
    sender: watch::Sender<Vec<Arc<Version>>>,
    ready: watch::Sender<bool>,
) {
    let mut watching = std::pin::pin!(watching);
    loop {
        let event = match watching.try_next().await {
            Ok(Some(event)) => event,
            Ok(None) => return,
            // It is tried again, ever more seldom.
            Err(_) => continue,
        };
        let (object, is_gone) = match event {
            Event::Init => continue,
            Event::InitDone => {
                ready.send_replace(true);
                continue;
            }
            Event::InitApply(object) | Event::Apply(object) => (object, false),
            Event::Delete(object) => (object, true),
        };
        let at = Instant::now();
        let version = Version { object, is_gone, at };
        sender.send_modify(|versions| {
            // A list after a cut has what was seen already.
            let is_known = |seen: &Arc<Version>| {
                let of = |version: &Version| (version.object.uid(), version.object.resource_version(), version.is_gone);
                of(seen) == of(&version)
            };
            if !versions.iter().rev().any(is_known) {
                versions.push(Arc::new(version));
            }
        });
    }
}
