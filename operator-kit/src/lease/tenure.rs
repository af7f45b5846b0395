//! Which shards this process works in, and what runs in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};

/// The shards of this process. Clones share them.
#[derive(Clone, Debug)]
pub struct Tenure {
    shards: Arc<Mutex<Vec<Shard>>>,
    held: Arc<watch::Sender<Held>>,
    /// Tells that a pass has ended.
    ended: Arc<Notify>,
}

/// The shards in which work may begin, and how often each was gained: what is gained again has missed what happened in between.
pub type Held = BTreeMap<u16, u64>;

#[derive(Clone, Debug, Default)]
struct Shard {
    /// New work may begin.
    open: bool,
    running: usize,
    gained: u64,
    lost: u64,
}

/// Something runs in a shard as long as this lives.
#[derive(Debug)]
pub struct Pass {
    tenure: Tenure,
    shard: u16,
    term: u64,
}

impl Pass {
    /// How often this process has gained the shard, this time included. What it remembers of an earlier time, others have worked on since.
    pub fn term(&self) -> u64 {
        self.term
    }
}

impl Tenure {
    /// None of so many shards.
    pub fn of(count: u16) -> Self {
        Self {
            shards: Arc::new(Mutex::new(vec![Shard::default(); usize::from(count)])),
            held: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// All shards, for ever: for who needs no Lease.
    pub fn of_everything() -> Self {
        let tenure = Self::of(1);
        tenure.open(0);
        tenure
    }

    /// These of so many shards, until [`Self::lose`]: for tests of processes that share the work.
    #[cfg(feature = "in-memory")]
    pub fn of_these(shards: &[u16], count: u16) -> Self {
        let tenure = Self::of(count);
        for shard in shards {
            tenure.open(*shard);
        }
        tenure
    }

    /// No new work may begin in a shard any more, as if another process had it from now on: for tests of what becomes of the old work.
    #[cfg(feature = "in-memory")]
    pub fn lose(&self, shard: u16) {
        self.close(shard);
    }

    /// Of how many shards it is.
    pub fn count(&self) -> u16 {
        u16::try_from(self.shards().len()).unwrap_or(u16::MAX)
    }

    /// Begins to work in a shard; `None` where this process may not (any more). The shard is not given away before the pass is dropped.
    pub fn enter(&self, shard: u16) -> Option<Pass> {
        let mut shards = self.shards();
        let entered = shards.get_mut(usize::from(shard)).filter(|shard| shard.open)?;
        entered.running += 1;
        let term = entered.gained;
        drop(shards);
        Some(Pass {
            tenure: self.clone(),
            shard,
            term,
        })
    }

    /// Whether work may begin in a shard.
    pub fn holds(&self, shard: u16) -> bool {
        self.shards().get(usize::from(shard)).is_some_and(|shard| shard.open)
    }

    /// Tells whenever something is gained or lost.
    pub fn watch(&self) -> watch::Receiver<Held> {
        self.held.subscribe()
    }

    pub(super) fn open(&self, shard: u16) {
        self.change(shard, |shard| {
            shard.gained += u64::from(!shard.open);
            shard.open = true;
        });
    }

    pub(super) fn close(&self, shard: u16) {
        self.change(shard, |shard| {
            shard.lost += u64::from(shard.open);
            shard.open = false;
        });
    }

    /// Returns when a pass has ended since the last time, in whatever shard.
    pub(super) async fn pass_ended(&self) {
        self.ended.notified().await;
    }

    /// Whether nothing runs in a shard.
    pub(super) fn is_idle(&self, shard: u16) -> bool {
        self.shards()
            .get(usize::from(shard))
            .is_none_or(|shard| shard.running == 0)
    }

    fn change(&self, shard: u16, change: impl FnOnce(&mut Shard)) {
        let mut shards = self.shards();
        if let Some(shard) = shards.get_mut(usize::from(shard)) {
            change(shard);
        }
        let open = (0..).zip(&*shards).filter(|(_, shard)| shard.open);
        let held: Held = open.map(|(number, shard)| (number, shard.gained)).collect();
        // With the lock, so that the last change is the last that is told.
        self.held.send_if_modified(|known| {
            let changed = *known != held;
            *known = held;
            changed
        });
    }

    fn shards(&self) -> MutexGuard<'_, Vec<Shard>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows in the metrics which shards are held, one series for each, and how often that changed.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(Metrics(self.clone())));
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(shard) = self.tenure.shards().get_mut(usize::from(self.shard)) {
            shard.running -= 1;
        }
        self.tenure.ended.notify_one();
    }
}

#[derive(Debug)]
struct Metrics(Tenure);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let shards = self.0.shards().clone();
        let mut family = encoder.encode_descriptor(
            "stackwright_shard_held",
            "Whether this process works in the shard",
            None,
            ConstGauge::new(0_i64).metric_type(),
        )?;
        for (number, shard) in shards.iter().enumerate() {
            let label = number.to_string();
            ConstGauge::new(i64::from(shard.open)).encode(family.encode_family(&[("shard", label.as_str())])?)?;
        }
        let mut family = encoder.encode_descriptor(
            "stackwright_shard_transitions",
            "Shards gained and lost by this process",
            None,
            ConstCounter::new(0_u64).metric_type(),
        )?;
        let sum = |of: fn(&Shard) -> u64| shards.iter().map(of).sum::<u64>();
        for (change, count) in [("gained", sum(|shard| shard.gained)), ("lost", sum(|shard| shard.lost))] {
            ConstCounter::new(count).encode(family.encode_family(&[("change", change)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_shard_is_idle_when_the_last_pass_has_ended() {
        let tenure = Tenure::of(2);
        assert!(tenure.enter(1).is_none());
        tenure.open(1);
        let passes = [tenure.enter(1).unwrap(), tenure.enter(1).unwrap()];
        tenure.close(1);
        assert!(tenure.enter(1).is_none());
        let [first, second] = passes;
        drop(first);
        assert!(!tenure.is_idle(1));
        drop(second);
        assert!(tenure.is_idle(1));
        assert!(tenure.enter(2).is_none(), "there is no such shard");
    }

    #[test]
    fn what_is_gained_again_is_news() {
        let tenure = Tenure::of(1);
        let mut watch = tenure.watch();
        tenure.open(0);
        assert_eq!(*watch.borrow_and_update(), Held::from([(0, 1)]));
        let terms = [0, 1].map(|_| tenure.enter(0).unwrap().term());
        assert_eq!(terms, [1, 1]);
        tenure.close(0);
        tenure.open(0);
        assert_eq!(tenure.enter(0).unwrap().term(), 2);
        assert!(watch.has_changed().unwrap());
        assert_eq!(*watch.borrow_and_update(), Held::from([(0, 2)]));
        tenure.open(0);
        assert!(!watch.has_changed().unwrap());
    }

    #[test]
    fn metrics_name_every_shard() {
        let mut registry = Registry::default();
        let tenure = Tenure::of(2);
        tenure.register(&mut registry);
        tenure.open(0);
        tenure.open(1);
        tenure.close(1);
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        for line in [
            "stackwright_shard_held{shard=\"0\"} 1",
            "stackwright_shard_held{shard=\"1\"} 0",
            "stackwright_shard_transitions_total{change=\"gained\"} 2",
            "stackwright_shard_transitions_total{change=\"lost\"} 1",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }
}
