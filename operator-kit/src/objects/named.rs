//! Single objects that are followed by their names, whoever's they are: those that somebody waits for, as long as he does.
//!
//! Each is watched by a field selector where the [`Budget`](super::Budget) has a watch for it. The others are read by turns, and so are those that may not be
//! watched, and those of kinds that are not served: nobody tells of an API that another server brings.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::StatusCode;
use kube::api::{Api, DynamicObject};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::discovery::Scope;
use kube::runtime::watcher::{self, Event};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::budget::Claim;
use super::{Counted, Inner, Notice, ObjectWatches, Running};
use crate::discovery::Resolved;
use crate::failure::code_of;
use crate::object::{GroupKind, ObjectKey, namespace};
use crate::shallow::Shallow;
use crate::watch_log::WatchLog;
use crate::watching::{Pace, Selection, watching_since};

/// From the end of a round of reads of what is not watched to the next one.
pub const READS_PAUSE: Duration = Duration::from_secs(15);

/// Between two reads of a round: however many objects there are, they are four requests a second at most.
const GAP: Duration = Duration::from_millis(250);

/// Between two readings of discovery, while the kind of such an object is not served. Where CRDs bring it, their watch tells at once.
const DISCOVERY_PAUSE: Duration = Duration::from_mins(1);

/// One is listed, or none.
const PAGE_SIZE: u32 = 1;

/// The version of an object; `None` where there is none.
type Sight = Option<Box<str>>;

/// What is followed by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_key: HashMap<ObjectKey, Named>,
    /// Somebody reads those that are not watched.
    is_reading: bool,
}

#[derive(Debug, Default)]
struct Named {
    /// What ends its watch, while it has one.
    watch: Option<CancellationToken>,
    /// The API server does not let it be watched.
    is_unwatchable: bool,
    /// What was told last.
    told: Option<Sight>,
}

impl ObjectWatches {
    /// Follows an object by its name from now on, whoever's it is: [`Notice::Named`] tells of it once it has been looked at, and when it is another than it was told
    /// to be. `served` says how its kind is served, where it is. Without a watch for it, it is read every [`READS_PAUSE`]; it is watched with the next call for
    /// which there is one. One of ours that is watched anyway is told by that watch alone.
    pub fn follow_named(&self, key: &ObjectKey, served: Option<&Resolved>) {
        let is_nowhere = served.is_some_and(|kind| kind.scope == Scope::Namespaced) && key.namespace.is_empty();
        if key.is_addressable() && !is_nowhere {
            self.inner.follow_named(key, served);
        }
    }

    /// Ends what follows objects by names that are not needed any more. Nothing is told of them.
    pub fn keep_named(&self, is_needed: impl Fn(&ObjectKey) -> bool) {
        self.inner.names().by_key.retain(|key, named| {
            let is_kept = is_needed(key);
            if !is_kept {
                named.end_watch();
            }
            is_kept
        });
    }
}

impl Named {
    fn end_watch(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.cancel();
        }
    }
}

impl Names {
    /// How many are watched.
    pub(super) fn watched(&self) -> usize {
        self.by_key.values().filter(|named| named.watch.is_some()).count()
    }

    /// Ends the watch of one of them, which is read from now on. False where none is watched.
    pub(super) fn give_up_watch(&mut self) -> bool {
        let watched = self.by_key.iter_mut().filter(|(_, named)| named.watch.is_some());
        let first = watched.min_by(|(one, _), (other, _)| one.cmp(other));
        first.map(|(_, named)| named.end_watch()).is_some()
    }

    /// Those that are not watched; nobody reads them any more when there are none.
    fn next_turn(&mut self) -> Vec<ObjectKey> {
        let unwatched = self.by_key.iter().filter(|(_, named)| named.watch.is_none());
        let mut keys: Vec<ObjectKey> = unwatched.map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        self.is_reading = !keys.is_empty();
        keys
    }

    /// Takes what a watch, or whoever reads what is not watched, sees of an object. Whether that is news.
    fn take(&mut self, key: &ObjectKey, watch: Option<&CancellationToken>, sight: Sight) -> bool {
        let Some(named) = self.by_key.get_mut(key) else {
            return false;
        };
        // What one knew that was ended is over: another one has begun.
        let is_current = watch.map_or(named.watch.is_none(), |watch| !watch.is_cancelled());
        let is_news = is_current && named.told.as_ref() != Some(&sight);
        if is_news {
            named.told = Some(sight);
        }
        is_news
    }
}

impl Inner {
    fn follow_named(self: &Arc<Self>, key: &ObjectKey, served: Option<&Resolved>) {
        // Locked in this order everywhere.
        let mut running = self.running();
        let mut names = self.names();
        if self.is_shown(&running, key) {
            if let Some(mut named) = names.by_key.remove(key) {
                named.end_watch();
            }
            return;
        }
        let followed = names.by_key.entry(key.clone()).or_default();
        if followed.watch.is_some() {
            return;
        }
        let watchable = served.filter(|_| !followed.is_unwatchable);
        if let Some(resolved) = watchable
            && self.makes_room((&mut running, &mut names), Claim::Name)
        {
            self.begin_named(&mut names, key, resolved.clone());
        } else {
            self.begin_reading(&mut names);
        }
    }

