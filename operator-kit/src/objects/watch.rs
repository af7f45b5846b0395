//! The life of one kind's watch: list, follow, start over when the API server asks for it, end when the kind is gone.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use http::StatusCode;
use kube::api::{Api, DynamicObject};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::budget::Excess;
use super::seen::Seen;
use super::store::{Changed, Store};
use super::{Inner, Notice, Trouble};
use crate::discovery::Resolved;
use crate::failure::{Lasting, code_of};
use crate::object::{GroupKind, ObjectKey};
use crate::pages::Unreadable;
use crate::shallow::Shallow;
use crate::watch_log::WatchLog;
use crate::watching::{Pace, Selection, watching_since};

/// Objects per page: metadata is about two kilobytes each with managedFields.
const PAGE_SIZE: u32 = 250;

type Object = Shallow<PartialObjectMeta<DynamicObject>>;

enum End {
    /// The process ends, or nobody needs the watch any more.
    Cancelled,
    /// The kind is no longer served.
    KindGone,
    /// There is more of it than is remembered.
    TooMuch(Excess),
}

pub(super) async fn run(
    inner: Arc<Inner>,
    kind: GroupKind,
    (resolved, pace): (Resolved, Pace),
    cancel: CancellationToken,
) {
    let watch = Watch {
        inner: &inner,
        kind: &kind,
        cancel: &cancel,
    };
    loop {
        match cancel.run_until_cancelled(watch.follow(&resolved, pace)).await {
            None | Some(End::Cancelled) => return,
            Some(End::KindGone) => break,
            Some(End::TooMuch(excess)) => {
                let pause = watch.give_up(excess);
                if cancel.run_until_cancelled(sleep(pause)).await.is_none() {
                    return;
                }
            }
        }
    }
    inner.discovery.invalidate();
    watch.forget(&HashSet::new(), u64::MAX).await;
    inner.mark_stopped(&kind, &cancel);
    inner.tell(Notice::Stopped(kind)).await;
}

/// The watch of one kind.
struct Watch<'a> {
    inner: &'a Inner,
    kind: &'a GroupKind,
    cancel: &'a CancellationToken,
}

