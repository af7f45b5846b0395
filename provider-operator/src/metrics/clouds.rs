//! What is counted of each cloud: what was asked of it and how that was answered, the bytes of images, and how long they waited and took. A cloud is known
//! by its host, or by the name of its directory; nothing of a tenant is in a label.

use std::sync::Arc;
use std::time::Duration;

use planning::image::AttemptReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use provider_plugin::{CloudName, Requests};

/// Seconds that separate what is usual from what is slow, of answers and of waits.
const SECONDS: [f64; 9] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0, 600.0];
/// The same of images, which take long.
const LONG_SECONDS: [f64; 9] = [1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 7200.0];

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

fn long_seconds() -> Histogram {
    Histogram::new(LONG_SECONDS)
}

/// Makes the histogram of a series.
type Make = fn() -> Histogram;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CloudLabels {
    provider: &'static str,
    cloud: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BytesLabels {
    provider: &'static str,
    cloud: String,
    direction: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabels {
    provider: &'static str,
    cloud: String,
    lane: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    provider: &'static str,
    cloud: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    provider: &'static str,
    cloud: String,
    operation: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    provider: &'static str,
    cloud: String,
    operation: &'static str,
}

/// Which way bytes of images go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// They are read where images come from.
    FromSource,
    /// A cloud has taken them.
    ToCloud,
    /// They are read from a cloud, to be verified.
    FromCloud,
}

/// The counts of all clouds. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Clouds {
    bytes: Family<BytesLabels, Counter>,
    transfer_seconds: Family<CloudLabels, Histogram, Make>,
    queue_seconds: Family<QueueLabels, Histogram, Make>,
    attempts: Family<AttemptLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<OperationLabels, Histogram, Make>,
}

impl Default for Clouds {
    fn default() -> Self {
        Self {
            bytes: Family::default(),
            transfer_seconds: Family::new_with_constructor(long_seconds),
            queue_seconds: Family::new_with_constructor(seconds),
            attempts: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(seconds),
        }
    }
}

impl Clouds {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let clouds = Self::default();
        registry.register(
            "stackwright_provider_transferred_bytes",
            "Bytes of images by direction: FromSource, ToCloud, FromCloud to be verified",
            clouds.bytes.clone(),
        );
        registry.register(
            "stackwright_provider_transfer_seconds",
            "How long the images took that were sent as a whole, without the wait for their turn",
            clouds.transfer_seconds.clone(),
        );
        registry.register(
            "stackwright_provider_queue_seconds",
            "How long deeds waited for their turn, by lane: call, transfer",
            clouds.queue_seconds.clone(),
        );
        registry.register(
            "stackwright_provider_attempts",
            "Attempts at images by what they were begun for",
            clouds.attempts.clone(),
        );
        registry.register(
            "stackwright_provider_cloud_requests",
            "Requests to clouds by operation and status: 2xx, 3xx, 4xx, 5xx, none",
            clouds.requests.clone(),
        );
        registry.register(
            "stackwright_provider_cloud_request_seconds",
            "How long requests to clouds took, with their bodies",
            clouds.request_seconds.clone(),
        );
        clouds
    }

    /// The counts of one cloud.
    pub(crate) fn of(&self, provider: &'static str, cloud: &CloudName) -> CloudCounts {
        CloudCounts {
            clouds: self.clone(),
            provider,
            cloud: cloud.to_string(),
        }
    }
}

/// The counts of one cloud.
#[derive(Clone, Debug)]
pub(crate) struct CloudCounts {
    clouds: Clouds,
    provider: &'static str,
    cloud: String,
}

impl CloudCounts {
    /// So many bytes more.
    pub(crate) fn moved(&self, direction: Direction, bytes: u64) {
        let labels = BytesLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
            direction: match direction {
                Direction::FromSource => "FromSource",
                Direction::ToCloud => "ToCloud",
                Direction::FromCloud => "FromCloud",
            },
        };
        self.clouds.bytes.get_or_create(&labels).inc_by(bytes);
    }

    /// An image was sent as a whole.
    pub(crate) fn transferred(&self, took: Duration) {
        let labels = CloudLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
        };
        let histogram = self.clouds.transfer_seconds.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }

    /// A deed has its turn, after so long.
    pub(crate) fn queued(&self, is_long: bool, waited: Duration) {
        let labels = QueueLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
            lane: if is_long { "transfer" } else { "call" },
        };
        let histogram = self.clouds.queue_seconds.get_or_create(&labels);
        histogram.observe(waited.as_secs_f64());
    }

    /// Another attempt at an image has begun.
    pub(crate) fn attempted(&self, why: AttemptReason) {
        let labels = AttemptLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
            reason: format!("{why:?}"),
        };
        self.clouds.attempts.get_or_create(&labels).inc();
    }

    /// Whoever tells of requests to this cloud.
    pub(crate) fn requests(&self) -> Arc<dyn Requests> {
        Arc::new(self.clone())
    }
}

impl Requests for CloudCounts {
    fn answered(&self, operation: &'static str, status: Option<u16>, took: Duration) {
        let status = match status.map(|status| status / 100) {
            Some(2) => "2xx",
            Some(3) => "3xx",
            Some(4) => "4xx",
            Some(_) => "5xx",
            None => "none",
        };
        let labels = RequestLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
            operation,
            status,
        };
        self.clouds.requests.get_or_create(&labels).inc();
        let labels = OperationLabels {
            provider: self.provider,
            cloud: self.cloud.clone(),
            operation,
        };
        let histogram = self.clouds.request_seconds.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }
}