    /// Whether an object is one of ours, and of a kind whose watch no other one takes the place of.
    fn is_shown(&self, running: &HashMap<GroupKind, Running>, key: &ObjectKey) -> bool {
        let kind = key.group_kind();
        let is_lasting = self.budget.as_ref().is_none_or(|budget| (budget.matters)(&kind));
        let is_told = |running: &Running| running.is_watched && running.synced;
        is_lasting && running.get(&kind).is_some_and(is_told) && self.store().get(key).is_some()
    }

    fn begin_named(self: &Arc<Self>, names: &mut Names, key: &ObjectKey, resolved: Resolved) {
        let end = self.cancel.child_token();
        names.by_key.entry(key.clone()).or_default().watch = Some(end.clone());
        let counted = self.budget.as_ref().map(|budget| Counted::begin(&budget.count));
        let (inner, key) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            if let Some(refusal) = end.run_until_cancelled(inner.watch_named(&key, &resolved, &end)).await {
                inner.refused(&key, &end, refusal);
            }
            drop(counted);
        });
    }

    /// Begins to read what is not watched, unless somebody does.
    pub(super) fn begin_reading(self: &Arc<Self>, names: &mut Names) {
        if !std::mem::replace(&mut names.is_reading, true) {
            let (inner, cancel) = (Arc::clone(self), self.cancel.clone());
            tokio::spawn(async move { cancel.run_until_cancelled(inner.read_by_turns()).await });
        }
    }

    /// Watches an object until that turns out to be impossible.
    async fn watch_named(&self, key: &ObjectKey, resolved: &Resolved, end: &CancellationToken) -> Refusal {
        let api: Api<Shallow<PartialObjectMeta<DynamicObject>>> = resolved.api_within(&self.client, &key.namespace);
        let fields = format!("metadata.name={}", escaped(&key.name));
        let selection = Selection {
            labels: "",
            fields: &fields,
        };
        let mut events = pin!(watching_since(api, selection, PAGE_SIZE, Arc::default(), Pace::Watch));
        let mut log = WatchLog::new(key);
        let mut listed = None;
        while let Some(event) = events.next().await {
            if let Some(refusal) = event.as_ref().err().and_then(Refusal::of) {
                return refusal;
            }
            log.heard(&event);
            let seen = match event {
                Ok(Event::Init) => {
                    listed = None;
                    continue;
                }
                Ok(Event::InitApply(object)) => {
                    listed = Some(version_of(&object.metadata));
                    continue;
                }
                Ok(Event::InitDone) => listed.take(),
                Ok(Event::Apply(object)) => Some(version_of(&object.metadata)),
                Ok(Event::Delete(_)) => None,
                // It goes on by itself.
                Err(_) => continue,
            };
            self.tell_named(key, Some(end), seen).await;
        }
        Refusal::Gone
    }

    /// The watch of an object has ended by itself: it is read from now on.
    fn refused(self: &Arc<Self>, key: &ObjectKey, end: &CancellationToken, refusal: Refusal) {
        let mut names = self.names();
        let Some(followed) = names.by_key.get_mut(key).filter(|_| !end.is_cancelled()) else {
            return;
        };
        followed.watch = None;
        match refusal {
            Refusal::Denied => followed.is_unwatchable = true,
            Refusal::Gone => self.discovery.invalidate(),
        }
        self.begin_reading(&mut names);
    }

    /// Reads what is not watched, over and over, until everything is.
    async fn read_by_turns(&self) {
        let (mut discovered, mut is_unserved) = (Instant::now(), false);
        loop {
            sleep(READS_PAUSE).await;
            let keys = self.names().next_turn();
            if keys.is_empty() {
                return;
            }
            if is_unserved && discovered.elapsed() >= DISCOVERY_PAUSE {
                discovered = Instant::now();
                // What cannot be read now is read the next time.
                let _ = self.discovery.refresh().await;
            }
            is_unserved = false;
            for key in keys {
                let resolved = self.discovery.resolve_kind(&key.group_kind()).await;
                is_unserved |= matches!(resolved, Ok(None));
                if let Ok(resolved) = resolved
                    && let Ok(seen) = self.read_named(&key, resolved.as_ref()).await
                {
                    self.tell_named(&key, None, seen).await;
                }
                sleep(GAP).await;
            }
        }
    }

    async fn read_named(&self, key: &ObjectKey, served: Option<&Resolved>) -> kube::Result<Sight> {
        let Some(resolved) = served else { return Ok(None) };
        let api = resolved.api(&self.client, namespace(key));
        let found = api.get_metadata_opt(&key.name).await?;
        Ok(found.map(|found| version_of(&found.metadata)))
    }

    /// Tells of an object, where it is another than it was told to be. What is given up before it can be told was not told.
    async fn tell_named(&self, key: &ObjectKey, watch: Option<&CancellationToken>, seen: Sight) {
        if let Ok(place) = self.notices.reserve().await
            && self.names().take(key, watch, seen)
        {
            place.send(Notice::Named(key.clone()));
        }
    }
}

/// Why an object cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Its kind is no longer served.
    Gone,
    /// Its kind is none that is watched, or the right is missing.
    Denied,
}

impl Refusal {
    fn of(error: &watcher::Error) -> Option<Self> {
        match code_of(error)? {
            StatusCode::NOT_FOUND => Some(Self::Gone),
            StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => Some(Self::Denied),
            _ => None,
        }
    }
}

/// What no version has is as good as what has one.
fn version_of(metadata: &ObjectMeta) -> Box<str> {
    Box::from(metadata.resource_version.as_deref().unwrap_or_default())
}

/// A value in a field selector, where these have a meaning of their own.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests;