impl Watch<'_> {
    async fn follow(&self, resolved: &Resolved, pace: Pace) -> End {
        let Self { inner, kind, .. } = *self;
        let api: Api<Object> = resolved.api_within(&inner.client, &inner.marked.namespace);
        let version = Arc::new(AtomicU64::default());
        let selector = inner.marked.selector();
        let selection = Selection {
            labels: &selector,
            fields: "",
        };
        let mut events = pin!(watching_since(api, selection, PAGE_SIZE, Arc::clone(&version), pace));
        let mut listed = HashSet::new();
        let mut before = 0;
        let mut log = WatchLog::new(kind);
        while let Some(event) = events.next().await {
            if event.as_ref().is_err_and(is_kind_gone) {
                return End::KindGone;
            }
            if let Some(excess) = self.excess(&event, listed.len()) {
                return End::TooMuch(excess);
            }
            log.heard(&event);
            let heard = match event {
                Ok(Event::Init) => {
                    listed.clear();
                    self.change(|store| {
                        before = store.begin_list(kind);
                        None
                    })
                    .await
                }
                Ok(Event::InitApply(object)) => {
                    let key = key_of(kind, &object.metadata);
                    listed.insert(key.clone());
                    self.put(&object.metadata, |store, seen| store.put_listed(key, seen, before))
                        .await
                }
                Ok(Event::InitDone) => {
                    let version = version.load(Ordering::SeqCst);
                    self.all_listed(&std::mem::take(&mut listed), before, version).await
                }
                Ok(Event::Apply(object)) => {
                    let key = key_of(kind, &object.metadata);
                    self.put(&object.metadata, |store, seen| store.put(key, seen)).await
                }
                Ok(Event::Delete(object)) => self.end(&object.metadata).await,
                Err(error) => {
                    self.note_trouble(&error);
                    // It is there, and what was seen of it before is all that is known of it.
                    if let Some(Unreadable { namespace, name, .. }) = Unreadable::of(&error) {
                        listed.insert(ObjectKey::new(&*kind.group, &*kind.kind, &**namespace, &**name));
                    }
                    true
                }
            };
            if !heard {
                return End::Cancelled;
            }
        }
        End::Cancelled
    }

    /// All that there is of the kind was told.
    async fn all_listed(&self, listed: &HashSet<ObjectKey>, before: u64, version: u64) -> bool {
        let Self { inner, kind, cancel } = *self;
        let heard = self.end_list(listed, before, version).await;
        inner.mark(kind, cancel, |watch| {
            watch.synced = true;
            watch.trouble = None;
        });
        heard && inner.tell(Notice::Synced(kind.clone())).await
    }

    fn note_trouble(&self, error: &watcher::Error) {
        let forbidden = code_of(error) == Some(StatusCode::FORBIDDEN);
        // A list that came stands.
        self.inner.mark(self.kind, self.cancel, |watch| {
            let before = watch.trouble.take().map(|trouble| trouble.lasting);
            watch.trouble = (!watch.synced).then(|| Trouble {
                lasting: Lasting::of_watch(error, before),
                forbidden,
            });
        });
    }

    /// What of it is known is no longer all there is. Gives the time until the next attempt.
    fn give_up(&self, excess: Excess) -> Duration {
        let words = excess.to_string();
        tracing::warn!(kind = %self.kind, "unable to follow a kind in a workload cluster: {words}");
        self.inner.mark(self.kind, self.cancel, |watch| {
            watch.synced = false;
            watch.trouble = Some(Trouble {
                lasting: Lasting::saying(words),
                forbidden: false,
            });
        });
        let budget = self.inner.budget.as_ref();
        budget.map_or(Duration::ZERO, |budget| budget.list_pause)
    }

    /// Whether what is told of an object is too much to be remembered, after so many in the same list.
    fn excess(&self, event: &watcher::Result<Event<Object>>, listed: usize) -> Option<Excess> {
        let (kind, marked) = (self.kind, &self.inner.marked);
        let (key, seen, listed) = match event {
            Ok(Event::InitApply(object)) => (key_of(kind, &object.metadata), marked.seen(&object.metadata), listed),
            Ok(Event::Apply(object)) => (key_of(kind, &object.metadata), marked.seen(&object.metadata), 0),
            Ok(Event::Init | Event::InitDone | Event::Delete(_)) => return None,
            Err(error) => {
                let Unreadable { namespace, name, .. } = Unreadable::of(error)?;
                let key = ObjectKey::new(&*kind.group, &*kind.kind, &**namespace, &**name);
                (key, None, listed)
            }
        };
        self.inner.excess(&key, seen.as_ref(), listed)
    }

    async fn put(&self, metadata: &ObjectMeta, note: impl FnOnce(&mut Store, Seen) -> Option<Changed>) -> bool {
        let Some(seen) = self.inner.marked.seen(metadata) else {
            return true;
        };
        self.change(|store| note(store, seen)).await
    }

    /// It is gone, or has lost the label, since this version.
    async fn end(&self, metadata: &ObjectMeta) -> bool {
        let version = metadata.resource_version.as_deref();
        let version = version.and_then(|version| version.parse().ok());
        let key = key_of(self.kind, metadata);
        self.change(|store| store.end(&key, version)).await
    }

    /// Changes what is known and tells of it, unless the watch was ended: what it knew is forgotten, and another one may have begun.
    async fn change(&self, change: impl FnOnce(&mut Store) -> Option<Changed>) -> bool {
        let changed = {
            let mut store = self.inner.store();
            if self.cancel.is_cancelled() {
                return false;
            }
            change(&mut store)
        };
        match changed {
            Some(changed) => self.inner.tell(Notice::Object(changed)).await,
            None => true,
        }
    }

    /// A list of this version has ended, before which no version above `before` was known.
    async fn end_list(&self, listed: &HashSet<ObjectKey>, before: u64, version: u64) -> bool {
        // First: no answer that is older must come behind what is forgotten.
        let ended = self.change(|store| {
            store.end_list(self.kind, version);
            None
        });
        // What is later than the list was noted while it was made: the watch that follows tells of it.
        ended.await && self.forget(listed, before.max(version)).await
    }

    /// Forgets every object of the kind that is not among `listed`, unless something was seen of it after the version `until`.
    async fn forget(&self, listed: &HashSet<ObjectKey>, until: u64) -> bool {
        let known = self.inner.store().keys_of(self.kind);
        for key in known.iter().filter(|key| !listed.contains(key.as_ref())) {
            let is_later = self.inner.store().get(key).and_then(Seen::version) > Some(until);
            if !is_later && !self.change(|store| store.remove(key)).await {
                return false;
            }
        }
        true
    }
}

/// Whether an error ends the watch rather than interrupting it.
fn is_kind_gone(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 404
    )
}

fn key_of(kind: &GroupKind, metadata: &ObjectMeta) -> ObjectKey {
    ObjectKey {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}
