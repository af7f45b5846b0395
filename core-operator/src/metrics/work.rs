//! What waits for a driver and what it does: the queue of `kube` tells neither, so that triggers are noted as they go in.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::page::{Page, number};
use super::seconds;

/// The kinds that have drivers.
const KINDS: [&str; 3] = ["ClusterStack", "ClusterStackRelease", "ClusterAddon"];

/// What became of one reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is to be done until something changes.
    Settled,
    /// It goes on by itself, at once or at a time that is known.
    Again,
    /// It panicked.
    Panicked,
}

impl Outcome {
    const ALL: [Self; 3] = [Self::Settled, Self::Again, Self::Panicked];

    fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Again => "again",
            Self::Panicked => "panicked",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    kind: &'static str,
    outcome: &'static str,
}

/// Namespace and name.
type Place = (String, String);

/// The work of one driver. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    kind: &'static str,
    /// Since when each object that was triggered waits.
    waiting: Arc<Mutex<HashMap<Place, Instant>>>,
    reconciles: Family<ReconcileLabels, Counter>,
    waits: Histogram,
    durations: Histogram,
}

/// A reconcile that is under way.
#[derive(Debug)]
#[must_use = "counts when it has ended"]
pub(crate) struct Begun {
    at: Instant,
    /// How long the object had waited; `None` where it is looked at without a trigger.
    waited: Option<Duration>,
}

/// The work of each driver, in the order of [`KINDS`].
pub(super) fn register(registry: &mut Registry) -> [Work; 3] {
    let reconciles = Family::<ReconcileLabels, Counter>::default();
    let waits = Family::<KindLabels, Histogram, fn() -> Histogram>::new_with_constructor(seconds);
    let durations = Family::<KindLabels, Histogram, fn() -> Histogram>::new_with_constructor(seconds);
    registry.register(
        "stackwright_queue_wait_seconds",
        "How long objects waited from the first trigger to their reconcile",
        waits.clone(),
    );
    registry.register(
        "stackwright_reconcile_duration_seconds",
        "How long reconciles took",
        durations.clone(),
    );
    registry.register(
        "stackwright_reconciles",
        "Reconciles by what came of them",
        reconciles.clone(),
    );
    let works = KINDS.map(|kind| {
        for outcome in Outcome::ALL {
            let outcome = outcome.name();
            drop(reconciles.get_or_create(&ReconcileLabels { kind, outcome }));
        }
        Work {
            kind,
            waiting: Arc::default(),
            reconciles: reconciles.clone(),
            waits: waits.get_or_create(&KindLabels { kind }).clone(),
            durations: durations.get_or_create(&KindLabels { kind }).clone(),
        }
    });
    registry.register_collector(Box::new(Queues(works.clone())));
    works
}

impl Work {
    /// An object is to be looked at. It waits since the first time that this was said.
    pub(crate) fn triggered(&self, namespace: Option<&str>, name: &str) {
        let place = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        self.lock().entry(place).or_insert_with(Instant::now);
    }

    /// An object does not wait any more: it is being looked at. Whose work that is turns out then, so that nothing is counted yet.
    pub(crate) fn begun(&self, namespace: Option<&str>, name: &str) -> Begun {
        let waited = self.forgotten(namespace, name).map(|since| since.elapsed());
        let at = Instant::now();
        Begun { at, waited }
    }

    /// An object does not wait any more: it is gone. Since when it waited.
    pub(crate) fn forgotten(&self, namespace: Option<&str>, name: &str) -> Option<Instant> {
        let place = (namespace.unwrap_or_default().to_owned(), name.to_owned());
        self.lock().remove(&place)
    }

    /// A reconcile has ended.
    pub(crate) fn ended(&self, begun: &Begun, outcome: Outcome) {
        let labels = ReconcileLabels {
            kind: self.kind,
            outcome: outcome.name(),
        };
        self.reconciles.get_or_create(&labels).inc();
        self.durations.observe(begun.at.elapsed().as_secs_f64());
        if let Some(waited) = begun.waited {
            self.waits.observe(waited.as_secs_f64());
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Place, Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many objects wait, and the first of them for how long.
    fn queue(&self) -> (usize, Duration) {
        let waiting = self.lock();
        let oldest = waiting.values().min().map(Instant::elapsed);
        (waiting.len(), oldest.unwrap_or_default())
    }
}

/// Looks into the queues when somebody asks for the metrics.
#[derive(Debug)]
struct Queues([Work; 3]);

impl Collector for Queues {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let queues = self.0.each_ref().map(|work| (vec![("kind", work.kind)], work.queue()));
        let depths = queues
            .clone()
            .map(|(labels, (depth, _))| (labels, number(depth as u64)));
        let oldest = queues.map(|(labels, (_, oldest))| (labels, oldest.as_secs_f64()));
        page.gauge(
            "stackwright_queue_depth",
            "Objects that wait for their reconcile",
            &depths,
        )?;
        page.gauge(
            "stackwright_queue_oldest_seconds",
            "How long the object waits that waits longest for its reconcile",
            &oldest,
        )
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    fn page(registry: &Registry) -> String {
        let mut page = String::new();
        text::encode(&mut page, registry).unwrap();
        page
    }

    #[tokio::test(start_paused = true)]
    async fn object_waits_from_its_first_trigger_to_its_reconcile_and_counts_once() {
        let mut registry = Registry::default();
        let [_, releases, _] = register(&mut registry);
        releases.triggered(Some("fleet"), "one");
        releases.triggered(Some("fleet"), "gone");
        tokio::time::advance(Duration::from_secs(2)).await;
        releases.triggered(Some("fleet"), "one");
        tokio::time::advance(Duration::from_secs(2)).await;
        let waiting = page(&registry);
        for line in [
            "stackwright_queue_depth{kind=\"ClusterStackRelease\"} 2",
            "stackwright_queue_depth{kind=\"ClusterStack\"} 0",
            "stackwright_queue_oldest_seconds{kind=\"ClusterStackRelease\"} 4",
        ] {
            assert!(waiting.contains(line), "{line} in {waiting}");
        }
        let one = releases.begun(Some("fleet"), "one");
        tokio::time::advance(Duration::from_secs(1)).await;
        releases.ended(&one, Outcome::Again);
        releases.forgotten(Some("fleet"), "gone");
        // By itself, without a trigger.
        let again = releases.begun(Some("fleet"), "one");
        releases.ended(&again, Outcome::Panicked);
        // Of another process.
        releases.triggered(Some("fleet"), "other");
        drop(releases.begun(Some("fleet"), "other"));
        let done = page(&registry);
        for line in [
            "stackwright_queue_depth{kind=\"ClusterStackRelease\"} 0",
            "stackwright_queue_oldest_seconds{kind=\"ClusterStackRelease\"} 0",
            "stackwright_queue_wait_seconds_count{kind=\"ClusterStackRelease\"} 1",
            "stackwright_queue_wait_seconds_sum{kind=\"ClusterStackRelease\"} 4",
            "stackwright_reconcile_duration_seconds_count{kind=\"ClusterStackRelease\"} 2",
            "stackwright_reconcile_duration_seconds_sum{kind=\"ClusterStackRelease\"} 1",
            "stackwright_reconciles_total{kind=\"ClusterStackRelease\",outcome=\"again\"} 1",
            "stackwright_reconciles_total{kind=\"ClusterStackRelease\",outcome=\"panicked\"} 1",
            "stackwright_reconciles_total{kind=\"ClusterStack\",outcome=\"settled\"} 0",
        ] {
            assert!(done.contains(line), "{line} in {done}");
        }
    }
}
