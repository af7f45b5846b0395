//! Follows the objects of one kind: lists them page by page, and watches what becomes of them. Never as a list that is streamed: that has no bound.
//!
//! It tells what kube's watcher tells, in its words. Other than that one, it takes a list in smaller pages where they are too large, passes over an
//! object that is too large by itself, and lists anew where an event is: begun again where it was, a watch would meet the same event for ever.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::vec;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use http::StatusCode;
use kube::api::{Api, WatchParams};
use kube::core::WatchEvent;
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::client::OutOfBounds;
use crate::pages::{Pages, can_go_on};
use crate::patience::patiently;

/// After so long the API server ends a watch, in seconds: less than what load balancers leave open.
const WATCH_SECONDS: u32 = 290;

/// Without an event, a bookmark or an end for so long, the connection is dead.
const SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// The objects with such labels (a selector of the API server; all when it is empty), listed in pages of at most `page_size`, and what becomes of
/// them. Never ends; errors are mended by going on, at a pace that spares the API server.
pub fn watching<K>(
    api: Api<K>,
    labels: &str,
    page_size: u32,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let selection = Selection { labels, fields: "" };
    watching_since(api, selection, page_size, Arc::default(), Pace::Watch)
}

/// Which objects are followed: selectors of the API server, of which an empty one takes all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) labels: &'a str,
    pub(crate) fields: &'a str,
}

/// How what becomes of objects is known once they have been listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// By a watch, as it happens.
    Watch,
    /// By another list, this long after the last one.
    Lists(Duration),
}

/// The same. By the time that the end of a list is told, `listed` is the version that it is of; the highest where that is no number.
pub(crate) fn watching_since<K>(
    api: Api<K>,
    selection: Selection<'_>,
    page_size: u32,
    listed: Arc<AtomicU64>,
    pace: Pace,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let kind = Kind {
        listed,
        pace,
        parameters: WatchParams {
            label_selector: some(selection.labels),
            field_selector: some(selection.fields),
            timeout: Some(WATCH_SECONDS),
            ..WatchParams::default()
        },
        labels: selection.labels.to_owned(),
        fields: selection.fields.to_owned(),
        page_size,
        api,
    };
    let state = kind.anew();
    patiently(stream::unfold((kind, state), |(kind, state)| async move {
        let (told, state) = kind.next(state).await;
        Some((told, (kind, state)))
    }))
}

fn some(selector: &str) -> Option<String> {
    (!selector.is_empty()).then(|| selector.to_owned())
}

/// What is followed.
struct Kind<K> {
    api: Api<K>,
    /// The version of the last list.
    listed: Arc<AtomicU64>,
    pace: Pace,
    labels: String,
    fields: String,
    page_size: u32,
    parameters: WatchParams,
}

enum State<K> {
    /// A list is to begin.
    Beginning(Pages<K>),
    /// These objects have been listed and not told yet.
    Listing(Pages<K>, vec::IntoIter<K>),
    /// All has been told up to this version.
    Known(String),
    /// What comes after this version is told as it comes.
    Following(String, BoxStream<'static, kube::Result<WatchEvent<K>>>),
}

/// What is told of a step, if anything is.
type Told<K> = Option<watcher::Result<Event<K>>>;

impl<K> Kind<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next(&self, mut state: State<K>) -> (watcher::Result<Event<K>>, State<K>) {
        loop {
            let (told, next) = match state {
                State::Beginning(pages) => (Some(Ok(Event::Init)), State::Listing(pages, Vec::new().into_iter())),
                State::Listing(pages, listed) => self.list(pages, listed).await,
                State::Known(version) => match self.pace {
                    Pace::Watch => self.follow(version).await,
                    Pace::Lists(pause) => {
                        sleep(pause).await;
                        (None, self.anew())
                    }
                },
                State::Following(version, events) => self.hear(version, events).await,
            };
            match told {
                Some(told) => return (told, next),
                None => state = next,
            }
        }
    }

    fn anew(&self) -> State<K> {
        let pages = Pages::new(self.api.clone(), &self.labels, self.page_size);
        State::Beginning(pages.with_fields(&self.fields))
    }

    async fn list(&self, mut pages: Pages<K>, mut listed: vec::IntoIter<K>) -> (Told<K>, State<K>) {
        if let Some(object) = listed.next() {
            return (Some(Ok(Event::InitApply(object))), State::Listing(pages, listed));
        }
        match pages.next_page().await {
            Some(Ok(page)) => (None, State::Listing(pages, page.into_iter())),
            Some(Err(error)) => {
                let state = if can_go_on(&error) {
                    State::Listing(pages, listed)
                } else {
                    pages.again();
                    State::Beginning(pages)
                };
                (Some(Err(watcher::Error::InitialListFailed(error))), state)
            }
            None => match pages.version() {
                Some(version) => {
                    self.listed.store(version.parse().unwrap_or(u64::MAX), Ordering::SeqCst);
                    (Some(Ok(Event::InitDone)), State::Known(version.to_owned()))
                }
                None => (Some(Err(watcher::Error::NoResourceVersion)), self.anew()),
            },
        }
    }

    async fn follow(&self, version: String) -> (Told<K>, State<K>) {
        match self.api.watch(&self.parameters, &version).await {
            Ok(events) => (None, State::Following(version, events.boxed())),
            Err(error) => {
                let state = self.after(&error, State::Known(version));
                (Some(Err(watcher::Error::WatchStartFailed(error))), state)
            }
        }
    }

    async fn hear(
        &self,
        version: String,
        mut events: BoxStream<'static, kube::Result<WatchEvent<K>>>,
    ) -> (Told<K>, State<K>) {
        let told = match timeout(SILENCE, events.next()).await {
            Ok(Some(Ok(told))) => told,
            Ok(Some(Err(error))) => {
                let state = match &error {
                    // Something came that cannot be read: kube (5.0) takes what is no event for a refusal, even without a code.
                    kube::Error::Api(_) | kube::Error::SerdeError(_) => self.anew(),
                    _ => self.after(&error, State::Following(version, events)),
                };
                return (Some(Err(watcher::Error::WatchFailed(error))), state);
            }
            Ok(None) | Err(_) => return (None, State::Known(version)),
        };
        let event = match told {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Event::Apply(object),
            WatchEvent::Deleted(object) => Event::Delete(object),
            WatchEvent::Bookmark(mark) => return (None, State::Following(mark.metadata.resource_version, events)),
            // From the same version the same might come again, and nothing behind it.
            WatchEvent::Error(status) => return (Some(Err(watcher::Error::WatchError(status))), self.anew()),
        };
        match version_of(&event) {
            Some(version) => (Some(Ok(event)), State::Following(version, events)),
            None => (Some(Err(watcher::Error::NoResourceVersion)), self.anew()),
        }
    }

    /// Where to go on after an error: with a list where the history is cut, or has an event that is too large.
    fn after(&self, error: &kube::Error, otherwise: State<K>) -> State<K> {
        let expired = matches!(error, kube::Error::Api(status) if is_expired(status.code));
        let too_large = OutOfBounds::of(error).is_some_and(OutOfBounds::is_of_size);
        if expired || too_large { self.anew() } else { otherwise }
    }
}

fn version_of<K: Resource>(event: &Event<K>) -> Option<String> {
    match event {
        Event::Apply(object) | Event::Delete(object) => object.resource_version().filter(|version| !version.is_empty()),
        Event::Init | Event::InitApply(_) | Event::InitDone => None,
    }
}

fn is_expired(code: u16) -> bool {
    code == StatusCode::GONE
}

#[cfg(test)]
mod tests;
