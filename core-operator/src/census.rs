//! How many stacks, releases and add-ons of clusters there are, ready and not: counted when somebody asks for the metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crds::cluster_addon::ClusterAddon;
use crds::conditions::{Condition, ConditionStatus, ConditionType, find, is_true};
use crds::{ClusterStack, ClusterStackRelease};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::runtime::reflector::Store;
use operator_kit::lease::Tenure;
use planning::election::{shard_of, shard_of_release, shard_of_stack};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// Two series for each of our kinds that are worked on, by the label `ready`, of what is in the shards of this process: the sum over all processes counts everything
/// once. None as long as this process does not work, as a standby does not.
#[derive(Clone)]
pub(crate) struct Census {
    stores: Arc<OnceLock<Stores>>,
    tenure: Tenure,
}

/// What is counted.
struct Stores {
    stacks: Store<ClusterStack>,
    releases: Store<ClusterStackRelease>,
    /// Where add-ons are looked after.
    addons: Option<Store<ClusterAddon>>,
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

    /// Counts what is in these stores from now on; add-ons only where they are looked after.
    pub(crate) fn count(
        &self,
        stacks: &Store<ClusterStack>,
        releases: &Store<ClusterStackRelease>,
        addons: Option<&Store<ClusterAddon>>,
    ) {
        let stores = Stores {
            stacks: stacks.clone(),
            releases: releases.clone(),
            addons: addons.cloned(),
        };
        // A process works once.
        let _ = self.stores.set(stores);
    }

    /// How many of the stacks, the releases and the add-ons are not ready, and how many are; and how long that is so at most. All of the shards of this process.
    fn families(&self, stores: &Stores) -> Vec<Family> {
        let count = self.tenure.count();
        let mut stacks = stores.stacks.state();
        stacks.retain(|stack| self.tenure.holds(shard_of_stack(stack, count)));
        let mut releases = stores.releases.state();
        releases.retain(|release| self.tenure.holds(shard_of_release(release, count)));
        let conditions = |stack: &ClusterStack| {
            let status = stack.status.as_ref();
            status.map(|status| status.conditions.clone()).unwrap_or_default()
        };
        let mut families = vec![
            Family {
                name: "stackwright_cluster_stacks",
                help: "ClusterStacks by readiness",
                kind: "ClusterStack",
                tally: tally(&stacks, |stack| is_true(&conditions(stack), ConditionType::Ready)),
                longest: longest(&stacks, |stack| unready_since(&conditions(stack), &stack.metadata)),
            },
            Family {
                name: "stackwright_cluster_stack_releases",
                help: "ClusterStackReleases by readiness",
                kind: "ClusterStackRelease",
                tally: tally(&releases, |release| {
                    release.status.as_ref().is_some_and(|status| status.ready)
                }),
                longest: longest(&releases, |release| {
                    let status = release.status.as_ref();
                    let conditions = status.map(|status| status.conditions.as_slice());
                    unready_since(conditions.unwrap_or_default(), &release.metadata)
                }),
            },
        ];
        families.extend(stores.addons.as_ref().map(|addons| self.of_addons(addons.state())));
        families
    }

    fn of_addons(&self, mut addons: Vec<Arc<ClusterAddon>>) -> Family {
        let count = self.tenure.count();
        addons.retain(|addon| {
            let namespace = addon.namespace().unwrap_or_default();
            self.tenure.holds(shard_of(&namespace, &addon.name_any(), count))
        });
        Family {
            name: "stackwright_cluster_addons",
            help: "ClusterAddons by readiness",
            kind: "ClusterAddon",
            tally: tally(&addons, |addon| {
                addon.status.as_ref().is_some_and(|status| status.ready)
            }),
            longest: longest(&addons, |addon| {
                let status = addon.status.as_ref();
                let conditions = status.map(|status| status.conditions.as_slice());
                unready_since(conditions.unwrap_or_default(), &addon.metadata)
            }),
        }
    }
}

/// What is counted of one kind.
struct Family {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    tally: [i64; 2],
    longest: f64,
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(stores) = self.stores.get() else {
            return Ok(());
        };
        let families = self.families(stores);
        for Family { name, help, tally, .. } in &families {
            let [not_ready, ready] = *tally;
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
        for Family { kind, longest, .. } in &families {
            ConstGauge::new(*longest).encode(family.encode_family(&[("kind", *kind)])?)?;
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
