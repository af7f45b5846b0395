//! How many stacks and releases there are, ready and not: counted when somebody asks for the metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crds::conditions::{Condition, ConditionStatus, ConditionType, find, is_true};
use crds::{ClusterStack, ClusterStackRelease};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::reflector::Store;
use operator_kit::lease::Tenure;
use planning::election::{shard_of_release, shard_of_stack};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Two series for each of our kinds, by the label `ready`, of what is in the shards of this process: the sum over all processes counts everything
/// once. None as long as this process does not work, as a standby does not.
#[derive(Clone)]
pub(crate) struct Census {
    stores: Arc<OnceLock<(Store<ClusterStack>, Store<ClusterStackRelease>)>>,
    tenure: Tenure,
}

impl Census {
    pub(crate) fn register(registry: &mut Registry, tenure: &Tenure) -> Self {
        let census = Self {
            stores: Arc::default(),
            tenure: tenure.clone(),
        };
        registry.register_collector(Box::new(census.clone()));
        census
    }

    /// Counts what is in these stores from now on.
    pub(crate) fn count(&self, stacks: &Store<ClusterStack>, releases: &Store<ClusterStackRelease>) {
        // A process works once.
        let _ = self.stores.set((stacks.clone(), releases.clone()));
    }
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some((stacks, releases)) = self.stores.get() else {
            return Ok(());
        };
        let count = self.tenure.count();
        let mut stacks = stacks.state();
        stacks.retain(|stack| self.tenure.holds(shard_of_stack(stack, count)));
        let mut releases = releases.state();
        releases.retain(|release| self.tenure.holds(shard_of_release(release, count)));
        let conditions = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status.map(|status| status.conditions.clone()).unwrap_or_default()
        };
        let unready = [
            (
                "ClusterStack",
                longest(&stacks, |stack| unready_since(&conditions(stack), &stack.metadata)),
            ),
            (
                "ClusterStackRelease",
                longest(&releases, |release| {
                    let status = release.status.as_ref();
                    let conditions = status.map(|status| status.conditions.as_slice());
                    unready_since(conditions.unwrap_or_default(), &release.metadata)
                }),
            ),
        ];
        let stacks = tally(&stacks, |stack| is_true(&conditions(stack), ConditionType::Ready));
        let releases = tally(&releases, |release| {
            release.status.as_ref().is_some_and(|status| status.ready)
        });
        let families = [
            ("stackwright_cluster_stacks", "ClusterStacks by readiness", stacks),
            (
                "stackwright_cluster_stack_releases",
                "ClusterStackReleases by readiness",
                releases,
            ),
        ];
        for (name, help, [not_ready, ready]) in families {
            let metric_type = ConstGauge::new(ready).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, metric_type)?;
            for (label, count) in [("true", ready), ("false", not_ready)] {
                ConstGauge::new(count).encode(family.encode_family(&[("ready", label)])?)?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "stackwright_longest_unready_seconds",
            "How long the object is not ready that is not for longest",
            None,
            ConstGauge::new(0.0).metric_type(),
        )?;
        for (kind, seconds) in unready {
            ConstGauge::new(seconds).encode(family.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}

/// Since when an object is not ready: since it said so, or since it is there.
fn unready_since(conditions: &[Condition], metadata: &ObjectMeta) -> Option<Timestamp> {
    let since = match find(conditions, ConditionType::Ready) {
        Some(ready) if ready.status == ConditionStatus::True => return None,
        Some(ready) => Some(ready.last_transition_time.0),
        None => None,
    };
    since.or_else(|| metadata.creation_timestamp.as_ref().map(|created| created.0))
}

/// How long that is for the one where it is longest, in seconds.
fn longest<K>(objects: &[Arc<K>], since: impl Fn(&K) -> Option<Timestamp>) -> f64 {
    let now = Timestamp::now();
    let times = objects.iter().filter_map(|object| since(object));
    times
        .map(|since| now.duration_since(since).as_secs_f64())
        .fold(0.0, f64::max)
}

/// How many are not ready, and how many are.
fn tally<K>(objects: &[Arc<K>], is_ready: impl Fn(&K) -> bool) -> [i64; 2] {
    let mut tally = [0, 0];
    for object in objects {
        tally[usize::from(is_ready(object))] += 1;
    }
    tally
}

impl fmt::Debug for Census {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Census").finish_non_exhaustive()
    }
}
