//! What the process counts of its work. Labels are of a few words that are known here: never a name, a tag or an address of somebody's.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crds::providers::Provider;
use crds::providers::image_status::{ImagePhase, NodeImageStatus};
use planning::image::{DeedName, Done, Failure};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::context::Served;
use crate::kinds::status_of;

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    kind: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeedLabels {
    provider: String,
    deed: String,
    outcome: String,
}

/// What the drivers count. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    reconciles: Family<ReconcileLabels, Counter>,
    deeds: Family<DeedLabels, Counter>,
    census: Census,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            deeds: Family::default(),
            census: Census::default(),
        };
        registry.register(
            "stackwright_reconciles",
            "Reconciles by what came of them",
            metrics.reconciles.clone(),
        );
        registry.register(
            "stackwright_provider_deeds",
            "What was done to clouds and image sources, by how it ended: Done, or the class of the failure",
            metrics.deeds.clone(),
        );
        registry.register_collector(Box::new(metrics.census.clone()));
        metrics
    }

    /// Counts the images of these providers from now on.
    pub(crate) fn count(&self, served: &[Arc<Served>]) {
        // A process works once.
        let _ = self.census.0.set(served.to_vec());
    }

    pub(crate) fn reconciled(&self, kind: &str, outcome: Outcome) {
        let labels = ReconcileLabels {
            kind: kind.to_owned(),
            outcome: match outcome {
                Outcome::Settled => "settled",
                Outcome::Again => "again",
                Outcome::Panicked => "panicked",
            },
        };
        self.reconciles.get_or_create(&labels).inc();
    }

    /// A deed has ended.
    pub(crate) fn deed(&self, provider: Provider, deed: DeedName, outcome: &Result<Done, Failure>) {
        let labels = DeedLabels {
            provider: provider.to_string(),
            deed: format!("{deed:?}"),
            outcome: match outcome {
                Ok(_) => "Done".to_owned(),
                Err(failure) => word(&format!("{:?}", failure.class)).to_owned(),
            },
        };
        self.deeds.get_or_create(&labels).inc();
    }
}

/// A class without what it says besides: an exit code of a user's program is no word that is known here.
fn word(class: &str) -> &str {
    class.split(' ').next().unwrap_or_default()
}

/// How many images there are, by provider and phase: counted when somebody asks for the metrics.
#[derive(Clone, Default)]
struct Census(Arc<OnceLock<Vec<Arc<Served>>>>);

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metric_type = ConstGauge::new(0_i64).metric_type();
        let (name, help) = ("stackwright_provider_images", "Image objects by provider and phase");
        let mut family = encoder.encode_descriptor(name, help, None, metric_type)?;
        for served in self.0.get().into_iter().flatten() {
            let provider = served.kind.name();
            let mut phases: BTreeMap<ImagePhase, i64> = BTreeMap::new();
            for image in served.images.watched_now() {
                let status: NodeImageStatus = status_of(&image);
                *phases.entry(status.phase.unwrap_or(ImagePhase::Pending)).or_default() += 1;
            }
            for (phase, count) in phases {
                let labels = [("provider", provider.clone()), ("phase", phase.to_string())];
                ConstGauge::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Census {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Census").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use planning::image::FailureClass;
    use prometheus_client::encoding::text;

    use super::*;

    #[test]
    fn deeds_are_counted_by_how_they_ended_and_without_words_of_others() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.deed(Provider::FileStore, DeedName::Look, &Ok(Done::Looked));
        let failure = Failure {
            class: FailureClass::BuildFailed { exit: 77 },
            message: "of somebody".to_owned(),
            request_id: None,
            retry_after: None,
            quota: None,
        };
        metrics.deed(Provider::OpenStack, DeedName::Build, &Err(failure));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a page");
        for line in [
            "stackwright_provider_deeds_total{provider=\"filestore\",deed=\"Look\",outcome=\"Done\"} 1",
            "stackwright_provider_deeds_total{provider=\"openstack\",deed=\"Build\",outcome=\"BuildFailed\"} 1",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }
}
