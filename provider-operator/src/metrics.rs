//! What the process counts of its work. The list for people is in docs/reference/operating.md, and held against what is registered here.
//!
//! Labels are of a few words that are known here, and of the clouds by their hosts: never a name or a tag of somebody's, and nothing of a tenant.

mod clouds;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crds::providers::Provider;
use crds::providers::image_status::{ImagePhase, NodeImageStatus};
use kube::ResourceExt;
use planning::image::{DeedName, Done, Failure};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use provider_plugin::CloudName;

pub(crate) use self::clouds::{CloudCounts, Clouds, Direction};
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OrphanLabels {
    provider: String,
    cloud: String,
    verified: &'static str,
}

/// Images of ours that no object is for, as one sweep found and left them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orphans(BTreeMap<(Provider, String, bool), i64>);

impl Orphans {
    /// A cloud was searched: where nothing is found, that is told too.
    pub(crate) fn searched(&mut self, provider: Provider, cloud: &str) {
        for verified in [false, true] {
            self.0.entry((provider, cloud.to_owned(), verified)).or_default();
        }
    }

    /// One was found, and is left.
    pub(crate) fn found(&mut self, provider: Provider, cloud: &str, verified: bool) {
        *self.0.entry((provider, cloud.to_owned(), verified)).or_default() += 1;
    }
}

