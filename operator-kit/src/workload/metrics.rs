//! How many workload clusters are in which state, and how many watches they cost. No names: there may be any number of them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::state::State;
use crate::client::Traffic;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// What is measured of workload clusters. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct WorkloadMetrics {
    clusters: Family<StateLabel, Gauge>,
    watches: Gauge,
    /// Requests to them.
    pub(super) traffic: Traffic,
}

impl WorkloadMetrics {
    /// Registered as `workload_clusters`, `workload_watches` and `workload_requests_total`, below the registry's prefix.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            traffic: Traffic::register_of_workloads(registry),
            ..Self::default()
        };
        registry.register(
            "workload_clusters",
            "Workload clusters that are followed, by the state of the connection",
            metrics.clusters.clone(),
        );
        registry.register(
            "workload_watches",
            "Watches in workload clusters",
            metrics.watches.clone(),
        );
        metrics
    }

    pub(super) fn enters(&self, state: &State) {
        self.of(state).inc();
    }

    pub(super) fn leaves(&self, state: &State) {
        self.of(state).dec();
    }

    /// Of the watches, by whoever begins and ends them.
    pub(super) fn watches(&self) -> Gauge {
        self.watches.clone()
    }

    fn of(&self, state: &State) -> Gauge {
        let state = state.word();
        self.clusters.get_or_create(&StateLabel { state }).clone()
    }

    #[cfg(test)]
    pub(super) fn count(&self, state: &'static str) -> i64 {
        self.clusters.get_or_create(&StateLabel { state }).get()
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> i64 {
        self.watches.get()
    }
}
