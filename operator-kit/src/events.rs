//! Tells people what happened, by Kubernetes events: once per change, never in the way of the work.
//!
//! An event's name is made from what it says, so a restarted process does not say it twice while the first is kept.

use std::collections::HashMap;

use crds::conditions::one_line;
use crds::events::EventReason;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use kube::client::Client;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::failure::chain;

/// Longest note in bytes that the API server takes.
pub const NOTE_LIMIT: usize = 1024;

/// Events that may wait to be sent. When more come at once, the newest are dropped: events are news, not records.
const WAITING: usize = 256;

/// Objects and reasons whose last note is remembered; beyond that all are forgotten and said again at worst once.
const REMEMBERED: usize = 8192;

/// How an event is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something took place.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    fn word(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The process's one recorder. Clones share it; the last clone ends it.
#[derive(Clone, Debug)]
pub struct Events {
    queue: mpsc::Sender<News>,
}

#[derive(Debug)]
struct News {
    reference: ObjectReference,
    kind: EventType,
    reason: EventReason,
    note: String,
}

impl Events {
    /// `controller` is what events are reported by, for example `clusterstack.x-k8s.io/core-operator`; `instance` the
    /// pod.
    pub fn start(client: Client, controller: &str, instance: &str) -> Self {
        let (queue, news) = mpsc::channel(WAITING);
        let reporter = Reporter {
            client,
            controller: controller.to_owned(),
            instance: instance.to_owned(),
            said: HashMap::new(),
            occurrences: HashMap::new(),
            troubled: false,
        };
        tokio::spawn(reporter.run(news));
        Self { queue }
    }

    /// Says something about an object, unless it was the last thing said about it for this reason. Returns at once;
    /// failures are logged. The note is told on one line, cut at [`NOTE_LIMIT`].
    pub fn publish(&self, reference: ObjectReference, kind: EventType, reason: impl Into<EventReason>, note: &str) {
        let reason = reason.into();
        let news = News {
            reference,
            kind,
            reason,
            note: one_line(note, NOTE_LIMIT),
        };
        if self.queue.try_send(news).is_err() {
            tracing::debug!(reason = reason.as_str(), "dropped an event: too many wait");
        }
    }
}

/// At most `limit` bytes, cut between characters.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Identifies an object (by uid) and a reason.
type Topic = [u8; 16];

struct Reporter {
    client: Client,
    controller: String,
    instance: String,
    /// The last thing said on each topic.
    said: HashMap<Topic, Topic>,
    /// How often the same was said with something else in between: each time it is news again.
    occurrences: HashMap<Topic, u32>,
    /// The last event could not be published, and that was said.
    troubled: bool,
}

impl Reporter {
    async fn run(mut self, mut news: mpsc::Receiver<News>) {
        while let Some(news) = news.recv().await {
            let Some(name) = self.name_of(&news) else { continue };
            let event = self.event_of(news, name);
            let namespace = event.metadata.namespace.clone().unwrap_or_default();
            let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
            match api.create(&PostParams::default(), &event).await {
                Ok(_) => self.troubled = false,
                Err(kube::Error::Api(status)) if status.is_already_exists() => self.troubled = false,
                Err(error) => self.failed(&chain(&error), event.reason.as_deref()),
            }
        }
    }

    /// A missing right or a full API server fails every event alike.
    fn failed(&mut self, error: &str, reason: Option<&str>) {
        if std::mem::replace(&mut self.troubled, true) {
            tracing::debug!(error, reason, "failed to publish an event");
        } else {
            tracing::warn!(error, reason, "failed to publish an event; the status tells the same");
        }
    }

    /// The name of the event, or `None` when this is what was said last.
    fn name_of(&mut self, news: &News) -> Option<String> {
        if self.said.len() >= REMEMBERED {
            self.said.clear();
            self.occurrences.clear();
        }
        let object = news
            .reference
            .uid
            .as_deref()
            .or(news.reference.name.as_deref())
            .unwrap_or_default();
        let topic = digest(&[object, news.reason.as_str()]);
        let saying = digest(&[object, news.reason.as_str(), news.kind.word(), &news.note]);
        if self.said.insert(topic, saying) == Some(saying) {
            return None;
        }
        let occurrence = self
            .occurrences
            .entry(saying)
            .and_modify(|times| *times += 1)
            .or_insert(0);
        let suffix = hex::encode(&digest(&[&hex::encode(saying), &occurrence.to_string()])[..8]);
        // The name of an event is at most 253 bytes, as its object's is.
        let name = cut(
            news.reference.name.as_deref().unwrap_or("cluster"),
            253 - 1 - suffix.len(),
        );
        Some(format!("{name}.{suffix}"))
    }

    fn event_of(&self, news: News, name: String) -> Event {
        // Events of cluster-scoped objects live in the default namespace, by convention.
        let namespace = news.reference.namespace.clone().unwrap_or_else(|| "default".to_owned());
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(Timestamp::now())),
            action: Some("Reconcile".to_owned()),
            reason: Some(news.reason.as_str().to_owned()),
            note: Some(news.note),
            type_: Some(news.kind.word().to_owned()),
            regarding: Some(news.reference),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

fn digest(parts: &[&str]) -> Topic {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut topic = Topic::default();
    topic.copy_from_slice(&hasher.finalize()[..16]);
    topic
}

#[cfg(test)]
mod tests;