/// What the drivers count. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    reconciles: Family<ReconcileLabels, Counter>,
    deeds: Family<DeedLabels, Counter>,
    orphans: Family<OrphanLabels, Gauge>,
    clouds: Clouds,
    census: Census,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            reconciles: Family::default(),
            deeds: Family::default(),
            orphans: Family::default(),
            clouds: Clouds::register(registry),
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
        registry.register(
            "stackwright_provider_orphans",
            "Images in clouds that are ours and that no object is for, as the last search found and left them",
            metrics.orphans.clone(),
        );
        registry.register_collector(Box::new(metrics.census.clone()));
        metrics
    }

    /// Counts the images of these providers from now on.
    pub(crate) fn count(&self, served: &[Arc<Served>]) {
        // A process works once.
        let _ = self.census.0.served.set(served.to_vec());
    }

    /// What is counted of clouds.
    pub(crate) fn clouds(&self) -> &Clouds {
        &self.clouds
    }

    /// In which cloud the image of an object is.
    pub(crate) fn lies(&self, provider: Provider, namespace: &str, name: &str, cloud: &CloudName) {
        let place = (provider, namespace.to_owned(), name.to_owned());
        self.census.clouds().insert(place, cloud.to_string());
    }

    /// An object went, and with it what was known of where its image is.
    pub(crate) fn forget(&self, provider: Provider, namespace: &str, name: &str) {
        let place = (provider, namespace.to_owned(), name.to_owned());
        self.census.clouds().remove(&place);
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

    /// What the last sweep left.
    pub(crate) fn orphans(&self, counted: Orphans) {
        self.orphans.clear();
        for ((provider, cloud, verified), count) in counted.0 {
            let labels = OrphanLabels {
                provider: provider.to_string(),
                cloud,
                verified: if verified { "true" } else { "false" },
            };
            self.orphans.get_or_create(&labels).set(count);
        }
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

/// How many images there are, by provider, cloud and phase: counted when somebody asks for the metrics.
#[derive(Clone, Default)]
struct Census(Arc<Counted>);

#[derive(Default)]
struct Counted {
    served: OnceLock<Vec<Arc<Served>>>,
    /// In which cloud the image of an object is, by provider, namespace and name.
    clouds: Mutex<BTreeMap<Place, String>>,
}

/// Provider, namespace and name.
type Place = (Provider, String, String);

impl Census {
    fn clouds(&self) -> MutexGuard<'_, BTreeMap<Place, String>> {
        self.0.clouds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All images by cloud and phase; those of objects whose cloud is not known yet are in none.
    fn phases(&self, served: &Served) -> BTreeMap<(String, ImagePhase), i64> {
        let provider = served.kind.provider();
        let clouds = self.clouds();
        let mut phases = BTreeMap::new();
        for image in served.images.watched_now() {
            let status: NodeImageStatus = status_of(&image);
            let place = (provider, image.namespace().unwrap_or_default(), image.name_any());
            let cloud = clouds.get(&place).cloned().unwrap_or_default();
            let phase = status.phase.unwrap_or(ImagePhase::Pending);
            *phases.entry((cloud, phase)).or_default() += 1;
        }
        phases
    }
}

impl Collector for Census {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metric_type = ConstGauge::new(0_i64).metric_type();
        let (name, help) = (
            "stackwright_provider_images",
            "Image objects by provider, cloud and phase",
        );
        let mut family = encoder.encode_descriptor(name, help, None, metric_type)?;
        for served in self.0.served.get().into_iter().flatten() {
            for ((cloud, phase), count) in self.phases(served) {
                let labels = [
                    ("provider", served.kind.name()),
                    ("cloud", cloud),
                    ("phase", phase.to_string()),
                ];
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
    use std::collections::BTreeSet;
    use std::time::Duration;

    use planning::image::{AttemptReason, FailureClass};
    use prometheus_client::encoding::text;

    use super::*;

    /// A page to which everything has contributed that can.
    fn page() -> String {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.reconciled("Lathe", Outcome::Settled);
        metrics.deed(Provider::OpenStack, DeedName::Look, &Ok(Done::Looked));
        let mut orphans = Orphans::default();
        orphans.searched(Provider::OpenStack, "keystone.example");
        orphans.found(Provider::OpenStack, "keystone.example", true);
        metrics.orphans(orphans);
        let counts = metrics
            .clouds()
            .of("openstack", &CloudName("keystone.example".to_owned()));
        counts.moved(Direction::ToCloud, 7);
        counts.moved(Direction::ToCloud, 5);
        counts.transferred(Duration::from_secs(20));
        counts.queued(true, Duration::from_secs(2));
        counts.attempted(AttemptReason::Stalled);
        let requests = counts.requests();
        requests.answered("send the image", Some(204), Duration::from_secs(1));
        requests.answered("send the image", Some(503), Duration::from_secs(1));
        requests.answered("send the image", None, Duration::from_secs(1));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a page");
        page
    }

    #[test]
    fn the_table_of_metrics_names_those_that_are_registered_and_no_other() {
        let guide = include_str!("../../docs/reference/operating.md");
        let (_, table) = guide
            .split_once("| metric of the provider operator | what it counts |")
            .expect("a table");
        let rows = table
            .lines()
            .skip(1)
            .take_while(|line| line.is_empty() || line.starts_with('|'));
        let documented: BTreeSet<&str> = rows
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        let page = page();
        let typed = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let registered: BTreeSet<String> = typed
            .map(|(name, kind)| {
                if kind == "counter" {
                    format!("{name}_total")
                } else {
                    name.to_owned()
                }
            })
            .collect();
        assert_eq!(documented, registered.iter().map(String::as_str).collect());
    }

    #[test]
    fn what_is_asked_of_a_cloud_is_counted_by_its_host() {
        let page = page();
        for line in [
            "stackwright_provider_transferred_bytes_total{provider=\"openstack\",cloud=\"keystone.example\",direction=\"ToCloud\"} 12",
            "stackwright_provider_transfer_seconds_sum{provider=\"openstack\",cloud=\"keystone.example\"} 20",
            "stackwright_provider_queue_seconds_sum{provider=\"openstack\",cloud=\"keystone.example\",lane=\"transfer\"} 2",
            "stackwright_provider_attempts_total{provider=\"openstack\",cloud=\"keystone.example\",reason=\"Stalled\"} 1",
            "stackwright_provider_orphans{provider=\"openstack\",cloud=\"keystone.example\",verified=\"true\"} 1",
            "stackwright_provider_orphans{provider=\"openstack\",cloud=\"keystone.example\",verified=\"false\"} 0",
            "operation=\"send the image\",status=\"2xx\"} 1",
            "operation=\"send the image\",status=\"5xx\"} 1",
            "operation=\"send the image\",status=\"none\"} 1",
            "stackwright_provider_cloud_request_seconds_count{provider=\"openstack\",cloud=\"keystone.example\",operation=\"send the image\"} 3",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }

    #[test]
    fn deeds_are_counted_by_how_they_ended_and_without_words_of_others() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.deed(Provider::FileStore, DeedName::Look, &Ok(Done::Looked));
        let failure = Failure::new(FailureClass::BuildFailed { exit: 77 }, "of somebody");
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
